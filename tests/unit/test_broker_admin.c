/* test_broker_admin.c: what administrators ask of a broker beyond topics and groups: tallies, entries and times of queues, corrected
 * and copied offsets, clients asked through the broker, what is removed on request. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/rates.h"
#include "../../bin/broker/topic_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

struct fixture {
	struct broker_kit *k;
	struct broker *b;
	struct conn *c;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(NULL);
	f->b = broker_kit_broker(f->k);
	f->c = broker_kit_dial(f->k, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static const char *body(const struct asked *a)
{
	static char text[16384];

	snprintf(text, sizeof text, MQ_STR_FMT, (int)a->body.n, a->body.p ? a->body.p : "");
	return text;
}

static void commit(struct fixture *f, const char *group, const char *topic, const char *queue, const char *off)
{
	assert_int_equal(ask(f->k, f->c, REQ_UPDATE_CONSUMER_OFFSET, NONE, "consumerGroup", group, "topic", topic, "queueId", queue,
			     "commitOffset", off, NULL)->code, RESP_SUCCESS);
}

static void send_n(struct fixture *f, const char *topic, int queue, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(kit_send(f->k, f->c, topic, queue, "0123456789", "tagA")->code, RESP_SUCCESS);
}

static struct asked *kit_pull(struct broker_kit *k, struct conn *c, const char *group, const char *topic, int64_t off)
{
	struct asked *a = kit_pull_later(k, c, group, topic, 0, off, "*", 0);

	asked_wait(k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	return a;
}

/* ---- Tallies -------------------------------------------------------------------------------------------------------------- */

static bool near(double x, double y) { return x > y - 0.001 && x < y + 0.001; }

static void tick(struct tallies *all, int n)
{
	while (n--) {
		clock_cached_mono_ms += TALLY_TICK_MS;
		tally_tick(all);
	}
}

static void a_tally_forgets_after_a_minute_an_hour_a_day(void **state)
{
	struct tallies all = { 0 };
	struct tally t = { 0 };
	struct body_broker_stats s;

	assert_false(tally_view(&t, false, &s));
	tally_add(&all, &t, 1, 4, 400);
	tally_add(&all, &t, 1, 8, 800);
	assert_true(tally_view(&t, false, &s));
	assert_int_equal(s.minute.sum, 12);
	assert_int_equal(s.hour.sum, 12);
	assert_int_equal(s.day.sum, 12);
	assert_true(near(s.minute.tps, 1.2)); /* over ten seconds at least */
	assert_true(near(s.minute.average, 6));
	assert_true(tally_view(&t, true, &s));
	assert_int_equal(s.minute.sum, 1200);

	tick(&all, 3);
	tally_add(&all, &t, 1, 30, 1);
	tally_view(&t, false, &s);
	assert_true(near(s.minute.tps, 42 / 30.0));
	tick(&all, 6); /* the first 12 are a minute old, the 30 not yet */
	tally_view(&t, false, &s);
	assert_int_equal(s.minute.sum, 0);
	assert_int_equal(s.hour.sum, 42);
	tick(&all, 360);
	tally_view(&t, false, &s);
	assert_int_equal(s.hour.sum, 0);
	assert_int_equal(s.day.sum, 42);
	tick(&all, 23 * 360);
	assert_true(tally_view(&t, false, &s));
	assert_int_equal(s.day.sum, 0);
	tick(&all, 360); /* a day without anything: nothing is kept */
	assert_false(tally_view(&t, false, &s));
	assert_null(all.rings);
	tally_add(&all, &t, 1, 1, 1);
	tally_view(&t, false, &s);
	assert_int_equal(s.day.sum, 1);
	tally_end(&t);
	clock_refresh();
}

static int64_t stats(struct fixture *f, const char *name, const char *key)
{
	struct asked *a = ask(f->k, f->c, REQ_VIEW_BROKER_STATS_DATA, NONE, "statsName", name, "statsKey", key, NULL);
	struct body_broker_stats s;
	struct mq_error e;

	if (a->code != RESP_SUCCESS)
		return -a->code;
	assert_int_equal(body_broker_stats_decode(buf_view(&a->body), &s, &e), 0);
	return s.day.sum;
}

static void sends_and_pulls_are_counted_by_topic_and_group(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	char head[64];

	assert_int_equal(stats(f, "TOPIC_PUT_NUMS", "T"), -RESP_SYSTEM_ERROR);
	send_n(f, "T", 0, 3);
	assert_int_equal(stats(f, "TOPIC_PUT_NUMS", "T"), 3);
	assert_true(stats(f, "TOPIC_PUT_SIZE", "T") > 3 * 100);
	assert_int_equal(stats(f, "GROUP_GET_NUMS", "T@g"), -RESP_SYSTEM_ERROR);
	asked_free(kit_pull(f->k, f->c, "g", "T", 1));
	assert_int_equal(stats(f, "GROUP_GET_NUMS", "T@g"), 2);
	assert_true(stats(f, "GROUP_GET_SIZE", "T@g") > 2 * 100);
	assert_int_equal(stats(f, "BROKER_PUT_NUMS", "C"), 3);
	assert_int_equal(stats(f, "BROKER_GET_NUMS", "C"), 2);
	assert_int_equal(stats(f, "BROKER_PUT_NUMS", "D"), -RESP_SYSTEM_ERROR);
	assert_int_equal(stats(f, "NO_SUCH_NUMS", "T"), -RESP_SYSTEM_ERROR);
	assert_int_equal(stats(f, "", ""), -RESP_SYSTEM_ERROR);
	assert_int_equal(stats(f, "GROUP_GET_NUMS", "@"), -RESP_SYSTEM_ERROR);
	/* It is also what consumption a second is made of. */
	a = ask(f->k, f->c, REQ_GET_CONSUME_STATS, NONE, "consumerGroup", "g", "topic", "T", NULL);
	snprintf(head, sizeof head, "{\"consumeTps\":0.2,");
	assert_memory_equal(a->body.p, head, strlen(head));
	/* A topic that comes back begins anew. */
	ask(f->k, f->c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL);
	assert_int_equal(stats(f, "TOPIC_PUT_NUMS", "T"), -RESP_SYSTEM_ERROR);
	send_n(f, "T", 0, 1);
	assert_int_equal(stats(f, "TOPIC_PUT_NUMS", "T"), 1);
}

/* ---- Queues --------------------------------------------------------------------------------------------------------------- */

static struct asked *entries(struct fixture *f, const char *queue, const char *index, const char *count, const char *group)
{
	return ask(f->k, f->c, REQ_QUERY_CONSUME_QUEUE, NONE, "topic", "T", "queueId", queue, "index", index, "count", count,
		   group ? "consumerGroup" : "x", group ? group : "", NULL);
}

static void entries_of_a_queue(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	struct mq_error e;
	json_t *o, *one;

	assert_int_equal(entries(f, "0", "0", "3", NULL)->code, RESP_SYSTEM_ERROR);
	send_n(f, "T", 0, 4);
	a = entries(f, "0", "1", "2", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	o = json_parse(buf_view(&a->body), &e);
	assert_int_equal(json_i64(o, "maxQueueIndex", -1), 4);
	assert_int_equal(json_i64(o, "minQueueIndex", -1), 0);
	assert_int_equal(json_array_size(json_array_at(o, "queueData")), 2);
	one = json_array_get(json_array_at(o, "queueData"), 1);
	assert_int_equal(json_i64(one, "tagsCode", 0), 3552231); /* of tagA */
	assert_int_equal(json_i64(one, "physicOffset", -1), 2 * json_i64(one, "physicSize", 0));
	json_decref(o);
	/* Beyond the end: the peer answers 0 without a body. */
	a = entries(f, "0", "4", "2", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(a->body.n, 0);
	assert_string_equal(a->remark.p, "Index 4 of 0@T is not exist!");
	assert_int_equal(entries(f, "0", "-1", "2", NULL)->body.n, 0);
	assert_int_equal(entries(f, "99999", "0", "2", NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(entries(f, "-1", "0", "2", NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(entries(f, "0", "0", "-7", NULL)->code, RESP_SUCCESS);
	assert_non_null(strstr(body(entries(f, "0", "0", "1", "g")), "\"filterData\":\"g@T is not online!\""));
	kit_heartbeat(f->k, f->c, "one", "g", "T", "tagA||tagB");
	assert_non_null(strstr(body(entries(f, "0", "0", "1", "g")), "\"subString\":\"tagA||tagB\""));
}

static void how_old_is_what_a_group_consumes(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	struct mq_error e;
	json_t *o, *span;
	int64_t before = clock_wall_ms();

	send_n(f, "T", 0, 4);
	commit(f, "g", "T", "0", "2");
	a = ask(f->k, f->c, REQ_QUERY_CONSUME_TIME_SPAN, NONE, "topic", "T", "group", "g", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	o = json_parse(buf_view(&a->body), &e);
	span = json_array_get(json_array_at(o, "consumeTimeSpanSet"), 0);
	for (size_t i = 0; i < 3; i++) {
		const char *key[] = { "minTimeStamp", "maxTimeStamp", "consumeTimeStamp" };

		assert_true(json_i64(span, key[i], 0) >= before - 1 && json_i64(span, key[i], 0) <= clock_wall_ms() + 1);
	}
	assert_true(json_i64(span, "delayTime", -1) >= 0);
	assert_int_equal(json_i64(json_array_get(json_array_at(o, "consumeTimeSpanSet"), 1), "maxTimeStamp", 0), -1); /* empty */
	json_decref(o);
	assert_int_equal(ask(f->k, f->c, REQ_QUERY_CONSUME_TIME_SPAN, NONE, "topic", "nope", "group", "g", NULL)->code, RESP_TOPIC_NOT_EXIST);
}

/* ---- Offsets -------------------------------------------------------------------------------------------------------------- */

static const char *corrected(struct fixture *f, const char *without, const char *compare)
{
	return body(ask(f->k, f->c, REQ_QUERY_CORRECTION_OFFSET, NONE, "topic", "T", "compareGroup", compare, "filterGroups", without, NULL));
}

static void the_lowest_offset_of_all_groups(void **state)
{
	struct fixture *f = *state;

	send_n(f, "T", 0, 5);
	commit(f, "low", "T", "0", "1");
	commit(f, "mid", "T", "0", "3");
	commit(f, "top", "T", "0", "5");
	assert_string_equal(corrected(f, "", "top"), "{\"correctionOffsets\":{0:1}}");
	assert_string_equal(corrected(f, "low", "top"), "{\"correctionOffsets\":{0:3}}");
	assert_string_equal(corrected(f, "x,low,y", "top"), "{\"correctionOffsets\":{0:3}}");
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("low"), 0), 1); /* it was only left out */
	/* Behind all that count: nothing to correct. */
	assert_string_equal(corrected(f, "low,mid", "low"), "{\"correctionOffsets\":{0:9223372036854775807}}");
}

static void offsets_are_copied_to_another_group(void **state)
{
	struct fixture *f = *state;

	send_n(f, "T", 0, 5);
	send_n(f, "T", 1, 5);
	send_n(f, "U", 0, 5);
	commit(f, "src", "T", "1", "4");
	commit(f, "src", "U", "0", "2");
	commit(f, "dst", "T", "0", "1");
	assert_int_equal(ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "dst", "topic", "T", NULL)->code,
			 RESP_SUCCESS);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("dst"), 1), 4);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("dst"), 0), -1); /* as src: none */
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("U"), MQ_STR("dst"), 0), -1);
	assert_int_equal(ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "all", NULL)->code, RESP_SUCCESS);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("all"), 1), 4);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("U"), MQ_STR("all"), 0), 2);
	assert_int_equal(ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "no good", NULL)->code,
			 RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "src", NULL)->code, RESP_SUCCESS);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("src"), 1), 4);
	/* What an online group has given up is not copied, unless it is said to be offline. */
	kit_heartbeat(f->k, f->c, "one", "src", "U", "*");
	ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "on", NULL);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("on"), 1), -1);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("U"), MQ_STR("on"), 0), 2);
	ask(f->k, f->c, REQ_CLONE_GROUP_OFFSET, NONE, "srcGroup", "src", "destGroup", "on", "offline", "true", NULL);
	assert_int_equal(offset_table_get(f->b->offsets, MQ_STR("T"), MQ_STR("on"), 1), 4);
}

static void progress_of_all_groups_at_once(void **state)
{
	struct fixture *f = *state;
	struct body_broker_progress p;
	struct mq_error e;

	send_n(f, "T", 0, 5);
	kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	commit(f, "g", "T", "0", "2");
	asked_free(kit_pull(f->k, f->c, "looks", "T", 0)); /* that is no consuming */
	struct asked *a = ask(f->k, f->c, REQ_GET_BROKER_CONSUME_STATS, NONE, "isOrder", "false", NULL);
	assert_int_equal(body_broker_progress_decode(buf_view(&a->body), &p, &e), 0);
	assert_int_equal(p.total_diff, 3);
	assert_int_equal(p.n, 1);
	assert_true(str_is(p.group[0].group, "g"));
	assert_int_equal(p.group[0].n, 1);
	assert_int_equal(p.group[0].stats[0].n, 4);
	body_broker_progress_free(&p);
	assert_string_equal(body(ask(f->k, f->c, REQ_QUERY_TOPIC_CONSUME_BY_WHO, NONE, "topic", "T", NULL)), "{\"groupList\":[\"g\"]}");
	assert_null(strstr(body(ask(f->k, f->c, REQ_QUERY_TOPICS_BY_CONSUMER, NONE, "group", "looks", NULL)), "\"T\""));
	a = ask(f->k, f->c, REQ_GET_BROKER_CONSUME_STATS, NONE, "isOrder", "true", NULL); /* T is not in order */
	assert_int_equal(body_broker_progress_decode(buf_view(&a->body), &p, &e), 0);
	assert_int_equal(p.total_diff, 0);
	body_broker_progress_free(&p);
}

/* ---- Clients ---------------------------------------------------------------------------------------------------------------- */

static void a_message_is_handed_to_a_client(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;
	char id[64];
	struct asked *a;

	snprintf(id, sizeof id, "%s", asked_get(kit_send(f->k, f->c, "T", 0, "direct", "x"), "msgId"));
	kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	broker_kit_answers(f->k, REQ_CONSUME_MESSAGE_DIRECTLY, "{\"consumeResult\":\"CR_SUCCESS\"}");
	a = ask(f->k, f->c, REQ_CONSUME_MESSAGE_DIRECTLY, NONE, "consumerGroup", "g", "clientId", "one", "msgId", id, "brokerName", "z", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(body(a), "{\"consumeResult\":\"CR_SUCCESS\"}");
	a = broker_kit_last(f->k);
	assert_string_equal(asked_get(a, "brokerName"), "b");
	assert_string_equal(asked_get(a, "consumerGroup"), "g");
	assert_true(mq_message_decode(a->body.p, a->body.n, true, &m) > 0);
	assert_true(str_is(m.body, "direct"));
	assert_int_equal(ask(f->k, f->c, REQ_CONSUME_MESSAGE_DIRECTLY, NONE, "consumerGroup", "g", "clientId", "two", "msgId", id, NULL)->code,
			 RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_CONSUME_MESSAGE_DIRECTLY, NONE, "consumerGroup", "g", "clientId", "one", "msgId", "zz", NULL)->code,
			 RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_CONSUME_MESSAGE_DIRECTLY, NONE, "consumerGroup", "g", "clientId", "one", "msgId",
			     "7F000001000070EF0000000000FFFFFF", NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_CONSUME_MESSAGE_DIRECTLY, NONE, "consumerGroup", "g", "clientId", "one", NULL)->code,
			 RESP_SYSTEM_ERROR);
}

static void the_clients_of_a_group_say_how_far_they_are(void **state)
{
	struct fixture *f = *state;
	struct conn *c = broker_kit_dial(f->k, false), *deaf = broker_kit_dial(f->k, false);
	struct asked *a;

	a = ask(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", NULL);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "No Any Consumer online"));
	kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	kit_heartbeat(f->k, c, "two", "g", "T", "*");
	broker_kit_answers(f->k, REQ_GET_CONSUMER_STATUS_FROM_CLIENT,
			   "{\"messageQueueTable\":{{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}:7}}");
	a = ask(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(body(a), "{\"consumerTable\":{\"one\":{{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}:7},"
			    "\"two\":{{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}:7}},\"messageQueueTable\":{}}");
	assert_string_equal(asked_get(broker_kit_last(f->k), "topic"), "T");
	a = ask(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", "clientAddr", "two", NULL);
	assert_null(strstr(body(a), "one"));
	assert_non_null(strstr(body(a), "two"));
	a = ask(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", "clientAddr", "x", NULL);
	assert_string_equal(body(a), "{\"consumerTable\":{},\"messageQueueTable\":{}}");
	/* One answers rubbish, one goes away: an answer comes all the same. */
	broker_kit_answers(f->k, REQ_GET_CONSUMER_STATUS_FROM_CLIENT, "{{{");
	a = ask(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", NULL);
	assert_string_equal(body(a), "{\"consumerTable\":{},\"messageQueueTable\":{}}");
	kit_heartbeat(f->k, deaf, "deaf", "h", "T", "*");
	broker_kit_answers(f->k, 0, NULL);
	a = ask_later(f->k, f->c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "h", NULL);
	broker_kit_settle(f->k);
	assert_false(a->done);
	broker_kit_hang_up(f->k, deaf);
	asked_wait(f->k, a);
	assert_string_equal(body(a), "{\"consumerTable\":{},\"messageQueueTable\":{}}");
	asked_free(a);
}

static void the_subscription_of_a_group(void **state)
{
	struct fixture *f = *state;
	struct asked *a = ask(f->k, f->c, REQ_QUERY_SUBSCRIPTION_BY_CONSUMER, NONE, "group", "g", "topic", "T", NULL);

	assert_string_equal(body(a), "{\"group\":\"g\",\"topic\":\"T\"}");
	kit_heartbeat(f->k, f->c, "one", "g", "T", "a||b");
	a = ask(f->k, f->c, REQ_QUERY_SUBSCRIPTION_BY_CONSUMER, NONE, "group", "g", "topic", "T", NULL);
	assert_non_null(strstr(body(a), "\"subscriptionData\":{"));
	assert_non_null(strstr(body(a), "\"subString\":\"a||b\""));
	assert_string_equal(body(ask(f->k, f->c, REQ_GET_ALL_MESSAGE_REQUEST_MODE, NONE, NULL)), "{\"messageRequestModeMap\":{}}");
}

/* ---- Topics, store ---------------------------------------------------------------------------------------------------------- */

static void topics_in_a_list(void **state)
{
	struct fixture *f = *state;
	struct topic *t;
	struct asked *a;

	a = ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC_LIST,
		MQ_STR("{\"topicConfigList\":[{\"topicName\":\"L1\",\"readQueueNums\":2,\"writeQueueNums\":3,\"perm\":6,"
		       "\"attributes\":{\"+message.type\":\"FIFO\"}},{\"topicName\":\"L2\",\"readQueueNums\":5,\"writeQueueNums\":5,\"perm\":4}]}"),
		NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	t = topic_table_find(f->b->topics, MQ_STR("L1"));
	assert_int_equal(t->conf.write, 3);
	assert_true(t->conf.nattrs == 1 && str_is(t->conf.attr[0].value, "FIFO"));
	assert_int_equal(topic_table_find(f->b->topics, MQ_STR("L2"))->conf.perm, 4);
	a = ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC_LIST, MQ_STR("{\"topicConfigList\":[{\"topicName\":\"L 3\"}]}"), NULL);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC_LIST, MQ_STR("{}"), NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC_LIST, MQ_STR("rubbish"), NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC_LIST, MQ_STR("{\"topicConfigList\":[7,null,{}]}"), NULL)->code,
			 RESP_SYSTEM_ERROR);
}

/* Queues of a topic that is in no table: as after topics.json was lost. */
static void queues_of_unknown_topics_are_removed_on_request(void **state)
{
	struct broker_kit *k;
	struct conn *c;
	struct mq_error e;
	void *dir;
	char path[300];

	assert_int_equal(tempdir_make(&dir), 0);
	k = broker_kit_start_in(dir, NULL, &e);
	c = broker_kit_dial(k, false);
	kit_send(k, c, "gone", 0, "x", NULL);
	broker_kit_stop(k);
	snprintf(path, sizeof path, "%s", tempdir_path(dir, "store/config/topics.json"));
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof path, "%s", tempdir_path(dir, "store/config/topics.json.bak"));
	unlink(path);
	k = broker_kit_start_in(dir, NULL, &e);
	c = broker_kit_dial(k, false);
	kit_send(k, c, "here", 0, "x", NULL);
	snprintf(path, sizeof path, "%s", tempdir_path(dir, "store/consumequeue/gone"));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(ask(k, c, REQ_CLEAN_UNUSED_TOPIC, NONE, NULL)->code, RESP_SUCCESS);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(asked_i64(ask(k, c, REQ_GET_MAX_OFFSET, NONE, "topic", "here", "queueId", "0", NULL), "offset"), 1);
	assert_int_equal(ask(k, c, REQ_CLEAN_UNUSED_TOPIC, NONE, NULL)->code, RESP_SUCCESS);
	broker_kit_stop(k);
	tempdir_remove(&dir);
}

/* With fileReservedTime=0 each segment but the last may go; its queue entries are of no use then. */
static void expired_segments_and_queues_go_at_any_hour(void **state)
{
	const char *props[] = { "fileReservedTime=0", "mappedFileSizeCommitLog=65536", "flushDiskType=SYNC_FLUSH", "deleteWhen=99", NULL };
	struct broker_kit *k = broker_kit_start(props);
	struct conn *c = broker_kit_dial(k, false);
	static char big[20000];
	struct asked *a;

	memset(big, 'x', sizeof big - 1);
	kit_send(k, c, "old", 0, "first", NULL);
	for (int i = 0; i < 12; i++)
		kit_send(k, c, "T", 0, big, NULL);
	assert_int_equal(ask(k, c, REQ_DELETE_EXPIRED_COMMITLOG, NONE, NULL)->code, RESP_SUCCESS);
	assert_true(mqstore_log_min(broker_kit_broker(k)->store) > 0);
	assert_int_equal(asked_i64(ask(k, c, REQ_GET_MAX_OFFSET, NONE, "topic", "old", "queueId", "0", NULL), "offset"), 1);
	assert_int_equal(ask(k, c, REQ_CLEAN_EXPIRED_CONSUMEQUEUE, NONE, NULL)->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(ask(k, c, REQ_GET_MAX_OFFSET, NONE, "topic", "old", "queueId", "0", NULL), "offset"), 0);
	assert_true(asked_i64(ask(k, c, REQ_GET_MAX_OFFSET, NONE, "topic", "T", "queueId", "0", NULL), "offset") > 0);
	/* The topic is still there and starts anew. */
	a = kit_send(k, c, "old", 0, "second", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	broker_kit_stop(k);
}

static void a_master_without_replicas(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	char want[100];

	send_n(f, "T", 0, 1);
	a = ask(f->k, f->c, REQ_GET_BROKER_HA_STATUS, NONE, NULL);
	snprintf(want, sizeof want, "\"haConnectionInfo\":[],\"inSyncSlaveNums\":0,\"refused\":[],\"master\":true,\"masterCommitLogMaxOffset\":%lld}",
		 (long long)mqstore_log_max(f->b->store));
	assert_non_null(strstr(body(a), want));
}

static void the_longest_turn_is_told(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_run(f->k, 5);
	assert_true(rates_longest_turn_ms(f->b->rates) < 10000);
	a = ask(f->k, f->c, REQ_GET_BROKER_RUNTIME_INFO, NONE, NULL);
	assert_non_null(strstr(body(a), "\"putMessageEntireTimeMax\":\""));
	assert_non_null(strstr(body(a), "\"getMessageEntireTimeMax\":\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tally_forgets_after_a_minute_an_hour_a_day),
		cmocka_unit_test_setup_teardown(sends_and_pulls_are_counted_by_topic_and_group, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_of_a_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(how_old_is_what_a_group_consumes, setup, teardown),
		cmocka_unit_test_setup_teardown(the_lowest_offset_of_all_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(offsets_are_copied_to_another_group, setup, teardown),
		cmocka_unit_test_setup_teardown(progress_of_all_groups_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_message_is_handed_to_a_client, setup, teardown),
		cmocka_unit_test_setup_teardown(the_clients_of_a_group_say_how_far_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(the_subscription_of_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(topics_in_a_list, setup, teardown),
		cmocka_unit_test(queues_of_unknown_topics_are_removed_on_request),
		cmocka_unit_test(expired_segments_and_queues_go_at_any_hour),
		cmocka_unit_test_setup_teardown(a_master_without_replicas, setup, teardown),
		cmocka_unit_test_setup_teardown(the_longest_turn_is_told, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
