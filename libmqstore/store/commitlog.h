/* commitlog.h: the log: room for the next record, bytes at an offset.
 *
 * Knows segments, the write position and the blank record that ends a segment; nothing of queues.
 *
 * New records gather in `stage` and go to the file in one write: a page that is first touched, and later found dirty, through a
 * map costs the kernel ten times as much as one that is written to.  Readers do not see the difference: commitlog_view() writes
 * out first what it is asked for.
 *
 * Promises:
 *   1. Between commitlog_claim() and the next one every byte of the claimed room, and 8 more for a blank, has its block on the
 *      disk: writing there cannot fail for want of space.
 *   2. A claim that is refused changes nothing that a reader can see.
 *   3. A segment's blank is written only when the segment behind it exists. */
#ifndef STORE_COMMITLOG_H
#define STORE_COMMITLOG_H

#include "segments.h"

enum { EXPECT_LINE = 64, EXPECT_MAX = 512 }; /* the processor itself goes on from there */

struct commitlog {
	struct segments run;
	struct segment *tail;   /* being written; NULL = none yet */
	int64_t max;            /* end of the log: where the next record goes */
	int64_t room;           /* bytes before this offset may be claimed: they have blocks, and place in the stage */
	uint8_t *stage;         /* the newest `staged` bytes, which are in no file yet */
	int64_t stage_cap, staged;
	int64_t padded;         /* pages before this offset are written whole, so that no write has to read first */
	int fd;                 /* of the tail, -1 = not open */
	int64_t flushed;        /* on the disk up to here */
	int64_t last_off;       /* start of the newest record, -1 = none */
	int64_t last_ms;        /* its store time, 0 = none */
};

/* The slow half of commitlog_claim(). */
int commitlog_room(struct commitlog *log, int64_t n, struct mq_error *err);

/* Room for n bytes that will be at log->max, all in one segment.  Returns 0, MQ_ETOOBIG, MQ_EFULL or -errno.  The bytes
 * go to commitlog_next() and count when the caller says commitlog_grow(). */
static inline int commitlog_claim(struct commitlog *log, int64_t n, struct mq_error *err)
{
	return __builtin_expect(log->max + n + 8 > log->room, 0) ? commitlog_room(log, n, err) : 0;
}

/* Where the next bytes of a claim go.  To be asked again after each commitlog_grow(): what was grown before may have been written out
 * meanwhile, because somebody looked at it. */
static inline uint8_t *commitlog_next(const struct commitlog *log)
{
	return log->stage + log->staged;
}

static inline void commitlog_grow(struct commitlog *log, int64_t n)
{
	log->max += n;
	log->staged += n;
}

/* A record of the last claim, wherever it is now. */
static inline const uint8_t *commitlog_newest(const struct commitlog *log, int64_t off)
{
	int64_t written = log->max - log->staged;

	return off >= written ? log->stage + (off - written) : log->tail->p + (off - log->tail->start);
}

/* What is staged goes to the file.  If the file cannot be written it goes through the map. */
void commitlog_write_out(struct commitlog *log);

/* Write out, and free everything. */
void commitlog_close(struct commitlog *log);

/* Room for n bytes as they are at log->max, all in one segment, which they may fill to its last byte; with no segment yet the one that
 * holds log->max is made.  Returns as commitlog_claim(); MQ_EMISMATCH: they would not end where the segment does. */
int commitlog_claim_raw(struct commitlog *log, int64_t n, uint8_t **p, struct mq_error *err);

/* Bytes from `off` to the end of its segment or of the log, *n of them (> 0); NULL if there are none or they cannot be mapped. */
const uint8_t *commitlog_view(struct commitlog *log, int64_t off, int64_t *n);

/* n bytes at `off` will be looked at soon: begin to bring them near, if that needs no look at tables. */
static inline void commitlog_expect(const struct commitlog *log, int64_t off, int64_t n)
{
	const struct segment *g = log->run.hint;

	if (!g || !g->p || off < g->start || off - g->start >= g->size)
		return;
	for (int64_t at = 0; at < n && at < EXPECT_MAX; at += EXPECT_LINE)
		__builtin_prefetch(g->p + (off - g->start) + at);
}

/* After recovery: the log ends at `end`.  What lies behind goes (segments that start there too, but not the one that begins at
 * `end`). */
int commitlog_cut(struct commitlog *log, int64_t end, struct mq_error *err);

/* Make the next segment when the one being written is half full, and reserve blocks ahead.  True if something was done. */
bool commitlog_tend(struct commitlog *log);

static inline int64_t commitlog_min(const struct commitlog *log)
{
	return log->run.n ? log->run.v[0]->start : log->max;
}

#endif
