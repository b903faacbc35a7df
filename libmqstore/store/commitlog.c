/* commitlog.c: the log as room and bytes.  What a record is, codec/message.c knows; who wants it, derive.c. */
#include "commitlog.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../codec/layout.h"

#define LOG_MODULE "store"

static int reserve(struct commitlog *log, int64_t to, struct mq_error *err)
{
	struct segment *g = log->tail;
	int64_t rel = to - g->start;
	int rc = segment_reserve(g, log->run.dir, log->max - g->start, rel, rel - rel % log->run.step + log->run.step);

	if (rc < 0)
		return err_sys(err, rc, "reserve room in '%s/%020lld'", log->run.dir, (long long)g->start);
	log->room = g->start + g->reserved;
	return 0;
}

/* The record does not fit behind log->max: begin the next segment, then end this one with a blank. */
static int roll(struct commitlog *log, struct mq_error *err)
{
	int64_t start = log->tail ? log->tail->start + log->run.size : log->max;
	struct segment *old = log->tail, *next;
	int rc = 0;

	if (old && log->max + BLANK_BYTES > log->room)
		rc = reserve(log, log->max + BLANK_BYTES, err);
	if (rc < 0)
		return rc;
	rc = segments_add(&log->run, start, &next);
	if (rc < 0)
		return err_sys(err, rc, "make '%s/%020lld'", log->run.dir, (long long)start);
	if (old) {
		uint8_t *p = old->p + (log->max - old->start);

		put_be32(p, (uint32_t)(old->start + old->size - log->max));
		put_be32(p + 4, RECORD_MAGIC_BLANK);
		log->max = start;
	}
	/* Where is written, reading ahead would only fill the memory with zeros; behind, readers go on and on. */
	if (old)
		segment_expect(old->p, old->size, false);
	segment_expect(next->p, next->size, true);
	log->tail = next;
	log->room = start + next->reserved;
	return 0;
}

int commitlog_room(struct commitlog *log, int64_t n, struct mq_error *err)
{
	int rc;

	if (n + BLANK_BYTES > log->run.size)
		return err_set(err, MQ_ETOOBIG, "%lld bytes do not fit in one segment of %lld bytes (mappedFileSizeCommitLog)",
			       (long long)n, (long long)log->run.size);
	if (!log->tail || log->max + n + BLANK_BYTES > log->tail->start + log->run.size) {
		rc = roll(log, err);
		if (rc < 0)
			return rc;
	}
	if (log->max + n + BLANK_BYTES > log->room)
		return reserve(log, log->max + n + BLANK_BYTES, err);
	return 0;
}

const uint8_t *commitlog_view(struct commitlog *log, int64_t off, int64_t *n)
{
	struct segment *g;
	const uint8_t *p;
	int64_t end;

	if (off < 0 || off >= log->max)
		return NULL;
	g = segments_at(&log->run, off);
	p = g ? segments_bytes(&log->run, g) : NULL;
	if (!p)
		return NULL;
	end = g->start + g->size;
	*n = (end < log->max ? end : log->max) - off;
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
	log->max = log->flushed = end;
	log->tail = NULL;
	log->room = 0;
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
	if (log->room < end && log->room < (wish < end ? wish : end)) {
		rc = reserve(log, wish < end ? wish : end, NULL);
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
