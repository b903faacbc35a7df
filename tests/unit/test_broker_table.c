/* test_broker_table.c: the tables on the disk: what survives, what a broken file does; topics and their rules; any request with
 * any rubbish is answered once. */
#include "broker_kit.h"
#include "base/str.h"
#include "base/sys.h"
#include "fault.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/group_table.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/topic_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

static struct asked *make(struct broker_kit *k, struct conn *c, const char *topic, const char *queues, const char *perm,
                          const char *attributes)
{
	return ask(k, c, REQ_UPDATE_AND_CREATE_TOPIC, NONE, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", queues,
		   "writeQueueNums", queues, "perm", perm, "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false",
		   "attributes", attributes, NULL);
}

static bool contains(const struct buf *b, const char *text)
{
	return memmem(b->p, b->n, text, strlen(text)) != NULL;
}

/* ---- Topics ---------------------------------------------------------------------------------------------------------------- */

static void topics_are_made_changed_and_deleted(void **state)
{
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);
	struct asked *a;
	char *path = strdup(tempdir_path((void *)broker_kit_dir(k), "store/config/topics.json")), *text;

	assert_int_equal(make(k, c, "T", "8", "6", "+message.type=FIFO")->code, RESP_SUCCESS);
	text = tempdir_read(path); /* answered: so it is on the disk */
	assert_non_null(strstr(text, "\"T\":{\"attributes\":{\"message.type\":\"FIFO\"}"));
	free(text);
	a = ask(k, c, REQ_GET_TOPIC_CONFIG, NONE, "topic", "T", NULL);
	assert_true(contains(&a->body, "\"readQueueNums\":8"));
	assert_int_equal(make(k, c, "T", "4", "4", "")->code, RESP_SUCCESS);
	a = ask(k, c, REQ_GET_TOPIC_CONFIG, NONE, "topic", "T", NULL);
	assert_true(contains(&a->body, "\"perm\":4") && contains(&a->body, "\"readQueueNums\":4") && contains(&a->body, "FIFO"));
	a = ask(k, c, REQ_GET_ALL_TOPIC_CONFIG, NONE, NULL);
	assert_true(contains(&a->body, "\"topicConfigTable\":{") && contains(&a->body, "\"T\":{") && contains(&a->body, "\"TBW102\":{"));
	assert_int_equal(ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	assert_int_equal(ask(k, c, REQ_GET_TOPIC_CONFIG, NONE, "topic", "T", NULL)->code, RESP_TOPIC_NOT_EXIST);
	text = tempdir_read(path);
	assert_null(strstr(text, "\"T\":{"));
	free(text);
	assert_int_equal(ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS); /* again: fine */
	assert_int_equal(ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "TBW102", NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "C", NULL)->code, RESP_SYSTEM_ERROR); /* the cluster's */
	assert_int_equal(ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", " ", NULL)->code, RESP_SYSTEM_ERROR);
	free(path);
	broker_kit_stop(k);
}

/* Questions about a deleted topic do not bring it back. */
static void a_deleted_topic_stays_away(void **state)
{
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);
	struct broker *b = broker_kit_broker(k);

	kit_send(k, c, "T", 0, "x", NULL);
	ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL);
	ask(k, c, REQ_GET_MAX_OFFSET, NONE, "topic", "T", "queueId", "0", NULL);
	ask(k, c, REQ_GET_MIN_OFFSET, NONE, "topic", "T", "queueId", "0", NULL);
	ask(k, c, REQ_SEARCH_OFFSET_BY_TIMESTAMP, NONE, "topic", "T", "queueId", "0", "timestamp", "1", NULL);
	ask(k, c, REQ_GET_EARLIEST_MSG_STORETIME, NONE, "topic", "T", "queueId", "0", NULL);
	ask(k, c, REQ_QUERY_CONSUMER_OFFSET, NONE, "consumerGroup", "g", "topic", "T", "queueId", "0", NULL);
	ask(k, c, REQ_GET_CONSUME_STATS, NONE, "consumerGroup", "g", "topic", "T", NULL);
	assert_null(topic_table_find(b->topics, MQ_STR("T")));
	assert_null(mqstore_queue(b->store, MQ_STR("T"), 0, false));
	broker_kit_stop(k);
}

static void attributes_have_rules(void **state)
{
	static const struct {
		const char *have, *change, *words; /* words NULL: allowed */
	} rule[] = {
		{ NULL, "+message.type=DELAY", NULL },
		{ NULL, "message.type=DELAY", "+key=value" },
		{ NULL, "+message.type", "+key=value" },
		{ NULL, "-message.type", "new topic" },
		{ NULL, "+message.type=SOME", "none of" },
		{ NULL, "+colour=red", "unsupported key: colour" },
		{ NULL, "+message.type=FIFO,+message.type=DELAY", "duplication" },
		{ NULL, "+message.type=MIXED", "MIXED message type is not supported." },
		{ NULL, "+queue.type=SimpleCQ,+cleanup.policy=DELETE", NULL },
		{ NULL, "+queue.type=BatchCQ", "does not offer queue.type=BatchCQ" },
		{ NULL, "+cleanup.policy=COMPACTION", "does not offer cleanup.policy=COMPACTION" },
		{ "+message.type=FIFO", "+message.type=NORMAL", NULL },
		{ "+message.type=FIFO", "-message.type", NULL },
		{ "", "-message.type", "nonexistent" },
		{ "+queue.type=SimpleCQ", "-queue.type", "unchangeable" },
		{ "", "+cleanup.policy=DELETE", "unchangeable" },
	};
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);
	char topic[16];

	for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
		struct asked *a;

		snprintf(topic, sizeof topic, "T%zu", i);
		if (rule[i].have)
			assert_int_equal(make(k, c, topic, "1", "6", rule[i].have)->code, RESP_SUCCESS);
		a = make(k, c, topic, "1", "6", rule[i].change);
		if (rule[i].words ? a->code != RESP_SYSTEM_ERROR || !strstr(a->remark.p, rule[i].words) : a->code != RESP_SUCCESS)
			fail_msg("'%s' on '%s': code %d '%s'", rule[i].change, rule[i].have ? rule[i].have : "nothing", a->code, a->remark.p);
	}
	broker_kit_stop(k);
}

static void names_and_numbers_of_topics_have_bounds(void **state)
{
	static const char *const bad[] = { "a b", "a/b", "..", "", "a\nb", "TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x" };
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(make(k, c, bad[i], "1", "6", "")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(make(k, c, "T", "70000", "6", "")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(make(k, c, "T", "-1", "6", "")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(make(k, c, "T", "1", "99", "")->code, RESP_SYSTEM_ERROR);
	assert_null(topic_table_find(broker_kit_broker(k)->topics, MQ_STR("T")));
	broker_kit_stop(k);
}

/* ---- Files ----------------------------------------------------------------------------------------------------------------- */

struct files {
	void *dir;
};

static char *config(struct files *f, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "store/config/%s", name);
	return strdup(tempdir_path(f->dir, path));
}

static struct broker_kit *start(struct files *f)
{
	struct mq_error e = { 0 };
	struct broker_kit *k = broker_kit_start_in(f->dir, NULL, &e);

	if (!k)
		fail_msg("%s", e.text);
	return k;
}

static int setup_files(void **state)
{
	struct files *f = calloc(1, sizeof *f);
	struct broker_kit *k;
	struct conn *c;

	tempdir_make(&f->dir);
	*state = f;
	k = start(f);
	c = broker_kit_dial(k, false);
	make(k, c, "Kept", "3", "6", "");
	kit_send(k, c, "Kept", 1, "x", NULL);
	kit_heartbeat(k, c, "me", "keepers", "Kept", "*");
	ask(k, c, REQ_UPDATE_CONSUMER_OFFSET, NONE, "consumerGroup", "keepers", "topic", "Kept", "queueId", "1", "commitOffset", "1", NULL);
	broker_kit_stop(k);
	return 0;
}

static int teardown_files(void **state)
{
	struct files *f = *state;

	fault_off();
	tempdir_remove(&f->dir);
	free(f);
	return 0;
}

static void is_kept(struct broker_kit *k)
{
	struct broker *b = broker_kit_broker(k);
	struct topic *t = topic_table_find(b->topics, MQ_STR("Kept"));

	assert_non_null(t);
	assert_int_equal(t->conf.read, 3);
	assert_non_null(group_table_look(b->groups, MQ_STR("keepers")));
	assert_int_equal(offset_table_get(b->offsets, MQ_STR("Kept"), MQ_STR("keepers"), 1), 1);
}

static void everything_is_there_after_a_start(void **state)
{
	struct broker_kit *k = start(*state);
	struct mqstore_queue *q = mqstore_queue(broker_kit_broker(k)->store, MQ_STR("Kept"), 1, false);

	is_kept(k);
	assert_non_null(q);
	assert_int_equal(mqstore_queue_max(q), 1);
	broker_kit_stop(k);
}

static void each_start_has_another_data_version(void **state)
{
	struct broker_kit *k = start(*state);
	struct body_version first = broker_kit_broker(k)->topics->version;

	broker_kit_stop(k);
	k = start(*state);
	assert_false(body_version_eq(&first, &broker_kit_broker(k)->topics->version));
	broker_kit_stop(k);
}

static void an_empty_file_is_replaced_by_its_copy(void **state)
{
	struct files *f = *state;
	char *main = config(f, "topics.json"), *bak = config(f, "topics.json.bak"), *text = tempdir_read(main);
	struct broker_kit *k;

	tempdir_write(bak, text);
	tempdir_write(main, "");
	k = start(f);
	is_kept(k);
	broker_kit_stop(k);
	free(text);
	free(main);
	free(bak);
}

/* The next save must not put the broken file where the good one is, whenever the power goes. */
static void a_broken_file_never_reaches_the_copy(void **state)
{
	struct files *f = *state;
	char *main = config(f, "topics.json"), *bak = config(f, "topics.json.bak"), *good = tempdir_read(main), *text;
	struct mq_error e;
	struct broker_kit *k;
	bool fired = true;

	for (int n = 1; fired && n < 200; n++) {
		tempdir_write(bak, good);
		tempdir_write(main, "{");
		fault_set(n, EIO, FAULT_CRASH);
		k = broker_kit_start_in(f->dir, NULL, &e);
		if (k) {
			make(k, broker_kit_dial(k, false), "New", "1", "6", "");
			broker_kit_stop(k);
		}
		fired = fault_fired();
		fault_off();
		k = start(f);
		is_kept(k);
		broker_kit_stop(k);
	}
	assert_false(fired);
	text = tempdir_read(main);
	assert_non_null(strstr(text, "\"Kept\":"));
	free(text);
	free(good);
	free(main);
	free(bak);
}

static void with_both_broken_it_does_not_start_with_nothing(void **state)
{
	static const char *const name[] = { "topics.json", "subscriptionGroup.json", "consumerOffset.json" };
	struct files *f = *state;

	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
		char *main = config(f, name[i]), *bak, *good = tempdir_read(main);
		char copy[64];
		struct mq_error e;

		snprintf(copy, sizeof copy, "%s.bak", name[i]);
		bak = config(f, copy);
		tempdir_write(main, "{\"dataVersion\":");
		tempdir_write(bak, "nonsense");
		assert_null(broker_kit_start_in(f->dir, NULL, &e));
		assert_non_null(strstr(e.text, main));
		assert_non_null(strstr(e.text, bak));
		tempdir_write(main, good);
		free(main);
		free(bak);
		free(good);
	}
}

/* As Java writes them: bare numbers as keys, tabs, members in another order, more of them than we know. */
static void files_of_the_peer_are_read(void **state)
{
	struct files *f = *state;
	char *topics = config(f, "topics.json"), *offsets = config(f, "consumerOffset.json"), *groups = config(f, "subscriptionGroup.json");
	struct broker_kit *k;

	tempdir_write(topics, "{\n\t\"dataVersion\":{\n\t\t\"counter\":18,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1796057448466\n\t},\n"
		      "\t\"topicConfigTable\":{\n\t\t\"Kept\":{\n\t\t\t\"attributes\":{\"queue.type\":\"BatchCQ\"},\n\t\t\t\"order\":false,\n"
		      "\t\t\t\"perm\":6,\n\t\t\t\"readQueueNums\":3,\n\t\t\t\"topicFilterType\":\"MULTI_TAG\",\n\t\t\t\"topicName\":\"Kept\",\n"
		      "\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":2\n\t\t}\n\t}\n}");
	tempdir_write(offsets, "{\n\t\"dataVersion\":{\"counter\":0,\"stateVersion\":0,\"timestamp\":1},\n\t\"groupTopicMap\":{\"keepers\":[\"Kept\"]},\n"
		      "\t\"offsetTable\":{\"Kept@keepers\":{0:1,1:1,2:-1\n\t\t}}\n}");
	tempdir_write(groups, "{\"dataVersion\":{\"counter\":3,\"stateVersion\":0,\"timestamp\":2},\"forbiddenTable\":{\"keepers\":{\"U\":1}},"
		      "\"subscriptionGroupTable\":{\"keepers\":{\"groupName\":\"keepers\",\"retryMaxTimes\":3}}}");
	k = start(f);
	is_kept(k);
	assert_int_equal(offset_table_get(broker_kit_broker(k)->offsets, MQ_STR("Kept"), MQ_STR("keepers"), 2), -1);
	assert_int_equal(group_table_look(broker_kit_broker(k)->groups, MQ_STR("keepers"))->conf.retry_max, 3);
	assert_true(group_is_forbidden(group_table_look(broker_kit_broker(k)->groups, MQ_STR("keepers")), MQ_STR("U")));
	assert_int_equal(broker_kit_broker(k)->topics->version.counter, 19);
	/* A kind of queue that is not served is kept as it is, and takes no messages. */
	assert_int_equal(kit_send(k, broker_kit_dial(k, false), "Kept", 0, "x", NULL)->code, RESP_SYSTEM_ERROR);
	broker_kit_stop(k);
	free(topics);
	free(offsets);
	free(groups);
}

static void a_change_of_topics_that_cannot_be_kept_is_told_so_with_the_file(void **state)
{
	struct files *f = *state;
	char *aside = config(f, "topics.json.tmp"), *keep = config(f, "topics.json.tmp/x");
	struct broker_kit *k = start(f);
	struct conn *c = broker_kit_dial(k, false);
	struct asked *a;

	assert_int_equal(sys_mkdir_all(keep), 0); /* in the way of any save */
	a = make(k, c, "New", "4", "6", "");
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "config/topics.json'"));
	a = ask(k, c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "Kept", NULL);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "config/topics.json'"));
	assert_int_equal(kit_send(k, c, "BySend", 0, "x", NULL)->code, RESP_SUCCESS); /* the message is kept */
	assert_int_equal(sys_remove_tree(aside), 0);
	assert_int_equal(make(k, c, "New", "4", "6", "")->code, RESP_SUCCESS); /* as it was: tried again all the same */
	broker_kit_stop(k);
	k = start(f);
	assert_non_null(topic_table_find(broker_kit_broker(k)->topics, MQ_STR("New")));
	assert_non_null(topic_table_find(broker_kit_broker(k)->topics, MQ_STR("BySend")));
	assert_null(topic_table_find(broker_kit_broker(k)->topics, MQ_STR("Kept")));
	broker_kit_stop(k);
	free(aside);
	free(keep);
}

static void a_store_is_served_by_one_broker(void **state)
{
	struct broker_kit *k = start(*state);
	struct mq_error e;

	assert_null(broker_kit_start_in(((struct files *)*state)->dir, NULL, &e));
	assert_int_equal(e.code, MQ_EBUSY);
	assert_non_null(strstr(e.text, "in use by another broker"));
	broker_kit_stop(k);
}

/* ---- Rubbish ---------------------------------------------------------------------------------------------------------------- */

static void any_code_with_any_rubbish_is_answered_once(void **state)
{
	static const int32_t more[] = { 513, 901, 907, 1001, 5001, 32767, 99999, 200050, 200051, 200052, 200053, 200054, 200055, 200100, 200151, -1 };
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);
	struct buf big = { 0 };
	size_t n = 1 << 20;

	memset(buf_room(&big, n), 0xff, n);
	big.n = n;
	for (int i = 0; i < 420 + (int)(sizeof more / sizeof more[0]); i++) {
		int32_t code = i < 420 ? i : more[i - 420];
		struct mq_str body[] = { NONE, MQ_STR("{"), buf_view(&big) };

		for (int j = 0; j < (i % 20 ? 2 : 3); j++) {
			struct asked *a = ask(k, c, code, body[j], NULL);

			assert_int_equal(a->rc, 0);
			if (!request_find(code) || code == 0) {
				assert_int_equal(a->code, RESP_REQUEST_CODE_NOT_SUPPORTED);
				assert_non_null(strstr(a->remark.p, "not supported"));
			}
		}
		ask(k, c, code, MQ_STR("[]"), "topic", "T", "queueId", "x", "consumerGroup", "g", "offset", "99999999999999999999", "group", "g",
		    NULL);
	}
	assert_int_equal(kit_send(k, c, "T", 0, "still here", NULL)->code, RESP_SUCCESS);
	assert_int_equal(broker_kit_broker(k)->metrics.conns_closed, 0);
	buf_free(&big);
	broker_kit_stop(k);
}

int main(void)
{
#define F(test) cmocka_unit_test_setup_teardown(test, setup_files, teardown_files)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topics_are_made_changed_and_deleted),
		cmocka_unit_test(a_deleted_topic_stays_away),
		cmocka_unit_test(attributes_have_rules),
		cmocka_unit_test(names_and_numbers_of_topics_have_bounds),
		F(everything_is_there_after_a_start),
		F(each_start_has_another_data_version),
		F(an_empty_file_is_replaced_by_its_copy),
		F(a_broken_file_never_reaches_the_copy),
		F(with_both_broken_it_does_not_start_with_nothing),
		F(files_of_the_peer_are_read),
		F(a_change_of_topics_that_cannot_be_kept_is_told_so_with_the_file),
		F(a_store_is_served_by_one_broker),
		cmocka_unit_test(any_code_with_any_rubbish_is_answered_once),
	};

	return cmocka_run_group_tests_name("broker_table", tests, NULL, NULL);
}
