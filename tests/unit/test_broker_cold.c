/* test_broker_cold.c: pops and questions for messages that are not in memory: a worker fetches them, and the loop goes on with others.
 * Pulls: test_broker_pull.c. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/message.h"
#include "../../bin/broker/broker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })
enum { LARGE = 4000000, LARGE_ENOUGH = 18, OLD = 5 };

struct fixture {
	struct broker_kit *k;
	struct conn *c, *producer;
};

static int looks;

static int nothing_in_memory(void *p, size_t n, unsigned char *in)
{
	looks++;
	memset(in, 0, (n + 4095) / 4096);
	return 0;
}

/* Each message of T has a key of its own, and all one in common; much is stored behind them. */
static int setup(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=134217728", NULL };
	struct fixture *f = calloc(1, sizeof *f);
	char *body = malloc(LARGE), key[64];

	*state = f;
	f->k = broker_kit_start(props);
	f->c = broker_kit_dial(f->k, false);
	f->producer = broker_kit_dial(f->k, false);
	for (int i = 0; i < OLD; i++) {
		snprintf(body, LARGE, "m%d", i);
		snprintf(key, sizeof key, "KEYS\001k%d all\002", i);
		kit_send_props(f->k, f->producer, "T", 0, body, key);
	}
	memset(body, 'x', LARGE - 1);
	body[LARGE - 1] = 0;
	for (int i = 0; i < LARGE_ENOUGH; i++)
		assert_int_equal(kit_send(f->k, f->producer, "big", 0, body, NULL)->code, RESP_SUCCESS);
	free(body);
	looks = 0;
	sys.mincore = nothing_in_memory;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sys = sys_real;
	if (f->k)
		broker_kit_stop(f->k);
	free(f);
	return 0;
}

static uint64_t fetched(struct fixture *f)
{
	return broker_kit_broker(f->k)->metrics.pulls_fetched;
}

static struct asked *pop_later(struct fixture *f, const char *topic)
{
	char born[24];

	snprintf(born, sizeof born, "%lld", (long long)clock_wall_ms());
	return ask_later(f->k, f->c, REQ_POP_MESSAGE, NONE, "consumerGroup", "g", "topic", topic, "queueId", "-1", "maxMsgNums", "32",
			 "invisibleTime", "60000", "pollTime", "0", "bornTime", born, "initMode", "0", "exp", "*", "expType", "TAG",
			 "order", "false", NULL);
}

static struct asked *query_later(struct fixture *f, const char *key)
{
	return ask_later(f->k, f->c, REQ_QUERY_MESSAGE, NONE, "topic", "T", "key", key, "maxNum", "32", "beginTimestamp", "0",
			 "endTimestamp", "9223372036854775807", NULL);
}

static struct asked *view_later(struct fixture *f, const char *topic)
{
	char off[24];

	snprintf(off, sizeof off, "%lld", (long long)kit_look(f->k, topic, 0, 0).log_off);
	return ask_later(f->k, f->c, REQ_VIEW_MESSAGE_BY_ID, NONE, "offset", off, NULL);
}

static struct asked *search_later(struct fixture *f, int64_t ms)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)ms);
	return ask_later(f->k, f->c, REQ_SEARCH_OFFSET_BY_TIMESTAMP, NONE, "topic", "T", "queueId", "0", "timestamp", text, NULL);
}

/* It waits for a worker, who is held up, while the loop serves others; then everything is in memory. */
static void others_go_on_meanwhile(struct fixture *f, struct asked *a)
{
	broker_kit_settle(f->k);
	assert_false(a->done);
	assert_true(fetched(f) > 0);
	assert_int_equal(kit_send(f->k, f->producer, "new", 0, "fresh", NULL)->code, RESP_SUCCESS);
	assert_false(a->done);
	sys.mincore = sys_real.mincore;
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, a);
}

static int messages_in(const struct asked *a)
{
	struct mq_message m;
	int n = 0;

	for (size_t at = 0; at < a->body.n; n++) {
		int32_t size = mq_message_decode(a->body.p + at, a->body.n - at, true, &m);

		assert_true(size > 0);
		at += (size_t)size;
	}
	return n;
}

static void a_pop_is_fetched_by_a_worker(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_block_workers(f->k);
	a = pop_later(f, "T");
	others_go_on_meanwhile(f, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(a), "m0 m1 m2 m3 m4");
	assert_int_equal(fetched(f), 1);
	asked_free(a);
	/* They are taken: nothing is left. */
	a = pop_later(f, "T");
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_POLLING_TIMEOUT);
	asked_free(a);
}

/* Even when they are never seen in memory (they may have gone again) each comes, and once. */
static void a_pop_of_what_does_not_stay_in_memory_gets_it(void **state)
{
	struct fixture *f = *state;
	char want[8];

	for (int i = 0; i < OLD; i++) {
		struct asked *a = pop_later(f, "T");

		asked_wait(f->k, a);
		assert_int_equal(a->code, RESP_SUCCESS);
		snprintf(want, sizeof want, "m%d", i);
		assert_string_equal(asked_bodies(a), want);
		asked_free(a);
	}
	assert_in_range(fetched(f), OLD, 4 * OLD);
}

static void a_queue_on_the_disk_does_not_hold_up_another(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	assert_int_equal(kit_send(f->k, f->producer, "T", 1, "new", NULL)->code, RESP_SUCCESS);
	broker_kit_block_workers(f->k);
	a = pop_later(f, "T");
	asked_wait(f->k, a);
	assert_string_equal(asked_bodies(a), "new");
	asked_free(a);
	assert_int_equal(fetched(f), 0);
	/* The other one is on its way: then it is found at once. */
	sys.mincore = sys_real.mincore;
	broker_kit_unblock_workers(f->k);
	a = pop_later(f, "T");
	asked_wait(f->k, a);
	assert_string_equal(asked_bodies(a), "m0 m1 m2 m3 m4");
	asked_free(a);
	assert_int_equal(fetched(f), 0);
}

static void a_pop_whose_topic_is_deleted_meanwhile_is_told(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *deleted;

	broker_kit_block_workers(f->k);
	a = pop_later(f, "T");
	broker_kit_settle(f->k);
	deleted = ask_later(f->k, f->producer, REQ_DELETE_TOPIC_IN_BROKER, MQ_STR(""), "topic", "T", NULL);
	broker_kit_settle(f->k);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_TOPIC_NOT_EXIST);
	asked_free(a);
	asked_wait(f->k, deleted);
	asked_free(deleted);
}

static void a_query_by_key_is_fetched_by_a_worker(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_block_workers(f->k);
	a = query_later(f, "all");
	others_go_on_meanwhile(f, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(messages_in(a), OLD);
	asked_free(a);
}

static void a_message_by_its_id_is_fetched_by_a_worker(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_block_workers(f->k);
	a = view_later(f, "T");
	others_go_on_meanwhile(f, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(messages_in(a), 1);
	assert_int_equal(fetched(f), 1);
	asked_free(a);
}

static void a_search_by_time_is_fetched_by_a_worker(void **state)
{
	struct fixture *f = *state;
	int64_t last = kit_look(f->k, "T", 0, OLD - 1).store_ms;
	struct asked *a;

	broker_kit_block_workers(f->k);
	a = search_later(f, last + 1);
	others_go_on_meanwhile(f, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "offset"), OLD);
	asked_free(a);
}

/* Whatever is fetched is gone again: after so many rounds the loop waits, and what is said is right. */
static void questions_end_when_nothing_stays_in_memory(void **state)
{
	struct fixture *f = *state;
	struct asked *a = query_later(f, "k3"), *b = view_later(f, "T"), *c = search_later(f, 0);

	asked_wait(f->k, a);
	assert_int_equal(messages_in(a), 1);
	asked_wait(f->k, b);
	assert_int_equal(messages_in(b), 1);
	asked_wait(f->k, c);
	assert_int_equal(asked_i64(c, "offset"), 0);
	asked_free(a);
	asked_free(b);
	asked_free(c);
}

static void what_is_new_is_not_asked_for(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	assert_int_equal(kit_send(f->k, f->producer, "new", 0, "fresh", NULL)->code, RESP_SUCCESS);
	a = view_later(f, "new");
	asked_wait(f->k, a);
	assert_int_equal(messages_in(a), 1);
	asked_free(a);
	a = pop_later(f, "new");
	asked_wait(f->k, a);
	assert_string_equal(asked_bodies(a), "fresh");
	asked_free(a);
	assert_int_equal(looks, 0);
	assert_int_equal(fetched(f), 0);
}

static void a_stop_answers_all(void **state)
{
	struct fixture *f = *state;
	struct asked *a[4];

	broker_kit_block_workers(f->k);
	a[0] = pop_later(f, "T");
	a[1] = view_later(f, "T");
	a[2] = query_later(f, "all");
	a[3] = search_later(f, 0);
	broker_kit_settle(f->k);
	assert_int_equal(fetched(f), 4);
	broker_kit_stop(f->k); /* lets the workers go */
	f->k = NULL;
	for (int i = 0; i < 4; i++)
		asked_free(a[i]);
}

static void the_end_of_a_connection_ends_its_questions(void **state)
{
	struct fixture *f = *state;
	struct asked *a[4];

	broker_kit_block_workers(f->k);
	a[0] = pop_later(f, "T");
	a[1] = view_later(f, "T");
	a[2] = query_later(f, "all");
	a[3] = search_later(f, 0);
	broker_kit_settle(f->k);
	broker_kit_hang_up(f->k, f->c);
	broker_kit_unblock_workers(f->k);
	broker_kit_settle(f->k);
	for (int i = 0; i < 4; i++)
		asked_free(a[i]);
	assert_int_equal(kit_send(f->k, f->producer, "new", 0, "fresh", NULL)->code, RESP_SUCCESS);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_pop_is_fetched_by_a_worker),
		T(a_pop_of_what_does_not_stay_in_memory_gets_it),
		T(a_queue_on_the_disk_does_not_hold_up_another),
		T(a_pop_whose_topic_is_deleted_meanwhile_is_told),
		T(a_query_by_key_is_fetched_by_a_worker),
		T(a_message_by_its_id_is_fetched_by_a_worker),
		T(a_search_by_time_is_fetched_by_a_worker),
		T(questions_end_when_nothing_stays_in_memory),
		T(what_is_new_is_not_asked_for),
		T(a_stop_answers_all),
		T(the_end_of_a_connection_ends_its_questions),
	};

	return cmocka_run_group_tests_name("broker_cold", tests, NULL, NULL);
}
