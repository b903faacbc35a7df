/* store_kit.c: a store in small sizes, and the damage that a crash or an operator leaves. */
#include "store_kit.h"

#include "base/buf.h"
#include "base/crc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct mqstore_opt kit_opt(const char *dir)
{
	struct mqstore_opt o;

	mqstore_defaults(&o);
	o.dir = dir;
	o.log_segment_bytes = KIT_SEGMENT;
	o.queue_segment_bytes = KIT_QUEUE_FILE;
	o.index_slots = 500;
	o.index_entries = 400;
	/* The disk of the machine that runs the tests may be rather full. */
	o.min_free_bytes = 1;
	return o;
}

struct mqstore *kit_open_opt(const struct mqstore_opt *opt)
{
	struct mq_error err = { 0 };
	struct mqstore *s;
	int rc = mqstore_open(&s, opt, &err);

	if (rc < 0)
		fail_msg("open '%s': %d %s", opt->dir, rc, err.text);
	return s;
}

struct mqstore *kit_open(const char *dir)
{
	struct mqstore_opt o = kit_opt(dir);

	return kit_open_opt(&o);
}

void kit_close(struct mqstore *s)
{
	struct mq_error err = { 0 };
	int rc = mqstore_close(s, &err);

	if (rc < 0)
		fail_msg("close: %d %s", rc, err.text);
}

void kit_die(struct mqstore *s)
{
	enum log_level was = log_max;

	log_max = -1;
	/* What was written through a map is in the files already; every call from here on fails. */
	fault_set(1, EIO, FAULT_CRASH);
	mqstore_close(s, NULL);
	fault_off();
	log_max = was;
}

struct mqstore_record kit_record(struct mqstore_queue *q, const char *body)
{
	static const struct mq_host host = { { 127, 0, 0, 1 }, 4, 10911 };

	return (struct mqstore_record){ .queue = q, .body = str_of(body), .born_ms = 1, .born_host = host, .store_host = host };
}

struct mqstore_queue *kit_queue(struct mqstore *s, const char *topic, int id)
{
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, true);

	assert_non_null(q);
	return q;
}

struct mqstore_place kit_append(struct mqstore *s, const char *topic, int id, const char *body)
{
	struct mqstore_record r = kit_record(kit_queue(s, topic, id), body);
	struct mqstore_place place;
	struct mq_error err = { 0 };
	int rc = mqstore_append(s, &r, 1, &place, &err);

	if (rc < 0)
		fail_msg("append '%s': %d %s", body, rc, err.text);
	return place;
}

void kit_fill(struct mqstore *s, const char *topic, int id, const char *prefix, int n, size_t size)
{
	struct buf b = { 0 };

	for (int i = 0; i < n; i++) {
		b.n = 0;
		buf_printf(&b, "%s%d.", prefix, i);
		while (b.n < size)
			buf_char(&b, '.');
		buf_char(&b, '\0');
		kit_append(s, topic, id, b.p);
	}
	buf_free(&b);
}

const char *kit_body(struct mqstore *s, const char *topic, int id, int64_t off)
{
	static char ring[8][256];
	static int next;
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, false);
	struct mqstore_get_opt o = { .max_messages = 1, .max_bytes = 1 << 20 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	char *out = ring[next++ % 8];
	struct mq_message m;

	strcpy(out, "-");
	assert_int_equal(mqstore_get(s, q, off, &o, res), 0);
	if (res->status == MQSTORE_FOUND && mq_message_decode(res->record[0].p, res->record[0].n, true, &m) > 0 && m.queue_off == off) {
		size_t n = 0;

		while (n < m.body.n && n < 255 && m.body.p[n] != '.')
			n++;
		memcpy(out, m.body.p, n);
		out[n] = '\0';
	}
	free(res);
	return out;
}

int kit_count(struct mqstore *s, const char *topic, int id, int64_t off, int *skipped)
{
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, false);
	struct mqstore_get_opt o = { .max_messages = 32, .max_bytes = 1 << 20 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	int n = 0, led = 0;

	for (int round = 0; round < 100000; round++) {
		int64_t was = off;

		assert_int_equal(mqstore_get(s, q, off, &o, res), 0);
		if (res->status == MQSTORE_OFFSET_OVERFLOW_ONE || res->status == MQSTORE_NO_MESSAGE_IN_QUEUE ||
		    res->status == MQSTORE_NO_MATCHED_LOGIC_QUEUE)
			break;
		assert_true(res->next_off > was);
		for (int i = 0; i < res->n; i++) {
			struct mq_message m;

			assert_true(mq_message_decode(res->record[i].p, res->record[i].n, true, &m) > 0);
			assert_true(m.queue_off >= was && m.queue_off < res->next_off);
		}
		n += res->n;
		led += (int)(res->next_off - was) - res->n;
		off = res->next_off;
	}
	if (skipped)
		*skipped = led;
	free(res);
	return n;
}

int64_t kit_min(struct mqstore *s, const char *topic, int id)
{
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, false);

	return q ? mqstore_queue_min(q) : -1;
}

int64_t kit_max(struct mqstore *s, const char *topic, int id)
{
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, false);

	return q ? mqstore_queue_max(q) : -1;
}

int64_t kit_log_off(struct mqstore *s, const char *topic, int id, int64_t off)
{
	struct mqstore_entry e;

	assert_int_equal(mqstore_entry(kit_queue(s, topic, id), off, &e), 0);
	return e.log_off;
}

struct check {
	struct mqstore *s;
	int64_t entries;
};

static int check_queue(void *arg, struct mqstore_queue *q)
{
	struct check *c = arg;
	int64_t min = mqstore_queue_min(q), max = mqstore_queue_max(q);
	struct mq_str topic = mqstore_queue_topic(q);

	assert_true(0 <= min && min <= max);
	for (int64_t i = min; i < max; i++) {
		struct mqstore_entry e;
		struct mq_str record;
		struct mq_message m;

		assert_int_equal(mqstore_entry(q, i, &e), 0);
		assert_int_equal(mqstore_at(c->s, e.log_off, &record), 0);
		assert_int_equal(record.n, e.size);
		assert_true(mq_message_decode(record.p, record.n, true, &m) > 0);
		assert_int_equal(m.queue_off, i);
		assert_int_equal(m.queue_id, mqstore_queue_id(q));
		assert_true(str_eq(m.topic, topic));
		c->entries++;
	}
	return 0;
}

static int count_record(void *arg, int64_t log_off, struct mq_str record)
{
	++*(int64_t *)arg;
	return 0;
}

void kit_check(struct mqstore *s)
{
	struct check c = { s, 0 };
	int64_t records = 0;

	assert_int_equal(mqstore_each_queue(s, check_queue, &c), 0);
	assert_int_equal(mqstore_walk(s, 0, count_record, &records, NULL), 0);
	assert_int_equal(c.entries, records);
}

/* ---- Files ----------------------------------------------------------------------------------------------------------- */

char *kit_path(const char *fmt, ...)
{
	static char ring[16][1024];
	static unsigned next;
	char *p = ring[next++ % 16];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p, sizeof(ring[0]), fmt, ap);
	va_end(ap);
	return p;
}

void kit_copy(const char *from, const char *to)
{
	if (system(kit_path("cp -r --sparse=always '%s' '%s'", from, to)) != 0)
		fail_msg("copy '%s' to '%s'", from, to);
}

static int open_rw(const char *path)
{
	int fd = sys_real.open(path, O_RDWR, 0);

	if (fd < 0)
		fail_msg("open '%s': %s", path, mq_strerror(fd));
	return fd;
}

void kit_overwrite(const char *path, int64_t off, const void *p, size_t n)
{
	int fd = open_rw(path);

	assert_int_equal(sys_real.pwrite(fd, p, n, off), (ssize_t)n);
	sys_real.close(fd);
}

void kit_zero(const char *path, int64_t off, size_t n)
{
	char *p = mem_alloc(n);

	kit_overwrite(path, off, p, n);
	free(p);
}

void kit_flip(const char *path, int64_t off)
{
	int fd = open_rw(path);
	char c;

	assert_int_equal(sys_real.pread(fd, &c, 1, off), 1);
	c ^= 0x10;
	assert_int_equal(sys_real.pwrite(fd, &c, 1, off), 1);
	sys_real.close(fd);
}

void kit_truncate(const char *path, int64_t n)
{
	int fd = open_rw(path);

	assert_int_equal(sys_real.ftruncate(fd, n), 0);
	sys_real.close(fd);
}

void kit_touch(const char *path)
{
	int fd = sys_real.open(path, O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	sys_real.close(fd);
}

void kit_remove(const char *path)
{
	assert_int_equal(sys_remove_tree(path), 0);
}

bool kit_exists(const char *path)
{
	struct stat st;

	return sys_real.stat(path, &st) == 0;
}

int64_t kit_size(const char *path)
{
	struct stat st;

	return sys_real.stat(path, &st) == 0 ? st.st_size : -1;
}

static uint32_t sum_into(const char *path, uint32_t crc)
{
	char **names, *p;
	size_t n;

	if (sys_list(path, &names, &n) == 0) {
		for (size_t i = 0; i < n; i++) {
			char *kid = mem_printf("%s/%s", path, names[i]);

			crc = crc32_more(crc, names[i], strlen(names[i]) + 1);
			crc = sum_into(kid, crc);
			free(kid);
		}
		free(names);
		return crc;
	}
	assert_int_equal(sys_read_file(path, SIZE_MAX / 2, &p, &n), 0);
	crc = crc32_more(crc, p, n);
	free(p);
	return crc;
}

uint64_t kit_sum(const char *dir)
{
	return sum_into(dir, 0);
}

/* ---- Log ------------------------------------------------------------------------------------------------------------- */

static struct buf lines;

static void keep_line(void *arg, enum log_level l, const char *line)
{
	buf_cstr(&lines, line);
	buf_char(&lines, '\n');
}

void kit_log_start(void)
{
	lines.n = 0;
	log_to(keep_line, NULL);
}

int kit_logged(const char *text)
{
	const char *p = lines.p;
	int n = 0;

	buf_char(&lines, '\0');
	lines.n--;
	while (lines.n && (p = strstr(p, text))) {
		n++;
		p += strlen(text);
	}
	return n;
}
