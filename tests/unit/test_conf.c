/* test_conf.c: options from files, arguments and updates; what is wrong is named; saving touches only what changed. */
#include "base/conf.h"
#include "base/log.h"
#include "base/javaprops.h"
#include "base/str.h"
#include "tempdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

struct options {
	char *name, *addr;
	int32_t port, flush;
	int64_t size, age;
	bool on;
};
#define AT(field) offsetof(struct options, field)
static const struct conf_row rows[] = {
	{ "brokerName", CONF_STR, AT(name), "broker-a", 0, 0, NULL, 0, "name" },
	{ "namesrvAddr", CONF_STR, AT(addr), NULL, 0, 0, NULL, CONF_RUNTIME, "where" },
	{ "listenPort", CONF_I32, AT(port), "10911", 0, 65535, NULL, 0, "port" },
	{ "flushDiskType", CONF_ENUM, AT(flush), "ASYNC_FLUSH", 0, 0, "ASYNC_FLUSH|SYNC_FLUSH", CONF_RUNTIME, "when" },
	{ "mappedFileSizeCommitLog", CONF_SIZE, AT(size), "1G", 4096, 1LL << 31, NULL, 0, "bytes" },
	{ "fileReservedTime", CONF_I64, AT(age), "72", 0, 0, NULL, CONF_RUNTIME, "hours" },
	{ "traceOn", CONF_BOOL, AT(on), "true", 0, 0, NULL, CONF_RUNTIME, "trace" },
	{ "storePathRootDir", CONF_STR, AT(name), "/x", 0, 0, NULL, CONF_FIXED, "where" },
};
enum { ROWS = 7 }; /* without the last, which shares a field */

struct fixture {
	void *dir;
	struct conf *conf;
	struct options o;
	struct mq_error e;
	struct buf logged;
};

static void keep_log(void *arg, enum log_level l, const char *line)
{
	buf_printf(arg, "%s\n", line);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	f->conf = conf_new(rows, ROWS, &f->o);
	log_to(keep_log, &f->logged);
	return tempdir_make(&f->dir);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int rc = tempdir_remove(&f->dir);

	log_to(NULL, NULL);
	buf_free(&f->logged);
	conf_free(f->conf);
	free(f);
	return rc;
}

static int load(struct fixture *f, const char *text)
{
	const char *path = tempdir_path(f->dir, "broker.conf");

	tempdir_write(path, text);
	return conf_file(f->conf, path, &f->e);
}

static void defaults_are_there_at_once(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(f->o.name, "broker-a");
	assert_string_equal(f->o.addr, "");
	assert_int_equal(f->o.port, 10911);
	assert_int_equal(f->o.flush, 0);
	assert_true(f->o.size == 1 << 30);
	assert_true(f->o.on);
}

static void a_file_as_the_peer_writes_it_is_read(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "# comment\r\n! another\r\n\r\nbrokerName = broker b\t \r\nlistenPort:10921\n"
				 "  flushDiskType   SYNC_FLUSH\nnamesrvAddr=10.0.0.1:9876;\\\n    10.0.0.2:9876\n"
				 "mappedFileSizeCommitLog=64K\ntraceOn=False"), 0);
	assert_string_equal(f->o.name, "broker b");
	assert_int_equal(f->o.port, 10921);
	assert_int_equal(f->o.flush, 1);
	assert_string_equal(f->o.addr, "10.0.0.1:9876;10.0.0.2:9876");
	assert_true(f->o.size == 65536);
	assert_false(f->o.on);
	assert_int_equal(f->logged.n, 0);
}

static void a_wrong_value_is_named_with_its_line_and_what_would_be_right(void **state)
{
	const struct { const char *text, *why; } t[] = {
		{ "\nlistenPort=70000\n", ":2: listenPort: '70000' is not a whole number from 0 to 65535" },
		{ "listenPort=12q\n", ":1: listenPort: '12q' is not a whole number from 0 to 65535" },
		{ "a=\\\n1\n\nflushDiskType=NEVER", ":4: flushDiskType: 'NEVER' is not one of ASYNC_FLUSH|SYNC_FLUSH" },
		{ "traceOn=yes", ":1: traceOn: 'yes' is not true or false" },
		{ "mappedFileSizeCommitLog=1", ":1: mappedFileSizeCommitLog: '1' is not a size like 4096, 64K or 1G from 4096 to 2147483648" },
		{ "fileReservedTime=", ":1: fileReservedTime: '' is not a whole number" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(load(f, t[i].text), MQ_EINVAL);
		assert_string_equal(f->e.text + strlen(tempdir_path(f->dir, "broker.conf")), t[i].why);
	}
}

static void an_unknown_key_is_kept_and_the_nearest_known_one_named(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "listenprot=1\ncompletelyElse=2\n"), 0);
	assert_non_null(strstr(f->logged.p, ":1: unknown key 'listenprot', nearest known: 'listenPort'\n"));
	assert_non_null(strstr(f->logged.p, ":2: unknown key 'completelyElse'\n"));
	assert_true(str_is(conf_get(f->conf, MQ_STR("completelyElse")), "2"));
	assert_null(conf_get(f->conf, MQ_STR("neverSeen")).p);
}

static void arguments_win_over_what_was_there(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(conf_arg(f->conf, "namesrvAddr=a=b", &f->e), 0);
	assert_string_equal(f->o.addr, "a=b");
	assert_int_equal(conf_arg(f->conf, "listenPort", &f->e), MQ_EINVAL);
	assert_string_equal(f->e.text, "'listenPort' is not key=value");
	assert_int_equal(conf_arg(f->conf, "nosuch=1", &f->e), MQ_ENOTFOUND);
}

static void an_update_with_one_wrong_line_changes_nothing(void **state)
{
	struct fixture *f = *state;
	int changed = -1;

	assert_int_equal(conf_update(f->conf, MQ_STR("traceOn=false\nlistenPort=x\n"), &changed, &f->e), MQ_EINVAL);
	assert_int_equal(changed, 0);
	assert_true(f->o.on);
}

static void an_update_applies_what_may_change_and_counts(void **state)
{
	struct fixture *f = *state;
	struct buf out = { 0 };
	int changed;

	assert_int_equal(conf_update(f->conf, MQ_STR("traceOn=false\nunknown=1\nfileReservedTime=72\nnamesrvAddr=x:1\n"
						     "brokerName=new\nlistenPort=1\n"), &changed, &f->e), 0);
	assert_int_equal(changed, 4);
	assert_false(f->o.on);
	assert_string_equal(f->o.addr, "x:1");
	/* Not while the program runs: shown, but not in force. */
	assert_string_equal(f->o.name, "broker-a");
	assert_int_equal(f->o.port, 10911);
	assert_true(str_is(conf_get(f->conf, MQ_STR("brokerName")), "new"));
	conf_update(f->conf, MQ_STR("brokerName=newer"), &changed, &f->e);
	conf_print(f->conf, &out);
	assert_true(str_is(buf_view(&out), "brokerName=newer\nnamesrvAddr=x:1\nlistenPort=1\nflushDiskType=ASYNC_FLUSH\n"
					   "mappedFileSizeCommitLog=1073741824\nfileReservedTime=72\ntraceOn=false\n"));
	buf_free(&out);
}

static void a_fixed_key_is_refused(void **state)
{
	struct fixture *f = *state;
	struct options o;
	struct conf *c = conf_new(rows, ROWS + 1, &o);
	int changed;

	assert_int_equal(conf_update(c, MQ_STR("storePathRootDir=/etc"), &changed, &f->e), MQ_EREFUSED);
	assert_string_equal(f->e.text, "storePathRootDir cannot be changed while the program runs");
	conf_free(c);
}

static void saving_one_changed_key_changes_one_line(void **state)
{
	struct fixture *f = *state;
	const char *path = tempdir_path(f->dir, "broker.conf");
	char *text;
	int changed;

	load(f, "# my broker\nfileReservedTime=1\n\nlistenPort = 1 \n  fileReservedTime : \\\n   48\n! end, no line feed");
	assert_int_equal(conf_update(f->conf, MQ_STR("fileReservedTime=24"), &changed, &f->e), 0);
	assert_int_equal(conf_save(f->conf, path, &f->e), 0);
	text = tempdir_read(path);
	assert_string_equal(text, "# my broker\nfileReservedTime=1\n\nlistenPort = 1 \nfileReservedTime=24\n! end, no line feed");
	free(text);
	/* A key that was not there goes to the end; what was saved is not saved again. */
	conf_update(f->conf, MQ_STR("namesrvAddr=\\ a b\\\\c\\u00e9 "), &changed, &f->e);
	assert_string_equal(f->o.addr, "a b\\cé");
	assert_int_equal(conf_save(f->conf, path, &f->e), 0);
	text = tempdir_read(path);
	assert_string_equal(text, "# my broker\nfileReservedTime=1\n\nlistenPort = 1 \nfileReservedTime=24\n! end, no line feed\n"
				  "namesrvAddr=a b\\\\c\\u00E9\n");
	free(text);
}

static void saving_without_a_change_does_not_touch_the_file(void **state)
{
	struct fixture *f = *state;
	const char *path = tempdir_path(f->dir, "none.conf");

	assert_int_equal(conf_save(f->conf, path, &f->e), 0);
	assert_null(tempdir_read(path));
}

/* Any key and value that were written are read back the same. */
static void properties_round_trip(void **state)
{
	srand(6);
	for (int i = 0; i < 5000; i++) {
		static const char *const bits[] = { " ", "=", ":", "#", "!", "\\", "\n", "\t", "\r", "a", "é", "😀", "\\u0041", "b" };
		struct buf key = { 0 }, value = { 0 }, text = { 0 };
		struct javaprops p;

		for (int k = rand() % 5 + 1; k > 0; k--)
			buf_cstr(&key, bits[rand() % 14]);
		for (int k = rand() % 6; k > 0; k--)
			buf_cstr(&value, bits[rand() % 14]);
		javaprops_put(&text, buf_view(&key), buf_view(&value));
		buf_cstr(&text, "next=1\n");
		p = javaprops_of(buf_view(&text));
		assert_true(javaprops_next(&p));
		assert_true(str_eq(buf_view(&p.key), buf_view(&key)));
		assert_true(str_eq(buf_view(&p.value), buf_view(&value)));
		assert_true(javaprops_next(&p));
		assert_true(str_is(buf_view(&p.key), "next"));
		assert_false(javaprops_next(&p));
		javaprops_free(&p);
		buf_free(&key);
		buf_free(&value);
		buf_free(&text);
	}
}

static void the_users_file_gives_the_first_hit(void **state)
{
	struct fixture *f = *state;
	char out[20], lines[400];

	setenv("XDG_CONFIG_HOME", f->dir, 1);
	assert_int_equal(conf_user_key("nosuchkey", out, sizeof(out), &f->e), MQ_ENOTFOUND);
	mkdir(tempdir_path(f->dir, "mq"), 0755);
	tempdir_write(tempdir_path(f->dir, "mq/config"), "; mine\nnameserver = a:1;b:2\nlong = 0123456789012345678901234\n[x]\nk=v\n");
	assert_int_equal(conf_user_key("nameserver", out, sizeof(out), &f->e), 0);
	assert_string_equal(out, "a:1;b:2");
	assert_int_equal(conf_user_key("long", out, sizeof(out), &f->e), MQ_ETOOBIG);
	assert_int_equal(conf_user_key("k", out, sizeof(out), &f->e), MQ_ENOTFOUND);
	snprintf(lines, sizeof(lines), "nameserver=%0300d\n", 7);
	tempdir_write(tempdir_path(f->dir, "mq/config"), lines);
	assert_int_equal(conf_user_key("nameserver", out, sizeof(out), &f->e), MQ_EINVAL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(defaults_are_there_at_once),
		T(a_file_as_the_peer_writes_it_is_read),
		T(a_wrong_value_is_named_with_its_line_and_what_would_be_right),
		T(an_unknown_key_is_kept_and_the_nearest_known_one_named),
		T(arguments_win_over_what_was_there),
		T(an_update_with_one_wrong_line_changes_nothing),
		T(an_update_applies_what_may_change_and_counts),
		T(a_fixed_key_is_refused),
		T(saving_one_changed_key_changes_one_line),
		T(saving_without_a_change_does_not_touch_the_file),
		T(properties_round_trip),
		T(the_users_file_gives_the_first_hit),
	};
	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
