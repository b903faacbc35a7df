/* test_client_pop.c: a consumer that pops: what it asks for and hands out, against a broker whose answers are late, wrong or gone. */
#include "popper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- What goes right -------------------------------------------------------------------------------------------------- */

static void what_is_settled_is_acked_under_its_handle(void **state)
{
	struct popper *w = *state;

	popper_put(w, 1, 3);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 3);
	assert_string_equal(w->got[2].body, "1-2");
	assert_string_equal(fake_field(w->a, POP, "queueId"), "-1");
	assert_string_equal(fake_field(w->a, POP, "invisibleTime"), "60000");
	assert_string_equal(fake_field(w->a, POP, "consumerGroup"), "g");
	popper_settle(w, 2, true);
	popper_wait_lent(w, "0 1");
	assert_string_equal(fake_field(w->a, ACK, "topic"), "t");
	assert_string_equal(fake_field(w->a, ACK, "queueId"), "1");
	assert_string_equal(fake_field(w->a, ACK, "offset"), "2");
	assert_string_equal(fake_field(w->a, ACK, "extraInfo"), "0 1700000000000 60000 1 0 a 1 2");
	popper_settle(w, 2, true); /* a second time: nothing */
	popper_settle(w, 0, true);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
	assert_int_equal(*popper_count(w, ACK), 3);
	assert_int_equal(w->troubles, 0);
}

static void what_is_not_done_comes_again_at_once(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 2);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	popper_settle(w, 0, false);
	popper_wait_got(w, 3);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "0");
	assert_string_equal(w->got[2].body, "0-0");
	popper_settle(w, 2, true);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
}

static void the_window_is_for_all_queues_together(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .window = 5 };

	popper_put(w, 0, 4);
	popper_put(w, 1, 4);
	popper_consume(w, 0, &opt);
	popper_wait_got(w, 5);
	popper_settle(w, 0, true);
	popper_settle(w, 1, true);
	popper_wait_got(w, 7);
	for (int i = 2; i < 7; i++)
		popper_settle(w, i, true);
	popper_wait_got(w, 8);
	popper_settle(w, 7, true);
	popper_wait_lent(w, "");
}

static void what_comes_while_paused_is_handed_out_later(void **state)
{
	struct popper *w = *state;

	w->pause_at = 2;
	popper_put(w, 0, 5);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	popper_put(w, 1, 1);
	fake_run(&w->loop, 30);
	assert_int_equal(w->ngot, 2);
	mqclient_pause(w->k, false);
	popper_wait_got(w, 6);
	for (int i = 0; i < 6; i++)
		popper_settle(w, i, true);
	popper_wait_lent(w, "");
}

static void who_ends_gives_back_what_it_has(void **state)
{
	struct popper *w = *state;

	w->pause_at = 2; /* the third is held, not handed out */
	popper_put(w, 0, 3);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	popper_settle(w, 0, true);
	assert_int_equal(mqclient_consumer_free(w->k, 10000, &w->e), 0);
	assert_string_equal(fake_lent(w->a, false), "1 2");
	assert_string_equal(fake_lent(w->a, true), "1 2");
	assert_int_equal(*popper_count(w, ACK), 1);
}

static void looking_ends_when_all_was_there(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .stop_at_end = true };

	w->settle = w->commit = true;
	popper_put(w, 0, 3);
	popper_put(w, 1, 40);
	popper_consume(w, 0, &opt);
	popper_wait_for(w, &w->ended, 1);
	assert_int_equal(w->ngot, 43);
	assert_string_equal(fake_field(w->a, POP, "pollTime"), "0");
}

/* ---- Pops -------------------------------------------------------------------------------------------------------------- */

static void a_pop_outlives_its_connection(void **state)
{
	struct popper *w = *state;

	fake_script(w->a, POP, 2, FAKE_HANG_UP, 0, NULL);
	popper_put(w, 0, 2);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	assert_true(*popper_count(w, POP) >= 3);
	fake_stop(w->a);
	fake_run(&w->loop, 100);
	fake_again(w->a);
	popper_put(w, 1, 1);
	popper_wait_got(w, 3);
}

static void refused_pops_are_tried_again_and_told_once(void **state)
{
	struct popper *w = *state;

	fake_script(w->a, POP, 4, FAKE_ANSWER, RESP_NO_PERMISSION, "not now");
	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	assert_int_equal(w->troubles, 1);
	assert_int_equal(w->trouble.response, RESP_NO_PERMISSION);
	assert_non_null(strstr(w->trouble.text, "not now"));
	assert_int_equal(w->fatal, 0);
}

static void a_broker_that_does_not_hold_is_not_hurried(void **state)
{
	struct popper *w = *state;

	w->a->no_hold = true;
	fake_script(w->a, POP, 1, FAKE_ANSWER, RESP_POLLING_FULL, "full");
	popper_consume(w, 0, NULL);
	popper_wait_count(w, POP, 1);
	fake_run(&w->loop, 500);
	assert_true(*popper_count(w, POP) <= 10);
	popper_put(w, 0, 1);
	popper_wait_got(w, 1);
	assert_int_equal(w->troubles, 0);
}

static void messages_without_a_handle_are_not_handed_out(void **state)
{
	struct popper *w = *state;

	w->a->pop_no_handles = true;
	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_for(w, &w->troubles, 1);
	assert_int_equal(w->trouble.code, MQ_EPROTO);
	assert_int_equal(w->ngot, 0);
	w->a->pop_no_handles = false;
	fake_pop_again(w->a, "t", 0, 0);
	popper_wait_got(w, 1);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
}

static void behind_a_damaged_record_nothing_is_taken(void **state)
{
	struct popper *w = *state;
	struct buf b = { 0 };

	popper_put(w, 0, 1);
	fake_record(w->a, &b, "t", 0, 1, "damaged", NULL, 0);
	b.p[20] ^= 1; /* its offset: the body's sum is right */
	b.p[b.n / 2 + 30] ^= 0x55;
	fake_put_record(w->a, "t", 0, b.p, 60); /* and cut */
	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	assert_string_equal(w->got[0].body, "0-0");
	fake_pop_again(w->a, "t", 0, 2); /* its time is over: alone it can be read */
	popper_wait_got(w, 2);
	assert_string_equal(w->got[1].body, "0-2");
	buf_free(&b);
}

static void what_was_revived_is_acked_where_it_lies(void **state)
{
	struct popper *w = *state;

	popper_put_retried(w, "%RETRY%g_t", "0 1700000000000 60000 3 1 a 0 0");
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	assert_string_equal(w->got[0].topic, "%RETRY%g_t");
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_string_equal(fake_field(w->a, ACK, "topic"), "%RETRY%g_t");
	assert_string_equal(fake_field(w->a, ACK, "extraInfo"), "0 1700000000000 60000 3 1 a 0 0");
}

static void another_tag_with_the_same_hash_is_acked_unseen(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .filter = "Aa" };

	fake_put(w->a, "t", 0, "other", "BB"); /* as Java hashes */
	fake_put(w->a, "t", 0, "mine", "Aa");
	popper_consume(w, 0, &opt);
	popper_wait_got(w, 1);
	assert_string_equal(w->got[0].body, "mine");
	popper_wait_lent(w, "1");
	assert_string_equal(fake_field(w->a, POP, "exp"), "Aa");
}

#define T(test) cmocka_unit_test_setup_teardown(test, popper_start, popper_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_settled_is_acked_under_its_handle),
		T(what_is_not_done_comes_again_at_once),
		T(the_window_is_for_all_queues_together),
		T(what_comes_while_paused_is_handed_out_later),
		T(who_ends_gives_back_what_it_has),
		T(looking_ends_when_all_was_there),
		T(a_pop_outlives_its_connection),
		T(refused_pops_are_tried_again_and_told_once),
		T(a_broker_that_does_not_hold_is_not_hurried),
		T(messages_without_a_handle_are_not_handed_out),
		T(behind_a_damaged_record_nothing_is_taken),
		T(what_was_revived_is_acked_where_it_lies),
		T(another_tag_with_the_same_hash_is_acked_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
