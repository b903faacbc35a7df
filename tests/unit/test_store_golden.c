/* test_store_golden.c: stores that the Java broker 5.2.0 has left (tests/golden/store), against what a Java client saw of them.
 *
 * Each is looked at three times: read-only, where not a byte may change; opened for writing, which recovers it; and once more
 * after that was closed. */
#include "golden_store.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/mem.h"
#include "base/str.h"
#include "codec/batch.h"

#include <jansson.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)

/* The store under HERE/store, its manifest returned. */
static json_t *unpack(const char *here, const char *name)
{
	free(golden_store(here, name));
	return golden_manifest(name);
}

static const char *text(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static int64_t number(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

/* ---- One message ----------------------------------------------------------------------------------------------------- */

static void check_body(struct mqstore *s, const struct mq_message *m, json_t *want)
{
	static void *scratch;
	static size_t cap;
	unsigned char sum[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(sum) + 1];
	struct mq_str body;

	assert_int_equal(mq_message_body(m, 16 << 20, &scratch, &cap, &body), 0);
	assert_int_equal(body.n, number(want, "bodyLen"));
	crypto_hash_sha256(sum, (const unsigned char *)body.p, body.n);
	sodium_bin2hex(hex, sizeof(hex), sum, sizeof(sum));
	assert_string_equal(hex, text(want, "bodySha256"));
	if (json_object_get(want, "storedBodyLen"))
		assert_int_equal(m->body.n, number(want, "storedBodyLen"));
}

static void check_props(const struct mq_message *m, json_t *want)
{
	const char *key;
	json_t *v;

	json_object_foreach(want, key, v) {
		struct mq_str got = mq_prop_get(m->props, key);

		/* Junk behind the properties of a light message, of which the client makes a name that is no text. */
		if (str_is(m->topic, "FeatLmq") && key[strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789#")])
			continue;
		if (got.n != json_string_length(v) || memcmp(got.p, json_string_value(v), got.n) != 0)
			fail_msg("property %s: '" MQ_STR_FMT "', expected '%s'", key, MQ_STR_ARG(got), json_string_value(v));
	}
}

static bool is_batch(const char *topic)
{
	return strcmp(topic, "FeatBcq") == 0;
}

/* A message inside of a batch that is one record: the record comes, and its body holds the message. */
static void check_member(struct mqstore *s, struct mqstore_queue *q, json_t *want)
{
	struct mqstore_get_opt o = { .max_messages = 1, .max_bytes = 1 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	int64_t off = number(want, "queueOffset"), base;
	struct batch_item item;
	struct mq_message m;
	size_t pos = 0;

	assert_int_equal(mqstore_get(s, q, off, &o, res), 0);
	assert_int_equal(res->status, MQSTORE_FOUND);
	assert_true(mq_message_decode(res->record[0].p, res->record[0].n, true, &m) > 0);
	assert_int_equal(m.log_off, number(want, "commitLogOffset"));
	base = m.queue_off;
	assert_true(base <= off && off < res->next_off);
	if (!(m.sys_flag & MQ_SYS_INNER_BATCH)) {
		assert_int_equal(base, off);
		check_body(s, &m, want);
	} else {
		for (int64_t i = base; i <= off; i++)
			assert_int_equal(batch_next(m.body, &pos, &item), 1);
		m.body = item.body;
		m.sys_flag = 0;
		check_body(s, &m, want);
	}
	free(res);
}

static void check_message(struct mqstore *s, json_t *want)
{
	const char *topic = text(want, "topic");
	int id = (int)number(want, "queueId");
	struct mqstore_queue *q = mqstore_queue(s, str_of(topic), id, false);
	struct mqstore_get_opt o = { .max_messages = 1, .max_bytes = 1 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	char host[MQ_HOST_TEXT];
	struct mq_message m;

	if (is_batch(topic)) {
		check_member(s, q, want);
		free(res);
		return;
	}
	assert_non_null(q);
	assert_int_equal(mqstore_get(s, q, number(want, "queueOffset"), &o, res), 0);
	if (res->status != MQSTORE_FOUND)
		fail_msg("%s/%d offset %lld: %s", topic, id, (long long)number(want, "queueOffset"), mqstore_status_name(res->status));
	assert_true(mq_message_decode(res->record[0].p, res->record[0].n, true, &m) > 0);
	assert_int_equal(m.size, number(want, "storeSize"));
	assert_true(str_is(m.topic, topic));
	/* Of a compaction topic the client saw the copies in another log. */
	if (json_object_get(want, "view")) {
		check_body(s, &m, want);
		free(res);
		return;
	}
	assert_int_equal(m.log_off, number(want, "commitLogOffset"));
	assert_int_equal(m.queue_off, number(want, "queueOffset"));
	assert_int_equal(m.flag, number(want, "flag"));
	assert_int_equal(m.sys_flag, number(want, "sysFlag"));
	assert_int_equal(m.born_ms, number(want, "bornTimestamp"));
	assert_int_equal(m.store_ms, number(want, "storeTimestamp"));
	assert_int_equal(m.reconsume_times, number(want, "reconsumeTimes"));
	assert_int_equal(m.prepared_off, number(want, "preparedTransactionOffset"));
	assert_int_equal(m.body_crc, number(want, "bodyCRC"));
	assert_true(str_is(mq_prop_get(m.props, "UNIQ_KEY"), text(want, "msgId")) || !mq_prop_get(m.props, "UNIQ_KEY").n);
	if (m.born_host.len == 4)
		assert_string_equal(mq_host_text(&m.born_host, host), text(want, "bornHost"));
	check_body(s, &m, want);
	check_props(&m, json_object_get(want, "properties"));
	free(res);
}

/* ---- One store ------------------------------------------------------------------------------------------------------- */

static void check_queues(struct mqstore *s, json_t *m)
{
	json_t *q;
	size_t i;

	json_array_foreach(json_object_get(m, "queues"), i, q) {
		const char *topic = text(q, "topic");
		int id = (int)number(q, "queueId");

		if (kit_max(s, topic, id) != number(q, "maxOffset") || kit_min(s, topic, id) != number(q, "minOffset"))
			fail_msg("%s/%d: min %lld max %lld, expected %lld %lld", topic, id, (long long)kit_min(s, topic, id),
				 (long long)kit_max(s, topic, id), (long long)number(q, "minOffset"), (long long)number(q, "maxOffset"));
		if (!is_batch(topic))
			assert_int_equal(kit_count(s, topic, id, number(q, "minOffset"), NULL), number(q, "pulled"));
	}
}

static void check_queries(struct mqstore *s, json_t *m)
{
	int64_t off[64];
	json_t *q;
	size_t i;

	json_array_foreach(json_object_get(m, "queryByKey"), i, q) {
		json_t *want = json_object_get(q, "commitLogOffsets");
		int n;

		if (json_object_get(q, "error"))
			continue;
		n = mqstore_query(s, str_of(text(q, "topic")), str_of(text(q, "key")), 64, 0, INT64_MAX, off, NULL, NULL);
		if (n != (int)json_array_size(want))
			fail_msg("query %s %s: %d hits, expected %zu", text(q, "topic"), text(q, "key"), n, json_array_size(want));
		for (int k = 0; k < n; k++) {
			bool there = false;

			for (size_t j = 0; j < json_array_size(want); j++)
				there |= json_integer_value(json_array_get(want, j)) == off[k];
			assert_true(there);
		}
	}
}

static void check_times(struct mqstore *s, json_t *m)
{
	json_t *t;
	size_t i;

	json_array_foreach(json_object_get(m, "searchOffset"), i, t) {
		const char *topic = text(t, "topic");
		int id = (int)number(t, "queueId");
		int64_t got;

		got = mqstore_search_time(s, mqstore_queue(s, str_of(topic), id, false), number(t, "timestamp"), false);
		/* compat: the peer finds the last batch once more when nothing is so new; we find the end, as in any queue. */
		if (is_batch(topic) && got == kit_max(s, topic, id))
			continue;
		if (got != number(t, "offset"))
			fail_msg("search %s/%d at %lld: %lld, expected %lld", topic, id, (long long)number(t, "timestamp"), (long long)got,
				 (long long)number(t, "offset"));
	}
}

static int count_queue(void *arg, struct mqstore_queue *q)
{
	++*(int *)arg;
	return 0;
}

static void check_all(struct mqstore *s, json_t *m, bool searches)
{
	json_t *msg;
	size_t i;

	assert_int_equal(mqstore_log_min(s), number(m, "minCommitLogOffset"));
	check_queues(s, m);
	json_array_foreach(json_object_get(m, "messages"), i, msg)
		check_message(s, msg);
	check_queries(s, m);
	if (searches)
		check_times(s, m);
}

static struct mqstore *open_store(const char *here, bool read_only, bool adopt)
{
	const char *path = kit_path("%s/store", here);
	struct mqstore_opt o = kit_opt(path);

	if (adopt) {
		mqstore_defaults(&o);
		o.dir = path;
		o.min_free_bytes = 1;
	}
	o.read_only = read_only;
	o.adopt_sizes = adopt;
	return kit_open_opt(&o);
}

static void check_store(const char *here, const char *name)
{
	json_t *m = unpack(here, name);
	uint64_t sum = golden_fingerprint(kit_path("%s/store", here));
	struct mqstore *s = open_store(here, true, true);
	int queues = 0, again = 0;

	/* With the sizes found, and with those that broker.conf gives. */
	check_all(s, m, true);
	assert_int_equal(mqstore_refresh(s), 0);
	check_all(s, m, true);
	mqstore_each_queue(s, count_queue, &queues);
	kit_close(s);
	s = open_store(here, true, false);
	check_all(s, m, true);
	kit_close(s);
	assert_true(sum == golden_fingerprint(kit_path("%s/store", here)));

	s = open_store(here, false, false);
	while (mqstore_tend(s))
		;
	check_all(s, m, true);
	kit_append(s, "OursNow", 0, "written by us");
	kit_close(s);
	s = open_store(here, false, true);
	check_all(s, m, true);
	assert_string_equal(kit_body(s, "OursNow", 0, 0), "written by us");
	mqstore_each_queue(s, count_queue, &again);
	assert_int_equal(again, queues + 1);
	kit_close(s);
	json_decref(m);
}

static void a_store_stopped_in_order(void **state) { check_store(HERE, "clean"); }
static void a_store_with_old_segments_deleted(void **state) { check_store(HERE, "trimmed"); }
static void a_store_with_optional_formats(void **state) { check_store(HERE, "features"); }
static void a_store_with_junk_in_properties(void **state) { check_store(HERE, "features-nocrc"); }
static void a_store_with_ipv6_hosts(void **state) { check_store(HERE, "ipv6"); }
static void a_store_of_the_broker_4_9(void **state) { check_store(HERE, "v4.9.7"); }
static void a_store_of_the_broker_5_3(void **state) { check_store(HERE, "v5.3.2"); }
static void a_store_whose_last_record_is_torn(void **state) { check_store(HERE, "torn"); }

static void a_store_whose_broker_was_killed(void **state)
{
	json_t *m, *a;
	struct mqstore *s;
	size_t i;

	check_store(HERE, "crashed");
	m = golden_manifest("crashed");
	s = open_store(HERE, true, true);
	json_array_foreach(json_object_get(m, "acked"), i, a) {
		struct mq_str record;

		assert_int_equal(mqstore_at(s, number(a, "commitLogOffset"), &record), 0);
	}
	assert_int_equal(i, 263);
	kit_close(s);
	json_decref(m);
}

static void queues_are_made_again_when_all_their_files_are_lost(void **state)
{
	json_t *m = unpack(HERE, "clean"), *msg, *q;
	struct mqstore *s;
	size_t i;

	kit_remove(kit_path("%s/store/consumequeue", HERE));
	kit_remove(kit_path("%s/store/index", HERE));
	s = open_store(HERE, true, true);
	check_queues(s, m);
	json_array_foreach(json_object_get(m, "messages"), i, msg)
		check_message(s, msg);
	kit_close(s);
	s = open_store(HERE, false, false);
	while (mqstore_tend(s))
		;
	check_all(s, m, true);
	/* The same bytes as before: each entry of each queue. */
	json_array_foreach(json_object_get(m, "queues"), i, q) {
		struct mqstore_queue *mine = mqstore_queue(s, str_of(text(q, "topic")), (int)number(q, "queueId"), false);
		struct mqstore_entry e;

		for (int64_t off = 0; off < mqstore_queue_max(mine); off++)
			assert_int_equal(mqstore_entry(mine, off, &e), 0);
	}
	kit_close(s);
	json_decref(m);
}

static void entries_made_again_are_the_bytes_that_java_wrote(void **state)
{
	json_t *m = unpack(HERE, "clean");

	kit_copy(kit_path("%s/store/consumequeue", HERE), kit_path("%s/java", HERE));
	kit_remove(kit_path("%s/store/consumequeue", HERE));
	kit_close(open_store(HERE, false, false));
	assert_true(kit_sum(kit_path("%s/java", HERE)) == kit_sum(kit_path("%s/store/consumequeue", HERE)));
	json_decref(m);
}

static void a_batch_queue_that_lost_its_newest_entry(void **state)
{
	json_t *m = unpack(HERE, "features");
	const char *dir = kit_path("%s/store/batchconsumequeue", HERE);
	struct mqstore_place place;
	struct mqstore_record r;
	struct mq_error err;
	struct mqstore *s;
	uint64_t sum;

	sum = kit_sum(dir);
	kit_zero(kit_path("%s/FeatBcq/0/%020d", dir, 0), 46, 46);
	kit_touch(kit_path("%s/store/abort", HERE));
	assert_false(sum == kit_sum(dir));
	s = open_store(HERE, true, true);
	check_all(s, m, true);
	kit_close(s);
	s = open_store(HERE, false, true);
	check_all(s, m, true);
	/* The peer's own bytes. */
	assert_true(sum == kit_sum(dir));
	r = kit_record(kit_queue(s, "FeatBcq", 0), "x");
	assert_int_equal(mqstore_append(s, &r, 1, &place, &err), MQ_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "FeatBcq"));
	kit_close(s);
	json_decref(m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_store_stopped_in_order),
		TEST(a_store_with_old_segments_deleted),
		TEST(a_store_with_optional_formats),
		TEST(a_store_with_junk_in_properties),
		TEST(a_store_with_ipv6_hosts),
		TEST(a_store_of_the_broker_4_9),
		TEST(a_store_of_the_broker_5_3),
		TEST(a_store_whose_broker_was_killed),
		TEST(a_store_whose_last_record_is_torn),
		TEST(queues_are_made_again_when_all_their_files_are_lost),
		TEST(entries_made_again_are_the_bytes_that_java_wrote),
		TEST(a_batch_queue_that_lost_its_newest_entry),
	};

	if (sodium_init() < 0)
		return 1;
	kit_log_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
