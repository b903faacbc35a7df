/* replica_cut.c: taking back what a follower has and its master has not.
 *
 * 1. What goes is saved, and on the disk, before anything else happens.
 * 2. The checkpoint no longer speaks of what goes, so that recovery after a crash from here on looks for itself.
 * 3. Queues, log, index, in this order: queues that list too little are mended by recovery, as is an index that knows too much. */
#include "replica.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../codec/message.h"
#include "recover.h"
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#define LOG_MODULE "replica"

/* Bytes [from, to) of a segment at their place in a file of its size: what is before reads as zeros. */
static int save_part(struct mqstore *s, struct segment *g, int64_t from, int64_t to, const char *dir, struct mq_error *err)
{
	const uint8_t *p = segments_bytes(&s->log.run, g);
	char path[SEGMENT_PATH];
	int fd, rc;

	segment_path(dir, g->start, path);
	if (!p)
		return err_set(err, s->log.run.map_rc, "read '%s/%020" PRId64 "'", s->log_dir, g->start);
	fd = sys.open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return err_sys(err, fd, "make '%s'", path);
	rc = sys.ftruncate(fd, g->size);
	if (rc == 0)
		rc = sys_write_all(fd, p + (from - g->start), (size_t)(to - from), from - g->start);
	if (rc == 0)
		rc = sys.fsync(fd);
	sys.close(fd);
	return rc < 0 ? err_sys(err, rc, "write '%s'", path) : 0;
}

/* A whole segment keeps its blocks under a second name; a copy where that cannot be. */
static int save_whole(struct mqstore *s, struct segment *g, int64_t to, const char *dir, struct mq_error *err)
{
	char from[SEGMENT_PATH], path[SEGMENT_PATH];
	int rc = sys.link(segment_path(s->log_dir, g->start, from), segment_path(dir, g->start, path));

	if (rc == 0)
		rc = segment_file_sync(path, true);
	else
		return save_part(s, g, g->start, to, dir, err);
	return rc < 0 ? err_sys(err, rc, "flush '%s'", path) : 0;
}

static int save(struct mqstore *s, int64_t end, const char *save_dir, int64_t *saved, struct mq_error *err)
{
	char *dir = mem_printf("%s/commitlog", save_dir);
	struct segments *run = &s->log.run;
	int rc = sys_mkdir_all(dir);

	*saved = 0;
	if (rc < 0)
		err_sys(err, rc, "make directory '%s'", dir);
	for (size_t i = 0; i < run->n && rc >= 0; i++) {
		struct segment *g = run->v[i];
		int64_t to = g->start + g->size < s->log.max ? g->start + g->size : s->log.max;
		int64_t from = end > g->start ? end : g->start;

		if (from >= to)
			continue;
		rc = from == g->start ? save_whole(s, g, to, dir, err) : save_part(s, g, from, to, dir, err);
		*saved += to - from;
	}
	if (rc >= 0) {
		rc = sys_sync_dir(dir);
		if (rc >= 0)
			rc = sys_sync_dir(save_dir);
		if (rc < 0)
			err_sys(err, rc, "flush directory '%s'", dir);
	}
	free(dir);
	return rc < 0 ? rc : 0;
}

static int64_t at_most(int64_t v, int64_t most)
{
	return v < most ? v : most;
}

static int forget_in_checkpoint(struct mqstore *s, int64_t last_ms, struct mq_error *err)
{
	struct checkpoint *c = &s->check;

	c->log_ms = at_most(c->log_ms, last_ms);
	c->queue_ms = at_most(c->queue_ms, last_ms);
	c->index_ms = at_most(c->index_ms, last_ms);
	c->confirm_off = c->whole_off = 0;
	s->pass_target = -1;
	return checkpoint_save(c, err);
}

/* Zeros behind the end, where old records would look like new ones to recovery. */
static void wipe(struct mqstore *s, int64_t end)
{
	struct segment *g = segments_at(&s->log.run, end);
	int64_t to;

	if (!g || end == g->start || !segments_bytes(&s->log.run, g))
		return;
	to = at_most(g->start + g->size, s->log.max);
	if (to > end)
		memset(g->p + (end - g->start), 0, (size_t)(to - end));
}

int replica_cut(struct mqstore *s, int64_t end, int64_t last, const char *save_dir, int64_t *saved, struct mq_error *err)
{
	struct mq_message m = { .store_ms = 0 };
	int rc;

	assert(!s->job && s->follower);
	commitlog_write_out(&s->log);
	if (end >= 0 && last >= 0) {
		struct mq_str record;

		if (mqstore_at(s, last, &record) < 0 || mq_message_decode(record.p, record.n, false, &m) <= 0)
			return err_set(err, MQ_ECORRUPT, "no record begins at %lld", (long long)last);
	}
	rc = save(s, end, save_dir, saved, err);
	if (rc == 0)
		rc = forget_in_checkpoint(s, m.store_ms, err);
	if (rc < 0)
		return rc;
	rc = recover_cut_queues(s, end);
	if (rc < 0)
		return err_sys(err, rc, "cut queues in '%s'", s->queue_dir);
	segments_drop_ahead(&s->log.run);
	rc = segments_cut(&s->log.run, end - 1); /* also the one that begins there: its blocks are the saved one's */
	if (rc < 0)
		return err_sys(err, rc, "remove segments behind offset %" PRId64 " in '%s'", end, s->log_dir);
	wipe(s, end);
	rc = commitlog_cut(&s->log, end, err);
	if (rc < 0)
		return rc;
	if (end < 0)
		s->log.max = s->log.flushed = s->log.padded = 0;
	s->log.last_off = end < 0 ? -1 : last;
	s->log.last_ms = m.store_ms;
	s->derived = s->log.max;
	s->stuck = 0;
	s->trimmed_min = commitlog_min(&s->log);
	if (s->index)
		rc = index_log(s->index, commitlog_min(&s->log), s->log.max, err);
	return rc;
}
