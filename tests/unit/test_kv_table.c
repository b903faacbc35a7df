/* test_kv_table.c: settings live in their file: a success is on the disk, a failure changes nothing. */
#include "../../bin/namesrv/kv_table.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sys.h"
#include "tempdir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct kv_table *open_table(void *state, const char *name)
{
	struct mq_error e = { 0 };
	struct kv_table *t = kv_table_open(name ? tempdir_path(state, name) : NULL, &e);

	if (!t)
		fail_msg("%s", e.text);
	return t;
}

static void put(struct kv_table *t, const char *ns, const char *key, const char *value)
{
	struct mq_error e = { 0 };

	if (kv_table_put(t, str_of(ns), str_of(key), str_of(value), &e) < 0)
		fail_msg("%s", e.text);
}
#define assert_value(t, ns, key, want) assert_true(str_is(kv_table_get((t), str_of(ns), str_of(key)), (want)))

static void settings_are_there_after_a_new_start(void **state)
{
	struct kv_table *t = open_table(*state, "sub/dir/kv.json");
	struct mq_error e;
	struct body_kv list;

	put(t, "ORDER_TOPIC_CONFIG", "T", "broker-a:4");
	put(t, "ORDER_TOPIC_CONFIG", "U", "\"q\" \\ \xe6\xa0\x87");
	put(t, "other", "k", "");
	put(t, "ORDER_TOPIC_CONFIG", "T", "broker-a:8");
	assert_int_equal(kv_table_delete(t, MQ_STR("other"), MQ_STR("no such key"), &e), 0);
	kv_table_free(t);
	t = open_table(*state, "sub/dir/kv.json");
	assert_int_equal(kv_table_count(t), 3);
	assert_value(t, "ORDER_TOPIC_CONFIG", "T", "broker-a:8");
	assert_value(t, "ORDER_TOPIC_CONFIG", "U", "\"q\" \\ \xe6\xa0\x87");
	assert_value(t, "other", "k", "");
	assert_null(kv_table_get(t, MQ_STR("other"), MQ_STR("x")).p);
	assert_null(kv_table_get(t, MQ_STR("nothing"), MQ_STR("x")).p);
	assert_true(kv_table_list(t, MQ_STR("ORDER_TOPIC_CONFIG"), &list));
	assert_int_equal(list.n, 2);
	body_kv_free(&list);
	assert_int_equal(kv_table_delete(t, MQ_STR("ORDER_TOPIC_CONFIG"), MQ_STR("T"), &e), 0);
	assert_int_equal(kv_table_delete(t, MQ_STR("ORDER_TOPIC_CONFIG"), MQ_STR("U"), &e), 0);
	/* compat: a namespace that was used stays, empty. */
	assert_true(kv_table_list(t, MQ_STR("ORDER_TOPIC_CONFIG"), &list));
	assert_int_equal(list.n, 0);
	body_kv_free(&list);
	assert_false(kv_table_list(t, MQ_STR("nothing"), &list));
	kv_table_free(t);
}

static void the_file_is_the_peers(void **state)
{
	struct kv_table *t = open_table(*state, "kv.json");
	char *text;

	put(t, "N", "k", "v");
	text = tempdir_read(tempdir_path(*state, "kv.json"));
	assert_string_equal(text, "{\"configTable\":{\"N\":{\"k\":\"v\"}}}");
	free(text);
	kv_table_free(t);
	/* As the peer writes it, with white space, numbers, and more. */
	tempdir_write(tempdir_path(*state, "kv.json"), "{\n\t\"configTable\":{\"A\":{\"b\":\"c\",\"n\":5},\"E\":{}},\"x\":1\n}");
	t = open_table(*state, "kv.json");
	assert_value(t, "A", "b", "c");
	assert_value(t, "A", "n", "5");
	kv_table_free(t);
}

static void a_damaged_file_is_replaced_by_the_one_before(void **state)
{
	static const char *const damage[] = { "", "{\"configTable\":{\"N\":{\"k\"", "[]", "{}" };
	struct mq_error e;
	struct kv_table *t;

	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		tempdir_write(tempdir_path(*state, "kv.json.bak"), "{\"configTable\":{\"N\":{\"k\":\"old\"}}}");
		tempdir_write(tempdir_path(*state, "kv.json"), damage[i]);
		t = open_table(*state, "kv.json");
		assert_value(t, "N", "k", "old");
		kv_table_free(t);
		/* Without a whole one it is not silently forgotten. */
		tempdir_write(tempdir_path(*state, "kv.json.bak"), damage[i]);
		assert_null(kv_table_open(tempdir_path(*state, "kv.json"), &e));
		assert_non_null(strstr(e.text, "kv.json"));
	}
	/* A crash between the two renames leaves only the old one. */
	sys.unlink(tempdir_path(*state, "kv.json"));
	tempdir_write(tempdir_path(*state, "kv.json.bak"), "{\"configTable\":{\"N\":{\"k\":\"old\"}}}");
	t = open_table(*state, "kv.json");
	assert_value(t, "N", "k", "old");
	kv_table_free(t);
}

static ssize_t write_fails(int fd, const void *p, size_t n, off_t off)
{
	return -ENOSPC;
}

static void what_cannot_be_saved_did_not_happen(void **state)
{
	struct kv_table *t = open_table(*state, "kv.json");
	struct mq_error e;

	put(t, "N", "k", "v");
	sys.pwrite = write_fails;
	assert_int_equal(kv_table_put(t, MQ_STR("N"), MQ_STR("k"), MQ_STR("new"), &e), -ENOSPC);
	assert_non_null(strstr(e.text, "kv.json"));
	assert_int_equal(kv_table_put(t, MQ_STR("N"), MQ_STR("k2"), MQ_STR("new"), &e), -ENOSPC);
	assert_int_equal(kv_table_put(t, MQ_STR("M"), MQ_STR("k"), MQ_STR("new"), &e), -ENOSPC);
	assert_int_equal(kv_table_delete(t, MQ_STR("N"), MQ_STR("k"), &e), -ENOSPC);
	sys = sys_real;
	assert_value(t, "N", "k", "v");
	assert_int_equal(kv_table_count(t), 1);
	assert_null(kv_table_get(t, MQ_STR("M"), MQ_STR("k")).p);
	put(t, "N", "k", "later");
	kv_table_free(t);
	t = open_table(*state, "kv.json");
	assert_value(t, "N", "k", "later");
	kv_table_free(t);
}

static void in_memory_and_bounded(void **state)
{
	struct kv_table *t = open_table(NULL, NULL);
	char *big = malloc(KV_BYTES_MAX);
	struct mq_error e;

	memset(big, 'x', KV_BYTES_MAX);
	put(t, "N", "k", "v");
	assert_int_equal(kv_table_put(t, MQ_STR("N"), MQ_STR("big"), (struct mq_str){ big, KV_BYTES_MAX - 4 }, &e), MQ_ETOOBIG);
	assert_int_equal(kv_table_put(t, MQ_STR("N"), MQ_STR("big"), (struct mq_str){ big, KV_BYTES_MAX - 100 }, &e), 0);
	assert_int_equal(kv_table_delete(t, MQ_STR("N"), MQ_STR("big"), &e), 0);
	assert_int_equal(kv_table_put(t, MQ_STR("N"), MQ_STR("big"), (struct mq_str){ big, KV_BYTES_MAX - 100 }, &e), 0);
	assert_value(t, "N", "k", "v");
	kv_table_free(t);
	free(big);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(settings_are_there_after_a_new_start),
		TEST(the_file_is_the_peers),
		TEST(a_damaged_file_is_replaced_by_the_one_before),
		TEST(what_cannot_be_saved_did_not_happen),
		cmocka_unit_test(in_memory_and_bounded),
	};

	log_max = LOG_ERROR;
	return cmocka_run_group_tests_name("kv_table", tests, NULL, NULL);
}
