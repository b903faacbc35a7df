/* test_mqfs.c: the parts of mqfs that need no mount: numbers of nodes, times, names of queues, settings as text, ends of processes,
 * and tasks. */
#include "../../mqfs/fail.h"
#include "../../mqfs/keyvalue.h"
#include "../../mqfs/names.h"
#include "../../mqfs/node.h"
#include "../../mqfs/proc.h"
#include "../../mqfs/task.h"
#include "../../mqfs/tree.h"
#include "../../mqfs/when.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void a_node_has_the_same_number_after_it_was_forgotten(void **state)
{
	struct node *root = node_root(&tree[K_ROOT]), *topics = node_child(root, &tree[K_TOPICS], "topics"), *t;
	uint64_t ino = node_child_ino(topics, "T");

	assert_int_equal(root->ino, NODE_ROOT_INO);
	t = node_child(topics, &tree[K_TOPIC], "T");
	assert_true(t->ino == ino && ino > NODE_ROOT_INO);
	assert_ptr_equal(node_by_ino(ino), t);
	node_looked_up(t);
	node_looked_up(t);
	node_unref(t);
	node_forget(t, 1);
	assert_ptr_equal(node_by_ino(ino), t);
	node_forget(t, 1);
	assert_null(node_by_ino(ino));
	t = node_child(topics, &tree[K_TOPIC], "T");
	assert_true(t->ino == ino);
	node_unref(t);
	node_unref(topics);
	assert_int_equal(node_count(), 1);
	node_free_all();
}

static void numbers_differ_and_a_path_is_told(void **state)
{
	struct node *root = node_root(&tree[K_ROOT]), *topics = node_child(root, &tree[K_TOPICS], "topics"), *n[2000];
	char name[32], path[100];

	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "topic-%d", i);
		n[i] = node_child(topics, &tree[K_TOPIC], name);
	}
	assert_int_equal(node_count(), 2002);
	assert_string_equal(node_path(n[7], path, sizeof(path)), "topics/topic-7");
	assert_ptr_equal(node_up(n[7], &tree[K_TOPICS]), topics);
	for (int i = 0; i < 2000; i++)
		node_unref(n[i]);
	node_unref(topics);
	assert_int_equal(node_count(), 1);
	node_free_all();
}

static void times_are_read_in_the_forms_of_the_manual(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "@1700000000", 1700000000000 }, { "@1700000000123", 1700000000123 }, { "2023-11-14T22:13:20Z", 1700000000000 },
		{ "2023-11-14T22:13:20.250Z", 1700000000250 }, { "2023-11-14T22:13Z", 1699999980000 }, { "1970-01-02Z", 86400000 },
	};
	static const char *const wrong[] = { "", "@", "@1x", "yesterday", "2023-11", "2023-11-14T", "2023-11-14T22", "2023-11-14T22:13:",
	                                     "2023-11-14T22:13:20ZZ", "2023-13-01", "17", "2023-11-14T22:13:61" };
	char text[40];
	int64_t ms;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(when_parse(good[i].text, &ms));
		assert_true(ms == good[i].ms);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(when_parse(wrong[i], &ms));
	assert_true(when_parse(when_text(1700000000123, text, sizeof(text)), &ms));
	assert_true(ms == 1700000000123);
}

static void a_queue_is_a_broker_and_a_number(void **state)
{
	struct queue_name q;
	int64_t off;

	assert_true(tree_queue_name("broker-a:7", &q));
	assert_string_equal(q.broker, "broker-a");
	assert_int_equal(q.id, 7);
	assert_true(tree_queue_name("a:b:0", &q));
	assert_string_equal(q.broker, "a:b");
	assert_false(tree_queue_name("a:", &q));
	assert_false(tree_queue_name(":1", &q));
	assert_false(tree_queue_name("a:-1", &q));
	assert_false(tree_queue_name("a:01", &q));
	assert_false(tree_queue_name("a:3000000000", &q));
	assert_true(tree_offset("0", &off) && off == 0);
	assert_false(tree_offset("", &off) || tree_offset("00", &off) || tree_offset("1x", &off) || tree_offset("9999999999999999999", &off));
}

static void every_kind_has_a_place_and_what_it_needs(void **state)
{
	for (int i = 1; i < K_COUNT; i++) {
		const struct kind *k = &tree[i];
		assert_true(k->mode != 0);
		assert_true(k->parent < K_COUNT && S_ISDIR(tree[k->parent].mode));
		if (!k->name)
			assert_true(k->find && ((k->flags & TREE_HIDDEN) || k->list));
		if (S_ISLNK(k->mode))
			assert_non_null(k->read);
		if (S_ISREG(k->mode) && !(k->flags & (TREE_STREAM | TREE_RECV | TREE_POST)))
			assert_non_null(k->read);
		if (k->write)
			assert_true(k->mode & 0200);
	}
}

static void settings_are_changed_by_name_and_type(void **state)
{
	json_t *o = json_pack("{s:i, s:b, s:s}", "perm", 6, "order", 0, "type", "x");
	struct bytes text = { 0 };

	keyvalue_text(o, &text);
	bytes_byte(&text, '\0');
	assert_string_equal(text.p, "order=false\nperm=6\ntype=x\n");
	assert_int_equal(keyvalue_apply(o, MQ_STR("# comment\n\n perm = 4 \norder=true\ntype=a=b\n"), "t"), 3);
	assert_int_equal(json_integer_value(json_object_get(o, "perm")), 4);
	assert_string_equal(json_string_value(json_object_get(o, "type")), "a=b");
	assert_int_equal(keyvalue_apply(o, MQ_STR("perm=4"), "t"), 0);
	assert_int_equal(keyvalue_apply(o, MQ_STR("perm=many"), "t"), -EINVAL);
	assert_int_equal(keyvalue_apply(o, MQ_STR("colour=red"), "t"), -EINVAL);
	assert_int_equal(keyvalue_apply(o, MQ_STR("no sign"), "t"), -EINVAL);
	bytes_free(&text);
	json_decref(o);
}

static void names_are_sorted_and_there_once(void **state)
{
	struct names l = { 0 };

	names_add(&l, "b");
	names_printf(&l, "%s%d", "a", 1);
	names_add(&l, "b");
	names_sort(&l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0], "a1");
	assert_true(names_has(&l, "b") && !names_has(&l, "c"));
	names_free(&l);
	assert_false(names_has(&l, "b"));
}

static void a_process_that_lives_is_told_from_none(void **state)
{
	assert_int_equal(proc_ending(getpid()), PROC_LIVES);
	assert_int_equal(proc_ending(0), PROC_UNKNOWN);
	assert_int_equal(proc_of_thread(getpid()), getpid());
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGKILL);
		_exit(0);
	}
	/* A zombie still tells how it ended. */
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_ending(pid), PROC_KILLED);
	waitpid(pid, NULL, 0);
	pid = fork();
	if (pid == 0)
		_exit(3);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_ending(pid), PROC_FAILS);
	waitpid(pid, NULL, 0);
}

static struct task *sleeper;
static int steps;

static void walk(void *arg)
{
	steps++;
	sleeper = task_self();
	task_park();
	steps++;
	assert_ptr_equal(task_self(), sleeper);
	assert_true(task_left_ms() > 1000);
}

static void a_task_goes_on_where_it_parked(void **state)
{
	steps = 0;
	task_start(walk, NULL, task_now_ms() + 60000);
	assert_int_equal(steps, 1);
	assert_null(task_self());
	task_wake(sleeper);
	assert_int_equal(steps, 2);
	task_free_stacks();
}

static void failures_have_the_errno_of_the_manual(void **state)
{
	static const struct {
		int code, response, rc;
	} rows[] = {
		{ MQ_ETIMEOUT, 0, -ETIMEDOUT }, { MQ_ECLOSED, 0, -EHOSTDOWN }, { MQ_ETOOBIG, 0, -EMSGSIZE }, { MQ_EREFUSED, 13, -EMSGSIZE },
		{ MQ_EREFUSED, 16, -EACCES }, { MQ_EREFUSED, 17, -ENOENT }, { MQ_EREFUSED, 2, -EAGAIN }, { MQ_EREFUSED, 21, -ESTALE },
		{ MQ_EREFUSED, 1, -EIO }, { -ECONNREFUSED, 0, -EHOSTDOWN }, { MQ_EFULL, 0, -ENOSPC }, { MQ_EINVAL, 0, -EINVAL }, { 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mq_error e = { .code = rows[i].code, .response = rows[i].response };
		assert_int_equal(fail_errno(&e), rows[i].rc);
	}
	assert_int_equal(fail_response(14, MQ_STR("the broker's disk is full")), -ENOSPC);
	assert_int_equal(fail_response(14, MQ_STR("shutting down")), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_has_the_same_number_after_it_was_forgotten),
		cmocka_unit_test(numbers_differ_and_a_path_is_told),
		cmocka_unit_test(times_are_read_in_the_forms_of_the_manual),
		cmocka_unit_test(a_queue_is_a_broker_and_a_number),
		cmocka_unit_test(every_kind_has_a_place_and_what_it_needs),
		cmocka_unit_test(settings_are_changed_by_name_and_type),
		cmocka_unit_test(names_are_sorted_and_there_once),
		cmocka_unit_test(a_process_that_lives_is_told_from_none),
		cmocka_unit_test(a_task_goes_on_where_it_parked),
		cmocka_unit_test(failures_have_the_errno_of_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
