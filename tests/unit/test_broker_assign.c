/* test_broker_assign.c: QUERY_ASSIGNMENT over a cluster: queues of several brokers, as a name server tells of them, shared out among
 * several members. */
#include "broker_kit.h"
#include "fake.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/body_pop.h"
#include "codec/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

/* The broker under test, named b, asks `names`, which is also broker a of the route; x and y are further ones. */
struct fixture {
	struct broker_kit *k;
	struct conn *c;
	struct fake *names, *x, *y;
};

static bool knows_names(void *arg)
{
	return ((struct fixture *)arg)->names->count[REQ_REGISTER_BROKER] > 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	uv_loop_t *loop;

	f->k = broker_kit_start(NULL);
	loop = broker_kit_loop(f->k);
	f->c = broker_kit_dial(f->k, false);
	f->names = fake_start(loop, "a");
	f->x = fake_start(loop, "x");
	f->y = fake_start(loop, "y");
	f->names->more[f->names->nmore++] = f->y; /* no order that helps */
	f->names->more[f->names->nmore++] = f->x;
	broker_kit_set(f->k, "namesrvAddr", f->names->addr);
	broker_kit_set(f->k, "loadBalancePollNameServerInterval", "100");
	assert_true(fake_until(loop, knows_names, f, 10000));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	uv_loop_t *loop = broker_kit_loop(f->k);

	broker_kit_set(f->k, "namesrvAddr", "");
	fake_free(f->names);
	fake_free(f->x);
	fake_free(f->y);
	fake_run(loop, 1);
	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static void join(struct fixture *f, const char *ids)
{
	for (; *ids; ids++) {
		char id[2] = { *ids, 0 };

		assert_int_equal(kit_heartbeat(f->k, broker_kit_dial(f->k, false), id, "g", "T", "*")->code, RESP_SUCCESS);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a:0 a:1 x:0", sorted; "none": the answer has no list.  pop: what the mode of each has to be. */
static const char *share(struct fixture *f, const char *client, const char *strategy, const char *model, bool pop)
{
	static char text[4096];
	char body[400], *one[200];
	struct body_assignment a;
	struct asked *asked;
	struct mq_error e;
	size_t at = 0;

	snprintf(body, sizeof body, "{\"clientId\":\"%s\",\"consumerGroup\":\"g\",\"messageModel\":\"%s\",\"strategyName\":\"%s\","
		 "\"topic\":\"T\"}", client, model, strategy);
	asked = ask(f->k, f->c, REQ_QUERY_ASSIGNMENT, str_of(body), NULL);
	assert_int_equal(asked->code, RESP_SUCCESS);
	if (body_assignment_decode(buf_view(&asked->body), &a, &e) < 0)
		fail_msg("%s", e.text);
	text[0] = 0;
	if (!a.known)
		strcpy(text, "none");
	assert_true(a.n < 200);
	for (size_t i = 0; i < a.n; i++) {
		assert_true(str_is(a.queue[i].topic, "T"));
		one[i] = mem_printf(MQ_STR_FMT ":%d", MQ_STR_ARG(a.queue[i].broker), (int)a.queue[i].id);
	}
	if (a.n)
		assert_int_equal(a.pop, pop);
	qsort(one, a.n, sizeof *one, by_text);
	for (size_t i = 0; i < a.n; i++) {
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", one[i]);
		free(one[i]);
	}
	body_free(&a.keep);
	return text;
}

#define SHARE(f, client, strategy) share(f, client, strategy, "CLUSTERING", false)
#define POPS(f, client, strategy) share(f, client, strategy, "CLUSTERING", true)

static void set_mode(struct fixture *f, const char *shared)
{
	char body[200];

	snprintf(body, sizeof body, "{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":%s,\"topic\":\"T\"}", shared);
	assert_int_equal(ask(f->k, f->c, REQ_SET_MESSAGE_REQUEST_MODE, str_of(body), NULL)->code, RESP_SUCCESS);
}

static void queues_of_all_brokers_are_shared_out_evenly(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 4);
	fake_topic(f->x, "T", 2);
	fake_topic(f->y, "T", 1);
	join(f, "qrp"); /* sorted: p, q, r; queues by broker */
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1 a:2");
	assert_string_equal(SHARE(f, "q", "AVG"), "a:3 x:0");
	assert_string_equal(SHARE(f, "r", "AVG"), "x:1 y:0");
	assert_string_equal(SHARE(f, "p", "AVG_BY_CIRCLE"), "a:0 a:3 y:0");
	assert_string_equal(SHARE(f, "q", "AVG_BY_CIRCLE"), "a:1 x:0");
	assert_string_equal(SHARE(f, "r", "AVG_BY_CIRCLE"), "a:2 x:1");
	assert_string_equal(SHARE(f, "s", "AVG"), ""); /* not a member */
	assert_string_equal(SHARE(f, "p", "MACHINE_ROOM"), "none");
}

static void who_is_one_too_many_gets_nothing(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 1);
	fake_topic(f->y, "T", 1);
	join(f, "pqr");
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0");
	assert_string_equal(SHARE(f, "q", "AVG"), "y:0");
	assert_string_equal(SHARE(f, "r", "AVG"), "");
	assert_string_equal(SHARE(f, "r", "AVG_BY_CIRCLE"), "");
}

static void members_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct conn *second;

	fake_topic(f->names, "T", 2);
	fake_topic(f->x, "T", 2);
	join(f, "p");
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1 x:0 x:1");
	second = broker_kit_dial(f->k, false);
	assert_int_equal(kit_heartbeat(f->k, second, "q", "g", "T", "*")->code, RESP_SUCCESS);
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1");
	assert_string_equal(SHARE(f, "q", "AVG"), "x:0 x:1");
	broker_kit_hang_up(f->k, second);
	broker_kit_settle(f->k);
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1 x:0 x:1");
}

static void what_cannot_be_read_is_nobodys(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 2);
	fake_topic(f->x, "T", 2)->perm = 2; /* written only */
	fake_topic(f->y, "T", 2)->perm = 4; /* drained: read only */
	join(f, "p");
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1 y:0 y:1");
}

static void a_broadcast_reads_all(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(share(f, "p", "AVG", "BROADCASTING", false), "none"); /* there is no such topic */
	fake_topic(f->names, "T", 2);
	fake_topic(f->x, "T", 1);
	join(f, "pq");
	broker_kit_run(f->k, 150); /* the answer before is kept that long */
	assert_string_equal(share(f, "p", "AVG", "BROADCASTING", false), "a:0 a:1 x:0");
	assert_string_equal(share(f, "q", "none", "BROADCASTING", false), "a:0 a:1 x:0");
}

static void without_the_balancer_each_is_told_all(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 2);
	fake_topic(f->x, "T", 1);
	join(f, "pq");
	broker_kit_set(f->k, "serverLoadBalancerEnable", "false");
	assert_string_equal(SHARE(f, "p", "AVG"), "a:0 a:1 x:0");
	assert_string_equal(SHARE(f, "q", "none"), "a:0 a:1 x:0");
}

static void few_members_pop_each_broker(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 4);
	fake_topic(f->x, "T", 2);
	fake_topic(f->y, "T", 2)->perm = 2;
	join(f, "pqr");
	set_mode(f, "2"); /* no more than there are others */
	for (const char *const *s = (const char *const[]){ "AVG", "AVG_BY_CIRCLE", NULL }; *s; s++) {
		assert_string_equal(POPS(f, "p", *s), "a:-1 x:-1");
		assert_string_equal(POPS(f, "z", *s), "a:-1 x:-1"); /* compat: a stranger too */
	}
	assert_string_equal(POPS(f, "p", "none"), "none");
}

static void many_members_pop_the_shares_of_those_that_follow(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 4);
	fake_topic(f->x, "T", 3);
	fake_topic(f->y, "T", 1);
	join(f, "pqrs");
	set_mode(f, "1");
	assert_string_equal(POPS(f, "p", "AVG"), "a:0 a:1 a:2 a:3");
	assert_string_equal(POPS(f, "q", "AVG"), "a:2 a:3 x:0 x:1");
	assert_string_equal(POPS(f, "s", "AVG"), "a:0 a:1 x:2 y:0"); /* round the end */
	assert_string_equal(POPS(f, "s", "AVG_BY_CIRCLE"), "a:0 a:3 x:0 y:0");
	set_mode(f, "2");
	assert_string_equal(POPS(f, "r", "AVG"), "a:0 a:1 x:0 x:1 x:2 y:0");
}

static void more_members_than_queues_pop_one_each(void **state)
{
	struct fixture *f = *state;

	fake_topic(f->names, "T", 1);
	fake_topic(f->y, "T", 1);
	join(f, "pqrst");
	set_mode(f, "1");
	assert_string_equal(POPS(f, "p", "AVG"), "a:0");
	assert_string_equal(POPS(f, "q", "AVG"), "y:0");
	assert_string_equal(POPS(f, "r", "AVG"), "a:0");
	assert_string_equal(POPS(f, "s", "AVG_BY_CIRCLE"), "y:0");
	assert_string_equal(POPS(f, "t", "AVG"), "a:0");
	assert_string_equal(POPS(f, "z", "AVG"), "");
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(queues_of_all_brokers_are_shared_out_evenly), T(who_is_one_too_many_gets_nothing), T(members_come_and_go),
		T(what_cannot_be_read_is_nobodys), T(a_broadcast_reads_all), T(without_the_balancer_each_is_told_all),
		T(few_members_pop_each_broker), T(many_members_pop_the_shares_of_those_that_follow),
		T(more_members_than_queues_pop_one_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
