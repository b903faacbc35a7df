/* test_client_pop.c: popping: what is lent is acked once, given back, renewed; what a broker does wrong, or not at all, loses nothing. */
#include "fake.h"
#include "base/str.h"
#include "codec/receipt.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GOT_MAX = 100, LONG_MS = 20000 };

struct world {
	uv_loop_t loop;
	struct fake *f;
	struct mqclient *c;
	struct mqclient_consumer *k;
	struct mq_error e, trouble;
	char body[GOT_MAX][16];
	struct mqclient_queue queue[GOT_MAX];
	int64_t off[GOT_MAX];
	int ngot, troubles, ended;
	bool settle, commit;            /* each message as it comes */
};

static void settle(struct world *w, int i, bool commit)
{
	mqclient_settle(w->k, MQ_STR("t"), &w->queue[i], w->off[i], commit);
}

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct world *w = arg;

	assert_true(w->ngot < GOT_MAX);
	snprintf(w->body[w->ngot], sizeof w->body[0], MQ_STR_FMT, MQ_STR_ARG(body));
	w->queue[w->ngot] = (struct mqclient_queue){ "a", q->id };
	w->off[w->ngot++] = m->queue_off;
	if (w->settle)
		settle(w, w->ngot - 1, w->commit);
}

static void on_trouble(void *arg, const struct mq_error *e, bool fatal)
{
	struct world *w = arg;

	w->troubles++;
	w->trouble = *e;
}

static void on_ended(void *arg)
{
	((struct world *)arg)->ended++;
}

static struct mqclient_consume_ops ops = { .message = on_message, .trouble = on_trouble, .ended = on_ended };

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct mqclient_opt opt = { .loop = &w->loop, .timeout_ms = 400 };

	*state = w;
	uv_loop_init(&w->loop);
	w->settle = w->commit = true;
	w->f = fake_start(&w->loop, "a");
	fake_topic(w->f, "t", 1);
	opt.addr = w->f->addr;
	return mqclient_open(&w->c, &opt, &w->e);
}

static int stop(void **state)
{
	struct world *w = *state;

	mqclient_free(w->c, 500);
	fake_free(w->f);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

static void put(struct world *w, int n)
{
	char body[16];

	for (int i = 0; i < n; i++) {
		snprintf(body, sizeof body, "m%d", i);
		fake_put(w->f, "t", 0, body, NULL);
	}
}

static void pop(struct world *w, int32_t ms, bool stop_at_end)
{
	static struct mq_str topic;
	struct mqclient_consume_opt opt = { .group = "g", .pop = true, .pop_ms = ms, .start = MQCLIENT_BEGIN, .topics = &topic, .ntopics = 1,
					    .stop_at_end = stop_at_end };

	topic = MQ_STR("t");
	if (mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static int wanted;
static bool got(void *arg) { return ((struct world *)arg)->ngot >= wanted; }
static bool told(void *arg) { return ((struct world *)arg)->f->nlent >= wanted; }
static bool troubled(void *arg) { return ((struct world *)arg)->troubles >= wanted; }
static bool ended(void *arg) { return ((struct world *)arg)->ended >= wanted; }

static void await(struct world *w, bool (*what)(void *), int n)
{
	wanted = n;
	if (!fake_until(&w->loop, what, w, LONG_MS))
		fail_msg("not so after %d ms: %d messages, %d words, %d troubles (%s)", LONG_MS, w->ngot, w->f->nlent, w->troubles,
			 w->trouble.text);
}

static int words(const struct world *w, int code, int64_t off)
{
	int n = 0;

	for (int i = 0; i < w->f->nlent; i++)
		n += w->f->lent[i].code == code && w->f->lent[i].off == off;
	return n;
}

/* ---------------------------------------------------------------------------------------------------------------------------- */

static void each_message_is_acked_once_with_its_handle(void **state)
{
	struct world *w = *state;
	struct receipt r;

	put(w, 5);
	pop(w, 60000, true);
	await(w, ended, 1);
	await(w, told, 5);
	fake_run(&w->loop, 100);
	assert_int_equal(w->ngot, 5);
	assert_int_equal(w->f->nlent, 5);
	assert_string_equal(w->body[4], "m4");
	for (int i = 0; i < 5; i++)
		assert_int_equal(words(w, REQ_ACK_MESSAGE, i), 1);
	assert_int_equal(receipt_parse(str_of(w->f->lent[0].handle), &r, NULL), 0);
	assert_int_equal(r.start, 0);
	assert_int_equal(r.revive_queue, 3);
	assert_int_equal(r.invisible_ms, 60000);
	assert_int_equal(w->troubles, 0);
}

static void what_is_not_committed_is_given_back_at_once(void **state)
{
	struct world *w = *state;

	w->commit = false;
	put(w, 1);
	pop(w, 60000, false);
	await(w, told, 1);
	assert_int_equal(w->f->lent[0].code, REQ_CHANGE_MESSAGE_INVISIBLETIME);
	assert_int_equal(w->f->lent[0].ms, 0);
}

static void an_ack_without_an_answer_is_sent_again(void **state)
{
	struct world *w = *state;

	fake_script(w->f, REQ_ACK_MESSAGE, 1, FAKE_SILENT, 0, NULL);
	fake_script(w->f, REQ_ACK_MESSAGE, 1, FAKE_HANG_UP, 0, NULL);
	put(w, 1);
	pop(w, 60000, false);
	await(w, told, 1);
	assert_int_equal(w->f->lent[0].code, REQ_ACK_MESSAGE);
	fake_run(&w->loop, 1200);
	assert_int_equal(w->f->nlent, 1);
	assert_int_equal(w->ngot, 1);
}

static void an_ack_that_is_refused_came_too_late_and_is_told(void **state)
{
	struct world *w = *state;

	fake_script(w->f, REQ_ACK_MESSAGE, 1, FAKE_ANSWER, RESP_NO_MESSAGE, "gone");
	put(w, 1);
	pop(w, 60000, false);
	await(w, troubled, 1);
	assert_non_null(strstr(w->trouble.text, "its time was over"));
	fake_run(&w->loop, 1200);
	assert_int_equal(w->f->nlent, 0);
	assert_int_equal(w->troubles, 1);
}

static void what_is_held_for_long_is_renewed_and_acked_with_the_new_handle(void **state)
{
	struct world *w = *state;
	struct receipt r;

	w->settle = false;
	put(w, 1);
	pop(w, 2000, false);
	await(w, told, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->f->lent[i].code, REQ_CHANGE_MESSAGE_INVISIBLETIME);
		assert_int_equal(w->f->lent[i].ms, 2000);
	}
	fake_run(&w->loop, 50);
	settle(w, 0, true);
	wanted = w->f->nlent + 1;
	await(w, told, wanted);
	assert_int_equal(w->f->lent[w->f->nlent - 1].code, REQ_ACK_MESSAGE);
	assert_int_equal(receipt_parse(str_of(w->f->lent[w->f->nlent - 1].handle), &r, NULL), 0);
	assert_int_equal(r.revive_queue, 4);
	assert_true(r.pop_ms > 1700000);
}

static void an_answer_without_handles_is_told_and_what_follows_is_taken(void **state)
{
	struct world *w = *state;

	w->f->no_handles = true;
	put(w, 1);
	pop(w, 60000, false);
	await(w, troubled, 1);
	assert_non_null(strstr(w->trouble.text, "lacks the handle"));
	assert_int_equal(w->ngot, 0);
	w->f->no_handles = false;
	fake_put(w->f, "t", 0, "next", NULL);
	await(w, got, 1);
	assert_string_equal(w->body[0], "next");
	await(w, told, 1);
}

static void while_paused_nothing_is_handed_out_and_what_came_is_kept(void **state)
{
	struct world *w = *state;

	w->f->delay_ms[fake_at(REQ_POP_MESSAGE)] = 100;
	put(w, 3);
	pop(w, 60000, false);
	fake_until(&w->loop, told, w, 50);
	mqclient_pause(w->k, true);
	fake_run(&w->loop, 400);
	assert_int_equal(w->ngot, 0);
	mqclient_pause(w->k, false);
	await(w, got, 3);
	await(w, told, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(words(w, REQ_ACK_MESSAGE, i), 1);
}

static void a_broker_that_refuses_or_is_away_is_asked_again(void **state)
{
	struct world *w = *state;

	fake_script(w->f, REQ_POP_MESSAGE, 1, FAKE_ANSWER, RESP_SYSTEM_ERROR, "not now");
	fake_script(w->f, REQ_POP_MESSAGE, 1, FAKE_HANG_UP, 0, NULL);
	put(w, 1);
	pop(w, 60000, false);
	await(w, got, 1);
	await(w, told, 1);
	fake_stop(w->f);
	fake_run(&w->loop, 300);
	fake_again(w->f);
	fake_put(w->f, "t", 0, "later", NULL);
	await(w, got, 2);
	assert_string_equal(w->body[1], "later");
	await(w, told, 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		T(each_message_is_acked_once_with_its_handle), T(what_is_not_committed_is_given_back_at_once),
		T(an_ack_without_an_answer_is_sent_again), T(an_ack_that_is_refused_came_too_late_and_is_told),
		T(what_is_held_for_long_is_renewed_and_acked_with_the_new_handle),
		T(an_answer_without_handles_is_told_and_what_follows_is_taken),
		T(while_paused_nothing_is_handed_out_and_what_came_is_kept), T(a_broker_that_refuses_or_is_away_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
