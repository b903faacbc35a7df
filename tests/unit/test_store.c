/* test_store.c: what mqstore.h promises of a store that nothing happens to. */
#include "fault.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)

static void an_appended_message_is_read_back(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "T", 3), "hello");
	struct mqstore_place place;
	struct mq_str record;
	struct mq_message m;

	r.props[0] = MQ_STR("TAGS\1a\2KEYS\1k1 k2");
	r.props[1] = MQ_STR("UNIQ_KEY\1u\2");
	r.flag = -7;
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(place.log_off, 0);
	assert_int_equal(place.queue_off, 0);
	assert_int_equal(place.end_off, place.size);
	assert_int_equal(mqstore_log_max(s), place.end_off);
	assert_int_equal(mqstore_at(s, place.log_off, &record), 0);
	assert_int_equal(mq_message_decode(record.p, record.n, true, &m), place.size);
	assert_true(str_is(m.topic, "T") && str_is(m.body, "hello") && m.queue_id == 3 && m.flag == -7);
	assert_true(str_is(m.props, "TAGS\1a\2KEYS\1k1 k2\2UNIQ_KEY\1u\2"));
	assert_int_equal(m.store_ms, place.store_ms);
	assert_string_equal(kit_body(s, "T", 3, 0), "hello");
	kit_close(s);
}

static void messages_are_there_after_a_clean_stop(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_stat st;

	kit_fill(s, "A", 0, "a", 500, 200);
	kit_fill(s, "B", 1, "b", 7, 10);
	kit_close(s);
	assert_false(kit_exists(kit_path("%s/abort", HERE)));
	s = kit_open(HERE);
	mqstore_stat(s, &st);
	assert_false(st.recovered);
	assert_int_equal(kit_max(s, "A", 0), 500);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 500);
	assert_string_equal(kit_body(s, "A", 0, 499), "a499");
	assert_string_equal(kit_body(s, "B", 1, 6), "b6");
	assert_int_equal(kit_append(s, "B", 1, "next").queue_off, 7);
	kit_check(s);
	kit_close(s);
}

static void a_segment_ends_with_a_blank_and_is_never_full_to_the_last_byte(void **state)
{
	struct mqstore *s = kit_open(HERE);
	char *body = mem_alloc(KIT_SEGMENT);
	struct mqstore_place a, b;
	int64_t head;

	a = kit_append(s, "T", 0, "x");
	head = a.size - 1;
	/* Exactly 8 bytes are left behind it. */
	memset(body, '.', (size_t)(KIT_SEGMENT - 8 - a.end_off - head));
	a = kit_append(s, "T", 0, body);
	assert_int_equal(a.end_off, KIT_SEGMENT - 8);
	b = kit_append(s, "T", 0, "y");
	assert_int_equal(b.log_off, KIT_SEGMENT);
	/* One byte more does not fit and goes to the next segment. */
	memset(body, 0, KIT_SEGMENT);
	memset(body, '.', (size_t)(2 * KIT_SEGMENT - 7 - b.end_off - head));
	a = kit_append(s, "T", 0, body);
	assert_int_equal(a.log_off, 2 * KIT_SEGMENT);
	kit_check(s);
	kit_close(s);
	free(body);
}

static void a_batch_is_in_one_segment_with_offsets_in_a_row(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r[150];
	struct mqstore_place place[150];
	char body[500];

	memset(body, '.', sizeof(body));
	body[499] = 0;
	kit_fill(s, "T", 0, "x", 20, 500);
	for (int i = 0; i < 100; i++)
		r[i] = kit_record(kit_queue(s, "T", i % 2), body);
	assert_int_equal(mqstore_append(s, r, 100, place, NULL), 0);
	assert_int_equal(place[0].log_off, KIT_SEGMENT);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(place[i].queue_off, i / 2 + (i % 2 ? 0 : 20));
		assert_int_equal(place[i].log_off / KIT_SEGMENT, 1);
	}
	/* More entries than a queue file has. */
	for (int i = 0; i < 150; i++)
		r[i] = kit_record(kit_queue(s, "U", 0), "u");
	assert_int_equal(mqstore_append(s, r, 150, place, NULL), 0);
	assert_int_equal(place[149].queue_off, 149);
	kit_check(s);
	kit_close(s);
}

static void append_keyed(struct mqstore *s, int *n, int batches)
{
	struct mqstore_record r[32];
	struct mqstore_place place[32];
	char props[32][64], body[32][32];

	for (int round = 0; round < batches; round++) {
		for (int i = 0; i < 32; i++, ++*n) {
			snprintf(body[i], sizeof(body[i]), "m%d", *n);
			snprintf(props[i], sizeof(props[i]), "KEYS\x01k%d\x02UNIQ_KEY\x01u%d\x02", *n, *n);
			r[i] = kit_record(kit_queue(s, "T", 0), body[i]);
			r[i].props[0] = (struct mq_str){ props[i], strlen(props[i]) };
		}
		assert_int_equal(mqstore_append(s, r, 32, place, NULL), 0);
		mqstore_write_out(s);
	}
}

/* After a crash the index catches up while batches come in, and looks at the log for that, up to the newest record: what was
 * written out for it is not written again. */
static void a_batch_that_is_looked_at_while_it_grows_is_whole(void **state)
{
	struct mqstore_opt opt = kit_opt(HERE);
	struct mqstore *s;
	int n = 0;

	opt.gather = true;
	s = kit_open_opt(&opt);
	append_keyed(s, &n, 400);
	kit_die(s);
	s = kit_open_opt(&opt);
	append_keyed(s, &n, 800);
	for (int i = 0; i < n; i++) {
		char want[32];

		snprintf(want, sizeof(want), "m%d", i);
		assert_string_equal(kit_body(s, "T", 0, i), want);
	}
	kit_check(s);
	kit_close(s);
}

static void what_is_too_big_is_refused_and_uses_no_offset(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	struct mqstore_record r, batch[2];
	struct mqstore_place place[2];
	struct mq_error err;
	char *big = mem_alloc(MQ_BODY_MAX + 2), props[MQ_PROPS_MAX + 10];

	o.log_segment_bytes = 8 << 20;
	s = kit_open_opt(&o);
	kit_append(s, "T", 0, "first");
	memset(big, 'x', MQ_BODY_MAX + 1);
	r = kit_record(kit_queue(s, "T", 0), big);
	assert_int_equal(mqstore_append(s, &r, 1, place, &err), MQ_ETOOBIG);
	assert_non_null(strstr(err.text, "4194305"));
	assert_non_null(strstr(err.text, "4194304"));
	r.body.n = MQ_BODY_MAX;
	assert_int_equal(mqstore_append(s, &r, 1, place, &err), 0);
	assert_int_equal(place[0].queue_off, 1);

	memset(props, 'p', sizeof(props));
	r = kit_record(kit_queue(s, "T", 0), "x");
	r.props[0] = (struct mq_str){ props, MQ_PROPS_MAX + 1 };
	assert_int_equal(mqstore_append(s, &r, 1, place, &err), MQ_ETOOBIG);
	assert_non_null(strstr(err.text, "32768"));
	batch[0] = kit_record(kit_queue(s, "T", 0), "good");
	batch[1] = r;
	assert_int_equal(mqstore_append(s, batch, 2, place, &err), MQ_ETOOBIG);
	r.props[0].n = MQ_PROPS_MAX;
	assert_int_equal(mqstore_append(s, &r, 1, place, &err), 0);
	assert_int_equal(place[0].queue_off, 2);
	kit_check(s);
	kit_close(s);

	s = kit_open(kit_path("%s/small", HERE));
	r = kit_record(kit_queue(s, "T", 0), big);
	r.body.n = KIT_SEGMENT;
	assert_int_equal(mqstore_append(s, &r, 1, place, &err), MQ_ETOOBIG);
	assert_non_null(strstr(err.text, "65536"));
	assert_int_equal(kit_append(s, "T", 0, "fits").queue_off, 0);
	kit_close(s);
	free(big);
}

static void statuses_are_those_of_the_peer(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_get_opt o = { .max_messages = 10, .max_bytes = 1 << 20 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	struct mqstore_queue *q;

#define GET(queue, off, st, next)                                  \
	do {                                                       \
		assert_int_equal(mqstore_get(s, queue, off, &o, res), 0); \
		assert_int_equal(res->status, st);                 \
		assert_int_equal(res->next_off, next);             \
	} while (0)
	GET(NULL, 5, MQSTORE_NO_MATCHED_LOGIC_QUEUE, 0);
	q = kit_queue(s, "T", 0);
	GET(q, 5, MQSTORE_NO_MESSAGE_IN_QUEUE, 0);
	kit_fill(s, "T", 0, "x", 25, 10);
	GET(q, 0, MQSTORE_FOUND, 10);
	assert_int_equal(res->n, 10);
	GET(q, 20, MQSTORE_FOUND, 25);
	assert_int_equal(res->n, 5);
	GET(q, 25, MQSTORE_OFFSET_OVERFLOW_ONE, 25);
	GET(q, 26, MQSTORE_OFFSET_OVERFLOW_BADLY, 25);
	GET(q, -1, MQSTORE_OFFSET_TOO_SMALL, 0);
	/* At least one message, however few bytes are asked for. */
	o.max_bytes = 1;
	GET(q, 3, MQSTORE_FOUND, 4);
	/* Not beyond the end of a queue file in one turn. */
	kit_fill(s, "T", 0, "y", 100, 10);
	o.max_bytes = 1 << 20;
	o.max_messages = 50;
	GET(q, 90, MQSTORE_FOUND, 100);
	assert_string_equal(mqstore_status_name(MQSTORE_OFFSET_OVERFLOW_BADLY), "OFFSET_OVERFLOW_BADLY");
	kit_close(s);
	free(res);
}

static bool keep_b(void *arg, int64_t tags_code, const struct mq_str *record)
{
	int *asked = arg;

	asked[record != NULL]++;
	return tags_code == 'b';
}

static void filtered_out_messages_are_passed_without_touching_them(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int asked[2] = { 0 };
	struct mqstore_get_opt o = { .max_messages = 10, .max_bytes = 1 << 20, .filter = keep_b, .filter_arg = asked };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	struct mqstore_place place;

	for (int i = 0; i < 60; i++) {
		struct mqstore_record r = kit_record(kit_queue(s, "T", 0), "x");

		r.props[0] = i == 30 ? MQ_STR("TAGS\1b\2") : MQ_STR("TAGS\1a\2");
		assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	}
	mqstore_get(s, kit_queue(s, "T", 0), 0, &o, res);
	assert_int_equal(res->status, MQSTORE_FOUND);
	assert_int_equal(res->n, 1);
	assert_int_equal(res->next_off, 60);
	assert_int_equal(asked[0], 60);
	assert_int_equal(asked[1], 1);
	mqstore_get(s, kit_queue(s, "T", 0), 31, &o, res);
	assert_int_equal(res->status, MQSTORE_NO_MATCHED_MESSAGE);
	assert_int_equal(res->next_off, 60);
	kit_close(s);
	free(res);
}

static int told;
static int64_t told_off, told_tags;

static void on_arrival(void *arg, struct mqstore_queue *q, int64_t off, int64_t tags_code, struct mq_str props)
{
	struct mqstore_get_opt o = { .max_messages = 1, .max_bytes = 1 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));

	told++;
	told_off = off;
	told_tags = tags_code;
	assert_true(str_is(props, "TAGS\1b\2"));
	assert_int_equal(mqstore_get(arg, q, off, &o, res), 0);
	assert_int_equal(res->status, MQSTORE_FOUND);
	free(res);
}

static void who_waits_on_a_queue_is_told_in_the_same_call(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "T", 1), "x");
	struct mqstore_place place;

	told = 0;
	mqstore_on_arrival(s, on_arrival, s);
	kit_append(s, "T", 1, "unwatched");
	assert_int_equal(told, 0);
	mqstore_queue_watch(r.queue, true);
	r.props[0] = MQ_STR("TAGS\1b\2");
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(told, 1);
	assert_int_equal(told_off, 1);
	assert_int_equal(told_tags, 'b');
	mqstore_queue_watch(r.queue, false);
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(told, 1);
	kit_close(s);
}

static void half_messages_and_rollbacks_have_no_entry(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "T", 0), "x");
	struct mqstore_place place;

	r.sys_flag = MQ_SYS_TRAN_PREPARED;
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(place.queue_off, 0);
	r.sys_flag = MQ_SYS_TRAN_ROLLBACK;
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(mqstore_queue_max(r.queue), 0);
	r.sys_flag = MQ_SYS_TRAN_COMMIT;
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(place.queue_off, 0);
	assert_int_equal(mqstore_queue_max(r.queue), 1);
	kit_close(s);
}

static void an_entry_of_the_schedule_topic_says_when_it_is_due(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "SCHEDULE_TOPIC_XXXX", 2), "x");
	struct mqstore_place place;
	struct mqstore_entry e;

	r.props[0] = MQ_STR("DELAY\0013\2TAGS\1a\2");
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(mqstore_entry(r.queue, 0, &e), 0);
	assert_int_equal(e.tags_code, place.store_ms + 10000);
	r.props[0] = MQ_STR("DELAY\00199\2");
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	assert_int_equal(mqstore_entry(r.queue, 1, &e), 0);
	assert_int_equal(e.tags_code, place.store_ms + 7200000);
	kit_close(s);
}

static void search_by_time_finds_the_first_of_equals(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_queue *q = kit_queue(s, "T", 0);
	struct mqstore_record r[32];
	struct mqstore_place place[32];
	int64_t t;

	assert_int_equal(mqstore_search_time(s, q, 1000, false), 0);
	kit_fill(s, "T", 0, "before", 5, 10);
	clock_shift_wall(1000);
	for (int i = 0; i < 32; i++)
		r[i] = kit_record(q, "batch");
	assert_int_equal(mqstore_append(s, r, 32, place, NULL), 0);
	t = place[0].store_ms;
	clock_shift_wall(1000);
	kit_fill(s, "T", 0, "after", 5, 10);
	assert_int_equal(mqstore_search_time(s, q, t, false), 5);
	assert_int_equal(mqstore_search_time(s, q, t + 1, false), 37);
	assert_int_equal(mqstore_search_time(s, q, t, true), 36);
	assert_int_equal(mqstore_search_time(s, q, t - 1, true), 4);
	assert_int_equal(mqstore_search_time(s, q, 0, false), 0);
	assert_int_equal(mqstore_search_time(s, q, 0, true), 0);
	/* Newer than all: the end, not the last message once more. */
	assert_int_equal(mqstore_search_time(s, q, t + 3600000, false), 42);
	assert_int_equal(mqstore_search_time(s, q, t + 3600000, true), 41);
	assert_int_equal(mqstore_search_time(s, q, INT64_MAX, true), 41);
	assert_int_equal(mqstore_time_at(s, q, 10), t);
	assert_int_equal(mqstore_time_at(s, q, 42), -1);
	clock_shift_wall(-2000);
	kit_close(s);
}

static void a_clock_that_is_set_back_does_not_make_store_times_go_back(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_place a = kit_append(s, "T", 0, "a"), b;

	clock_shift_wall(-3600 * 1000);
	b = kit_append(s, "T", 0, "b");
	assert_true(b.store_ms >= a.store_ms);
	clock_shift_wall(3600 * 1000);
	kit_close(s);
}

static void different_keys_with_one_hash_are_told_apart(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "T", 0), "x");
	struct mqstore_place a, b, c;
	int64_t off[10], ms, last;

	/* "Aa" and "BB" have the same Java hash. */
	r.props[0] = MQ_STR("KEYS\1Aa other\2UNIQ_KEY\1id1\2");
	assert_int_equal(mqstore_append(s, &r, 1, &a, NULL), 0);
	r.props[0] = MQ_STR("KEYS\1BB\2");
	assert_int_equal(mqstore_append(s, &r, 1, &b, NULL), 0);
	r.props[0] = MQ_STR("KEYS\1x Aa\2");
	assert_int_equal(mqstore_append(s, &r, 1, &c, NULL), 0);
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("Aa"), 10, 0, INT64_MAX, off, &ms, &last), 2);
	assert_int_equal(off[0], a.log_off);
	assert_int_equal(off[1], c.log_off);
	assert_int_equal(last, c.log_off);
	assert_int_equal(ms, c.store_ms);
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("BB"), 10, 0, INT64_MAX, off, NULL, NULL), 1);
	assert_int_equal(off[0], b.log_off);
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("id1"), 10, 0, INT64_MAX, off, NULL, NULL), 1);
	/* The newest are kept when there are more than asked for. */
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("Aa"), 1, 0, INT64_MAX, off, NULL, NULL), 1);
	assert_int_equal(off[0], c.log_off);
	assert_int_equal(mqstore_query(s, MQ_STR("U"), MQ_STR("Aa"), 10, 0, INT64_MAX, off, NULL, NULL), 0);
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("Aa"), 10, 0, a.store_ms - 1, off, NULL, NULL), 0);
	kit_close(s);
}

static void two_writers_of_one_store_are_refused(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE), *t;
	struct mq_error err;

	assert_int_equal(mqstore_open(&t, &o, &err), MQ_EBUSY);
	assert_null(t);
	assert_non_null(strstr(err.text, "/lock"));
	/* Nor has the refused one given up the lock of the first. */
	assert_int_equal(mqstore_open(&t, &o, &err), MQ_EBUSY);
	kit_append(s, "T", 0, "x");
	kit_close(s);
	kit_close(kit_open(HERE));
}

static void a_reader_beside_a_writer_sees_more_after_refresh(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *w = kit_open(HERE), *r;
	struct mq_error err;
	struct mqstore_place place;
	struct mqstore_record rec;

	kit_fill(w, "T", 0, "x", 10, 100);
	o.read_only = true;
	r = kit_open_opt(&o);
	assert_int_equal(kit_count(r, "T", 0, 0, NULL), 10);
	kit_fill(w, "T", 0, "y", 1500, 100);
	kit_fill(w, "U", 7, "u", 3, 100);
	assert_int_equal(kit_max(r, "T", 0), 10);
	assert_int_equal(mqstore_refresh(r), 0);
	assert_int_equal(kit_max(r, "T", 0), 1510);
	assert_int_equal(kit_count(r, "T", 0, 0, NULL), 1510);
	assert_string_equal(kit_body(r, "U", 7, 2), "u2");
	kit_check(r);
	rec = kit_record(kit_queue(r, "T", 0), "no");
	assert_int_equal(mqstore_append(r, &rec, 1, &place, &err), MQ_EREADONLY);
	assert_int_equal(mqstore_trim(r, 0, true, &err), MQ_EREADONLY);
	kit_close(w);
	assert_int_equal(mqstore_refresh(r), 0);
	kit_check(r);
	kit_close(r);
}

static void a_directory_without_a_store_cannot_be_opened_for_reading(void **state)
{
	struct mqstore_opt o = kit_opt(kit_path("%s/nothing", HERE));
	struct mqstore *s;
	struct mq_error err;

	o.read_only = true;
	assert_int_equal(mqstore_open(&s, &o, &err), MQ_ENOTFOUND);
	assert_false(kit_exists(o.dir));
	assert_non_null(strstr(err.text, "nothing"));
}

static void other_sizes_than_the_files_have_are_refused_or_adopted(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	struct mq_error err;

	kit_fill(s, "T", 0, "x", 300, 300);
	kit_close(s);
	o.log_segment_bytes = 1 << 20;
	assert_int_equal(mqstore_open(&s, &o, &err), MQ_EMISMATCH);
	assert_non_null(strstr(err.text, "65536"));
	assert_non_null(strstr(err.text, "1048576"));
	/* The refusal is no unclean stop. */
	assert_false(kit_exists(kit_path("%s/abort", HERE)));
	o = kit_opt(HERE);
	o.queue_segment_bytes = 6000000;
	assert_int_equal(mqstore_open(&s, &o, &err), MQ_EMISMATCH);
	assert_non_null(strstr(err.text, "mappedFileSizeConsumeQueue"));
	mqstore_defaults(&o);
	o.dir = HERE;
	o.min_free_bytes = 1;
	o.adopt_sizes = true;
	s = kit_open_opt(&o);
	assert_int_equal(kit_append(s, "T", 0, "more").queue_off, 300);
	kit_check(s);
	kit_close(s);
	kit_close(kit_open(HERE));
}

static void flushed_moves_only_with_a_flush(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_flush job;
	struct mqstore_place a = kit_append(s, "T", 0, "a"), b;

	assert_int_equal(mqstore_flushed(s), 0);
	assert_int_equal(mqstore_flush_begin(s, false, &job), 0);
	b = kit_append(s, "T", 0, "b");
	mqstore_flush_run(&job);
	assert_int_equal(mqstore_flushed(s), 0);
	assert_int_equal(mqstore_flush_end(s, &job, NULL), 0);
	assert_int_equal(mqstore_flushed(s), a.end_off);
	assert_int_equal(mqstore_flush(s, NULL), 0);
	assert_int_equal(mqstore_flushed(s), b.end_off);
	assert_int_equal(mqstore_flush_begin(s, false, &job), MQ_ENOTFOUND);
	assert_int_equal(mqstore_flush_begin(s, true, &job), MQ_ENOTFOUND);
	kit_close(s);
}

static void a_deleted_topic_is_gone_and_begins_at_zero_again(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "T", 0, "x", 250, 10);
	kit_fill(s, "T", 5, "x", 3, 10);
	kit_fill(s, "U", 0, "x", 3, 10);
	assert_int_equal(mqstore_flush(s, NULL), 0);
	assert_true(kit_exists(kit_path("%s/consumequeue/T/0", HERE)));
	assert_int_equal(mqstore_delete_topic(s, MQ_STR("T"), NULL), 0);
	assert_null(mqstore_queue(s, MQ_STR("T"), 0, false));
	assert_false(kit_exists(kit_path("%s/consumequeue/T", HERE)));
	assert_true(kit_exists(kit_path("%s/consumequeue/U/0", HERE)));
	/* Looking does not bring it back. */
	assert_int_equal(kit_max(s, "T", 0), -1);
	kit_close(s);
	s = kit_open(HERE);
	assert_null(mqstore_queue(s, MQ_STR("T"), 0, false));
	assert_int_equal(kit_append(s, "T", 0, "new").queue_off, 0);
	assert_string_equal(kit_body(s, "T", 0, 0), "new");
	kit_close(s);
}

static void bad_names_make_no_queue(void **state)
{
	struct mqstore *s = kit_open(HERE);

	assert_null(mqstore_queue(s, MQ_STR("a b"), 0, true));
	assert_null(mqstore_queue(s, MQ_STR("../x"), 0, true));
	assert_null(mqstore_queue(s, MQ_STR(""), 0, true));
	assert_null(mqstore_queue(s, MQ_STR("T"), -1, true));
	assert_non_null(mqstore_queue(s, MQ_STR("%RETRY%g"), 0, true));
	/* Known in memory only: nobody else sees it before its first message. */
	assert_null(mqstore_queue(s, MQ_STR("%RETRY%g"), 0, false));
	kit_close(s);
}

static void many_queues_work_with_few_maps(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	char topic[32];

	o.max_maps = 16;
	o.index_enable = false;
	s = kit_open_opt(&o);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 400; i++) {
			snprintf(topic, sizeof(topic), "topic-%d", i);
			assert_int_equal(kit_append(s, topic, i % 7, "x").queue_off, round);
		}
	kit_check(s);
	kit_close(s);
	s = kit_open_opt(&o);
	for (int i = 0; i < 400; i++) {
		snprintf(topic, sizeof(topic), "topic-%d", i);
		assert_int_equal(kit_append(s, topic, i % 7, "x").queue_off, 3);
	}
	kit_check(s);
	kit_close(s);
}

static void opening_looks_into_no_queue(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	char topic[32];
	int few, many;

	o.index_enable = false;
	s = kit_open_opt(&o);
	kit_append(s, "T", 0, "x");
	kit_close(s);
	fault_set(0, 0, FAULT_ONCE);
	s = kit_open_opt(&o);
	few = fault_calls();
	for (int i = 0; i < 200; i++) {
		snprintf(topic, sizeof(topic), "topic-%d", i);
		kit_append(s, topic, 0, "x");
	}
	kit_close(s);
	fault_set(0, 0, FAULT_ONCE);
	s = kit_open_opt(&o);
	many = fault_calls();
	fault_off();
	assert_true(many <= few + 2);
	assert_int_equal(kit_max(s, "topic-77", 0), 1);
	kit_close(s);
}

static void what_stat_tells_is_true(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_place first = kit_append(s, "T", 0, "x");
	struct mqstore_stat st;

	kit_fill(s, "U", 0, "x", 1000, 200);
	mqstore_stat(s, &st);
	assert_int_equal(st.log_min, 0);
	assert_int_equal(st.log_max, mqstore_log_max(s));
	assert_int_equal(st.log_flushed, 0);
	assert_int_equal(st.queues, 2);
	assert_int_equal(st.segments, st.log_max / KIT_SEGMENT + 1);
	assert_int_equal(st.earliest_ms, first.store_ms);
	assert_int_equal(st.appended, 1001);
	assert_int_equal(st.refused, 0);
	assert_true(st.log_disk_used > 0 && st.log_disk_used < 1 && st.disk_free > 0 && st.disk_total > st.disk_free);
	assert_false(st.disk_full || st.broken || st.recovered);
	assert_string_equal(st.why_not_writable, "");
	kit_close(s);
	s = kit_open(HERE);
	mqstore_stat(s, &st);
	assert_int_equal(mqstore_queue_bytes(s), 11 * KIT_QUEUE_FILE);
	assert_int_equal(st.queues, 2);
	assert_int_equal(st.log_flushed, st.log_max);
	kit_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(an_appended_message_is_read_back),
		TEST(messages_are_there_after_a_clean_stop),
		TEST(a_segment_ends_with_a_blank_and_is_never_full_to_the_last_byte),
		TEST(a_batch_is_in_one_segment_with_offsets_in_a_row),
		TEST(a_batch_that_is_looked_at_while_it_grows_is_whole),
		TEST(what_is_too_big_is_refused_and_uses_no_offset),
		TEST(statuses_are_those_of_the_peer),
		TEST(filtered_out_messages_are_passed_without_touching_them),
		TEST(who_waits_on_a_queue_is_told_in_the_same_call),
		TEST(half_messages_and_rollbacks_have_no_entry),
		TEST(an_entry_of_the_schedule_topic_says_when_it_is_due),
		TEST(search_by_time_finds_the_first_of_equals),
		TEST(a_clock_that_is_set_back_does_not_make_store_times_go_back),
		TEST(different_keys_with_one_hash_are_told_apart),
		TEST(two_writers_of_one_store_are_refused),
		TEST(a_reader_beside_a_writer_sees_more_after_refresh),
		TEST(a_directory_without_a_store_cannot_be_opened_for_reading),
		TEST(other_sizes_than_the_files_have_are_refused_or_adopted),
		TEST(flushed_moves_only_with_a_flush),
		TEST(a_deleted_topic_is_gone_and_begins_at_zero_again),
		TEST(bad_names_make_no_queue),
		TEST(many_queues_work_with_few_maps),
		TEST(opening_looks_into_no_queue),
		TEST(what_stat_tells_is_true),
	};

	kit_log_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
