/* test_ha_switch_role.c: replication with epochs, event by event; the long run of things is in tests/sim. */
#include "../../bin/broker/ha_switch_role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ha_limits limits = { .heartbeat_ms = 5000, .silence_ms = 20000, .block_bytes = 32768, .gap_bytes = 1 << 20 };
static const struct ha_log log_now = { .min = 0, .end = 250000, .segment = 100000 };
static struct epoch_list list;

static int begin(void **state)
{
	list.n = 0;
	epoch_append(&list, 1, 0, NULL);
	epoch_append(&list, 3, 120000, NULL);
	return 0;
}

/* A slave that has shaken hands. */
static struct ha_switch_slave greeted(bool last_segment)
{
	struct ha_switch_hello h = { .id = 2, .last_segment = last_segment };
	struct ha_switch_slave s;
	struct ha_switch_send a;

	ha_switch_begin(&s, 0);
	assert_int_equal(ha_switch_greet(&s, &h, 0, NULL), 0);
	a = ha_switch_next(&s, &log_now, &list, &limits, 0);
	assert_int_equal(a.what, HA_SWITCH_ANSWER);
	assert_int_equal(a.off, 250000);
	assert_int_equal(a.epoch.number, 3);
	ha_switch_sent(&s, &log_now, &a, 0);
	return s;
}

static void nothing_is_believed_before_the_handshake(void **state)
{
	struct ha_switch_slave s;
	struct mq_error why;

	ha_switch_begin(&s, 0);
	assert_int_equal(ha_switch_next(&s, &log_now, &list, &limits, 60000).what, HA_SWITCH_NOTHING);
	assert_int_equal(ha_switch_report(&s, &log_now, 100, 0, &why), MQ_EPROTO);
	assert_true(why.text[0]);
	assert_int_equal(s.base.acked, -1);
}

static void a_repeated_handshake_is_answered_once(void **state)
{
	struct ha_switch_hello h = { .id = 2 }, other = { .id = 3 };
	struct ha_switch_slave s;
	struct ha_switch_send a;

	ha_switch_begin(&s, 0);
	ha_switch_greet(&s, &h, 0, NULL);
	ha_switch_greet(&s, &h, 0, NULL);
	a = ha_switch_next(&s, &log_now, &list, &limits, 0);
	ha_switch_sent(&s, &log_now, &a, 0);
	assert_int_equal(ha_switch_next(&s, &log_now, &list, &limits, 0).what, HA_SWITCH_NOTHING);
	assert_int_equal(ha_switch_greet(&s, &h, 0, NULL), 0);
	assert_int_equal(ha_switch_next(&s, &log_now, &list, &limits, 0).what, HA_SWITCH_NOTHING);
	assert_int_equal(ha_switch_greet(&s, &other, 0, NULL), MQ_EPROTO);
}

static void a_block_ends_where_an_epoch_ends(void **state)
{
	struct ha_switch_slave s = greeted(false);
	struct ha_switch_send a;

	assert_int_equal(ha_switch_report(&s, &log_now, 119000, 0, NULL), 0);
	a = ha_switch_next(&s, &log_now, &list, &limits, 0);
	assert_int_equal(a.what, HA_SWITCH_BLOCK);
	assert_int_equal(a.n, 1000);
	assert_int_equal(a.epoch.number, 1);
	ha_switch_sent(&s, &log_now, &a, 0);
	a = ha_switch_next(&s, &log_now, &list, &limits, 0);
	assert_int_equal(a.off, 120000);
	assert_int_equal(a.epoch.number, 3);
	assert_int_equal(a.epoch.start, 120000);
}

static void an_empty_slave_gets_all_or_the_last_segment(void **state)
{
	struct ha_switch_slave all = greeted(false), last = greeted(true);

	ha_switch_report(&all, &log_now, 0, 0, NULL);
	ha_switch_report(&last, &log_now, 0, 0, NULL);
	assert_int_equal(ha_switch_next(&all, &log_now, &list, &limits, 0).off, 0);
	assert_int_equal(ha_switch_next(&last, &log_now, &list, &limits, 0).off, 200000);
}

static void caught_up_is_who_has_what_was_there(void **state)
{
	struct ha_switch_slave s = greeted(false);
	struct ha_log more = log_now;

	ha_switch_report(&s, &log_now, 240000, 10, NULL);
	assert_false(ha_switch_caught_up(&s));
	ha_switch_sent(&s, &log_now, &(struct ha_switch_send){ .what = HA_SWITCH_BLOCK, .off = 240000, .n = 10000 }, 20);
	more.end += 5000;
	ha_switch_report(&s, &more, 250000, 30, NULL);
	assert_true(ha_switch_caught_up(&s));
	assert_int_equal(s.caught_up_ms, 20);
}

/* ---- A slave ------------------------------------------------------------------------------------------------------------ */

static void a_slave_cuts_what_the_master_has_not(void **state)
{
	struct epoch_list mine = { .n = 0 };
	struct ha_log log = { .min = 0, .end = 150000, .segment = 100000 };
	struct ha_switch_decision d;

	epoch_append(&mine, 1, 0, NULL);
	epoch_append(&mine, 2, 110000, NULL);
	d = ha_switch_decide(&mine, &log, &list, 250000, NULL);
	assert_int_equal(d.what, HA_SWITCH_CUT);
	assert_int_equal(d.at, 110000);
	epoch_cut(&mine, d.at);
	log.end = d.at;
	d = ha_switch_decide(&mine, &log, &list, 250000, NULL);
	assert_int_equal(d.what, HA_SWITCH_FOLLOW);
	assert_int_equal(d.at, 110000);
}

static void a_list_may_have_to_be_cut_where_the_log_need_not(void **state)
{
	struct epoch_list mine = { .n = 0 };
	struct ha_log log = { .min = 0, .end = 110000, .segment = 100000 };

	epoch_append(&mine, 1, 0, NULL);
	epoch_append(&mine, 2, 110000, NULL); /* begun here, without a byte */
	assert_int_equal(ha_switch_decide(&mine, &log, &list, 250000, NULL).what, HA_SWITCH_CUT);
}

static void who_has_nothing_in_common_stays_out(void **state)
{
	struct epoch_list mine = { .n = 0 };
	struct ha_log log = { .min = 0, .end = 100, .segment = 100000 }, empty = { .segment = 100000 };
	struct mq_error why;

	epoch_append(&mine, 2, 0, NULL);
	assert_int_equal(ha_switch_decide(&mine, &log, &list, 250000, &why).what, HA_SWITCH_REFUSE);
	assert_true(why.text[0]);
	assert_int_equal(ha_switch_decide(&mine, &empty, &list, 250000, &why).what, HA_SWITCH_CUT);
	mine.n = 0;
	assert_int_equal(ha_switch_decide(&mine, &empty, &list, 250000, &why).what, HA_SWITCH_FOLLOW);
}

static void blocks_and_their_epochs(void **state)
{
	static const struct {
		const char *what;
		struct ha_switch_head h;
		int rc;
		bool grew;
	} row[] = {
		{ "the epoch that is there", { 110000, 10, { 1, 0 }, 0 }, 0, false },
		{ "a new one that begins here", { 110000, 10, { 3, 110000 }, 0 }, 0, true },
		{ "one that began before", { 110000, 10, { 3, 100000 }, 0 }, MQ_EPROTO, false },
		{ "the same number, begun elsewhere", { 110000, 10, { 1, 5 }, 0 }, MQ_EPROTO, false },
		{ "an older one", { 110000, 10, { 0, 0 }, 0 }, MQ_EPROTO, false },
		{ "not where the log ends", { 110001, 10, { 1, 0 }, 0 }, MQ_EPROTO, false },
		{ "a heartbeat says nothing of epochs", { 110000, 0, { 9, 9 }, 0 }, 0, false },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct epoch_list mine = { .n = 0 };
		struct ha_follower f;
		struct mq_error why;
		bool grew;

		epoch_append(&mine, 1, 0, NULL);
		ha_follower_begin(&f);
		ha_follower_connected(&f, 0);
		ha_follower_agreed(&f, 0);
		if (ha_switch_take(&f, &mine, &row[i].h, 110000, 0, &grew, &why) != row[i].rc || grew != row[i].grew)
			fail_msg("%s", row[i].what);
	}
}

static void an_empty_log_takes_no_bytes_of_no_epoch(void **state)
{
	struct ha_switch_head h = { .off = 0, .n = 10, .epoch = { -1, 0 } };
	struct epoch_list mine = { .n = 0 };
	struct ha_follower f;
	struct mq_error why;
	bool grew;

	ha_follower_begin(&f);
	ha_follower_connected(&f, 0);
	ha_follower_agreed(&f, 0);
	assert_int_equal(ha_switch_take(&f, &mine, &h, 0, 0, &grew, &why), MQ_EPROTO);
	assert_int_equal(mine.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_believed_before_the_handshake, begin),
		cmocka_unit_test_setup(a_repeated_handshake_is_answered_once, begin),
		cmocka_unit_test_setup(a_block_ends_where_an_epoch_ends, begin),
		cmocka_unit_test_setup(an_empty_slave_gets_all_or_the_last_segment, begin),
		cmocka_unit_test_setup(caught_up_is_who_has_what_was_there, begin),
		cmocka_unit_test_setup(a_slave_cuts_what_the_master_has_not, begin),
		cmocka_unit_test_setup(a_list_may_have_to_be_cut_where_the_log_need_not, begin),
		cmocka_unit_test_setup(who_has_nothing_in_common_stays_out, begin),
		cmocka_unit_test_setup(blocks_and_their_epochs, begin),
		cmocka_unit_test_setup(an_empty_log_takes_no_bytes_of_no_epoch, begin),
	};

	return cmocka_run_group_tests_name("ha_switch_role", tests, NULL, NULL);
}
