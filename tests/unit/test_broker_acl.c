/* test_broker_acl.c: patterns of addresses; which right each request needs. */
#include "base/str.h"
#include "codec/body_heartbeat.h"
#include "codec/request.h"
#include "codec/sign.h"
#include "tempdir.h"
#include "../../bin/broker/acl.h"
#include "../../bin/broker/acl_addr.h"
#include "../../bin/broker/dispatch.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct mq_host host(const char *text)
{
	struct mq_host h = { .len = strchr(text, ':') ? 16 : 4, .port = 1234 };

	assert_int_equal(inet_pton(h.len == 16 ? AF_INET6 : AF_INET, text, h.ip), 1);
	return h;
}

static void assert_matches(const char *pattern, const char *yes, const char *no)
{
	struct mq_error e = { 0 };
	struct acl_addr *a;
	struct mq_str rest = str_of(yes), one;
	char text[64];

	if (acl_addr_parse(&a, str_of(pattern), &e) < 0)
		fail_msg("%s: %s", pattern, e.text);
	for (int want = 1; want >= 0; want--, rest = str_of(no)) {
		while (str_split(&rest, ' ', &one)) {
			struct mq_host h;

			if (!one.n)
				continue;
			snprintf(text, sizeof text, MQ_STR_FMT, MQ_STR_ARG(one));
			h = host(text);
			if (acl_addr_match(a, &h) != want)
				fail_msg("%s %s %s", pattern, want ? "does not match" : "matches", text);
		}
	}
	acl_addr_free(a);
}

static void patterns_of_addresses(void **state)
{
	assert_matches("", "", "10.0.0.1 ::1");
	assert_matches(" ", "", "10.0.0.1 ::1");
	assert_matches("*", "10.0.0.1 ::1", "");
	assert_matches("*.*.*.*", "10.0.0.1 ::1", "");
	assert_matches("*:*:*:*:*:*:*:*", "10.0.0.1 ::1", "");
	assert_matches("10.1.2.3", "10.1.2.3 ::ffff:10.1.2.3", "10.1.2.4 110.1.2.3 ::1");
	assert_matches("10.1.2.3, 10.1.2.5,fd00::7", "10.1.2.3 10.1.2.5 fd00::7", "10.1.2.4 fd00::8");
	assert_matches("10.1.2.{3,5}", "10.1.2.3 10.1.2.5", "10.1.2.4 10.1.2.35");
	assert_matches("fd00::{1,ff}", "fd00::1 fd00::ff", "fd00::2 fd01::1");
	assert_matches("10.1.2.*", "10.1.2.0 10.1.2.255", "10.1.3.1 10.1.20.1");
	assert_matches("10.1.*.*", "10.1.2.0 10.1.255.255", "10.2.3.1 11.1.2.3");
	assert_matches("10.1.2-9.*", "10.1.2.0 10.1.9.255", "10.1.1.1 10.1.10.1");
	assert_matches("10.1.2.20-30", "10.1.2.20 10.1.2.30", "10.1.2.19 10.1.2.31 10.1.3.25");
	assert_matches("fd00::*", "fd00:: fd00::ffff", "fd00::1:1 fd01::");
	assert_matches("2::ac5:78:1-200:*", "2::ac5:78:1:0 2::ac5:78:200:ffff", "2::ac5:78:0:0 2::ac5:78:201:0 2::ac6:78:1:0");
	assert_matches("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:9");
	assert_matches("::", "::", "::1");
}

static void what_is_no_pattern_is_refused(void **state)
{
	static const char *const wrong[] = { "10.1.*", "10.1.2", "10.1.2.256", "10.1.2.3.4", "10.1.2.x", "10.1.2.-5", "10.1.2.9-5", "10.1.2.",
		"10.1.2.{3", "10.1.2.{}", "10.1.2.3,", ",", "localhost", "1:2:3", "1:2:3:4:5:6:7:8:9", "1::2::3", "fd00::12345", "10.1.2.1-2-3",
		":::", "10 .1.2.3 4", "1:2:3:4:5:6:7::8" };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct mq_error e = { 0 };
		struct acl_addr *a;

		if (acl_addr_parse(&a, str_of(wrong[i]), &e) == 0)
			fail_msg("'%s' is taken", wrong[i]);
		assert_null(a);
		assert_non_null(strstr(e.text, "is no address such as"));
	}
}

/* ---- Rights ------------------------------------------------------------------------------------------------------------------- */

static const char accounts[] =
	"globalWhiteRemoteAddresses: [ 10.0.0.1 ]\n"
	"accounts:\n"
	"- { accessKey: the-admin, secretKey: admin-secret, admin: true }\n"
	"- accessKey: the-app\n"
	"  secretKey: app-secret\n"
	"  whiteRemoteAddress: 10.0.0.2\n"
	"  defaultGroupPerm: DENY\n"
	"  topicPerms: [ both=PUB|SUB, in=PUB, out=SUB, none=DENY ]\n"
	"  groupPerms: [ g=SUB, g_1_x=SUB, shut=DENY ]\n";

struct fixture {
	void *dir;
	struct acl *acl;
	char why[600];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct mq_error e = { 0 };
	const char *path;

	tempdir_make(&f->dir);
	path = tempdir_path(f->dir, "plain_acl.yml");
	tempdir_write(path, accounts);
	if (acl_open(&f->acl, path, &e) < 0)
		fail_msg("%s", e.text);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int rc;

	acl_free(f->acl);
	rc = tempdir_remove(&f->dir);
	free(f);
	return rc;
}

/* Ask with the frame as `access`, signed with its secret. */
static bool ask_with(struct fixture *x, const char *access, const char *from, struct frame *f)
{
	struct mq_str secret = str_is(str_of(access), "the-admin") ? MQ_STR("admin-secret") : MQ_STR("app-secret");
	struct mq_host peer = host(from);
	struct mq_error why = { 0 };
	char text[SIGN_TEXT];
	bool may;

	f->version = 453;
	f->field[f->nfields++] = (struct frame_field){ MQ_STR("AccessKey"), str_of(access) };
	sign_text(f, secret, 0, text);
	f->field[f->nfields++] = (struct frame_field){ MQ_STR("Signature"), { text, SIGN_TEXT } };
	may = acl_allows(x->acl, f, &peer, &why);
	snprintf(x->why, sizeof x->why, "%s", why.text);
	return may;
}

/* The same; pairs of fields, NULL at the end. */
static bool ask(struct fixture *x, const char *access, const char *from, int code, struct mq_str body, ...)
{
	struct frame f = { .code = code, .body = body };
	const char *key;
	va_list ap;

	va_start(ap, body);
	while ((key = va_arg(ap, const char *)))
		f.field[f.nfields++] = (struct frame_field){ str_of(key), str_of(va_arg(ap, const char *)) };
	va_end(ap);
	return ask_with(x, access, from, &f);
}
#define NO_BODY ((struct mq_str){ NULL, 0 })
#define app_may(code, ...) ask(x, "the-app", "10.0.0.9", code, NO_BODY, __VA_ARGS__, NULL)

static void sends_need_the_right_to_publish(void **state)
{
	struct fixture *x = *state;

	assert_true(app_may(REQ_SEND_MESSAGE_V2, "a", "pg", "b", "both"));
	assert_true(app_may(REQ_SEND_MESSAGE_V2, "a", "pg", "b", "in"));
	assert_true(app_may(REQ_SEND_BATCH_MESSAGE, "a", "pg", "b", "in"));
	assert_true(app_may(REQ_SEND_MESSAGE, "producerGroup", "pg", "topic", "in"));
	assert_false(app_may(REQ_SEND_MESSAGE_V2, "a", "pg", "b", "out"));
	assert_string_equal(x->why, "No permission for topic:out");
	assert_false(app_may(REQ_SEND_MESSAGE, "producerGroup", "pg", "topic", "none"));
	assert_false(app_may(REQ_SEND_BATCH_MESSAGE, "a", "pg", "b", "unheard"));
	assert_string_equal(x->why, "No default permission for topic:unheard");
	assert_true(app_may(REQ_SEND_MESSAGE_V2, "a", "pg", "b", "RMQ_SYS_TRACE_TOPIC"));
	assert_true(app_may(REQ_END_TRANSACTION, "topic", "in"));
	assert_true(app_may(REQ_END_TRANSACTION, "producerGroup", "pg"));
	assert_false(app_may(REQ_END_TRANSACTION, "topic", "out"));
}

static void a_name_with_a_zero_byte_is_not_the_one_before_it(void **state)
{
	struct fixture *x = *state;
	struct frame f = { .code = REQ_SEND_MESSAGE_V2 };

	f.field[f.nfields++] = (struct frame_field){ MQ_STR("b"), { "both\0other", 10 } };
	assert_false(ask_with(x, "the-app", "10.0.0.9", &f));
	assert_string_equal(x->why, "No permission for topic:both\\x00other");
}

static void a_message_for_a_retry_topic_is_one_that_its_group_gives_back(void **state)
{
	struct fixture *x = *state;

	assert_true(app_may(REQ_SEND_MESSAGE_V2, "a", "CLIENT_INNER_PRODUCER", "b", "%RETRY%g"));
	assert_false(app_may(REQ_SEND_MESSAGE_V2, "a", "g", "b", "%RETRY%shut"));
	assert_string_equal(x->why, "No permission for group:shut");
	assert_true(app_may(REQ_CONSUMER_SEND_MSG_BACK, "group", "g"));
	assert_false(app_may(REQ_CONSUMER_SEND_MSG_BACK, "group", "other"));
	assert_string_equal(x->why, "No default permission for group:other");
}

static void readers_need_the_right_to_group_and_topic(void **state)
{
	static const int codes[] = { REQ_PULL_MESSAGE, REQ_LITE_PULL_MESSAGE, REQ_UPDATE_CONSUMER_OFFSET, REQ_POP_MESSAGE, REQ_ACK_MESSAGE,
				     REQ_CHANGE_MESSAGE_INVISIBLETIME };
	struct fixture *x = *state;

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		assert_true(app_may(codes[i], "consumerGroup", "g", "topic", "out"));
		assert_true(app_may(codes[i], "consumerGroup", "g_1_x", "topic", "both"));
		assert_true(app_may(codes[i], "consumerGroup", "g_1_x", "topic", "%RETRY%g_1_x"));
		assert_false(app_may(codes[i], "consumerGroup", "g", "topic", "in"));
		assert_string_equal(x->why, "No permission for topic:in");
		assert_false(app_may(codes[i], "consumerGroup", "shut", "topic", "out"));
		assert_string_equal(x->why, "No permission for group:shut");
		assert_false(app_may(codes[i], "consumerGroup", "g", "topic", "%RETRY%shut"));
	}
	assert_true(app_may(REQ_UNREGISTER_CLIENT, "clientID", "c", "producerGroup", "pg"));
	assert_false(app_may(REQ_UNREGISTER_CLIENT, "clientID", "c", "consumerGroup", "shut"));
	assert_false(app_may(REQ_GET_CONSUMER_LIST_BY_GROUP, "consumerGroup", "shut"));
	assert_true(app_may(REQ_QUERY_MESSAGE, "topic", "out", "key", "k"));
	assert_false(app_may(REQ_QUERY_MESSAGE, "topic", "in", "key", "k"));
}

static void a_heartbeat_needs_all_that_its_groups_want(void **state)
{
	static const char good[] = "{\"clientID\":\"c\",\"consumerDataSet\":[{\"groupName\":\"g\",\"subscriptionDataSet\":[{\"topic\":\"out\","
				   "\"subString\":\"*\"},{\"topic\":\"%RETRY%g\",\"subString\":\"*\"}]}],\"producerDataSet\":[{\"groupName\":\"pg\"}]}";
	static const char topic[] = "{\"clientID\":\"c\",\"consumerDataSet\":[{\"groupName\":\"g\",\"subscriptionDataSet\":[{\"topic\":\"in\","
				    "\"subString\":\"*\"}]}],\"producerDataSet\":[]}";
	static const char group[] = "{\"clientID\":\"c\",\"consumerDataSet\":[{\"groupName\":\"shut\",\"subscriptionDataSet\":[]}]}";
	struct fixture *x = *state;

	assert_true(ask(x, "the-app", "10.0.0.9", REQ_HEART_BEAT, MQ_STR(good), NULL));
	assert_false(ask(x, "the-app", "10.0.0.9", REQ_HEART_BEAT, MQ_STR(topic), NULL));
	assert_string_equal(x->why, "No permission for topic:in");
	assert_false(ask(x, "the-app", "10.0.0.9", REQ_HEART_BEAT, MQ_STR(group), NULL));
	assert_false(ask(x, "the-app", "10.0.0.9", REQ_HEART_BEAT, MQ_STR("{"), NULL));
	assert_true(ask(x, "the-admin", "10.0.0.9", REQ_HEART_BEAT, MQ_STR(group), NULL));
}

static void addresses_come_before_accounts(void **state)
{
	struct fixture *x = *state;
	struct mq_host anywhere = host("10.0.0.9"), white = host("10.0.0.1"), own = host("10.0.0.2");
	struct frame f = { .code = REQ_DELETE_TOPIC_IN_BROKER }, named = f;
	struct mq_error why;

	assert_true(acl_allows(x->acl, &f, &white, &why));
	assert_false(acl_allows(x->acl, &f, &anywhere, &why));
	assert_string_equal(why.text, "No accessKey is configured");
	named.field[named.nfields++] = (struct frame_field){ MQ_STR("AccessKey"), MQ_STR("the-app") };
	assert_true(acl_allows(x->acl, &named, &own, &why));
	assert_false(acl_allows(x->acl, &named, &anywhere, &why));
	assert_string_equal(why.text, "Check signature failed for accessKey=the-app");
	named.field[0].value = MQ_STR("nobody\nat all");
	assert_false(acl_allows(x->acl, &named, &own, &why));
	assert_string_equal(why.text, "No acl config for nobody\\x0aat all");
}

/* Every request that the broker serves: without an account none, with one none of those that are for admins. */
static void every_request_is_guarded(void **state)
{
	static const int32_t open_to_all[] = {
		REQ_SEND_REPLY_MESSAGE, REQ_SEND_REPLY_MESSAGE_V2, REQ_QUERY_CONSUMER_OFFSET, REQ_SEARCH_OFFSET_BY_TIMESTAMP, REQ_GET_MAX_OFFSET,
		REQ_GET_MIN_OFFSET, REQ_GET_EARLIEST_MSG_STORETIME, REQ_LOCK_BATCH_MQ, REQ_UNLOCK_BATCH_MQ, REQ_CHECK_CLIENT_CONFIG,
		REQ_VIEW_MESSAGE_BY_ID,
	};
	struct fixture *x = *state;
	const struct request_row *rows;
	size_t n, served = 0;

	rows = request_rows(&n);
	for (size_t i = 0; i < n; i++) {
		struct frame f = { .code = rows[i].code };
		struct mq_host from = host("10.0.0.9");
		struct mq_error why;

		if (!dispatch_find(rows[i].code))
			continue;
		served++;
		if (acl_allows(x->acl, &f, &from, &why))
			fail_msg("%s is served to nobody", rows[i].name);
		if (!ask(x, "the-admin", "10.0.0.9", rows[i].code, NO_BODY, NULL))
			fail_msg("%s is refused to an admin: %s", rows[i].name, x->why);
	}
	assert_true(served > 60);
	for (size_t i = 0; i < sizeof open_to_all / sizeof *open_to_all; i++)
		assert_true(app_may(open_to_all[i], "topic", "unheard"));
	assert_false(app_may(REQ_UPDATE_AND_CREATE_ACL_CONFIG, "accessKey", "the-app", "admin", "true"));
	assert_string_equal(x->why, "Need admin permission for request code=50, but accessKey=the-app is not");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_of_addresses),
		cmocka_unit_test(what_is_no_pattern_is_refused),
		cmocka_unit_test_setup_teardown(sends_need_the_right_to_publish, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_with_a_zero_byte_is_not_the_one_before_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_message_for_a_retry_topic_is_one_that_its_group_gives_back, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_need_the_right_to_group_and_topic, setup, teardown),
		cmocka_unit_test_setup_teardown(a_heartbeat_needs_all_that_its_groups_want, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_come_before_accounts, setup, teardown),
		cmocka_unit_test_setup_teardown(every_request_is_guarded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
