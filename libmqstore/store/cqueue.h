/* cqueue.h: one consume queue: where in the log each message of a topic's queue lies.
 *
 * Knows the 20-byte entry and nothing of messages.  Fed by derive.c alone, in log order; read by anybody.
 *
 * A queue is a name until it is first used; then its directory is looked at and its end found (cqueue_load).  At most two of
 * its files are mapped: the one being written and the one that somebody behind reads.  The table (cqueues.h) bounds all maps.
 *
 * Entries that are not in a file yet live in `more`, an array in memory that goes on where the files end: of a queue that is
 * opened read-only after a crash, what recovery would have written.
 *
 * Promises:
 *   1. After cqueue_room(q, n) the next n cqueue_put() cannot fail for want of disk space.
 *   2. 0 <= min <= max, whatever the files hold. */
#ifndef STORE_CQUEUE_H
#define STORE_CQUEUE_H

#include "../base/byte.h"
#include "../codec/layout.h"
#include <mqstore.h>
#include <sys/queue.h>

struct cqueues;
struct topic;

struct cqmap {
	uint8_t *p;             /* NULL = not mapped */
	int64_t start;          /* queue position of its first byte */
	struct mqstore_queue *q;/* whose it is */
	uint32_t at;            /* place in the table of maps */
	bool used;              /* since the last sweep */
};

struct mqstore_queue {
	struct cqueues *all;
	struct topic *topic;
	int32_t id;
	bool loaded;            /* the fields below are known */
	bool watch;
	bool dirty;             /* in the list of queues to be flushed */
	bool named;             /* its directory and newest file are known to be on the disk */
	bool made;              /* its directory exists */
	bool lost;              /* its last file holds no entry: the log must be asked */
	int32_t pending;        /* entries of the append that is being prepared */
	/* Positions are bytes; entry n is at n * CQ_ENTRY. */
	int64_t first;          /* start of the first file */
	int64_t pos;            /* where the next entry goes */
	int64_t room;           /* entries before this may be written through `tail` */
	int64_t reserved;       /* files have blocks up to here */
	int64_t flushed;        /* on the disk up to here */
	int64_t log_end;        /* end of the newest record that has an entry */
	int64_t trimmed_for;    /* start of the log that its files were trimmed to */
	int64_t min, min_for;   /* first readable entry number; the start of the log that it was found for */
	struct cqmap tail, old;
	uint8_t *more;
	int64_t more_from, more_cap;
	TAILQ_ENTRY(mqstore_queue) to_flush;
};

/* Find first, pos, log_end.  Entries at or beyond `all->log_end_at_open` are cut (written queues: also in the files). */
int cqueue_load(struct mqstore_queue *q);
static inline int cqueue_ready(struct mqstore_queue *q) { return q->loaded ? 0 : cqueue_load(q); }

int cqueue_room_slow(struct mqstore_queue *q, int64_t n);
static inline int cqueue_room(struct mqstore_queue *q, int64_t n)
{
	return q->pos + n * CQ_ENTRY <= q->room ? 0 : cqueue_room_slow(q, n);
}
void cqueue_mark_dirty(struct mqstore_queue *q);

/* The next entry.  Needs cqueue_room(); at the end of a file it maps the next one, which may fail. */
static inline int cqueue_put(struct mqstore_queue *q, int64_t log_off, int32_t size, int64_t tags_code)
{
	uint8_t *p;

	if (__builtin_expect(q->pos >= q->room, 0)) {
		int rc = cqueue_room_slow(q, 1);

		if (rc < 0)
			return rc;
	}
	p = q->tail.p + (q->pos - q->tail.start);
	put_be64(p, (uint64_t)log_off);
	put_be64(p + 12, (uint64_t)tags_code);
	put_be32(p + 8, (uint32_t)size);
	q->pos += CQ_ENTRY;
	q->log_end = log_off + size;
	q->tail.used = true;
	if (!q->dirty)
		cqueue_mark_dirty(q);
	return 0;
}

/* An entry found in the log again: number `off` as the record says.  Returns 1 if it was put, 0 if it was there already, and
 * CQUEUE_GAP, with nothing done, if entries before it are missing and `fill` is false.  With `fill` the place before the first
 * entry of a queue becomes fillers, as the peer has it; a gap behind entries gets copies of this entry, which every reader
 * passes over or takes for the same message again. */
enum { CQUEUE_GAP = 2 };
int cqueue_derive(struct mqstore_queue *q, int64_t off, int64_t log_off, int32_t size, int64_t tags_code, bool fill);

/* Entries from number `off` on that lie next to each other, *n of them (> 0).  NULL: none (*n = 0), or their file cannot be
 * mapped (*n = -errno; -ENOENT or MQ_EMISMATCH if it is not there as it should be). */
const uint8_t *cqueue_entries(struct mqstore_queue *q, int64_t off, int64_t *n);
static inline void cqueue_read(const uint8_t *p, struct mqstore_entry *e)
{
	e->log_off = (int64_t)be64(p);
	e->size = (int32_t)be32(p + 8);
	e->tags_code = (int64_t)be64(p + 12);
}
/* Stands for nothing: before the first entry of a queue (log offset 0), or where the last record was damaged. */
static inline bool cqueue_void(const struct mqstore_entry *e) { return e->size == CQ_FILLER_SIZE; }
static inline bool cqueue_valid(const uint8_t *p) { return (int64_t)be64(p) >= 0 && (int32_t)be32(p + 8) > 0; }

/* First readable entry number while the log begins at log_min. */
int64_t cqueue_min(struct mqstore_queue *q, int64_t log_min);
static inline int64_t cqueue_max(struct mqstore_queue *q) { return cqueue_ready(q) < 0 ? 0 : q->pos / CQ_ENTRY; }
/* First entry number in [lo, hi) whose log offset is >= log_off, else hi; -errno if files cannot be mapped. */
int64_t cqueue_find(struct mqstore_queue *q, int64_t lo, int64_t hi, int64_t log_off);

/* Forget entries whose record does not end at or before log_end. */
int cqueue_cut(struct mqstore_queue *q, int64_t log_end);
/* The record of entry `off` is damaged: nobody shall look for it. The entry becomes the same as the one behind it, so that the
 * peer's readers step over it too; the last one becomes void, for its number was given. */
int cqueue_skip(struct mqstore_queue *q, int64_t off);
/* Remove files whose last entry lies before log_min, never the last file. */
int cqueue_trim(struct mqstore_queue *q, int64_t log_min);
/* Forget everything: a queue that was never looked at. */
void cqueue_reset(struct mqstore_queue *q);
/* Remove all files and the directory. */
int cqueue_remove(struct mqstore_queue *q);
/* Read-only: entries that the writer has put into the files since, as far as their records end before log_end. */
void cqueue_follow(struct mqstore_queue *q, int64_t log_end);

/* One dirty range, as files: the thread that flushes asks for it. */
int cqueue_sync(const char *dir, int64_t file_bytes, int64_t from, int64_t to, bool name);
char *cqueue_dir(const struct mqstore_queue *q, char *out);
void cqueue_unmap(struct mqstore_queue *q);
void cqueue_free(struct mqstore_queue *q);

#endif
