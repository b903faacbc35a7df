/* order_table.c: batches of messages that groups have in hand, in order. */
#include "order_table.h"
#include "broker.h"
#include "group_table.h"
#include "offset_table.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/receipt.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "order"

static struct mq_str topic_of(const struct orders *o) { return (struct mq_str){ o->name, o->topic_n }; }
static struct mq_str group_of(const struct orders *o)
{
	return (struct mq_str){ o->name + o->topic_n + 1, o->name_n - o->topic_n - 1 };
}

static struct orders *find(struct order_table *t, struct mq_str topic, struct mq_str group, bool make)
{
	char key[RECEIPT_TOPIC_MAX + 1 + MQ_GROUP_MAX];
	size_t n = topic.n + 1 + group.n;
	struct orders *o;

	if (n > sizeof key)
		return NULL;
	memcpy(key, topic.p, topic.n);
	key[topic.n] = '@';
	memcpy(key + topic.n + 1, group.p, group.n);
	HASH_FIND(hh, t->all, key, n, o);
	if (!o && make) {
		o = mem_alloc(sizeof *o + n + 1);
		memcpy(o->name, key, n);
		o->name_n = (uint32_t)n;
		o->topic_n = (uint32_t)topic.n;
		HASH_ADD_KEYPTR(hh, t->all, o->name, n, o);
	}
	return o;
}

static struct order_batch *batch_of(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id)
{
	struct orders *o = find(t, topic, group, false);

	return o && id >= 0 && id < o->n ? o->batch[id] : NULL;
}

static void batch_free(struct order_batch *b)
{
	if (b)
		free(b->attempt);
	free(b);
}

/* Takes b over; NULL: none. */
static void set_batch(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id, struct order_batch *b)
{
	struct orders *o = id >= 0 && id < TOPIC_QUEUES_MAX ? find(t, topic, group, b != NULL) : NULL;

	if (!o || (!b && id >= o->n)) {
		batch_free(b);
		return;
	}
	if (id >= o->n) {
		o->batch = mem_realloc(o->batch, (size_t)(id + 1) * sizeof *o->batch);
		while (o->n <= id)
			o->batch[o->n++] = NULL;
	}
	batch_free(o->batch[id]);
	o->batch[id] = b;
}

static void drop(struct order_table *t, struct orders *o)
{
	HASH_DEL(t->all, o);
	for (int32_t i = 0; i < o->n; i++)
		batch_free(o->batch[i]);
	free(o->batch);
	free(o);
}

static bool is_acked(const struct order_batch *b, size_t i) { return b->acked >> i & 1; }

static int64_t visible_at(const struct order_batch *b, size_t i)
{
	return b->message[i].visible_ms ? b->message[i].visible_ms : b->pop_ms + b->invisible_ms;
}

/* Offset of the first message that is not acked. */
static int64_t next_of(const struct order_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!is_acked(b, i))
			return b->message[i].off;
	return b->message[b->n - 1].off + 1;
}

static const struct order_message *message_of(const struct order_batch *b, int64_t off)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->message[i].off == off)
			return &b->message[i];
	return NULL;
}

int64_t order_table_blocked(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id, struct mq_str attempt,
                            int64_t invisible_ms)
{
	struct order_batch *b = batch_of(t, topic, group, id);
	int64_t until = 0;

	if (!b || (b->attempt && attempt.p && str_is(attempt, b->attempt)))
		return 0;
	if (b->invisible_ms <= 0)
		b->invisible_ms = invisible_ms;
	for (size_t i = 0; i < b->n; i++)
		if (!is_acked(b, i) && visible_at(b, i) > clock_now_ms() && visible_at(b, i) > until)
			until = visible_at(b, i);
	return until;
}

static void count(struct buf *counts, enum receipt_retry retry, const char *queue, int32_t times)
{
	buf_printf(counts, "%s%d %s %d", counts->n ? ";" : "", (int)retry, queue, (int)times);
}

void order_table_take(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id, struct mq_str attempt, int64_t pop_ms,
                      int64_t invisible_ms, const int64_t *off, size_t n, struct buf *counts)
{
	struct order_batch *old = batch_of(t, topic, group, id), *b;
	bool same = old && old->attempt && attempt.p && str_is(attempt, old->attempt);
	enum receipt_retry retry = receipt_retry_of(topic);
	int32_t least = INT32_MAX;
	char queue[48];

	n = n < ORDER_BATCH_MAX ? n : ORDER_BATCH_MAX;
	b = mem_alloc(sizeof *b + n * sizeof *b->message);
	b->pop_ms = pop_ms;
	b->invisible_ms = invisible_ms;
	b->touched_ms = clock_now_ms();
	b->attempt = attempt.n ? str_dup(attempt) : NULL;
	b->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct order_message *was = old ? message_of(old, off[i]) : NULL;

		b->message[i].off = off[i];
		b->message[i].times = was ? was->times + !same : 0;
		if (b->message[i].times) {
			snprintf(queue, sizeof queue, "qo%d%%%lld", (int)id, (long long)off[i]);
			count(counts, retry, queue, b->message[i].times);
		}
		least = b->message[i].times < least ? b->message[i].times : least;
	}
	snprintf(queue, sizeof queue, "%d", (int)id);
	count(counts, retry, queue, n ? least : 0); /* old clients look for the queue alone */
	set_batch(t, topic, group, id, b);
	table_file_changed(&t->file);
}

int64_t order_table_ack(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t off, int64_t pop_ms)
{
	struct order_batch *b = batch_of(t, topic, group, id);
	const struct order_message *m;

	if (!b)
		return off + 1;
	if (b->pop_ms != pop_ms)
		return ORDER_OTHER_POP;
	m = message_of(b, off);
	if (!m)
		return ORDER_UNKNOWN;
	b->acked |= (uint64_t)1 << (m - b->message);
	table_file_changed(&t->file);
	return next_of(b);
}

void order_table_set_visible(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t off, int64_t pop_ms,
                             int64_t visible_ms)
{
	struct order_batch *b = batch_of(t, topic, group, id);
	const struct order_message *m = b && b->pop_ms == pop_ms ? message_of(b, off) : NULL;

	if (!m)
		return;
	b->message[m - b->message].visible_ms = visible_ms;
	table_file_changed(&t->file);
}

void order_table_clear(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t id)
{
	if (!batch_of(t, topic, group, id))
		return;
	set_batch(t, topic, group, id, NULL);
	table_file_changed(&t->file);
}

/* ---- The file ------------------------------------------------------------------------------------------------------------ */

static void put_batch(struct json_out *j, const struct order_batch *b)
{
	bool times = false, visible = false;
	char key[24];

	json_open(j, '{');
	if (b->attempt)
		json_member_cstr(j, "a", b->attempt);
	json_member_i64(j, "cm", (int64_t)b->acked);
	json_member_i64(j, "i", b->invisible_ms);
	json_member_i64(j, "l", b->touched_ms);
	json_key(j, "o");
	json_open(j, '[');
	for (size_t i = 0; i < b->n; i++) { /* compat: the first as it is, the others as their distance from it */
		json_put_i64(j, i ? b->message[i].off - b->message[0].off : b->message[0].off);
		times = times || b->message[i].times;
		visible = visible || b->message[i].visible_ms;
	}
	json_close(j, ']');
	if (times) {
		json_key(j, "oc");
		json_open(j, '{');
		for (size_t i = 0; i < b->n; i++)
			if (b->message[i].times) {
				snprintf(key, sizeof key, "%lld", (long long)b->message[i].off);
				json_key(j, key);
				json_put_i64(j, b->message[i].times);
			}
		json_close(j, '}');
	}
	if (visible) {
		json_key(j, "ot");
		json_open(j, '{');
		for (size_t i = 0; i < b->n; i++)
			if (b->message[i].visible_ms) {
				snprintf(key, sizeof key, "%lld", (long long)b->message[i].off);
				json_key(j, key);
				json_put_i64(j, b->message[i].visible_ms);
			}
		json_close(j, '}');
	}
	json_member_i64(j, "popTime", b->pop_ms);
	json_close(j, '}');
}

/* What nobody can ask for any more goes. */
static void sweep(struct order_table *t)
{
	struct orders *o, *tmp;

	HASH_ITER(hh, t->all, o, tmp) {
		struct topic *topic = topic_table_find(t->b->topics, topic_of(o));
		bool any = false;

		for (int32_t i = 0; i < o->n; i++) {
			struct order_batch *b = o->batch[i];

			if (b && (!topic || i >= topic->conf.read || clock_now_ms() - b->touched_ms > ORDER_KEEP_MS)) {
				batch_free(b);
				o->batch[i] = NULL;
			}
			any = any || o->batch[i];
		}
		if (!any || !group_table_look(t->b->groups, group_of(o)))
			drop(t, o);
	}
}

static void write_file(void *table, struct buf *out)
{
	struct order_table *t = table;
	struct json_out j = json_to(out);
	struct orders *o, *tmp;
	char key[16];

	sweep(t);
	json_open(&j, '{');
	json_key(&j, "table");
	json_open(&j, '{');
	HASH_ITER(hh, t->all, o, tmp) {
		json_key_str(&j, (struct mq_str){ o->name, o->name_n });
		json_open(&j, '{');
		for (int32_t i = 0; i < o->n; i++)
			if (o->batch[i]) {
				snprintf(key, sizeof key, "%d", (int)i); /* quoted: JSON that every reader takes, the peer too */
				json_key(&j, key);
				put_batch(&j, o->batch[i]);
			}
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_close(&j, '}');
	buf_char(out, '\n');
}

static struct order_batch *get_batch(const json_t *o)
{
	json_t *offs = json_array_at(o, "o"), *times = json_object_at(o, "oc"), *visible = json_object_at(o, "ot");
	size_t n = json_array_size(offs);
	struct mq_str attempt = json_str(o, "a");
	struct order_batch *b;
	char key[24];

	if (n < 1 || n > ORDER_BATCH_MAX)
		return NULL;
	b = mem_alloc(sizeof *b + n * sizeof *b->message);
	b->n = n;
	b->pop_ms = json_i64(o, "popTime", 0);
	b->invisible_ms = json_i64(o, "i", 0);
	b->touched_ms = json_i64(o, "l", 0);
	b->acked = (uint64_t)json_i64(o, "cm", 0);
	b->attempt = attempt.n ? str_dup(attempt) : NULL;
	for (size_t i = 0; i < n; i++) {
		b->message[i].off = json_integer_value(json_array_get(offs, i)) + (i ? b->message[0].off : 0);
		snprintf(key, sizeof key, "%lld", (long long)b->message[i].off);
		b->message[i].times = times ? (int32_t)json_i64(times, key, 0) : 0;
		b->message[i].visible_ms = visible ? json_i64(visible, key, 0) : 0;
	}
	return b;
}

static void load(void *table, const json_t *json)
{
	struct order_table *t = table;
	json_t *orders = json_object_at(json, "table"), *queues, *one;
	const char *key, *queue;

	json_object_foreach(orders, key, queues) {
		const char *at = strrchr(key, '@');
		struct mq_str topic = { key, at ? (size_t)(at - key) : 0 };

		json_object_foreach(queues, queue, one) {
			struct order_batch *b = at ? get_batch(one) : NULL;
			int32_t id;

			if (!b || str_i32(str_of(queue), &id) < 0) {
				log_warn("consumerOrderInfo.json: '%s' queue '%s' left out: not a batch of a topic@group", key, queue);
				batch_free(b);
				continue;
			}
			if (id >= 0 && offset_table_saved_end(t->b->offsets) >= 0) /* the offsets are saved less often */
				offset_table_catch_up(t->b->offsets, topic, str_of(at + 1), id, next_of(b));
			set_batch(t, topic, str_of(at + 1), id, b);
		}
	}
}

static const struct table_kind kind = { .name = "consumerOrderInfo", .write = write_file, .load = load };

int order_table_open(struct order_table **out, struct broker *b, struct mq_error *e)
{
	struct order_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void order_table_free(struct order_table *t)
{
	struct orders *o, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->all, o, tmp)
		drop(t, o);
	table_file_close(&t->file);
	free(t);
}
