/* test_lock_table.c: who holds a queue, for how long, and what that costs. */
#include "../../bin/broker/lock_table.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define G MQ_STR("g")
#define A MQ_STR("client-a")
#define B MQ_STR("client-b")

static const struct body_queue q0 = { { "T", 1 }, { "b", 1 }, 0 }, q1 = { { "T", 1 }, { "b", 1 }, 1 }, other_broker = { { "T", 1 }, { "c", 1 }, 0 },
			       joined = { { "Tb", 2 }, { "", 0 }, 0 };

static int setup(void **state)
{
	*state = lock_table_new();
	return 0;
}

static int teardown(void **state)
{
	lock_table_free(*state);
	return 0;
}

static void a_queue_has_one_client_at_a_time(void **state)
{
	struct lock_table *t = *state;

	assert_true(lock_table_take(t, G, &q0, A, 1000));
	assert_true(lock_table_take(t, G, &q0, A, 1001));
	assert_false(lock_table_take(t, G, &q0, B, 1002));
	assert_int_equal(lock_table_count(t), 1);
}

static void queues_brokers_and_groups_are_told_apart(void **state)
{
	struct lock_table *t = *state;

	assert_true(lock_table_take(t, G, &q0, A, 0));
	assert_true(lock_table_take(t, G, &q1, B, 0));
	assert_true(lock_table_take(t, G, &other_broker, B, 0));
	assert_true(lock_table_take(t, G, &joined, B, 0));
	assert_true(lock_table_take(t, MQ_STR("h"), &q0, B, 0));
	assert_int_equal(lock_table_count(t), 5);
}

static void a_lease_lasts_until_its_time_and_is_then_for_anybody(void **state)
{
	struct lock_table *t = *state;

	assert_true(lock_table_take(t, G, &q0, A, 1000));
	assert_false(lock_table_take(t, G, &q0, B, 1000 + LOCK_LEASE_MS));
	assert_true(lock_table_take(t, G, &q0, B, 1001 + LOCK_LEASE_MS));
	assert_false(lock_table_take(t, G, &q0, A, 1001 + LOCK_LEASE_MS));
	assert_int_equal(lock_table_count(t), 1);
}

static void asking_again_renews_the_lease(void **state)
{
	struct lock_table *t = *state;

	assert_true(lock_table_take(t, G, &q0, A, 0));
	assert_true(lock_table_take(t, G, &q0, A, LOCK_LEASE_MS));
	assert_false(lock_table_take(t, G, &q0, B, LOCK_LEASE_MS + 1));
}

static void only_the_holder_gives_a_queue_back(void **state)
{
	struct lock_table *t = *state;

	lock_table_take(t, G, &q0, A, 0);
	lock_table_release(t, G, &q0, B);
	assert_false(lock_table_take(t, G, &q0, B, 1));
	lock_table_release(t, G, &q0, A);
	assert_true(lock_table_take(t, G, &q0, B, 1));
	lock_table_release(t, G, &q1, B); /* never locked */
	lock_table_release(t, MQ_STR("nobody"), &q0, B);
}

static void a_group_is_live_while_one_lease_is(void **state)
{
	struct lock_table *t = *state;

	assert_false(lock_table_live(t, G, 0));
	lock_table_take(t, G, &q0, A, 0);
	lock_table_take(t, G, &q1, A, 5000);
	assert_true(lock_table_live(t, G, LOCK_LEASE_MS + 1));
	assert_false(lock_table_live(t, G, LOCK_LEASE_MS + 5001));
	lock_table_release(t, G, &q1, A);
	assert_true(lock_table_live(t, G, LOCK_LEASE_MS));
	assert_false(lock_table_live(t, MQ_STR("h"), 0));
}

static void what_has_run_out_takes_no_room(void **state)
{
	struct lock_table *t = *state;

	lock_table_take(t, G, &q0, A, 0);
	lock_table_take(t, MQ_STR("h"), &q0, A, 1);
	lock_table_sweep(t, LOCK_LEASE_MS);
	assert_int_equal(lock_table_count(t), 2);
	lock_table_sweep(t, LOCK_LEASE_MS + 1);
	assert_int_equal(lock_table_count(t), 1);
	assert_false(lock_table_take(t, MQ_STR("h"), &q0, B, LOCK_LEASE_MS + 1));
}

static void rubbish_is_not_locked(void **state)
{
	struct lock_table *t = *state;
	char text[300];
	struct body_queue big = q0;

	memset(text, 'x', sizeof text);
	big.topic = (struct mq_str){ text, sizeof text };
	assert_false(lock_table_take(t, G, &big, A, 0));
	assert_false(lock_table_take(t, big.topic, &q0, A, 0));
	assert_false(lock_table_take(t, G, &q0, big.topic, 0));
	assert_false(lock_table_take(t, G, &q0, (struct mq_str){ 0 }, 0));
	assert_false(lock_table_take(t, (struct mq_str){ 0 }, &q0, A, 0));
	assert_int_equal(lock_table_count(t), 0);
}

static void there_is_a_bound(void **state)
{
	struct lock_table *t = *state;
	struct body_queue q = q0;

	for (q.id = 0; q.id < LOCKS_MAX; q.id++)
		assert_true(lock_table_take(t, G, &q, A, 0));
	assert_false(lock_table_take(t, G, &q, A, 0));
	assert_true(lock_table_take(t, G, &q0, A, 0));
	lock_table_release(t, G, &q0, A);
	assert_true(lock_table_take(t, G, &q, A, 0));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_queue_has_one_client_at_a_time),
		T(queues_brokers_and_groups_are_told_apart),
		T(a_lease_lasts_until_its_time_and_is_then_for_anybody),
		T(asking_again_renews_the_lease),
		T(only_the_holder_gives_a_queue_back),
		T(a_group_is_live_while_one_lease_is),
		T(what_has_run_out_takes_no_room),
		T(rubbish_is_not_locked),
		T(there_is_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
