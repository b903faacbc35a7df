/* test_body.c: JSON bodies: what the Java programs wrote comes out byte for byte after reading; other clients' dialects are
 * understood; damaged texts are refused without a crash or a leak. */
#include "base/byte.h"
#include "base/str.h"
#include "base/zip.h"
#include "codec/body_connection.h"
#include "codec/body_group.h"
#include "codec/body_offset.h"
#include "codec/body_register.h"
#include "codec/body_route.h"
#include "codec/body_stats.h"
#include "codec/frame.h"
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Read and write again -------------------------------------------------------------------------------------------------- */

/* NAME_again(): decode, encode into out, free; the decoder's return code. */
#define AGAIN(NAME, TYPE, ENCODE) \
	static int NAME##_again(struct mq_str body, struct buf *out, struct mq_error *e) \
	{ \
		struct TYPE v; \
		int rc = body_##NAME##_decode(body, &v, e); \
		if (rc) \
			return rc; \
		ENCODE; \
		body_##NAME##_free(&v); \
		return 0; \
	}
AGAIN(topic, body_topic_one, body_topic_encode(&v.topic, out))
AGAIN(topic_table, body_topic_table, body_topic_table_encode(&v, out))
AGAIN(topic_list, body_topic_list, body_topic_list_encode(&v, out))
AGAIN(route, body_route, body_route_encode(&v, memmem(body.p, body.n, "{\"0\"", 4) != NULL, out))
AGAIN(cluster, body_cluster, body_cluster_encode(&v, out))
AGAIN(members, body_members, body_members_encode(&v, out))
AGAIN(group, body_group_one, body_group_encode(&v.group, out))
AGAIN(group_table, body_group_table, body_group_table_encode(&v, out))
AGAIN(group_list, body_group_list, body_group_list_encode(&v, out))
AGAIN(heartbeat, body_heartbeat, body_heartbeat_encode(&v, out))
AGAIN(client_check, body_client_check, body_client_check_encode(&v, out))
AGAIN(consumer_list, body_consumer_list, body_consumer_list_encode(&v, out))
AGAIN(consumer_connection, body_consumer_connection, body_consumer_connection_encode(&v, out))
AGAIN(producer_connection, body_producer_connection, body_producer_connection_encode(&v, out))
AGAIN(producer_table, body_producer_table, body_producer_table_encode(&v, out))
AGAIN(topic_stats, body_topic_stats, body_topic_stats_encode(&v, out))
AGAIN(consume_stats, body_consume_stats, body_consume_stats_encode(&v, out))
AGAIN(broker_progress, body_broker_progress, body_broker_progress_encode(&v, out))
AGAIN(kv, body_kv, body_kv_encode(&v, out))
AGAIN(offset_table, body_offset_table, body_offset_table_encode(&v, out))
AGAIN(delay_table, body_delay_table, body_delay_table_encode(&v, out))
AGAIN(reset, body_reset, body_reset_encode(&v, out))
AGAIN(lock, body_lock, body_lock_encode(&v, out))
AGAIN(locked, body_locked, body_locked_encode(&v, out))

static int broker_stats_again(struct mq_str body, struct buf *out, struct mq_error *e)
{
	struct body_broker_stats v;
	int rc = body_broker_stats_decode(body, &v, e);

	if (rc == 0)
		body_broker_stats_encode(&v, out);
	return rc;
}

static int version_again(struct mq_str body, struct buf *out, struct mq_error *e)
{
	struct body_version v;
	int rc = body_version_decode(body, &v, e);

	if (rc == 0)
		body_version_encode(&v, out);
	return rc;
}

static int register_again(struct mq_str body, struct buf *out, struct mq_error *e)
{
	struct body_register v;
	int rc = body_register_decode(body, false, 453, &v, e);

	if (rc)
		return rc;
	body_register_encode(&v, out);
	body_register_free(&v);
	return 0;
}

typedef int again_fn(struct mq_str body, struct buf *out, struct mq_error *e);

/* Names of golden frames and what their body is. */
static const struct {
	const char *frame;
	again_fn *again;
} bodies[] = {
	{ "GET_ALL_TOPIC_CONFIG.resp", topic_table_again },
	{ "GET_TOPIC_CONFIG.resp", topic_again },
	{ "GET_TOPIC_CONFIG-binary.resp", topic_again },
	{ "GET_ALL_TOPIC_LIST_FROM_NAMESERVER.resp", topic_list_again },
	{ "GET_ALL_TOPIC_LIST_FROM_NAMESERVER-binary.resp", topic_list_again },
	{ "GET_SYSTEM_TOPIC_LIST_FROM_BROKER.resp", topic_list_again },
	{ "REGISTER_BROKER.req", register_again },
	{ "REGISTER_BROKER-binary.req", register_again },
	{ "REGISTER_BROKER.resp", kv_again },
	{ "GET_ROUTEINFO_BY_TOPIC.resp", route_again },
	{ "GET_ROUTEINFO_BY_TOPIC-binary.resp", route_again },
	{ "GET_BROKER_CLUSTER_INFO.resp", cluster_again },
	{ "GET_BROKER_CLUSTER_INFO-binary.resp", cluster_again },
	{ "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.req", group_again },
	{ "GET_ALL_SUBSCRIPTIONGROUP_CONFIG.resp", group_table_again },
	{ "QUERY_TOPIC_CONSUME_BY_WHO.resp", group_list_again },
	{ "HEART_BEAT.req", heartbeat_again },
	{ "HEART_BEAT-binary.req", heartbeat_again },
	{ "CHECK_CLIENT_CONFIG.req", client_check_again },
	{ "GET_CONSUMER_LIST_BY_GROUP.resp", consumer_list_again },
	{ "GET_CONSUMER_CONNECTION_LIST-binary.resp", consumer_connection_again },
	{ "GET_PRODUCER_CONNECTION_LIST.resp", producer_connection_again },
	{ "GET_ALL_PRODUCER_INFO-binary.resp", producer_table_again },
	{ "GET_TOPIC_STATS_INFO.resp", topic_stats_again },
	{ "GET_CONSUME_STATS-binary.resp", consume_stats_again },
	{ "GET_BROKER_CONSUME_STATS.resp", broker_progress_again },
	{ "VIEW_BROKER_STATS_DATA.resp", broker_stats_again },
	{ "GET_BROKER_RUNTIME_INFO.resp", kv_again },
	{ "INVOKE_BROKER_TO_RESET_OFFSET.resp", reset_again },
	{ "LOCK_BATCH_MQ.req", lock_again },
	{ "LOCK_BATCH_MQ.resp", locked_again },
	{ "UNLOCK_BATCH_MQ.req", lock_again },
};
enum { BODIES = sizeof(bodies) / sizeof(bodies[0]) };

static struct mq_str golden_body(const char *peer, const char *frame, char **keep)
{
	char name[200];
	struct mq_error e;
	struct frame f;
	size_t n;

	snprintf(name, sizeof(name), "wire/%s/%s.bin", peer, frame);
	*keep = golden_read(name, &n);
	if (frame_parse(*keep, n, &f, &e) != 0)
		fail_msg("%s: %s", name, e.text);
	if (!f.body.n)
		fail_msg("%s: no body", name);
	return f.body;
}

static void assert_again(const char *what, again_fn *again, struct mq_str body)
{
	struct buf out = { 0 };
	struct mq_error e = { 0 };

	if (again(body, &out, &e) != 0)
		fail_msg("%s: %s", what, e.text);
	if (!str_eq(buf_view(&out), body))
		fail_msg("%s:\nread  " MQ_STR_FMT "\nwrote " MQ_STR_FMT, what, MQ_STR_ARG(body), (int)out.n, out.p);
	buf_free(&out);
}

static void bodies_of_java_come_back_byte_for_byte(void **state)
{
	for (int i = 0; i < BODIES; i++) {
		char *keep;
		struct mq_str body = golden_body("java", bodies[i].frame, &keep);

		assert_again(bodies[i].frame, bodies[i].again, body);
		free(keep);
	}
}

/* Bodies that are in no recording, as the peer's classes write them. */
static void other_bodies_in_the_form_of_the_peer(void **state)
{
	static const struct { again_fn *again; const char *text; } texts[] = {
		{ version_again, "{\"counter\":3,\"stateVersion\":-1,\"timestamp\":1796057391645}" },
		{ members_again, "{\"brokerMemberGroup\":{\"brokerAddrs\":{0:\"10.0.0.1:10911\",2:\"10.0.0.2:10911\"},\"brokerName\":\"broker-a\","
		                 "\"cluster\":\"DefaultCluster\"}}" },
		{ offset_table_again, "{\"dataVersion\":{\"counter\":3,\"stateVersion\":0,\"timestamp\":1},\"offsetTable\":{\"T@G\":{0:12,1:7},"
		                      "\"%RETRY%G@G\":{0:0}}}" },
		{ delay_table_again, "{\"dataVersion\":{\"counter\":0,\"stateVersion\":0,\"timestamp\":1},\"offsetTable\":{1:5,3:9}}" },
		{ group_table_again, "{\"dataVersion\":{\"counter\":0,\"stateVersion\":0,\"timestamp\":1},\"forbiddenTable\":{\"G\":{\"T\":1,\"U\":3},"
		                     "\"H\":{\"T\":1}},\"subscriptionGroupTable\":{}}" },
		{ group_again, "{\"attributes\":{\"a\":\"b\"},\"brokerId\":3,\"consumeBroadcastEnable\":false,\"consumeEnable\":false,"
		               "\"consumeFromMinEnable\":false,\"consumeMessageOrderly\":true,\"consumeTimeoutMinute\":1,\"groupName\":\"G\","
		               "\"groupRetryPolicy\":{\"exponentialRetryPolicy\":{\"initial\":5000,\"max\":7200000,\"multiplier\":2},"
		               "\"type\":\"EXPONENTIAL\"},\"groupSysFlag\":1,\"notifyConsumerIdsChangedEnable\":false,\"retryMaxTimes\":3,"
		               "\"retryQueueNums\":2,\"subscriptionDataSet\":[{\"expression\":\"*\",\"expressionType\":\"TAG\",\"topic\":\"T\","
		               "\"version\":1}],\"whichBrokerWhenConsumeSlowly\":0}" },
		{ producer_table_again, "{\"data\":{\"PG\":[{\"clientId\":\"c\",\"language\":\"GO\",\"lastUpdateTimestamp\":7,"
		                        "\"remoteIP\":\"/1.2.3.4:5\",\"version\":317}],\"PH\":[]}}" },
		{ heartbeat_again, "{\"clientID\":\"c@1\",\"consumerDataSet\":[{\"consumeFromWhere\":\"CONSUME_FROM_TIMESTAMP\",\"consumeType\":"
		                   "\"CONSUME_POP\",\"groupName\":\"G\",\"messageModel\":\"BROADCASTING\",\"subscriptionDataSet\":[{\"classFilterMode\":"
		                   "true,\"codeSet\":[2598919,-5],\"expressionType\":\"SQL92\",\"subString\":\"a > 'x'\",\"subVersion\":9,\"tagsSet\":"
		                   "[\"TagA\",\"\xe6\xa0\x87\xe7\xad\xbe\"],\"topic\":\"T\"}],\"unitMode\":true}],\"heartbeatFingerprint\":-123456,"
		                   "\"producerDataSet\":[{\"groupName\":\"P\"},{\"groupName\":\"Q\"}],\"withoutSub\":true}" },
		{ route_again, "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"[::1]:10911\",\"1\":\"h:2\"},\"brokerName\":\"b\",\"cluster\":\"c\","
		               "\"enableActingMaster\":true,\"zoneName\":\"z\\u00E9\"}],\"filterServerTable\":{\"h:1\":[\"f:1\",\"f:2\"]},\"orderTopicConf\":\"b:4\","
		               "\"queueDatas\":[]}" },
		{ topic_list_again, "{\"brokerAddr\":\"1.2.3.4:10911\",\"topicList\":[]}" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_again(texts[i].text, texts[i].again, str_of(texts[i].text));
}

/* ---- Other clients --------------------------------------------------------------------------------------------------------- */

static void a_heartbeat_with_numbers_for_enums_and_members_missing(void **state)
{
	struct body_heartbeat h;
	struct mq_error e;
	char *keep;
	struct mq_str body = golden_body("cpp", "HEART_BEAT.req", &keep);

	assert_int_equal(body_heartbeat_decode(body, &h, &e), 0);
	assert_true(h.client_id.n > 0);
	assert_int_equal(h.nconsumers, 1);
	assert_int_equal(h.consumer[0].type, CONSUME_PASSIVELY);
	assert_int_equal(h.consumer[0].model, MODEL_CLUSTERING);
	assert_int_equal(h.consumer[0].from, FROM_LAST_OFFSET);
	assert_true(h.consumer[0].nsubs > 0);
	assert_true(str_is(h.consumer[0].sub[0].type, "TAG"));
	assert_true(h.consumer[0].sub[0].version > 1600000000000);
	assert_int_equal(h.nproducers, 1);
	body_heartbeat_free(&h);
	free(keep);

	body = golden_body("go", "HEART_BEAT.req", &keep);
	assert_int_equal(body_heartbeat_decode(body, &h, &e), 0);
	assert_int_equal(h.fingerprint, 0);
	assert_false(h.without_sub);
	body_heartbeat_free(&h);
	free(keep);

	assert_int_equal(body_heartbeat_decode(MQ_STR("{\"clientID\":\"c\",\"producerDataSet\":[{},{\"groupName\":\"\"},3],"
	                                              "\"consumerDataSet\":[{\"consumeType\":9,\"groupName\":\"G\"},{}]}"), &h, &e), 0);
	assert_int_equal(h.nproducers, 0);
	assert_int_equal(h.nconsumers, 1);
	assert_int_equal(h.consumer[0].type, CONSUME_PASSIVELY);
	body_heartbeat_free(&h);
}

static void go_and_cpp_locks_and_quoted_or_bare_broker_ids(void **state)
{
	struct body_lock l;
	struct body_route r;
	struct mq_error e;
	char *keep;
	struct mq_str body = golden_body("go", "LOCK_BATCH_MQ.req", &keep);

	assert_int_equal(body_lock_decode(body, &l, &e), 0);
	assert_int_equal(l.n, 1);
	assert_true(l.queue[0].topic.n && l.queue[0].broker.n);
	body_lock_free(&l);
	free(keep);

	assert_int_equal(body_route_decode(MQ_STR("{\"brokerDatas\":[{\"brokerAddrs\":{ 2:\"b:1\", \"0\":\"a:1\"},\"brokerName\":\"x\"}],"
	                                          "\"queueDatas\":[{\"brokerName\":\"x\",\"perm\":6,\"readQueueNums\":4,\"writeQueueNums\":3}]}"), &r, &e), 0);
	assert_int_equal(r.nbrokers, 1);
	assert_int_equal(r.broker[0].naddrs, 2);
	assert_int_equal(r.broker[0].addr[0].id, 0);
	assert_true(str_is(body_broker_addr_of(&r.broker[0], 2), "b:1"));
	assert_null(body_broker_addr_of(&r.broker[0], 1).p);
	assert_int_equal(r.queue[0].write, 3);
	body_route_free(&r);
}

static void reset_offsets_for_cpp_are_a_list(void **state)
{
	struct body_reset r;
	struct mq_error e;
	struct buf out = { 0 };

	assert_int_equal(body_reset_decode(MQ_STR("{\"offsetTable\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}:123}}"), &r, &e), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.queue[0].off, 123);
	body_reset_encode_list(&r, &out);
	body_reset_free(&r);
	assert_true(str_is(buf_view(&out), "{\"offsetTable\":[{\"brokerName\":\"b\",\"offset\":123,\"queueId\":0,\"topic\":\"T\"}]}"));
	assert_int_equal(body_reset_decode(buf_view(&out), &r, &e), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.queue[0].off, 123);
	assert_true(str_is(r.queue[0].queue.topic, "T"));
	body_reset_free(&r);
	buf_free(&out);
}

/* ---- Registration, compressed ---------------------------------------------------------------------------------------------- */

static void a_compressed_registration_says_the_same(void **state)
{
	struct body_pair attr = { MQ_STR("message.type"), MQ_STR("FIFO") };
	struct body_topic topics[] = {
		{ .name = MQ_STR("A"), .read = 8, .write = 4, .perm = 6 },
		{ .name = MQ_STR("%RETRY%G"), .read = 1, .write = 1, .perm = 4, .multi_tag = true, .nattrs = 1, .attr = &attr },
	};
	struct mq_str filters[] = { MQ_STR("1.2.3.4:5") };
	struct body_register in = { .topics = { .version = { 1, 2, 3 }, .n = 2, .topic = topics }, .nfilters = 1, .filter = filters }, r;
	struct buf packed = { 0 }, text = { 0 };
	struct mq_error e;

	assert_int_equal(body_register_encode_compressed(&in, &packed), 0);
	assert_int_equal(body_register_decode(buf_view(&packed), true, 453, &r, &e), 0);
	assert_true(body_version_eq(&r.topics.version, &in.topics.version));
	assert_int_equal(r.topics.n, 2);
	assert_true(str_is(r.topics.topic[1].name, "%RETRY%G"));
	assert_true(r.topics.topic[1].multi_tag);
	assert_int_equal(r.topics.topic[1].perm, 4);
	assert_int_equal(r.topics.topic[0].read, 8);
	assert_int_equal(r.topics.topic[1].nattrs, 1);
	assert_true(str_is(r.topics.topic[1].attr[0].value, "FIFO"));
	assert_int_equal(r.nfilters, 1);
	assert_true(str_is(r.filter[0], "1.2.3.4:5"));
	body_register_free(&r);

	/* Older brokers end before the mappings; a cut anywhere else is refused, and the text says so. */
	assert_int_equal(zip_unpack(0, buf_view(&packed), 1 << 20, &text), 0);
	for (size_t n = 0; n <= text.n; n++) {
		struct buf again = { 0 };
		int rc;

		assert_int_equal(zip_pack(0, 1, (struct mq_str){ text.p, n }, &again), 0);
		rc = body_register_decode(buf_view(&again), true, n == text.n - 4 ? 412 : 453, &r, &e);
		assert_int_equal(rc, n >= text.n - 4 && n != text.n - 3 && n != text.n - 2 && n != text.n - 1 ? 0 : MQ_EINVAL);
		if (rc == 0)
			body_register_free(&r);
		else
			assert_true(str_starts(str_of(e.text), "registration"));
		buf_free(&again);
	}
	/* A count that the text cannot back. */
	put_be32(text.p + 4 + be32(text.p), 0x7fffffff);
	packed.n = 0;
	assert_int_equal(zip_pack(0, 1, buf_view(&text), &packed), 0);
	assert_int_equal(body_register_decode(buf_view(&packed), true, 453, &r, &e), MQ_EINVAL);
	assert_int_equal(body_register_decode(MQ_STR("not zlib"), true, 453, &r, &e), MQ_EINVAL);
	assert_int_equal(body_register_decode(MQ_STR(""), true, 453, &r, &e), MQ_EINVAL);
	assert_int_equal(body_register_decode(MQ_STR(""), false, 453, &r, &e), MQ_EINVAL);
	buf_free(&packed);
	buf_free(&text);
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------------- */

static void damaged_bodies_are_refused_or_read(void **state)
{
	static const char values[] = { '"', '{', '}', '[', ']', ',', ':', '9', 'x', '\\', '\'', 0, (char)0xff };
	int read = 0, refused = 0;

	for (int i = 0; i < BODIES; i++) {
		char *keep;
		struct mq_str body = golden_body("java", bodies[i].frame, &keep);
		size_t n = body.n > 700 ? 700 : body.n;
		struct buf out = { 0 };
		struct mq_error e;
		int rc;

		for (size_t cut = 0; cut < n; cut++) {
			char *copy = malloc(cut + 1);

			memcpy(copy, body.p, cut);
			out.n = 0;
			assert_int_equal(bodies[i].again((struct mq_str){ copy, cut }, &out, &e), MQ_EINVAL);
			free(copy);
		}
		for (size_t at = 0; at < n; at++) {
			char *copy = malloc(body.n);

			memcpy(copy, body.p, body.n);
			copy[at] = values[at % sizeof(values)];
			out.n = 0;
			rc = bodies[i].again((struct mq_str){ copy, body.n }, &out, &e);
			assert_true(rc == 0 || rc == MQ_EINVAL);
			read += rc == 0;
			refused += rc != 0;
			free(copy);
		}
		buf_free(&out);
		free(keep);
	}
	assert_true(read > 100 && refused > 100);
}

static void bodies_of_another_kind(void **state)
{
	static const char *const texts[] = { "[]", "3", "null", "\"x\"", "{\"a\":1} x", "" };
	static const char *const strange[] = {
		"{}", "{\"offsetTable\":[1,[],{}]}", "{\"offsetTable\":{\"x\":{},\"{\":1,\"3\":\"x\",\"[]\":[]}}", "{\"topicConfigTable\":{\"a\":1}}",
		"{\"brokerDatas\":[1,{\"brokerAddrs\":{\"x\":\"y\",\"1\":2}}],\"queueDatas\":[[],{}]}", "{\"consumerDataSet\":[1,[],{}]}",
		"{\"subscriptionGroupTable\":{\"g\":[]},\"forbiddenTable\":{\"g\":1,\"h\":{\"t\":\"x\"}}}", "{\"data\":{\"g\":1}}", "{\"table\":[1]}",
		"{\"table\":{\"a\":{},\"b\":null,\"c\":1.5,\"d\":true}}", "{\"consumeStatsList\":[1,{\"g\":2},{\"g\":[3]}]}", "{\"mqSet\":[1,{}]}",
		"{\"brokerAddrTable\":{\"b\":1},\"clusterAddrTable\":{\"c\":2}}", "{\"topicConfigSerializeWrapper\":[]}",
		"{\"connectionSet\":[1,{}],\"subscriptionTable\":{\"t\":1,\"u\":{}}}",
	};
	struct buf out = { 0 };
	struct mq_error e;

	for (int i = 0; i < BODIES; i++) {
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
			assert_int_equal(bodies[i].again(str_of(texts[k]), &out, &e), MQ_EINVAL);
		for (size_t k = 0; k < sizeof(strange) / sizeof(strange[0]); k++) {
			out.n = 0;
			assert_int_equal(bodies[i].again(str_of(strange[k]), &out, &e), 0);
		}
	}
	buf_free(&out);
}

static void defaults_of_absent_members(void **state)
{
	struct body_topic_one t;
	struct body_group_one g;
	struct mq_error e;

	assert_int_equal(body_topic_decode(MQ_STR("{\"topicName\":\"T\",\"perm\":\"4\",\"readQueueNums\":99999999999}"), &t, &e), 0);
	assert_int_equal(t.topic.read, 16);
	assert_int_equal(t.topic.write, 16);
	assert_int_equal(t.topic.perm, 4);
	body_topic_free(&t);
	assert_int_equal(body_group_decode(MQ_STR("{\"groupName\":\"G\"}"), &g, &e), 0);
	assert_true(g.group.consume && g.group.consume_from_min && g.group.consume_broadcast && g.group.notify_ids_changed);
	assert_int_equal(g.group.retry_max, 16);
	assert_int_equal(g.group.retry_queues, 1);
	assert_int_equal(g.group.timeout_minutes, 15);
	body_group_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_of_java_come_back_byte_for_byte),
		cmocka_unit_test(other_bodies_in_the_form_of_the_peer),
		cmocka_unit_test(a_heartbeat_with_numbers_for_enums_and_members_missing),
		cmocka_unit_test(go_and_cpp_locks_and_quoted_or_bare_broker_ids),
		cmocka_unit_test(reset_offsets_for_cpp_are_a_list),
		cmocka_unit_test(a_compressed_registration_says_the_same),
		cmocka_unit_test(damaged_bodies_are_refused_or_read),
		cmocka_unit_test(bodies_of_another_kind),
		cmocka_unit_test(defaults_of_absent_members),
	};

	return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}
