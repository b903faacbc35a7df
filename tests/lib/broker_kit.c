/* broker_kit.c: see broker_kit.h. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "codec/property.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WAIT_MS = 10000, CALLED_CODES = 512, WORKERS = 4 };

struct broker_kit {
	uv_loop_t loop;
	struct broker *b;
	struct broker_conf conf;
	struct conf *rows;
	void *dir;
	bool own_dir, stopped;
	int called[CALLED_CODES];
	int open;               /* connections that are not closed yet */
	struct asked *last;
	struct asked *sent_us;  /* by the broker, lately */
	int32_t answer_code;
	const char *answer;
	uv_work_t block[WORKERS];
	sem_t gate;
	bool blocked;
};

/* ---- Life -------------------------------------------------------------------------------------------------------------- */

static void on_stopped(void *arg, int rc)
{
	((struct broker_kit *)arg)->stopped = true;
}

static struct broker_kit *start(struct broker_kit *k, const char *const *props, struct mq_error *e)
{
	static const char *const base[] = {
		"brokerName=b", "brokerClusterName=C", "brokerIP1=127.0.0.1", "bindAddress=127.0.0.1", "listenPort=0",
		"mappedFileSizeCommitLog=1048576", "mappedFileSizeConsumeQueue=20000", "maxHashSlotNum=500", "maxIndexNum=2000",
		"diskSpaceWarningLevelRatio=100", "logLevel=error", NULL,
	};
	struct broker_opt opt = { .conf = &k->conf, .stopped = on_stopped, .stopped_arg = k };
	char *root = mem_printf("storePathRootDir=%s/store", (char *)k->dir);

	uv_loop_init(&k->loop);
	sem_init(&k->gate, 0, 0);
	k->rows = broker_conf_new(&k->conf);
	for (size_t i = 0; base[i]; i++)
		assert_int_equal(conf_arg(k->rows, base[i], e), 0);
	assert_int_equal(conf_arg(k->rows, root, e), 0);
	for (size_t i = 0; props && props[i]; i++)
		assert_int_equal(conf_arg(k->rows, props[i], e), 0);
	free(root);
	assert_int_equal(broker_conf_check(k->rows, &k->conf, e), 0);
	opt.rows = k->rows;
	if (broker_start(&k->b, &k->loop, &opt, e) == 0)
		return k;
	uv_run(&k->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&k->loop), 0);
	conf_free(k->rows);
	sem_destroy(&k->gate);
	if (!k->own_dir)
		free(k->dir);
	free(k);
	return NULL;
}

struct broker_kit *broker_kit_start(const char *const *props)
{
	struct broker_kit *k = mem_alloc(sizeof *k);
	struct mq_error e = { 0 };

	assert_int_equal(tempdir_make(&k->dir), 0);
	k->own_dir = true;
	k = start(k, props, &e);
	if (!k)
		fail_msg("%s", e.text);
	return k;
}

struct broker_kit *broker_kit_start_in(const char *dir, const char *const *props, struct mq_error *e)
{
	struct broker_kit *k = mem_alloc(sizeof *k);

	k->dir = mem_strdup(dir);
	k = start(k, props, e);
	return k;
}

void broker_kit_stop(struct broker_kit *k)
{
	int64_t end = clock_mono_us() + WAIT_MS * 1000;

	if (k->blocked)
		broker_kit_unblock_workers(k);
	broker_stop(k->b);
	while (!k->stopped && clock_mono_us() < end)
		uv_run(&k->loop, UV_RUN_ONCE);
	assert_true(k->stopped);
	uv_run(&k->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&k->loop), 0);
	conf_free(k->rows);
	sem_destroy(&k->gate);
	asked_free(k->last);
	asked_free(k->sent_us);
	if (k->own_dir)
		tempdir_remove(&k->dir);
	else
		free(k->dir);
	free(k);
}

struct broker *broker_kit_broker(struct broker_kit *k)
{
	return k->b;
}

uv_loop_t *broker_kit_loop(struct broker_kit *k)
{
	return &k->loop;
}

const char *broker_kit_dir(struct broker_kit *k)
{
	return k->dir;
}

/* ---- Connections ------------------------------------------------------------------------------------------------------- */

static void take(struct asked *a, struct frame *f)
{
	a->code = f->code;
	buf_str(&a->remark, f->remark);
	buf_char(&a->remark, 0);
	buf_str(&a->body, f->body);
	for (uint32_t i = 0; i < f->nfields; i++) {
		buf_str(&a->fields, f->field[i].key);
		buf_char(&a->fields, 0);
		buf_str(&a->fields, f->field[i].value);
		buf_char(&a->fields, 0);
	}
}

static int on_request(struct conn *c, struct frame *f)
{
	struct broker_kit *k = conn_public(c)->owner;

	if ((uint32_t)f->code < CALLED_CODES)
		k->called[f->code]++;
	asked_free(k->sent_us);
	k->sent_us = mem_alloc(sizeof *k->sent_us);
	take(k->sent_us, f);
	if (k->answer && f->code == k->answer_code) {
		struct frame_out o;

		frame_answer(&o, conn_out(c), frame_id_of(f), RESP_SUCCESS, (struct mq_str){ 0 });
		frame_body(&o);
		buf_cstr(o.buf, k->answer);
		frame_end(&o);
	}
	return 0;
}

static void on_closed(struct conn *c, int why)
{
	((struct broker_kit *)conn_public(c)->owner)->open--;
}

static const struct conn_ops kit_ops = { .request = on_request, .closed = on_closed };

struct conn *broker_kit_dial(struct broker_kit *k, bool vip)
{
	char addr[64];

	snprintf(addr, sizeof addr, "127.0.0.1:%d", broker_port(k->b) - (vip ? 2 : 0));
	return broker_kit_dial_to(k, addr);
}

void broker_kit_set(struct broker_kit *k, const char *key, const char *value)
{
	int32_t perm = k->conf.brokerPermission;
	struct mq_error e;

	assert_int_equal(conf_set(k->rows, str_of(key), str_of(value), &e), 0);
	broker_conf_changed(k->b, perm);
}

struct conn *broker_kit_dial_to(struct broker_kit *k, const char *addr)
{
	struct mq_error e;
	struct conn *c;

	c = conn_dial(&k->loop, addr, 3000, &kit_ops, k, &e);
	assert_non_null(c);
	k->open++;
	return c;
}

void broker_kit_hang_up(struct broker_kit *k, struct conn *c)
{
	int open = k->open;

	conn_close(c);
	while (k->open == open)
		uv_run(&k->loop, UV_RUN_ONCE);
	broker_kit_settle(k);
}

int broker_kit_called(struct broker_kit *k, int32_t code)
{
	return k->called[code];
}

void broker_kit_answers(struct broker_kit *k, int32_t code, const char *body)
{
	k->answer_code = code;
	k->answer = body;
}

struct asked *broker_kit_last(struct broker_kit *k)
{
	return k->sent_us;
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct asked *a = arg;

	a->done = true;
	a->rc = rc;
	if (rc == 0)
		take(a, f);
}

static struct asked *ask_v(struct conn *c, int32_t code, bool oneway, struct mq_str body, va_list ap)
{
	struct asked *a = mem_alloc(sizeof *a);
	struct frame_out o;
	const char *key;

	conn_call(c, &o, code, FRAME_JSON, WAIT_MS * 2, oneway ? NULL : on_answer, a);
	while ((key = va_arg(ap, const char *)))
		frame_cstr(&o, key, va_arg(ap, const char *));
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
	conn_kick(c);
	a->done = oneway;
	return a;
}

struct asked *ask_later(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...)
{
	struct asked *a;
	va_list ap;

	va_start(ap, body);
	a = ask_v(c, code, false, body, ap);
	va_end(ap);
	return a;
}

struct asked *ask_oneway(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...)
{
	struct asked *a;
	va_list ap;

	va_start(ap, body);
	a = ask_v(c, code, true, body, ap);
	va_end(ap);
	return a;
}

struct asked *ask(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...)
{
	va_list ap;

	asked_free(k->last);
	va_start(ap, body);
	k->last = ask_v(c, code, false, body, ap);
	va_end(ap);
	asked_wait(k, k->last);
	return k->last;
}

static void on_alarm(uv_timer_t *t)
{
	*(bool *)t->data = true;
}

/* A timer that lets the loop go on waiting at most so long. */
static void run_until(struct broker_kit *k, const bool *done, int ms)
{
	uv_timer_t t;
	bool late = false;

	uv_timer_init(&k->loop, &t);
	t.data = &late;
	uv_update_time(&k->loop);
	uv_timer_start(&t, on_alarm, ms, 0);
	while (!late && !(done && *done))
		uv_run(&k->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&t, NULL);
	uv_run(&k->loop, UV_RUN_NOWAIT);
}

void asked_wait(struct broker_kit *k, struct asked *a)
{
	run_until(k, &a->done, WAIT_MS);
	assert_true(a->done);
}

void broker_kit_run(struct broker_kit *k, int ms)
{
	run_until(k, NULL, ms);
}

/* ---- Rest -------------------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 3, TURNS = 8 };

struct meeting {
	uv_work_t work[WORKERS];
	pthread_barrier_t all;
	int left;
	bool over;
};

static void meet(uv_work_t *w)
{
	pthread_barrier_wait(&((struct meeting *)w->data)->all);
}

static void met(uv_work_t *w, int status)
{
	struct meeting *m = w->data;

	m->over = --m->left == 0;
}

/* What the workers were given so far is done: all of them are here at once. */
static void meet_workers(struct broker_kit *k)
{
	struct meeting m = { .left = WORKERS };

	pthread_barrier_init(&m.all, NULL, WORKERS);
	for (int i = 0; i < WORKERS; i++) {
		m.work[i].data = &m;
		uv_queue_work(&k->loop, &m.work[i], meet, met);
	}
	while (!m.over)
		uv_run(&k->loop, UV_RUN_ONCE);
	pthread_barrier_destroy(&m.all);
}

/* On a machine that is busy the moment may pass without a turn. */
void broker_kit_settle(struct broker_kit *k)
{
	broker_kit_run(k, 30);
	for (int round = 0; round < ROUNDS; round++) {
		if (!k->blocked)
			meet_workers(k);
		for (int i = 0; i < TURNS; i++)
			uv_run(&k->loop, UV_RUN_NOWAIT);
	}
}

void asked_free(struct asked *a)
{
	if (!a)
		return;
	buf_free(&a->remark);
	buf_free(&a->body);
	buf_free(&a->fields);
	free(a);
}

const char *asked_get(const struct asked *a, const char *key)
{
	for (const char *p = a->fields.p; a->fields.n && p < a->fields.p + a->fields.n;) {
		const char *value = p + strlen(p) + 1;

		if (strcmp(p, key) == 0)
			return value;
		p = value + strlen(value) + 1;
	}
	return "";
}

int64_t asked_i64(const struct asked *a, const char *key)
{
	int64_t v = -1;

	str_i64(str_of(asked_get(a, key)), &v);
	return v;
}

/* ---- Workers ----------------------------------------------------------------------------------------------------------- */

static void wait_gate(uv_work_t *w)
{
	sem_wait(&((struct broker_kit *)w->data)->gate);
}

static void gate_passed(uv_work_t *w, int status)
{
}

void broker_kit_block_workers(struct broker_kit *k)
{
	k->blocked = true;
	for (int i = 0; i < WORKERS; i++) {
		k->block[i].data = k;
		uv_queue_work(&k->loop, &k->block[i], wait_gate, gate_passed);
	}
}

void broker_kit_unblock_workers(struct broker_kit *k)
{
	k->blocked = false;
	for (int i = 0; i < WORKERS; i++)
		sem_post(&k->gate);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

struct asked *kit_send(struct broker_kit *k, struct conn *c, const char *topic, int queue, const char *body, const char *tag)
{
	struct buf props = { 0 };
	struct asked *a;
	char id[16];

	snprintf(id, sizeof id, "%d", queue);
	if (tag)
		property_put(&props, MQ_STR("TAGS"), str_of(tag));
	buf_char(&props, 0);
	a = ask(k, c, REQ_SEND_MESSAGE_V2, str_of(body), "a", "pg", "b", topic, "c", "TBW102", "d", "4", "e", id, "f", "0", "g",
		"1700000000000", "h", "0", "i", props.p, NULL);
	buf_free(&props);
	return a;
}

struct asked *kit_send_props(struct broker_kit *k, struct conn *c, const char *topic, int queue, const char *body, const char *props)
{
	char id[16];

	snprintf(id, sizeof id, "%d", queue);
	return ask(k, c, REQ_SEND_MESSAGE, str_of(body), "producerGroup", "pg", "topic", topic, "defaultTopic", "TBW102",
		   "defaultTopicQueueNums", "4", "queueId", id, "sysFlag", "0", "bornTimestamp", "1700000000000", "flag", "7",
		   "properties", props, NULL);
}

struct asked *kit_pull_later(struct broker_kit *k, struct conn *c, const char *group, const char *topic, int queue, int64_t off,
                             const char *expr, int suspend_ms)
{
	char id[16], at[32], flag[16], ms[16];

	snprintf(id, sizeof id, "%d", queue);
	snprintf(at, sizeof at, "%lld", (long long)off);
	snprintf(flag, sizeof flag, "%d", (suspend_ms ? PULL_SUSPEND : 0) | (expr ? PULL_SUBSCRIPTION : 0));
	snprintf(ms, sizeof ms, "%d", suspend_ms);
	return ask_later(k, c, REQ_PULL_MESSAGE, (struct mq_str){ 0 }, "consumerGroup", group, "topic", topic, "queueId", id,
			 "queueOffset", at, "maxMsgNums", "32", "sysFlag", flag, "commitOffset", "0", "suspendTimeoutMillis", ms,
			 "subVersion", "0", "expressionType", "TAG", "subscription", expr ? expr : "", NULL);
}

struct asked *kit_heartbeat(struct broker_kit *k, struct conn *c, const char *client, const char *group, const char *topic,
                            const char *expr)
{
	char body[2048];

	snprintf(body, sizeof body, "{\"clientID\":\"%s\",\"consumerDataSet\":[{\"consumeFromWhere\":\"CONSUME_FROM_LAST_OFFSET\","
		 "\"consumeType\":\"CONSUME_PASSIVELY\",\"groupName\":\"%s\",\"messageModel\":\"CLUSTERING\","
		 "\"subscriptionDataSet\":[{\"topic\":\"%s\",\"subString\":\"%s\",\"subVersion\":1}]}],\"producerDataSet\":[]}",
		 client, group, topic, expr);
	return ask(k, c, REQ_HEART_BEAT, str_of(body), NULL);
}

const char *asked_bodies(const struct asked *a)
{
	static struct buf out;
	struct mq_message m;
	int32_t n;

	out.n = 0;
	for (size_t at = 0; at < a->body.n; at += (size_t)n) {
		n = mq_message_decode(a->body.p + at, a->body.n - at, true, &m);
		assert_true(n > 0);
		if (at)
			buf_char(&out, ' ');
		buf_str(&out, m.body);
	}
	buf_char(&out, 0);
	return out.p;
}

/* ---- The store --------------------------------------------------------------------------------------------------------- */

int64_t kit_stored(struct broker_kit *k, const char *topic, int queue)
{
	struct mqstore_queue *q = mqstore_queue(k->b->store, str_of(topic), queue, false);

	return q ? mqstore_queue_max(q) : 0;
}

void kit_await(struct broker_kit *k, const char *topic, int queue, int64_t n)
{
	for (int64_t end = clock_mono_us() + 2 * WAIT_MS * 1000; kit_stored(k, topic, queue) < n;) {
		assert_true(clock_mono_us() < end);
		broker_kit_run(k, 5);
	}
}

struct mq_message kit_look(struct broker_kit *k, const char *topic, int queue, int64_t off)
{
	struct mqstore_queue *q = mqstore_queue(k->b->store, str_of(topic), queue, false);
	struct mqstore_entry e;
	struct mq_message m;
	struct mq_str r;

	assert_non_null(q);
	assert_int_equal(mqstore_entry(q, off, &e), 0);
	assert_int_equal(mqstore_at(k->b->store, e.log_off, &r), 0);
	assert_true(mq_message_decode(r.p, r.n, true, &m) > 0);
	return m;
}

void assert_prop(struct mq_str props, const char *name, const char *want)
{
	struct mq_str n, v;
	size_t pos = 0;
	int found = 0;

	while (mq_prop_next(props, &pos, &n, &v))
		if (str_is(n, name)) {
			found++;
			if (!want || !str_is(v, want))
				fail_msg("%s is '" MQ_STR_FMT "', not '%s'", name, MQ_STR_ARG(v), want ? want : "absent");
		}
	if (found != (want ? 1 : 0))
		fail_msg("%s is there %d times, not %d", name, found, want ? 1 : 0);
}
