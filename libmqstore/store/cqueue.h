/* cqueue.h: one consume queue: where in the log each message of a topic's queue lies.
 *
 * Knows the 20-byte entry and nothing of messages.  Fed by derive.c alone, in log order; read by anybody.
 *
 * A queue is a name until it is first used; then its directory is looked at and its end found (cqueue_load).  New entries gather
 * in memory, in `buf`, and are written to the files many at a time: when buf is full, or by a flush (which then syncs them, in
 * another thread).  So a queue costs no map and no system call per message, however many there are.  A kill loses what was not
 * written; recovery derives it from the log.  Readers find the newest entries in buf and map a file for older ones; the table
 * (cqueues.h) bounds maps and buffers.
 *
 *	first            written/flushed     pos
 *	  |---- files ------|····················         entries, by position
 *	             |--------- buf ---------|            the newest of them; buf may reach back before `written`
 *
 * A read-only handle puts into buf what recovery or the writer's flush would have written.
 *
 * Promises:
 *   1. After cqueue_room(q, n) the next n cqueue_put() cannot fail.
 *   2. 0 <= min <= max, whatever the files hold. */
#ifndef STORE_CQUEUE_H
#define STORE_CQUEUE_H

#include "../base/byte.h"
#include "../codec/layout.h"
#include <mqstore.h>
#include <sys/queue.h>

struct bqueue;
struct cqueue_ext;
struct cqueues;
struct topic;

struct mqstore_queue {
	struct cqueues *all;
	struct topic *topic;
	int32_t id;
	int32_t pending;        /* entries of the append that is being prepared */
	bool loaded;            /* the fields below are known */
	bool watch;
	bool dirty;             /* in the list of queues to be flushed */
	bool named;             /* its directory and newest file are known to be on the disk */
	bool made;              /* its directory exists */
	bool lost;              /* its last file holds no entry: the log must be asked */
	/* Positions are bytes; entry n is at n * CQ_ENTRY. */
	int64_t first;          /* start of the first file */
	int64_t pos;            /* where the next entry goes */
	int64_t written;        /* the files hold the entries up to here */
	int64_t flushed;        /* on the disk up to here */
	int64_t log_end;        /* end of the newest record that has an entry */
	int64_t min, min_for;   /* first readable entry number; the start of the log that it was found for */
	int64_t trimmed_for;    /* start of the log that its files were trimmed to */
	uint8_t *buf;
	int64_t buf_from;       /* position of its first byte */
	int64_t buf_end;        /* position up to which it has room */
	struct {
		uint8_t *p;     /* NULL = not mapped */
		int64_t start;  /* queue position of its first byte */
		uint32_t at;    /* place in the table of maps */
		bool used;      /* since the last sweep */
	} map;
	TAILQ_ENTRY(mqstore_queue) to_flush;
	struct cqueue_ext *ext; /* units beside the entries, once somebody wanted one (cqueue_ext.h) */
	struct bqueue *batch;   /* of a topic with batch consume queues: everything is in there, nothing in the fields above */
};

/* Find first, pos, log_end.  Entries at or beyond `all->log_end_at_open` are cut (written queues: also in the files). */
int cqueue_load(struct mqstore_queue *q);
static inline int cqueue_ready(struct mqstore_queue *q) { return q->loaded ? 0 : cqueue_load(q); }

/* Room for n more entries.  MQ_EFULL, -errno: the buffer is full and cannot be written. */
int cqueue_room_slow(struct mqstore_queue *q, int64_t n);
static inline int cqueue_room(struct mqstore_queue *q, int64_t n)
{
	return q->pos + n * CQ_ENTRY <= q->buf_end ? 0 : cqueue_room_slow(q, n);
}
void cqueue_mark_dirty(struct mqstore_queue *q);

/* The next entry. Needs cqueue_room(). */
static inline void cqueue_put(struct mqstore_queue *q, int64_t log_off, int32_t size, int64_t tags_code)
{
	uint8_t *p = q->buf + (q->pos - q->buf_from);

	put_be64(p, (uint64_t)log_off);
	put_be32(p + 8, (uint32_t)size);
	put_be64(p + 12, (uint64_t)tags_code);
	q->pos += CQ_ENTRY;
	q->log_end = log_off + size;
	if (!q->dirty)
		cqueue_mark_dirty(q);
}

/* An entry found in the log again: number `off` as the record says.  Returns 1 if it was put, 0 if it was there already, and
 * CQUEUE_GAP, with nothing done, if entries before it are missing and `fill` is false.  With `fill` the place before the first
 * entry of a queue becomes fillers, as the peer has it; a gap behind entries gets copies of this entry, which every reader
 * passes over or takes for the same message again.  Size CQ_FILLER_SIZE: the record is damaged, its number was given. */
enum { CQUEUE_GAP = 2 };
int cqueue_derive(struct mqstore_queue *q, int64_t off, int64_t log_off, int32_t size, int64_t tags_code, bool fill);

/* Entries from number `off` on that lie next to each other, *n of them (> 0); good until another entry of any queue is looked
 * at or put.  NULL: none (*n = 0), or their file cannot be mapped (*n = -errno; -ENOENT or MQ_EMISMATCH if it is not there as
 * it should be). */
const uint8_t *cqueue_entries(struct mqstore_queue *q, int64_t off, int64_t *n);
static inline void cqueue_read(const uint8_t *p, struct mqstore_entry *e)
{
	e->log_off = (int64_t)be64(p);
	e->size = (int32_t)be32(p + 8);
	e->tags_code = (int64_t)be64(p + 12);
}
/* Stands for nothing: before the first entry of a queue (log offset 0), or where the last record was damaged. */
static inline bool cqueue_void(const struct mqstore_entry *e) { return e->size == CQ_FILLER_SIZE; }
/* Where the record of an entry ends; a void entry has none.  Damaged entries hold any numbers: those that are none end nowhere. */
static inline int64_t cqueue_end(int64_t log_off, int32_t size)
{
	int64_t end;

	if (size == CQ_FILLER_SIZE)
		return log_off > 0 ? log_off + (log_off < INT64_MAX) : 0;
	return __builtin_add_overflow(log_off, (int64_t)size, &end) ? INT64_MAX : end;
}
static inline bool cqueue_valid(const uint8_t *p) { return (int64_t)be64(p) >= 0 && (int32_t)be32(p + 8) > 0; }

/* First readable entry number while the log begins at log_min. */
int64_t cqueue_min(struct mqstore_queue *q, int64_t log_min);
static inline int64_t cqueue_max(struct mqstore_queue *q) { return cqueue_ready(q) < 0 ? 0 : q->pos / CQ_ENTRY; }
/* First entry number in [lo, hi) whose log offset is >= log_off, else hi; -errno if files cannot be mapped. */
int64_t cqueue_find(struct mqstore_queue *q, int64_t lo, int64_t hi, int64_t log_off);
/* Bytes of its files. */
int64_t cqueue_bytes(const struct mqstore_queue *q);

/* Will putting entries [from, to) into the files make a file? */
bool cqueue_makes_file(const struct mqstore_queue *q, int64_t from, int64_t to);
/* Write what only buf holds. */
int cqueue_spill(struct mqstore_queue *q);
/* For the thread that flushes; touches only what never changes of q: put entries [from, to) at `p` into the files, which are made
 * if need be; make [from, to) durable, and the names of files and directories too if `name`.  MQ_EFULL, -errno. */
int cqueue_write(const struct mqstore_queue *q, int64_t from, int64_t to, const uint8_t *p);
int cqueue_sync(const struct mqstore_queue *q, int64_t from, int64_t to, bool name);

/* Forget entries whose record does not end at or before log_end. */
int cqueue_cut(struct mqstore_queue *q, int64_t log_end);
/* The record of entry `off` is damaged: nobody shall look for it. The entry becomes the same as the one behind it, so that the
 * peer's readers step over it too; the last one becomes void, for its number was given. */
int cqueue_skip(struct mqstore_queue *q, int64_t off);
/* Remove files whose last entry lies before log_min, never the last file, and at most max.  Returns how many (max: there may be more),
 * or -errno. */
int cqueue_trim(struct mqstore_queue *q, int64_t log_min, int max);
/* Forget everything: a queue that was never looked at. */
void cqueue_reset(struct mqstore_queue *q);
/* Remove all files and the directory. */
int cqueue_remove(const struct mqstore_queue *q);
/* Read-only: entries that the writer has put into the files since, as far as their records end before log_end. */
void cqueue_follow(struct mqstore_queue *q, int64_t log_end);

/* Directory of the queue, and its file that begins at byte `start`, into out[SEGMENT_PATH], which is returned; _in: of its files
 * below another directory than consumequeue. */
char *cqueue_dir(const struct mqstore_queue *q, char *out);
char *cqueue_dir_in(const char *root, const struct mqstore_queue *q, char *out);
char *cqueue_path_in(const char *root, const struct mqstore_queue *q, int64_t start, char *out);
char *cqueue_path(const struct mqstore_queue *q, int64_t start, char *out);
/* Show the file at `start` in q->map. */
int cqueue_map(struct mqstore_queue *q, int64_t start);
void cqueue_drop_buf(struct mqstore_queue *q);
void cqueue_free(struct mqstore_queue *q);

#endif
