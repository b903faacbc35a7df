/* test_client_pop.c: a consumer that pops, against a broker whose answers come late, not at all, wrong, or with the connection gone. */
#include "fake.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/message.h"
#include "codec/property.h"
#include "codec/receipt.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GOT_MAX = 400, ACK = REQ_ACK_MESSAGE, CHANGE = REQ_CHANGE_MESSAGE_INVISIBLETIME, POP = REQ_POP_MESSAGE };

struct got {
	char topic[64], body[64], retry_topic[64];
	int queue;
	int64_t off, log_off;
};

struct world {
	uv_loop_t loop;
	struct fake *a;
	struct mqclient *c;
	struct mqclient_consumer *k;
	struct mq_error e;
	struct got got[GOT_MAX];
	int ngot, ended, troubles, fatal;
	bool settle, commit;        /* each as it comes */
	int pause_at;
	struct mq_error trouble;
	int back, back_rc;          /* answers to what was sent back */
};

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct world *w = arg;
	struct got *g = &w->got[w->ngot];

	assert_true(w->ngot < GOT_MAX);
	assert_string_equal(q->broker, "a");
	snprintf(g->topic, sizeof g->topic, MQ_STR_FMT, MQ_STR_ARG(m->topic));
	snprintf(g->body, sizeof g->body, MQ_STR_FMT, MQ_STR_ARG(body));
	snprintf(g->retry_topic, sizeof g->retry_topic, MQ_STR_FMT, MQ_STR_ARG(mq_prop_get(m->props, PROP_RETRY_TOPIC)));
	g->queue = q->id;
	g->off = m->queue_off;
	g->log_off = m->log_off;
	w->ngot++;
	if (w->settle)
		mqclient_settle(w->k, m->topic, q, m->queue_off, w->commit);
	if (w->pause_at && w->ngot == w->pause_at)
		mqclient_pause(w->k, true);
}

static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
}

static void on_ended(void *arg)
{
	((struct world *)arg)->ended++;
}

static void on_trouble(void *arg, const struct mq_error *e, bool fatal)
{
	struct world *w = arg;

	w->troubles++;
	w->fatal += fatal;
	w->trouble = *e;
}

static const struct mqclient_consume_ops ops = {
	.message = on_message, .assigned = on_assigned, .ended = on_ended, .trouble = on_trouble,
};

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 2);
	*state = w;
	return 0;
}

static int stop(void **state)
{
	struct world *w = *state;

	mqclient_free(w->c, 300);
	fake_free(w->a);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

/* timeout_ms of requests; pop_ms: 0 = a minute. */
static void consume(struct world *w, int timeout_ms, struct mqclient_consume_opt *more)
{
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .timeout_ms = timeout_ms };
	struct mqclient_consume_opt o = more ? *more : (struct mqclient_consume_opt){ 0 };
	struct mq_str topic = MQ_STR("t");

	o.group = "g";
	o.pop = true;
	o.topics = &topic;
	o.ntopics = 1;
	if (mqclient_open(&w->c, &opt, &w->e) < 0 || mqclient_consume(w->c, &w->k, &o, &ops, w, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static void put(struct world *w, int queue, int n)
{
	char body[32];

	for (int i = 0; i < n; i++) {
		snprintf(body, sizeof body, "%d-%d", queue, (int)w->a->topic[0].queue[queue].max);
		fake_put(w->a, "t", queue, body, NULL);
	}
}

/* The place in got[]. */
static void settle(struct world *w, int i, bool commit)
{
	struct mqclient_queue q = { "a", w->got[i].queue };

	mqclient_settle(w->k, str_of(w->got[i].topic), &q, w->got[i].off, commit);
}

/* ---- Waiting: for a number to be reached ---------------------------------------------------------------------------- */

static const int *what;
static int wanted;

static bool reached(void *arg)
{
	return *what >= wanted;
}

static void wait_for(struct world *w, const int *n, int least)
{
	what = n;
	wanted = least;
	if (!fake_until(&w->loop, reached, NULL, 20000))
		fail_msg("%d instead of %d; %d messages came; last trouble: %s", *n, least, w->ngot, w->trouble.text);
}

static void wait_got(struct world *w, int n)
{
	wait_for(w, &w->ngot, n);
	fake_run(&w->loop, 20);
	assert_int_equal(w->ngot, n);
}

static const int *count(struct world *w, int code)
{
	return &w->a->count[fake_slot(code)];
}

static void wait_count(struct world *w, int code, int n)
{
	wait_for(w, count(w, code), n);
	fake_run(&w->loop, 5);
}

static bool lends_as_wanted(void *arg)
{
	return strcmp(fake_lent(((struct world *)arg)->a, false), (const char *)(const void *)what) == 0;
}

/* Until what is lent are these offsets. */
static void wait_lent(struct world *w, const char *offsets)
{
	what = (const int *)(const void *)offsets;
	if (!fake_until(&w->loop, lends_as_wanted, w, 20000))
		fail_msg("lent: '%s' instead of '%s'", fake_lent(w->a, false), offsets);
}

/* ---- What goes right -------------------------------------------------------------------------------------------------- */

static void what_is_settled_is_acked_under_its_handle(void **state)
{
	struct world *w = *state;

	put(w, 1, 3);
	consume(w, 0, NULL);
	wait_got(w, 3);
	assert_string_equal(w->got[2].body, "1-2");
	assert_string_equal(fake_field(w->a, POP, "queueId"), "-1");
	assert_string_equal(fake_field(w->a, POP, "invisibleTime"), "60000");
	assert_string_equal(fake_field(w->a, POP, "consumerGroup"), "g");
	settle(w, 2, true);
	wait_lent(w, "0 1");
	assert_string_equal(fake_field(w->a, ACK, "topic"), "t");
	assert_string_equal(fake_field(w->a, ACK, "queueId"), "1");
	assert_string_equal(fake_field(w->a, ACK, "offset"), "2");
	assert_string_equal(fake_field(w->a, ACK, "extraInfo"), "0 1700000000000 60000 1 0 a 1 2");
	settle(w, 2, true); /* a second time: nothing */
	settle(w, 0, true);
	settle(w, 1, true);
	wait_lent(w, "");
	assert_int_equal(*count(w, ACK), 3);
	assert_int_equal(w->troubles, 0);
}

static void what_is_not_done_comes_again_at_once(void **state)
{
	struct world *w = *state;

	put(w, 0, 2);
	consume(w, 0, NULL);
	wait_got(w, 2);
	settle(w, 0, false);
	wait_got(w, 3);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "0");
	assert_string_equal(w->got[2].body, "0-0");
	settle(w, 2, true);
	settle(w, 1, true);
	wait_lent(w, "");
}

static void the_window_is_for_all_queues_together(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .window = 5 };

	put(w, 0, 4);
	put(w, 1, 4);
	consume(w, 0, &opt);
	wait_got(w, 5);
	settle(w, 0, true);
	settle(w, 1, true);
	wait_got(w, 7);
	for (int i = 2; i < 7; i++)
		settle(w, i, true);
	wait_got(w, 8);
	settle(w, 7, true);
	wait_lent(w, "");
}

static void what_comes_while_paused_is_handed_out_later(void **state)
{
	struct world *w = *state;

	w->pause_at = 2;
	put(w, 0, 5);
	consume(w, 0, NULL);
	wait_got(w, 2);
	put(w, 1, 1);
	fake_run(&w->loop, 30);
	assert_int_equal(w->ngot, 2);
	mqclient_pause(w->k, false);
	wait_got(w, 6);
	for (int i = 0; i < 6; i++)
		settle(w, i, true);
	wait_lent(w, "");
}

static void who_ends_gives_back_what_it_has(void **state)
{
	struct world *w = *state;

	w->pause_at = 2; /* the third is held, not handed out */
	put(w, 0, 3);
	consume(w, 0, NULL);
	wait_got(w, 2);
	settle(w, 0, true);
	assert_int_equal(mqclient_consumer_free(w->k, 10000, &w->e), 0);
	assert_string_equal(fake_lent(w->a, false), "1 2");
	assert_string_equal(fake_lent(w->a, true), "1 2");
	assert_int_equal(*count(w, ACK), 1);
}

static void looking_ends_when_all_was_there(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .stop_at_end = true };

	w->settle = w->commit = true;
	put(w, 0, 3);
	put(w, 1, 40);
	consume(w, 0, &opt);
	wait_for(w, &w->ended, 1);
	assert_int_equal(w->ngot, 43);
	assert_string_equal(fake_field(w->a, POP, "pollTime"), "0");
}

/* ---- Acks -------------------------------------------------------------------------------------------------------------- */

static void an_ack_without_an_answer_is_sent_again(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 100, NULL);
	wait_got(w, 1);
	fake_script(w->a, ACK, 2, FAKE_SILENT, 0, NULL);
	settle(w, 0, true);
	wait_lent(w, "");
	assert_int_equal(*count(w, ACK), 3);
	fake_run(&w->loop, 700);
	assert_int_equal(*count(w, ACK), 3); /* no further one */
	assert_int_equal(w->troubles, 0);
}

/* Done, but we do not hear of it: the second is refused, and that cannot be told from a message whose time was over. */
static void an_ack_whose_answer_is_lost_is_told_as_too_late(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 100, NULL);
	wait_got(w, 1);
	w->a->delay_ms[fake_slot(ACK)] = 400;
	settle(w, 0, true);
	wait_count(w, ACK, 1);
	w->a->delay_ms[fake_slot(ACK)] = 0;
	wait_for(w, &w->troubles, 1);
	assert_int_equal(w->trouble.code, MQ_ETIMEOUT);
	assert_string_equal(fake_lent(w->a, false), "");
	put(w, 0, 1);
	wait_got(w, 2);
	settle(w, 1, true);
	wait_lent(w, "");
	assert_int_equal(w->troubles, 1);
}

static void a_refused_ack_is_told_once_and_not_sent_again(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_got(w, 1);
	fake_pop_again(w->a, "t", 0, 0); /* its time is over, as the broker sees it */
	wait_got(w, 2);
	settle(w, 1, true);
	wait_lent(w, "");
	put(w, 0, 1);
	wait_got(w, 3);
	fake_script(w->a, ACK, 1, FAKE_ANSWER, RESP_MESSAGE_ILLEGAL, "no");
	settle(w, 2, true);
	wait_for(w, &w->troubles, 1);
	assert_non_null(strstr(w->trouble.text, "offset 1"));
	fake_run(&w->loop, 700);
	assert_int_equal(*count(w, ACK), 2);
	assert_int_equal(w->fatal, 0);
}

static void an_ack_outlives_its_connection(void **state)
{
	struct world *w = *state;

	put(w, 0, 2);
	consume(w, 0, NULL);
	wait_got(w, 2);
	fake_script(w->a, ACK, 1, FAKE_HANG_UP, 0, NULL);
	settle(w, 0, true);
	wait_lent(w, "1");
	settle(w, 1, true);
	wait_lent(w, "");
	put(w, 1, 1); /* and it pops on */
	wait_got(w, 3);
}

static void an_ack_waits_for_a_broker_that_is_away(void **state)
{
	struct world *w = *state;

	put(w, 0, 2);
	consume(w, 300, NULL);
	wait_got(w, 2);
	fake_stop(w->a);
	settle(w, 0, true);
	fake_run(&w->loop, 700);
	fake_again(w->a);
	wait_lent(w, "1");
	put(w, 0, 1);
	wait_got(w, 3);
	assert_string_equal(w->got[2].body, "0-2");
}

static void answers_that_come_twice_count_once(void **state)
{
	struct world *w = *state;

	put(w, 0, 2);
	fake_script(w->a, POP, 1, FAKE_TWICE, 0, NULL);
	consume(w, 0, NULL);
	wait_for(w, &w->ngot, 2);
	fake_script(w->a, ACK, 2, FAKE_TWICE, 0, NULL);
	for (int i = 0; i < 2; i++)
		settle(w, i, true);
	wait_count(w, ACK, 2);
	put(w, 0, 1);
	wait_for(w, &w->ngot, 3);
	assert_string_equal(w->got[2].body, "0-2");
}

static void the_end_waits_for_acks_that_are_under_way(void **state)
{
	struct world *w = *state;

	w->settle = w->commit = true;
	put(w, 0, 3);
	w->a->delay_ms[fake_slot(ACK)] = 150;
	consume(w, 10000, NULL);
	wait_got(w, 3);
	assert_int_equal(mqclient_consumer_free(w->k, 10000, &w->e), 0);
	assert_string_equal(fake_lent(w->a, false), "");
}

static void an_end_that_cannot_ack_says_so(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 100, NULL);
	wait_got(w, 1);
	fake_script(w->a, ACK, 1000, FAKE_SILENT, 0, NULL);
	settle(w, 0, true);
	assert_true(mqclient_consumer_free(w->k, 300, &w->e) < 0);
	assert_non_null(strstr(w->e.text, "acks"));
}

/* ---- Renewals ---------------------------------------------------------------------------------------------------------- */

static void what_takes_long_is_renewed_and_acked_under_the_new_handle(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	put(w, 0, 1);
	consume(w, 0, &opt);
	wait_got(w, 1);
	wait_count(w, CHANGE, 3);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "1000");
	settle(w, 0, true);
	wait_lent(w, "");
	assert_non_null(strstr(fake_field(w->a, ACK, "extraInfo"), " 1000 2 0 a 0 0")); /* the time and the queue of the renewal */
	assert_int_equal(w->ngot, 1);
	assert_int_equal(w->troubles, 0);
}

static void a_renewal_that_is_refused_ends_them(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	put(w, 0, 1);
	consume(w, 0, &opt);
	wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_ANSWER, RESP_NO_MESSAGE, "too late");
	wait_count(w, CHANGE, 1);
	fake_run(&w->loop, 1300);
	assert_int_equal(*count(w, CHANGE), 1);
	fake_pop_again(w->a, "t", 0, 0);
	wait_got(w, 2); /* again, under a handle that counts */
	settle(w, 1, true);
	wait_lent(w, "");
}

static void a_lost_renewal_is_asked_again(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 4000 };

	put(w, 0, 1);
	consume(w, 100, &opt);
	wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_SILENT, 0, NULL);
	fake_script(w->a, CHANGE, 1, FAKE_HANG_UP, 0, NULL);
	wait_count(w, CHANGE, 3);
	settle(w, 0, true);
	wait_lent(w, "");
	assert_int_equal(w->ngot, 1);
}

static void a_renewal_that_says_nothing_leaves_the_handle(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };
	char before[200];

	put(w, 0, 1);
	consume(w, 0, &opt);
	wait_got(w, 1);
	fake_script(w->a, CHANGE, 2, FAKE_ANSWER, RESP_SUCCESS, "without its fields");
	wait_count(w, CHANGE, 1);
	snprintf(before, sizeof before, "%s", fake_field(w->a, CHANGE, "extraInfo"));
	wait_count(w, CHANGE, 2);
	assert_string_equal(fake_field(w->a, CHANGE, "extraInfo"), before);
	settle(w, 0, true);
	wait_lent(w, "");
}

/* Settled while a renewal is under way: the ack waits for the new handle. */
static void an_ack_waits_for_a_renewal(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	put(w, 0, 2);
	consume(w, 10000, &opt);
	wait_got(w, 2);
	w->a->delay_ms[fake_slot(CHANGE)] = 200;
	wait_count(w, CHANGE, 2);
	settle(w, 0, true);
	settle(w, 1, false);
	w->a->delay_ms[fake_slot(CHANGE)] = 0;
	wait_got(w, 3);
	assert_int_equal(*count(w, ACK), 1);
	assert_string_equal(w->got[2].body, "0-1");
	settle(w, 2, true);
	wait_lent(w, "");
	assert_int_equal(w->troubles, 0);
}

static void when_the_time_is_over_the_message_comes_again_and_the_old_one_is_forgotten(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .pop_ms = 1000 };

	put(w, 0, 1);
	consume(w, 100, &opt);
	wait_got(w, 1);
	fake_script(w->a, ACK, 1000, FAKE_SILENT, 0, NULL);
	settle(w, 0, true);
	wait_for(w, &w->troubles, 1); /* no answer until it was over */
	assert_int_equal(w->trouble.code, MQ_ETIMEOUT);
	for (int i = 0; i < FAKE_RULES; i++)
		w->a->rule[i].times = 0;
	fake_pop_again(w->a, "t", 0, 0);
	wait_got(w, 2);
	settle(w, 1, true);
	wait_lent(w, "");
	assert_int_equal(w->troubles, 1);
}

/* ---- Pops -------------------------------------------------------------------------------------------------------------- */

static void a_pop_outlives_its_connection(void **state)
{
	struct world *w = *state;

	fake_script(w->a, POP, 2, FAKE_HANG_UP, 0, NULL);
	put(w, 0, 2);
	consume(w, 0, NULL);
	wait_got(w, 2);
	assert_true(*count(w, POP) >= 3);
	fake_stop(w->a);
	fake_run(&w->loop, 100);
	fake_again(w->a);
	put(w, 1, 1);
	wait_got(w, 3);
}

static void refused_pops_are_tried_again_and_told_once(void **state)
{
	struct world *w = *state;

	fake_script(w->a, POP, 4, FAKE_ANSWER, RESP_NO_PERMISSION, "not now");
	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_got(w, 1);
	assert_int_equal(w->troubles, 1);
	assert_int_equal(w->trouble.response, RESP_NO_PERMISSION);
	assert_non_null(strstr(w->trouble.text, "not now"));
	assert_int_equal(w->fatal, 0);
}

static void a_broker_that_does_not_hold_is_not_hurried(void **state)
{
	struct world *w = *state;

	w->a->no_hold = true;
	fake_script(w->a, POP, 1, FAKE_ANSWER, RESP_POLLING_FULL, "full");
	consume(w, 0, NULL);
	wait_count(w, POP, 1);
	fake_run(&w->loop, 500);
	assert_true(*count(w, POP) <= 10);
	put(w, 0, 1);
	wait_got(w, 1);
	assert_int_equal(w->troubles, 0);
}

static void messages_without_a_handle_are_not_handed_out(void **state)
{
	struct world *w = *state;

	w->a->pop_no_handles = true;
	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_for(w, &w->troubles, 1);
	assert_int_equal(w->trouble.code, MQ_EPROTO);
	assert_int_equal(w->ngot, 0);
	w->a->pop_no_handles = false;
	fake_pop_again(w->a, "t", 0, 0);
	wait_got(w, 1);
	settle(w, 0, true);
	wait_lent(w, "");
}

static void behind_a_damaged_record_nothing_is_taken(void **state)
{
	struct world *w = *state;
	struct buf b = { 0 };

	put(w, 0, 1);
	fake_record(w->a, &b, "t", 0, 1, "damaged", NULL, 0);
	b.p[20] ^= 1; /* its offset: the body's sum is right */
	b.p[b.n / 2 + 30] ^= 0x55;
	fake_put_record(w->a, "t", 0, b.p, 60); /* and cut */
	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_got(w, 1);
	assert_string_equal(w->got[0].body, "0-0");
	fake_pop_again(w->a, "t", 0, 2); /* its time is over: alone it can be read */
	wait_got(w, 2);
	assert_string_equal(w->got[1].body, "0-2");
	buf_free(&b);
}

/* A record of the group's retry topic, with the handle that the broker gave it. */
static void put_retried(struct world *w, const char *topic, const char *ck)
{
	struct fake_queue *q = &w->a->topic[0].queue[0];
	struct message_parts m = { .topic = str_of(topic), .body = MQ_STR("again"), .queue_off = q->max, .log_off = 77, .reconsume_times = 1,
				   .born_ms = 1700000000000, .store_ms = 1700000000001 };
	struct buf props = { 0 }, b = { 0 };
	int64_t n;

	m.born_host = m.store_host = (struct mq_host){ .ip = { 127, 0, 0, 1 }, .len = 4, .port = 1 };
	property_put(&props, MQ_STR(PROP_POP_CK), str_of(ck));
	m.props[0] = buf_view(&props);
	n = message_size(&m);
	message_encode(&m, buf_room(&b, (size_t)n));
	b.n += (size_t)n;
	fake_put_record(w->a, "t", 0, b.p, b.n);
	buf_free(&b);
	buf_free(&props);
}

static void what_was_revived_is_acked_where_it_lies(void **state)
{
	struct world *w = *state;

	put_retried(w, "%RETRY%g_t", "0 1700000000000 60000 3 1 a 0 0");
	consume(w, 0, NULL);
	wait_got(w, 1);
	assert_string_equal(w->got[0].topic, "%RETRY%g_t");
	settle(w, 0, true);
	wait_lent(w, "");
	assert_string_equal(fake_field(w->a, ACK, "topic"), "%RETRY%g_t");
	assert_string_equal(fake_field(w->a, ACK, "extraInfo"), "0 1700000000000 60000 3 1 a 0 0");
}

static void another_tag_with_the_same_hash_is_acked_unseen(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .filter = "Aa" };

	fake_put(w->a, "t", 0, "other", "BB"); /* as Java hashes */
	fake_put(w->a, "t", 0, "mine", "Aa");
	consume(w, 0, &opt);
	wait_got(w, 1);
	assert_string_equal(w->got[0].body, "mine");
	wait_lent(w, "1");
	assert_string_equal(fake_field(w->a, POP, "exp"), "Aa");
}

/* ---- Sent back --------------------------------------------------------------------------------------------------------- */

static void on_back(void *arg, int rc, const struct mq_error *e)
{
	struct world *w = arg;

	w->back++;
	w->back_rc = rc;
}

static int send_back(struct world *w, int i, int level, int max)
{
	struct mqclient_back b = { .broker = "a", .topic = str_of(w->got[i].topic), .log_off = w->got[i].log_off, .id = "ID",
				   .delay_level = level, .max_times = max };

	return mqclient_send_back(w->k, &b, on_back, w, &w->e);
}

static void what_is_sent_back_gets_another_time(void **state)
{
	struct world *w = *state;

	put(w, 0, 2);
	consume(w, 0, NULL);
	wait_got(w, 2);
	assert_int_equal(send_back(w, 0, 4, -1), 0);
	wait_for(w, &w->back, 1);
	assert_int_equal(w->back_rc, 0);
	assert_string_equal(fake_field(w->a, CHANGE, "invisibleTime"), "30000");
	settle(w, 0, true); /* it is the broker's already */
	fake_run(&w->loop, 20);
	assert_int_equal(*count(w, ACK), 0);
	fake_pop_again(w->a, "t", 0, 0);
	wait_got(w, 3);
	settle(w, 2, true);
	settle(w, 1, true);
	wait_lent(w, "");
}

static void what_could_not_be_sent_back_stays_with_us(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_got(w, 1);
	fake_script(w->a, CHANGE, 1, FAKE_ANSWER, RESP_SYSTEM_ERROR, "disk full");
	assert_int_equal(send_back(w, 0, 0, -1), 0);
	wait_for(w, &w->back, 1);
	assert_int_equal(w->back_rc, MQ_EREFUSED);
	settle(w, 0, true);
	wait_lent(w, "");
	assert_int_equal(*count(w, ACK), 1);
}

static void the_last_time_it_goes_to_the_dead_letters(void **state)
{
	struct world *w = *state;

	put_retried(w, "%RETRY%g_t", "0 1700000000000 60000 3 1 a 0 0"); /* it came once before */
	consume(w, 0, NULL);
	wait_got(w, 1);
	assert_int_equal(send_back(w, 0, 3, 1), 0);
	wait_for(w, &w->back, 1);
	assert_int_equal(w->a->count[REQ_CONSUMER_SEND_MSG_BACK], 1);
	assert_int_equal(*count(w, CHANGE), 0);
	settle(w, 0, true);
	wait_lent(w, "");
}

static void what_is_no_longer_ours_cannot_be_sent_back(void **state)
{
	struct world *w = *state;

	put(w, 0, 1);
	consume(w, 0, NULL);
	wait_got(w, 1);
	settle(w, 0, true);
	wait_lent(w, "");
	assert_int_equal(send_back(w, 0, 3, -1), MQ_ENOTFOUND);
	assert_int_equal(w->back, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_settled_is_acked_under_its_handle), T(what_is_not_done_comes_again_at_once), T(the_window_is_for_all_queues_together),
		T(what_comes_while_paused_is_handed_out_later), T(who_ends_gives_back_what_it_has), T(looking_ends_when_all_was_there),
		T(an_ack_without_an_answer_is_sent_again), T(an_ack_whose_answer_is_lost_is_told_as_too_late),
		T(a_refused_ack_is_told_once_and_not_sent_again), T(an_ack_outlives_its_connection), T(an_ack_waits_for_a_broker_that_is_away),
		T(answers_that_come_twice_count_once), T(the_end_waits_for_acks_that_are_under_way), T(an_end_that_cannot_ack_says_so),
		T(what_takes_long_is_renewed_and_acked_under_the_new_handle), T(a_renewal_that_is_refused_ends_them),
		T(a_lost_renewal_is_asked_again), T(a_renewal_that_says_nothing_leaves_the_handle), T(an_ack_waits_for_a_renewal),
		T(when_the_time_is_over_the_message_comes_again_and_the_old_one_is_forgotten), T(a_pop_outlives_its_connection),
		T(refused_pops_are_tried_again_and_told_once), T(a_broker_that_does_not_hold_is_not_hurried),
		T(messages_without_a_handle_are_not_handed_out), T(behind_a_damaged_record_nothing_is_taken),
		T(what_was_revived_is_acked_where_it_lies), T(another_tag_with_the_same_hash_is_acked_unseen),
		T(what_is_sent_back_gets_another_time), T(what_could_not_be_sent_back_stays_with_us),
		T(the_last_time_it_goes_to_the_dead_letters), T(what_is_no_longer_ours_cannot_be_sent_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
