/* test_cold.c: what a look finds not to be in memory: records, entries of queues, the index; and what filters are asked for. */
#include "store_kit.h"
#include "tempdir.h"

#include "base/str.h"
#include "base/sys.h"
#include "codec/tag.h"
#include "store/cold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
enum { OLD = 10, LARGE = 1 << 20, BEHIND = 70 };

static int cold_from; /* so many looks find their pages in memory, all others do not */

static int seldom_in_memory(void *p, size_t n, unsigned char *in)
{
	memset(in, cold_from-- > 0, (n + 4095) / 4096);
	return 0;
}

static size_t some_bits(void *arg, const struct mqstore_queue *q, struct mq_str props, uint8_t *bits)
{
	memset(bits, 1, 4);
	return 4;
}

static struct mqstore_opt options(const char *dir)
{
	struct mqstore_opt o = kit_opt(dir);

	o.log_segment_bytes = 128 << 20;
	o.max_body_bytes = 2 * LARGE;
	o.queue_ext = true;
	o.queue_ext_bytes = 4096;
	return o;
}

/* Ten messages with tags and keys, and so much behind them that they do not count as new; the store has been opened anew. */
static struct mqstore *old_ones(const char *dir)
{
	struct mqstore_opt o = options(dir);
	struct mqstore *s = kit_open_opt(&o);
	struct mqstore_place place;
	char props[64];

	mqstore_on_bits(s, some_bits, NULL);
	for (int i = 0; i < OLD; i++) {
		struct mqstore_record r = kit_record(kit_queue(s, "T", 0), "old");

		snprintf(props, sizeof(props), "TAGS\1%s\2KEYS\1k%d\2", i % 2 ? "odd" : "even", i);
		r.props[0] = str_of(props);
		assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	}
	kit_fill(s, "U", 0, "u", BEHIND, LARGE);
	kit_close(s);
	s = kit_open_opt(&o);
	cold_from = 0;
	sys.mincore = seldom_in_memory;
	return s;
}

static int64_t odd;
static int asked, strange;

static bool only_odd(void *arg, int64_t tags_code, const struct mq_str *record)
{
	asked++;
	strange += tags_code != odd && tags_code != tag_code(MQ_STR("even"));
	return tags_code == odd;
}

static bool none(void *arg, int64_t tags_code, const struct mq_str *record)
{
	return false;
}

static void entries_come_before_messages(void **state)
{
	struct mqstore *s = old_ones(HERE);
	struct mqstore_get_opt get = { .max_messages = 5, .max_bytes = 1 << 20 };
	struct cold_range *r = calloc(1, sizeof(*r));

	assert_int_equal(cold_look(s, kit_queue(s, "T", 0), 0, &get, r), 0);
	assert_true(r->entries);
	assert_string_equal(r->path, kit_path("%s/consumequeue/T/0/%020d", HERE, 0));
	assert_true(r->from == 0 && r->n == KIT_QUEUE_FILE);
	cold_fetch(r);
	cold_from = 1;
	assert_int_equal(cold_look(s, kit_queue(s, "T", 0), 0, &get, r), 0);
	assert_false(r->entries);
	assert_string_equal(r->path, kit_path("%s/commitlog/%020d", HERE, 0));
	assert_true(r->from == 0 && r->n > 0);
	cold_fetch(r);
	/* That the entries are there is believed for a while. */
	cold_from = 100;
	assert_int_equal(cold_look(s, kit_queue(s, "T", 0), 0, &get, r), 5);
	sys = sys_real;
	free(r);
	kit_close(s);
}

/* The tags stand in units beside the entries. */
static void filters_are_asked_for_the_tags_of_units(void **state)
{
	struct mqstore *s = old_ones(HERE);
	struct mqstore_get_opt get = { .max_messages = 32, .max_bytes = 1 << 20, .filter = only_odd };
	struct cold_range *r = calloc(1, sizeof(*r));

	odd = tag_code(MQ_STR("odd"));
	asked = strange = 0;
	cold_from = 100;
	assert_int_equal(cold_look(s, kit_queue(s, "T", 0), 0, &get, r), 32);
	assert_int_equal(asked, OLD);
	assert_int_equal(strange, 0);
	/* What nobody wants is not fetched. */
	cold_from = 0;
	get.filter = none;
	assert_int_equal(cold_look(s, kit_queue(s, "T", 0), 0, &get, r), 32);
	sys = sys_real;
	free(r);
	kit_close(s);
}

static void under_a_guard_nothing_waits(void **state)
{
	struct mqstore *s = old_ones(HERE);
	struct cold_guard *g = calloc(1, sizeof(*g));
	struct mqstore_queue *q = kit_queue(s, "T", 0);
	struct mq_str record;
	int64_t off[4];

	cold_guard(s, g);
	assert_int_equal(mqstore_at(s, 0, &record), MQ_ENOTFOUND);
	assert_int_equal(g->n, 1);
	assert_string_equal(g->range[0].path, kit_path("%s/commitlog/%020d", HERE, 0));
	cold_guard(s, g);
	assert_int_equal(g->n, 0);
	mqstore_search_time(s, q, 1, false);
	assert_int_equal(g->n, 1);
	assert_non_null(strstr(g->range[0].path, "consumequeue/T/0/"));
	cold_guard(s, g);
	cold_from = 1; /* the entry, not its record */
	mqstore_search_time(s, q, 1, false);
	assert_int_equal(g->n, 1);
	assert_non_null(strstr(g->range[0].path, "commitlog"));
	cold_guard(s, g);
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("k3"), 4, 0, INT64_MAX, off, NULL, NULL), 0);
	assert_int_equal(g->n, 1);
	assert_non_null(strstr(g->range[0].path, "/index/"));
	/* A message that is new is never asked for. */
	cold_guard(s, g);
	assert_int_equal(mqstore_at(s, kit_log_off(s, "U", 0, BEHIND - 1), &record), 0);
	assert_int_equal(g->n, 0);
	cold_from = 1000;
	assert_int_equal(mqstore_query(s, MQ_STR("T"), MQ_STR("k3"), 4, 0, INT64_MAX, off, NULL, NULL), 1);
	assert_int_equal(mqstore_at(s, off[0], &record), 0);
	assert_int_equal(mqstore_search_time(s, q, 1, false), 0);
	assert_true(mqstore_time_at(s, q, OLD - 1) > 0);
	assert_int_equal(g->n, 0);
	cold_guard(s, NULL);
	cold_from = 0;
	assert_int_equal(mqstore_at(s, 0, &record), 0);
	sys = sys_real;
	free(g);
	kit_close(s);
}

static int end(void **state)
{
	sys = sys_real;
	return tempdir_remove(state);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, tempdir_make, end)
	const struct CMUnitTest tests[] = {
		T(entries_come_before_messages),
		T(filters_are_asked_for_the_tags_of_units),
		T(under_a_guard_nothing_waits),
	};

	return cmocka_run_group_tests_name("cold", tests, NULL, NULL);
}
