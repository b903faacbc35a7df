/* test_cqueue_ext.c: what stands beside a consume queue (consumequeue_ext): put, found again, lost, given up, and the Java broker's. */
#include "golden_store.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/byte.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/message.h"
#include "codec/sql.h"
#include "codec/tag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
#define EXT_FILE(n) kit_path("%s/consumequeue_ext/T/0/%020d", HERE, (n) * EXT)
enum { EXT = 4096, BITS = 14, UNIT = 20 + BITS };

/* Bits of a message: its queue offset, over and over; none for those with the tag "plain". */
static size_t bits_of(void *arg, const struct mqstore_queue *q, struct mq_str props, uint8_t *bits)
{
	if (str_is(mq_prop_get(props, "TAGS"), "plain"))
		return 0;
	memset(bits, (int)mqstore_queue_max(q) % 256, BITS);
	return BITS;
}

static struct mqstore *open_ext(const char *dir)
{
	struct mqstore_opt o = kit_opt(dir);
	struct mqstore *s;

	o.queue_ext = true;
	o.queue_ext_bytes = EXT;
	s = kit_open_opt(&o);
	mqstore_on_bits(s, bits_of, NULL);
	return s;
}

static struct mqstore_place put(struct mqstore *s, const char *topic, const char *props)
{
	struct mqstore_record r = kit_record(mqstore_queue(s, str_of(topic), 0, true), "body");
	struct mqstore_place place;

	r.props[0] = str_of(props);
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	return place;
}

static void put_many(struct mqstore *s, int n)
{
	for (int i = 0; i < n; i++)
		put(s, "T", "TAGS\1tag\2");
}

/* ---- What a reader is told ------------------------------------------------------------------------------------------------ */

struct seen {
	int units, wrong, asked;        /* units; those that are not of their message; entries */
	int64_t at, pass;               /* queue offset; which one passes by its bits, -1 = all */
};

static bool entry(void *arg, int64_t tags_code, const struct mq_str *record)
{
	struct seen *s = arg;

	if (!record) {
		s->at = s->asked++;
		s->wrong += tags_code != tag_code(MQ_STR("tag")) && tags_code != tag_code(MQ_STR("plain"));
	}
	return true;
}

static bool unit(void *arg, int64_t store_ms, struct mq_str bits)
{
	struct seen *s = arg;

	s->units++;
	s->wrong += bits.n != BITS || (uint8_t)bits.p[0] != s->at % 256 || (uint8_t)bits.p[BITS - 1] != s->at % 256 || store_ms <= 0;
	return s->pass < 0 || s->pass == s->at;
}

static struct seen look(struct mqstore *s, int64_t pass, int32_t *found)
{
	struct seen seen = { .pass = pass };
	struct mqstore_get_opt o = { .max_messages = 1000, .max_bytes = 1 << 20, .filter = entry, .bits = unit, .filter_arg = &seen };
	static struct mqstore_result r;

	/* A call reads no farther than a file of the queue. */
	*found = 0;
	for (int64_t off = 0; off < kit_max(s, "T", 0); off = r.next_off) {
		assert_int_equal(mqstore_get(s, kit_queue(s, "T", 0), off, &o, &r), 0);
		assert_true(r.next_off > off);
		*found += r.n;
	}
	return seen;
}

/* Each of n messages has its own unit. */
static void assert_whole(struct mqstore *s, int n, int units)
{
	int32_t found;
	struct seen seen = look(s, -1, &found);

	assert_int_equal(found, n);
	assert_int_equal(seen.asked, n);
	assert_int_equal(seen.units, units);
	assert_int_equal(seen.wrong, 0);
}

static void a_unit_is_written_as_the_peer_has_it(void **state)
{
	struct mqstore *s = open_ext(HERE);
	struct mqstore_place place = put(s, "T", "TAGS\1tag\2");
	size_t n;
	char *p;

	put(s, "T", "TAGS\1plain\2");
	kit_close(s);
	assert_int_equal(sys_read_file(EXT_FILE(0), 1 << 20, &p, &n), 0);
	assert_int_equal(n, EXT);
	assert_int_equal(be16(p), UNIT);
	assert_int_equal(be64(p + 2), tag_code(MQ_STR("tag")));
	assert_int_equal(be64(p + 10), place.store_ms);
	assert_int_equal(be16(p + 18), BITS);
	assert_int_equal(be16(p + UNIT), 20);
	assert_int_equal(be64(p + UNIT + 2), tag_code(MQ_STR("plain")));
	assert_int_equal(be16(p + UNIT + 18), 0);
	assert_int_equal(be16(p + UNIT + 20), 0);
	free(p);
	assert_int_equal(sys_read_file(kit_path("%s/consumequeue/T/0/%020d", HERE, 0), 1 << 20, &p, &n), 0);
	assert_true((int64_t)be64(p + 12) == INT64_MIN);
	assert_true((int64_t)be64(p + 20 + 12) == INT64_MIN + UNIT);
	free(p);
}

static void units_are_found_again_over_many_files(void **state)
{
	struct mqstore *s = open_ext(HERE);
	int32_t found;

	put_many(s, 300);
	assert_whole(s, 300, 300);
	kit_close(s);
	assert_true(kit_exists(EXT_FILE(2)));
	s = open_ext(HERE);
	assert_whole(s, 300, 300);
	put_many(s, 100);
	put(s, "T", "TAGS\1plain\2");
	assert_whole(s, 401, 400);
	assert_int_equal(look(s, 123, &found).wrong, 0);
	assert_int_equal(found, 2);     /* the one whose bits pass, and the one that has none */
	kit_close(s);
	s = kit_open(HERE);             /* without the option they are still read */
	assert_whole(s, 401, 400);
	put_many(s, 1);
	assert_whole(s, 402, 400);
	kit_close(s);
}

static void after_a_kill_no_message_has_the_bits_of_another(void **state)
{
	struct mqstore *s = open_ext(HERE);
	int32_t found;

	put_many(s, 150);
	assert_int_equal(mqstore_flush(s, NULL), 0);
	put_many(s, 150);
	kit_die(s);
	s = open_ext(HERE);             /* what is found again in the log gets a unit without bits */
	assert_int_equal(look(s, -1, &found).wrong, 0);
	assert_int_equal(found, 300);
	put_many(s, 100);
	assert_int_equal(look(s, -1, &found).wrong, 0);
	assert_int_equal(found, 400);
	kit_check(s);
	kit_close(s);
}

static void units_that_are_lost_are_done_without_and_their_places_not_given_again(void **state)
{
	struct mqstore *s = open_ext(HERE);
	int32_t found;

	put_many(s, 100);
	kit_close(s);
	kit_zero(EXT_FILE(0), 50 * UNIT, EXT - 50 * UNIT);
	s = open_ext(HERE);
	assert_whole(s, 100, 50);
	put_many(s, 100);
	assert_whole(s, 200, 150);
	kit_close(s);
	kit_remove(kit_path("%s/consumequeue_ext", HERE));
	s = open_ext(HERE);
	assert_whole(s, 200, 0);
	put_many(s, 10);
	assert_whole(s, 210, 10);
	kit_close(s);
	kit_overwrite(EXT_FILE(2), 0, "\377\377\377\377", 4);
	s = open_ext(HERE);
	look(s, -1, &found);
	assert_int_equal(found, 210);
	kit_close(s);
}

static void an_entry_has_its_code_and_the_due_time_of_a_delayed_message(void **state)
{
	struct mqstore *s = open_ext(HERE);
	struct mqstore_place place = put(s, "SCHEDULE_TOPIC_XXXX", "DELAY\0012\2TAGS\1tag\2");
	struct mqstore_entry e;

	put(s, "T", "TAGS\1tag\2");
	assert_int_equal(mqstore_entry(kit_queue(s, "SCHEDULE_TOPIC_XXXX", 0), 0, &e), 0);
	assert_int_equal(e.tags_code, place.store_ms + 5000);
	assert_int_equal(mqstore_entry(kit_queue(s, "T", 0), 0, &e), 0);
	assert_int_equal(e.tags_code, tag_code(MQ_STR("tag")));
	kit_close(s);
}

static void files_go_with_the_messages_and_with_the_topic(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;

	o.queue_ext = true;
	o.queue_ext_bytes = EXT;
	o.max_total_bytes = 3 * KIT_SEGMENT;
	s = kit_open_opt(&o);
	mqstore_on_bits(s, bits_of, NULL);
	put_many(s, 3000);
	assert_int_equal(mqstore_flush(s, NULL), 0);
	assert_true(kit_exists(EXT_FILE(0)));
	assert_true(mqstore_trim(s, 0, false, NULL) >= 0);
	assert_false(kit_exists(EXT_FILE(0)));
	assert_true(kit_exists(EXT_FILE(24)));
	assert_int_equal(mqstore_delete_topic(s, MQ_STR("T"), NULL), 0);
	assert_false(kit_exists(kit_path("%s/consumequeue_ext/T", HERE)));
	kit_close(s);
}

/* ---- The Java broker's ---------------------------------------------------------------------------------------------------- */

struct java {
	struct sql *filter;
	int asked, passed;
	bool by_bits;
};

static bool java_entry(void *arg, int64_t tags_code, const struct mq_str *record)
{
	struct java *j = arg;
	struct mq_message m;

	if (!record)
		return tags_code >= INT32_MIN && tags_code <= INT32_MAX;
	assert_true(mq_message_decode(record->p, record->n, true, &m) > 0);
	if (j->by_bits)         /* they know of no message that passes and say that it does not */
		assert_true(sql_match(j->filter, m.props));
	else
		j->passed += sql_match(j->filter, m.props);
	return true;
}

static bool java_bits(void *arg, int64_t store_ms, struct mq_str bits)
{
	static const int at[] = { 16, 104, 31 };
	struct java *j = arg;

	j->asked++;
	assert_int_equal(bits.n, BITS);
	for (int i = 0; i < 3; i++)
		if (!(bits.p[at[i] / 8] & 1 << at[i] % 8))
			return false;
	return true;
}

static void what_the_java_broker_wrote_tells_which_messages_pass(void **state)
{
	struct java j = { 0 };
	struct mqstore_get_opt o = { .max_messages = 1000, .max_bytes = 1 << 20, .filter = java_entry, .filter_arg = &j };
	static struct mqstore_result r;
	struct mqstore_opt so;
	struct mqstore *s;

	free(golden_store(HERE, "features"));
	so = kit_opt(kit_path("%s/store", HERE));
	so.adopt_sizes = true;
	s = kit_open_opt(&so);
	assert_int_equal(sql_compile(&j.filter, MQ_STR("color = 'red' AND n > 3"), NULL), 0);
	assert_int_equal(mqstore_get(s, kit_queue(s, "FeatFilter", 0), 0, &o, &r), 0);
	assert_true(j.passed > 0 && j.passed < r.n);
	j.by_bits = true;
	o.bits = java_bits;
	assert_int_equal(mqstore_get(s, kit_queue(s, "FeatFilter", 0), 0, &o, &r), 0);
	assert_true(j.asked > j.passed);
	assert_int_equal(r.n, j.passed);
	sql_free(j.filter);
	kit_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		T(a_unit_is_written_as_the_peer_has_it),
		T(units_are_found_again_over_many_files),
		T(after_a_kill_no_message_has_the_bits_of_another),
		T(units_that_are_lost_are_done_without_and_their_places_not_given_again),
		T(an_entry_has_its_code_and_the_due_time_of_a_delayed_message),
		T(files_go_with_the_messages_and_with_the_topic),
		T(what_the_java_broker_wrote_tells_which_messages_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
