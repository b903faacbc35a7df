/* test_broker_register.c: a broker and name servers on one loop: what is answered is known to them. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/str.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/topic_table.h"
#include "../../bin/namesrv/namesrv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

struct server {
	struct namesrv *ns;
	struct namesrv_conf conf;
	struct conf *rows;
	char addr[32];
	bool stopped;
};

struct fixture {
	struct broker_kit *k;
	struct broker *b;
	struct conn *c, *to_ns;
	struct server one;
};

static void on_stopped(void *arg)
{
	((struct server *)arg)->stopped = true;
}

static void server_start(struct fixture *f, struct server *s, int port)
{
	struct namesrv_opt opt = { .conf = &s->conf };
	struct mq_error e;
	char text[32];

	s->rows = namesrv_conf_new(&s->conf);
	s->stopped = false;
	snprintf(text, sizeof text, "listenPort=%d", port);
	assert_int_equal(conf_arg(s->rows, text, &e), 0);
	assert_int_equal(conf_arg(s->rows, "bindAddress=127.0.0.1", &e), 0);
	s->ns = namesrv_new(broker_kit_loop(f->k), &opt, &e);
	assert_non_null(s->ns);
	assert_int_equal(namesrv_listen(s->ns, &e), 0);
	snprintf(s->addr, sizeof s->addr, "127.0.0.1:%d", namesrv_port(s->ns));
}

static void server_stop_it(struct fixture *f, struct server *s)
{
	namesrv_stop(s->ns, 0, on_stopped, s);
	while (!s->stopped)
		uv_run(broker_kit_loop(f->k), UV_RUN_ONCE);
	conf_free(s->rows);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(NULL);
	f->b = broker_kit_broker(f->k);
	f->c = broker_kit_dial(f->k, false);
	server_start(f, &f->one, 0);
	broker_kit_set(f->k, "namesrvAddr", f->one.addr);
	f->to_ns = broker_kit_dial_to(f->k, f->one.addr);
	broker_kit_run(f->k, 100);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (!f->one.stopped)
		server_stop_it(f, &f->one);
	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static struct asked *route(struct fixture *f, const char *topic)
{
	return ask(f->k, f->to_ns, REQ_GET_ROUTEINFO_BY_TOPIC, NONE, "topic", topic, NULL);
}

static bool contains(const struct buf *b, const char *text)
{
	return b->n && memmem(b->p, b->n, text, strlen(text));
}

static struct asked *make(struct fixture *f, const char *topic)
{
	return ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC, NONE, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", "2",
		   "writeQueueNums", "2", "perm", "6", "topicFilterType", "SINGLE_TAG", "order", "false", NULL);
}

static void it_registers_all_topics_at_once(void **state)
{
	struct fixture *f = *state;
	struct asked *a = route(f, "TBW102");

	assert_int_equal(a->code, RESP_SUCCESS);
	assert_true(contains(&a->body, "\"perm\":7"));
	assert_int_equal(route(f, "b")->code, RESP_SUCCESS);
	assert_int_equal(f->b->metrics.registrations, 1);
}

/* Clients ask for the route with their next breath. */
static void a_topic_that_was_answered_has_its_route(void **state)
{
	struct fixture *f = *state;
	char name[16];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "Made%d", i);
		assert_int_equal(make(f, name)->code, RESP_SUCCESS);
		assert_int_equal(route(f, name)->code, RESP_SUCCESS);
		snprintf(name, sizeof name, "Sent%d", i);
		assert_int_equal(kit_send(f->k, f->c, name, 0, "x", NULL)->code, RESP_SUCCESS);
		assert_int_equal(route(f, name)->code, RESP_SUCCESS);
	}
	kit_heartbeat(f->k, f->c, "me", "g", "Made0", "*");
	broker_kit_settle(f->k);
	assert_int_equal(route(f, "%RETRY%g")->code, RESP_SUCCESS);
}

static void a_deleted_topic_has_none(void **state)
{
	struct fixture *f = *state;

	make(f, "T");
	assert_int_equal(ask(f->k, f->c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	assert_int_equal(route(f, "T")->code, RESP_TOPIC_NOT_EXIST);
	make(f, "U");
	assert_int_equal(route(f, "T")->code, RESP_TOPIC_NOT_EXIST);
}

static void the_broker_as_a_whole_can_be_made_read_only(void **state)
{
	struct fixture *f = *state;

	make(f, "T");
	broker_kit_set(f->k, "brokerPermission", "4");
	broker_kit_run(f->k, 100);
	assert_true(contains(&route(f, "T")->body, "\"perm\":4"));
	broker_kit_set(f->k, "brokerPermission", "6");
	broker_kit_run(f->k, 100);
	assert_true(contains(&route(f, "T")->body, "\"perm\":6"));
}

static void the_name_server_says_which_topics_are_in_order(void **state)
{
	struct fixture *f = *state;

	make(f, "T");
	make(f, "U");
	ask(f->k, f->to_ns, REQ_PUT_KV_CONFIG, NONE, "namespace", "ORDER_TOPIC_CONFIG", "key", "T", "value", "b:2", NULL);
	make(f, "V"); /* registers again */
	broker_kit_settle(f->k);
	assert_true(topic_table_find(f->b->topics, MQ_STR("T"))->conf.order);
	assert_false(topic_table_find(f->b->topics, MQ_STR("U"))->conf.order);
}

/* Whoever sends waits for no name server that is not there. */
static void a_dead_name_server_delays_nobody(void **state)
{
	struct fixture *f = *state;
	char list[64];
	int64_t t;

	snprintf(list, sizeof list, "127.0.0.1:1;%s", f->one.addr);
	broker_kit_set(f->k, "namesrvAddr", list);
	broker_kit_run(f->k, 100);
	t = clock_mono_us();
	assert_int_equal(make(f, "T")->code, RESP_SUCCESS);
	assert_int_equal(kit_send(f->k, f->c, "New", 0, "x", NULL)->code, RESP_SUCCESS);
	assert_true(clock_mono_us() - t < 10000000);
	assert_int_equal(route(f, "T")->code, RESP_SUCCESS);
	assert_int_equal(route(f, "New")->code, RESP_SUCCESS);
}

static void a_name_server_that_comes_back_is_told(void **state)
{
	struct fixture *f = *state;
	int port = namesrv_port(f->one.ns);

	server_stop_it(f, &f->one);
	assert_int_equal(make(f, "T")->code, RESP_SUCCESS);
	server_start(f, &f->one, port);
	broker_kit_run(f->k, 1500);
	f->to_ns = broker_kit_dial_to(f->k, f->one.addr);
	assert_int_equal(route(f, "T")->code, RESP_SUCCESS);
}

static void another_name_server_takes_over_from_the_list(void **state)
{
	struct fixture *f = *state;
	struct server two;

	server_start(f, &two, 0);
	broker_kit_set(f->k, "namesrvAddr", two.addr);
	broker_kit_run(f->k, 200);
	assert_int_equal(route(f, "TBW102")->code, RESP_TOPIC_NOT_EXIST); /* the connection ended: it is gone there */
	f->to_ns = broker_kit_dial_to(f->k, two.addr);
	assert_int_equal(route(f, "TBW102")->code, RESP_SUCCESS);
	server_stop_it(f, &two);
}

/* Plain, the body would go beyond a frame: it travels compressed. */
static void a_very_large_table_is_registered(void **state)
{
	struct fixture *f = *state;
	char name[64];

	for (int i = 0; i < 40000; i++) {
		snprintf(name, sizeof name, "a_topic_with_a_long_name_so_that_the_table_grows_%d", i);
		topic_table_need(f->b->topics, str_of(name), 1);
	}
	broker_kit_run(f->k, 1500);
	assert_int_equal(make(f, "Last")->code, RESP_SUCCESS);
	assert_int_equal(route(f, "Last")->code, RESP_SUCCESS);
	assert_int_equal(route(f, "a_topic_with_a_long_name_so_that_the_table_grows_12345")->code, RESP_SUCCESS);
}

/* It was started with a clock of many years ahead, which is then put right: topics and their routes still follow, and nothing is
 * taken for old. */
static void a_clock_that_was_ahead_at_the_start_and_is_set_back(void **state)
{
	const int64_t years = (int64_t)24 * 365 * 86400 * 1000;
	struct fixture *f;
	struct mq_error e;
	void *ahead;

	clock_shift_wall(years);
	setup(&ahead);
	f = ahead;
	assert_int_equal(make(f, "Ahead")->code, RESP_SUCCESS);
	assert_int_equal(kit_send(f->k, f->c, "Ahead", 0, "x", NULL)->code, RESP_SUCCESS);
	clock_shift_wall(-years);
	assert_int_equal(make(f, "Today")->code, RESP_SUCCESS);
	assert_int_equal(route(f, "Today")->code, RESP_SUCCESS);
	assert_int_equal(kit_send(f->k, f->c, "Today", 0, "y", NULL)->code, RESP_SUCCESS);
	assert_int_equal(mqstore_trim(f->b->store, clock_wall_ms(), false, &e), 0);
	assert_int_equal(mqstore_queue_min(mqstore_queue(f->b->store, MQ_STR("Ahead"), 0, false)), 0);
	assert_int_equal(mqstore_queue_max(mqstore_queue(f->b->store, MQ_STR("Today"), 0, false)), 1);
	/* A name server that has never heard of it learns everything with today's clock. */
	server_stop_it(f, &f->one);
	server_start(f, &f->one, 0);
	broker_kit_set(f->k, "namesrvAddr", f->one.addr);
	f->to_ns = broker_kit_dial_to(f->k, f->one.addr);
	broker_kit_run(f->k, 300);
	assert_int_equal(route(f, "Ahead")->code, RESP_SUCCESS);
	teardown(&ahead);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_was_ahead_at_the_start_and_is_set_back),
		T(it_registers_all_topics_at_once),
		T(a_topic_that_was_answered_has_its_route),
		T(a_deleted_topic_has_none),
		T(the_broker_as_a_whole_can_be_made_read_only),
		T(the_name_server_says_which_topics_are_in_order),
		T(a_dead_name_server_delays_nobody),
		T(a_name_server_that_comes_back_is_told),
		T(another_name_server_takes_over_from_the_list),
		T(a_very_large_table_is_registered),
	};

	return cmocka_run_group_tests_name("broker_register", tests, NULL, NULL);
}
