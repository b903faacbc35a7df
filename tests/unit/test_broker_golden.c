/* test_broker_golden.c: stores that the Java broker has left, served by this one: what its clients saw, ours see too. */
#include "broker_kit.h"
#include "golden_store.h"
#include "tempdir.h"
#include "base/str.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/topic_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

struct look {
	const char *store;
	struct broker_kit *k;
	struct conn *c;
	json_t *manifest;
};

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	assert_non_null(s);
	return s;
}

static int64_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static const char *decimal(int64_t v)
{
	static char ring[8][24];
	static int at;

	at = (at + 1) % 8;
	snprintf(ring[at], sizeof ring[at], "%lld", (long long)v);
	return ring[at];
}

/* Topics of other kinds of queues are kept and not served; those of no topic (timers) cannot be asked for. */
static bool is_served(struct look *l, const char *topic)
{
	struct topic *t = topic_table_find(broker_kit_broker(l->k)->topics, str_of(topic));

	return t && !t->unserved;
}

static void each_message_can_be_pulled(struct look *l)
{
	const json_t *m;
	size_t i, seen = 0;

	json_array_foreach(json_object_get(l->manifest, "messages"), i, m) {
		const char *topic = text(m, "topic");
		struct mq_message got;
		struct asked *a;

		if (!is_served(l, topic))
			continue;
		a = ask(l->k, l->c, REQ_PULL_MESSAGE, NONE, "consumerGroup", "look", "topic", topic, "queueId",
			decimal(number(m, "queueId")), "queueOffset", decimal(number(m, "queueOffset")), "maxMsgNums", "1", "sysFlag", "4",
			"commitOffset", "0", "suspendTimeoutMillis", "0", "subVersion", "0", "subscription", "*", NULL);
		if (a->code != RESP_SUCCESS)
			fail_msg("%s: %s queue %lld offset %lld: code %d %s", l->store, topic, (long long)number(m, "queueId"),
				 (long long)number(m, "queueOffset"), a->code, a->remark.p);
		assert_int_equal(mq_message_decode(a->body.p, a->body.n, true, &got), number(m, "storeSize"));
		assert_int_equal(got.log_off, number(m, "commitLogOffset"));
		assert_int_equal(got.queue_off, number(m, "queueOffset"));
		assert_int_equal(got.body_crc, number(m, "bodyCRC"));
		assert_int_equal(got.sys_flag, number(m, "sysFlag"));
		assert_int_equal(got.store_ms, number(m, "storeTimestamp"));
		a = ask(l->k, l->c, REQ_VIEW_MESSAGE_BY_ID, NONE, "offset", decimal(number(m, "commitLogOffset")), NULL);
		assert_int_equal(a->code, RESP_SUCCESS);
		assert_int_equal(a->body.n, number(m, "storeSize"));
		seen++;
	}
	assert_true(seen > 10);
}

static void queues_have_their_ends(struct look *l)
{
	const json_t *q;
	size_t i;

	json_array_foreach(json_object_get(l->manifest, "queues"), i, q) {
		const char *topic = text(q, "topic"), *id = decimal(number(q, "queueId"));
		int64_t max;

		if (!is_served(l, topic))
			continue;
		assert_int_equal(asked_i64(ask(l->k, l->c, REQ_GET_MIN_OFFSET, NONE, "topic", topic, "queueId", id, NULL), "offset"),
				 number(q, "minOffset"));
		max = asked_i64(ask(l->k, l->c, REQ_GET_MAX_OFFSET, NONE, "topic", topic, "queueId", id, NULL), "offset");
		if (max < number(q, "maxOffset")) /* more: what was due has been delivered since */
			fail_msg("%s: %s queue %s ends at %lld, not %lld", l->store, topic, id, (long long)max,
				 (long long)number(q, "maxOffset"));
	}
}

static void keys_find_their_messages(struct look *l)
{
	const json_t *q;
	size_t i;

	json_array_foreach(json_object_get(l->manifest, "queryByKey"), i, q) {
		struct asked *a = ask(l->k, l->c, REQ_QUERY_MESSAGE, NONE, "topic", text(q, "topic"), "key", text(q, "key"), "maxNum", "64",
				      "beginTimestamp", "0", "endTimestamp", "9223372036854775807", NULL);
		size_t want = json_array_size(json_object_get(q, "commitLogOffsets")), got = 0;

		for (size_t at = 0; at < a->body.n; got++) {
			struct mq_message m;
			int32_t n = mq_message_decode(a->body.p + at, a->body.n - at, true, &m);

			assert_true(n > 0);
			at += (size_t)n;
		}
		if (got < want)
			fail_msg("%s: key '%s' of %s found %zu messages, not %zu", l->store, text(q, "key"), text(q, "topic"), got, want);
	}
}

static void times_find_their_offsets(struct look *l)
{
	const json_t *q;
	size_t i;

	json_array_foreach(json_object_get(l->manifest, "searchOffset"), i, q) {
		if (!is_served(l, text(q, "topic")))
			continue;
		assert_int_equal(asked_i64(ask(l->k, l->c, REQ_SEARCH_OFFSET_BY_TIMESTAMP, NONE, "topic", text(q, "topic"), "queueId",
					       decimal(number(q, "queueId")), "timestamp", decimal(number(q, "timestamp")), NULL), "offset"),
				 number(q, "offset"));
	}
}

static void groups_stand_where_they_stood(struct look *l)
{
	json_t *topics, *off;
	const char *group, *queue;

	json_object_foreach(json_object_get(l->manifest, "consumerOffsets"), group, topics)
		json_object_foreach(topics, queue, off) {
			const char *at = strrchr(queue, '@');
			char topic[256];
			struct asked *a;

			if (!at || json_integer_value(off) < 0)
				continue;
			snprintf(topic, sizeof topic, "%.*s", (int)(at - queue), queue);
			a = ask(l->k, l->c, REQ_QUERY_CONSUMER_OFFSET, NONE, "consumerGroup", group, "topic", topic, "queueId", at + 1, NULL);
			if (asked_i64(a, "offset") != json_integer_value(off))
				fail_msg("%s: group %s in %s: %s, not %lld", l->store, group, queue, asked_get(a, "offset"),
					 (long long)json_integer_value(off));
		}
}

static void stores_of_the_java_broker_are_served(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000", "maxHashSlotNum=500",
					     "maxIndexNum=400", "fileReservedTime=1000000", NULL };

	for (size_t i = 0; golden_stores[i]; i++) {
		struct look l = { .store = golden_stores[i], .manifest = golden_manifest(golden_stores[i]) };
		struct mq_error e = { 0 };
		void *dir;

		assert_int_equal(tempdir_make(&dir), 0);
		free(golden_store(dir, l.store));
		l.k = broker_kit_start_in(dir, props, &e);
		if (!l.k)
			fail_msg("%s: %s", l.store, e.text);
		l.c = broker_kit_dial(l.k, false);
		each_message_can_be_pulled(&l);
		queues_have_their_ends(&l);
		keys_find_their_messages(&l);
		times_find_their_offsets(&l);
		groups_stand_where_they_stood(&l);
		broker_kit_stop(l.k);
		json_decref(l.manifest);
		tempdir_remove(&dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stores_of_the_java_broker_are_served) };

	return cmocka_run_group_tests_name("broker_golden", tests, NULL, NULL);
}
