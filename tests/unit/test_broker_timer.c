/* test_broker_timer.c: messages for a given time in a whole broker, by a clock that the test moves: when they come, what they look like,
 * what is refused, what cancels, and that they come once over stops, kills, and the loss of their files. */
#include "broker_life.h"
#include "base/byte.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/batch.h"
#include "codec/property.h"
#include "golden_store.h"
#include "store_kit.h"
#include "store/wheel.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/timer.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* The wheel is saved when a test says so. */
static const char *const still[] = { "timerFlushIntervalMs=100000", "mappedFileSizeTimerLog=4096", NULL };
static const char *const saving[] = { "timerFlushIntervalMs=20", "flushIntervalCommitLog=10", "mappedFileSizeTimerLog=4096", NULL };
enum { HOUR_MS = 3600000 };

struct fixture {
	struct life l;
	void *copy;             /* where a life goes on that was killed */
	int lives;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	return life_make(&f->l) || tempdir_make(&f->copy);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	life_end(&f->l);
	tempdir_remove(&f->copy);
	free(f);
	return 0;
}

/* What was sent is in the wheel. */
static void take_in(struct fixture *f)
{
	for (int i = 0; i < 50; i++)
		timer_run(life_broker(&f->l)->timer);
}

/* Wall time moves, and everything that is then to be done is done. */
static void jump(struct fixture *f, int64_t ms)
{
	take_in(f);
	life_shift(&f->l, ms);
	for (int i = 0; i < 50; i++)
		timer_run(life_broker(&f->l)->timer);
}

static void send_for(struct fixture *f, const char *body, int64_t deliver_ms, const char *more)
{
	char props[256];

	snprintf(props, sizeof props, "UNIQ_KEY\001U-%s\002TIMER_DELIVER_MS\001%lld\002%s", body, (long long)deliver_ms, more);
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, body, props)->code, RESP_SUCCESS);
}

static void send_after(struct fixture *f, const char *body, int64_t ms)
{
	send_for(f, body, clock_wall_ms() + ms, "");
}

/* A cancellation of what is due at that time. */
static void cancel(struct fixture *f, const char *key, int64_t deliver_ms)
{
	char props[256];

	snprintf(props, sizeof props, "TIMER_DEL_UNIQKEY\001%s\002TIMER_DELIVER_MS\001%lld\002", key, (long long)deliver_ms);
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, "cancel", props)->code, RESP_SUCCESS);
}

/* The bodies of a queue, joined by blanks. */
static const char *bodies(struct fixture *f, const char *topic, int queue)
{
	static struct buf out;

	out.n = 0;
	for (int64_t off = 0; off < kit_stored(f->l.k, topic, queue); off++) {
		if (off)
			buf_char(&out, ' ');
		buf_str(&out, kit_look(f->l.k, topic, queue, off).body);
	}
	buf_char(&out, 0);
	return out.p;
}

static int64_t pending(struct fixture *f)
{
	struct timer_stat st;

	timer_stat(life_broker(&f->l)->timer, &st);
	return st.pending + st.behind;
}

/* The wheel is on the disk as it is now. */
static void await_save(struct fixture *f)
{
	const char *path = tempdir_path(f->l.dir, "store/config/timercheck");

	for (int64_t end = clock_mono_us() + 20000000;; broker_kit_run(f->l.k, 5)) {
		char *p;
		size_t n;

		assert_true(clock_mono_us() < end);
		if (sys_read_file(path, 4096, &p, &n) < 0)
			continue;
		bool done = (int64_t)be64(p + 24) == kit_stored(f->l.k, TOPIC_TIMER, 0);
		free(p);
		if (done)
			return;
	}
}

/* The process dies: what it had written so far is copied while it runs, and the copy goes on. */
static void kill_and_start(struct fixture *f, const char *const *props)
{
	const char *to = tempdir_path(f->copy, f->lives++ ? "y" : "x");

	mqstore_write_out(life_broker(&f->l)->store);
	kit_copy(broker_kit_dir(f->l.k), to);
	broker_kit_stop(f->l.k);
	life_start_in(&f->l, to, props);
}

/* ---- One message ----------------------------------------------------------------------------------------------------------- */

static void a_message_comes_when_its_step_is_over_and_as_it_was_sent(void **state)
{
	struct fixture *f = *state;
	int64_t now, due, step;
	struct mq_message m;
	char text[32];
	struct asked *a;

	life_start(&f->l, still);
	now = clock_wall_ms();
	due = now + HOUR_MS + 300;
	step = due % 1000 == 0 ? due - 1000 : due / 1000 * 1000;
	snprintf(text, sizeof text, "%lld", (long long)step);
	char props[300];
	snprintf(props, sizeof props, "KEYS\001k\002TAGS\001tag\002TIMER_DELIVER_MS\001%lld\002UNIQ_KEY\001U1\002mine\001yes\002", (long long)due);
	a = kit_send_props(f->l.k, f->l.c, "T", 2, "hello", props);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueId"), 2);
	assert_int_equal(asked_i64(a, "queueOffset"), 0);
	m = kit_look(f->l.k, TOPIC_TIMER, 0, 0);
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "REAL_QID", "2");
	assert_prop(m.props, "TIMER_OUT_MS", text);
	jump(f, step + 999 - clock_wall_ms() - 200);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 0); /* its step is not over */
	assert_int_equal(pending(f), 1);
	jump(f, step + 1000 - clock_wall_ms());
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	m = kit_look(f->l.k, "T", 2, 0);
	assert_true(str_is(m.body, "hello"));
	assert_int_equal(m.flag, 7);
	assert_int_equal(m.born_ms, 1700000000000);
	assert_true(m.store_ms >= due);
	assert_prop(m.props, "TIMER_OUT_MS", text);
	assert_prop(m.props, "UNIQ_KEY", "U1");
	assert_prop(m.props, "KEYS", "k");
	assert_prop(m.props, "mine", "yes");
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_true(mq_prop_get(m.props, "TIMER_ENQUEUE_MS").n > 0);
	assert_true(mq_prop_get(m.props, "TIMER_DEQUEUE_MS").n > 0);
	assert_int_equal(pending(f), 0);
	assert_int_equal(life_broker(&f->l)->metrics.timers_out, 1);
}

static void messages_around_the_edge_of_a_step_never_come_early_nor_late(void **state)
{
	struct fixture *f = *state;
	int64_t edge;

	life_start(&f->l, still);
	edge = (clock_wall_ms() + HOUR_MS) / 1000 * 1000;
	send_for(f, "before", edge - 1, "");
	send_for(f, "at", edge, "");
	send_for(f, "behind", edge + 1, "");
	jump(f, edge - 1001 - clock_wall_ms());
	assert_string_equal(bodies(f, "T", 0), "");
	jump(f, edge + 5 - clock_wall_ms());
	assert_string_equal(bodies(f, "T", 0), "before at");
	for (int64_t off = 0; off < 2; off++)
		assert_true(kit_look(f->l.k, "T", 0, off).store_ms >= edge);
	jump(f, edge + 1001 - clock_wall_ms());
	assert_string_equal(bodies(f, "T", 0), "before at behind");
}

static void a_delay_in_seconds_wins_over_one_in_ms_and_that_over_a_time(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	kit_send_props(f->l.k, f->l.c, "T", 0, "x", "TIMER_DELAY_SEC\0017200\002TIMER_DELAY_MS\0015000\002TIMER_DELIVER_MS\0011\002");
	kit_send_props(f->l.k, f->l.c, "T", 0, "y", "TIMER_DELAY_MS\0015000\002TIMER_DELIVER_MS\0011\002");
	jump(f, 6100);
	assert_string_equal(bodies(f, "T", 0), "y");
	jump(f, 2 * HOUR_MS);
	assert_string_equal(bodies(f, "T", 0), "y x");
}

static void a_delay_level_wins_over_a_time(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	kit_send_props(f->l.k, f->l.c, "T", 0, "x", "DELAY\0013\002TIMER_DELAY_SEC\0017200\002");
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 2), 1);
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 0);
	assert_prop(kit_look(f->l.k, "SCHEDULE_TOPIC_XXXX", 2, 0).props, "TIMER_DELAY_SEC", NULL);
}

static void what_is_due_already_is_an_ordinary_message(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	kit_send_props(f->l.k, f->l.c, "T", 0, "minus", "TIMER_DELAY_MS\001-1\002");
	kit_send_props(f->l.k, f->l.c, "T", 0, "past", "TIMER_DELIVER_MS\0011\002");
	kit_send_props(f->l.k, f->l.c, "T", 0, "was", "TIMER_DELIVER_MS\00199999999999999\002TIMER_OUT_MS\0015\002"); /* delivered, and sent on */
	assert_string_equal(bodies(f, "T", 0), "minus past was");
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 0);
}

static void assert_refused(struct fixture *f, const char *props, int code, const char *why)
{
	struct asked *a = kit_send_props(f->l.k, f->l.c, "T", 0, "x", props);

	assert_int_equal(a->code, code);
	assert_non_null(strstr(a->remark.p, why));
}

static void a_time_that_cannot_be_is_refused(void **state)
{
	static const char *const illegal = "timer message illegal, the delay time should not be bigger than the max delay 259200000ms";
	struct fixture *f = *state;

	life_start(&f->l, still);
	assert_refused(f, "TIMER_DELAY_SEC\0019223372036854775807\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_refused(f, "TIMER_DELAY_SEC\001259201\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_refused(f, "TIMER_DELAY_MS\001259200001\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_refused(f, "TIMER_DELIVER_MS\0019223372036854775807\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_refused(f, "TIMER_DELAY_SEC\001soon\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_refused(f, "TIMER_DELAY_MS\001-5\002TIMER_DEL_UNIQKEY\001U\002", RESP_MESSAGE_ILLEGAL, illegal);
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, "x", "TIMER_DELAY_SEC\001259200\002")->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 1);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
}

static void with_the_wheel_off_times_are_refused_and_the_rest_goes_on(void **state)
{
	static const char *const off[] = { "timerWheelEnable=false", NULL };
	struct fixture *f = *state;

	life_start(&f->l, off);
	assert_refused(f, "TIMER_DELAY_SEC\0015\002", RESP_SYSTEM_ERROR, "accurate timer message is not enabled, timerWheelEnable is false");
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, "x", "DELAY\0011\002")->code, RESP_SUCCESS);
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, "x", "")->code, RESP_SUCCESS);
	life_stop(&f->l);
	assert_false(kit_exists(tempdir_path(f->l.dir, "store/timerwheel")));
}

static void a_crowded_step_refuses_more(void **state)
{
	static const char *const few[] = { "timerCongestNumEachSlot=3", "timerFlushIntervalMs=100000", NULL };
	struct fixture *f = *state;
	int64_t due;
	int taken = 0;

	life_start(&f->l, few);
	due = clock_wall_ms() + HOUR_MS;
	for (int i = 0; i < 60; i++) {
		char props[64];
		struct asked *a;

		snprintf(props, sizeof props, "TIMER_DELIVER_MS\001%lld\002", (long long)due);
		a = kit_send_props(f->l.k, f->l.c, "T", 0, "x", props);
		taken += a->code == RESP_SUCCESS;
		if (a->code != RESP_SUCCESS) {
			assert_int_equal(a->code, RESP_SYSTEM_ERROR);
			assert_string_equal(a->remark.p, "timer message is under flow control, max num limit is 6 or the current value is "
					    "greater than 3 and less than 6, trigger random flow control");
		}
		timer_run(life_broker(&f->l)->timer);
	}
	assert_in_range(taken, 4, 6);
	send_for(f, "other", due + 5000, ""); /* another step */
}

static void what_the_broker_adds_cannot_be_sent(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;
	struct asked *a;

	life_start(&f->l, still);
	send_for(f, "x", clock_wall_ms() + 5000, "REAL_TOPIC\001Other\002REAL_QID\0017\002TIMER_ENQUEUE_MS\0019\002TIMER_ROLL_TIMES\00155\002");
	m = kit_look(f->l.k, TOPIC_TIMER, 0, 0);
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "REAL_QID", "0");
	assert_prop(m.props, "TIMER_ENQUEUE_MS", NULL);
	assert_prop(m.props, "TIMER_ROLL_TIMES", NULL);
	jump(f, 7000);
	assert_string_equal(bodies(f, "T", 0), "x");
	a = kit_send_props(f->l.k, f->l.c, TOPIC_TIMER, 0, "x", "");
	assert_int_equal(a->code, RESP_NO_PERMISSION);
}

static void a_batch_waits_as_a_whole(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };
	struct batch_item m = { .body = MQ_STR("one") }, n = { .body = MQ_STR("two") }, timed = { .body = MQ_STR("x"),
		.props = MQ_STR("TIMER_DELAY_SEC\0015\002") };
	struct asked *a;

	life_start(&f->l, still);
	batch_put(&b, &m);
	batch_put(&b, &n);
	a = ask(f->l.k, f->l.c, REQ_SEND_BATCH_MESSAGE, buf_view(&b), "producerGroup", "pg", "topic", "T", "defaultTopic", "TBW102",
		"defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0", "bornTimestamp", "1", "flag", "0", "batch", "true",
		"properties", "TIMER_DELAY_SEC\0015\002", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 2);
	jump(f, 7000);
	assert_string_equal(bodies(f, "T", 0), "one two");
	batch_put(&b, &timed);
	a = ask(f->l.k, f->l.c, REQ_SEND_BATCH_MESSAGE, buf_view(&b), "producerGroup", "pg", "topic", "T", "defaultTopic", "TBW102",
		"defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0", "bornTimestamp", "1", "flag", "0", "batch", "true", NULL);
	assert_int_equal(a->code, RESP_MESSAGE_ILLEGAL);
	buf_free(&b);
}

/* ---- Many ------------------------------------------------------------------------------------------------------------------- */

static void a_step_comes_oldest_first_and_steps_in_their_order(void **state)
{
	struct fixture *f = *state;
	int64_t base;

	life_start(&f->l, still);
	base = (clock_wall_ms() + 10000) / 1000 * 1000;
	send_for(f, "c", base + 3500, "");
	send_for(f, "a", base + 100, "");
	send_for(f, "b", base + 1100, "");
	send_for(f, "a2", base + 900, "");
	send_for(f, "c2", base + 3001, "");
	jump(f, 20000);
	assert_string_equal(bodies(f, "T", 0), "a a2 b c c2");
}

static void many_in_one_step_all_come(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + HOUR_MS;
	for (int i = 0; i < 1500; i++)
		send_for(f, "x", due, "");
	jump(f, HOUR_MS + 1500);
	kit_await(f->l.k, "T", 0, 1500);
	broker_kit_settle(f->l.k);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 1500);
	assert_int_equal(pending(f), 0);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
}

static void what_is_beyond_the_window_rolls_and_comes_in_time(void **state)
{
	static const char *const narrow[] = { "timerRollWindowSlot=10", "timerFlushIntervalMs=100000", NULL };
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, narrow);
	due = clock_wall_ms() + 25000;
	send_for(f, "far", due, "");
	for (int i = 0; i < 23; i++) {
		jump(f, 1000);
		assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
	}
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 1);
	jump(f, due + 1100 - clock_wall_ms());
	assert_int_equal(kit_stored(f->l.k, "T", 0), 1);
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 1 + (int64_t)life_broker(&f->l)->metrics.timers_rolled);
	assert_in_range(life_broker(&f->l)->metrics.timers_rolled, 2, 4);
	assert_prop(kit_look(f->l.k, TOPIC_TIMER, 0, 1).props, "TIMER_ROLL_TIMES", "1");
	assert_true(mq_prop_get(kit_look(f->l.k, "T", 0, 0).props, "TIMER_ROLL_TIMES").n > 0);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
}

static void a_message_outlives_the_time_that_files_are_kept(void **state)
{
	static const char *const brief[] = { "fileReservedTime=1", "timerFlushIntervalMs=100000", NULL };
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, brief);
	due = clock_wall_ms() + 3 * HOUR_MS;
	send_for(f, "far", due, "");
	for (int i = 0; i < 17; i++) {
		int64_t n;

		jump(f, HOUR_MS / 6);
		assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
		n = kit_stored(f->l.k, TOPIC_TIMER, 0);
		assert_true(kit_look(f->l.k, TOPIC_TIMER, 0, n - 1).store_ms > clock_wall_ms() - HOUR_MS); /* a record that will be kept for a while */
	}
	jump(f, due + 1100 - clock_wall_ms());
	assert_int_equal(kit_stored(f->l.k, "T", 0), 1);
}

static void counters_never_fall_below_nothing(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	for (int i = 0; i < 100; i++) {
		kit_send_props(f->l.k, f->l.c, "T", 0, "x", "TIMER_DELAY_MS\0013\002");
		kit_send_props(f->l.k, f->l.c, "T", 0, "x", "TIMER_DELAY_MS\0010\002");
		assert_true(timer_count(life_broker(&f->l)->timer, MQ_STR("T")) >= 0);
	}
	cancel(f, "nobody", clock_wall_ms() + 2000);
	timer_run(life_broker(&f->l)->timer);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")) >= 0, 1);
	jump(f, 5000);
	kit_await(f->l.k, "T", 0, 200);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
	send_after(f, "one", 5000);
	timer_run(life_broker(&f->l)->timer);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 1);
}

static void one_of_a_deleted_topic_does_not_hold_up_the_others(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + 5000;
	for (int i = 0; i < 100; i++) {
		char props[64];

		snprintf(props, sizeof props, "TIMER_DELIVER_MS\001%lld\002", (long long)due);
		assert_int_equal(kit_send_props(f->l.k, f->l.c, i == 50 ? "Gone" : "T", 0, "x", props)->code, RESP_SUCCESS);
	}
	assert_int_equal(ask(f->l.k, f->l.c, REQ_DELETE_TOPIC_IN_BROKER, (struct mq_str){ 0 }, "topic", "Gone", NULL)->code, RESP_SUCCESS);
	jump(f, 7000);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 99);
	assert_int_equal(pending(f), 0);
}

/* ---- Cancelling ----------------------------------------------------------------------------------------------------------- */

static void a_cancelled_message_does_not_come(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + HOUR_MS;
	send_for(f, "keep", due, "");
	send_for(f, "drop", due, "");
	send_for(f, "drop53", due, "");
	cancel(f, "U-drop", due);
	cancel(f, "T+U-drop53", due);
	cancel(f, "U-nobody", due);
	jump(f, HOUR_MS + 1500);
	assert_string_equal(bodies(f, "T", 0), "keep");
	assert_int_equal(life_broker(&f->l)->metrics.timers_cancelled, 2);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
}

static void a_cancellation_of_another_step_cancels_nothing(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + HOUR_MS;
	send_for(f, "x", due, "");
	cancel(f, "U-x", due + 2000);
	jump(f, HOUR_MS + 5000);
	assert_string_equal(bodies(f, "T", 0), "x");
}

/* What clients of 5.3 do: the answer to the send says how. */
static struct asked *recall(struct fixture *f, const char *topic, const char *handle)
{
	return ask(f->l.k, f->l.c, REQ_RECALL_MESSAGE, (struct mq_str){ 0 }, "topic", topic, "recallHandle", handle, "producerGroup", "pg", NULL);
}

static void a_message_is_taken_back_by_its_handle(void **state)
{
	struct fixture *f = *state;
	char handle[600], props[128];
	struct asked *a;

	life_start(&f->l, still);
	snprintf(props, sizeof props, "UNIQ_KEY\001U1\002TIMER_DELIVER_MS\001%lld\002", (long long)clock_wall_ms() + HOUR_MS);
	a = kit_send_props(f->l.k, f->l.c, "T", 2, "x", props);
	snprintf(handle, sizeof handle, "%s", asked_get(a, "recallHandle"));
	assert_true(strlen(handle) > 0 && strlen(handle) % 4 == 0);
	assert_string_equal(asked_get(kit_send_props(f->l.k, f->l.c, "T", 2, "y", ""), "recallHandle"), "");
	a = recall(f, "T", handle);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_get(a, "msgId"), "U1");
	jump(f, HOUR_MS + 2000);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(life_broker(&f->l)->metrics.timers_cancelled, 1);
	assert_int_equal(recall(f, "T", handle)->code, RESP_ILLEGAL_OPERATION); /* its time is over */
}

static void a_handle_that_is_none_takes_nothing_back(void **state)
{
	struct fixture *f = *state;
	char text[200], handle[400];

	life_start(&f->l, still);
	send_after(f, "x", HOUR_MS);
	assert_int_equal(recall(f, "T", "###")->code, RESP_ILLEGAL_OPERATION);
	assert_int_equal(recall(f, "T", "djE=")->code, RESP_ILLEGAL_OPERATION); /* "v1" */
	assert_int_equal(recall(f, "Nowhere", "djE=")->code, RESP_TOPIC_NOT_EXIST);
	snprintf(text, sizeof text, "v1 T other %lld U-x", (long long)clock_wall_ms() + HOUR_MS);
	sodium_bin2base64(handle, sizeof handle, (unsigned char *)text, strlen(text), sodium_base64_VARIANT_URLSAFE);
	assert_int_equal(recall(f, "T", handle)->code, RESP_ILLEGAL_OPERATION);
	snprintf(text, sizeof text, "v1 U b %lld U-x", (long long)clock_wall_ms() + HOUR_MS);
	sodium_bin2base64(handle, sizeof handle, (unsigned char *)text, strlen(text), sodium_base64_VARIANT_URLSAFE);
	assert_int_equal(recall(f, "T", handle)->code, RESP_ILLEGAL_OPERATION);
	broker_kit_set(f->l.k, "recallMessageEnable", "false");
	assert_int_equal(recall(f, "T", handle)->code, RESP_NO_PERMISSION);
	assert_int_equal(kit_stored(f->l.k, TOPIC_TIMER, 0), 1);
}

/* ---- Looking ------------------------------------------------------------------------------------------------------------------ */

static void what_waits_is_listed_in_parts(void **state)
{
	struct fixture *f = *state;
	char from[24] = "0", before[24] = "0";
	int64_t base, last = 0;
	int n = 0, parts = 0;

	life_start(&f->l, still);
	base = (clock_wall_ms() + HOUR_MS) / 1000 * 1000;
	for (int i = 0; i < 20; i++)
		send_for(f, "x", base + i / 5 * 10000 + 1, "");
	take_in(f);
	while (strcmp(from, "-1")) {
		struct asked *a = ask(f->l.k, f->l.c, REQ_LIST_TIMERS, (struct mq_str){ 0 }, "fromMs", from, "before", before, "maxMsgNums", "3", NULL);
		struct mq_message m;

		assert_int_equal(a->code, RESP_SUCCESS);
		for (size_t at = 0; at < a->body.n; at += (size_t)m.size, n++) {
			int64_t due;

			assert_true(mq_message_decode(a->body.p + at, a->body.n - at, true, &m) > 0);
			assert_int_equal(str_i64(mq_prop_get(m.props, "TIMER_OUT_MS"), &due), 0);
			assert_true(due >= last);
			last = due;
		}
		snprintf(from, sizeof from, "%s", asked_get(a, "nextMs"));
		snprintf(before, sizeof before, "%s", asked_get(a, "nextBefore"));
		assert_true(++parts < 10);
	}
	assert_int_equal(n, 20);
	assert_int_equal(parts, 7);
	assert_int_equal(asked_i64(ask(f->l.k, f->l.c, REQ_LIST_TIMERS, (struct mq_str){ 0 }, "key", "U-x", NULL), "count"), 20);
	assert_int_equal(asked_i64(ask(f->l.k, f->l.c, REQ_LIST_TIMERS, (struct mq_str){ 0 }, "topic", "Other", NULL), "count"), 0);
}

static void slaves_and_watchers_are_told_how_far_it_is(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	life_start(&f->l, still);
	send_after(f, "x", HOUR_MS);
	send_after(f, "y", HOUR_MS);
	take_in(f);
	a = ask(f->l.k, f->l.c, REQ_GET_TIMER_CHECK_POINT, (struct mq_str){ 0 }, NULL);
	assert_int_equal(a->body.n, 56);
	assert_int_equal(be64(a->body.p + 24), 2);
	assert_in_range(be64(a->body.p), clock_wall_ms() - 5000, clock_wall_ms());
	a = ask(f->l.k, f->l.c, REQ_GET_TIMER_METRICS, (struct mq_str){ 0 }, NULL);
	buf_char(&a->body, 0);
	assert_non_null(strstr(a->body.p, "\"timingCount\":{\"T\":{\"count\":2,\"timeStamp\":"));
	a = ask(f->l.k, f->l.c, REQ_GET_BROKER_RUNTIME_INFO, (struct mq_str){ 0 }, NULL);
	buf_char(&a->body, 0);
	assert_non_null(strstr(a->body.p, "\"timerCongestNum\":\"2\""));
}

/* ---- Switches ---------------------------------------------------------------------------------------------------------------- */

static void taking_in_and_delivering_can_be_stopped_and_go_on(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	broker_kit_set(f->l.k, "timerStopDequeue", "true");
	send_after(f, "a", 5000);
	jump(f, 10000);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
	broker_kit_set(f->l.k, "timerStopDequeue", "false");
	jump(f, 1);
	assert_string_equal(bodies(f, "T", 0), "a");
	broker_kit_set(f->l.k, "timerStopEnqueue", "true");
	send_after(f, "b", 5000);
	jump(f, 10000);
	assert_string_equal(bodies(f, "T", 0), "a");
	broker_kit_set(f->l.k, "timerStopEnqueue", "false");
	jump(f, 1);
	assert_string_equal(bodies(f, "T", 0), "a b"); /* late, and at once */
	assert_prop(kit_look(f->l.k, "T", 0, 1).props, "TIMER_ENQUEUE_MS", "9223372036854775807");
}

static void a_clock_set_back_delays_nothing_for_ever_and_repeats_nothing(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	send_after(f, "a", 5000);
	jump(f, 7000);
	assert_string_equal(bodies(f, "T", 0), "a");
	jump(f, -2 * HOUR_MS);
	send_after(f, "b", 5000);
	jump(f, 7000);
	assert_string_equal(bodies(f, "T", 0), "a b");
	jump(f, 3 * HOUR_MS);
	assert_string_equal(bodies(f, "T", 0), "a b");
}

static void finer_steps_are_kept_finer(void **state)
{
	static const char *const fine[] = { "timerPrecisionMs=100", "timerFlushIntervalMs=100000", NULL };
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, fine);
	due = (clock_wall_ms() + 60000) / 1000 * 1000 + 450;
	send_for(f, "x", due, "");
	jump(f, due - 80 - clock_wall_ms());
	assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
	jump(f, due + 60 - clock_wall_ms());
	assert_int_equal(kit_stored(f->l.k, "T", 0), 1);
}

/* ---- Stops ------------------------------------------------------------------------------------------------------------------- */

static void timers_outlive_a_stop(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + HOUR_MS;
	send_for(f, "a", due, "");
	send_for(f, "b", due + 5000, "");
	send_for(f, "c", due, "");
	cancel(f, "U-c", due);
	take_in(f);
	life_stop(&f->l);
	assert_int_equal(kit_size(tempdir_path(f->l.dir, "store/timerwheel")), 38707200);
	life_start(&f->l, still);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 2);
	jump(f, HOUR_MS + 1500);
	assert_string_equal(bodies(f, "T", 0), "a");
	life_stop(&f->l);
	life_start(&f->l, still);
	jump(f, 6000);
	assert_string_equal(bodies(f, "T", 0), "a b");
	life_stop(&f->l);
	life_start(&f->l, still);
	jump(f, HOUR_MS);
	assert_string_equal(bodies(f, "T", 0), "a b");
	assert_int_equal(life_broker(&f->l)->metrics.timers_found, 0);
}

static void what_came_due_while_the_broker_was_down_comes_at_the_start(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, still);
	send_after(f, "a", 5000);
	send_after(f, "b", HOUR_MS);
	take_in(f);
	life_stop(&f->l);
	life_shift(&f->l, 2 * HOUR_MS);
	life_start(&f->l, still);
	jump(f, 1);
	assert_string_equal(bodies(f, "T", 0), "a b");
}

static void after_a_kill_before_any_save_all_come_once(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + 5000;
	for (int i = 0; i < 200; i++)
		send_for(f, "x", due + i % 7 * 1000, "");
	jump(f, 9000); /* some are delivered */
	kit_await(f->l.k, "T", 0, 80);
	broker_kit_settle(f->l.k);
	assert_true(kit_stored(f->l.k, "T", 0) < 200);
	kill_and_start(f, still);
	jump(f, HOUR_MS);
	kit_await(f->l.k, "T", 0, 200);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
	assert_true(life_broker(&f->l)->metrics.timers_found > 0);
	kill_and_start(f, still);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
}

static void after_a_kill_between_saves_all_come_once(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, saving);
	due = clock_wall_ms() + 5000;
	for (int i = 0; i < 150; i++)
		send_for(f, "x", due + i % 7 * 1000, "");
	take_in(f);
	await_save(f);
	broker_kit_block_workers(f->l.k); /* no further save */
	for (int i = 0; i < 50; i++)
		send_for(f, "y", due + i % 7 * 1000, "");
	jump(f, 9000);
	const char *to = tempdir_path(f->copy, "x");
	mqstore_write_out(life_broker(&f->l)->store);
	kit_copy(f->l.dir, to);
	broker_kit_unblock_workers(f->l.k);
	life_stop(&f->l);
	life_start_in(&f->l, to, still);
	jump(f, HOUR_MS);
	kit_await(f->l.k, "T", 0, 200);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
	assert_true(life_broker(&f->l)->metrics.timers_found > 0);
}

/* Two hundred wait, some were delivered; then a file is lost while the broker is down. */
static void lose(struct fixture *f, const char *file, const char *const *props)
{
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + 5000;
	for (int i = 0; i < 200; i++)
		send_for(f, "x", due + i % 7 * 1000, "");
	jump(f, 9000);
	kit_await(f->l.k, "T", 0, 80);
	broker_kit_settle(f->l.k);
	life_stop(&f->l);
	if (file)
		kit_remove(tempdir_path(f->l.dir, file));
	life_start(&f->l, props);
	jump(f, HOUR_MS);
	kit_await(f->l.k, "T", 0, 200);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
	life_stop(&f->l);
	life_start(&f->l, props);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
}

static void a_lost_wheel_is_made_again(void **state) { lose(*state, "store/timerwheel", still); }
static void a_lost_timer_log_is_made_again(void **state) { lose(*state, "store/timerlog", still); }
static void a_lost_check_point_is_found_out(void **state) { lose(*state, "store/config/timercheck", still); }
static void lost_counts_are_counted_again(void **state) { lose(*state, "store/config/timermetrics", still); }

static void another_step_makes_the_wheel_again(void **state)
{
	static const char *const fine[] = { "timerPrecisionMs=100", "timerFlushIntervalMs=100000", NULL };

	lose(*state, NULL, fine);
}

static void all_files_lost_and_still_once(void **state)
{
	struct fixture *f = *state;
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + 5000;
	for (int i = 0; i < 200; i++)
		send_for(f, "x", due + i % 7 * 1000, "");
	jump(f, 9000);
	kit_await(f->l.k, "T", 0, 80);
	broker_kit_settle(f->l.k);
	life_stop(&f->l);
	kit_remove(tempdir_path(f->l.dir, "store/timerwheel"));
	kit_remove(tempdir_path(f->l.dir, "store/timerlog"));
	kit_remove(tempdir_path(f->l.dir, "store/config/timercheck"));
	life_start(&f->l, still);
	jump(f, HOUR_MS);
	kit_await(f->l.k, "T", 0, 200);
	jump(f, HOUR_MS);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 200);
}

static void rolled_ones_come_once_when_the_timer_log_is_lost(void **state)
{
	static const char *const narrow[] = { "timerRollWindowSlot=10", "timerFlushIntervalMs=100000", NULL };
	struct fixture *f = *state;

	life_start(&f->l, narrow);
	for (int i = 0; i < 20; i++)
		send_after(f, "far", 60000 + i * 1000);
	for (int i = 0; i < 20; i++)
		jump(f, 1000);
	life_stop(&f->l);
	kit_remove(tempdir_path(f->l.dir, "store/timerlog"));
	life_start(&f->l, narrow);
	for (int i = 0; i < 100; i++)
		jump(f, 1000);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 20);
}

static void timers_whose_messages_were_cut_from_the_log_are_counted_and_the_rest_comes(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;
	char path[4096];
	int64_t due;

	life_start(&f->l, still);
	due = clock_wall_ms() + HOUR_MS;
	for (int i = 0; i < 100; i++)
		send_for(f, "x", due, "");
	take_in(f);
	m = kit_look(f->l.k, TOPIC_TIMER, 0, 80);
	life_stop(&f->l);
	snprintf(path, sizeof path, "%s", tempdir_path(f->l.dir, "store/commitlog/00000000000000000000"));
	kit_zero(path, m.log_off, (size_t)(kit_size(path) - m.log_off));
	kit_touch(tempdir_path(f->l.dir, "store/abort"));
	life_start(&f->l, still);
	assert_int_equal(life_broker(&f->l)->metrics.timers_lost, 20);
	for (int i = 0; i < 10; i++)
		send_for(f, "new", due, "");
	jump(f, HOUR_MS + 1500);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 90);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("T")), 0);
}

/* ---- The peer's store ------------------------------------------------------------------------------------------------------ */

static void what_the_peer_left_pending_comes_once_each_in_time(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000", "maxHashSlotNum=500",
					     "maxIndexNum=400", "fileReservedTime=876000", "brokerClusterName=FxCluster",
					     "timerFlushIntervalMs=100000", NULL };
	const int64_t left = 1796057458000, in_20_h = 1796129373000, rolls = 1796143773000, in_60_h = 1796273373000;
	struct fixture *f = *state;
	int64_t had, waited;
	struct mq_message m;

	free(golden_store(f->l.dir, "clean"));
	life_shift(&f->l, left + 1000 - clock_wall_ms());
	life_start(&f->l, props);
	had = kit_stored(f->l.k, "FxDelay", 0) + kit_stored(f->l.k, "FxDelay", 1);
	jump(f, 0);
	assert_int_equal(timer_count(life_broker(&f->l)->timer, MQ_STR("FxDelay")), 2);
	jump(f, in_20_h - 1000 - clock_wall_ms());
	waited = (int64_t)life_broker(&f->l)->metrics.timers_out; /* the peer's own, of pops */
	assert_int_equal(waited, 4);
	jump(f, in_20_h + 1000 - clock_wall_ms());
	assert_int_equal(life_broker(&f->l)->metrics.timers_out, waited + 1);
	assert_int_equal(life_broker(&f->l)->metrics.timers_cancelled, 1);
	jump(f, rolls + 1000 - clock_wall_ms());
	assert_int_equal(life_broker(&f->l)->metrics.timers_rolled, 1);
	life_stop(&f->l);
	life_start(&f->l, props);
	jump(f, in_60_h - 1000 - clock_wall_ms());
	assert_int_equal(life_broker(&f->l)->metrics.timers_out, 0);
	jump(f, 5000);
	assert_int_equal(life_broker(&f->l)->metrics.timers_out, 1);
	assert_int_equal(life_broker(&f->l)->metrics.timers_lost, 0);
	assert_int_equal(pending(f), 0);
	assert_true(kit_stored(f->l.k, "FxDelay", 0) + kit_stored(f->l.k, "FxDelay", 1) >= had + 2);
	m = kit_look(f->l.k, TOPIC_TIMER, 0, kit_stored(f->l.k, TOPIC_TIMER, 0) - 1);
	assert_prop(m.props, "TIMER_ROLL_TIMES", "1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_comes_when_its_step_is_over_and_as_it_was_sent),
		TEST(messages_around_the_edge_of_a_step_never_come_early_nor_late),
		TEST(a_delay_in_seconds_wins_over_one_in_ms_and_that_over_a_time),
		TEST(a_delay_level_wins_over_a_time),
		TEST(what_is_due_already_is_an_ordinary_message),
		TEST(a_time_that_cannot_be_is_refused),
		TEST(with_the_wheel_off_times_are_refused_and_the_rest_goes_on),
		TEST(a_crowded_step_refuses_more),
		TEST(what_the_broker_adds_cannot_be_sent),
		TEST(a_batch_waits_as_a_whole),
		TEST(a_step_comes_oldest_first_and_steps_in_their_order),
		TEST(many_in_one_step_all_come),
		TEST(what_is_beyond_the_window_rolls_and_comes_in_time),
		TEST(a_message_outlives_the_time_that_files_are_kept),
		TEST(counters_never_fall_below_nothing),
		TEST(one_of_a_deleted_topic_does_not_hold_up_the_others),
		TEST(a_cancelled_message_does_not_come),
		TEST(a_cancellation_of_another_step_cancels_nothing),
		TEST(a_message_is_taken_back_by_its_handle),
		TEST(a_handle_that_is_none_takes_nothing_back),
		TEST(what_waits_is_listed_in_parts),
		TEST(slaves_and_watchers_are_told_how_far_it_is),
		TEST(taking_in_and_delivering_can_be_stopped_and_go_on),
		TEST(a_clock_set_back_delays_nothing_for_ever_and_repeats_nothing),
		TEST(finer_steps_are_kept_finer),
		TEST(timers_outlive_a_stop),
		TEST(what_came_due_while_the_broker_was_down_comes_at_the_start),
		TEST(after_a_kill_before_any_save_all_come_once),
		TEST(after_a_kill_between_saves_all_come_once),
		TEST(a_lost_wheel_is_made_again),
		TEST(a_lost_timer_log_is_made_again),
		TEST(a_lost_check_point_is_found_out),
		TEST(lost_counts_are_counted_again),
		TEST(another_step_makes_the_wheel_again),
		TEST(all_files_lost_and_still_once),
		TEST(rolled_ones_come_once_when_the_timer_log_is_lost),
		TEST(what_the_peer_left_pending_comes_once_each_in_time),
		TEST(timers_whose_messages_were_cut_from_the_log_are_counted_and_the_rest_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
