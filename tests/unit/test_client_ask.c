/* test_client_ask.c: raw requests, routes, and what brokers ask of us. */
#include "fake.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct world {
	uv_loop_t loop;
	struct fake *a;
	struct mqclient *c;
	struct mq_error e;
	int answers;
	int rc, code;
	char text[2000];
};

static const struct mq_str none = { 0 };

static void open_client(struct world *w, const char *addr)
{
	struct mqclient_opt opt = { .addr = addr, .loop = &w->loop, .timeout_ms = 500 };

	if (mqclient_open(&w->c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 4);
	open_client(w, w->a->addr);
	*state = w;
	return 0;
}

static int stop(void **state)
{
	struct world *w = *state;

	mqclient_free(w->c, 100);
	fake_free(w->a);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

static void on_answer(void *arg, const struct mqclient_answer *a)
{
	struct world *w = arg;

	w->answers++;
	w->rc = a->rc;
	w->code = a->code;
	snprintf(w->text, sizeof w->text, MQ_STR_FMT, a->rc < 0 ? (int)strlen(a->err.text) : (int)a->body.n,
	         a->rc < 0 ? a->err.text : a->body.p ? a->body.p : "");
}

static bool answered(void *arg)
{
	return ((struct world *)arg)->answers > 0;
}

static void an_answer_brings_code_fields_remark_and_body(void **state)
{
	struct world *w = *state;
	struct mqclient_field f[] = { { "topic", MQ_STR("t") }, { "queueId", MQ_STR("1") } };
	struct mqclient_answer a;

	w->a->topic[0].queue[1].max = 12345;
	assert_int_equal(mqclient_ask_wait(w->c, w->a->addr, REQ_GET_MAX_OFFSET, f, 2, none, 0, &a), 0);
	assert_int_equal(a.code, 0);
	assert_int_equal(a.nfields, 1);
	assert_string_equal(a.fields[0].name, "offset");
	assert_true(str_is(a.fields[0].value, "12345"));
	assert_int_equal(mqclient_ask_wait(w->c, NULL, 499, NULL, 0, MQ_STR("body"), 0, &a), 0);
	assert_int_equal(a.code, RESP_REQUEST_CODE_NOT_SUPPORTED);
	assert_true(str_is(a.remark, "request type not supported"));
	assert_true(str_is(fake_body(w->a, 499), "body"));
	f[0].value = MQ_STR("t");
	assert_int_equal(mqclient_ask_wait(w->c, NULL, REQ_GET_ROUTEINFO_BY_TOPIC, f, 1, none, 0, &a), 0);
	assert_non_null(memmem(a.body.p, a.body.n, "\"brokerName\":\"a\"", 16));
}

static void a_callback_comes_once_and_never_before_return(void **state)
{
	struct world *w = *state;

	assert_int_equal(mqclient_ask(w->c, w->a->addr, 499, NULL, 0, none, 0, on_answer, w), 0);
	assert_int_equal(w->answers, 0);
	assert_int_equal(mqclient_run(w->c, 0), 1);
	assert_true(fake_until(&w->loop, answered, w, 10000));
	fake_run(&w->loop, 30);
	assert_int_equal(w->answers, 1);
	assert_int_equal(mqclient_run(w->c, 0), 0);
}

static void a_closed_port_is_told_at_once(void **state)
{
	struct world *w = *state;
	struct mqclient_answer a;
	char addr[200];

	snprintf(addr, sizeof addr, "%s", w->a->addr);
	fake_stop(w->a);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mqclient_ask_wait(w->c, addr, 499, NULL, 0, none, 0, &a), UV_ECONNREFUSED);
		assert_non_null(strstr(a.err.text, addr));
	}
	fake_again(w->a);
	assert_int_equal(mqclient_ask_wait(w->c, addr, 499, NULL, 0, none, 0, &a), 0);
}

static void silence_is_a_time_out(void **state)
{
	struct world *w = *state;
	struct mqclient_answer a;

	fake_script(w->a, 499, 2, FAKE_SILENT, 0, NULL);
	assert_int_equal(mqclient_ask_wait(w->c, w->a->addr, 499, NULL, 0, none, 100, &a), MQ_ETIMEOUT);
	assert_int_equal(mqclient_ask_wait(w->c, NULL, 499, NULL, 0, none, 100, &a), MQ_ETIMEOUT);
	assert_non_null(strstr(a.err.text, w->a->addr));
}

static void a_name_that_nobody_has_is_told(void **state)
{
	struct world *w = *state;
	struct mqclient_answer a;

	assert_true(mqclient_ask_wait(w->c, "nosuch.invalid:1", 499, NULL, 0, none, 3000, &a) < 0);
	assert_non_null(strstr(a.err.text, "nosuch.invalid"));
	assert_int_equal(mqclient_ask_wait(w->c, "no port", 499, NULL, 0, none, 0, &a), MQ_EINVAL);
}

static void a_silent_name_server_among_two_does_not_take_the_whole_time(void **state)
{
	struct world *w = *state;
	struct fake *silent = fake_start(&w->loop, "x");
	struct mqclient_opt opt = { .loop = &w->loop };
	struct mqclient_answer a;
	char addr[500];

	snprintf(addr, sizeof addr, "%s;%s", silent->addr, w->a->addr);
	opt.addr = addr;
	fake_script(silent, 499, 1000, FAKE_SILENT, 0, NULL);
	for (int i = 0; i < 4; i++) {
		int64_t from = (int64_t)(uv_hrtime() / 1000000);
		mqclient_free(w->c, 0);
		assert_int_equal(mqclient_open(&w->c, &opt, &w->e), 0);
		assert_int_equal(mqclient_ask_wait(w->c, NULL, 499, NULL, 0, none, 0, &a), 0);
		assert_true((int64_t)(uv_hrtime() / 1000000) - from < 2500);
		/* Once found, the good one is asked first. */
		from = (int64_t)(uv_hrtime() / 1000000);
		assert_int_equal(mqclient_ask_wait(w->c, NULL, 499, NULL, 0, none, 0, &a), 0);
		assert_true((int64_t)(uv_hrtime() / 1000000) - from < 200);
	}
	fake_free(silent);
}

static void codes_beyond_16_bits_go_out_even_with_binary_headers(void **state)
{
	struct world *w = *state;
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .binary_header = true };
	struct mqclient_answer a;

	mqclient_free(w->c, 0);
	assert_int_equal(mqclient_open(&w->c, &opt, &w->e), 0);
	assert_int_equal(mqclient_ask_wait(w->c, NULL, 299999, NULL, 0, none, 0, &a), 0);
	assert_int_equal(a.code, RESP_REQUEST_CODE_NOT_SUPPORTED);
}

static void on_route(void *arg, int rc, const struct mq_error *err, struct mq_str text)
{
	struct world *w = arg;

	w->answers++;
	w->rc = rc;
	snprintf(w->text, sizeof w->text, MQ_STR_FMT, rc < 0 ? (int)strlen(err->text) : (int)text.n,
	         rc < 0 ? err->text : text.p);
}

static void a_route_is_strict_json(void **state)
{
	struct world *w = *state;
	json_t *j;

	assert_int_equal(mqclient_route(w->c, MQ_STR("t"), on_route, w), 0);
	assert_true(fake_until(&w->loop, answered, w, 10000));
	assert_int_equal(w->rc, 0);
	j = json_loads(w->text, 0, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(j, "queueDatas"), 0),
	                                                      "brokerName")), "a");
	json_decref(j);
	w->answers = 0;
	assert_int_equal(mqclient_route(w->c, MQ_STR("nowhere"), on_route, w), 0);
	assert_true(fake_until(&w->loop, answered, w, 10000));
	assert_int_equal(w->rc, MQ_ENOROUTE);
	assert_int_equal(mqclient_route(w->c, MQ_STR("a b"), on_route, w), MQ_EINVAL);
}

static void queues_are_listed(void **state)
{
	struct world *w = *state;
	struct mqclient_queue q[8];

	assert_int_equal(mqclient_queues_wait(w->c, MQ_STR("t"), false, q, 8, &w->e), 4);
	assert_string_equal(q[3].broker, "a");
	assert_int_equal(q[3].id, 3);
	assert_int_equal(mqclient_queues_wait(w->c, MQ_STR("t"), true, q, 2, &w->e), 4);
	assert_int_equal(mqclient_queues_wait(w->c, MQ_STR("nowhere"), false, q, 8, &w->e), MQ_ENOROUTE);
	w->a->topic[0].perm = 4;
	assert_int_equal(mqclient_queues_wait(w->c, MQ_STR("t"), true, q, 8, &w->e), 0);
}

static void name_servers_are_listed(void **state)
{
	struct world *w = *state;
	const char *const *ns = mqclient_nameservers(w->c);

	assert_string_equal(ns[0], w->a->addr);
	assert_null(ns[1]);
}

static void freeing_with_asks_under_way_tells_each_of_them(void **state)
{
	struct world *w = *state;

	fake_script(w->a, 499, 100, FAKE_SILENT, 0, NULL);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(mqclient_ask(w->c, w->a->addr, 499, NULL, 0, none, 0, on_answer, w), 0);
		assert_int_equal(mqclient_ask(w->c, NULL, 499, NULL, 0, none, 0, on_answer, w), 0);
		assert_int_equal(mqclient_ask(w->c, "127.0.0.1:1", 499, NULL, 0, none, 0, on_answer, w), 0);
	}
	mqclient_free(w->c, 0);
	open_client(w, w->a->addr);
	assert_int_equal(w->answers, 30);
}

static void a_store_directory_cannot_be_joined(void **state)
{
	struct mqclient_opt opt = { .addr = "store:/tmp" };
	struct mqclient *c;
	struct mq_error e;

	assert_int_equal(mqclient_open(&c, &opt, &e), MQ_EUNSUPPORTED);
	assert_null(c);
	opt.addr = "not an address";
	assert_int_equal(mqclient_open(&c, &opt, &e), MQ_EINVAL);
	assert_null(c);
}

static void the_client_may_own_its_loop(void **state)
{
	struct world *w = *state;
	struct mqclient_opt opt = { .addr = "127.0.0.1:1" };
	struct mqclient_answer a;
	struct mqclient *c;

	(void)w;
	assert_int_equal(mqclient_open(&c, &opt, &w->e), 0);
	assert_int_equal(mqclient_ask_wait(c, NULL, 499, NULL, 0, none, 0, &a), UV_ECONNREFUSED);
	mqclient_free(c, 100);
}

/* ---- Brokers ask ----------------------------------------------------------------------------------------------------- */

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	((struct world *)arg)->answers++;
}

static bool client_answered(void *arg)
{
	return ((struct world *)arg)->a->answers > 0;
}

static void ask_client(struct world *w, int code, const char *key, const char *group)
{
	w->a->answers = 0;
	fake_request_all(w->a, code, key, group, "");
	assert_true(fake_until(&w->loop, client_answered, w, 10000));
}

static void a_broker_may_ask_what_a_consumer_does(void **state)
{
	struct world *w = *state;
	struct mq_str topic = MQ_STR("t");
	struct mqclient_consume_opt opt = { .group = "g", .topics = &topic, .ntopics = 1, .start = MQCLIENT_BEGIN };
	struct mqclient_consume_ops ops = { .message = on_message };
	struct mqclient_consumer *k;
	json_t *j, *q;

	fake_put(w->a, "t", 2, "x", NULL);
	assert_int_equal(mqclient_consume(w->c, &k, &opt, &ops, w, &w->e), 0);
	assert_true(fake_until(&w->loop, answered, w, 10000));
	fake_run(&w->loop, 30);

	ask_client(w, REQ_GET_CONSUMER_RUNNING_INFO, "consumerGroup", "g");
	assert_int_equal(w->a->answer_code, 0);
	j = json_parse(buf_view(&w->a->answer_body), &w->e);
	assert_non_null(j);
	q = json_object_get(json_object_get(j, "mqTable"), "{\"brokerName\":\"a\",\"queueId\":2,\"topic\":\"t\"}");
	assert_non_null(q);
	assert_int_equal(json_i64(q, "cachedMsgCount", -1), 1); /* handed out, not settled */
	assert_int_equal(json_i64(q, "commitOffset", -1), 0);
	assert_true(str_is(json_str(json_object_get(j, "properties"), "PROP_CONSUME_TYPE"), "CONSUME_PASSIVELY"));
	assert_int_equal(json_array_size(json_object_get(j, "subscriptionSet")), 2);
	json_decref(j);

	ask_client(w, REQ_GET_CONSUMER_RUNNING_INFO, "consumerGroup", "other");
	assert_int_equal(w->a->answer_code, RESP_SYSTEM_ERROR);
	ask_client(w, REQ_CONSUME_MESSAGE_DIRECTLY, "consumerGroup", "g");
	assert_int_equal(w->a->answer_code, RESP_REQUEST_CODE_NOT_SUPPORTED);
	ask_client(w, REQ_GET_CONSUMER_STATUS_FROM_CLIENT, "group", "g");
	assert_int_equal(w->a->answer_code, 0);
	mqclient_consumer_free(k, 500, NULL);
}

static void a_trace_names_code_and_fields_of_each_frame(void **state)
{
	struct world *w = *state;
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .trace = true };
	struct mqclient_field f[] = { { "topic", MQ_STR("t") }, { "queueId", MQ_STR("1") } };
	struct mqclient_answer a;
	FILE *out = tmpfile();
	char text[4000];
	int was = dup(2);
	size_t n;

	mqclient_free(w->c, 0);
	assert_int_equal(mqclient_open(&w->c, &opt, &w->e), 0);
	fflush(stderr);
	dup2(fileno(out), 2);
	mqclient_ask_wait(w->c, NULL, REQ_GET_MAX_OFFSET, f, 2, none, 0, &a);
	fflush(stderr);
	dup2(was, 2);
	close(was);
	rewind(out);
	n = fread(text, 1, sizeof text - 1, out);
	text[n] = 0;
	fclose(out);
	assert_non_null(strstr(text, "> "));
	assert_non_null(strstr(text, "GET_MAX_OFFSET"));
	assert_non_null(strstr(text, "topic=t queueId=1\n"));
	assert_non_null(strstr(text, "answer to GET_MAX_OFFSET"));
	assert_non_null(strstr(text, "SUCCESS offset=0"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_brings_code_fields_remark_and_body),
		T(a_callback_comes_once_and_never_before_return),
		T(a_closed_port_is_told_at_once),
		T(silence_is_a_time_out),
		T(a_name_that_nobody_has_is_told),
		T(a_silent_name_server_among_two_does_not_take_the_whole_time),
		T(codes_beyond_16_bits_go_out_even_with_binary_headers),
		T(a_route_is_strict_json),
		T(queues_are_listed),
		T(name_servers_are_listed),
		T(freeing_with_asks_under_way_tells_each_of_them),
		T(a_store_directory_cannot_be_joined),
		T(the_client_may_own_its_loop),
		T(a_broker_may_ask_what_a_consumer_does),
		T(a_trace_names_code_and_fields_of_each_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
