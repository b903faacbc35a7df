/* template.c: a request is made once, by the codec; afterwards it is copied and the digits that differ are written over. */
#include "bench.h"
#include <base/clock.h>
#include <base/mem.h>
#include <codec/batch.h>
#include <codec/id.h>
#include <codec/property.h>
#include <codec/request.h>
#include <stdlib.h>
#include <string.h>

enum { OPAQUE_DIGITS = 10, BORN_DIGITS = 13, ID_HEX = 32, ID_VARIES = 8 };
/* Stands for the time until it is found in the frame; thirteen digits, as today's times have. */
static const int64_t born_mark = 1234567890123;

static size_t find_in(const struct buf *b, size_t from, const char *what, size_t n)
{
	const char *at = memmem(b->p + from, b->n - from, what, n);

	if (!at)
		cli_die(CLI_SYSTEM, "the frame does not hold what was put into it");
	return (size_t)(at - b->p);
}

/* As the Java client makes them: an id of the client, and WAIT. */
static void properties(struct buf *props, const char *id)
{
	property_put(props, MQ_STR(PROP_UNIQ_KEY), (struct mq_str){ id, ID_HEX });
	property_put(props, MQ_STR(PROP_WAIT), MQ_STR("true"));
}

static void put_body(struct buf *out, const struct bench *b, const char *id)
{
	struct buf body = { 0 }, props = { 0 };

	for (int i = 0; i < b->o.size; i++)
		buf_char(&body, (char)('a' + i % 26));
	if (b->o.mode == BENCH_BATCH) {
		struct batch_item item = { .body = buf_view(&body) };

		properties(&props, id);
		item.props = buf_view(&props);
		for (int i = 0; i < b->o.batch; i++)
			batch_put(out, &item);
	} else {
		buf_str(out, buf_view(&body));
	}
	buf_free(&body);
	buf_free(&props);
}

void template_send(struct template *t, const struct bench *b, int queue)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	bool batch = b->o.mode == BENCH_BATCH;
	struct send_header h = { 0 };
	struct buf props = { 0 };
	struct id_maker maker;
	struct frame_out o;
	char id[ID_HEX + 1], opaque[OPAQUE_DIGITS], born[BORN_DIGITS + 1];
	size_t at = 0;

	id_maker_init(&maker, loopback);
	id_make(&maker, clock_now_ms(), id);
	properties(&props, id);
	h.producerGroup = (struct mq_str){ b->o.group, strlen(b->o.group) };
	h.topic = (struct mq_str){ b->o.topic, strlen(b->o.topic) };
	h.defaultTopic = MQ_STR("TBW102");
	h.defaultTopicQueueNums = 4;
	h.queueId = queue;
	h.bornTimestamp = born_mark;
	h.properties = buf_view(&props);
	h.batch = batch;
	h.bname = (struct mq_str){ b->broker_name, strlen(b->broker_name) };
	HEADER_SET(send_header, &h, reconsumeTimes);
	HEADER_SET(send_header, &h, unitMode);
	HEADER_SET(send_header, &h, batch);
	*t = (struct template){ 0 };
	frame_request(&o, &t->frame, FRAME_JSON, batch ? REQ_SEND_BATCH_MESSAGE : REQ_SEND_MESSAGE_V2, BENCH_OPAQUE, 0);
	header_encode(&send_header_desc, &h, true, &o);
	frame_body(&o);
	put_body(&t->frame, b, id);
	frame_end(&o);

	template_opaque(0, opaque);
	snprintf(born, sizeof born, "%lld", (long long)born_mark);
	t->opaque_at = find_in(&t->frame, 0, opaque, OPAQUE_DIGITS);
	t->born_at = find_in(&t->frame, 0, born, BORN_DIGITS);
	t->ids = batch ? (size_t)b->o.batch + 1 : 1;
	t->id_at = mem_alloc(t->ids * sizeof *t->id_at);
	for (size_t i = 0; i < t->ids; i++) {
		at = find_in(&t->frame, at, id, ID_HEX) + ID_HEX;
		t->id_at[i] = at - ID_VARIES;
	}
	buf_free(&props);
}

void template_free(struct template *t)
{
	buf_free(&t->frame);
	free(t->id_at);
}

void template_opaque(int slot, char out[10])
{
	int v = BENCH_OPAQUE + slot;

	for (int i = OPAQUE_DIGITS; i-- > 0; v /= 10)
		out[i] = (char)('0' + v % 10);
}

void template_put(const struct template *t, struct buf *out, const char opaque[10], int64_t born_ms, uint32_t *ids)
{
	static int64_t last_ms;
	static char born[BORN_DIGITS];
	char *p = buf_room(out, t->frame.n);

	memcpy(p, t->frame.p, t->frame.n);
	memcpy(p + t->opaque_at, opaque, OPAQUE_DIGITS);
	if (born_ms != last_ms) {
		int64_t v = last_ms = born_ms;

		for (int i = BORN_DIGITS; i-- > 0; v /= 10)
			born[i] = (char)('0' + v % 10);
	}
	memcpy(p + t->born_at, born, BORN_DIGITS);
	for (size_t i = 0; i < t->ids; i++) {
		uint32_t v = (*ids)++;
		char *id = p + t->id_at[i];

		for (int k = ID_VARIES; k-- > 0; v >>= 4)
			id[k] = "0123456789ABCDEF"[v & 15];
	}
	out->n += t->frame.n;
}
