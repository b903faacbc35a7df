/* checkpoint.c: the file `checkpoint`, 4096 bytes, of which seven numbers count.
 *
 *   0 i64 log ms | 8 i64 queue ms | 16 i64 index ms | 24 i64 master flushed offset | 32 i64 confirm offset |
 *   40 i64 whole offset (ours) | 48 i64 queues (ours) | zeros
 *
 * The seven lie in one disk sector and are written by one call, so a power cut leaves all old or all new. */
#include "checkpoint.h"
#include "../base/err.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include <errno.h>
#include <fcntl.h>

enum { GRACE_MS = 3000 };

int checkpoint_open(struct checkpoint *c, const char *path, bool read_only, struct mq_error *err)
{
	uint8_t raw[CHECKPOINT_BYTES] = { 0 };
	*c = (struct checkpoint){ .fd = -1 };
	int fd = sys.open(path, read_only ? O_RDONLY : O_RDWR | O_CREAT, 0644);
	if (fd == -ENOENT && read_only)
		return 0;
	if (fd < 0)
		return err_sys(err, fd, "open checkpoint '%s'", path);
	size_t have = 0;
	while (have < sizeof(raw)) {
		ssize_t got = sys.pread(fd, raw + have, sizeof(raw) - have, (off_t)have);
		if (got < 0) {
			sys.close(fd);
			return err_sys(err, (int)got, "read checkpoint '%s'", path);
		}
		if (got == 0)
			break;
		have += (size_t)got;
	}
	bool whole = have >= CHECKPOINT_CONFIRM + 8;
	if (!whole)
		memset(raw, 0, sizeof(raw));
	c->log_ms = (int64_t)be64(raw + CHECKPOINT_LOG_MS);
	c->queue_ms = (int64_t)be64(raw + CHECKPOINT_QUEUE_MS);
	c->index_ms = (int64_t)be64(raw + CHECKPOINT_INDEX_MS);
	c->master_flushed_off = (int64_t)be64(raw + CHECKPOINT_MASTER_FLUSHED);
	c->confirm_off = (int64_t)be64(raw + CHECKPOINT_CONFIRM);
	c->whole_off = (int64_t)be64(raw + CHECKPOINT_WHOLE);
	c->queues = (int64_t)be64(raw + CHECKPOINT_QUEUES);
	if (read_only)
		sys.close(fd);
	else
		c->fd = fd;
	/* So that a store in which nothing is written has a whole one too.  If it fails now, the first flush meets that again. */
	if (!read_only && !whole)
		checkpoint_save(c, NULL);
	return 0;
}

void checkpoint_close(struct checkpoint *c)
{
	if (c->fd >= 0)
		sys.close(c->fd);
	c->fd = -1;
}

int checkpoint_save(const struct checkpoint *c, struct mq_error *err)
{
	uint8_t raw[CHECKPOINT_BYTES] = { 0 };
	put_be64(raw + CHECKPOINT_LOG_MS, (uint64_t)c->log_ms);
	put_be64(raw + CHECKPOINT_QUEUE_MS, (uint64_t)c->queue_ms);
	put_be64(raw + CHECKPOINT_INDEX_MS, (uint64_t)c->index_ms);
	put_be64(raw + CHECKPOINT_MASTER_FLUSHED, (uint64_t)c->master_flushed_off);
	put_be64(raw + CHECKPOINT_CONFIRM, (uint64_t)c->confirm_off);
	put_be64(raw + CHECKPOINT_WHOLE, (uint64_t)c->whole_off);
	put_be64(raw + CHECKPOINT_QUEUES, (uint64_t)c->queues);
	int rc = sys_write_all(c->fd, raw, sizeof(raw), 0);
	if (rc == 0)
		rc = sys.fdatasync(c->fd);
	return rc < 0 ? err_sys(err, rc, "write checkpoint") : 0;
}

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t checkpoint_min_ms(const struct checkpoint *c)
{
	int64_t ms = min_of(c->log_ms, c->queue_ms);
	return ms > GRACE_MS ? ms - GRACE_MS : 0;
}

int64_t checkpoint_min_index_ms(const struct checkpoint *c)
{
	return min_of(checkpoint_min_ms(c), c->index_ms);
}
