/* fuzz_message: covers codec/message.c (record versions 1 and 2), property.c, batch.c, id.c and base/zip.c.  The first byte
 * chooses: a record, a batch, properties, properties as a set of names.  Seeds: records of tests/golden/store, small ones. */
#include "lab.h"
#include "base/byte.h"
#include "base/crc.h"
#include "codec/batch.h"
#include "codec/layout.h"
#include "codec/message.h"
#include "codec/property.h"

#include <stdlib.h>
#include <string.h>

/* A record whose checksum was changed with its body: put it right, so that what lies behind the check is met. */
static void mend(char *p, size_t n)
{
	struct mq_message m;

	if (mq_message_decode(p, n, false, &m) > 0)
		put_be32(p + RECORD_AT_CRC, crc32_peer(m.body.p, m.body.n));
}

static void inflate(const struct mq_message *m)
{
	void *scratch = NULL;
	size_t cap = 0;
	struct mq_str plain;

	if (mq_message_body(m, 1 << 20, &scratch, &cap, &plain) == 0) {
		LAB_CHECK(plain.n <= 1 << 20 || !(m->sys_flag & MQ_SYS_COMPRESSED));
		LAB_CHECK(cap <= 4 << 20);
	}
	free(scratch);
}

/* What the decoder took is what the encoder writes. */
static void again(const struct mq_message *m, const char *p)
{
	struct message_parts parts = {
		.topic = m->topic, .body = m->body, .props = { m->props }, .queue_id = m->queue_id, .flag = m->flag,
		.sys_flag = m->sys_flag, .reconsume_times = m->reconsume_times, .queue_off = m->queue_off, .log_off = m->log_off,
		.born_ms = m->born_ms, .store_ms = m->store_ms, .prepared_off = m->prepared_off, .born_host = m->born_host,
		.store_host = m->store_host,
	};
	int64_t n = message_size(&parts);
	struct mq_message back;
	char *copy;

	if (n < 0)
		return;
	copy = malloc((size_t)n);
	message_encode(&parts, copy);
	LAB_CHECK(mq_message_decode(copy, (size_t)n, true, &back) == n);
	LAB_CHECK(back.topic.n == m->topic.n && back.body.n == m->body.n && back.props.n == m->props.n);
	LAB_CHECK(back.queue_off == m->queue_off && back.sys_flag == m->sys_flag && back.born_host.port == m->born_host.port);
	free(copy);
}

static void record(char *p, size_t n)
{
	struct mq_message m, peeked;
	struct mq_host host;
	char id[MQ_ID_TEXT], text[MQ_HOST_TEXT];
	bool blank = false;
	int32_t size, peek;
	int64_t off;

	mend(p, n);
	size = mq_message_decode(p, n, true, &m);
	peek = message_peek(p, n, &peeked, &blank);
	LAB_CHECK(size <= 0 || (!blank && peek == size));
	if (size <= 0)
		return;
	LAB_CHECK((size_t)size <= n && size >= RECORD_MIN);
	LAB_CHECK(m.topic.n <= 255 || be32(p + 4) == RECORD_MAGIC_V2);
	LAB_CHECK(message_store_ms(p) == m.store_ms && message_queue_off(p) == m.queue_off);
	mq_host_text(&m.born_host, text);
	LAB_CHECK(mq_offset_id_parse((struct mq_str){ id, mq_offset_id(&m.store_host, m.log_off, id) }, &host, &off) == 0);
	LAB_CHECK(off == m.log_off);
	inflate(&m);
	again(&m, p);
}

static void batch(struct mq_str s)
{
	struct buf out = { 0 };
	struct batch_item item;
	size_t pos = 0;

	while (batch_next(s, &pos, &item) == 1)
		batch_put(&out, &item);
	LAB_CHECK(out.n <= s.n);
	buf_free(&out);
}

static void properties(struct mq_str s)
{
	static const char *const drop[] = { "KEYS", "DELAY", NULL };
	struct buf put = { 0 }, without = { 0 };
	struct mq_str name, value;
	struct property_scan scan;
	size_t pos = 0;

	while (mq_prop_next(s, &pos, &name, &value))
		property_put(&put, name, value);
	property_scan(s, &scan);
	property_copy_without(&without, s, drop);
	LAB_CHECK(without.n <= s.n + 1);
	LAB_CHECK(!mq_prop_get(buf_view(&without), "KEYS").p);
	property_scan(buf_view(&put), &scan);
	buf_free(&put);
	buf_free(&without);
}

/* Names up to a NUL, separated by newlines; then properties. */
static void set(struct mq_str s)
{
	const char *nul = s.n ? memchr(s.p, 0, s.n) : NULL;
	size_t first = nul ? (size_t)(nul - s.p) : s.n;
	struct mq_str props = { s.p + first + !!nul, s.n - first - !!nul }, value[PROPERTY_SET_MAX];
	struct property_set *all = calloc(1, sizeof(*all));

	for (size_t at = 0; at < first;) {
		const char *end = memchr(s.p + at, '\n', first - at);
		size_t n = end ? (size_t)(end - s.p) - at : first - at;
		int i = property_set_add(all, (struct mq_str){ s.p + at, n });

		LAB_CHECK(i >= -1 && i < PROPERTY_SET_MAX);
		at += n + 1;
	}
	property_set_find(all, props, value);
	for (uint32_t i = 0; i < all->n; i++) {
		char *name = strndup(all->name[i].p, all->name[i].n);
		struct mq_str alone = mq_prop_get(props, name);

		LAB_CHECK(strlen(name) != all->name[i].n || (alone.n == value[i].n && !alone.p == !value[i].p));
		free(name);
	}
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy;
	struct mq_str rest;

	if (n < 1)
		return 0;
	copy = lab_copy(p + 1, n - 1);
	rest = (struct mq_str){ copy, n - 1 };
	switch (p[0] % 4) {
	case 0: record(copy, n - 1); break;
	case 1: batch(rest); break;
	case 2: properties(rest); break;
	case 3: set(rest); break;
	}
	free(copy);
	return 0;
}
