/* test_client_broker.c: the client with the real broker, which it starts itself: what goes in comes out, once, in order. */
#include "fake.h"
#include "tempdir.h"
#include "base/clock.h"
#include "base/str.h"
#include <mqclient.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MANY = 20000 };

struct world {
	char *dir;
	char addr[600];
	uv_loop_t loop;
	struct mqclient *c, *c2;
	struct mq_error e;
	int sent, ok, in_flight;
	uint8_t *accepted;          /* [i]: message i was told to be stored */
};

/* One consumer and what it got. */
struct reader {
	struct world *w;
	struct mqclient_consumer *k;
	int got, ended, again;
	int *times;                 /* [i]: so often message i came */
	int64_t last[64];           /* per queue: offset */
	int last_number[64];        /* per queue: number in the body */
	bool ordered;
	size_t queues;
	char body[5000], props[200];
	struct mq_error trouble;
};

static struct mqclient *open_client(struct world *w)
{
	struct mqclient_opt opt = { .addr = w->addr, .loop = &w->loop };
	struct mqclient *c;

	if (mqclient_open(&c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
	return c;
}

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	if (tempdir_make((void **)&w->dir) < 0)
		return -1;
	snprintf(w->addr, sizeof w->addr, "file:%s/q", w->dir);
	uv_loop_init(&w->loop);
	w->accepted = calloc(MANY, 1);
	w->c = open_client(w);
	*state = w;
	return 0;
}

/* The broker's process: the file that says it runs has its number. */
static int broker_pid(struct world *w)
{
	char *text = tempdir_read(tempdir_path(w->dir, "q/abort"));
	int pid = text ? atoi(text) : 0;

	free(text);
	return pid;
}

static int stop(void **state)
{
	struct world *w = *state;
	int pid;

	mqclient_free(w->c2, 1000);
	mqclient_free(w->c, 1000);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	pid = broker_pid(w);
	if (pid > 0)
		kill(pid, SIGKILL);
	free(w->accepted);
	tempdir_remove((void **)&w->dir);
	free(w);
	return 0;
}

/* ---- Sending --------------------------------------------------------------------------------------------------------- */

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct world *w = arg;

	w->in_flight--;
	w->sent++;
	w->ok += r->rc == 0;
	if (r->rc < 0)
		w->e = r->err;
}

static void turn(struct world *w)
{
	int rc = mqclient_run(w->c, 5000);

	assert_true(rc >= 0);
}

/* Messages "0", "1", ... to `topic`, with up to 1,024 in flight. */
static void send_numbers(struct world *w, const char *topic, int from, int to, const struct mqclient_send_opt *opt)
{
	char body[20];

	for (int i = from; i < to; i++) {
		struct mq_message m = { .topic = str_of(topic), .body = { body, (size_t)snprintf(body, sizeof body, "%d", i) } };
		while (w->in_flight >= 1024)
			turn(w);
		if (mqclient_send(w->c, &m, 1, opt, on_sent, w, &w->e) < 0)
			fail_msg("%s", w->e.text);
		w->in_flight++;
	}
}

static void finish_sends(struct world *w)
{
	while (w->in_flight)
		turn(w);
}

/* ---- Receiving ------------------------------------------------------------------------------------------------------- */

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct reader *r = arg;
	int64_t number = -1;

	r->got++;
	snprintf(r->body, sizeof r->body, MQ_STR_FMT, MQ_STR_ARG(body));
	snprintf(r->props, sizeof r->props, MQ_STR_FMT, MQ_STR_ARG(m->props));
	if (str_i64(body, &number) == 0 && number >= 0 && number < MANY && r->times) {
		r->again += r->times[number]++ > 0;
		if (r->last_number[q->id] >= number)
			r->ordered = false;
		r->last_number[q->id] = (int)number;
	}
	if (m->queue_off != r->last[q->id] + 1 && r->last[q->id] >= 0)
		r->ordered = false;
	r->last[q->id] = m->queue_off;
	mqclient_settle(r->k, m->topic, q, m->queue_off, true);
}

static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
	struct reader *r = arg;

	if (!str_starts(topic, "%RETRY%"))
		r->queues = n;
}

static void on_ended(void *arg)
{
	((struct reader *)arg)->ended = 1;
}

static void on_trouble(void *arg, const struct mq_error *e, bool fatal)
{
	((struct reader *)arg)->trouble = *e;
}

static void reader_start(struct reader *r, struct world *w, struct mqclient *c, const char *group, bool stop_at_end)
{
	static const struct mqclient_consume_ops ops = { .message = on_message, .assigned = on_assigned, .ended = on_ended,
		                                         .trouble = on_trouble };
	struct mq_str topic = MQ_STR("t");
	struct mqclient_consume_opt opt = { .group = group, .topics = &topic, .ntopics = 1, .start = MQCLIENT_BEGIN,
		                            .stop_at_end = stop_at_end };

	*r = (struct reader){ .w = w, .ordered = true };
	memset(r->last, -1, sizeof r->last);
	memset(r->last_number, -1, sizeof r->last_number);
	r->times = calloc(MANY, sizeof *r->times);
	if (mqclient_consume(c, &r->k, &opt, &ops, r, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static void reader_stop(struct reader *r)
{
	if (mqclient_consumer_free(r->k, 3000, &r->w->e) < 0)
		fail_msg("%s", r->w->e.text);
	free(r->times);
}

static bool ended(void *arg)
{
	return ((struct reader *)arg)->ended;
}

static void read_all(struct reader *r, struct world *w, const char *group)
{
	reader_start(r, w, w->c, group, true);
	if (!fake_until(&w->loop, ended, r, 20000))
		fail_msg("no end after %d messages; trouble: %s", r->got, r->trouble.text);
}

/* ---- Tests ----------------------------------------------------------------------------------------------------------- */

static void a_message_goes_in_and_out_with_nothing_set_up(void **state)
{
	struct world *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("hello"), .props = MQ_STR("KEYS\1k1\2TAGS\1red\2color\1blue\2") };
	struct reader r;

	w->in_flight = 1;
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_sent, w, &w->e), 0);
	finish_sends(w);
	if (w->ok != 1)
		fail_msg("%s", w->e.text);
	read_all(&r, w, NULL);
	assert_int_equal(r.got, 1);
	assert_string_equal(r.body, "hello");
	assert_true(str_is(mq_prop_get(str_of(r.props), "color"), "blue"));
	assert_true(str_is(mq_prop_get(str_of(r.props), "KEYS"), "k1"));
	reader_stop(&r);
}

static void what_goes_in_comes_out_once_and_in_order(void **state)
{
	struct world *w = *state;
	struct reader r;

	send_numbers(w, "t", 0, MANY, NULL);
	finish_sends(w);
	assert_int_equal(w->ok, MANY);
	read_all(&r, w, "g");
	assert_int_equal(r.got, MANY);
	assert_int_equal(r.again, 0);
	assert_true(r.ordered);
	reader_stop(&r);
	/* The group has had it all, another has not. */
	read_all(&r, w, "g");
	assert_int_equal(r.got, 0);
	reader_stop(&r);
	read_all(&r, w, "other");
	assert_int_equal(r.got, MANY);
	reader_stop(&r);
}

static void batches_and_compressed_bodies_come_out_plain(void **state)
{
	static const int types[] = { MQ_SYS_COMPRESS_ZLIB, MQ_SYS_COMPRESS_LZ4, MQ_SYS_COMPRESS_ZSTD };
	struct world *w = *state;
	struct mq_message m[32];
	struct reader r;
	char body[32][16], text[5000];

	for (int i = 0; i < 32; i++)
		m[i] = (struct mq_message){ .topic = MQ_STR("t"), .body = { body[i], (size_t)snprintf(body[i], 16, "%d", i) } };
	for (int i = 0; i < 10; i++, w->in_flight++)
		assert_int_equal(mqclient_send(w->c, m, 32, NULL, on_sent, w, &w->e), 0);
	finish_sends(w);
	assert_int_equal(w->ok, 10);
	read_all(&r, w, "g");
	assert_int_equal(r.got, 320);
	for (int i = 0; i < 32; i++)
		assert_int_equal(r.times[i], 10);
	reader_stop(&r);

	memset(text, 'z', sizeof text - 1);
	text[sizeof text - 1] = 0;
	for (int i = 0; i < 3; i++) {
		struct mqclient_send_opt opt = { .compress_over = 4096, .compress_type = types[i], .retries = -1 };
		m[0].body = str_of(text);
		w->in_flight++;
		assert_int_equal(mqclient_send(w->c, m, 1, &opt, on_sent, w, &w->e), 0);
		finish_sends(w);
		read_all(&r, w, "g");
		assert_int_equal(r.got, 1);
		assert_string_equal(r.body, text);
		reader_stop(&r);
	}
}

static struct reader *first, *second;

static bool shared_in_halves(void *arg)
{
	return first->queues == 2 && second->queues == 2;
}

static bool first_has_all(void *arg)
{
	return first->queues == 4;
}

static int wanted;

static bool together(void *arg)
{
	return first->got + second->got >= wanted;
}

static void two_members_share_the_work_and_one_takes_over(void **state)
{
	struct world *w = *state;
	struct reader r1, r2;

	w->c2 = open_client(w);
	first = &r1;
	second = &r2;
	send_numbers(w, "t", 0, 100, NULL);
	finish_sends(w);
	reader_start(&r1, w, w->c, "g", false);
	wanted = 100;
	r2.got = 0;
	assert_true(fake_until(&w->loop, together, w, 10000));
	/* Members that come within half a second are announced together, so what is done is committed before. */
	mqclient_commit(r1.k);
	fake_run(&w->loop, 20);
	reader_start(&r2, w, w->c2, "g", false);
	assert_true(fake_until(&w->loop, shared_in_halves, w, 10000));
	send_numbers(w, "t", 100, 5000, NULL);
	finish_sends(w);
	wanted = 5000;
	assert_true(fake_until(&w->loop, together, w, 10000));
	fake_run(&w->loop, 50);
	assert_int_equal(r1.got + r2.got, 5000);
	assert_true(r2.got > 2000);
	reader_stop(&r2);
	mqclient_free(w->c2, 1000);
	w->c2 = NULL;
	assert_true(fake_until(&w->loop, first_has_all, w, 10000));
	wanted = 6000 - r2.got;
	r2.got = 0;
	send_numbers(w, "t", 5000, 6000, NULL);
	finish_sends(w);
	assert_true(fake_until(&w->loop, together, w, 10000));
	fake_run(&w->loop, 50);
	assert_int_equal(r1.got, wanted);
	reader_stop(&r1);
}

/* Whatever was told to be stored is there after the broker was killed; it is started again by the next request. */
static void nothing_that_was_accepted_is_lost_when_the_broker_is_killed(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = 5, .timeout_ms = 10000 };
	struct reader r;

	send_numbers(w, "t", 0, 1, &opt);
	finish_sends(w);
	w->ok = 0;
	for (int i = 0; i < 5; i++) {
		send_numbers(w, "t", i * 2000, i * 2000 + 1000, &opt);
		turn(w);
		int pid = broker_pid(w);
		assert_true(pid > 1);
		kill(pid, SIGKILL);
		send_numbers(w, "t", i * 2000 + 1000, i * 2000 + 2000, &opt);
		finish_sends(w);
		if (w->ok != (i + 1) * 2000)
			fail_msg("%d of %d sends were accepted: %s", w->ok, (i + 1) * 2000, w->e.text);
	}
	read_all(&r, w, NULL);
	for (int i = 0; i < 10000; i++)
		if (!r.times[i])
			fail_msg("message %d is lost", i);
	reader_stop(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_message_goes_in_and_out_with_nothing_set_up),
		T(what_goes_in_comes_out_once_and_in_order),
		T(batches_and_compressed_bodies_come_out_plain),
		T(two_members_share_the_work_and_one_takes_over),
		T(nothing_that_was_accepted_is_lost_when_the_broker_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
