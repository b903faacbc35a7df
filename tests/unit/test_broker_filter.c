/* test_broker_filter.c: SQL92 in the broker: who may filter so, what is refused, what wakes a held pull, what is in the file. */
#include "broker_kit.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/property.h"
#include "tempdir.h"
#include "../../bin/broker/bloom.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/filter_table.h"
#include "../../bin/broker/hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

struct fixture {
	struct broker_kit *k;
	struct conn *c, *producer;
};

static int setup_with(void **state, const char *const *props)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(props);
	f->c = broker_kit_dial(f->k, false);
	f->producer = broker_kit_dial(f->k, false);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	static const char *const props[] = { "enablePropertyFilter=true", NULL };

	return setup_with(state, props);
}

static int setup_off(void **state)
{
	return setup_with(state, NULL);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	broker_kit_stop(f->k);
	free(f);
	return 0;
}

/* props: name, value, ..., NULL */
static void send_with(struct fixture *f, const char *body, ...)
{
	struct buf props = { 0 };
	const char *name;
	va_list ap;

	va_start(ap, body);
	while ((name = va_arg(ap, const char *)))
		property_put(&props, str_of(name), str_of(va_arg(ap, const char *)));
	va_end(ap);
	buf_char(&props, 0);
	assert_int_equal(ask(f->k, f->producer, REQ_SEND_MESSAGE_V2, str_of(body), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0",
			     "f", "0", "g", "1700000000000", "h", "0", "i", props.p, NULL)->code, RESP_SUCCESS);
	buf_free(&props);
}

/* With an expression of its own, or NULL: the group's. */
static struct asked *pull_later(struct fixture *f, const char *group, const char *expr, int64_t off, int ms)
{
	char flag[16], at[32], wait[16];

	snprintf(flag, sizeof flag, "%d", (ms ? PULL_SUSPEND : 0) | (expr ? PULL_SUBSCRIPTION : 0));
	snprintf(at, sizeof at, "%lld", (long long)off);
	snprintf(wait, sizeof wait, "%d", ms);
	return ask_later(f->k, f->c, REQ_PULL_MESSAGE, (struct mq_str){ 0 }, "consumerGroup", group, "topic", "T", "queueId", "0",
			 "queueOffset", at, "maxMsgNums", "32", "sysFlag", flag, "commitOffset", "0", "suspendTimeoutMillis", wait,
			 "subVersion", "0", "expressionType", expr ? "SQL92" : "TAG", "subscription", expr ? expr : "", NULL);
}

static struct asked *pull(struct fixture *f, const char *group, const char *expr, int64_t off)
{
	static struct asked *a;

	if (a)
		asked_free(a);
	a = pull_later(f, group, expr, off, 0);
	asked_wait(f->k, a);
	return a;
}

static void heartbeat(struct fixture *f, const char *group, const char *type, const char *expr, int version)
{
	char body[2048];

	snprintf(body, sizeof body, "{\"clientID\":\"me\",\"consumerDataSet\":[{\"consumeFromWhere\":\"CONSUME_FROM_LAST_OFFSET\","
		 "\"consumeType\":\"CONSUME_PASSIVELY\",\"groupName\":\"%s\",\"messageModel\":\"CLUSTERING\",\"subscriptionDataSet\":["
		 "{\"topic\":\"T\",\"expressionType\":\"%s\",\"subString\":\"%s\",\"subVersion\":%d}]}],\"producerDataSet\":[]}",
		 group, type, expr, version);
	assert_int_equal(ask(f->k, f->c, REQ_HEART_BEAT, str_of(body), NULL)->code, RESP_SUCCESS);
}

static struct asked *check(struct fixture *f, const char *type, const char *expr)
{
	char body[1024];

	snprintf(body, sizeof body, "{\"clientId\":\"me\",\"group\":\"g\",\"namespace\":\"\",\"subscriptionData\":{\"topic\":\"T\","
		 "\"expressionType\":\"%s\",\"subString\":\"%s\",\"subVersion\":1}}", type, expr);
	return ask(f->k, f->c, REQ_CHECK_CLIENT_CONFIG, str_of(body), NULL);
}

static const struct filter *filter_of(struct fixture *f, const char *group)
{
	return filter_table_find(broker_kit_broker(f->k)->filters, str_of(group), MQ_STR("T"));
}

static void without_the_switch_it_is_refused(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	send_with(f, "m", "n", "1", NULL);
	a = check(f, "SQL92", "n = 1");
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_string_equal(a->remark.p, "The broker does not support consumer to filter message by SQL92");
	assert_int_equal(check(f, "TAG", "A")->code, RESP_SUCCESS);
	heartbeat(f, "g", "SQL92", "n = 1", 1);
	assert_int_equal(pull(f, "g", NULL, 0)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pull(f, "g", "n = 1", 0)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pull(f, "g", "n = ", 0)->code, RESP_SYSTEM_ERROR);
}

static void a_wrong_expression_is_refused_with_its_place(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	send_with(f, "m", "n", "1", NULL);
	assert_int_equal(check(f, "SQL92", "n = 1")->code, RESP_SUCCESS);
	a = check(f, "SQL92", "n = ");
	assert_int_equal(a->code, RESP_SUBSCRIPTION_PARSE_FAILED);
	assert_string_equal(a->remark.p, "SQL92 expression, character 5: the expression ends; want a property, a literal, NOT or '('");
	assert_int_equal(check(f, "SQL92", "")->code, RESP_SUBSCRIPTION_PARSE_FAILED);
	a = check(f, "SQL99", "n = 1");
	assert_int_equal(a->code, RESP_SUBSCRIPTION_PARSE_FAILED);
	assert_non_null(strstr(a->remark.p, "TAG or SQL92"));
	a = pull(f, "g", "n > 'x'", 0);
	assert_int_equal(a->code, RESP_SUBSCRIPTION_PARSE_FAILED);
	assert_non_null(strstr(a->remark.p, "character 5"));
	/* Its member is one all the same; what it pulls is refused. */
	heartbeat(f, "g", "SQL92", "n > 'x'", 1);
	a = pull(f, "g", NULL, 0);
	assert_int_equal(a->code, RESP_FILTER_DATA_NOT_EXIST);
	assert_non_null(strstr(a->remark.p, "character 5"));
	assert_null(filter_of(f, "g"));
	/* A newer one that is right. */
	heartbeat(f, "g", "SQL92", "n > 0", 2);
	assert_string_equal(asked_bodies(pull(f, "g", NULL, 0)), "m");
}

static void only_what_matches_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	send_with(f, "red1", "color", "red", "n", "1", NULL);
	send_with(f, "red9", "color", "red", "n", "9", NULL);
	send_with(f, "blue9", "color", "blue", "n", "9", NULL);
	send_with(f, "plain", NULL);
	send_with(f, "tagged", "TAGS", "A", "n", "5", NULL);
	heartbeat(f, "g", "SQL92", "color = 'red' AND n > 3", 1);
	a = pull(f, "g", NULL, 0);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(a), "red9");
	assert_int_equal(asked_i64(a, "nextBeginOffset"), 5);
	assert_int_equal(pull(f, "g", NULL, 5)->code, RESP_PULL_NOT_FOUND);
	a = pull(f, "g", NULL, 2);
	assert_int_equal(a->code, RESP_PULL_RETRY_IMMEDIATELY);
	assert_int_equal(asked_i64(a, "nextBeginOffset"), 5);
	assert_string_equal(asked_bodies(pull(f, "h", "color IS NULL", 0)), "plain tagged");
	assert_string_equal(asked_bodies(pull(f, "h", "TAGS IN ('A','B')", 0)), "tagged");
	assert_string_equal(asked_bodies(pull(f, "h", "UNIQ_KEY IS NOT NULL AND n BETWEEN 5 AND 9", 0)), "red9 blue9 tagged");
}

static void a_held_pull_wakes_for_a_match_alone(void **state)
{
	struct fixture *f = *state;
	struct hold *hold = broker_kit_broker(f->k)->hold;
	uint64_t *woken = &broker_kit_broker(f->k)->metrics.pulls_woken;
	struct asked *a;

	send_with(f, "first", "n", "1", NULL);
	heartbeat(f, "g", "SQL92", "n > 3", 1);
	a = pull_later(f, "g", NULL, 1, 20000);
	broker_kit_settle(f->k);
	assert_int_equal(hold_count(hold), 1);
	for (int i = 0; i < 10; i++)
		send_with(f, "low", "n", "2", NULL);
	send_with(f, "none", NULL);
	broker_kit_settle(f->k);
	assert_false(a->done);
	assert_int_equal(*woken, 0);
	send_with(f, "high", "n", "4", NULL);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(a), "high");
	assert_int_equal(asked_i64(a, "nextBeginOffset"), 13);
	asked_free(a);
}

static void a_filter_lives_and_dies_with_its_group(void **state)
{
	struct fixture *f = *state;
	struct broker *b = broker_kit_broker(f->k);
	const struct filter *filter;

	send_with(f, "m", "n", "1", NULL);
	heartbeat(f, "g", "SQL92", "n > 3", 7);
	filter = filter_of(f, "g");
	assert_non_null(filter);
	assert_string_equal(filter->expr, "n > 3");
	assert_int_equal(filter->version, 7);
	assert_int_equal(filter->dead_ms, 0);
	heartbeat(f, "g", "SQL92", "n > 4", 6);         /* older */
	assert_string_equal(filter_of(f, "g")->expr, "n > 3");
	heartbeat(f, "g", "SQL92", "n > 4", 8);
	assert_string_equal(filter_of(f, "g")->expr, "n > 4");
	heartbeat(f, "g", "TAG", "*", 9);
	assert_true(filter_of(f, "g")->dead_ms >= filter_of(f, "g")->born_ms);
	heartbeat(f, "g", "SQL92", "n > 4", 10);
	assert_int_equal(filter_of(f, "g")->dead_ms, 0);
	heartbeat(f, "tags", "TAG", "A", 1);
	assert_null(filter_of(f, "tags"));
	broker_kit_hang_up(f->k, f->c);
	broker_kit_settle(f->k);
	assert_true(filter_of(f, "g")->dead_ms > 0);
	/* Long enough dead it goes with the next save. */
	b->conf->filterDataCleanTimeSpan = 0;
	f->c = broker_kit_dial(f->k, false);
	heartbeat(f, "h", "SQL92", "n > 4", 1);
	broker_kit_settle(f->k);
	assert_null(filter_of(f, "g"));
	assert_non_null(filter_of(f, "h"));
}

static void the_peers_bits(void **state)
{
	struct bloom b = bloom_make(20, 32);
	int32_t at[BLOOM_HASHES_MAX];

	assert_int_equal(b.bits, 112);
	assert_int_equal(b.hashes, 3);
	bloom_positions(&b, MQ_STR("FeatFilterGroup#FeatFilter"), at);
	assert_int_equal(at[0], 16);
	assert_int_equal(at[1], 104);
	assert_int_equal(at[2], 31);
}

static const char file_text[] =
	"{\"filterDataByTopic\":{\"T\":{\"groupFilterData\":{\"old\":{\"bloomFilterData\":{\"bitNum\":112,\"bitPos\":[1,2,3]},"
	"\"bornTime\":1796056813560,\"clientVersion\":1796056814486,\"consumerGroup\":\"old\",\"dead\":false,\"deadTime\":0,"
	"\"expression\":\"color = 'red' AND n > 3\",\"expressionType\":\"SQL92\",\"topic\":\"T\"},\"none\":{}},\"topic\":\"T\"}}}";

static void the_file_is_the_peers(void **state)
{
	static const char *const props[] = { "enablePropertyFilter=true", "filterDataCleanTimeSpan=9000000000000", NULL };
	const char *path = tempdir_path(*state, "store/config/consumerFilter.json");
	struct fixture f = { 0 };
	const json_t *groups, *group, *bloom;
	json_t *json;
	char *text;
	struct mq_error e;

	assert_int_equal(sys_mkdir_all(tempdir_path(*state, "store/config")), 0);
	tempdir_write(path, file_text);
	f.k = broker_kit_start_in(*state, props, &e);
	assert_non_null(f.k);
	assert_string_equal(filter_of(&f, "old")->expr, "color = 'red' AND n > 3");
	assert_true(filter_of(&f, "old")->dead_ms > 0);
	assert_null(filter_of(&f, "none"));
	f.c = broker_kit_dial(f.k, false);
	f.producer = broker_kit_dial(f.k, false);
	send_with(&f, "m", NULL);
	heartbeat(&f, "new", "SQL92", "n > 3", 5);
	broker_kit_stop(f.k);
	text = tempdir_read(path);
	assert_non_null(text);
	json = json_parse(str_of(text), &e);
	free(text);
	groups = json_object_at(json_object_at(json_object_at(json, "filterDataByTopic"), "T"), "groupFilterData");
	assert_true(str_is(json_str(json_object_at(groups, "old"), "expression"), "color = 'red' AND n > 3"));
	group = json_object_at(groups, "new");
	assert_true(str_is(json_str(group, "expression"), "n > 3") && str_is(json_str(group, "expressionType"), "SQL92"));
	assert_true(str_is(json_str(group, "consumerGroup"), "new") && str_is(json_str(group, "topic"), "T"));
	assert_true(json_bool(group, "dead", false) && json_i64(group, "deadTime", 0) >= json_i64(group, "bornTime", 0));
	assert_int_equal(json_i64(group, "clientVersion", 0), 5);
	bloom = json_object_at(group, "bloomFilterData");
	assert_int_equal(json_i64(bloom, "bitNum", 0), 112);
	assert_int_equal(json_array_size(json_array_at(bloom, "bitPos")), 3);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_the_switch_it_is_refused, setup_off, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_expression_is_refused_with_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(only_what_matches_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(a_held_pull_wakes_for_a_match_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_filter_lives_and_dies_with_its_group, setup, teardown),
		cmocka_unit_test(the_peers_bits),
		cmocka_unit_test_setup_teardown(the_file_is_the_peers, tempdir_make, tempdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
