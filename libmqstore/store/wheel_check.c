/* wheel_check.c: the file config/timercheck, 4096 bytes, of which these count:
 *
 *   0 i64 read ms | 8 i64 timer log flushed | 16 i64 queue offset | 24 i64 that of the master | 32 i64 state version |
 *   40 i64 stamp | 48 i64 counter
 * and, ours, which the peer leaves as it is:
 *   256 i32 mark | 260 i32 clean | 264 i64 read ms | 272 i64 master's offset | 280 i64 counter | 288 i64 log offset
 * Ours are good while the three that are there twice agree. */
#include "wheel_private.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { BYTES = 4096, OURS = 256, OURS_END = 296, MARK = 0x6d715477 };

void wheel_check_put(const struct wheel_check *c, uint8_t out[WHEEL_CHECK_BYTES])
{
	const int64_t v[] = { c->read_ms, c->flush_pos, c->queue_off, c->master_off, c->state_version, c->stamp_ms, c->counter };

	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
		put_be64(out + 8 * i, (uint64_t)v[i]);
}

void wheel_check_take(struct wheel_check *c, const uint8_t in[WHEEL_CHECK_BYTES])
{
	int64_t *const v[] = { &c->read_ms, &c->flush_pos, &c->queue_off, &c->master_off, &c->state_version, &c->stamp_ms, &c->counter };

	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		*v[i] = (int64_t)be64(in + 8 * i);
		if (*v[i] < 0)
			*v[i] = 0;
	}
}

int wheel_check_load(struct wheel_check *c, const char *path, bool *found, struct mq_error *err)
{
	size_t n = 0;
	char *text;
	int rc = sys_read_file(path, BYTES, &text, &n);
	const uint8_t *p;

	*c = (struct wheel_check){ .read_ms = 0 };
	*found = false;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(err, rc, "read '%s'", path);
	p = (const uint8_t *)text;
	if (n >= WHEEL_CHECK_BYTES) {
		wheel_check_take(c, p);
		*found = true;
	}
	if (n >= OURS_END && be32(p + OURS) == MARK && (int64_t)be64(p + 264) == c->read_ms &&
	    (int64_t)be64(p + 272) == c->master_off && (int64_t)be64(p + 280) == c->counter) {
		c->ours = true;
		c->clean = be32(p + 260) == 1;
		c->log_off = (int64_t)be64(p + 288);
	}
	free(text);
	return 0;
}

int wheel_check_save(const struct wheel_check *c, const char *path)
{
	uint8_t raw[BYTES] = { 0 };
	int fd = sys.open(path, O_RDWR | O_CREAT, 0644), rc;

	if (fd < 0)
		return fd;
	wheel_check_put(c, raw);
	put_be32(raw + OURS, MARK);
	put_be32(raw + 260, c->clean);
	put_be64(raw + 264, (uint64_t)c->read_ms);
	put_be64(raw + 272, (uint64_t)c->master_off);
	put_be64(raw + 280, (uint64_t)c->counter);
	put_be64(raw + 288, (uint64_t)c->log_off);
	rc = sys_write_all(fd, raw, BYTES, 0); /* all that counts lies in one sector */
	if (rc == 0)
		rc = sys.fdatasync(fd);
	sys.close(fd);
	return rc;
}
