/* test_broker_fault.c: the n-th system call of a broker goes wrong while it saves topics, groups, offsets, delay offsets, or is out
 * of room: it starts again by itself, keeps what it told to be kept, and is never left with nothing; a disk that is full refuses
 * sends, not reads, and messages are taken again when there is room. */
#include "broker_kit.h"
#include "base/str.h"
#include "base/sys.h"
#include "fault.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/group_table.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/topic_table.h"
#include "store_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LOOPS_MAX = 2000 };
#define NONE ((struct mq_str){ 0 })
#define HERE ((const char *)*state)

static struct broker_kit *start(const char *dir)
{
	struct mq_error e = { 0 };
	struct broker_kit *k = broker_kit_start_in(dir, NULL, &e);

	if (!k)
		fail_msg("after %s failed: %s", fault_name(), e.text);
	return k;
}

static int32_t make_topic(struct broker_kit *k, struct conn *c, const char *topic)
{
	return ask(k, c, REQ_UPDATE_AND_CREATE_TOPIC, NONE, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", "3",
		   "writeQueueNums", "3", "perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false", NULL)->code;
}

static int32_t make_group(struct broker_kit *k, struct conn *c, const char *body)
{
	return ask(k, c, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, str_of(body), NULL)->code;
}

static int32_t commit(struct broker_kit *k, struct conn *c, const char *off)
{
	return ask(k, c, REQ_UPDATE_CONSUMER_OFFSET, NONE, "consumerGroup", "keepers", "topic", "Kept", "queueId", "1", "commitOffset",
		   off, NULL)->code;
}

/* A broker's directory with a topic, a group, an offset, and a message that waits. */
static void make_base(const char *dir)
{
	struct broker_kit *k = start(dir);
	struct conn *c = broker_kit_dial(k, false);

	assert_int_equal(make_topic(k, c, "Kept"), RESP_SUCCESS);
	for (int i = 0; i < 3; i++)
		kit_send(k, c, "Kept", 1, "x", NULL);
	assert_int_equal(make_group(k, c, "{\"groupName\":\"keepers\",\"retryMaxTimes\":3}"), RESP_SUCCESS);
	kit_heartbeat(k, c, "me", "keepers", "Kept", "*");
	assert_int_equal(commit(k, c, "1"), RESP_SUCCESS);
	broker_kit_stop(k);
}

struct done {
	bool topic, group, saved;       /* the broker takes them for saved: the new topic, the group (which it said), the offset */
	struct asked *pending;          /* may wait until the stop */
};

/* Change all of it, and stop. */
static void change(struct broker_kit *k, struct conn *c, struct done *d)
{
	struct broker *b = broker_kit_broker(k);
	struct asked *a = ask_later(k, c, REQ_UPDATE_AND_CREATE_TOPIC, NONE, "topic", "New", "defaultTopic", "TBW102", "readQueueNums",
				    "3", "writeQueueNums", "3", "perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0",
				    "order", "false", NULL);

	d->group = make_group(k, c, "{\"groupName\":\"keepers\",\"retryMaxTimes\":7}") == RESP_SUCCESS;
	commit(k, c, "2");
	table_file_save(&b->offsets->file);
	broker_kit_settle(k);
	d->topic = topic_table_find(b->topics, MQ_STR("New")) && table_file_is_saved(&b->topics->file);
	d->saved = table_file_is_saved(&b->offsets->file);
	d->pending = a;
}

static void is_kept(const char *dir, const struct done *d)
{
	struct broker_kit *k = start(dir);
	struct broker *b = broker_kit_broker(k);
	struct topic *t = topic_table_find(b->topics, MQ_STR("Kept"));
	struct group *g = group_table_look(b->groups, MQ_STR("keepers"));
	int64_t off = offset_table_get(b->offsets, MQ_STR("Kept"), MQ_STR("keepers"), 1);

	if (!t || !g || off < 1)
		fail_msg("after %s failed: topic %s, group %s, offset %lld", fault_name(), t ? "there" : "lost", g ? "there" : "lost",
			 (long long)off);
	assert_int_equal(t->conf.read, 3);
	assert_true(g->conf.retry_max == 7 || (g->conf.retry_max == 3 && !d->group));
	assert_true(topic_table_find(b->topics, MQ_STR("New")) || !d->topic);
	assert_true(off == 2 || (off == 1 && !d->saved));
	assert_int_equal(mqstore_queue_max(mqstore_queue(b->store, MQ_STR("Kept"), 1, false)), 3);
	broker_kit_stop(k);
}

static void saving(void **state, enum fault_kind kind, int error)
{
	char *base = strdup(kit_path("%s/base", HERE));
	int n, refused = 0;

	make_base(base);
	for (n = 1; n < LOOPS_MAX; n++) {
		char *dir = strdup(kit_path("%s/%d", HERE, n));
		struct done d = { 0 };
		struct broker_kit *k;
		struct conn *c;
		bool fired;

		kit_copy(base, dir);
		k = start(dir);
		c = broker_kit_dial(k, false);
		fault_set(n, error, kind);
		change(k, c, &d);
		fired = fault_fired();
		refused += !d.topic || !d.group || !d.saved;
		broker_kit_stop(k); /* the rest of it fails too, when the process is taken for dead */
		asked_free(d.pending);
		fault_off();
		is_kept(dir, &d);
		kit_remove(dir);
		free(dir);
		if (!fired)
			break;
	}
	free(base);
	assert_true(n > 15 && n < LOOPS_MAX);
	assert_true(kind == FAULT_SHORT ? refused == 0 : refused > 5);
}

static void saving_meets_a_failure(void **state) { saving(state, FAULT_ONCE, EIO); }
static void saving_on_a_disk_that_is_full(void **state) { saving(state, FAULT_CRASH, ENOSPC); }
static void saving_ends_with_the_process(void **state) { saving(state, FAULT_TORN, EIO); }
static void saving_with_short_writes(void **state) { saving(state, FAULT_SHORT, 0); }

/* ---- A disk that fills up ---------------------------------------------------------------------------------------------------- */

static int64_t room;

static int limited_fallocate(int fd, off_t off, off_t n)
{
	if (__atomic_sub_fetch(&room, n, __ATOMIC_RELAXED) < 0)
		return -ENOSPC;
	return sys_real.fallocate(fd, off, n);
}

static void a_full_disk_refuses_sends_and_not_reads_until_there_is_room(void **state)
{
	struct broker_kit *k = start(HERE);
	struct conn *c = broker_kit_dial(k, false);
	static char body[3000];
	struct asked *a, *pulled;
	int taken = 0, again;

	memset(body, 'b', sizeof(body) - 1);
	assert_int_equal(kit_send(k, c, "T", 0, "first", NULL)->code, RESP_SUCCESS);
	room = 200000;
	sys.fallocate = limited_fallocate;
	while ((a = kit_send(k, c, "T", 0, body, NULL))->code == RESP_SUCCESS && taken < 1000)
		taken++;
	assert_in_range(taken, 1, 999);
	assert_int_equal(a->code, RESP_SERVICE_NOT_AVAILABLE);
	assert_non_null(strstr(a->remark.p, HERE)); /* where there is no room */
	assert_int_equal(kit_send(k, c, "T", 0, body, NULL)->code, RESP_SERVICE_NOT_AVAILABLE);
	pulled = kit_pull_later(k, c, "g", "T", 0, 0, "*", 0);
	asked_wait(k, pulled);
	assert_int_equal(pulled->code, RESP_SUCCESS);
	assert_int_equal(strncmp(asked_bodies(pulled), "first", 5), 0);
	asked_free(pulled);
	/* Nobody is told that there is room again; the next send finds it. */
	__atomic_store_n(&room, (int64_t)1 << 30, __ATOMIC_RELAXED);
	for (again = 0; again < 100; again++) {
		a = kit_send(k, c, "T", 0, body, NULL);
		assert_int_equal(a->code, RESP_SUCCESS);
		assert_int_equal(asked_i64(a, "queueOffset"), 1 + taken + again); /* what was refused used up none */
	}
	fault_off();
	broker_kit_stop(k);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(saving_meets_a_failure),
		TEST(saving_on_a_disk_that_is_full),
		TEST(saving_ends_with_the_process),
		TEST(saving_with_short_writes),
		TEST(a_full_disk_refuses_sends_and_not_reads_until_there_is_room),
	};

	kit_log_start();
	fault_without_syncs();
	return cmocka_run_group_tests_name("broker_fault", tests, NULL, NULL);
}
