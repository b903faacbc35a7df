/* test_broker_delay.c: delay levels of a whole broker: when a message comes and what it then looks like, over restarts, kills, a
 * full disk, a clock that jumps, and with what the peer left pending. */
#include "broker_life.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/batch.h"
#include "codec/property.h"
#include "golden_store.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/delay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

/* Levels that are waited for, and (3) one that comes only when the test moves the clock. */
static const char *const levels[] = { "messageDelayLevel=50ms 400ms 1h", "flushDelayOffsetInterval=50", NULL };
enum { HOUR_MS = 3600000 };

struct fixture {
	struct life l;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	return life_make(&f->l);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	life_end(&f->l);
	free(f);
	return 0;
}

/* What is due by the shifted clock is delivered in this call. */
static void jump(struct fixture *f, int64_t ms)
{
	life_shift(&f->l, ms);
	delay_run(life_broker(&f->l)->delay);
}

static void send_delayed(struct fixture *f, const char *body, int level)
{
	char props[64];

	snprintf(props, sizeof props, "DELAY\001%d\002", level);
	assert_int_equal(kit_send_props(f->l.k, f->l.c, "T", 0, body, props)->code, RESP_SUCCESS);
}

static int64_t code(struct fixture *f, const char *topic, int queue, int64_t off)
{
	struct mqstore_entry e;

	assert_int_equal(mqstore_entry(mqstore_queue(life_broker(&f->l)->store, str_of(topic), queue, false), off, &e), 0);
	return e.tags_code;
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

static char *offsets_file(const char *dir)
{
	return tempdir_read(tempdir_path((void *)dir, "store/config/delayOffset.json"));
}

/* ---- One message ----------------------------------------------------------------------------------------------------------- */

static void a_message_waits_for_its_level_and_then_comes_as_it_was_sent(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *pull;
	struct mq_message m, waiting;
	int64_t born;

	life_start(&f->l, levels);
	kit_send_props(f->l.k, f->l.c, "T", 2, "warm", "");
	pull = kit_pull_later(f->l.k, f->l.c, "g", "T", 2, 1, "tag", 5000);
	a = kit_send_props(f->l.k, f->l.c, "T", 2, "hello", "KEYS\001k\002TAGS\001tag\002DELAY\0012\002UNIQ_KEY\001U1\002mine\001yes\002");
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueId"), 2);
	assert_int_equal(asked_i64(a, "queueOffset"), 0); /* that of the queue where it waits */
	assert_string_equal(asked_get(a, "transactionId"), "U1");
	waiting = kit_look(f->l.k, "SCHEDULE_TOPIC_XXXX", 1, 0);
	assert_true(str_is(waiting.body, "hello"));
	assert_prop(waiting.props, "REAL_TOPIC", "T");
	assert_prop(waiting.props, "REAL_QID", "2");
	assert_int_equal(code(f, "SCHEDULE_TOPIC_XXXX", 1, 0), waiting.store_ms + 400);
	born = waiting.born_ms;

	asked_wait(f->l.k, pull); /* one who waits for the topic gets it, by its tag */
	assert_int_equal(pull->code, RESP_SUCCESS);
	assert_true(mq_message_decode(pull->body.p, pull->body.n, true, &m) > 0);
	assert_true(str_is(m.body, "hello"));
	assert_true(str_is(m.topic, "T"));
	assert_int_equal(m.queue_id, 2);
	assert_int_equal(m.flag, 7);
	assert_int_equal(m.born_ms, born);
	assert_in_range(m.store_ms, waiting.store_ms + 400, waiting.store_ms + 8000);
	assert_prop(m.props, "DELAY", "2");
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "REAL_QID", "2");
	assert_prop(m.props, "UNIQ_KEY", "U1");
	assert_prop(m.props, "KEYS", "k");
	assert_prop(m.props, "TAGS", "tag");
	assert_prop(m.props, "mine", "yes");
	assert_prop(m.props, "CLUSTER", "C");
	assert_int_equal(life_broker(&f->l)->metrics.delayed_in, 1);
	assert_int_equal(life_broker(&f->l)->metrics.delayed_out, 1);
	asked_free(pull);
}

static void levels_come_in_the_order_of_their_times(void **state)
{
	static const char *const far[] = { "messageDelayLevel=50ms 2s", NULL };
	struct fixture *f = *state;

	life_start(&f->l, far);
	send_delayed(f, "late", 2);
	send_delayed(f, "early", 1);
	send_delayed(f, "early2", 1);
	send_delayed(f, "at-once", 0);
	kit_await(f->l.k, "T", 0, 4);
	assert_string_equal(bodies(f, "T", 0), "at-once early early2 late");
}

static void a_level_above_the_highest_is_the_highest(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;

	life_start(&f->l, levels);
	send_delayed(f, "x", 99);
	m = kit_look(f->l.k, "SCHEDULE_TOPIC_XXXX", 2, 0);
	assert_prop(m.props, "DELAY", "3");
	assert_int_equal(code(f, "SCHEDULE_TOPIC_XXXX", 2, 0), m.store_ms + HOUR_MS);
}

/* A consumer sends on what it got: what is left of the last delay does not count. */
static void what_an_earlier_delay_left_in_the_properties_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;

	life_start(&f->l, levels);
	kit_send_props(f->l.k, f->l.c, "T", 1, "x", "REAL_TOPIC\001Other\002DELAY\0011\002REAL_QID\0017\002TIMER_DELAY_MS\0015\002");
	m = kit_look(f->l.k, "SCHEDULE_TOPIC_XXXX", 0, 0);
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "REAL_QID", "1");
	assert_prop(m.props, "TIMER_DELAY_MS", NULL);
	kit_await(f->l.k, "T", 1, 1);
	assert_int_equal(kit_stored(f->l.k, "Other", 7), 0);
}

static void a_delay_of_a_batch_holds_for_all_of_it(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };
	struct asked *a;

	life_start(&f->l, levels);
	batch_put(&b, &(struct batch_item){ .body = MQ_STR("one"), .props = MQ_STR("TAGS\001a\002") });
	batch_put(&b, &(struct batch_item){ .body = MQ_STR("two") });
	a = ask(f->l.k, f->l.c, REQ_SEND_BATCH_MESSAGE, buf_view(&b), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "3", "f", "0", "g", "1",
		"h", "0", "i", "DELAY\0013\002", "m", "true", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueId"), 3);
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 2), 2);
	assert_int_equal(kit_stored(f->l.k, "T", 3), 0);
	jump(f, HOUR_MS);
	assert_string_equal(bodies(f, "T", 3), "one two");
	assert_prop(kit_look(f->l.k, "T", 3, 0).props, "REAL_QID", "3");
	buf_free(&b);
}

static void without_levels_nothing_waits(void **state)
{
	static const char *const none[] = { "messageDelayLevel=", NULL };
	struct fixture *f = *state;

	life_start(&f->l, none);
	send_delayed(f, "x", 3);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 1);
}

/* Under SYNC_FLUSH readers see what is on the disk: the delivery itself asks for the flush. */
static void a_delivery_is_seen_soon_under_sync_flush(void **state)
{
	static const char *const props[] = { "messageDelayLevel=100ms", "flushDiskType=SYNC_FLUSH", "flushIntervalCommitLog=600000", NULL };
	struct fixture *f = *state;
	struct asked *pull;

	life_start(&f->l, props);
	kit_send_props(f->l.k, f->l.c, "T", 0, "warm", "");
	pull = kit_pull_later(f->l.k, f->l.c, "g", "T", 0, 1, "*", 60000);
	send_delayed(f, "x", 1);
	asked_wait(f->l.k, pull);
	assert_string_equal(asked_bodies(pull), "x");
	asked_free(pull);
}

/* The topic is gone when its message is due: it waits there for the topic to be made again. */
static void a_message_for_a_deleted_topic_is_not_lost(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, levels);
	send_delayed(f, "x", 3);
	assert_int_equal(ask(f->l.k, f->l.c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	jump(f, HOUR_MS);
	kit_send_props(f->l.k, f->l.c, "T", 0, "y", "");
	assert_string_equal(bodies(f, "T", 0), "x y");
}

/* ---- Restarts -------------------------------------------------------------------------------------------------------------- */

static void after_a_stop_what_was_pending_comes_and_nothing_comes_twice(void **state)
{
	static const char *const rare[] = { "messageDelayLevel=50ms 1h 2h", NULL }; /* only the stop saves */
	struct fixture *f = *state;
	struct asked *a;
	char *text;

	life_start(&f->l, rare);
	for (int i = 0; i < 5; i++)
		send_delayed(f, "a", 1);
	kit_await(f->l.k, "T", 0, 5);
	send_delayed(f, "b", 2);
	send_delayed(f, "c", 3);
	life_stop(&f->l);
	text = offsets_file(f->l.dir);
	assert_non_null(strstr(text, "\"offsetTable\":{\"1\":5,\"2\":0,\"3\":0}"));
	assert_non_null(strstr(text, "\"dataVersion\":{"));
	free(text);

	life_start(&f->l, rare);
	a = ask(f->l.k, f->l.c, REQ_GET_ALL_DELAY_OFFSET, NONE, NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_non_null(memmem(a->body.p, a->body.n, "\"1\":5", 5));
	jump(f, HOUR_MS);
	broker_kit_run(f->l.k, 200);
	assert_string_equal(bodies(f, "T", 0), "a a a a a b");
	a = ask(f->l.k, f->l.c, REQ_GET_BROKER_RUNTIME_INFO, NONE, NULL);
	assert_non_null(memmem(a->body.p, a->body.n, "\"scheduleMessageOffset_2\":\"1,1\"", 31));
	assert_non_null(memmem(a->body.p, a->body.n, "\"scheduleMessageOffset_3\":\"0,1\"", 31));
}

static void copy_store(const char *from, const char *to)
{
	char *cmd = mem_printf("mkdir -p '%s' && cp -r '%s/store' '%s/'", to, from, to);

	assert_int_equal(system(cmd), 0);
	free(cmd);
}

enum { MANY = 200 };

/* The directory as it is while the broker runs is what a kill leaves: half of the messages were delivered before a save, some of
 * the others after it. */
static char *killed(struct fixture *f, const char *const *props)
{
	char *dir = strdup(tempdir_path(f->l.dir, "killed")), body[16];
	int64_t end = clock_mono_us() + 10000000;
	bool saved = false;

	life_start(&f->l, props);
	for (int i = 0; i < MANY / 2; i++) {
		snprintf(body, sizeof body, "%d", i);
		send_delayed(f, body, 1);
	}
	kit_await(f->l.k, "T", 0, MANY / 2);
	while (!saved) {
		char *text = offsets_file(f->l.dir), *at = text ? strstr(text, "\"1\":") : NULL;

		saved = at && atoi(at + 4) == MANY / 2;
		free(text);
		assert_true(clock_mono_us() < end);
		broker_kit_run(f->l.k, 5);
	}
	for (int i = MANY / 2; i < MANY; i++) {
		snprintf(body, sizeof body, "%d", i);
		send_delayed(f, body, i % 2 + 1);
	}
	kit_await(f->l.k, "T", 0, MANY / 2 + 10);
	copy_store(f->l.dir, dir);
	life_stop(&f->l);
	return dir;
}

/* How many messages came, and how many of them a second time; each must have come. */
static int twice(struct fixture *f)
{
	int seen[MANY] = { 0 }, again = 0;

	for (int64_t off = 0; off < kit_stored(f->l.k, "T", 0); off++) {
		int32_t n;

		assert_int_equal(str_i32(kit_look(f->l.k, "T", 0, off).body, &n), 0);
		again += seen[n]++;
		assert_true(n >= MANY / 2 || seen[n] == 1); /* what a save has noted does not come again */
	}
	for (int i = 0; i < MANY; i++)
		assert_true(seen[i] >= 1);
	return again;
}

static const char *const rare_saves[] = { "messageDelayLevel=1ms 300ms", "flushDelayOffsetInterval=300", NULL };

static void after_a_kill_nothing_is_lost_and_nothing_comes_twice(void **state)
{
	struct fixture *f = *state;
	char *dir = killed(f, rare_saves);

	life_start_in(&f->l, dir, rare_saves);
	assert_true(life_broker(&f->l)->metrics.delayed_found > 0);
	kit_await(f->l.k, "T", 0, MANY);
	broker_kit_run(f->l.k, 600);
	assert_int_equal(twice(f), 0);
	free(dir);
}

/* The peer's file does not note how far the log was, and so little of it is easily looked at. */
static void after_a_kill_of_the_peer_nothing_comes_twice_either(void **state)
{
	struct fixture *f = *state;
	char *dir = killed(f, rare_saves), *path = strdup(tempdir_path(dir, "store/config/delayOffset.json")), *text = tempdir_read(path),
	     *note = strstr(text, ",\"logOffset\"");

	assert_non_null(note);
	strcpy(note, "}");
	tempdir_write(path, text);
	life_start_in(&f->l, dir, rare_saves);
	kit_await(f->l.k, "T", 0, MANY);
	broker_kit_run(f->l.k, 600);
	assert_int_equal(twice(f), 0);
	free(dir);
	free(path);
	free(text);
}

/* A power cut takes back what is not on the disk: the file must not say that it was delivered. */
static void the_file_says_only_what_is_on_the_disk(void **state)
{
	static const char *const props[] = { "messageDelayLevel=1ms", "flushDelayOffsetInterval=20", "flushIntervalCommitLog=600000", NULL };
	struct fixture *f = *state;
	struct mq_error e;
	char *text;

	life_start(&f->l, props);
	send_delayed(f, "x", 1);
	kit_await(f->l.k, "T", 0, 1);
	broker_kit_run(f->l.k, 300);
	text = offsets_file(f->l.dir);
	assert_true(!text || !strstr(text, "\"1\":1"));
	free(text);
	assert_int_equal(mqstore_flush(life_broker(&f->l)->store, &e), 0);
	broker_kit_run(f->l.k, 300);
	text = offsets_file(f->l.dir);
	assert_non_null(strstr(text, "\"1\":1"));
	free(text);
}

static void fewer_levels_do_not_strand_what_waits_in_the_others(void **state)
{
	static const char *const one[] = { "messageDelayLevel=100ms", NULL };
	struct fixture *f = *state;

	life_start(&f->l, levels);
	send_delayed(f, "x", 2);
	life_stop(&f->l);
	life_start(&f->l, one);
	kit_await(f->l.k, "T", 0, 1);
	assert_true(kit_look(f->l.k, "T", 0, 0).store_ms >= code(f, "SCHEDULE_TOPIC_XXXX", 1, 0));
}

/* The offset of another store's file, or of a log that a power cut has shortened. */
static void an_offset_beyond_its_queue_is_brought_back(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, levels);
	send_delayed(f, "x", 3);
	life_stop(&f->l);
	tempdir_write(tempdir_path(f->l.dir, "store/config/delayOffset.json"), "{\"offsetTable\":{1:3,3:77,99:1,\"x\":5}}");
	life_start(&f->l, levels);
	send_delayed(f, "y", 3);
	jump(f, HOUR_MS);
	assert_string_equal(bodies(f, "T", 0), "y");
}

/* ---- Trouble --------------------------------------------------------------------------------------------------------------- */

static void a_full_disk_holds_up_deliveries_and_skips_none(void **state)
{
	struct fixture *f = *state;
	struct mq_error e;

	life_start(&f->l, levels);
	send_delayed(f, "a", 3);
	send_delayed(f, "b", 3);
	send_delayed(f, "c", 3);
	assert_int_equal(ask(f->l.k, f->l.c, REQ_UPDATE_BROKER_CONFIG, MQ_STR("minFreeBytes=1000000000000000\n"), NULL)->code, RESP_SUCCESS);
	mqstore_trim(life_broker(&f->l)->store, clock_wall_ms(), false, &e);
	jump(f, HOUR_MS);
	for (int64_t end = clock_mono_us() + 10000000; life_broker(&f->l)->metrics.delayed_retries < 3; broker_kit_run(f->l.k, 5))
		assert_true(clock_mono_us() < end);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
	ask(f->l.k, f->l.c, REQ_UPDATE_BROKER_CONFIG, MQ_STR("minFreeBytes=0\n"), NULL);
	mqstore_trim(life_broker(&f->l)->store, clock_wall_ms(), false, &e);
	kit_await(f->l.k, "T", 0, 3);
	assert_string_equal(bodies(f, "T", 0), "a b c");
}

/* One that no producer can make, but a damaged or foreign store can hold. */
static void a_record_that_belongs_nowhere_does_not_hold_up_the_next(void **state)
{
	static const char *const bad[] = { "", "REAL_TOPIC\001T\002", "REAL_TOPIC\001a b\002REAL_QID\0010\002",
					   "REAL_TOPIC\001T\002REAL_QID\001-1\002", "REAL_TOPIC\001SCHEDULE_TOPIC_XXXX\002REAL_QID\0010\002" };
	enum { N = sizeof bad / sizeof bad[0] };
	struct fixture *f = *state;
	struct mqstore_place place;
	struct mq_error e;

	life_start(&f->l, levels);
	for (size_t i = 0; i < N; i++) {
		struct mqstore_record r = { .queue = delay_queue(life_broker(&f->l)->delay, 1), .body = MQ_STR("bad"), .delay_level = 1, .parsed = true,
					    .props = { str_of(bad[i]) } };

		assert_int_equal(mqstore_append(life_broker(&f->l)->store, &r, 1, &place, &e), 0);
		delay_stored(life_broker(&f->l)->delay, 1, 1);
	}
	send_delayed(f, "good", 1);
	kit_await(f->l.k, "T", 0, 1);
	assert_string_equal(bodies(f, "T", 0), "good");
	assert_int_equal(life_broker(&f->l)->metrics.delayed_lost, N);
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 0), N + 1);
}

/* What was taken once is delivered, whatever maxMessageSize is now. */
static void a_smaller_limit_does_not_hold_up_what_waits(void **state)
{
	static const char *const small[] = { "messageDelayLevel=50ms 400ms 1h", "maxMessageSize=4", NULL };
	struct fixture *f = *state;

	life_start(&f->l, levels);
	send_delayed(f, "more than four", 2);
	life_stop(&f->l);
	life_start(&f->l, small);
	kit_await(f->l.k, "T", 0, 1);
	assert_string_equal(bodies(f, "T", 0), "more than four");
}

/* ---- Clocks ---------------------------------------------------------------------------------------------------------------- */

static void a_clock_that_is_set_back_delays_nothing_for_longer_than_its_level(void **state)
{
	struct fixture *f = *state;
	int64_t begin;

	life_start(&f->l, levels);
	begin = clock_mono_us(); /* the wait of the last may be counted from any time since then */
	send_delayed(f, "head", 2);
	send_delayed(f, "next", 2);
	broker_kit_run(f->l.k, 50);
	life_shift(&f->l, -2 * HOUR_MS);
	send_delayed(f, "after", 2);
	kit_await(f->l.k, "T", 0, 3);
	assert_in_range((clock_mono_us() - begin) / 1000, 300, 9000);
	assert_string_equal(bodies(f, "T", 0), "head next after");
}

static void a_clock_that_jumps_ahead_brings_what_is_due(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, levels);
	send_delayed(f, "x", 3);
	broker_kit_run(f->l.k, 150);
	assert_int_equal(kit_stored(f->l.k, "T", 0), 0);
	life_shift(&f->l, HOUR_MS);
	kit_await(f->l.k, "T", 0, 1); /* by the look that comes with each save */
}

/* ---- The peer's store ------------------------------------------------------------------------------------------------------ */

static void what_the_peer_left_pending_comes_once_each_at_its_time(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000", "maxHashSlotNum=500",
					     "maxIndexNum=400", "fileReservedTime=876000", "brokerClusterName=FxCluster", NULL };
	const int64_t stored[2] = { 1796057373867, 1796057373872 }; /* level 17; the later of two of level 18 */
	struct fixture *f = *state;
	struct mq_message m;
	char *text;

	free(golden_store(f->l.dir, "clean"));
	life_shift(&f->l, stored[0] + HOUR_MS - 20000 - clock_wall_ms()); /* well before level 17 is due */
	life_start(&f->l, props);
	assert_int_equal(kit_stored(f->l.k, "FxDelay", 1), 1);
	life_shift(&f->l, stored[0] + HOUR_MS - 100 - clock_wall_ms());
	while (kit_stored(f->l.k, "FxDelay", 1) < 2)
		jump(f, 0);
	m = kit_look(f->l.k, "FxDelay", 1, 1);
	assert_prop(m.props, "KEYS", "delay-17");
	assert_in_range(m.store_ms, stored[0] + HOUR_MS, stored[0] + HOUR_MS + 8000);
	broker_kit_run(f->l.k, 100);
	assert_int_equal(kit_stored(f->l.k, "FxDelay", 1) + kit_stored(f->l.k, "FxDelay", 0), 3);

	jump(f, stored[1] + 2 * HOUR_MS - clock_wall_ms());
	assert_prop(kit_look(f->l.k, "FxDelay", 1, 2).props, "KEYS", "delay-99");
	assert_prop(kit_look(f->l.k, "FxDelay", 0, 1).props, "KEYS", "delay-18");
	assert_int_equal(kit_look(f->l.k, "FxDelay", 0, 1).store_host.port, 20911); /* of the broker that it was sent to */
	jump(f, HOUR_MS);
	m = kit_look(f->l.k, "%RETRY%FxGroupRetry", 0, kit_stored(f->l.k, "%RETRY%FxGroupRetry", 0) - 1);
	assert_prop(m.props, "KEYS", "retry-4");
	assert_int_equal(m.reconsume_times, 1);
	assert_int_equal(life_broker(&f->l)->metrics.delayed_out, 4); /* all of them, and no other: level 1 had been done */
	life_stop(&f->l);
	text = offsets_file(f->l.dir);
	assert_non_null(strstr(text, "\"offsetTable\":{\"1\":3,\"17\":1,\"18\":3}"));
	free(text);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_message_waits_for_its_level_and_then_comes_as_it_was_sent),
		T(levels_come_in_the_order_of_their_times),
		T(a_level_above_the_highest_is_the_highest),
		T(what_an_earlier_delay_left_in_the_properties_is_replaced),
		T(a_delay_of_a_batch_holds_for_all_of_it),
		T(without_levels_nothing_waits),
		T(a_delivery_is_seen_soon_under_sync_flush),
		T(a_message_for_a_deleted_topic_is_not_lost),
		T(after_a_stop_what_was_pending_comes_and_nothing_comes_twice),
		T(after_a_kill_nothing_is_lost_and_nothing_comes_twice),
		T(after_a_kill_of_the_peer_nothing_comes_twice_either),
		T(the_file_says_only_what_is_on_the_disk),
		T(fewer_levels_do_not_strand_what_waits_in_the_others),
		T(an_offset_beyond_its_queue_is_brought_back),
		T(a_full_disk_holds_up_deliveries_and_skips_none),
		T(a_record_that_belongs_nowhere_does_not_hold_up_the_next),
		T(a_smaller_limit_does_not_hold_up_what_waits),
		T(a_clock_that_is_set_back_delays_nothing_for_longer_than_its_level),
		T(a_clock_that_jumps_ahead_brings_what_is_due),
		T(what_the_peer_left_pending_comes_once_each_at_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
