/* test_broker_pop.c: pop consumption of a whole broker: what is popped, acked, put off, comes again; who waits and who is woken; ordered
 * pops; over restarts and kills. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/property.h"
#include "codec/receipt.h"
#include "golden_store.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/order_table.h"
#include "../../bin/broker/revive.h"
#include "../../bin/broker/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

struct fixture {
	struct broker_kit *k;
	struct conn *c;
	void *dir;
	int64_t shifted;
};

static void start(struct fixture *f, const char *const *props)
{
	struct mq_error e = { 0 };

	f->k = broker_kit_start_in(f->dir, props, &e);
	if (!f->k)
		fail_msg("%s", e.text);
	f->c = broker_kit_dial(f->k, false);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	if (tempdir_make(&f->dir) < 0)
		return -1;
	start(f, NULL);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->k)
		broker_kit_stop(f->k);
	clock_shift_wall(-f->shifted);
	tempdir_remove(&f->dir);
	free(f);
	return 0;
}

static void restart(struct fixture *f, const char *const *props)
{
	broker_kit_stop(f->k);
	f->k = NULL;
	start(f, props);
}

static struct broker *broker(struct fixture *f)
{
	return broker_kit_broker(f->k);
}

/* Wall time goes on at once. */
static void pass(struct fixture *f, int64_t ms)
{
	f->shifted += ms;
	clock_shift_wall(ms);
	clock_refresh();
	timer_run(broker(f)->timer);
	for (int64_t until = clock_now_ms() - 5000; timer_done_ms(broker(f)->timer) < until;)
		broker_kit_run(f->k, 1);
	revive_run(broker(f)->revive);
	broker_kit_settle(f->k);
}

static void make(struct fixture *f, const char *topic, const char *queues)
{
	struct asked *a = ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC, NONE, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", queues,
			      "writeQueueNums", queues, "perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false",
			      NULL);

	assert_int_equal(a->code, RESP_SUCCESS);
}

static void put(struct fixture *f, const char *topic, int queue, const char *bodies, const char *tag)
{
	char body[32];

	for (const char *p = bodies; *p;) {
		int n = (int)strcspn(p, " ");

		snprintf(body, sizeof body, "%.*s", n, p);
		assert_int_equal(kit_send(f->k, f->c, topic, queue, body, tag)->code, RESP_SUCCESS);
		p += n;
		p += strspn(p, " ");
	}
}

struct how {
	int queue, max, invisible, poll, init;
	const char *exp, *type, *attempt;
	bool order;
};

static struct asked *pop_later(struct fixture *f, struct conn *c, const char *group, const char *topic, struct how h)
{
	char queue[16], max[16], invisible[16], poll[16], init[16], born[24];

	snprintf(queue, sizeof queue, "%d", h.queue);
	snprintf(max, sizeof max, "%d", h.max ? h.max : 32);
	snprintf(invisible, sizeof invisible, "%d", h.invisible ? h.invisible : 60000);
	snprintf(poll, sizeof poll, "%d", h.poll);
	snprintf(init, sizeof init, "%d", h.init);
	snprintf(born, sizeof born, "%lld", (long long)clock_wall_ms());
	return ask_later(f->k, c, REQ_POP_MESSAGE, NONE, "consumerGroup", group, "topic", topic, "queueId", queue, "maxMsgNums", max,
			 "invisibleTime", invisible, "pollTime", poll, "bornTime", born, "initMode", init, "exp", h.exp ? h.exp : "*",
			 "expType", h.type ? h.type : "TAG", "order", h.order ? "true" : "false", "attemptId", h.attempt ? h.attempt : "", NULL);
}

/* The answer is good until the next of these. */
static struct asked *pop(struct fixture *f, const char *group, const char *topic, struct how h)
{
	static struct asked *last;

	asked_free(last);
	last = pop_later(f, f->c, group, topic, h);
	asked_wait(f->k, last);
	return last;
}

static const struct how any = { .queue = -1 };

/* One message of a pop's answer, with its handle. */
struct message {
	char body[64], topic[256], handle[256];
	int64_t off;
	int32_t queue, times;
};

/* What is in the answer; n messages at most.  Handles are put together from the header as clients do. */
static size_t messages(const struct asked *a, struct message *v, size_t max)
{
	struct mq_str rest = buf_view(&a->body);
	size_t n = 0;

	while (rest.n && n < max) {
		struct mq_message m;
		int32_t size = mq_message_decode(rest.p, rest.n, false, &m);
		struct mq_str ck;
		struct buf text = { 0 };

		assert_true(size > 0);
		ck = mq_prop_get(m.props, PROP_POP_CK);
		v[n] = (struct message){ .off = m.queue_off, .queue = m.queue_id, .times = m.reconsume_times };
		snprintf(v[n].body, sizeof v[n].body, MQ_STR_FMT, MQ_STR_ARG(m.body));
		snprintf(v[n].topic, sizeof v[n].topic, MQ_STR_FMT, MQ_STR_ARG(m.topic));
		if (!ck.p) {
			struct mq_str starts = str_of(asked_get(a, "startOffsetInfo")), one, f[3];
			struct receipt r = { .pop_ms = asked_i64(a, "popTime"), .invisible_ms = asked_i64(a, "invisibleTime"),
					     .revive_queue = (int32_t)asked_i64(a, "reviveQid"), .queue_id = m.queue_id, .off = m.queue_off,
					     .broker = MQ_STR("b") };

			while (str_split(&starts, ';', &one)) {
				int32_t queue;

				for (int i = 0; i < 3; i++)
					assert_true(str_split(&one, ' ', &f[i]));
				assert_int_equal(str_i32(f[1], &queue), 0);
				if (str_is(f[0], "0") && queue == m.queue_id)
					assert_int_equal(str_i64(f[2], &r.start), 0);
			}
			receipt_write(&r, &text);
			ck = buf_view(&text);
		}
		snprintf(v[n].handle, sizeof v[n].handle, MQ_STR_FMT, MQ_STR_ARG(ck));
		buf_free(&text);
		n++;
		rest.p += size;
		rest.n -= (size_t)size;
	}
	return n;
}

static const char *bodies(const struct asked *a)
{
	static struct buf text;
	struct message v[32];
	size_t n = messages(a, v, 32);

	text.n = 0;
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", v[i].body);
	buf_char(&text, 0);
	return text.p;
}

static const char *real_topic(const char *topic, const char *group, const struct message *m)
{
	static char name[RECEIPT_TOPIC_MAX + 1];
	struct receipt r;

	assert_int_equal(receipt_parse(str_of(m->handle), &r, NULL), 0);
	receipt_topic(name, r.retry, str_of(topic), str_of(group));
	return name;
}

static int ack(struct fixture *f, const char *group, const char *topic, const struct message *m)
{
	char queue[16], off[24];

	snprintf(queue, sizeof queue, "%d", m->queue);
	snprintf(off, sizeof off, "%lld", (long long)m->off);
	return ask(f->k, f->c, REQ_ACK_MESSAGE, NONE, "consumerGroup", group, "topic", real_topic(topic, group, m), "queueId", queue,
		   "extraInfo", m->handle, "offset", off, NULL)->code;
}

static struct asked *change(struct fixture *f, const char *group, const char *topic, const struct message *m, const char *ms)
{
	char queue[16], off[24];

	snprintf(queue, sizeof queue, "%d", m->queue);
	snprintf(off, sizeof off, "%lld", (long long)m->off);
	return ask(f->k, f->c, REQ_CHANGE_MESSAGE_INVISIBLETIME, NONE, "consumerGroup", group, "topic", real_topic(topic, group, m),
		   "queueId", queue, "extraInfo", m->handle, "offset", off, "invisibleTime", ms, NULL);
}

static int64_t offset(struct fixture *f, const char *topic, const char *group, int queue)
{
	return offset_table_get(broker(f)->offsets, str_of(topic), str_of(group), queue);
}

/* ---- Popping --------------------------------------------------------------------------------------------------------------- */

static void a_clock_set_back_or_ahead_brings_back_what_is_due_by_it_and_once(void **state)
{
	struct fixture *f = *state;
	struct message v[32];
	struct asked *a;

	make(f, "T", "1");
	put(f, "T", 0, "a b", NULL);
	a = pop(f, "g", "T", any);
	assert_int_equal(messages(a, v, 32), 2);
	pass(f, -10000);
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_POLLING_TIMEOUT);
	pass(f, 62000); /* a minute is over, but not by this clock */
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_POLLING_TIMEOUT);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	pass(f, 600000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "b");
	pass(f, -600000);
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_POLLING_TIMEOUT);
}

static void what_is_popped_is_gone_until_its_time_is_over(void **state)
{
	struct fixture *f = *state;
	struct message v[32];
	struct asked *a;

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	a = pop(f, "g", "T", any);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(bodies(a), "a b c");
	assert_string_equal(asked_get(a, "startOffsetInfo"), "0 0 0");
	assert_string_equal(asked_get(a, "msgOffsetInfo"), "0 0 0,1,2");
	assert_int_equal(asked_i64(a, "invisibleTime"), 60000);
	assert_int_equal(asked_i64(a, "restNum"), 0);
	assert_int_equal(messages(a, v, 32), 3);
	assert_int_equal(offset(f, "T", "g", 0), 3);
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_POLLING_TIMEOUT);
	assert_string_equal(bodies(pop(f, "other", "T", any)), "a b c");
	pass(f, 59000);
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_POLLING_TIMEOUT);
	assert_int_equal(ack(f, "g", "T", &v[1]), RESP_SUCCESS);
	pass(f, 3000);
	a = pop(f, "g", "T", any);
	assert_string_equal(bodies(a), "a c");
	assert_int_equal(messages(a, v, 32), 2);
	assert_string_equal(v[0].topic, "T");
	assert_int_equal(v[0].times, 1);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	pass(f, 62000);
	a = pop(f, "g", "T", any);
	assert_string_equal(bodies(a), "c");
	assert_int_equal(messages(a, v, 32), 1);
	assert_int_equal(v[0].times, 2);
}

static void queues_are_popped_alone_or_together(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	make(f, "T", "3");
	for (int i = 0; i < 3; i++)
		put(f, "T", i, "x y", NULL);
	a = pop(f, "g", "T", (struct how){ .queue = 1, .max = 1 });
	assert_string_equal(bodies(a), "x");
	assert_int_equal(asked_i64(a, "restNum"), 1);
	a = pop(f, "g", "T", any);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "");
	assert_int_equal(offset(f, "T", "g", 0) + offset(f, "T", "g", 1) + offset(f, "T", "g", 2), 6);
}

static struct asked *peek(struct fixture *f, const char *queue, const char *max)
{
	return ask(f->k, f->c, REQ_PEEK_MESSAGE, NONE, "consumerGroup", "g", "topic", "T", "queueId", queue, "maxMsgNums", max, NULL);
}

/* Bodies of an answer without handles, sorted by letter. */
static const char *shown(const struct asked *a)
{
	static char text[32];
	struct mq_str rest = buf_view(&a->body);
	bool there[26] = { false };
	size_t n = 0;

	while (rest.n) {
		struct mq_message m;
		int32_t size = mq_message_decode(rest.p, rest.n, false, &m);

		assert_true(size > 0 && m.body.n == 1);
		there[m.body.p[0] - 'a'] = true;
		rest.p += size;
		rest.n -= (size_t)size;
	}
	for (int i = 0; i < 26; i++)
		if (there[i])
			text[n++] = (char)('a' + i);
	text[n] = '\0';
	return text;
}

static void a_peek_shows_what_a_pop_would_take_and_takes_nothing(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	make(f, "T", "2");
	assert_int_equal(peek(f, "-1", "32")->code, RESP_PULL_NOT_FOUND);
	put(f, "T", 0, "a b c", NULL);
	for (int i = 0; i < 2; i++) {
		a = peek(f, "-1", "2");
		assert_int_equal(a->code, RESP_SUCCESS);
		assert_string_equal(shown(a), "ab");
		assert_int_equal(asked_i64(a, "restNum"), 3);
		assert_int_equal(asked_i64(a, "popTime"), 0);
		assert_string_equal(asked_get(a, "startOffsetInfo"), "");
		assert_int_equal(offset(f, "T", "g", 0), -1);
	}
	assert_int_equal(peek(f, "1", "32")->code, RESP_PULL_NOT_FOUND);
	assert_int_equal(peek(f, "2", "32")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(peek(f, "0", "0")->code, RESP_PULL_NOT_FOUND);
	assert_string_equal(bodies(pop(f, "g", "T", (struct how){ .queue = 0, .max = 2 })), "a b");
	assert_string_equal(shown(peek(f, "0", "1000")), "c");
	pass(f, 62000);
	a = peek(f, "0", "32"); /* what came back lies in the retry topic */
	assert_int_equal(asked_i64(a, "restNum"), 3);
	assert_string_equal(shown(a), "abc");
}

static void who_may_not_pop(void **state)
{
	struct fixture *f = *state;
	char old[24], group[140], topic[128];

	make(f, "T", "1");
	assert_int_equal(pop(f, "g", "none", any)->code, RESP_TOPIC_NOT_EXIST);
	assert_int_equal(pop(f, "g", "T", (struct how){ .queue = 1 })->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pop(f, "g", "T", (struct how){ .queue = -1, .max = 33 })->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pop(f, "g", "T", (struct how){ .queue = -1, .invisible = 259200001 })->code, RESP_SYSTEM_ERROR);
	snprintf(old, sizeof old, "%lld", (long long)clock_wall_ms() - 5000);
	assert_int_equal(ask(f->k, f->c, REQ_POP_MESSAGE, NONE, "consumerGroup", "g", "topic", "T", "queueId", "-1", "maxMsgNums", "1",
			     "invisibleTime", "1000", "pollTime", "1000", "bornTime", old, "initMode", "0", NULL)->code,
			 RESP_POLLING_TIMEOUT);
	memset(topic, 't', 127);
	memset(group, 'g', 139);
	topic[127] = group[139] = 0;
	make(f, topic, "1");
	assert_int_equal(pop(f, group, topic, any)->code, RESP_SYSTEM_ERROR);
	broker_kit_set(f->k, "autoCreateSubscriptionGroup", "false");
	assert_int_equal(pop(f, "h", "T", any)->code, RESP_SUBSCRIPTION_GROUP_NOT_EXIST);
	broker_kit_set(f->k, "brokerPermission", "2");
	assert_int_equal(pop(f, "g", "T", any)->code, RESP_NO_PERMISSION);
}

static void a_group_begins_where_it_says(void **state)
{
	struct fixture *f = *state;

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	assert_string_equal(bodies(pop(f, "young", "T", (struct how){ .queue = -1, .init = 1 })), "a b c");
	broker_kit_set(f->k, "initPopOffsetByCheckMsgInMem", "false");
	assert_string_equal(bodies(pop(f, "last", "T", (struct how){ .queue = -1, .init = 1 })), "c");
	assert_string_equal(bodies(pop(f, "first", "T", (struct how){ .queue = -1, .init = 0 })), "a b c");
}

static void pops_are_filtered(void **state)
{
	static const char *const sql[] = { "enablePropertyFilter=true", NULL };
	struct fixture *f = *state;

	restart(f, sql);
	make(f, "T", "1");
	put(f, "T", 0, "a", "red");
	put(f, "T", 0, "b", "blue");
	put(f, "T", 0, "c", "red");
	assert_string_equal(bodies(pop(f, "g", "T", (struct how){ .queue = -1, .exp = "blue||green" })), "b");
	assert_int_equal(offset(f, "T", "g", 0), 3);
	pass(f, 61000);
	assert_string_equal(bodies(pop(f, "g", "T", (struct how){ .queue = -1, .exp = "blue||green" })), "b");
	assert_string_equal(bodies(pop(f, "none", "T", (struct how){ .queue = -1, .exp = "pink" })), "");
	assert_int_equal(offset(f, "T", "none", 0), 3);
	assert_string_equal(bodies(pop(f, "s", "T", (struct how){ .queue = -1, .exp = "TAGS = 'red'", .type = "SQL92" })), "a c");
	assert_int_equal(pop(f, "s", "T", (struct how){ .queue = -1, .exp = "TAGS = = 1", .type = "SQL92" })->code,
			 RESP_SUBSCRIPTION_PARSE_FAILED);
}

static void a_reset_moves_pops(void **state)
{
	struct fixture *f = *state;

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	pop(f, "g", "T", any);
	assert_int_equal(ask(f->k, f->c, REQ_INVOKE_BROKER_TO_RESET_OFFSET, NONE, "topic", "T", "group", "g", "timestamp", "0", "isForce",
			     "true", "queueId", "0", "offset", "1", NULL)->code, RESP_SUCCESS);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "b c");
	assert_int_equal(offset(f, "T", "g", 0), 3);
}

/* ---- Acks ------------------------------------------------------------------------------------------------------------------ */

static void acks_that_cannot_be(void **state)
{
	struct fixture *f = *state;
	struct message v[32], bad;

	make(f, "T", "1");
	put(f, "T", 0, "a", NULL);
	assert_int_equal(messages(pop(f, "g", "T", any), v, 32), 1);
	assert_int_equal(ask(f->k, f->c, REQ_ACK_MESSAGE, NONE, "consumerGroup", "g", "topic", "none", "queueId", "0", "extraInfo", v[0].handle,
			     "offset", "0", NULL)->code, RESP_TOPIC_NOT_EXIST);
	bad = v[0];
	bad.queue = 1;
	assert_int_equal(ack(f, "g", "T", &bad), RESP_MESSAGE_ILLEGAL);
	bad = v[0];
	bad.off = 2;
	assert_int_equal(ack(f, "g", "T", &bad), RESP_NO_MESSAGE);
	assert_int_equal(ask(f->k, f->c, REQ_ACK_MESSAGE, NONE, "consumerGroup", "g", "topic", "T", "queueId", "0", "extraInfo", "0 1 2",
			     "offset", "0", NULL)->code, RESP_MESSAGE_ILLEGAL);
	assert_int_equal(ask(f->k, f->c, REQ_ACK_MESSAGE, NONE, "consumerGroup", "g", "topic", "T", "queueId", "0", "extraInfo",
			     "0 1 2 77 0 b 0 0", "offset", "0", NULL)->code, RESP_MESSAGE_ILLEGAL);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS); /* again */
}

static void an_ack_that_comes_after_the_revival_is_refused(void **state)
{
	struct fixture *f = *state;
	struct message v[32];

	make(f, "T", "1");
	put(f, "T", 0, "a b", NULL);
	assert_int_equal(messages(pop(f, "g", "T", any), v, 32), 2);
	pass(f, 50000);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	pass(f, 11000);
	assert_int_equal(ack(f, "g", "T", &v[1]), RESP_NO_MESSAGE);
	assert_int_equal(change(f, "g", "T", &v[1], "1000")->code, RESP_NO_MESSAGE);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "b");
}

/* At the very end of its time: what was acked with success never comes again, everything else does. */
static void acks_and_revivals_do_not_cross(void **state)
{
	enum { ROUNDS = 200 };
	struct fixture *f = *state;
	bool acked[ROUNDS] = { false };
	struct message v[32];
	int again[ROUNDS] = { 0 };
	size_t n;

	make(f, "T", "1");
	for (int i = 0; i < ROUNDS; i++) {
		char body[16];

		snprintf(body, sizeof body, "%d", i);
		put(f, "T", 0, body, NULL);
		assert_int_equal(messages(pop(f, "g", "T", (struct how){ .queue = 0, .max = 1, .invisible = 10 }), v, 1), 1);
		for (int64_t until = clock_mono_us() + 5000 + i * 50; clock_mono_us() < until;)
			;
		acked[atoi(v[0].body)] = ack(f, "g", "T", &v[0]) == RESP_SUCCESS;
	}
	broker_kit_run(f->k, 50);
	while ((n = messages(pop(f, "g", "T", any), v, 32)) > 0)
		for (size_t i = 0; i < n; i++)
			again[atoi(v[i].body)]++;
	for (int i = 0; i < ROUNDS; i++)
		if (again[i] && acked[i])
			fail_msg("message %d was acked and came again", i);
}

static void many_are_acked_at_once(void **state)
{
	struct fixture *f = *state;
	char body[512];
	struct asked *a;
	struct message v[32];

	make(f, "T", "1");
	put(f, "T", 0, "a b c d", NULL);
	a = pop(f, "g", "T", any);
	snprintf(body, sizeof body, "{\"acks\":[{\"b\":\"Cw==\",\"c\":\"g\",\"it\":60000,\"pt\":%s,\"q\":0,\"r\":\"0\",\"rq\":%s,\"so\":0,"
		 "\"t\":\"T\"}],\"brokerName\":\"broker-a\"}", asked_get(a, "popTime"), asked_get(a, "reviveQid"));
	assert_int_equal(ask(f->k, f->c, REQ_BATCH_ACK_MESSAGE, str_of(body), NULL)->code, RESP_SUCCESS); /* bits 0 1 3 */
	assert_int_equal(ask(f->k, f->c, REQ_BATCH_ACK_MESSAGE, str_of("{\"acks\":[]}"), NULL)->code, RESP_NO_MESSAGE);
	assert_int_equal(ask(f->k, f->c, REQ_BATCH_ACK_MESSAGE, str_of("{"), NULL)->code, RESP_NO_MESSAGE);
	assert_int_equal(ask(f->k, f->c, REQ_BATCH_ACK_MESSAGE, NONE, NULL)->code, RESP_NO_MESSAGE);
	pass(f, 62000);
	a = pop(f, "g", "T", any);
	assert_string_equal(bodies(a), "c");
	assert_int_equal(messages(a, v, 32), 1);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
}

static void a_message_gets_another_time(void **state)
{
	struct fixture *f = *state;
	struct message v[32], later;
	struct asked *a;
	struct receipt r;
	struct buf text = { 0 };

	make(f, "T", "1");
	put(f, "T", 0, "a b", NULL);
	assert_int_equal(messages(pop(f, "g", "T", any), v, 32), 2);
	a = change(f, "g", "T", &v[0], "5000");
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "invisibleTime"), 5000);
	later = v[0];
	assert_int_equal(receipt_parse(str_of(v[0].handle), &r, NULL), 0);
	r.pop_ms = asked_i64(a, "popTime");
	r.invisible_ms = 5000;
	receipt_write(&r, &text);
	snprintf(later.handle, sizeof later.handle, MQ_STR_FMT, MQ_STR_ARG(buf_view(&text)));
	buf_free(&text);
	pass(f, 4000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "");
	pass(f, 3000);
	a = pop(f, "g", "T", any);
	assert_string_equal(bodies(a), "a");
	assert_int_equal(ack(f, "g", "T", &later), RESP_NO_MESSAGE);
	assert_int_equal(messages(a, v, 32), 1);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	pass(f, 60000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "b");
}

/* ---- Retry topics ---------------------------------------------------------------------------------------------------------- */

static void long_names_come_again(void **state)
{
	struct fixture *f = *state;
	char topic[101], group[101];

	memset(topic, 't', 100);
	memset(group, 'g', 100);
	topic[100] = group[100] = 0;
	make(f, topic, "1");
	put(f, topic, 0, "a", NULL);
	assert_string_equal(bodies(pop(f, group, topic, any)), "a");
	pass(f, 62000);
	assert_string_equal(bodies(pop(f, group, topic, any)), "a");
}

static void names_with_percent_signs(void **state)
{
	static const char *const names[] = { "a%b", "%a", "a%RETRY%b" };
	struct fixture *f = *state;
	struct message v[32];

	for (size_t i = 0; i < 3; i++) {
		make(f, names[i], "1");
		put(f, names[i], 0, "a b", NULL);
		assert_int_equal(messages(pop(f, "g", names[i], any), v, 32), 2);
		assert_int_equal(ack(f, "g", names[i], &v[0]), RESP_SUCCESS);
		assert_int_equal(change(f, "g", names[i], &v[1], "1000")->code, RESP_SUCCESS);
		pass(f, 3000);
		assert_int_equal(messages(pop(f, "g", names[i], any), v, 32), 1);
		assert_string_equal(v[0].body, "b");
		assert_int_equal(ack(f, "g", names[i], &v[0]), RESP_SUCCESS);
	}
}

static void the_second_form_of_retry_topics(void **state)
{
	static const char *const v2[] = { "enableRetryTopicV2=true", NULL };
	struct fixture *f = *state;
	struct message v[32];
	int seen = 0;

	make(f, "T", "1");
	put(f, "T", 0, "old", NULL);
	pop(f, "g", "T", any);
	pass(f, 62000); /* waits in %RETRY%g_T */
	restart(f, v2);
	put(f, "T", 0, "new", NULL);
	for (int i = 0; i < 20 && seen != 2; i++) /* each look goes to one of the two forms */
		if (messages(pop(f, "g", "T", (struct how){ .queue = 0, .max = 1 }), v, 1)) {
			seen++;
			if (!strcmp(v[0].body, "old"))
				assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
		}
	assert_int_equal(seen, 2);
	pass(f, 62000);
	assert_non_null(mqstore_queue(broker(f)->store, str_of("%RETRY%g+T"), 0, false));
	v[0].body[0] = 0;
	for (int i = 0; i < 20 && strcmp(v[0].body, "new"); i++)
		messages(pop(f, "g", "T", any), v, 32);
	assert_string_equal(v[0].body, "new");
	assert_non_null(strstr(v[0].handle, " 2 b "));
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
}

static void what_is_gone_is_not_revived(void **state)
{
	struct fixture *f = *state;

	make(f, "T", "1");
	put(f, "T", 0, "a", NULL);
	pop(f, "g", "T", any);
	assert_int_equal(ask(f->k, f->c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	make(f, "T", "1");
	pass(f, 10);
	put(f, "T", 0, "another", NULL); /* at the same offset */
	pass(f, 62000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "another");
	assert_string_equal(bodies(pop(f, "g", "T", any)), "");
}

/* ---- Waiting --------------------------------------------------------------------------------------------------------------- */

static void a_message_ends_the_wait_of_one(void **state)
{
	struct fixture *f = *state;
	struct asked *a[3];
	struct conn *c[3];
	int done = 0;

	make(f, "T", "2");
	for (int i = 0; i < 3; i++) {
		c[i] = broker_kit_dial(f->k, false);
		a[i] = pop_later(f, c[i], "g", "T", (struct how){ .queue = -1, .poll = 20000 });
	}
	broker_kit_settle(f->k);
	assert_string_equal(asked_get(ask(f->k, f->c, REQ_POLLING_INFO, NONE, "consumerGroup", "g", "topic", "T", "queueId", "-1", NULL),
				      "pollingNum"), "3");
	put(f, "T", 1, "a", NULL);
	broker_kit_settle(f->k);
	for (int i = 0; i < 3; i++)
		done += a[i]->done;
	assert_int_equal(done, 1);
	put(f, "T", 0, "b c", NULL);
	broker_kit_settle(f->k);
	for (int i = 0; i < 3; i++) {
		assert_true(a[i]->done);
		assert_int_equal(a[i]->code, RESP_SUCCESS);
		asked_free(a[i]);
	}
}

static void the_wait_has_an_end(void **state)
{
	struct fixture *f = *state;
	int64_t before = clock_mono_us();

	make(f, "T", "1");
	assert_int_equal(pop(f, "g", "T", (struct how){ .queue = -1, .poll = 100 })->code, RESP_POLLING_TIMEOUT);
	assert_true(clock_mono_us() - before >= 95000);
	broker_kit_set(f->k, "maxPopPollingSize", "1");
	struct asked *a = pop_later(f, f->c, "g", "T", (struct how){ .queue = -1, .poll = 20000 });
	broker_kit_settle(f->k);
	assert_int_equal(pop(f, "g", "T", (struct how){ .queue = -1, .poll = 20000 })->code, RESP_POLLING_FULL);
	assert_int_equal(ask(f->k, f->c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_TOPIC_NOT_EXIST);
	asked_free(a);
}

static void what_is_revived_ends_the_wait(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	make(f, "T", "1");
	put(f, "T", 0, "a", NULL);
	pop(f, "g", "T", (struct how){ .queue = -1, .invisible = 5000 });
	a = pop_later(f, f->c, "g", "T", (struct how){ .queue = -1, .poll = 20000 });
	broker_kit_settle(f->k);
	assert_false(a->done);
	pass(f, 7000);
	asked_wait(f->k, a);
	assert_string_equal(bodies(a), "a");
	asked_free(a);
}

static void no_message_is_missed_between_look_and_wait(void **state)
{
	struct fixture *f = *state;
	struct conn *c = broker_kit_dial(f->k, false);

	make(f, "T", "1");
	for (int i = 0; i < 300; i++) {
		struct asked *a = pop_later(f, c, "g", "T", (struct how){ .queue = -1, .poll = 20000 });
		int64_t before = clock_mono_us();

		put(f, "T", 0, "m", NULL);
		asked_wait(f->k, a);
		assert_int_equal(a->code, RESP_SUCCESS);
		assert_true(clock_mono_us() - before < 5000000); /* not the 20 s */
		asked_free(a);
	}
}

static void a_backlog_is_never_waited_for(void **state)
{
	struct fixture *f = *state;
	struct conn *c[4];
	int got = 0;

	make(f, "T", "4");
	for (int i = 0; i < 400; i++)
		put(f, "T", i % 4, "m", NULL);
	for (int i = 0; i < 4; i++)
		c[i] = broker_kit_dial(f->k, false);
	while (got < 400) {
		struct asked *a[4];

		for (int i = 0; i < 4; i++)
			a[i] = pop_later(f, c[i], "g", "T", (struct how){ .queue = -1, .max = 10, .poll = 20000 });
		for (int i = 0; i < 4; i++) {
			struct message v[32];
			int64_t before = clock_mono_us();

			asked_wait(f->k, a[i]);
			got += (int)messages(a[i], v, 32);
			assert_int_equal(a[i]->code, RESP_SUCCESS);
			assert_true(clock_mono_us() - before < 5000000);
			asked_free(a[i]);
		}
	}
	assert_int_equal(got, 400);
}

static struct asked *notify_later(struct fixture *f, const char *poll)
{
	return ask_later(f->k, f->c, REQ_NOTIFICATION, NONE, "consumerGroup", "g", "topic", "T", "queueId", "-1", "pollTime", poll, "bornTime",
			 "0", NULL);
}

static void a_notification_takes_nothing(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	make(f, "T", "1");
	a = notify_later(f, "10");
	asked_wait(f->k, a);
	assert_string_equal(asked_get(a, "hasMsg"), "false");
	asked_free(a);
	a = notify_later(f, "20000");
	broker_kit_settle(f->k);
	assert_false(a->done);
	put(f, "T", 0, "a", NULL);
	asked_wait(f->k, a);
	assert_string_equal(asked_get(a, "hasMsg"), "true");
	asked_free(a);
	a = notify_later(f, "20000");
	asked_wait(f->k, a);
	assert_string_equal(asked_get(a, "hasMsg"), "true");
	asked_free(a);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "a");
}

static void connections_that_end_take_their_pops_along(void **state)
{
	struct fixture *f = *state;
	struct conn *c = broker_kit_dial(f->k, false);
	struct asked *a;

	make(f, "T", "1");
	a = pop_later(f, c, "g", "T", (struct how){ .queue = -1, .poll = 20000 });
	broker_kit_settle(f->k);
	broker_kit_hang_up(f->k, c);
	broker_kit_settle(f->k);
	put(f, "T", 0, "a", NULL);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "a");
	asked_free(a);
}

/* ---- In order -------------------------------------------------------------------------------------------------------------- */

static const struct how ordered = { .queue = 0, .max = 2, .order = true };

static void a_batch_in_order_blocks_the_queue(void **state)
{
	struct fixture *f = *state;
	struct message v[32];
	struct asked *a, *held;

	make(f, "T", "1");
	put(f, "T", 0, "a b c d", NULL);
	a = pop(f, "g", "T", ordered);
	assert_string_equal(bodies(a), "a b");
	assert_int_equal(asked_i64(a, "reviveQid"), 999);
	assert_string_equal(asked_get(a, "orderCountInfo"), "0 0 0");
	assert_int_equal(messages(a, v, 32), 2);
	assert_string_equal(bodies(pop(f, "g", "T", ordered)), "");
	held = pop_later(f, f->c, "g", "T", (struct how){ .queue = 0, .max = 2, .order = true, .poll = 20000 });
	broker_kit_settle(f->k);
	assert_int_equal(ack(f, "g", "T", &v[1]), RESP_SUCCESS);
	assert_int_equal(offset(f, "T", "g", 0), 0);
	broker_kit_settle(f->k);
	assert_false(held->done);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	assert_int_equal(offset(f, "T", "g", 0), 2);
	asked_wait(f->k, held); /* woken by the ack */
	assert_string_equal(bodies(held), "c d");
	asked_free(held);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS); /* again */
}

static void the_block_ends_with_its_time(void **state)
{
	struct fixture *f = *state;
	struct message v[32];
	struct asked *a;

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	a = pop(f, "g", "T", (struct how){ .queue = 0, .max = 2, .order = true, .invisible = 300 });
	assert_int_equal(messages(a, v, 32), 2);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	/* Nothing arrives: the time alone wakes it. */
	a = pop(f, "g", "T", (struct how){ .queue = 0, .max = 2, .order = true, .poll = 20000 });
	assert_string_equal(bodies(a), "b c");
	assert_string_equal(asked_get(a, "orderCountInfo"), "0 qo0%1 1;0 0 0");
}

static void the_same_attempt_gets_the_same_batch(void **state)
{
	struct fixture *f = *state;
	struct how h = { .queue = 0, .max = 2, .order = true, .attempt = "one" };

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	assert_string_equal(bodies(pop(f, "g", "T", h)), "a b");
	assert_string_equal(bodies(pop(f, "g", "T", h)), "a b");
	h.attempt = "two";
	assert_string_equal(bodies(pop(f, "g", "T", h)), "");
}

static void an_ordered_message_gets_another_time(void **state)
{
	struct fixture *f = *state;
	struct message v[32];

	make(f, "T", "1");
	put(f, "T", 0, "a b", NULL);
	assert_int_equal(messages(pop(f, "g", "T", ordered), v, 32), 2);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	assert_int_equal(change(f, "g", "T", &v[1], "200")->code, RESP_SUCCESS);
	assert_string_equal(bodies(pop(f, "g", "T", (struct how){ .queue = 0, .order = true, .poll = 20000 })), "b");
}

static void batches_in_order_are_there_after_a_start(void **state)
{
	struct fixture *f = *state;
	struct message v[32];
	char *text;

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	assert_int_equal(messages(pop(f, "g", "T", ordered), v, 32), 2);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	text = tempdir_read(tempdir_path(f->dir, "store/config/consumerOrderInfo.json")); /* answered: so it is on the disk */
	assert_non_null(strstr(text, "\"T@g\":{\"0\":{\"cm\":1,"));
	assert_non_null(strstr(text, "\"o\":[0,1],"));
	free(text);
	restart(f, NULL);
	assert_string_equal(bodies(pop(f, "g", "T", ordered)), "");
	assert_int_equal(ack(f, "g", "T", &v[1]), RESP_SUCCESS);
	assert_string_equal(bodies(pop(f, "g", "T", ordered)), "c");
}

/* ---- Starts ---------------------------------------------------------------------------------------------------------------- */

static void pops_are_known_after_a_start(void **state)
{
	struct fixture *f = *state;
	struct message v[32];

	make(f, "T", "1");
	put(f, "T", 0, "a b c", NULL);
	assert_int_equal(messages(pop(f, "g", "T", any), v, 32), 3);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	restart(f, NULL);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "");
	assert_int_equal(ack(f, "g", "T", &v[2]), RESP_SUCCESS);
	restart(f, NULL);
	pass(f, 62000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "b");
	restart(f, NULL);
	pass(f, 1000);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "");
}

/* The file of offsets and what is in memory are of a moment before; the log is all there is. */
static void offsets_catch_up_with_pops_after_a_kill(void **state)
{
	static const char *const seldom[] = { "flushConsumerOffsetInterval=3600000", NULL };
	struct fixture *f = *state;
	struct message v[32];
	char *path, *text;

	restart(f, seldom);
	make(f, "T", "1");
	put(f, "T", 0, "a b c d", NULL);
	assert_int_equal(messages(pop(f, "g", "T", (struct how){ .queue = 0, .max = 1 }), v, 32), 1);
	restart(f, seldom); /* saves */
	path = mem_printf("%s", tempdir_path(f->dir, "store/config/consumerOffset.json"));
	text = tempdir_read(path);
	assert_non_null(strstr(text, "\"T@g\":{\"0\":1}"));
	assert_non_null(strstr(text, "\"logOffset\":"));
	assert_int_equal(messages(pop(f, "g", "T", (struct how){ .queue = 0, .max = 2 }), v, 32), 2);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	broker_kit_stop(f->k);
	f->k = NULL;
	tempdir_write(path, text); /* as a kill would have left it */
	start(f, seldom);
	assert_int_equal(offset(f, "T", "g", 0), 3);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "d");
	pass(f, 62000);
	for (int i = 0; i < 5; i++) { /* the retry topic's turn comes */
		struct asked *a = pop(f, "g", "T", any);

		for (size_t k = 0, n = messages(a, v, 32); k < n; k++)
			assert_string_not_equal(v[k].body, "b"); /* was acked */
	}
	free(text);
	free(path);
}

/* Killed before the offsets were saved for the first time. */
static void offsets_catch_up_with_pops_when_none_were_ever_saved(void **state)
{
	static const char *const seldom[] = { "flushConsumerOffsetInterval=3600000", NULL };
	struct fixture *f = *state;
	struct message v[32];

	restart(f, seldom);
	make(f, "T", "1");
	put(f, "T", 0, "a b c d", NULL);
	assert_int_equal(messages(pop(f, "g", "T", (struct how){ .queue = 0, .max = 3 }), v, 32), 3);
	assert_int_equal(ack(f, "g", "T", &v[0]), RESP_SUCCESS);
	broker_kit_stop(f->k);
	f->k = NULL;
	remove(tempdir_path(f->dir, "store/config/consumerOffset.json"));
	remove(tempdir_path(f->dir, "store/config/consumerOffset.json.bak"));
	start(f, seldom);
	assert_int_equal(offset(f, "T", "g", 0), 3);
	assert_string_equal(bodies(pop(f, "g", "T", any)), "d");
}

static void what_the_peer_left_un_acked_is_revived_once(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000", "maxHashSlotNum=500",
					     "maxIndexNum=400", "mappedFileSizeTimerLog=4096", "fileReservedTime=876000",
					     "brokerClusterName=FxCluster", "brokerName=fx-a", NULL };
	struct fixture *f = *state;
	struct message v[32];
	int again[8] = { 0 };

	broker_kit_stop(f->k);
	f->k = NULL;
	tempdir_remove(&f->dir);
	assert_int_equal(tempdir_make(&f->dir), 0);
	free(golden_store(f->dir, "clean"));
	start(f, props);
	/* It popped four: one was acked, one revived (and popped and acked again), one acked, and one got another time, two hours. */
	if (clock_wall_ms() < 1796064600000)
		pass(f, 1796064600000 - clock_wall_ms());
	for (int64_t end = clock_mono_us() + 10000000; !broker(f)->metrics.pops_revived; broker_kit_run(f->k, 5))
		assert_true(clock_mono_us() < end);
	pass(f, 10000);
	assert_int_equal(broker(f)->metrics.pops_revived, 1);
	assert_int_equal(broker(f)->metrics.pops_lost, 0);
	for (int i = 0; i < 5; i++) { /* the retry topic's turn comes */
		struct asked *a = pop(f, "FxGroupPop", "FxPop", any);

		for (size_t k = 0, n = messages(a, v, 32); k < n; k++)
			if (v[k].times) /* what waited in the retry topic, and what was added to it */
				again[v[k].off]++;
	}
	assert_int_equal(again[0], 1);
	assert_int_equal(again[1], 1);
	restart(f, props);
	pass(f, 10000);
	assert_int_equal(broker(f)->metrics.pops_revived, 0);
}

/* ---- Modes ----------------------------------------------------------------------------------------------------------------- */

static const char *assignment(struct fixture *f, const char *client, const char *strategy)
{
	static char text[2048];
	char body[256];
	struct asked *a;

	snprintf(body, sizeof body, "{\"clientId\":\"%s\",\"consumerGroup\":\"g\",\"messageModel\":\"CLUSTERING\",\"strategyName\":\"%s\","
		 "\"topic\":\"T\"}", client, strategy);
	a = ask(f->k, f->c, REQ_QUERY_ASSIGNMENT, str_of(body), NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	snprintf(text, sizeof text, MQ_STR_FMT, MQ_STR_ARG(buf_view(&a->body)));
	return text;
}

static size_t times(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

static void queues_are_shared_out_by_the_broker(void **state)
{
	struct fixture *f = *state;
	struct conn *c;

	make(f, "T", "5");
	assert_string_equal(assignment(f, "a", "AVG"), "{}"); /* no members */
	assert_int_equal(kit_heartbeat(f->k, f->c, "a", "g", "T", "*")->code, RESP_SUCCESS);
	c = broker_kit_dial(f->k, false);
	assert_int_equal(kit_heartbeat(f->k, c, "b", "g", "T", "*")->code, RESP_SUCCESS);
	assert_int_equal(times(assignment(f, "a", "AVG"), "\"queueId\""), 3);
	assert_non_null(strstr(assignment(f, "a", "AVG"), "\"queueId\":2,"));
	assert_non_null(strstr(assignment(f, "b", "AVG"), "\"queueId\":3,"));
	assert_int_equal(times(assignment(f, "b", "AVG_BY_CIRCLE"), "\"queueId\""), 2);
	assert_non_null(strstr(assignment(f, "b", "AVG_BY_CIRCLE"), "\"queueId\":1,"));
	assert_string_equal(assignment(f, "a", "CONSISTENT_HASH"), "{}");
	assert_int_equal(times(assignment(f, "z", "AVG"), "\"queueId\""), 0); /* no member */
	assert_int_equal(times(assignment(f, "a", "AVG"), "\"mode\":\"PULL\""), 3);
	assert_int_equal(ask(f->k, f->c, REQ_SET_MESSAGE_REQUEST_MODE,
			     str_of("{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":8,\"topic\":\"T\"}"), NULL)->code,
			 RESP_SUCCESS);
	assert_int_equal(times(assignment(f, "a", "AVG"), "\"queueId\":-1"), 1);
	assert_int_equal(times(assignment(f, "a", "AVG"), "\"mode\":\"POP\""), 1);
	restart(f, NULL);
	assert_non_null(strstr((char *)ask(f->k, f->c, REQ_GET_ALL_MESSAGE_REQUEST_MODE, NONE, NULL)->body.p,
			       "{\"T\":{\"g\":{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":8,\"topic\":\"T\"}}}"));
	assert_int_equal(ask(f->k, f->c, REQ_SET_MESSAGE_REQUEST_MODE,
			     str_of("{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"topic\":\"%RETRY%g\"}"), NULL)->code, RESP_NO_PERMISSION);
}

static void members_share_queues(void **state)
{
	struct fixture *f = *state;

	make(f, "T", "8");
	for (int i = 0; i < 4; i++) {
		char id[2] = { (char)('a' + i), 0 };

		assert_int_equal(kit_heartbeat(f->k, broker_kit_dial(f->k, false), id, "g", "T", "*")->code, RESP_SUCCESS);
	}
	assert_int_equal(ask(f->k, f->c, REQ_SET_MESSAGE_REQUEST_MODE,
			     str_of("{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":1,\"topic\":\"T\"}"), NULL)->code,
			 RESP_SUCCESS);
	assert_int_equal(times(assignment(f, "a", "AVG"), "\"queueId\""), 4); /* its own two and those of b */
	assert_non_null(strstr(assignment(f, "d", "AVG"), "\"queueId\":0,")); /* and those of a */
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_popped_is_gone_until_its_time_is_over),
		T(a_clock_set_back_or_ahead_brings_back_what_is_due_by_it_and_once), T(queues_are_popped_alone_or_together), T(who_may_not_pop),
		T(a_peek_shows_what_a_pop_would_take_and_takes_nothing), T(a_group_begins_where_it_says), T(pops_are_filtered), T(a_reset_moves_pops), T(acks_that_cannot_be),
		T(an_ack_that_comes_after_the_revival_is_refused), T(acks_and_revivals_do_not_cross),
		T(many_are_acked_at_once), T(a_message_gets_another_time),
		T(long_names_come_again), T(names_with_percent_signs), T(the_second_form_of_retry_topics), T(what_is_gone_is_not_revived),
		T(a_message_ends_the_wait_of_one), T(the_wait_has_an_end), T(what_is_revived_ends_the_wait),
		T(no_message_is_missed_between_look_and_wait), T(a_backlog_is_never_waited_for), T(a_notification_takes_nothing),
		T(connections_that_end_take_their_pops_along), T(a_batch_in_order_blocks_the_queue), T(the_block_ends_with_its_time),
		T(the_same_attempt_gets_the_same_batch), T(an_ordered_message_gets_another_time),
		T(batches_in_order_are_there_after_a_start), T(pops_are_known_after_a_start),
		T(offsets_catch_up_with_pops_after_a_kill),
		T(offsets_catch_up_with_pops_when_none_were_ever_saved), T(what_the_peer_left_un_acked_is_revived_once), T(queues_are_shared_out_by_the_broker),
		T(members_share_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
