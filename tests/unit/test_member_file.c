/* What a broker under a controller keeps in files: its number, and who wrote its log. */
#include "../../bin/broker/member_private.h"
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
	char dir[64];
	struct conf *rows;
	struct broker_conf conf;
	struct member *m;
};

static int setup(void **state)
{
	struct place *p = mem_alloc(sizeof *p);
	char key[2][128];
	struct mq_error e;

	strcpy(p->dir, "/tmp/member-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->rows = broker_conf_new(&p->conf);
	snprintf(key[0], sizeof key[0], "%s/a/brokerIdentity", p->dir);
	snprintf(key[1], sizeof key[1], "%s/b/epochs", p->dir);
	assert_int_equal(conf_set(p->rows, MQ_STR("brokerName"), MQ_STR("a"), &e), 0);
	assert_int_equal(conf_set(p->rows, MQ_STR("brokerClusterName"), MQ_STR("C"), &e), 0);
	assert_int_equal(conf_set(p->rows, MQ_STR("storePathBrokerIdentity"), str_of(key[0]), &e), 0);
	assert_int_equal(conf_set(p->rows, MQ_STR("storePathEpochFile"), str_of(key[1]), &e), 0);
	p->m = mem_alloc(sizeof *p->m);
	p->m->conf = &p->conf;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	sys_remove_tree(p->dir);
	conf_free(p->rows);
	free(p->m);
	free(p);
	return 0;
}

static void put(const char *path, const char *text)
{
	assert_int_equal(sys_mkdir_parent(path), 0);
	assert_int_equal(sys_replace_file(path, text, strlen(text)), 0);
}

static void nothing_is_a_beginning(void **state)
{
	struct place *p = *state;
	struct role_identity id = { .id = 7 };
	struct mq_error e;

	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(id.id, 0);
	assert_int_equal(id.temp_id, 0);
	assert_int_equal(p->m->epochs.n, 0);
}

static void a_number_is_kept_from_the_application_on(void **state)
{
	struct place *p = *state;
	struct role_identity id = { 0 };
	struct mq_error e;

	assert_int_equal(member_file_write_temp(p->m, 3, "127.0.0.1:10911;1700000000000", &e), 0);
	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(id.id, 0);
	assert_int_equal(id.temp_id, 3);
	assert_string_equal(id.temp_check, "127.0.0.1:10911;1700000000000");

	assert_int_equal(member_file_write_identity(p->m, 3, &e), 0);
	memset(&id, 0, sizeof id);
	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(id.id, 3);
	assert_int_equal(id.temp_id, 0);
}

/* The text of the peer's file, and what stands in ours. */
static void the_peers_identity_is_read(void **state)
{
	struct place *p = *state;
	struct role_identity id = { 0 };
	struct mq_error e;

	put(p->conf.storePathBrokerIdentity, "C#a#12");
	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(id.id, 12);
}

static void a_foreign_or_damaged_identity_is_refused(void **state)
{
	static const char *const bad[] = { "C#b#1", "D#a#1", "C#a", "C#a#0", "C#a#-2", "C#a#x", "a", "##" };
	struct place *p = *state;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct role_identity id = { 0 };
		struct mq_error e = { 0 };

		put(p->conf.storePathBrokerIdentity, bad[i]);
		assert_true(member_file_load(p->m, &id, &e) < 0);
		assert_non_null(strstr(e.text, "brokerIdentity"));
	}
}

static void epochs_come_back_and_from_the_copy_if_need_be(void **state)
{
	struct place *p = *state;
	struct role_identity id = { 0 };
	struct mq_error e;

	assert_int_equal(epoch_append(&p->m->epochs, 1, 0, &e), 0);
	assert_int_equal(member_save_epochs(p->m, &e), 0);
	assert_int_equal(epoch_append(&p->m->epochs, 4, 96582, &e), 0);
	assert_int_equal(member_save_epochs(p->m, &e), 0);
	p->m->epochs.n = 0;
	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(p->m->epochs.n, 2);
	assert_int_equal(p->m->epochs.v[1].start, 96582);

	assert_int_equal(sys.unlink(p->conf.storePathEpochFile), 0);
	p->m->epochs.n = 0;
	assert_int_equal(member_file_load(p->m, &id, &e), 0);
	assert_int_equal(p->m->epochs.n, 1); /* as of the save before */
}

static void damaged_epochs_without_a_copy_are_refused(void **state)
{
	struct place *p = *state;
	struct role_identity id = { 0 };
	struct mq_error e = { 0 };

	put(p->conf.storePathEpochFile, "1\n5\n1-0\n");
	assert_true(member_file_load(p->m, &id, &e) < 0);
	assert_non_null(strstr(e.text, "epochs"));
}

static void the_same_boot_is_known_from_the_second_time_on(void **state)
{
	struct place *p = *state;
	char path[160];

	assert_false(member_file_same_boot(p->m));
	assert_true(member_file_same_boot(p->m));
	snprintf(path, sizeof path, "%s-boot", p->conf.storePathEpochFile);
	put(path, "another\n");
	assert_false(member_file_same_boot(p->m));
	assert_true(member_file_same_boot(p->m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_a_beginning, setup, teardown),
		cmocka_unit_test_setup_teardown(a_number_is_kept_from_the_application_on, setup, teardown),
		cmocka_unit_test_setup_teardown(the_peers_identity_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(a_foreign_or_damaged_identity_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(epochs_come_back_and_from_the_copy_if_need_be, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_epochs_without_a_copy_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_same_boot_is_known_from_the_second_time_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
