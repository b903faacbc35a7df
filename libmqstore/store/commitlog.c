/* commitlog.c: the log as room and bytes.  What a record is, codec/message.c knows; who wants it, derive.c. */
#include "commitlog.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../codec/layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "store"

enum { PAGE = 4096, STAGE = 256 * 1024 };

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void set_room(struct commitlog *log)
{
	log->room = least(log->tail->start + log->tail->reserved, log->max - log->staged + log->stage_cap - PAGE);
}

static int reserve(struct commitlog *log, int64_t to, struct mq_error *err)
{
	struct segment *g = log->tail;
	int64_t rel = to - g->start;
	int rc = segment_reserve(g, log->run.dir, log->max - g->start, rel, rel - rel % log->run.step + log->run.step);

	if (rc < 0)
		return err_sys(err, rc, "reserve room in '%s/%020lld'", log->run.dir, (long long)g->start);
	return 0;
}

/* ---- Stage ----------------------------------------------------------------------------------------------------------- */

static void close_tail(struct commitlog *log)
{
	if (log->fd >= 0)
		sys.close(log->fd);
	log->fd = -1;
}

static int write_tail(struct commitlog *log, int64_t n, int64_t at)
{
	char path[SEGMENT_PATH];

	if (log->fd < 0)
		log->fd = sys.open(segment_path(log->run.dir, log->tail->start, path), O_WRONLY, 0);
	return log->fd < 0 ? log->fd : sys_write_all(log->fd, log->stage, (size_t)n, at);
}

void commitlog_write_out(struct commitlog *log)
{
	struct segment *g = log->tail;
	int64_t n = log->staged, at, pad = 0;
	int rc;

	if (n == 0)
		return;
	at = log->max - n - g->start;
	if (log->max > log->padded) {
		log->padded = least(g->start + (log->max - g->start + PAGE - 1) / PAGE * PAGE, g->start + g->reserved);
		pad = log->padded > log->max ? log->padded - log->max : 0;
		memset(log->stage + n, 0, (size_t)pad);
	}
	rc = write_tail(log, n + pad, at);
	if (rc < 0) {
		/* Its blocks are there: what the disk makes of them, the flush will say. */
		log_warn("cannot write, the map is used instead file=%s/%020lld reason=\"%s\"", log->run.dir, (long long)g->start,
			 mq_strerror(rc));
		memcpy(g->p + at, log->stage, (size_t)n);
	}
	log->staged = 0;
	set_room(log);
	/* The next claim gives a large stage back; the present one may not be done with it. */
	if (log->stage_cap > STAGE)
		log->room = log->max;
}

/* Place for n bytes and what may have to follow them: a blank, and zeros to the end of a page. */
static void stage_room(struct commitlog *log, int64_t n)
{
	int64_t need = n + BLANK_BYTES + PAGE;

	if (log->staged + need > log->stage_cap)
		commitlog_write_out(log);
	if (log->stage_cap > STAGE && need <= STAGE && log->staged == 0) {
		free(log->stage);
		log->stage = NULL;
		log->stage_cap = 0;
	}
	if (need > log->stage_cap) {
		log->stage_cap = need > STAGE ? need : STAGE;
		log->stage = mem_realloc(log->stage, (size_t)log->stage_cap);
	}
}

void commitlog_close(struct commitlog *log)
{
	commitlog_write_out(log);
	close_tail(log);
	free(log->stage);
	segments_close(&log->run);
	memset(log, 0, sizeof(*log));
	log->fd = -1;
}

/* ---- Room ------------------------------------------------------------------------------------------------------------ */

static int next_segment(struct commitlog *log, int64_t start, struct segment **next, struct mq_error *err)
{
	int rc = segments_add(&log->run, start, next);

	return rc < 0 ? err_sys(err, rc, "make '%s/%020lld'", log->run.dir, (long long)start) : 0;
}

static void write_in(struct commitlog *log, struct segment *next)
{
	/* Where is written, reading ahead would only fill the memory with zeros; behind, readers go on and on. */
	if (log->tail)
		segment_expect(log->tail->p, log->tail->size, false);
	segment_expect(next->p, next->size, true);
	close_tail(log);
	log->tail = next;
}

/* The record does not fit behind log->max: begin the next segment, then end this one with a blank. */
static int roll(struct commitlog *log, struct mq_error *err)
{
	int64_t start = log->tail ? log->tail->start + log->run.size : log->max;
	struct segment *old = log->tail, *next;
	int rc = 0;

	if (old && log->max + BLANK_BYTES > old->start + old->reserved)
		rc = reserve(log, log->max + BLANK_BYTES, err);
	if (rc < 0)
		return rc;
	rc = next_segment(log, start, &next, err);
	if (rc < 0)
		return rc;
	if (old) {
		uint8_t *p;

		stage_room(log, BLANK_BYTES);
		p = log->stage + log->staged;
		put_be32(p, (uint32_t)(old->start + old->size - log->max));
		put_be32(p + 4, RECORD_MAGIC_BLANK);
		commitlog_grow(log, BLANK_BYTES);
		commitlog_write_out(log);
		log->max = log->padded = start;
	}
	write_in(log, next);
	return 0;
}

int commitlog_room(struct commitlog *log, int64_t n, struct mq_error *err)
{
	int rc = 0;

	if (n + BLANK_BYTES > log->run.size)
		return err_set(err, MQ_ETOOBIG, "%lld bytes do not fit in one segment of %lld bytes (mappedFileSizeCommitLog)",
			       (long long)n, (long long)log->run.size);
	if (!log->tail || log->max + n + BLANK_BYTES > log->tail->start + log->run.size)
		rc = roll(log, err);
	if (rc == 0 && log->max + n + BLANK_BYTES > log->tail->start + log->tail->reserved)
		rc = reserve(log, log->max + n + BLANK_BYTES, err);
	if (rc < 0)
		return rc;
	stage_room(log, n);
	set_room(log);
	return 0;
}

int commitlog_claim_raw(struct commitlog *log, int64_t n, uint8_t **p, struct mq_error *err)
{
	struct segment *next;
	int rc = 0;

	if (!log->tail || log->max == log->tail->start + log->tail->size) {
		commitlog_write_out(log);
		rc = next_segment(log, log->max - log->max % log->run.size, &next, err);
		if (rc < 0)
			return rc;
		write_in(log, next);
		log->padded = log->max;
	}
	if (log->max + n > log->tail->start + log->tail->size)
		return err_set(err, MQ_EMISMATCH, "%lld bytes at %lld go beyond the end of a segment of %lld bytes "
			       "(mappedFileSizeCommitLog)", (long long)n, (long long)log->max, (long long)log->run.size);
	if (log->max + n > log->tail->start + log->tail->reserved)
		rc = reserve(log, log->max + n, err);
	if (rc < 0)
		return rc;
	stage_room(log, n);
	set_room(log);
	*p = log->stage + log->staged;
	return 0;
}

const uint8_t *commitlog_view(struct commitlog *log, int64_t off, int64_t *n)
{
	struct segment *g;
	const uint8_t *p;
	int64_t end;

	if (off < 0 || off >= log->max)
		return NULL;
	if (off >= log->max - log->staged)
		commitlog_write_out(log);
	g = segments_at(&log->run, off);
	p = g ? segments_bytes(&log->run, g) : NULL;
	if (!p)
		return NULL;
	end = g->start + g->size;
	*n = least(end, log->max - log->staged) - off;
	return p + (off - g->start);
}

int commitlog_cut(struct commitlog *log, int64_t end, struct mq_error *err)
{
	struct segment *g;
	int rc = segments_cut(&log->run, end);

	if (rc < 0)
		return err_sys(err, rc, "remove segments behind offset %lld in '%s'", (long long)end, log->run.dir);
	if (rc > 0)
		log_debug("empty segments removed count=%d from=%lld", rc, (long long)end);
	close_tail(log);
	log->max = log->flushed = log->padded = end;
	log->tail = NULL;
	log->room = log->staged = 0;
	g = segments_at(&log->run, end);
	if (!g)
		return 0;
	if (!segments_bytes(&log->run, g))
		return err_set(err, -5, "cannot map '%s/%020lld'", log->run.dir, (long long)g->start);
	log->tail = g;
	segment_expect(g->p, g->size, true);
	g->reserved = end - g->start;
	log->room = end;
	log->run.keep = end;
	return 0;
}

bool commitlog_tend(struct commitlog *log)
{
	struct segment *g = log->tail;
	int64_t end, wish;
	bool did = false;
	int rc;

	if (!g)
		return false;
	end = g->start + g->size;
	wish = log->max + log->run.step;
	if (g->start + g->reserved < least(wish, end)) {
		rc = reserve(log, least(wish, end), NULL);
		did = rc == 0;
	}
	if (!log->run.ahead && log->max - g->start >= g->size / 2) {
		rc = segments_make_ahead(&log->run, end);
		if (rc < 0 && rc != MQ_EFULL)
			log_warn("cannot make the next segment yet file=%s/%020lld reason=\"%s\"", log->run.dir, (long long)end,
				 mq_strerror(rc));
		did = did || rc == 0;
	}
	return did;
}
