/* test_role.c: a broker under a controller: its number, its role, its sync set, what may be acknowledged.  The long run of things is in
 * tests/sim. */
#include "../../bin/broker/role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct role_conf conf = { .addr = "1.2.3.4:10911", .controller = { "c0:1", "c1:1" }, .controllers = 2, .beat_ms = 1000,
				       .metadata_ms = 10000, .replicas_ms = 5000, .check_ms = 5000, .behind_ms = 15000,
				       .answer_ms = 3000, .all_ack = true, .min_in_sync = 1, .in_sync = 1 };
static struct role r;
static struct role_act act;
static int64_t now;

/* The next action of this kind; others are passed over. */
static bool does(enum role_do what, int32_t code)
{
	while (role_next(&r, &act))
		if (act.what == what && (what != ROLE_ASK || act.code == code))
			return true;
	return false;
}

static void expect(enum role_do what, int32_t code)
{
	if (!does(what, code))
		fail_msg("action %d (request %d) does not come", what, code);
}

static struct role_answer answer_of(int32_t code, int64_t master, int32_t epoch, int32_t set_epoch, size_t n, const int64_t *ids)
{
	struct role_answer a = { .seq = act.seq, .code = code, .master = { .id = master, .epoch = epoch }, .set = { .n = n, .epoch = set_epoch } };

	memcpy(a.set.id, ids, n * sizeof(ids[0]));
	snprintf(a.master.addr, sizeof(a.master.addr), "b%lld", (long long)master);
	return a;
}
#define IDS(...) sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }

static void answered(struct role_answer a)
{
	role_answer(&r, &a, now, now);
}

static void tick(int64_t ms)
{
	now += ms;
	role_tick(&r, now, now);
}

static void found_leader(void)
{
	expect(ROLE_ASK, REQ_CONTROLLER_GET_METADATA_INFO);
	answered((struct role_answer){ .seq = act.seq, .leader = "c1:1", .master.id = -1 });
}

/* Broker 1, which is registered, and elected in epoch 1 with a log that ends at 100. */
static void master(int32_t log_epoch, bool whole)
{
	now = 1000;
	role_start(&r, &conf, &(struct role_identity){ .id = 1 }, log_epoch, whole, now);
	tick(0);
	found_leader();
	expect(ROLE_ASK, REQ_CONTROLLER_REGISTER_BROKER);
	answered((struct role_answer){ .seq = act.seq, .master.id = -1 });
	expect(ROLE_ASK, REQ_CONTROLLER_ELECT_MASTER);
	assert_string_equal(act.to, "c1:1");
	answered(answer_of(RESP_SUCCESS, 1, log_epoch < 1 ? 1 : log_epoch, 1, IDS(1)));
}

static void master_now(void)
{
	master(-1, true);
	expect(ROLE_BECOME_MASTER, 0);
	role_log(&r, 100);
	role_changed(&r, true, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_OK);
}

static void report(uint64_t conn, int64_t id, int64_t acked)
{
	role_slave_report(&r, conn, id, false, acked, true, 0, now, now);
}

/* Broker 2 over connection 7 is a member, with everything up to `acked`. */
static void with_slave(int64_t acked)
{
	master_now();
	report(7, 2, acked);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	answered(answer_of(RESP_SUCCESS, -1, 0, 2, IDS(1, 2)));
	assert_int_equal(r.set.n, 2);
}

/* ---- Its number ------------------------------------------------------------------------------------------------------ */

static void a_new_broker_takes_a_number(void **state)
{
	now = 5000;
	role_start(&r, &conf, &(struct role_identity){ 0 }, -1, true, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_NOT_MASTER);
	tick(0);
	found_leader();
	expect(ROLE_ASK, REQ_CONTROLLER_GET_NEXT_BROKER_ID);
	answered((struct role_answer){ .seq = act.seq, .next_id = 3, .master.id = -1 });
	expect(ROLE_WRITE_TEMP, 0);
	assert_int_equal(act.id, 3);
	assert_string_equal(act.check, "1.2.3.4:10911;5000");
	assert_false(does(ROLE_ASK, REQ_CONTROLLER_APPLY_BROKER_ID)); /* not before it is on disk */
	role_wrote(&r, true, now);
	tick(100);
	expect(ROLE_ASK, REQ_CONTROLLER_APPLY_BROKER_ID);
	assert_string_equal(act.check, "1.2.3.4:10911;5000");
	answered((struct role_answer){ .seq = act.seq, .master.id = -1 });
	expect(ROLE_WRITE_IDENTITY, 0);
	assert_int_equal(act.id, 3);
	role_wrote(&r, true, now);
	tick(100);
	expect(ROLE_ASK, REQ_CONTROLLER_REGISTER_BROKER);
	assert_int_equal(act.id, 3);
}

static void a_number_that_is_taken_is_given_up(void **state)
{
	now = 0;
	role_start(&r, &conf, &(struct role_identity){ .temp_id = 4, .temp_check = "x;1" }, -1, true, now);
	tick(0);
	found_leader();
	expect(ROLE_ASK, REQ_CONTROLLER_APPLY_BROKER_ID);
	assert_int_equal(act.id, 4);
	assert_string_equal(act.check, "x;1");
	answered((struct role_answer){ .seq = act.seq, .code = RESP_CONTROLLER_BROKER_ID_INVALID, .master.id = -1 });
	expect(ROLE_FORGET_TEMP, 0);
	tick(1000);
	expect(ROLE_ASK, REQ_CONTROLLER_GET_NEXT_BROKER_ID);
}

static void another_controller_is_asked_when_one_is_silent(void **state)
{
	now = 0;
	role_start(&r, &conf, &(struct role_identity){ .id = 1 }, -1, true, now);
	tick(0);
	expect(ROLE_ASK, REQ_CONTROLLER_GET_METADATA_INFO);
	assert_string_equal(act.to, "c0:1");
	tick(3000);
	tick(500);
	expect(ROLE_ASK, REQ_CONTROLLER_GET_METADATA_INFO);
	assert_string_equal(act.to, "c1:1");
}

/* ---- Its role -------------------------------------------------------------------------------------------------------- */

static void nothing_is_taken_before_the_change_is_done(void **state)
{
	master(-1, true);
	expect(ROLE_BECOME_MASTER, 0);
	assert_int_equal(act.m.epoch, 1);
	assert_int_equal(role_puts(&r), ROLE_PUT_NOT_MASTER);
	role_log(&r, 100);
	role_changed(&r, false, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_NOT_MASTER);
	tick(1000);
	expect(ROLE_BECOME_MASTER, 0);
	role_changed(&r, true, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_OK);
	expect(ROLE_REGISTER, 0);
}

static void a_later_epoch_ends_it_at_once(void **state)
{
	struct role_master none = { .id = -1, .epoch = 2 }, other = { .id = 2, .epoch = 3, .addr = "b2" };
	struct body_sync_set set = { .id = { 2 }, .n = 1, .epoch = 4 };

	master_now();
	role_notified(&r, &none, &set, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_NOT_MASTER);
	assert_int_equal(role_level(&r), -1);
	role_notified(&r, &other, &set, now);
	expect(ROLE_BECOME_SLAVE, 0);
	assert_string_equal(act.m.addr, "b2");
	role_changed(&r, true, now);
	assert_int_equal(r.is, ROLE_IS_SLAVE);
	/* What is older does not count. */
	role_notified(&r, &(struct role_master){ .id = 1, .epoch = 2, .addr = "b1" }, &set, now);
	assert_false(does(ROLE_BECOME_MASTER, 0));
}

static void a_change_during_a_change_comes_after_it(void **state)
{
	struct body_sync_set set = { .id = { 2 }, .n = 1, .epoch = 4 };

	master(-1, true);
	expect(ROLE_BECOME_MASTER, 0);
	role_notified(&r, &(struct role_master){ .id = 2, .epoch = 2, .addr = "b2" }, &set, now);
	assert_false(does(ROLE_BECOME_SLAVE, 0));
	role_changed(&r, true, now);
	assert_int_equal(role_puts(&r), ROLE_PUT_NOT_MASTER);
	tick(100);
	expect(ROLE_BECOME_SLAVE, 0);
	assert_int_equal(act.m.epoch, 2);
}

static void an_epoch_goes_on_if_nothing_was_lost(void **state)
{
	master(5, true);
	expect(ROLE_BECOME_MASTER, 0);
	assert_true(act.whole);
}

static void who_has_lost_something_lets_others_go_first(void **state)
{
	master(5, false);
	assert_false(does(ROLE_BECOME_MASTER, 0));
	for (int i = 0; i < 50; i++) {
		tick(100);
		assert_false(does(ROLE_BEAT, 0));
	}
	now = r.return_ms;
	r.life_seq = 0;
	tick(0);
	found_leader();
	tick(1000);
	expect(ROLE_ASK, REQ_CONTROLLER_GET_REPLICA_INFO);
	answered(answer_of(RESP_SUCCESS, 1, 5, 1, IDS(1)));
	expect(ROLE_BECOME_MASTER, 0);
	assert_false(act.whole);
}

static void an_older_epoch_than_the_log_knows_is_not_begun(void **state)
{
	master(5, true);
	now = 1000;
	role_start(&r, &conf, &(struct role_identity){ .id = 1 }, 6, true, now);
	r.phase = ROLE_RUNNING;
	role_notified(&r, &(struct role_master){ .id = 1, .epoch = 5 }, &(struct body_sync_set){ 0 }, now);
	expect(ROLE_STUCK, 0);
	assert_true(act.why[0]);
}

/* ---- Its set ----------------------------------------------------------------------------------------------------------- */

static void alone_nobody_is_waited_for(void **state)
{
	master_now();
	assert_int_equal(role_level(&r), INT64_MAX);
	assert_int_equal(role_confirm(&r), 100);
}

static void who_comes_is_waited_for_before_it_is_proposed(void **state)
{
	master_now();
	report(7, 2, 99);
	assert_int_equal(role_level(&r), 99);
	assert_false(does(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET));
	role_log(&r, 120);
	assert_int_equal(role_confirm(&r), 100); /* never back, and not beyond what both have */
	report(7, 2, 110);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	assert_int_equal(act.set.n, 2);
	assert_int_equal(act.set.epoch, 1);
	assert_int_equal(role_confirm(&r), 110);
}

static void what_an_earlier_life_acknowledged_counts(void **state)
{
	master(-1, true);
	expect(ROLE_BECOME_MASTER, 0);
	r.fresh = (struct body_sync_set){ .id = { 1, 3 }, .n = 2, .epoch = 4 }; /* 3 is not there */
	role_log(&r, 100);
	role_changed(&r, true, now);
	report(7, 2, 50);
	assert_false(does(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET) && body_sync_set_has(&act.set, 2));
}

static void a_learner_never_joins(void **state)
{
	master_now();
	role_slave_report(&r, 7, 2, true, 100, true, 0, now, now);
	assert_false(does(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET));
	assert_int_equal(role_level(&r), INT64_MAX);
}

static void members_are_waited_for(void **state)
{
	with_slave(100);
	role_log(&r, 200);
	assert_int_equal(role_level(&r), 100);
	report(7, 2, 150);
	assert_int_equal(role_level(&r), 150);
}

static void a_lost_member_stops_everything_until_the_controller_agrees(void **state)
{
	with_slave(100);
	role_slave_lost(&r, 7, now);
	assert_int_equal(role_level(&r), -1);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	assert_int_equal(act.set.n, 1);
	assert_int_equal(role_level(&r), -1);
	answered(answer_of(RESP_SUCCESS, -1, 0, 3, IDS(1)));
	assert_int_equal(role_level(&r), INT64_MAX);
}

static void an_answer_that_does_not_come_leaves_both_sets(void **state)
{
	master_now();
	report(7, 2, 100);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	tick(3000);
	role_slave_lost(&r, 7, now);
	assert_int_equal(role_level(&r), -1); /* 2 may be a member by now */
	assert_true(role_required(&r, 2));
}

static void a_refusal_frees(void **state)
{
	master_now();
	report(7, 2, 100);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	role_slave_lost(&r, 7, now);
	answered((struct role_answer){ .seq = act.seq, .code = RESP_CONTROLLER_BROKER_NOT_ALIVE, .master.id = -1 });
	assert_int_equal(role_level(&r), INT64_MAX);
}

static void who_is_behind_for_too_long_goes(void **state)
{
	with_slave(100);
	role_log(&r, 500);
	r.life_seq = 0;
	r.replicas_ms = r.leader_ms = INT64_MAX; /* only the set is asked about */
	for (int i = 0; i < 210; i++) {
		role_slave_report(&r, 7, 2, false, 120, false, 0, 1000, now);
		tick(100);
		if (does(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET))
			break;
	}
	assert_int_equal(act.set.n, 1);
	assert_true(now > 16000);
}

static void too_few_members_take_and_acknowledge_nothing(void **state)
{
	with_slave(100);
	r.conf.min_in_sync = 2;
	assert_int_equal(role_puts(&r), ROLE_PUT_OK);
	role_slave_lost(&r, 7, now);
	expect(ROLE_ASK, REQ_CONTROLLER_ALTER_SYNC_STATE_SET);
	answered(answer_of(RESP_SUCCESS, -1, 0, 3, IDS(1)));
	assert_int_equal(role_puts(&r), ROLE_PUT_TOO_FEW);
	assert_int_equal(role_level(&r), -1);
}

static void a_new_connection_begins_anew(void **state)
{
	with_slave(100);
	role_log(&r, 200);
	report(7, 2, 200);
	report(8, 2, 150); /* its log may have been cut in between */
	assert_int_equal(role_level(&r), 150);
	role_slave_lost(&r, 7, now); /* the old one */
	assert_int_equal(role_level(&r), 150);
}

static void without_all_ack_a_number_of_machines_is_enough(void **state)
{
	master_now();
	r.conf.all_ack = false;
	r.conf.in_sync = 2;
	report(7, 2, 100);
	report(8, 3, 80);
	assert_int_equal(role_level(&r), 100);
	r.conf.in_sync = 3;
	report(8, 3, 90);
	assert_int_equal(role_level(&r), 90);
	assert_int_equal(role_confirm(&r), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_broker_takes_a_number),
		cmocka_unit_test(a_number_that_is_taken_is_given_up),
		cmocka_unit_test(another_controller_is_asked_when_one_is_silent),
		cmocka_unit_test(nothing_is_taken_before_the_change_is_done),
		cmocka_unit_test(a_later_epoch_ends_it_at_once),
		cmocka_unit_test(a_change_during_a_change_comes_after_it),
		cmocka_unit_test(an_epoch_goes_on_if_nothing_was_lost),
		cmocka_unit_test(who_has_lost_something_lets_others_go_first),
		cmocka_unit_test(an_older_epoch_than_the_log_knows_is_not_begun),
		cmocka_unit_test(alone_nobody_is_waited_for),
		cmocka_unit_test(who_comes_is_waited_for_before_it_is_proposed),
		cmocka_unit_test(what_an_earlier_life_acknowledged_counts),
		cmocka_unit_test(a_learner_never_joins),
		cmocka_unit_test(members_are_waited_for),
		cmocka_unit_test(a_lost_member_stops_everything_until_the_controller_agrees),
		cmocka_unit_test(an_answer_that_does_not_come_leaves_both_sets),
		cmocka_unit_test(a_refusal_frees),
		cmocka_unit_test(who_is_behind_for_too_long_goes),
		cmocka_unit_test(too_few_members_take_and_acknowledge_nothing),
		cmocka_unit_test(a_new_connection_begins_anew),
		cmocka_unit_test(without_all_ack_a_number_of_machines_is_enough),
	};

	return cmocka_run_group_tests_name("role", tests, NULL, NULL);
}
