/* test_ha_role.c: the rules of replication, event by event, and many random schedules of them. */
#include "../../bin/broker/ha_allow.h"
#include "../../bin/broker/ha_role.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ha_limits limits = { .heartbeat_ms = 5000, .silence_ms = 20000, .block_bytes = 32768, .gap_bytes = 1 << 20 };
static const struct ha_log log_now = { .min = 1000, .end = 250000, .segment = 100000 };

/* ---- A master's view of one slave -------------------------------------------------------------------------------------- */

static struct ha_slave slave_at(int64_t off)
{
	struct ha_slave s;

	ha_slave_begin(&s, 0);
	assert_int_equal(ha_slave_report(&s, &log_now, off, 0, NULL), 0);
	return s;
}

static void nothing_is_sent_before_the_first_report(void **state)
{
	struct ha_slave s;

	ha_slave_begin(&s, 0);
	assert_int_equal(ha_slave_next(&s, &log_now, &limits, 60000).what, HA_SEND_NOTHING);
	assert_false(ha_slave_in_sync(&s, &log_now, &limits));
}

static void who_has_nothing_gets_everything(void **state)
{
	struct ha_slave s = slave_at(0);
	struct ha_send a = ha_slave_next(&s, &log_now, &limits, 0);

	assert_int_equal(a.what, HA_SEND_BLOCK);
	assert_int_equal(a.off, 1000);
	assert_int_equal(a.n, 32768);
}

static void who_has_something_gets_what_follows(void **state)
{
	struct ha_slave s = slave_at(95000);
	struct ha_send a = ha_slave_next(&s, &log_now, &limits, 0);

	assert_int_equal(a.off, 95000);
	assert_int_equal(a.n, 5000); /* never beyond a segment's end */
	ha_slave_sent(&s, &a, 10);
	a = ha_slave_next(&s, &log_now, &limits, 10);
	assert_int_equal(a.off, 100000);
	assert_int_equal(a.n, 32768);
}

static void a_heartbeat_names_the_next_byte(void **state)
{
	struct ha_slave s = slave_at(250000);
	struct ha_send a;

	assert_int_equal(ha_slave_next(&s, &log_now, &limits, 4999).what, HA_SEND_NOTHING);
	a = ha_slave_next(&s, &log_now, &limits, 5000);
	assert_int_equal(a.what, HA_SEND_HEARTBEAT);
	assert_true(a.off == 250000 && a.n == 0);
	ha_slave_sent(&s, &a, 5000);
	assert_int_equal(ha_slave_next(&s, &log_now, &limits, 5001).what, HA_SEND_NOTHING);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
	static const int64_t bad[] = { -1, INT64_MIN, 250001, INT64_MAX, 999 };
	struct ha_slave s;
	struct mq_error why;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ha_slave_begin(&s, 0);
		assert_int_equal(ha_slave_report(&s, &log_now, bad[i], 0, &why), MQ_EPROTO);
		assert_true(why.text[0]);
		assert_int_equal(s.acked, -1);
	}
}

static void what_was_not_sent_cannot_be_acknowledged(void **state)
{
	struct ha_slave s = slave_at(100000);
	struct ha_send a = ha_slave_next(&s, &log_now, &limits, 0);

	ha_slave_sent(&s, &a, 0);
	assert_int_equal(ha_slave_report(&s, &log_now, 132769, 0, NULL), MQ_EPROTO);
	assert_int_equal(s.acked, 100000);
	assert_int_equal(ha_slave_report(&s, &log_now, 132768, 0, NULL), 0);
	assert_int_equal(s.acked, 132768);
}

static void an_older_report_takes_nothing_back(void **state)
{
	struct ha_slave s = slave_at(100000);

	assert_int_equal(ha_slave_report(&s, &log_now, 50000, 0, NULL), 0);
	assert_int_equal(s.acked, 100000);
	assert_int_equal(s.next, 100000);
}

static void silence_ends_it(void **state)
{
	struct ha_slave s = slave_at(100000);

	assert_false(ha_slave_is_gone(&s, &limits, 20000));
	assert_true(ha_slave_is_gone(&s, &limits, 20001));
	ha_slave_report(&s, &log_now, 100000, 20000, NULL);
	assert_false(ha_slave_is_gone(&s, &limits, 40000));
}

static void in_sync_is_who_is_not_far_behind(void **state)
{
	struct ha_log far = { 0, 2 << 20, 1 << 20 };
	struct ha_slave s;

	ha_slave_begin(&s, 0);
	ha_slave_report(&s, &far, 1 << 20, 0, NULL);
	assert_false(ha_slave_in_sync(&s, &far, &limits));
	s.acked++;
	assert_true(ha_slave_in_sync(&s, &far, &limits));
}

/* ---- How many machines -------------------------------------------------------------------------------------------------- */

/* haFlowControlEnable: what is left waits for the next second; heartbeats do not. */
static void a_second_has_so_many_bytes(void **state)
{
	struct ha_limits slow = limits;
	struct ha_slave s = slave_at(100000);
	struct ha_send a;

	slow.second_bytes = 40000;
	a = ha_slave_next(&s, &log_now, &slow, 0);
	assert_int_equal(a.n, 32768);
	ha_slave_sent(&s, &a, 0);
	assert_false(ha_slave_is_held(&s, &log_now, &slow));
	a = ha_slave_next(&s, &log_now, &slow, 0);
	assert_int_equal(a.n, 40000 - 32768);
	ha_slave_sent(&s, &a, 0);
	assert_true(ha_slave_is_held(&s, &log_now, &slow));
	assert_int_equal(ha_slave_next(&s, &log_now, &slow, 900).what, HA_SEND_NOTHING);
	assert_int_equal(ha_slave_next(&s, &log_now, &slow, 6000).what, HA_SEND_HEARTBEAT);
	assert_int_equal(ha_slave_next(&s, &log_now, &limits, 900).what, HA_SEND_BLOCK); /* the limit was taken away */
	ha_slave_second(&s);
	assert_false(ha_slave_is_held(&s, &log_now, &slow));
	a = ha_slave_next(&s, &log_now, &slow, 1000);
	assert_int_equal(a.off, 140000);
	assert_int_equal(a.n, 32768);
	s.next = log_now.end;
	s.in_second = 40000;
	assert_false(ha_slave_is_held(&s, &log_now, &slow)); /* it has everything */
}

static void acks_that_are_waited_for(void **state)
{
	static const struct {
		struct ha_wish w;
		int32_t in_sync, want;
		const char *what;
	} row[] = {
		{ { .sync = false, .replicas = 3, .min_replicas = 3 }, 1, 1, "ASYNC_MASTER waits for nobody" },
		{ { .sync = true, .replicas = 1, .min_replicas = 1 }, 3, 1, "the default waits for nobody" },
		{ { .sync = true, .replicas = 2, .min_replicas = 1 }, 1, 2, "two, whether there is one or not" },
		{ { .sync = true, .replicas = 3, .min_replicas = 1, .automatic = true }, 2, 2, "as many as there are" },
		{ { .sync = true, .replicas = 2, .min_replicas = 1, .automatic = true }, 5, 2, "and no more" },
		{ { .sync = true, .replicas = 3, .min_replicas = 2, .automatic = true }, 1, 0, "but not fewer than the least" },
		{ { .sync = true, .replicas = 3, .min_replicas = 2 }, 2, 0, "without the switch all of them" },
		{ { .sync = true, .replicas = 1, .min_replicas = 1, .all = true }, 4, 4, "everybody" },
		{ { .sync = true, .strict = true, .replicas = 1, .min_replicas = 1 }, 1, 0, "strict: not alone" },
		{ { .sync = true, .strict = true, .replicas = 1, .min_replicas = 1 }, 2, 2, "strict: two" },
		{ { .sync = true, .strict = true, .replicas = 3, .min_replicas = 1, .automatic = true }, 2, 2, "strict, between two and three" },
		{ { .sync = true, .strict = true, .replicas = 3, .min_replicas = 1, .automatic = true }, 1, 0, "strict, never one" },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		if (ha_wish_acks(&row[i].w, row[i].in_sync) != row[i].want)
			fail_msg("%s: %d", row[i].what, ha_wish_acks(&row[i].w, row[i].in_sync));
}

static int down(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void replicated_is_what_n_machines_have(void **state)
{
	int64_t acked[6], sorted[6];

	assert_int_equal(ha_replicated(NULL, 0, 1, 77), 77);
	assert_int_equal(ha_replicated(NULL, 0, 2, 77), -1);
	srand(1);
	for (int round = 0; round < 2000; round++) {
		size_t n = (size_t)rand() % 6 + 1;

		for (size_t i = 0; i < n; i++)
			acked[i] = rand() % 5 - 1;
		memcpy(sorted, acked, sizeof sorted);
		qsort(sorted, n, sizeof *sorted, down);
		for (int32_t k = 2; k <= (int32_t)n + 1; k++)
			assert_int_equal(ha_replicated(acked, n, k, 100), sorted[k - 2]);
		assert_int_equal(ha_replicated(acked, n, (int32_t)n + 2, 100), -1);
	}
}

/* ---- A slave -------------------------------------------------------------------------------------------------------------- */

static struct ha_follower following(void)
{
	struct ha_follower f;

	ha_follower_begin(&f);
	ha_follower_master(&f, true, 0);
	f.phase = HA_DIALLING;
	ha_follower_connected(&f, 0);
	ha_follower_agreed(&f, 0);
	return f;
}

static void a_slave_goes_its_way(void **state)
{
	struct ha_follower f;

	ha_follower_begin(&f);
	assert_int_equal(ha_follower_next(&f, 0, &limits, 9999), HA_DO_NOTHING);
	assert_false(ha_follower_master(&f, true, 100));
	assert_int_equal(ha_follower_next(&f, 0, &limits, 100), HA_DO_DIAL);
	f.phase = HA_DIALLING;
	assert_int_equal(ha_follower_next(&f, 0, &limits, 5000), HA_DO_NOTHING);
	ha_follower_connected(&f, 200);
	assert_int_equal(f.phase, HA_AGREEING);
	assert_int_equal(ha_follower_next(&f, 0, &limits, 200), HA_DO_NOTHING); /* nothing is asked for before it agrees */
	ha_follower_must_cut(&f);
	assert_int_equal(ha_follower_next(&f, 0, &limits, 200), HA_DO_NOTHING);
	ha_follower_cut(&f, 300);
	assert_int_equal(f.phase, HA_AGREEING);
	ha_follower_agreed(&f, 300);
	assert_int_equal(ha_follower_next(&f, 0, &limits, 300), HA_DO_REPORT); /* at once, also when it has nothing */
	ha_follower_reported(&f, 0, 300);
	assert_int_equal(ha_follower_next(&f, 0, &limits, 301), HA_DO_NOTHING);
	assert_int_equal(ha_follower_next(&f, 1, &limits, 302), HA_DO_REPORT);
	ha_follower_reported(&f, 1, 302);
	assert_int_equal(ha_follower_next(&f, 1, &limits, 302 + HA_REPORT_MS), HA_DO_REPORT); /* a sign of life */
	ha_follower_lost(&f, 400, 1000);
	assert_int_equal(ha_follower_next(&f, 1, &limits, 1399), HA_DO_NOTHING);
	assert_int_equal(ha_follower_next(&f, 1, &limits, 1400), HA_DO_DIAL);
}

static void a_block_must_begin_where_the_log_ends(void **state)
{
	struct ha_follower f = following();
	struct mq_error why;

	assert_int_equal(ha_follower_head(&f, 500, 10, 500, 1, &why), 0);
	assert_int_equal(ha_follower_head(&f, 510, 10, 500, 1, &why), MQ_EPROTO);
	assert_int_equal(ha_follower_head(&f, 490, 10, 500, 1, &why), MQ_EPROTO);
	assert_int_equal(ha_follower_head(&f, 499, 0, 500, 1, &why), MQ_EPROTO); /* a heartbeat too */
	assert_int_equal(ha_follower_head(&f, -8, 0, -8, 1, &why), MQ_EPROTO);
	assert_int_equal(ha_follower_head(&f, 500, -1, 500, 1, &why), MQ_EPROTO);
	ha_follower_lost(&f, 2, 0);
	assert_int_equal(ha_follower_head(&f, 500, 10, 500, 3, &why), MQ_EPROTO);
}

static void a_silent_master_is_left(void **state)
{
	struct ha_follower f = following();

	ha_follower_reported(&f, 7, 20000);
	assert_int_equal(ha_follower_next(&f, 7, &limits, 20000), HA_DO_NOTHING);
	assert_int_equal(ha_follower_next(&f, 7, &limits, 20001), HA_DO_HANG_UP);
	ha_follower_head(&f, 7, 0, 7, 20000, NULL);
	ha_follower_reported(&f, 7, 39000);
	assert_int_equal(ha_follower_next(&f, 7, &limits, 40000), HA_DO_NOTHING);
}

static void another_master_ends_the_connection(void **state)
{
	struct ha_follower f = following();

	assert_true(ha_follower_master(&f, true, 50));
	assert_int_equal(ha_follower_next(&f, 7, &limits, 50), HA_DO_DIAL);
	assert_false(ha_follower_master(&f, false, 60));
	assert_int_equal(ha_follower_next(&f, 7, &limits, 99999), HA_DO_NOTHING);
	ha_follower_lost(&f, 60, 0);
	assert_int_equal(f.phase, HA_HOMELESS);
}

static void the_search_finds_where_logs_part(void **state)
{
	for (size_t n = 0; n <= 40; n++)
		for (size_t part = 0; part <= n; part++) {
			struct ha_search s;
			int asked = 0;

			ha_search_begin(&s, n);
			while (!ha_search_done(&s)) {
				size_t at = ha_search_next(&s);

				assert_true(at < n);
				ha_search_answer(&s, at, at < part);
				asked++;
			}
			assert_int_equal(s.lo, part);
			assert_true(asked <= 8);
			assert_true(part < n || n == 0 || asked == 1); /* logs that do not part cost one question */
		}
}

/* ---- Schedules ----------------------------------------------------------------------------------------------------------- */

/* A master and two slaves whose logs are numbers: byte i of the master's log at a time is `mark` of the run in which it was written.
 * Crashes take the master's newest bytes away; connections break anywhere; reports and blocks are late.  Checked: promises 1, 3, 4
 * and 5 of ha_role.h, after every step. */
enum { WORLD = 4096, SEGMENT = 512, SLAVES = 2 };

struct machine {
	uint8_t log[WORLD];
	int64_t end;
};

struct line {                   /* one slave and its connection */
	struct machine m;
	struct ha_slave at_master;
	struct ha_follower f;
	bool up;
};

static int64_t common(const struct machine *a, const struct machine *b)
{
	int64_t n = 0;

	while (n < a->end && n < b->end && a->log[n] == b->log[n])
		n++;
	return n;
}

static void connect_line(struct line *l, const struct machine *master, int64_t now)
{
	int64_t both = common(master, &l->m);
	struct mq_error why;
	struct ha_log log = { 0, master->end, SEGMENT };

	ha_follower_master(&l->f, true, now);
	assert_int_equal(ha_follower_next(&l->f, l->m.end, &limits, now), HA_DO_DIAL);
	l->f.phase = HA_DIALLING;
	ha_follower_connected(&l->f, now);
	if (both < l->m.end) {
		ha_follower_must_cut(&l->f);
		l->m.end = both;
		ha_follower_cut(&l->f, now);
	}
	ha_follower_agreed(&l->f, now);
	ha_slave_begin(&l->at_master, now);
	assert_int_equal(ha_follower_next(&l->f, l->m.end, &limits, now), HA_DO_REPORT);
	ha_follower_reported(&l->f, l->m.end, now);
	if (ha_slave_report(&l->at_master, &log, l->m.end, now, &why) < 0)
		fail_msg("%s", why.text);
	l->up = true;
}

static void ship(struct line *l, const struct machine *master, int64_t now)
{
	struct ha_log log = { 0, master->end, SEGMENT };
	struct ha_limits small = limits;
	struct ha_send a;

	small.block_bytes = 1 + rand() % 100;
	a = ha_slave_next(&l->at_master, &log, &small, now);
	if (a.what != HA_SEND_BLOCK)
		return;
	assert_int_equal(a.off, l->m.end);
	assert_true(a.off / SEGMENT == (a.off + a.n - 1) / SEGMENT);
	ha_slave_sent(&l->at_master, &a, now);
	assert_int_equal(ha_follower_head(&l->f, a.off, a.n, l->m.end, now, NULL), 0);
	memcpy(l->m.log + a.off, master->log + a.off, (size_t)a.n);
	l->m.end += a.n;
	if (rand() % 3 == 0)
		return; /* the report is late */
	if (ha_follower_next(&l->f, l->m.end, &limits, now) == HA_DO_REPORT) {
		ha_follower_reported(&l->f, l->m.end, now);
		assert_int_equal(ha_slave_report(&l->at_master, &log, l->m.end, now, NULL), 0);
	}
}

static void run_schedule(unsigned seed)
{
	struct machine master = { .end = 0 };
	struct line line[SLAVES] = { 0 };
	uint8_t mark = 1;

	srand(seed);
	for (int i = 0; i < SLAVES; i++)
		ha_follower_begin(&line[i].f);
	for (int64_t now = 0; now < 400; now++) {
		struct line *l = &line[rand() % SLAVES];
		int64_t acked[SLAVES], both, n;

		switch (rand() % 8) {
		case 0: /* the master crashes and loses what was not on its disk */
			if (rand() % 8)
				break;
			master.end -= master.end ? rand() % (master.end < 200 ? master.end : 200) : 0;
			mark++;
			for (int i = 0; i < SLAVES; i++)
				line[i].up = false;
			break;
		case 1:
			if (rand() % 4 == 0) {
				l->up = false;
				ha_follower_lost(&l->f, now, 0);
			}
			break;
		case 2:
		case 3:
			for (n = rand() % 60; n > 0 && master.end < WORLD; n--)
				master.log[master.end++] = mark;
			break;
		default:
			if (!l->up)
				connect_line(l, &master, now);
			else
				ship(l, &master, now);
		}
		for (int i = 0; i < SLAVES; i++) {
			acked[i] = line[i].up ? line[i].at_master.acked : -1;
			if (line[i].up) /* all that it has is the master's */
				assert_int_equal(common(&master, &line[i].m), line[i].m.end);
		}
		for (int32_t k = 2; k <= SLAVES + 1; k++) {
			int have = 1;

			both = ha_replicated(acked, SLAVES, k, master.end);
			for (int i = 0; i < SLAVES && both > 0; i++)
				have += common(&master, &line[i].m) >= both;
			assert_true(both <= 0 || have >= k);
		}
	}
}

static void no_schedule_breaks_a_promise(void **state)
{
	for (unsigned seed = 1; seed <= 1500; seed++)
		run_schedule(seed);
}

/* ---- Who may follow ------------------------------------------------------------------------------------------------------ */

static bool may(const char *list, const char *ip)
{
	struct mq_host h = { .len = 4 };
	int part[4];

	if (strcmp(ip, "::1") == 0) {
		h.len = 16;
		h.ip[15] = 1;
	} else {
		assert_int_equal(sscanf(ip, "%d.%d.%d.%d", &part[0], &part[1], &part[2], &part[3]), 4);
		for (int i = 0; i < 4; i++)
			h.ip[i] = (uint8_t)part[i];
	}
	return ha_allow(str_of(list), &h);
}

static void an_allow_list_allows_what_is_in_it(void **state)
{
	struct mq_error e;

	assert_true(may("", "1.2.3.4"));
	assert_true(may("10.1.2.3", "10.1.2.3"));
	assert_false(may("10.1.2.3", "10.1.2.4"));
	assert_true(may("10.9.9.9; 10.1.0.0/16", "10.1.200.4"));
	assert_false(may("10.9.9.9;10.1.0.0/16", "10.2.0.4"));
	assert_true(may("10.1.2.128/25", "10.1.2.200"));
	assert_false(may("10.1.2.128/25", "10.1.2.100"));
	assert_true(may("0.0.0.0/0", "9.9.9.9"));
	assert_false(may("0.0.0.0/0", "::1"));
	assert_true(may("::/127", "::1"));
	assert_false(may("nonsense", "9.9.9.9"));
	assert_int_equal(ha_allow_check(MQ_STR("10.1.2.3;10.0.0.0/8;fd00::/8"), &e), 0);
	assert_int_equal(ha_allow_check(MQ_STR("10.1.2.3;10.0.0.0/33"), &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, "10.0.0.0/33"));
	assert_int_equal(ha_allow_check(MQ_STR("example.org"), &e), MQ_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_sent_before_the_first_report),
		cmocka_unit_test(who_has_nothing_gets_everything),
		cmocka_unit_test(who_has_something_gets_what_follows),
		cmocka_unit_test(a_heartbeat_names_the_next_byte),
		cmocka_unit_test(numbers_that_cannot_be_are_refused),
		cmocka_unit_test(what_was_not_sent_cannot_be_acknowledged),
		cmocka_unit_test(an_older_report_takes_nothing_back),
		cmocka_unit_test(silence_ends_it),
		cmocka_unit_test(in_sync_is_who_is_not_far_behind),
		cmocka_unit_test(a_second_has_so_many_bytes),
		cmocka_unit_test(acks_that_are_waited_for),
		cmocka_unit_test(replicated_is_what_n_machines_have),
		cmocka_unit_test(a_slave_goes_its_way),
		cmocka_unit_test(a_block_must_begin_where_the_log_ends),
		cmocka_unit_test(a_silent_master_is_left),
		cmocka_unit_test(another_master_ends_the_connection),
		cmocka_unit_test(the_search_finds_where_logs_part),
		cmocka_unit_test(no_schedule_breaks_a_promise),
		cmocka_unit_test(an_allow_list_allows_what_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
