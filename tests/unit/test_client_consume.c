/* test_client_consume.c: receiving: where it starts, what is handed out, what is committed, who reads which queue. */
#include "fake.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/zip.h"
#include "client/balance.h"
#include "client/offset.h"
#include "codec/body_heartbeat.h"
#include "codec/message.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GOT_MAX = 20000 };

struct got {
	char topic[64], broker[16], body[64];
	int queue;
	int64_t off;
};

struct world {
	uv_loop_t loop;
	struct fake *a, *b;
	struct mqclient *c;
	struct mqclient_consumer *k;
	struct mq_error e;
	struct got *got;
	int ngot;
	bool settle, commit;        /* each message as it comes */
	int pause_at;               /* pause after so many */
	int ended, troubles, fatal, assigned_calls;
	size_t assigned;
	struct mq_error trouble;
	char wanted[64];
};

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct world *w = arg;
	struct got *g = &w->got[w->ngot];

	assert_true(w->ngot < GOT_MAX);
	snprintf(g->topic, sizeof g->topic, MQ_STR_FMT, MQ_STR_ARG(m->topic));
	snprintf(g->body, sizeof g->body, MQ_STR_FMT, MQ_STR_ARG(body));
	snprintf(g->broker, sizeof g->broker, "%s", q->broker);
	g->queue = q->id;
	g->off = m->queue_off;
	w->ngot++;
	if (w->settle)
		mqclient_settle(w->k, m->topic, q, m->queue_off, w->commit);
	if (w->pause_at && w->ngot == w->pause_at)
		mqclient_pause(w->k, true);
}

static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
	struct world *w = arg;

	if (str_is(topic, "t")) {
		w->assigned = n;
		w->assigned_calls++;
	}
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

static struct mqclient_consume_ops ops = {
	.message = on_message, .assigned = on_assigned, .ended = on_ended, .trouble = on_trouble,
};

static void open_client(struct world *w, const char *instance)
{
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .instance = instance };

	if (mqclient_open(&w->c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->got = calloc(GOT_MAX, sizeof *w->got);
	w->settle = w->commit = true;
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 4);
	open_client(w, NULL);
	*state = w;
	return 0;
}

static int stop(void **state)
{
	struct world *w = *state;

	mqclient_free(w->c, 500);
	fake_free(w->a);
	if (w->b)
		fake_free(w->b);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w->got);
	free(w);
	return 0;
}

static int wanted;

static bool got_enough(void *arg)
{
	return ((struct world *)arg)->ngot >= wanted;
}

static void wait_got(struct world *w, int n)
{
	wanted = n;
	if (!fake_until(&w->loop, got_enough, w, 20000))
		fail_msg("%d of %d messages came; last trouble: %s", w->ngot, n, w->trouble.text);
	fake_run(&w->loop, 20);
	assert_int_equal(w->ngot, n);
}

static bool has_ended(void *arg)
{
	return ((struct world *)arg)->ended > 0;
}

static void wait_ended(struct world *w)
{
	if (!fake_until(&w->loop, has_ended, w, 20000))
		fail_msg("no end after %d messages; last trouble: %s", w->ngot, w->trouble.text);
}

static bool has_trouble(void *arg)
{
	return ((struct world *)arg)->troubles > 0;
}

static bool is_assigned(void *arg)
{
	return (int)((struct world *)arg)->assigned == wanted;
}

static void wait_assigned(struct world *w, int n)
{
	wanted = n;
	if (!fake_until(&w->loop, is_assigned, w, 20000))
		fail_msg("%zu queues instead of %d", w->assigned, n);
}

static void put(struct world *w, int queue, int from, int to)
{
	char body[32];

	for (int i = from; i < to; i++) {
		snprintf(body, sizeof body, "q%d-%d", queue, i);
		fake_put(w->a, "t", queue, body, NULL);
	}
}

static void consume(struct world *w, struct mqclient_consume_opt *opt)
{
	static struct mq_str topic;

	topic = MQ_STR("t");
	if (!opt->topics) {
		opt->topics = &topic;
		opt->ntopics = 1;
	}
	if (mqclient_consume(w->c, &w->k, opt, &ops, w, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

/* ---- Looking --------------------------------------------------------------------------------------------------------- */

static void looking_from_the_beginning_sees_everything_in_order_and_ends(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true };
	int64_t next[4] = { 0 };

	for (int q = 0; q < 4; q++)
		put(w, q, 0, 100);
	w->settle = false;
	consume(w, &opt);
	wait_ended(w);
	assert_int_equal(w->ngot, 400);
	for (int i = 0; i < 400; i++) {
		struct got *g = &w->got[i];
		char body[32];
		assert_int_equal(g->off, next[g->queue]++);
		snprintf(body, sizeof body, "q%d-%d", g->queue, (int)g->off);
		assert_string_equal(g->body, body);
		assert_string_equal(g->topic, "t");
	}
	assert_int_equal(w->ended, 1);
	/* Nobody was told, nothing was stored. */
	assert_int_equal(w->a->count[REQ_HEART_BEAT], 0);
	assert_int_equal(w->a->count[REQ_UPDATE_CONSUMER_OFFSET], 0);
	assert_string_equal(fake_field(w->a, REQ_PULL_MESSAGE, "consumerGroup"), "TOOLS_CONSUMER");
	assert_string_equal(fake_field(w->a, REQ_PULL_MESSAGE, "subscription"), "*");
}

static void looking_starts_where_it_is_told(void **state)
{
	static const struct { enum mqclient_start start; int64_t value; int n; } cases[] = {
		{ MQCLIENT_END, 0, 0 }, { MQCLIENT_BEGIN, 0, 90 },
		{ MQCLIENT_AT_OFFSET, 95, 5 }, { MQCLIENT_AT_OFFSET, 0, 90 },
		{ MQCLIENT_AT_OFFSET, 1000, 0 }, { MQCLIENT_LAST_N, 7, 7 }, { MQCLIENT_LAST_N, 1000, 90 },
		{ MQCLIENT_AT_TIME, 1700000000000, 45 }, { MQCLIENT_STORED, 0, 0 },
	};
	struct world *w = *state;

	put(w, 1, 0, 100);
	w->a->topic[0].queue[1].min = 10;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mqclient_consume_opt opt = { .start = cases[i].start, .start_value = cases[i].value,
		                                   .stop_at_end = true,
			                            .queue = { "a", 1 } };
		w->ngot = w->ended = 0;
		consume(w, &opt);
		wait_ended(w);
		assert_int_equal(w->ngot, cases[i].n);
		assert_int_equal(mqclient_consumer_free(w->k, 0, NULL), 0);
	}
	assert_int_equal(w->a->count[REQ_GET_MAX_OFFSET], (int)(sizeof cases / sizeof *cases)); /* that queue alone */
}

static void looking_goes_on_with_what_comes_later(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_END };

	put(w, 0, 0, 5);
	consume(w, &opt);
	fake_run(&w->loop, 50);
	assert_int_equal(w->ngot, 0);
	put(w, 0, 5, 8);
	put(w, 3, 0, 2);
	wait_got(w, 5);
	assert_int_equal(w->got[0].off, 5);
}

static int64_t start_at_three(void *arg, struct mq_str topic, const struct mqclient_queue *q)
{
	return q->id == 0 ? 3 : -1;
}

static void the_user_may_say_where_to_start_in_each_queue(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true };

	put(w, 0, 0, 10);
	put(w, 1, 0, 10);
	ops.start_at = start_at_three;
	consume(w, &opt);
	ops.start_at = NULL;
	wait_ended(w);
	assert_int_equal(w->ngot, 17);
}

static void messages_that_come_while_it_looks_are_not_part_of_the_end(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true, .queue = { "a", 0 },
	                                   .batch = 10 };

	put(w, 0, 0, 15);
	w->pause_at = 1;
	consume(w, &opt);
	wait_got(w, 1);
	put(w, 0, 15, 30);
	mqclient_pause(w->k, false);
	wait_ended(w);
	assert_int_equal(w->ngot, 15);
}

static void a_topic_that_is_not_there_ends_looking(void **state)
{
	struct world *w = *state;
	struct mq_str topic = MQ_STR("nowhere");
	struct mqclient_consume_opt opt = { .topics = &topic, .ntopics = 1 };

	consume(w, &opt);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	assert_int_equal(w->fatal, 1);
	assert_int_equal(w->trouble.code, MQ_ENOROUTE);
	assert_non_null(strstr(w->trouble.text, "nowhere"));
}

static void a_queue_that_is_not_there_ends_looking(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .queue = { "a", 7 } };

	consume(w, &opt);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	assert_int_equal(w->fatal, 1);
	assert_int_equal(w->trouble.code, MQ_ENOTFOUND);
}

static void a_refusal_ends_looking_with_the_brokers_words(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .filter = "a = ", .sql = true };

	put(w, 0, 0, 1);
	fake_script(w->a, REQ_PULL_MESSAGE, 100, FAKE_ANSWER, RESP_SUBSCRIPTION_PARSE_FAILED,
	            "parse the consumer's subscription failed");
	consume(w, &opt);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	assert_int_equal(w->fatal, 1);
	assert_int_equal(w->trouble.response, RESP_SUBSCRIPTION_PARSE_FAILED);
	assert_non_null(strstr(w->trouble.text, "parse the consumer's subscription failed"));
	fake_run(&w->loop, 50);
	assert_int_equal(w->troubles, 1);
}

static void tags_are_compared_by_name_too(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .filter = "Aa||C", .stop_at_end = true };

	/* "Aa" and "BB" have the same hash, so a broker lets both pass. */
	fake_put(w->a, "t", 0, "1", "Aa");
	fake_put(w->a, "t", 0, "2", "BB");
	fake_put(w->a, "t", 0, "3", "C");
	fake_put(w->a, "t", 0, "4", NULL);
	consume(w, &opt);
	wait_ended(w);
	assert_int_equal(w->ngot, 2);
	assert_string_equal(w->got[0].body, "1");
	assert_string_equal(w->got[1].body, "3");
	assert_string_equal(fake_field(w->a, REQ_PULL_MESSAGE, "subscription"), "Aa||C");
}

static void compressed_and_damaged_messages(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true, .queue = { "a", 0 } };
	struct message_parts m = { .topic = MQ_STR("t"), .queue_off = 1,
	                          .sys_flag = MQ_SYS_COMPRESSED | MQ_SYS_COMPRESS_ZSTD,
		                   .born_host = { .len = 4 }, .store_host = { .len = 4 } };
	struct buf packed = { 0 }, b = { 0 };

	put(w, 0, 0, 1);
	assert_int_equal(zip_pack(MQ_SYS_COMPRESS_ZSTD, 3, MQ_STR("plain plain plain plain plain"), &packed), 0);
	m.body = buf_view(&packed);
	message_encode(&m, buf_room(&b, (size_t)message_size(&m)));
	fake_put_record(w->a, "t", 0, b.p, (size_t)message_size(&m));
	/* 2: says compressed and is not; 3: a flipped bit in the body; 4: whole. */
	b.n = 0;
	fake_record(w->a, &b, "t", 0, 2, "not compressed", NULL, MQ_SYS_COMPRESSED);
	fake_put_record(w->a, "t", 0, b.p, b.n);
	b.n = 0;
	fake_record(w->a, &b, "t", 0, 3, "flipped", NULL, 0);
	b.p[RECORD_AT_BORN_HOST + 8 + 8 + 8 + 4 + 8 + 4] ^= 1;
	fake_put_record(w->a, "t", 0, b.p, b.n);
	put(w, 0, 4, 5);
	consume(w, &opt);
	wait_ended(w);
	assert_int_equal(w->ngot, 3);
	assert_string_equal(w->got[0].body, "q0-0");
	assert_string_equal(w->got[1].body, "plain plain plain plain plain");
	assert_string_equal(w->got[2].body, "q0-4");
	assert_int_equal(w->troubles, 2);
	assert_int_equal(w->trouble.code, MQ_ECORRUPT);
	assert_non_null(strstr(w->trouble.text, "offset 3"));
	buf_free(&packed);
	buf_free(&b);
}

static void pausing_holds_messages_and_loses_none(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true };

	for (int q = 0; q < 4; q++)
		put(w, q, 0, 50);
	consume(w, &opt);
	for (int n = 1; n < 200; n += 7) {
		w->pause_at = n;
		wanted = n;
		assert_true(fake_until(&w->loop, got_enough, w, 10000));
		fake_run(&w->loop, 5);
		assert_int_equal(w->ngot, n); /* not one more */
		w->pause_at = 0;
		if (n + 7 < 200)
			w->pause_at = n + 7;
		mqclient_pause(w->k, false);
	}
	wait_ended(w);
	assert_int_equal(w->ngot, 200);
	for (int i = 0, next[4] = { 0 }; i < 200; i++)
		assert_int_equal(w->got[i].off, next[w->got[i].queue]++);
}

/* ---- Groups ---------------------------------------------------------------------------------------------------------- */

static void a_member_says_so_before_it_pulls_and_goes_on_where_the_group_stands(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_STORED, .filter = "*" };
	struct body_heartbeat h;

	put(w, 0, 0, 10);
	fake_set_offset(w->a, "g", "t", 0, 7);
	consume(w, &opt);
	wait_got(w, 3);
	assert_int_equal(w->got[0].off, 7);
	assert_int_equal(w->a->unknown_pulls, 0);
	assert_int_equal(body_heartbeat_decode(fake_body(w->a, REQ_HEART_BEAT), &h, &w->e), 0);
	assert_true(str_is(h.client_id, mqclient_id(w->c)));
	assert_int_equal(h.nconsumers, 1);
	assert_true(str_is(h.consumer[0].group, "g"));
	assert_int_equal(h.consumer[0].model, MODEL_CLUSTERING);
	assert_int_equal(h.consumer[0].nsubs, 2); /* and %RETRY%g */
	body_heartbeat_free(&h);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 10);
	assert_int_equal(w->a->count[REQ_UNREGISTER_CLIENT], 1);
	assert_string_equal(fake_field(w->a, REQ_UNREGISTER_CLIENT, "consumerGroup"), "g");
	assert_int_equal(w->a->nknown, 0);
}

/* A heartbeat goes out with the first route; what it lacks has to follow, or the member waits for the next one. */
static void topics_that_are_found_late_do_not_delay_the_start(void **state)
{
	struct world *w = *state;
	struct mq_str topics[] = { MQ_STR("t"), MQ_STR("t2") };
	struct mqclient_consume_opt opt = { .group = "g", .topics = topics, .ntopics = 2, .start = MQCLIENT_BEGIN };
	struct mqclient_consumer *other;
	struct mqclient_consume_opt first = { .group = "first", .topics = topics, .ntopics = 1,
	                                     .start = MQCLIENT_BEGIN };

	fake_topic(w->a, "t2", 1);
	put(w, 0, 0, 10);
	w->a->delay_ms[REQ_HEART_BEAT] = 30;
	/* The heartbeat of the first group is on its way when the second one wants to be in it. */
	assert_int_equal(mqclient_consume(w->c, &other, &first, &ops, w, &w->e), 0);
	fake_run(&w->loop, 10);
	consume(w, &opt);
	wanted = 20;
	assert_true(fake_until(&w->loop, got_enough, w, 10000));
}

static void a_new_group_starts_as_told_and_its_place_is_stored(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 3);
	put(w, 1, 0, 3);
	w->a->topic[0].queue[1].min = 2;
	consume(w, &opt);
	wait_got(w, 4);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 3);
	assert_int_equal(fake_offset(w->a, "g", "t", 1), 3);
	/* Queues without messages too: what comes while nobody is there is for this group. */
	assert_int_equal(fake_offset(w->a, "g", "t", 2), 0);
	opt.group = "late";
	opt.start = MQCLIENT_END;
	consume(w, &opt);
	wait_assigned(w, 4);
	fake_run(&w->loop, 50);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(w->ngot, 4);
	assert_int_equal(fake_offset(w->a, "late", "t", 0), 3);
}

static void only_what_is_settled_in_order_is_committed(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };
	struct mqclient_queue q = { "a", 0 };

	put(w, 0, 0, 10);
	w->settle = false;
	consume(w, &opt);
	wait_got(w, 10);
	mqclient_settle(w->k, MQ_STR("t"), &q, 0, true);
	mqclient_settle(w->k, MQ_STR("t"), &q, 1, true);
	mqclient_settle(w->k, MQ_STR("t"), &q, 2, true);
	mqclient_settle(w->k, MQ_STR("t"), &q, 4, true); /* 3 is open */
	mqclient_settle(w->k, MQ_STR("t"), &q, 9, true);
	mqclient_commit(w->k);
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 3);
	mqclient_settle(w->k, MQ_STR("t"), &q, 3, true);
	mqclient_settle(w->k, MQ_STR("t"), &q, 5, false); /* handed back: there it stays */
	mqclient_settle(w->k, MQ_STR("t"), &q, 6, true);
	mqclient_settle(w->k, MQ_STR("t"), &q, 77, true); /* never handed out */
	mqclient_commit(w->k);
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 5);
	mqclient_settle(w->k, MQ_STR("t"), &q, 5, true); /* too late */
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 5);
}

static void many_messages_are_committed_before_the_time(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 9000);
	consume(w, &opt);
	wait_got(w, 9000);
	assert_in_range(fake_offset(w->a, "g", "t", 0), 8100, 9000);
	assert_true(fake_commits(w->a, "g", "t", 0) <= 3);
}

static void a_member_that_joins_finds_what_was_done(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_notify(w->a, "g");
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 10);
}

/* mq-recv | head -3 moves the group by three. */
static void three_taken_of_many_move_the_group_by_three(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 100);
	w->pause_at = 3;
	consume(w, &opt);
	wait_got(w, 3);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 3);
}

static void the_window_bounds_what_is_handed_out_and_not_settled(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN, .window = 10, .batch = 4 };
	struct mqclient_queue q = { "a", 0 };

	put(w, 0, 0, 100);
	w->settle = false;
	consume(w, &opt);
	wanted = 8;
	assert_true(fake_until(&w->loop, got_enough, w, 10000));
	fake_run(&w->loop, 50);
	assert_in_range(w->ngot, 8, 10);
	for (int i = 0; i < 100; i++) {
		wanted = i + 1;
		assert_true(fake_until(&w->loop, got_enough, w, 10000));
		assert_true(w->ngot <= i + 10);
		mqclient_settle(w->k, MQ_STR("t"), &q, i, true);
	}
	assert_int_equal(w->ngot, 100);
}

static void filtered_messages_move_the_group_too(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN, .filter = "yes",
	                                   .stop_at_end = true };

	for (int i = 0; i < 50; i++)
		fake_put(w->a, "t", 0, "x", i == 20 ? "yes" : "no");
	consume(w, &opt);
	wait_ended(w);
	assert_int_equal(w->ngot, 1);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 50);
}

/* Stored offset 5000, maximum 1000 (B026): go to the end, nothing twice, one line for the user. */
static void an_offset_beyond_the_end_goes_to_the_end(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_STORED };

	w->a->topic[0].nqueues = 1;
	w->a->topic[0].queue[0].max = 1000;
	fake_set_offset(w->a, "g", "t", 0, 5000);
	consume(w, &opt);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	fake_run(&w->loop, 50);
	assert_int_equal(w->troubles, 1);
	assert_int_equal(w->fatal, 0);
	assert_non_null(strstr(w->trouble.text, "5000"));
	assert_int_equal(w->ngot, 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 1000);
	put(w, 0, 1000, 1001);
	wait_got(w, 1);
	assert_int_equal(w->got[0].off, 1000);
}

/* Stored offset 100, deleted up to 5000 (B037). */
static void an_offset_that_was_deleted_goes_to_the_smallest(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_STORED };

	w->a->topic[0].nqueues = 1;
	w->a->topic[0].queue[0].min = w->a->topic[0].queue[0].max = 5000;
	put(w, 0, 5000, 5002);
	fake_set_offset(w->a, "g", "t", 0, 100);
	consume(w, &opt);
	wait_got(w, 2);
	assert_int_equal(w->got[0].off, 5000);
	assert_int_equal(w->troubles, 1);
	assert_non_null(strstr(w->trouble.text, "4900 skipped"));
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 5002);
}

static void a_reset_at_the_broker_is_followed_back(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	w->a->topic[0].nqueues = 1;
	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	mqclient_commit(w->k);
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 10);
	w->a->topic[0].queue[0].reset_to = 4;
	put(w, 0, 10, 11);
	wait_got(w, 17);
	assert_int_equal(w->got[10].off, 4);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 11);
}

static void a_reset_that_is_sent_to_the_client_is_followed(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	w->a->topic[0].nqueues = 1;
	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_request_all(w->a, REQ_RESET_CONSUMER_CLIENT_OFFSET, "group", "g",
	                 "{\"offsetTable\":{{\"brokerName\":\"a\",\"queueId\":0,\"topic\":\"t\"}:6}}");
	fake_run(&w->loop, 50);
	put(w, 0, 10, 11); /* wakes the pull that the broker still holds */
	wait_got(w, 15);
	assert_int_equal(w->got[10].off, 6);
}

static void commits_are_repeated_until_the_broker_takes_them(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_script(w->a, REQ_UPDATE_CONSUMER_OFFSET, 6, FAKE_ANSWER, RESP_SYSTEM_ERROR, "not now");
	assert_int_equal(mqclient_consumer_free(w->k, 2000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 10);
}

static void an_offset_that_cannot_be_stored_is_told_at_the_end(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_script(w->a, REQ_UPDATE_CONSUMER_OFFSET, 10000, FAKE_ANSWER, RESP_SYSTEM_ERROR, "disk on fire");
	assert_int_equal(mqclient_consumer_free(w->k, 300, &w->e), MQ_EREFUSED);
	assert_non_null(strstr(w->e.text, "disk on fire"));
	assert_non_null(strstr(w->e.text, "group 'g'"));
}

static void a_broker_that_restarts_costs_nothing(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_stop(w->a);
	fake_run(&w->loop, 50);
	fake_again(w->a);
	put(w, 0, 10, 20);
	put(w, 1, 0, 5);
	wait_got(w, 25);
	assert_int_equal(w->a->unknown_pulls, 0); /* the new connection began with a heartbeat */
	assert_int_equal(w->troubles, 0);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 20);
}

static void a_broker_that_stays_away_is_told_once(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	consume(w, &opt);
	wait_got(w, 10);
	fake_stop(w->a);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	fake_run(&w->loop, 1500);
	assert_int_equal(w->troubles, 1); /* four queues, one line */
	assert_int_equal(w->fatal, 0);
	fake_again(w->a);
}

static void a_refused_pull_of_a_member_is_tried_again(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	fake_script(w->a, REQ_PULL_MESSAGE, 4, FAKE_ANSWER, RESP_SUBSCRIPTION_NOT_EXIST, "who are you");
	consume(w, &opt);
	wait_got(w, 10);
	assert_int_equal(w->fatal, 0);
}

static void silence_at_the_start_of_a_queue_is_asked_again(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	fake_script(w->a, REQ_QUERY_CONSUMER_OFFSET, 4, FAKE_ANSWER, RESP_SYSTEM_ERROR, "not now");
	consume(w, &opt);
	wait_got(w, 10);
}

static void a_group_waits_for_its_topic(void **state)
{
	struct world *w = *state;
	struct mq_str topic = MQ_STR("later");
	struct mqclient_consume_opt opt = { .group = "g", .topics = &topic, .ntopics = 1, .start = MQCLIENT_BEGIN };

	consume(w, &opt);
	assert_true(fake_until(&w->loop, has_trouble, w, 10000));
	assert_int_equal(w->fatal, 0);
	fake_topic(w->a, "later", 2);
	fake_put(w->a, "later", 1, "x", NULL);
	wait_got(w, 1);
	assert_int_equal(w->troubles, 1);
}

static void what_was_sent_back_to_the_group_comes_too(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_END };

	fake_topic(w->a, "%RETRY%g", 1);
	fake_put(w->a, "%RETRY%g", 0, "again", NULL);
	consume(w, &opt);
	wait_got(w, 1);
	assert_string_equal(w->got[0].topic, "%RETRY%g");
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "%RETRY%g", 0), 1);
}

static void one_queue_of_a_group_is_read_without_being_a_member(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN, .queue = { "a", 1 } };

	put(w, 0, 0, 5);
	put(w, 1, 0, 5);
	consume(w, &opt);
	wait_got(w, 5);
	assert_int_equal(w->a->count[REQ_HEART_BEAT], 0);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 1), 5);
	assert_int_equal(fake_offset(w->a, "g", "t", 0), -1);
}

static void what_cannot_be_done_is_refused_at_once(void **state)
{
	struct world *w = *state;
	struct mq_str topic = MQ_STR("t"), bad = MQ_STR("a b");
	struct mqclient_consume_opt opt = { .topics = &topic, .ntopics = 1, .broadcast = true };

	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), MQ_EINVAL);
	opt.group = "g";
	opt.orderly = true;
	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), MQ_EINVAL);
	opt.broadcast = opt.orderly = false;
	opt.topics = &bad;
	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), MQ_EINVAL);
	opt.topics = &topic;
	opt.group = "a b";
	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), MQ_EINVAL);
	opt.group = "g";
	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), 0);
	assert_int_equal(mqclient_consume(w->c, &w->k, &opt, &ops, w, &w->e), MQ_EBUSY);
}

/* ---- Members come and go --------------------------------------------------------------------------------------------- */

static void queues_are_shared_out_as_members_come_and_go(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	put(w, 0, 0, 10);
	put(w, 3, 0, 10);
	consume(w, &opt);
	wait_assigned(w, 4);
	wait_got(w, 20);
	/* A second member: its id sorts behind ours, so it gets the second half. */
	strcpy(w->a->member[0], "~other");
	w->a->nmembers = 1;
	fake_notify(w->a, "g");
	wait_assigned(w, 2);
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 3), 10); /* given up with what was settled */
	put(w, 3, 10, 20);
	fake_run(&w->loop, 50);
	assert_int_equal(w->ngot, 20);
	/* It goes, having done some of it. */
	fake_set_offset(w->a, "g", "t", 3, 15);
	w->a->nmembers = 0;
	fake_notify(w->a, "g");
	wait_assigned(w, 4);
	wait_got(w, 25);
	assert_int_equal(w->got[20].off, 15);
}

static void a_lost_queue_is_committed_once_and_settling_it_later_does_nothing(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };
	struct mqclient_queue q = { "a", 3 };

	put(w, 3, 0, 10);
	w->settle = false;
	consume(w, &opt);
	wait_got(w, 10);
	for (int i = 0; i < 4; i++)
		mqclient_settle(w->k, MQ_STR("t"), &q, i, true);
	strcpy(w->a->member[0], "~other");
	w->a->nmembers = 1;
	fake_notify(w->a, "g");
	wait_assigned(w, 2);
	fake_run(&w->loop, 20);
	assert_int_equal(fake_offset(w->a, "g", "t", 3), 4);
	for (int i = 4; i < 10; i++)
		mqclient_settle(w->k, MQ_STR("t"), &q, i, true);
	fake_set_offset(w->a, "g", "t", 3, 8); /* the other member is ahead */
	mqclient_commit(w->k);
	assert_int_equal(mqclient_consumer_free(w->k, 1000, &w->e), 0);
	assert_int_equal(fake_offset(w->a, "g", "t", 3), 8);
}

static void an_id_that_is_listed_twice_counts_once(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };

	strcpy(w->a->member[0], mqclient_id(w->c));
	strcpy(w->a->member[1], mqclient_id(w->c));
	w->a->nmembers = 2;
	consume(w, &opt);
	wait_assigned(w, 4);
}

static void a_broker_that_forgot_us_is_told_and_we_keep_our_queues(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };
	int beats;

	consume(w, &opt);
	wait_assigned(w, 4);
	beats = w->a->count[REQ_HEART_BEAT];
	w->a->nknown = 0;
	fake_notify(w->a, "g");
	fake_run(&w->loop, 1300);
	assert_true(w->a->count[REQ_HEART_BEAT] > beats);
	assert_int_equal(w->assigned, 4);
	assert_int_equal(w->assigned_calls, 1);
	put(w, 2, 0, 3);
	wait_got(w, 3);
}

static void notices_that_come_together_cause_few_rounds(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .group = "g", .start = MQCLIENT_BEGIN };
	int rounds;

	consume(w, &opt);
	wait_assigned(w, 4);
	fake_run(&w->loop, 150);
	rounds = w->a->count[REQ_GET_CONSUMER_LIST_BY_GROUP];
	for (int i = 0; i < 200; i++) {
		fake_notify(w->a, "g");
		if (i % 20 == 0)
			fake_run(&w->loop, 2);
	}
	fake_run(&w->loop, 300);
	assert_in_range(w->a->count[REQ_GET_CONSUMER_LIST_BY_GROUP] - rounds, 1, 5);
}

static void a_second_broker_in_the_route_is_taken_up(void **state)
{
	struct world *w = *state;
	struct mqclient_consume_opt opt = { .start = MQCLIENT_BEGIN, .stop_at_end = true };

	w->b = fake_start(&w->loop, "b");
	fake_topic(w->b, "t", 2);
	fake_put(w->b, "t", 1, "from b", NULL);
	put(w, 0, 0, 1);
	w->a->more[w->a->nmore++] = w->b;
	consume(w, &opt);
	wait_ended(w);
	assert_int_equal(w->ngot, 2);
	assert_int_equal(w->assigned, 6);
}

static void shares_are_those_of_the_peer(void **state)
{
	/* queues, members, member, first, n: worked out with the peer's rule. */
	static const size_t want[][5] = {
		{ 4, 1, 0, 0, 4 }, { 4, 2, 0, 0, 2 }, { 4, 2, 1, 2, 2 }, { 5, 2, 0, 0, 3 }, { 5, 2, 1, 3, 2 },
		{ 8, 3, 0, 0, 3 }, { 8, 3, 1, 3, 3 }, { 8, 3, 2, 6, 2 }, { 2, 3, 0, 0, 1 }, { 2, 3, 1, 1, 1 },
		{ 2, 3, 2, 2, 0 }, { 0, 2, 1, 0, 0 }, { 1, 200, 199, 1, 0 },
	};
	size_t first, n;

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		balance_share(want[i][0], want[i][1], want[i][2], &first, &n);
		assert_int_equal(n, want[i][4]);
		if (n)
			assert_int_equal(first, want[i][3]);
	}
	/* Every queue has exactly one member. */
	for (size_t queues = 0; queues < 20; queues++)
		for (size_t members = 1; members < 25; members++) {
			size_t next = 0;
			for (size_t at = 0; at < members; at++) {
				balance_share(queues, members, at, &first, &n);
				if (n)
					assert_int_equal(first, next);
				next += n;
			}
			assert_int_equal(next, queues);
		}
}

/* ---- The window ------------------------------------------------------------------------------------------------------ */

static void the_window_settles_in_any_order(void **state)
{
	struct window w = { 0 };
	int order[1000];

	srand(7);
	for (int round = 0; round < 20; round++) {
		int n = 1 + rand() % 1000;
		for (int i = 0; i < n; i++) {
			order[i] = i;
			window_push(&w, 1000 * round + 2 * i); /* offsets with gaps */
		}
		for (int i = n - 1; i > 0; i--) {
			int j = rand() % (i + 1), t = order[i];
			order[i] = order[j];
			order[j] = t;
		}
		for (int i = 0; i < n; i++) {
			assert_int_equal(w.open, n - i);
			assert_false(window_settle(&w, 1000 * round + 2 * order[i] + 1, true));
			assert_true(window_settle(&w, 1000 * round + 2 * order[i], true));
			assert_false(window_settle(&w, 1000 * round + 2 * order[i], true));
		}
		assert_int_equal(w.n, 0);
		assert_int_equal(w.open, 0);
		if (n > 900)
			round++; /* keep the rounds' offsets apart */
	}
	window_free(&w);
}

#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(looking_from_the_beginning_sees_everything_in_order_and_ends),
		T(looking_starts_where_it_is_told),
		T(looking_goes_on_with_what_comes_later),
		T(the_user_may_say_where_to_start_in_each_queue),
		T(messages_that_come_while_it_looks_are_not_part_of_the_end),
		T(a_topic_that_is_not_there_ends_looking),
		T(a_queue_that_is_not_there_ends_looking),
		T(a_refusal_ends_looking_with_the_brokers_words),
		T(tags_are_compared_by_name_too),
		T(compressed_and_damaged_messages),
		T(pausing_holds_messages_and_loses_none),
		T(a_member_says_so_before_it_pulls_and_goes_on_where_the_group_stands),
		T(topics_that_are_found_late_do_not_delay_the_start),
		T(a_new_group_starts_as_told_and_its_place_is_stored),
		T(only_what_is_settled_in_order_is_committed),
		T(many_messages_are_committed_before_the_time),
		T(a_member_that_joins_finds_what_was_done),
		T(three_taken_of_many_move_the_group_by_three),
		T(the_window_bounds_what_is_handed_out_and_not_settled),
		T(filtered_messages_move_the_group_too),
		T(an_offset_beyond_the_end_goes_to_the_end),
		T(an_offset_that_was_deleted_goes_to_the_smallest),
		T(a_reset_at_the_broker_is_followed_back),
		T(a_reset_that_is_sent_to_the_client_is_followed),
		T(commits_are_repeated_until_the_broker_takes_them),
		T(an_offset_that_cannot_be_stored_is_told_at_the_end),
		T(a_broker_that_restarts_costs_nothing),
		T(a_broker_that_stays_away_is_told_once),
		T(a_refused_pull_of_a_member_is_tried_again),
		T(silence_at_the_start_of_a_queue_is_asked_again),
		T(a_group_waits_for_its_topic),
		T(what_was_sent_back_to_the_group_comes_too),
		T(one_queue_of_a_group_is_read_without_being_a_member),
		T(what_cannot_be_done_is_refused_at_once),
		T(queues_are_shared_out_as_members_come_and_go),
		T(a_lost_queue_is_committed_once_and_settling_it_later_does_nothing),
		T(an_id_that_is_listed_twice_counts_once),
		T(a_broker_that_forgot_us_is_told_and_we_keep_our_queues),
		T(notices_that_come_together_cause_few_rounds),
		T(a_second_broker_in_the_route_is_taken_up),
		cmocka_unit_test(shares_are_those_of_the_peer),
		cmocka_unit_test(the_window_settles_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
