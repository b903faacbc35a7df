/* test_replica.c: a follower's store that is fed with the bytes of a master's log, cut anywhere. */
#include "store_kit.h"
#include "tempdir.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/replica.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)

struct pair {
	char *master_dir, *slave_dir;
	struct mqstore *master, *slave;
};

static struct mqstore *follow(const char *dir)
{
	struct mqstore *s = kit_open(dir);

	replica_follow(s);
	return s;
}

static struct pair pair_open(const char *here)
{
	struct pair p = { mem_printf("%s/master", here), mem_printf("%s/slave", here), NULL, NULL };

	p.master = kit_open(p.master_dir);
	p.slave = follow(p.slave_dir);
	return p;
}

static void pair_close(struct pair *p)
{
	kit_close(p->master);
	kit_close(p->slave);
	free(p->master_dir);
	free(p->slave_dir);
}

/* Bytes from the slave's end on, in pieces of at most `piece`, until it has `upto`. */
static void ship(struct pair *p, int64_t upto, int64_t piece)
{
	struct mq_error e = { 0 };
	uint8_t *to;

	while (mqstore_log_max(p->slave) < upto) {
		int64_t n, at = mqstore_log_max(p->slave);
		const uint8_t *from = replica_view(p->master, at, &n);

		assert_non_null(from);
		n = n < piece ? n : piece;
		n = n < upto - at ? n : upto - at;
		if (replica_room(p->slave, n, &to, &e) < 0)
			fail_msg("room: %s", e.text);
		memcpy(to, from, (size_t)n);
		replica_wrote(p->slave, n);
		if (replica_derive(p->slave, &e) < 0)
			fail_msg("derive: %s", e.text);
	}
}

static void ship_all(struct pair *p, int64_t piece)
{
	ship(p, mqstore_log_max(p->master), piece);
}

static int same_queue(void *arg, struct mqstore_queue *q)
{
	struct mqstore *slave = arg;
	struct mqstore_queue *other = mqstore_queue(slave, mqstore_queue_topic(q), mqstore_queue_id(q), false);
	struct mqstore_entry a, b;

	if (!other) { /* nothing of it in what the slave has */
		assert_int_equal(mqstore_entry(q, mqstore_queue_max(q) - 1, &a), 0);
		assert_true(a.log_off < mqstore_log_min(slave));
		return 0;
	}
	assert_int_equal(mqstore_queue_max(other), mqstore_queue_max(q));
	for (int64_t off = mqstore_queue_min(other); off < mqstore_queue_max(q); off++) {
		assert_int_equal(mqstore_entry(q, off, &a), 0);
		assert_int_equal(mqstore_entry(other, off, &b), 0);
		assert_true(a.log_off == b.log_off && a.size == b.size && a.tags_code == b.tags_code);
	}
	return 0;
}

/* Logs from the slave's begin on byte by byte, queues entry by entry. */
static void assert_same(struct pair *p)
{
	int64_t at = mqstore_log_min(p->slave), end = mqstore_log_max(p->master), n, m;

	assert_int_equal(mqstore_log_max(p->slave), end);
	assert_int_equal(replica_derived(p->slave), end);
	for (; at < end; at += n) {
		const uint8_t *a = replica_view(p->master, at, &n), *b = replica_view(p->slave, at, &m);

		assert_non_null(a);
		assert_non_null(b);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, (size_t)n);
	}
	mqstore_each_queue(p->master, same_queue, p->slave);
	kit_check(p->slave);
}

static void fill(struct mqstore *s, int round)
{
	char prefix[32];

	snprintf(prefix, sizeof prefix, "r%d-", round);
	kit_fill(s, "A", 0, prefix, 150, 300);
	kit_fill(s, "B", round % 4, prefix, 90, 1000);
	kit_fill(s, "A", 1, prefix, 60, 40);
}

static void a_follower_that_gets_all_bytes_has_the_same_log_and_queues(void **state)
{
	static const int64_t pieces[] = { 1 << 20, 1, 7, 4096, 333 };

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct pair p = pair_open(kit_path("%s/%zu", HERE, i));

		fill(p.master, 0);
		ship_all(&p, pieces[i]);
		fill(p.master, 1);
		ship_all(&p, pieces[i]);
		assert_true(mqstore_log_max(p.master) > 2 * KIT_SEGMENT);
		assert_same(&p);
		pair_close(&p);
	}
}

static void keys_are_found_on_the_follower(void **state)
{
	struct pair p = pair_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(p.master, "T", 0), "hello");
	struct mqstore_place place;
	int64_t off;

	r.props[0] = MQ_STR("KEYS\1needle\2");
	fill(p.master, 0);
	assert_int_equal(mqstore_append(p.master, &r, 1, &place, NULL), 0);
	fill(p.master, 1);
	ship_all(&p, 5000);
	assert_int_equal(mqstore_query(p.slave, MQ_STR("T"), MQ_STR("needle"), 10, 0, INT64_MAX, &off, NULL, NULL), 1);
	assert_int_equal(off, place.log_off);
	pair_close(&p);
}

static void a_follower_takes_no_messages_of_its_own(void **state)
{
	struct pair p = pair_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(p.slave, "T", 0), "hello");
	struct mqstore_place place;
	struct mq_error e;
	static struct mqstore_stat st;

	assert_int_equal(mqstore_append(p.slave, &r, 1, &place, &e), MQ_EREADONLY);
	assert_non_null(strstr(e.text, "follows a master"));
	mqstore_stat(p.slave, &st);
	assert_true(st.why_not_writable[0]);
	assert_int_equal(mqstore_log_max(p.slave), 0);
	pair_close(&p);
}

static void a_record_is_seen_when_its_last_byte_is_there(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t one;

	kit_append(p.master, "T", 0, "first");
	one = mqstore_log_max(p.master);
	kit_append(p.master, "T", 0, "second");
	ship(&p, mqstore_log_max(p.master) - 1, 1000);
	assert_int_equal(replica_derived(p.slave), one);
	assert_int_equal(kit_max(p.slave, "T", 0), 1);
	ship_all(&p, 1000);
	assert_int_equal(kit_max(p.slave, "T", 0), 2);
	assert_string_equal(kit_body(p.slave, "T", 0, 1), "second");
	pair_close(&p);
}

static int64_t arrived;

static void on_arrival(void *arg, struct mqstore_queue *q, int64_t off, int64_t code, struct mq_str props)
{
	arrived = off;
}

static void who_waits_on_a_queue_hears_of_the_record(void **state)
{
	struct pair p = pair_open(HERE);

	arrived = -1;
	mqstore_on_arrival(p.slave, on_arrival, NULL);
	mqstore_queue_watch(kit_queue(p.slave, "T", 0), true);
	kit_fill(p.master, "T", 0, "x", 5, 10);
	kit_append(p.master, "U", 0, "other");
	ship_all(&p, 100);
	assert_int_equal(arrived, 4);
	pair_close(&p);
}

static void a_follower_can_begin_with_the_last_segment(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t end, at;

	fill(p.master, 0);
	fill(p.master, 1);
	end = mqstore_log_max(p.master);
	at = end - end % KIT_SEGMENT;
	assert_int_equal(replica_begin(p.slave, at, NULL), 0);
	ship_all(&p, 777);
	assert_int_equal(mqstore_log_min(p.slave), at);
	assert_same(&p);
	/* Its queues begin with the number that the first message there has. */
	assert_true(kit_min(p.slave, "A", 1) > 0);
	kit_close(p.slave);
	p.slave = follow(p.slave_dir);
	assert_same(&p);
	pair_close(&p);
}

static void the_first_byte_of_a_log_may_be_left_out(void **state)
{
	struct pair p = pair_open(HERE);

	fill(p.master, 0);
	assert_int_equal(replica_begin(p.slave, 1, NULL), 0);
	ship_all(&p, 4000);
	assert_same(&p);
	pair_close(&p);
}

static void a_log_begins_nowhere_else(void **state)
{
	struct pair p = pair_open(HERE);

	assert_int_equal(replica_begin(p.slave, 2, NULL), MQ_EINVAL);
	assert_int_equal(replica_begin(p.slave, -KIT_SEGMENT, NULL), MQ_EINVAL);
	fill(p.master, 0);
	ship_all(&p, 4000);
	assert_int_equal(replica_begin(p.slave, 0, NULL), MQ_EBUSY);
	assert_same(&p);
	pair_close(&p);
}

static void a_stop_amid_a_record_leaves_whole_records(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t end;

	fill(p.master, 0);
	end = mqstore_log_max(p.master);
	kit_append(p.master, "T", 0, "the last one");
	ship(&p, end + 20, 4000);
	kit_close(p.slave);
	kit_log_start();
	p.slave = follow(p.slave_dir);
	assert_int_equal(mqstore_log_max(p.slave), end);
	assert_int_equal(kit_logged("no record"), 0);
	ship_all(&p, 4000);
	assert_same(&p);
	pair_close(&p);
}

static void a_kill_amid_a_record_too(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t end;

	fill(p.master, 0);
	end = mqstore_log_max(p.master);
	kit_append(p.master, "T", 0, "the last one");
	ship(&p, end + 20, 4000);
	kit_die(p.slave);
	p.slave = follow(p.slave_dir);
	assert_int_equal(mqstore_log_max(p.slave), end);
	ship_all(&p, 4000);
	assert_same(&p);
	pair_close(&p);
}

static void segments_of_another_size_are_told(void **state)
{
	struct pair p = pair_open(HERE);
	struct mqstore_opt o = kit_opt(kit_path("%s/other", HERE));
	struct mq_error e = { 0 };
	int64_t n;
	uint8_t *to;
	int rc = 0;

	fill(p.master, 0);
	kit_close(p.slave);
	o.log_segment_bytes = KIT_SEGMENT / 2;
	p.slave = kit_open_opt(&o);
	replica_follow(p.slave);
	for (int64_t at = 0; rc == 0; at += n) { /* bodies end where the master's segments do */
		const uint8_t *from = replica_view(p.master, at, &n);

		n = n < 4000 ? n : 4000;
		rc = replica_room(p.slave, n, &to, &e);
		if (rc == 0) {
			memcpy(to, from, (size_t)n);
			replica_wrote(p.slave, n);
			rc = replica_derive(p.slave, &e);
		}
	}
	assert_int_equal(rc, MQ_EMISMATCH);
	assert_non_null(strstr(e.text, "mappedFileSizeCommitLog"));
	pair_close(&p);
}

static void a_place_that_is_no_record_is_passed_over(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t at, n;

	fill(p.master, 0);
	at = kit_log_off(p.master, "A", 0, 70);
	((uint8_t *)(uintptr_t)replica_view(p.master, at, &n))[4] ^= 0xff; /* its magic */
	while (mqstore_log_max(p.master) < 3 << 20)
		fill(p.master, 1);
	kit_log_start();
	ship_all(&p, 5000);
	assert_int_equal(kit_logged("damaged part of the log"), 1);
	assert_int_equal(replica_derived(p.slave), mqstore_log_max(p.master));
	assert_string_equal(kit_body(p.slave, "A", 0, 69), "r0-69");
	assert_string_equal(kit_body(p.slave, "A", 0, 71), "r0-71");
	pair_close(&p);
}

/* ---- Cutting --------------------------------------------------------------------------------------------------------- */

/* The slave gets what the master never had.  Returns where they part; *last: start of the record before. */
static int64_t part_ways(struct pair *p, int own, int64_t *last)
{
	int64_t end;

	fill(p->master, 0);
	ship_all(p, 4000);
	end = mqstore_log_max(p->slave);
	*last = replica_last(p->slave);
	kit_close(p->slave);
	p->slave = kit_open(p->slave_dir);
	kit_fill(p->slave, "A", 0, "own", own, 300);
	kit_close(p->slave);
	p->slave = follow(p->slave_dir);
	assert_true(mqstore_log_max(p->slave) > end);
	return end;
}

static void cut(struct pair *p, int64_t end, int64_t last, const char *to, int64_t *saved)
{
	struct mq_error e = { 0 };

	if (replica_cut(p->slave, end, last, to, saved, &e) < 0)
		fail_msg("cut: %s", e.text);
}

static void what_is_cut_is_gone_and_saved(void **state)
{
	struct pair p = pair_open(HERE);
	char *to = mem_printf("%s/saved", HERE);
	struct mqstore_opt o = kit_opt(to);
	int64_t last, saved, end = part_ways(&p, 500, &last), was = mqstore_log_max(p.slave);
	struct mqstore *s;

	cut(&p, end, last, to, &saved);
	assert_int_equal(saved, was - end);
	assert_same(&p);
	/* What was cut is the log of a store. */
	o.read_only = true;
	s = kit_open_opt(&o);
	assert_int_equal(kit_max(s, "A", 0), 150 + 500);
	assert_string_equal(kit_body(s, "A", 0, 150), "own0");
	assert_string_equal(kit_body(s, "A", 0, 649), "own499");
	kit_close(s);
	/* And life goes on. */
	fill(p.master, 2);
	ship_all(&p, 999);
	assert_same(&p);
	kit_close(p.slave);
	p.slave = follow(p.slave_dir);
	assert_same(&p);
	free(to);
	pair_close(&p);
}

static void a_crash_after_the_cut_changes_nothing(void **state)
{
	struct pair p = pair_open(HERE);
	char *to = mem_printf("%s/saved", HERE);
	int64_t last, saved, end = part_ways(&p, 500, &last);

	cut(&p, end, last, to, &saved);
	kit_die(p.slave);
	p.slave = follow(p.slave_dir);
	assert_same(&p);
	fill(p.master, 2);
	ship_all(&p, 999);
	kit_die(p.slave);
	p.slave = follow(p.slave_dir);
	assert_same(&p);
	free(to);
	pair_close(&p);
}

static void all_of_it_can_be_cut(void **state)
{
	struct pair p = pair_open(HERE);
	char *to = mem_printf("%s/saved", HERE);
	int64_t last, saved, at;

	part_ways(&p, 500, &last);
	cut(&p, -1, -1, to, &saved);
	assert_int_equal(mqstore_log_max(p.slave), 0);
	assert_int_equal(replica_last(p.slave), -1);
	assert_null(mqstore_queue(p.slave, MQ_STR("A"), 0, false));
	at = mqstore_log_max(p.master) - mqstore_log_max(p.master) % KIT_SEGMENT;
	assert_int_equal(replica_begin(p.slave, at, NULL), 0);
	ship_all(&p, 4000);
	assert_same(&p);
	kit_close(p.slave);
	p.slave = follow(p.slave_dir);
	assert_same(&p);
	free(to);
	pair_close(&p);
}

static void the_cut_may_be_at_the_begin_of_a_segment(void **state)
{
	struct pair p = pair_open(HERE);
	char *to = mem_printf("%s/saved", HERE);
	int64_t *v, saved, n;
	size_t count;

	fill(p.master, 0);
	fill(p.master, 1);
	ship_all(&p, 4000);
	count = replica_records(p.slave, KIT_SEGMENT, &v);
	n = (int64_t)count;
	assert_true(n > 10 && v[0] == KIT_SEGMENT);
	cut(&p, 2 * KIT_SEGMENT, v[count - 1], to, &saved);
	assert_int_equal(mqstore_log_max(p.slave), 2 * KIT_SEGMENT);
	assert_false(kit_exists(kit_path("%s/commitlog/%020d", p.slave_dir, 2 * KIT_SEGMENT)));
	assert_int_equal(kit_size(kit_path("%s/commitlog/%020d", to, 2 * KIT_SEGMENT)), KIT_SEGMENT);
	ship_all(&p, 4000);
	assert_same(&p);
	free(v);
	free(to);
	pair_close(&p);
}

static void a_cut_that_cannot_be_saved_does_not_happen(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t last, saved, end = part_ways(&p, 20, &last), was = mqstore_log_max(p.slave);
	struct mq_error e;

	kit_touch(kit_path("%s/file", HERE));
	assert_true(replica_cut(p.slave, end, last, kit_path("%s/file/saved", HERE), &saved, &e) < 0);
	assert_int_equal(mqstore_log_max(p.slave), was);
	assert_string_equal(kit_body(p.slave, "A", 0, 169), "own19");
	pair_close(&p);
}

static void segments_and_records_are_listed(void **state)
{
	struct pair p = pair_open(HERE);
	int64_t *seg, *rec;
	size_t n, all = 0;

	fill(p.master, 0);
	ship_all(&p, 4000);
	n = replica_segments(p.slave, &seg);
	assert_int_equal(n, (mqstore_log_max(p.slave) + KIT_SEGMENT - 1) / KIT_SEGMENT);
	for (size_t i = 0; i < n; i++) {
		size_t k = replica_records(p.slave, seg[i], &rec);

		assert_int_equal(seg[i], (int64_t)i * KIT_SEGMENT);
		all += k;
		if (i + 1 == n)
			assert_int_equal(rec[k - 1], replica_last(p.slave));
		free(rec);
	}
	assert_int_equal(all, 300);
	free(seg);
	pair_close(&p);
}

#define T(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_follower_that_gets_all_bytes_has_the_same_log_and_queues),
		T(keys_are_found_on_the_follower),
		T(a_follower_takes_no_messages_of_its_own),
		T(a_record_is_seen_when_its_last_byte_is_there),
		T(who_waits_on_a_queue_hears_of_the_record),
		T(a_follower_can_begin_with_the_last_segment),
		T(the_first_byte_of_a_log_may_be_left_out),
		T(a_log_begins_nowhere_else),
		T(a_stop_amid_a_record_leaves_whole_records),
		T(a_kill_amid_a_record_too),
		T(segments_of_another_size_are_told),
		T(a_place_that_is_no_record_is_passed_over),
		T(what_is_cut_is_gone_and_saved),
		T(a_crash_after_the_cut_changes_nothing),
		T(all_of_it_can_be_cut),
		T(the_cut_may_be_at_the_begin_of_a_segment),
		T(a_cut_that_cannot_be_saved_does_not_happen),
		T(segments_and_records_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
