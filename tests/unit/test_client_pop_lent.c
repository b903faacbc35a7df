/* test_client_pop_lent.c: what brokers have lent to a consumer that pops: acked, renewed, sent back, whatever becomes of the answers. */
#include "popper.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Acks -------------------------------------------------------------------------------------------------------------- */

static void an_ack_without_an_answer_is_sent_again(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 100, NULL);
	popper_wait_got(w, 1);
	fake_script(w->a, ACK, 2, FAKE_SILENT, 0, NULL);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_int_equal(*popper_count(w, ACK), 3);
	fake_run(&w->loop, 700);
	assert_int_equal(*popper_count(w, ACK), 3); /* no further one */
	assert_int_equal(w->troubles, 0);
}

/* Done, but we do not hear of it: the second is refused, and that cannot be told from a message whose time was over. */
static void an_ack_whose_answer_is_lost_is_told_as_too_late(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 100, NULL);
	popper_wait_got(w, 1);
	w->a->delay_ms[fake_slot(ACK)] = 400;
	popper_settle(w, 0, true);
	popper_wait_count(w, ACK, 1);
	w->a->delay_ms[fake_slot(ACK)] = 0;
	popper_wait_for(w, &w->troubles, 1);
	assert_int_equal(w->trouble.code, MQ_ETIMEOUT);
	assert_string_equal(fake_lent(w->a, false), "");
	popper_put(w, 0, 1);
	popper_wait_got(w, 2);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
	assert_int_equal(w->troubles, 1);
}

static void a_refused_ack_is_told_once_and_not_sent_again(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	fake_pop_again(w->a, "t", 0, 0); /* its time is over, as the broker sees it */
	popper_wait_got(w, 2);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
	popper_put(w, 0, 1);
	popper_wait_got(w, 3);
	fake_script(w->a, ACK, 1, FAKE_ANSWER, RESP_MESSAGE_ILLEGAL, "no");
	popper_settle(w, 2, true);
	popper_wait_for(w, &w->troubles, 1);
	assert_non_null(strstr(w->trouble.text, "offset 1"));
	fake_run(&w->loop, 700);
	assert_int_equal(*popper_count(w, ACK), 2);
	assert_int_equal(w->fatal, 0);
}

static void an_ack_outlives_its_connection(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 2);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	fake_script(w->a, ACK, 1, FAKE_HANG_UP, 0, NULL);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "1");
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
	popper_put(w, 1, 1); /* and it pops on */
	popper_wait_got(w, 3);
}

static void an_ack_waits_for_a_broker_that_is_away(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 2);
	popper_consume(w, 300, NULL);
	popper_wait_got(w, 2);
	fake_stop(w->a);
	popper_settle(w, 0, true);
	fake_run(&w->loop, 700);
	fake_again(w->a);
	popper_wait_lent(w, "1");
	popper_put(w, 0, 1);
	popper_wait_got(w, 3);
	assert_string_equal(w->got[2].body, "0-2");
}

static void answers_that_come_twice_count_once(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 2);
	fake_script(w->a, POP, 1, FAKE_TWICE, 0, NULL);
	popper_consume(w, 0, NULL);
	popper_wait_for(w, &w->ngot, 2);
	fake_script(w->a, ACK, 2, FAKE_TWICE, 0, NULL);
	for (int i = 0; i < 2; i++)
		popper_settle(w, i, true);
	popper_wait_count(w, ACK, 2);
	popper_put(w, 0, 1);
	popper_wait_for(w, &w->ngot, 3);
	assert_string_equal(w->got[2].body, "0-2");
}

static void the_end_waits_for_acks_that_are_under_way(void **state)
{
	struct popper *w = *state;

	w->settle = w->commit = true;
	popper_put(w, 0, 3);
	w->a->delay_ms[fake_slot(ACK)] = 150;
	popper_consume(w, 10000, NULL);
	popper_wait_got(w, 3);
	assert_int_equal(mqclient_consumer_free(w->k, 10000, &w->e), 0);
	assert_string_equal(fake_lent(w->a, false), "");
}

static void an_end_that_cannot_ack_says_so(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 100, NULL);
	popper_wait_got(w, 1);
	fake_script(w->a, ACK, 1000, FAKE_SILENT, 0, NULL);
	popper_settle(w, 0, true);
	assert_true(mqclient_consumer_free(w->k, 300, &w->e) < 0);
	assert_non_null(strstr(w->e.text, "acks"));
}

/* ---- Renewals ---------------------------------------------------------------------------------------------------------- */

static void what_takes_long_is_renewed_and_acked_under_the_new_handle(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	popper_put(w, 0, 1);
	popper_consume(w, 0, &opt);
	popper_wait_got(w, 1);
	popper_wait_count(w, CHANGE, 3);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "1000");
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_non_null(strstr(fake_field(w->a, ACK, "extraInfo"), " 1000 2 0 a 0 0")); /* the time and the queue of the renewal */
	assert_int_equal(w->ngot, 1);
	assert_int_equal(w->troubles, 0);
}

static void a_renewal_that_is_refused_ends_them(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	popper_put(w, 0, 1);
	popper_consume(w, 0, &opt);
	popper_wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_ANSWER, RESP_NO_MESSAGE, "too late");
	popper_wait_count(w, CHANGE, 1);
	fake_run(&w->loop, 1300);
	assert_int_equal(*popper_count(w, CHANGE), 1);
	fake_pop_again(w->a, "t", 0, 0);
	popper_wait_got(w, 2); /* again, under a handle that counts */
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
}

static void a_lost_renewal_is_asked_again(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 4000 };

	popper_put(w, 0, 1);
	popper_consume(w, 100, &opt);
	popper_wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_SILENT, 0, NULL);
	fake_script(w->a, CHANGE, 1, FAKE_HANG_UP, 0, NULL);
	popper_wait_count(w, CHANGE, 3);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_int_equal(w->ngot, 1);
}

static void a_renewal_that_says_nothing_leaves_the_handle(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };
	char before[200];

	popper_put(w, 0, 1);
	popper_consume(w, 0, &opt);
	popper_wait_got(w, 1);
	fake_script(w->a, CHANGE, 2, FAKE_ANSWER, RESP_SUCCESS, "without its fields");
	popper_wait_count(w, CHANGE, 1);
	snprintf(before, sizeof before, "%s", fake_field(w->a, CHANGE, "extraInfo"));
	popper_wait_count(w, CHANGE, 2);
	assert_string_equal(fake_field(w->a, CHANGE, "extraInfo"), before);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
}

/* Settled while a renewal is under way: the ack waits for the new handle. */
static void an_ack_waits_for_a_renewal(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	popper_put(w, 0, 2);
	popper_consume(w, 10000, &opt);
	popper_wait_got(w, 2);
	w->a->delay_ms[fake_slot(CHANGE)] = 200;
	popper_wait_count(w, CHANGE, 2);
	popper_settle(w, 0, true);
	popper_settle(w, 1, false);
	w->a->delay_ms[fake_slot(CHANGE)] = 0;
	popper_wait_got(w, 3);
	assert_int_equal(*popper_count(w, ACK), 1);
	assert_string_equal(w->got[2].body, "0-1");
	popper_settle(w, 2, true);
	popper_wait_lent(w, "");
	assert_int_equal(w->troubles, 0);
}

static void when_the_time_is_over_the_message_comes_again_and_the_old_one_is_forgotten(void **state)
{
	struct popper *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	popper_put(w, 0, 1);
	popper_consume(w, 100, &opt);
	popper_wait_got(w, 1);
	fake_script(w->a, ACK, 1000, FAKE_SILENT, 0, NULL);
	popper_settle(w, 0, true);
	popper_wait_for(w, &w->troubles, 1); /* no answer until it was over */
	assert_int_equal(w->trouble.code, MQ_ETIMEOUT);
	for (int i = 0; i < FAKE_RULES; i++)
		w->a->rule[i].times = 0;
	fake_pop_again(w->a, "t", 0, 0);
	popper_wait_got(w, 2);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
	assert_int_equal(w->troubles, 1);
}

/* ---- Sent back --------------------------------------------------------------------------------------------------------- */

static void on_back(void *arg, int rc, const struct mq_error *e)
{
	struct popper *w = arg;

	w->back++;
	w->back_rc = rc;
}

static int send_back(struct popper *w, int i, int level, int max)
{
	struct mqclient_back b = { .broker = "a", .topic = str_of(w->got[i].topic), .log_off = w->got[i].log_off, .id = "ID",
				   .delay_level = level, .max_times = max };

	return mqclient_send_back(w->k, &b, on_back, w, &w->e);
}

static void what_is_sent_back_gets_another_time(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 2);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 2);
	assert_int_equal(send_back(w, 0, 4, -1), 0);
	popper_wait_for(w, &w->back, 1);
	assert_int_equal(w->back_rc, 0);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "30000");
	popper_settle(w, 0, true); /* it is the broker's already */
	fake_run(&w->loop, 20);
	assert_int_equal(*popper_count(w, ACK), 0);
	fake_pop_again(w->a, "t", 0, 0);
	popper_wait_got(w, 3);
	popper_settle(w, 2, true);
	popper_settle(w, 1, true);
	popper_wait_lent(w, "");
}

static void what_could_not_be_sent_back_stays_with_us(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_ANSWER, RESP_SYSTEM_ERROR, "disk full");
	assert_int_equal(send_back(w, 0, 0, -1), 0);
	popper_wait_for(w, &w->back, 1);
	assert_int_equal(w->back_rc, MQ_EREFUSED);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_int_equal(*popper_count(w, ACK), 1);
}

static void the_last_time_it_goes_to_the_dead_letters(void **state)
{
	struct popper *w = *state;

	popper_put_retried(w, "%RETRY%g_t", "0 1700000000000 60000 3 1 a 0 0"); /* it came once before */
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	assert_int_equal(send_back(w, 0, 3, 1), 0);
	popper_wait_for(w, &w->back, 1);
	assert_int_equal(w->a->count[REQ_CONSUMER_SEND_MSG_BACK], 1);
	assert_int_equal(*popper_count(w, CHANGE), 0);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
}

static void what_is_no_longer_ours_cannot_be_sent_back(void **state)
{
	struct popper *w = *state;

	popper_put(w, 0, 1);
	popper_consume(w, 0, NULL);
	popper_wait_got(w, 1);
	popper_settle(w, 0, true);
	popper_wait_lent(w, "");
	assert_int_equal(send_back(w, 0, 3, -1), MQ_ENOTFOUND);
	assert_int_equal(w->back, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, popper_start, popper_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_ack_without_an_answer_is_sent_again),
		T(an_ack_whose_answer_is_lost_is_told_as_too_late),
		T(a_refused_ack_is_told_once_and_not_sent_again),
		T(an_ack_outlives_its_connection),
		T(an_ack_waits_for_a_broker_that_is_away),
		T(answers_that_come_twice_count_once),
		T(the_end_waits_for_acks_that_are_under_way),
		T(an_end_that_cannot_ack_says_so),
		T(what_takes_long_is_renewed_and_acked_under_the_new_handle),
		T(a_renewal_that_is_refused_ends_them),
		T(a_lost_renewal_is_asked_again),
		T(a_renewal_that_says_nothing_leaves_the_handle),
		T(an_ack_waits_for_a_renewal),
		T(when_the_time_is_over_the_message_comes_again_and_the_old_one_is_forgotten),
		T(what_is_sent_back_gets_another_time),
		T(what_could_not_be_sent_back_stays_with_us),
		T(the_last_time_it_goes_to_the_dead_letters),
		T(what_is_no_longer_ours_cannot_be_sent_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
