/* Whole stores that the Java broker left, through the public interface: all that its clients saw is there, value by value; and
 * reading changes nothing, not even a time stamp. */
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "golden_store.h"
#include "tempdir.h"
#include <mqstore.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const char *golden; /* which store: for the messages of failures */
static int checked;

static int64_t i64(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static void same_i64(int64_t got, int64_t want, const char *what, const json_t *row)
{
	checked++;
	if (got == want)
		return;
	fail_msg("%s: %s is %lld, the Java client saw %lld: %s", golden, what, (long long)got, (long long)want,
		 json_dumps(row, JSON_COMPACT));
}

static void same_text(struct mq_str got, const char *want, const char *what, const json_t *row)
{
	checked++;
	if (str_is(got, want))
		return;
	fail_msg("%s: %s is '" MQ_STR_FMT "', the Java client saw '%s': %s", golden, what, MQ_STR_ARG(got), want,
		 json_dumps(row, JSON_COMPACT));
}

static void same_sha256(struct mq_str body, const char *want, const char *what, const json_t *row)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	crypto_hash_sha256(hash, (const unsigned char *)body.p, body.n);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	same_text(str_of(hex), want, what, row);
}

/* "127.0.0.1:43148", "[0:0:0:0:0:0:0:1]:58924" */
static void same_host(const struct mq_host *h, const char *want, const char *what, const json_t *row)
{
	char ip[64] = "";
	int port = 0;
	uint8_t raw[16] = { 0 };
	bool v6 = want[0] == '[';
	assert_int_equal(sscanf(want, v6 ? "[%63[^]]]:%d" : "%63[^:]:%d", ip, &port), 2);
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, ip, raw), 1);
	same_i64(h->len, v6 ? 16 : 4, what, row);
	same_i64(h->port, port, what, row);
	same_i64(memcmp(h->ip, raw, h->len), 0, what, row);
}

/* Properties in which Java found text that is none (20 bytes of junk at the end) cannot be told value by value. */
static void same_props(const struct mq_message *m, const json_t *row)
{
	json_t *want = json_object_get(row, "properties"), *v;
	const char *name;
	bool junk = false;
	size_t n = 0, pos = 0;
	struct mq_str key, value;
	json_object_foreach(want, name, v) {
		const char *w = json_string_value(v);
		if (strstr(name, "\xee\x80\x80") || strstr(name, "\xef\xbf\xbd") || strstr(w, "\xee\x80\x80") ||
		    strstr(w, "\xef\xbf\xbd")) {
			junk = true;
			continue;
		}
		same_text(mq_prop_get(m->props, name), w, name, row);
		n++;
	}
	if (junk)
		return;
	while (mq_prop_next(m->props, &pos, &key, &value)) {
		char one[256];
		snprintf(one, sizeof(one), MQ_STR_FMT, MQ_STR_ARG(key));
		if (json_object_get(want, one) == NULL)
			fail_msg("%s: property '%s' was not seen by the Java client: %s", golden, one, json_dumps(row, JSON_COMPACT));
	}
	assert_true(n > 0 || m->props.n == 0);
}

static void check_message(struct mqstore *s, const json_t *row, void **scratch, size_t *cap)
{
	const struct mqstore_get_opt one = { .max_messages = 1, .max_bytes = 1 };
	static struct mqstore_result r;
	struct mqstore_queue *q = mqstore_queue(s, str_of(text(row, "topic")), (int32_t)i64(row, "queueId"), false);
	struct mqstore_entry e;
	struct mq_message m;
	struct mq_str body, at;
	char id[MQ_ID_TEXT];
	if (q == NULL)
		fail_msg("%s: no queue for %s", golden, json_dumps(row, JSON_COMPACT));
	assert_int_equal(mqstore_get(s, q, i64(row, "queueOffset"), &one, &r), 0);
	same_i64(r.status, MQSTORE_FOUND, "status", row);
	same_i64(r.n, 1, "number of messages", row);
	same_i64(r.next_off, i64(row, "queueOffset") + 1, "next offset", row);
	same_i64(mq_message_decode(r.record[0].p, r.record[0].n, true, &m), i64(row, "storeSize"), "size", row);
	same_text(m.topic, text(row, "topic"), "topic", row);
	same_i64(m.queue_id, i64(row, "queueId"), "queue id", row);
	same_i64(m.queue_off, i64(row, "queueOffset"), "queue offset", row);
	same_i64(m.log_off, i64(row, "commitLogOffset"), "log offset", row);
	same_i64(m.body_crc, i64(row, "bodyCRC"), "checksum", row);
	same_i64(m.flag, i64(row, "flag"), "flag", row);
	same_i64(m.sys_flag, i64(row, "sysFlag"), "sys flag", row);
	same_i64(m.born_ms, i64(row, "bornTimestamp"), "born time", row);
	same_i64(m.store_ms, i64(row, "storeTimestamp"), "store time", row);
	same_i64(m.reconsume_times, i64(row, "reconsumeTimes"), "reconsume times", row);
	same_i64(m.prepared_off, i64(row, "preparedTransactionOffset"), "prepared offset", row);
	same_host(&m.born_host, text(row, "bornHost"), "born host", row);
	same_host(&m.store_host, text(row, "storeHost"), "store host", row);
	mq_offset_id(&m.store_host, m.log_off, id);
	same_text(str_of(id), text(row, "offsetMsgId"), "offset id", row);
	if (text(row, "keys"))
		same_text(mq_prop_get(m.props, "KEYS"), text(row, "keys"), "keys", row);
	if (text(row, "tags"))
		same_text(mq_prop_get(m.props, "TAGS"), text(row, "tags"), "tags", row);
	same_props(&m, row);
	same_i64(mq_message_body(&m, MQ_BODY_MAX, scratch, cap, &body), 0, "body in plain form", row);
	same_i64((int64_t)body.n, i64(row, "bodyLen"), "length of body", row);
	same_sha256(body, text(row, "bodySha256"), "body", row);
	if (json_object_get(row, "storedBodyLen"))
		same_i64((int64_t)m.body.n, i64(row, "storedBodyLen"), "length of stored body", row);
	if (json_object_get(row, "storedBodySha256"))
		same_sha256(m.body, text(row, "storedBodySha256"), "stored body", row);

	same_i64(mqstore_at(s, m.log_off, &at), 0, "record by log offset", row);
	same_i64(at.p == r.record[0].p && at.n == r.record[0].n, 1, "record by log offset", row);
	same_i64(mqstore_entry(q, m.queue_off, &e), 0, "queue entry", row);
	same_i64(e.log_off, m.log_off, "log offset of queue entry", row);
	same_i64(e.size, m.size, "size in queue entry", row);
	same_i64(mqstore_time_at(s, q, m.queue_off), m.store_ms, "time by queue offset", row);
}

static bool batch_queue(const char *topic) { return strcmp(topic, "FeatBcq") == 0; }

static void check_queues(struct mqstore *s, json_t *manifest)
{
	json_t *row;
	size_t i;
	json_array_foreach(json_object_get(manifest, "queues"), i, row) {
		if (batch_queue(text(row, "topic")))
			continue; /* in batchconsumequeue */
		struct mqstore_queue *q = mqstore_queue(s, str_of(text(row, "topic")), (int32_t)i64(row, "queueId"), false);
		same_i64(q ? mqstore_queue_min(q) : 0, i64(row, "minOffset"), "minimum offset", row);
		same_i64(q ? mqstore_queue_max(q) : 0, i64(row, "maxOffset"), "maximum offset", row);
	}
}

static void check_times(struct mqstore *s, json_t *manifest)
{
	json_t *row;
	size_t i;
	json_array_foreach(json_object_get(manifest, "searchOffset"), i, row) {
		if (batch_queue(text(row, "topic")))
			continue;
		struct mqstore_queue *q = mqstore_queue(s, str_of(text(row, "topic")), (int32_t)i64(row, "queueId"), false);
		same_i64(q ? mqstore_search_time(s, q, i64(row, "timestamp"), false) : 0, i64(row, "offset"), "offset by time", row);
	}
}

static void check_keys(struct mqstore *s, json_t *manifest, bool read_only)
{
	json_t *row, *want;
	size_t i;
	json_array_foreach(json_object_get(manifest, "queryByKey"), i, row) {
		int64_t off[64], last_ms, last_off;
		if (json_object_get(row, "error"))
			continue; /* the Java client could not read the answer */
		want = json_object_get(row, "commitLogOffsets");
		int n = mqstore_query(s, str_of(text(row, "topic")), str_of(text(row, "key")), 64, 0, INT64_MAX, off, &last_ms, &last_off);
		same_i64(n, (int64_t)json_array_size(want), "messages by key", row);
		for (int k = 0; k < n; k++)
			same_i64(off[k], json_integer_value(json_array_get(want, (size_t)k)), "message by key", row);
		/* Where nothing may be mended the index still speaks of the torn record, 8 ms later. */
		bool torn = strcmp(golden, "torn") == 0 && read_only && last_ms == i64(row, "indexLastUpdateTimestamp") + 8;
		if (!torn && json_object_get(row, "indexLastUpdateTimestamp")) /* not asked for of other versions */
			same_i64(last_ms, i64(row, "indexLastUpdateTimestamp"), "newest time of the index", row);
	}
}

static void count_record(void *arg, const struct mq_message *m, const char *record) { ++*(int *)arg; }

static int count_walked(void *arg, int64_t log_off, struct mq_str record)
{
	struct mq_message m;
	assert_int_equal(mq_message_decode(record.p, record.n, true, &m), record.n);
	assert_int_equal(m.log_off, log_off);
	++*(int *)arg;
	return 0;
}

static void check_log(struct mqstore *s, const char *store)
{
	int there = 0, walked = 0;
	golden_log(store, count_record, &there);
	assert_int_equal(mqstore_walk(s, 0, count_walked, &walked, NULL), 0);
	assert_int_equal(walked, there);
}

static void check_all(struct mqstore *s, json_t *manifest, bool read_only)
{
	void *scratch = NULL;
	size_t cap = 0, i;
	json_t *row;
	check_queues(s, manifest);
	json_array_foreach(json_object_get(manifest, "messages"), i, row)
		if (json_object_get(row, "view") == NULL)
			check_message(s, row, &scratch, &cap);
	check_times(s, manifest);
	check_keys(s, manifest, read_only);
	free(scratch);
}

static void options(struct mqstore_opt *o, const char *dir)
{
	mqstore_defaults(o);
	o->dir = dir;
	o->log_segment_bytes = GOLDEN_SEGMENT;
	o->queue_segment_bytes = GOLDEN_QUEUE_SEGMENT;
	o->index_slots = GOLDEN_SLOTS;
	o->index_entries = GOLDEN_ENTRIES;
}

static struct mqstore *open_ok(const struct mqstore_opt *o)
{
	struct mqstore *s;
	struct mq_error e = { 0 };
	if (mqstore_open(&s, o, &e) < 0)
		fail_msg("%s: %s", golden, e.text);
	return s;
}

static void reading_offline_finds_all_and_changes_nothing(void **state)
{
	golden = *state;
	void *dir;
	assert_int_equal(tempdir_make(&dir), 0);
	char *store = golden_store(dir, golden);
	json_t *manifest = golden_manifest(golden);
	uint64_t before = golden_fingerprint(dir);
	struct mqstore_opt o;
	checked = 0;
	options(&o, store);
	o.read_only = true;
	struct mqstore *s = open_ok(&o);
	check_all(s, manifest, o.read_only);
	check_log(s, store);
	assert_int_equal(mqstore_refresh(s), 0);
	check_all(s, manifest, o.read_only);
	assert_int_equal(mqstore_close(s, NULL), 0);
	assert_true(golden_fingerprint(dir) == before);

	/* As store:DIR does it: without broker.conf the sizes are not known. */
	mqstore_defaults(&o);
	o.dir = store;
	o.read_only = o.adopt_sizes = true;
	s = open_ok(&o);
	check_all(s, manifest, o.read_only);
	assert_int_equal(mqstore_close(s, NULL), 0);
	assert_true(golden_fingerprint(dir) == before);
	assert_true(checked > 100);
	json_decref(manifest);
	free(store);
	assert_int_equal(tempdir_remove(&dir), 0);
}

static void opening_for_writing_and_closing_loses_nothing(void **state)
{
	golden = *state;
	void *dir;
	assert_int_equal(tempdir_make(&dir), 0);
	char *store = golden_store(dir, golden);
	json_t *manifest = golden_manifest(golden);
	struct mqstore_opt o;
	for (int round = 0; round < 3; round++) {
		options(&o, store);
		o.read_only = round == 2;
		struct mqstore *s = open_ok(&o);
		check_all(s, manifest, o.read_only);
		assert_int_equal(mqstore_close(s, NULL), 0);
	}
	json_decref(manifest);
	free(store);
	assert_int_equal(tempdir_remove(&dir), 0);
}

/* The log alone is the truth: queues and index are made from it again. */
static void what_is_derived_may_be_removed(void **state)
{
	void *dir;
	struct mqstore_opt o;
	assert_int_equal(tempdir_make(&dir), 0);
	golden = "clean";
	char *store = golden_store(dir, golden), *queues = mem_printf("%s/consumequeue", store), *index = mem_printf("%s/index", store);
	json_t *manifest = golden_manifest(golden);
	for (int what = 0; what < 3; what++) {
		if (what != 1)
			assert_int_equal(sys_remove_tree(queues), 0);
		if (what != 0)
			assert_int_equal(sys_remove_tree(index), 0);
		options(&o, store);
		struct mqstore *s = open_ok(&o);
		check_all(s, manifest, false);
		assert_int_equal(mqstore_close(s, NULL), 0);
	}
	json_decref(manifest);
	free(store), free(queues), free(index);
	assert_int_equal(tempdir_remove(&dir), 0);
}

int main(void)
{
	static struct CMUnitTest tests[32];
	size_t n = 0;
	for (const char *const *g = golden_stores; *g; g++) {
		tests[n++] = (struct CMUnitTest){ mem_printf("reading offline finds all and changes nothing: %s", *g),
						  reading_offline_finds_all_and_changes_nothing, NULL, NULL, (void *)(uintptr_t)*g };
		tests[n++] = (struct CMUnitTest){ mem_printf("opening for writing and closing loses nothing: %s", *g),
						  opening_for_writing_and_closing_loses_nothing, NULL, NULL, (void *)(uintptr_t)*g };
	}
	tests[n++] = (struct CMUnitTest){ mem_printf("what is derived may be removed"), what_is_derived_may_be_removed, NULL, NULL, NULL };
	int failed = _cmocka_run_group_tests("offline", tests, n, NULL, NULL);
	while (n > 0)
		free((void *)(uintptr_t)tests[--n].name);
	return failed;
}
