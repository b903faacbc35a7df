/* test_broker_pop_kill.c: kill -9 of a broker while messages are popped, acked, put off: what was acknowledged never comes again, and
 * what is lent not before its time is over, but then it does.  A pop in order is answered before its file is saved, so the batches of
 * a life's last moment may come earlier; what its acks say holds.
 *
 * The broker runs in a child; this process asks over a plain socket.  MQ_KILL_ROUNDS: how often it is killed (8). */
#include "broker_child.h"
#include "base/clock.h"
#include "base/str.h"
#include "codec/message.h"
#include "codec/property.h"
#include "codec/receipt.h"
#include "codec/request.h"
#include "tempdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { QUEUES = 4, MESSAGES = 600, INVISIBLE_MS = 1500, LIMIT_MS = 120000 };

/* One message, by the number that is its body. */
static struct known {
	bool acked;             /* answered so */
	bool asked;             /* an ack was sent, and the broker killed before it answered */
	int64_t until;          /* wall time at which the broker said that it comes again; 0: never lent */
	int lent;
	int64_t asked_at;       /* t.asks when it was lent */
	struct mq_str handle;   /* of the last time; owned */
	char topic[64];         /* where it lies: T or a topic of retries */
	int64_t off;
	int32_t queue;
} book[MESSAGES];

static struct {
	pid_t pid;
	int fd;
	struct buf out, in;
	size_t used;
	unsigned seed;
	bool order;
	int64_t asks, saved;    /* pops so far; those that came before what was answered when all was saved */
	int64_t again, acks, changes, refused; /* counted for what is said at the end */
} t;

static int any(int n)
{
	return rand_r(&t.seed) % n;
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------------- */

static void start(const char *dir, int round)
{
	/* Files that are saved all the time or never: what a kill leaves of them is older or younger than the log. */
	static const char *const often[] = { "flushConsumerOffsetInterval=100", "timerFlushIntervalMs=100", NULL };
	static const char *const seldom[] = { "flushConsumerOffsetInterval=3600000", "timerFlushIntervalMs=3600000", NULL };
	static const char *const safe[] = { "flushDiskType=SYNC_FLUSH", NULL };
	static const char *const *const props[] = { seldom, often, safe };
	int port;

	t.pid = broker_child_start(dir, props[round % 3], &port);
	t.fd = broker_child_dial(port);
	t.in.n = t.used = 0;
}

static void end(void)
{
	broker_child_kill(t.pid);
	t.pid = 0;
	close(t.fd);
	for (int i = 0; t.order && i < MESSAGES; i++)
		if (book[i].asked_at > t.saved)
			book[i].until = 0;
}

static void begin(struct frame_out *o, int32_t code)
{
	frame_request(o, &t.out, FRAME_JSON, code, 1, 0);
}

static struct frame finish(struct frame_out *o)
{
	struct frame f;

	frame_end(o);
	assert_true(broker_child_put(t.fd, &t.out));
	assert_true(broker_child_next(t.fd, &t.in, &t.used, &f));
	return f;
}

static int64_t field(const struct frame *f, const char *key)
{
	int64_t v = -1;

	assert_int_equal(str_i64(frame_get(f, key), &v), 0);
	return v;
}

static void make_group(void)
{
	struct frame_out o;

	begin(&o, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP);
	frame_body(&o);
	buf_cstr(o.buf, "{\"groupName\":\"g\"}");
	assert_int_equal(finish(&o).code, RESP_SUCCESS);
}

static void send_all(void)
{
	for (int i = 0; i < MESSAGES; i++) {
		struct frame_out o;
		char body[16];

		begin(&o, REQ_SEND_MESSAGE_V2);
		frame_cstr(&o, "a", "pg");
		frame_cstr(&o, "b", "T");
		frame_cstr(&o, "c", "TBW102");
		frame_i64(&o, "d", QUEUES);
		frame_i64(&o, "e", i % QUEUES);
		frame_cstr(&o, "f", "0");
		frame_cstr(&o, "g", "1700000000000");
		frame_cstr(&o, "h", "0");
		frame_cstr(&o, "i", "");
		frame_body(&o);
		snprintf(body, sizeof body, "%d", i);
		buf_cstr(o.buf, body);
		assert_int_equal(finish(&o).code, RESP_SUCCESS);
	}
}

/* An ack (ms < 0) or another time. */
static void about(struct frame_out *o, const struct known *k, int64_t ms)
{
	begin(o, ms < 0 ? REQ_ACK_MESSAGE : REQ_CHANGE_MESSAGE_INVISIBLETIME);
	frame_cstr(o, "consumerGroup", "g");
	frame_cstr(o, "topic", k->topic);
	frame_i64(o, "queueId", k->queue);
	frame_str(o, "extraInfo", k->handle);
	frame_i64(o, "offset", k->off);
	if (ms >= 0)
		frame_i64(o, "invisibleTime", ms);
}

/* ---- What is lent ---------------------------------------------------------------------------------------------------------- */

static int64_t start_of(const struct frame *f, enum receipt_retry retry, int32_t queue)
{
	struct mq_str info = frame_get(f, "startOffsetInfo"), one, part[3];
	int64_t start = -1;

	while (start < 0 && str_split(&info, ';', &one)) {
		int32_t r, q;

		for (int i = 0; i < 3; i++)
			assert_true(str_split(&one, ' ', &part[i]));
		assert_int_equal(str_i32(part[0], &r), 0);
		assert_int_equal(str_i32(part[1], &q), 0);
		if (r == (int32_t)retry && q == queue)
			assert_int_equal(str_i64(part[2], &start), 0);
	}
	assert_true(start >= 0);
	return start;
}

static void new_handle(struct known *k, const struct receipt *r)
{
	struct buf text = { 0 };

	receipt_write(r, &text);
	free((char *)k->handle.p); /* r may be of it */
	k->handle = (struct mq_str){ text.p, text.n }; /* the buffer's memory is the handle's now */
	k->until = r->pop_ms + r->invisible_ms;
}

static struct known *lent(const struct frame *f, const struct mq_message *m)
{
	struct mq_str ck = mq_prop_get(m->props, PROP_POP_CK);
	struct receipt r = { .queue_id = m->queue_id, .off = m->queue_off, .broker = MQ_STR("b") };
	char name[RECEIPT_TOPIC_MAX + 1];
	int64_t now = clock_wall_ms();
	struct known *k;
	int32_t number;

	assert_int_equal(str_i32(m->body, &number), 0);
	assert_in_range(number, 0, MESSAGES - 1);
	k = &book[number];
	if (k->acked)
		fail_msg("message %d was acknowledged, and comes again", number);
	if (now < k->until)
		fail_msg("message %d comes again %lld ms before its time is over", number, (long long)(k->until - now));
	t.again += k->lent++ > 0;
	if (ck.p) {
		assert_int_equal(receipt_parse(ck, &r, NULL), 0);
	} else {
		r.retry = receipt_retry_of(m->topic);
		r.start = start_of(f, r.retry, m->queue_id);
		r.pop_ms = field(f, "popTime");
		r.invisible_ms = field(f, "invisibleTime");
		r.revive_queue = (int32_t)field(f, "reviveQid");
	}
	snprintf(k->topic, sizeof k->topic, "%s", receipt_topic(name, r.retry, MQ_STR("T"), MQ_STR("g")).p);
	k->off = m->queue_off;
	k->queue = m->queue_id;
	k->asked = false;
	k->asked_at = t.asks;
	new_handle(k, &r);
	return k;
}

/* How many came; they are in v. */
static size_t pop(struct known **v, int max, int64_t poll_ms)
{
	struct frame_out o;
	struct frame f;
	struct mq_str rest;
	size_t n = 0;

	t.asks++;
	begin(&o, REQ_POP_MESSAGE);
	frame_cstr(&o, "consumerGroup", "g");
	frame_cstr(&o, "topic", "T");
	frame_i64(&o, "queueId", t.order ? any(QUEUES) : -1);
	frame_i64(&o, "maxMsgNums", max);
	frame_i64(&o, "invisibleTime", INVISIBLE_MS);
	frame_i64(&o, "pollTime", poll_ms);
	frame_i64(&o, "bornTime", 0);
	frame_cstr(&o, "initMode", "0");
	frame_cstr(&o, "exp", "*");
	frame_cstr(&o, "expType", "TAG");
	frame_bool(&o, "order", t.order);
	f = finish(&o);
	if (f.code == RESP_TOPIC_NOT_EXIST || f.code == RESP_SUBSCRIPTION_GROUP_NOT_EXIST)
		fail_msg("pop: code %d " MQ_STR_FMT, f.code, MQ_STR_ARG(f.remark));
	rest = f.code == RESP_SUCCESS ? f.body : (struct mq_str){ 0 };
	while (rest.n) {
		struct mq_message m;
		int32_t size = mq_message_decode(rest.p, rest.n, false, &m);

		assert_true(size > 0 && n < RECEIPT_POP_MAX);
		v[n++] = lent(&f, &m);
		rest.p += size;
		rest.n -= (size_t)size;
	}
	return n;
}

/* In order nothing is acknowledged before what is in front of it: it would come again with that. */
static bool has_its_turn(const struct known *k)
{
	for (const struct known *x = k - QUEUES; t.order && x >= book; x -= QUEUES)
		if (!x->acked)
			return false;
	return true;
}

static void ack(struct known *k)
{
	struct frame_out o;
	struct frame f;

	if (!has_its_turn(k))
		return;
	about(&o, k, -1);
	f = finish(&o);
	if (f.code == RESP_SUCCESS) {
		k->acked = true;
		t.acks++;
		t.saved = t.asks;
		return;
	}
	t.refused++;
	if (clock_wall_ms() < k->until)
		fail_msg("an ack %lld ms before the time is over: code %d " MQ_STR_FMT, (long long)(k->until - clock_wall_ms()), f.code,
			 MQ_STR_ARG(f.remark));
}

static void change(struct known *k)
{
	struct frame_out o;
	struct frame f;
	struct receipt r;

	about(&o, k, any(4) ? 500 + any(2000) : 0);
	f = finish(&o);
	if (f.code != RESP_SUCCESS) {
		t.refused++;
		if (clock_wall_ms() < k->until)
			fail_msg("another time %lld ms before the time is over: code %d " MQ_STR_FMT ", handle " MQ_STR_FMT,
				 (long long)(k->until - clock_wall_ms()), f.code, MQ_STR_ARG(f.remark), MQ_STR_ARG(k->handle));
		return;
	}
	t.changes++;
	t.saved = t.asks;
	assert_int_equal(receipt_parse(k->handle, &r, NULL), 0);
	r.pop_ms = field(&f, "popTime");
	r.invisible_ms = field(&f, "invisibleTime");
	r.revive_queue = (int32_t)field(&f, "reviveQid");
	if (r.revive_queue != RECEIPT_ORDER_QUEUE)
		r.start = k->off;
	new_handle(k, &r);
}

/* ---- Lives ----------------------------------------------------------------------------------------------------------------- */

static struct known *in_hand(void)
{
	int from = any(MESSAGES);

	for (int i = 0; i < MESSAGES; i++) {
		struct known *k = &book[(from + i) % MESSAGES];

		if (k->until > clock_wall_ms() && !k->acked && !k->asked)
			return k;
	}
	return NULL;
}

static void live(int64_t ms)
{
	int64_t end_us = clock_mono_us() + ms * 1000;
	struct known *v[RECEIPT_POP_MAX], *k;
	struct frame_out o;

	while (clock_mono_us() < end_us) {
		size_t n = pop(v, 1 + any(6), 0);

		for (size_t i = 0; i < n; i++) {
			int what = any(10);

			if (what < 4)
				ack(v[i]);
			else if (what < 6)
				change(v[i]);
		}
		k = any(3) ? NULL : in_hand(); /* from an earlier pop, or an earlier life */
		if (k && any(2))
			ack(k);
		else if (k)
			change(k);
		usleep(n ? 2000 : 20000);
	}
	k = any(2) ? in_hand() : NULL;
	if (k && has_its_turn(k)) { /* nobody will know whether it counts */
		about(&o, k, -1);
		frame_end(&o);
		k->asked = broker_child_put(t.fd, &t.out);
	} else {
		pop(v, RECEIPT_POP_MAX, 0); /* lent, and in the same moment killed */
	}
}

static int missing(void)
{
	int n = 0;

	for (int i = 0; i < MESSAGES; i++)
		n += !book[i].acked && !book[i].asked;
	return n;
}

static void settle(void)
{
	int64_t limit = clock_mono_us() + LIMIT_MS * 1000LL, quiet = INT64_MAX;
	struct known *v[RECEIPT_POP_MAX];

	/* To the end, and then long enough for whatever is left to come again. */
	while (clock_mono_us() < quiet && clock_mono_us() < limit) {
		size_t n = pop(v, RECEIPT_POP_MAX, 100);

		for (size_t i = 0; i < n; i++)
			ack(v[i]);
		if (n || missing())
			quiet = clock_mono_us() + (INVISIBLE_MS + 2000) * 1000LL;
	}
	for (int i = 0; i < MESSAGES; i++)
		if (!book[i].acked && !book[i].asked)
			fail_msg("message %d never comes again: lent %d times, its time was over %lld ms ago", i, book[i].lent,
				 (long long)(clock_wall_ms() - book[i].until));
}

static void acks_count_and_times_hold(const char *dir)
{
	const char *env = getenv("MQ_KILL_ROUNDS"), *seed = getenv("MQ_SEED");
	int rounds = env ? atoi(env) : 8;
	unsigned first = seed ? (unsigned)atoi(seed) : (unsigned)getpid();

	t.seed = first;
	fprintf(stderr, "# MQ_SEED=%u\n", first);
	for (int i = 0; i < rounds; i++) {
		start(dir, i);
		if (i == 0 && t.order)
			make_group();
		if (i == 0)
			send_all();
		live(50 + any(700));
		end();
	}
	start(dir, 1);
	settle();
	end();
	fprintf(stderr, "# %d kills, %lld acks, %lld changes, %lld came again, %lld were too late\n", rounds, (long long)t.acks,
		(long long)t.changes, (long long)t.again, (long long)t.refused);
	assert_true(t.acks > rounds && t.again > 0);
}

static void what_was_acknowledged_never_comes_again_and_what_is_lent_not_before_its_time(void **state)
{
	t.order = false;
	acks_count_and_times_hold(*state);
}

static void in_order_too(void **state)
{
	t.order = true;
	acks_count_and_times_hold(*state);
}

static int setup(void **state)
{
	return tempdir_make(state);
}

static int teardown(void **state)
{
	if (t.pid > 0)
		broker_child_kill(t.pid); /* a look has failed */
	for (int i = 0; i < MESSAGES; i++)
		free((char *)book[i].handle.p);
	memset(book, 0, sizeof book);
	buf_free(&t.out);
	buf_free(&t.in);
	memset(&t, 0, sizeof t);
	return tempdir_remove(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_acknowledged_never_comes_again_and_what_is_lent_not_before_its_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(in_order_too, setup, teardown),
	};

	return cmocka_run_group_tests_name("broker_pop_kill", tests, NULL, NULL);
}
