/* fuzz_body: covers codec/body*.c and base/json*.c.  The first byte chooses the decoder (in the order below), the rest is the
 * body.  What came out is written; what was written is read again.  Seeds: bodies of tests/golden/wire. */
#include "lab.h"
#include "codec/body_connection.h"
#include "codec/body_group.h"
#include "codec/body_offset.h"
#include "codec/body_pop.h"
#include "codec/body_register.h"
#include "codec/body_route.h"
#include "codec/body_stats.h"

#include <stdlib.h>
#include <string.h>

static bool str_same(struct mq_str a, struct mq_str b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Two members with one key may become one, or a wrong number the default; what has been written so is read and written as it is. */
#define DECODER(NOUN, TYPE, ENCODE) \
	static void try_##NOUN(struct mq_str body) \
	{ \
		struct buf text[3] = { 0 }; \
		struct mq_error e = { 0 }; \
		struct TYPE v; \
		\
		for (int i = 0; i < 3 && body_##NOUN##_decode(i ? buf_view(&text[i - 1]) : body, &v, &e) == 0; i++) { \
			struct buf *out = &text[i]; \
			\
			ENCODE; \
			body_##NOUN##_free(&v); \
		} \
		LAB_CHECK(text[0].n || e.text[0]); \
		LAB_CHECK(!text[2].n || str_same(buf_view(&text[1]), buf_view(&text[2]))); \
		for (int i = 0; i < 3; i++) \
			buf_free(&text[i]); \
	}

/* These have nothing but their memory to free. */
#define body_acks_free(a) body_free(&(a)->keep)
#define body_modes_free(m) body_free(&(m)->keep)
#define body_assignment_free(a) body_free(&(a)->keep)

#define DECODERS(D) \
	D(topic, body_topic_one, body_topic_encode(&v.topic, out)) \
	D(topic_table, body_topic_table, body_topic_table_encode(&v, out)) \
	D(topic_list, body_topic_list, body_topic_list_encode(&v, out)) \
	D(route, body_route, body_route_encode(&v, true, out)) \
	D(cluster, body_cluster, body_cluster_encode(&v, out)) \
	D(members, body_members, body_members_encode(&v, out)) \
	D(group, body_group_one, body_group_encode(&v.group, out)) \
	D(group_table, body_group_table, body_group_table_encode(&v, out)) \
	D(group_list, body_group_list, body_group_list_encode(&v, out)) \
	D(heartbeat, body_heartbeat, body_heartbeat_encode(&v, out)) \
	D(client_check, body_client_check, body_client_check_encode(&v, out)) \
	D(consumer_list, body_consumer_list, body_consumer_list_encode(&v, out)) \
	D(consumer_connection, body_consumer_connection, body_consumer_connection_encode(&v, out)) \
	D(producer_connection, body_producer_connection, body_producer_connection_encode(&v, out)) \
	D(producer_table, body_producer_table, body_producer_table_encode(&v, out)) \
	D(topic_stats, body_topic_stats, body_topic_stats_encode(&v, out)) \
	D(consume_stats, body_consume_stats, body_consume_stats_encode(&v, out)) \
	D(broker_progress, body_broker_progress, body_broker_progress_encode(&v, out)) \
	D(kv, body_kv, body_kv_encode(&v, out)) \
	D(offset_table, body_offset_table, body_offset_table_encode(&v, out)) \
	D(delay_table, body_delay_table, body_delay_table_encode(&v, out)) \
	D(reset, body_reset, body_reset_encode(&v, out)) \
	D(consumer_status, body_consumer_status, body_consumer_status_encode(&v, out)) \
	D(lock, body_lock, body_lock_encode(&v, out)) \
	D(locked, body_locked, body_locked_encode(&v, out)) \
	D(acks, body_acks, body_acks_encode(&v, out)) \
	D(modes, body_modes, body_modes_encode(&v, out)) \
	D(assignment, body_assignment, body_assignment_encode(&v, out))
DECODERS(DECODER)

static void try_ck(struct mq_str body)
{
	struct body_keep k = { 0 };
	struct buf out = { 0 };
	struct mq_error e = { 0 };
	struct body_ck c;

	if (body_ck_decode(&k, body, &c, &e) == 0) {
		LAB_CHECK(c.n >= 0 && c.n <= RECEIPT_POP_MAX);
		body_ck_index(&c, c.start);
		body_ck_index(&c, INT64_MAX);
		body_ck_encode(&c, &out);
		body_free(&k);
		LAB_CHECK(body_ck_decode(&k, buf_view(&out), &c, &e) == 0);
		body_free(&k);
	} else {
		LAB_CHECK(e.text[0]);
	}
	buf_free(&out);
}

static void try_ack(struct mq_str body)
{
	struct body_keep k = { 0 };
	struct buf out = { 0 };
	struct mq_error e = { 0 };
	struct body_ack a;

	if (body_ack_decode(&k, body, &a, &e) == 0) {
		body_ack_encode(&a, a.n != 1, &out);
		body_free(&k);
	} else {
		LAB_CHECK(e.text[0]);
	}
	buf_free(&out);
}

static void try_mode(struct mq_str body)
{
	struct body_keep k = { 0 };
	struct buf out = { 0 };
	struct mq_error e;
	struct body_mode m;

	if (body_mode_decode(&k, body, &m, &e) == 0) {
		body_mode_encode(&m, &out);
		body_free(&k);
	}
	buf_free(&out);
}

static void try_query(struct mq_str body)
{
	struct body_assignment_query q;
	struct body_keep k = { 0 };
	struct buf out = { 0 };
	struct mq_error e;

	if (body_assignment_query_decode(&k, body, &q, &e) == 0) {
		body_assignment_query_encode(&q, &out);
		body_free(&k);
	}
	buf_free(&out);
}

static void try_version(struct mq_str body)
{
	struct body_version v;
	struct buf out = { 0 };
	struct mq_error e;

	if (body_version_decode(body, &v, &e) == 0)
		body_version_encode(&v, &out);
	buf_free(&out);
}

static void try_broker_stats(struct mq_str body)
{
	struct body_broker_stats v;
	struct buf out = { 0 };
	struct mq_error e;

	if (body_broker_stats_decode(body, &v, &e) == 0)
		body_broker_stats_encode(&v, &out);
	buf_free(&out);
}

/* The first byte of the body stands for the version of the peer: the shape depends on it. */
static void try_register(struct mq_str body, bool compressed)
{
	static const int32_t versions[] = { 0, 60, 293, 399, MQ_PEER_VERSION, INT32_MAX };
	int32_t version = body.n ? versions[(uint8_t)body.p[0] % 6] : 0;
	struct body_register reg;
	struct buf out = { 0 };
	struct mq_error e;

	if (body.n) {
		body.p++;
		body.n--;
	}
	if (body_register_decode(body, compressed, version, &reg, &e) == 0) {
		body_register_encode(&reg, &out);
		out.n = 0;
		LAB_CHECK(body_register_encode_compressed(&reg, &out) == 0);
		body_register_free(&reg);
		if (body_register_decode(buf_view(&out), true, MQ_PEER_VERSION, &reg, &e) == 0)
			body_register_free(&reg);
	}
	buf_free(&out);
}

static void try_json(struct mq_str body)
{
	struct mq_error e = { 0 };
	json_t *o = json_parse(body, &e), *back;
	char *text;

	if (!o) {
		LAB_CHECK(e.text[0]);
		return;
	}
	text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
	if (text) {
		back = json_parse((struct mq_str){ text, strlen(text) }, &e);
		LAB_CHECK(back && json_equal(o, back));
		json_decref(back);
	}
	free(text);
	json_decref(o);
}

static void try_plain(struct mq_str body) { try_register(body, false); }
static void try_packed(struct mq_str body) { try_register(body, true); }

#define ROW(NOUN, TYPE, ENCODE) try_##NOUN,
static void (*const decoder[])(struct mq_str) = { DECODERS(ROW) try_version, try_broker_stats, try_plain, try_packed, try_ck,
						     try_ack, try_mode, try_query, try_json };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy;

	if (n < 1)
		return 0;
	copy = lab_copy(p + 1, n - 1);
	decoder[p[0] % (sizeof(decoder) / sizeof(decoder[0]))]((struct mq_str){ copy, n - 1 });
	free(copy);
	return 0;
}
