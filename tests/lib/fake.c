/* fake.c: see fake.h. */
#include "fake_private.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/body_route.h"
#include "codec/message.h"
#include "codec/property.h"
#include "codec/request.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Topics and messages --------------------------------------------------------------------------------------------- */

struct fake_topic *fake_find_topic(struct fake *f, struct mq_str name)
{
	for (int i = 0; i < f->ntopics; i++)
		if (str_is(name, f->topic[i].name))
			return &f->topic[i];
	return NULL;
}

struct fake_topic *fake_topic(struct fake *f, const char *name, int queues)
{
	struct fake_topic *t = fake_find_topic(f, str_of(name));

	if (t)
		return t;
	assert(f->ntopics < FAKE_TOPICS && queues <= FAKE_QUEUES);
	t = &f->topic[f->ntopics++];
	snprintf(t->name, sizeof t->name, "%s", name);
	t->nqueues = queues;
	t->perm = 6;
	for (int i = 0; i < FAKE_QUEUES; i++)
		t->queue[i].reset_to = -1;
	return t;
}

void fake_record(struct fake *f, struct buf *b, const char *topic, int queue, int64_t off, const char *body,
                 const char *tag, int sys_flag)
{
	struct message_parts m = { .topic = str_of(topic), .body = str_of(body), .queue_id = queue, .queue_off = off,
		                   .sys_flag = sys_flag, .log_off = f->log_off, .born_ms = 1700000000000, .store_ms = 1700000000001 };
	struct buf props = { 0 };
	int64_t n;

	m.born_host = m.store_host = (struct mq_host){ .ip = { 127, 0, 0, 1 }, .len = 4, .port = f->port };
	if (tag)
		property_put(&props, MQ_STR(PROP_TAGS), str_of(tag));
	m.props[0] = buf_view(&props);
	n = message_size(&m);
	message_encode(&m, buf_room(b, (size_t)n));
	b->n += (size_t)n;
	f->log_off += n;
	buf_free(&props);
}

static void answer_pull(struct fake *f, struct conn *c, struct frame_id id, struct fake_topic *t, int queue,
                        int64_t off, int max);

void fake_wake(struct fake *f)
{
	struct fake_parked **at = &f->parked, *p;

	while ((p = *at)) {
		struct fake_topic *t = &f->topic[p->topic];
		if (p->off < 0 ? !fake_answer_pop(f, p->conn, p->id, t, p->queue, p->max) :
				 p->off >= t->queue[p->queue].max && t->queue[p->queue].reset_to < 0) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		if (p->off >= 0)
			answer_pull(f, p->conn, p->id, t, p->queue, p->off, p->max);
		conn_kick(p->conn);
		conn_unref(p->conn);
		free(p);
	}
}

void fake_put_record(struct fake *f, const char *topic, int queue, const void *p, size_t n)
{
	struct fake_queue *q = &fake_find_topic(f, str_of(topic))->queue[queue];

	if (!q->nrecords)
		q->first = q->max;
	q->record = mem_realloc(q->record, (q->nrecords + 1) * sizeof *q->record);
	q->record[q->nrecords] = (struct buf){ 0 };
	buf_put(&q->record[q->nrecords++], p, n);
	q->max++;
	fake_wake(f);
}

void fake_put(struct fake *f, const char *topic, int queue, const char *body, const char *tag)
{
	struct fake_queue *q = &fake_find_topic(f, str_of(topic))->queue[queue];
	struct buf b = { 0 };

	fake_record(f, &b, topic, queue, q->max, body, tag, 0);
	fake_put_record(f, topic, queue, b.p, b.n);
	buf_free(&b);
}

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

void fake_answer(struct conn *c, struct frame_id id, int code, const char *remark)
{
	struct frame_out o;

	frame_answer(&o, conn_out(c), id, code, str_of(remark));
	frame_end(&o);
}

static void answer_route(struct fake *f, struct conn *c, struct frame_id id, struct mq_str topic)
{
	struct body_broker brokers[5];
	struct body_broker_addr addrs[5];
	struct body_queues_of queues[5];
	struct body_route r = { .broker = brokers, .queue = queues };
	struct frame_out o;

	for (int i = -1; i < f->nmore; i++) {
		struct fake *b = i < 0 ? f : f->more[i];
		struct fake_topic *t = fake_find_topic(b, topic);
		bool template = str_is(topic, "TBW102") && b->auto_create;
		if (!t && !template)
			continue;
		addrs[r.nbrokers] = (struct body_broker_addr){ b->broker_id, str_of(b->addr) };
		brokers[r.nbrokers] = (struct body_broker){ .name = str_of(b->broker), .cluster = MQ_STR("c"),
		                                           .naddrs = 1,
			                                    .addr = &addrs[r.nbrokers] };
		r.nbrokers++;
		queues[r.nqueues++] = (struct body_queues_of){ .broker = str_of(b->broker), .read = t ? t->nqueues : 8,
			                                       .write = t ? t->nqueues : 8, .perm = t ? t->perm : 7 };
	}
	if (!r.nbrokers) {
		fake_answer(c, id, RESP_TOPIC_NOT_EXIST, "No topic route info in name server for the topic");
		return;
	}
	frame_answer(&o, conn_out(c), id, 0, (struct mq_str){ 0 });
	frame_body(&o);
	body_route_encode(&r, true, o.buf);
	frame_end(&o);
}

static void answer_send(struct fake *f, struct conn *c, struct frame *in)
{
	bool v2 = in->code != REQ_SEND_MESSAGE;
	struct mq_str topic = frame_get(in, v2 ? "b" : "topic");
	struct fake_topic *t = fake_find_topic(f, topic);
	struct fake_queue *q;
	struct frame_out o;
	char name[256];
	int32_t queue = 0;

	if (!t && f->auto_create) {
		snprintf(name, sizeof name, MQ_STR_FMT, MQ_STR_ARG(topic));
		t = fake_topic(f, name, 4);
	}
	str_i32(frame_get(in, v2 ? "e" : "queueId"), &queue);
	if (!t || queue < 0 || queue >= t->nqueues) {
		fake_answer(c, frame_id_of(in), t ? RESP_SYSTEM_ERROR : RESP_TOPIC_NOT_EXIST, "topic or queue not there");
		return;
	}
	q = &t->queue[queue];
	frame_answer(&o, conn_out(c), frame_id_of(in), 0, (struct mq_str){ 0 });
	frame_cstr(&o, "msgId", "7F00000100002A9F0000000000000000");
	frame_i64(&o, "queueId", queue);
	frame_i64(&o, "queueOffset", q->max++);
	frame_cstr(&o, "TRACE_ON", "true");
	frame_end(&o);
}

static void answer_pull(struct fake *f, struct conn *c, struct frame_id id, struct fake_topic *t, int queue,
                        int64_t off, int max)
{
	struct fake_queue *q = &t->queue[queue];
	struct frame_out o;
	int64_t next = off;
	int code = RESP_SUCCESS;

	if (q->reset_to >= 0) {
		code = RESP_PULL_OFFSET_MOVED;
		next = q->reset_to;
		q->reset_to = -1;
	} else if (off < q->min) {
		code = RESP_PULL_OFFSET_MOVED;
		next = q->min;
	} else if (off > q->max) {
		code = RESP_PULL_OFFSET_MOVED;
		next = q->max;
	} else if (off == q->max) {
		code = RESP_PULL_NOT_FOUND;
	} else {
		next = off + max < q->max ? off + max : q->max;
	}
	frame_answer(&o, conn_out(c), id, code, (struct mq_str){ 0 });
	frame_i64(&o, "suggestWhichBrokerId", 0);
	frame_i64(&o, "nextBeginOffset", next);
	frame_i64(&o, "minOffset", q->min);
	frame_i64(&o, "maxOffset", q->max);
	frame_body(&o);
	if (code == RESP_SUCCESS)
		for (int64_t i = off; i < next; i++)
			if (i >= q->first && (size_t)(i - q->first) < q->nrecords)
				buf_str(o.buf, buf_view(&q->record[i - q->first]));
	frame_end(&o);
}

static void on_pull(struct fake *f, struct conn *c, struct frame *in)
{
	struct fake_topic *t = fake_find_topic(f, frame_get(in, "topic"));
	struct fake_parked *p;
	int32_t queue = 0, max = 0, flags = 0;
	int64_t off = 0;
	bool known = false;

	str_i32(frame_get(in, "queueId"), &queue);
	str_i32(frame_get(in, "maxMsgNums"), &max);
	str_i32(frame_get(in, "sysFlag"), &flags);
	str_i64(frame_get(in, "queueOffset"), &off);
	for (int i = 0; i < f->nknown; i++)
		known |= f->known_conn[i] == c;
	if (!(flags & PULL_SUBSCRIPTION) && !known) {
		f->unknown_pulls++;
		fake_answer(c, frame_id_of(in), RESP_SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist");
		return;
	}
	if (!t || queue < 0 || queue >= t->nqueues) {
		fake_answer(c, frame_id_of(in), RESP_TOPIC_NOT_EXIST, "topic not exist");
		return;
	}
	if (off == t->queue[queue].max && !f->no_hold && (flags & PULL_SUSPEND) && t->queue[queue].reset_to < 0) {
		p = mem_alloc(sizeof *p);
		*p = (struct fake_parked){ f->parked, c, frame_id_of(in), (int)(t - f->topic), queue, off, max };
		conn_ref(c);
		f->parked = p;
		return;
	}
	answer_pull(f, c, frame_id_of(in), t, queue, off, max);
}

static void right_answer(struct fake *f, struct conn *c, struct frame *in)
{
	if (in->flag & FRAME_ONEWAY && in->code != REQ_UNLOCK_BATCH_MQ)
		return;
	switch (in->code) {
	case REQ_GET_ROUTEINFO_BY_TOPIC:
		answer_route(f, c, frame_id_of(in), frame_get(in, "topic"));
		return;
	case REQ_SEND_MESSAGE:
	case REQ_SEND_MESSAGE_V2:
	case REQ_SEND_BATCH_MESSAGE:
		answer_send(f, c, in);
		return;
	case REQ_PULL_MESSAGE:
		on_pull(f, c, in);
		return;
	case REQ_POP_MESSAGE:
		fake_on_pop(f, c, in);
		return;
	case REQ_ACK_MESSAGE:
	case REQ_CHANGE_MESSAGE_INVISIBLETIME:
		fake_on_settled(f, c, in);
		return;
	case REQ_HEART_BEAT:
		fake_on_heartbeat(f, c, in);
		return;
	case REQ_GET_CONSUMER_LIST_BY_GROUP:
		fake_on_members(f, c, in);
		return;
	case REQ_LOCK_BATCH_MQ:
	case REQ_UNLOCK_BATCH_MQ:
		fake_on_lock(f, c, in);
		return;
	case REQ_CONSUMER_SEND_MSG_BACK:
	case REQ_END_TRANSACTION:
	case REQ_SEND_REPLY_MESSAGE_V2:
		fake_answer(c, frame_id_of(in), RESP_SUCCESS, NULL);
		return;
	case REQ_UNREGISTER_CLIENT:
		fake_forget(f, c);
		fake_answer(c, frame_id_of(in), 0, NULL);
		return;
	case REQ_GET_MAX_OFFSET:
	case REQ_GET_MIN_OFFSET:
	case REQ_SEARCH_OFFSET_BY_TIMESTAMP:
	case REQ_QUERY_CONSUMER_OFFSET:
	case REQ_UPDATE_CONSUMER_OFFSET:
		fake_on_offset(f, c, in);
		return;
	default:
		fake_answer(c, frame_id_of(in), RESP_REQUEST_CODE_NOT_SUPPORTED, "request type not supported");
	}
}

struct later {
	uv_timer_t timer;
	struct fake *f;
	struct conn *conn;
	struct buf bytes;
};

static void on_later_closed(uv_handle_t *h)
{
	struct later *l = h->data;

	l->f->nlater--;
	free(l);
}

static void on_later(uv_timer_t *t)
{
	struct later *l = t->data;

	buf_str(conn_out(l->conn), buf_view(&l->bytes));
	conn_kick(l->conn);
	conn_unref(l->conn);
	buf_free(&l->bytes);
	uv_close((uv_handle_t *)t, on_later_closed);
}

/* Take back what was written behind `from`, to write it later. */
static void delay_answer(struct fake *f, struct conn *c, size_t from, int ms)
{
	struct buf *out = conn_out(c);
	struct later *l = mem_alloc(sizeof *l);

	l->f = f;
	l->conn = c;
	conn_ref(c);
	buf_put(&l->bytes, out->p + from, out->n - from);
	out->n = from;
	f->nlater++;
	uv_timer_init(f->loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_later, (uint64_t)ms, 0);
}

static int on_request(struct conn *c, struct frame *in)
{
	struct fake *f = conn_public(c)->owner;
	struct buf *last;
	size_t from;
	int at = fake_slot(in->code);

	f->count[at]++;
	last = &f->last[at];
	last->n = 0;
	for (uint32_t i = 0; i < in->nfields; i++) {
		buf_str(last, in->field[i].key);
		buf_char(last, 0);
		buf_str(last, in->field[i].value);
		buf_char(last, 0);
	}
	f->last_body[at].n = 0;
	buf_str(&f->last_body[at], in->body);
	for (int i = 0; i < FAKE_RULES; i++) {
		struct fake_rule *r = &f->rule[i];
		if (!r->times || r->code != in->code)
			continue;
		r->times--;
		switch (r->act) {
		case FAKE_ANSWER:
			fake_answer(c, frame_id_of(in), r->answer, r->remark);
			return 0;
		case FAKE_SILENT:
			return 0;
		case FAKE_HANG_UP:
			return 1;
		case FAKE_TWICE:
			from = conn_out(c)->n;
			right_answer(f, c, in);
			buf_room(conn_out(c), conn_out(c)->n - from);
			buf_put(conn_out(c), conn_out(c)->p + from, conn_out(c)->n - from);
			return 0;
		}
	}
	from = conn_out(c)->n;
	right_answer(f, c, in);
	if (f->delay_ms[at])
		delay_answer(f, c, from, f->delay_ms[at]);
	return 0;
}

static void on_closed(struct conn *c, int why)
{
	struct fake *f = conn_public(c)->owner;
	struct fake_parked **at = &f->parked, *p;

	fake_forget(f, c);
	while ((p = *at)) {
		if (p->conn != c) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		conn_unref(c);
		free(p);
	}
}

static const struct conn_ops fake_ops = { .request = on_request, .closed = on_closed };

/* ---- Scripts --------------------------------------------------------------------------------------------------------- */

void fake_script(struct fake *f, int code, int times, enum fake_act act, int answer_code, const char *remark)
{
	for (int i = 0; i < FAKE_RULES; i++) {
		if (f->rule[i].times)
			continue;
		f->rule[i] = (struct fake_rule){ code, times, act, answer_code, remark };
		return;
	}
	assert(!"too many rules");
}

const char *fake_field(struct fake *f, int code, const char *name)
{
	const struct buf *b = &f->last[fake_slot(code)];
	const char *p = b->p, *end = b->p + b->n;

	while (p < end) {
		const char *value = p + strlen(p) + 1;
		if (strcmp(p, name) == 0)
			return value;
		p = value + strlen(value) + 1;
	}
	return "";
}

struct mq_str fake_body(struct fake *f, int code)
{
	return buf_view(&f->last_body[fake_slot(code)]);
}

struct request_all {
	struct fake *f;
	int code;
	const char *key, *value, *body;
};

static void on_client_answer(void *arg, int rc, struct frame *in)
{
	struct fake *f = arg;

	if (rc < 0)
		return;
	f->answers++;
	f->answer_code = in->code;
	f->answer_body.n = 0;
	buf_str(&f->answer_body, in->body);
}

static void request_one(void *arg, struct conn *c)
{
	struct request_all *r = arg;
	struct frame_out o;

	conn_call(c, &o, r->code, FRAME_JSON, 1000,
	          r->code == REQ_NOTIFY_CONSUMER_IDS_CHANGED ? NULL : on_client_answer, r->f);
	frame_cstr(&o, r->key, r->value);
	frame_body(&o);
	buf_str(o.buf, str_of(r->body));
	frame_end(&o);
	conn_kick(c);
}

void fake_request_all(struct fake *f, int code, const char *key, const char *value, const char *body)
{
	struct request_all r = { f, code, key, value, body };

	server_each(f->server, request_one, &r);
}

void fake_notify(struct fake *f, const char *group)
{
	fake_request_all(f, REQ_NOTIFY_CONSUMER_IDS_CHANGED, "consumerGroup", group, "");
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

void fake_again(struct fake *f)
{
	struct server_opt opt = { .bind = f->path ? NULL : "127.0.0.1", .port = f->port, .unix_path = f->path };
	struct mq_error e;

	f->server = server_listen(f->loop, &opt, &fake_ops, f, &e);
	if (!f->server)
		fprintf(stderr, "fake: %s\n", e.text);
	assert(f->server);
	if (f->path) {
		snprintf(f->addr, sizeof f->addr, "unix:%s", f->path);
		return;
	}
	f->port = server_port(f->server);
	snprintf(f->addr, sizeof f->addr, "127.0.0.1:%d", f->port);
}

struct fake *fake_start(uv_loop_t *loop, const char *broker)
{
	struct fake *f = mem_alloc(sizeof *f);

	f->loop = loop;
	snprintf(f->broker, sizeof f->broker, "%s", broker);
	fake_again(f);
	return f;
}

struct fake *fake_start_unix(uv_loop_t *loop, const char *broker, const char *path)
{
	struct fake *f = mem_alloc(sizeof *f);

	f->loop = loop;
	f->path = mem_strdup(path);
	snprintf(f->broker, sizeof f->broker, "%s", broker);
	fake_again(f);
	return f;
}

static void on_stopped(void *arg)
{
	struct fake *f = arg;

	f->stopped = true;
}

static void close_one(void *arg, struct conn *c)
{
	conn_close(c);
}

void fake_stop(struct fake *f)
{
	f->stopped = false;
	server_each(f->server, close_one, NULL);
	server_stop(f->server, 0, on_stopped, f);
	while (!f->stopped)
		uv_run(f->loop, UV_RUN_ONCE);
	f->server = NULL;
}

void fake_free(struct fake *f)
{
	if (f->server)
		fake_stop(f);
	while (f->nlater)
		uv_run(f->loop, UV_RUN_ONCE);
	for (int i = 0; i < FAKE_CODES; i++) {
		buf_free(&f->last[i]);
		buf_free(&f->last_body[i]);
	}
	buf_free(&f->answer_body);
	free(f->path);
	for (int t = 0; t < f->ntopics; t++)
		for (int q = 0; q < FAKE_QUEUES; q++) {
			for (size_t i = 0; i < f->topic[t].queue[q].nrecords; i++)
				buf_free(&f->topic[t].queue[q].record[i]);
			free(f->topic[t].queue[q].record);
		}
	free(f);
}

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *t)
{
}

static void on_tick_closed(uv_handle_t *h)
{
	*(bool *)h->data = true;
}

bool fake_until(uv_loop_t *loop, bool (*cond)(void *arg), void *arg, int ms)
{
	int64_t end = clock_mono_us() / 1000 + ms;
	bool gone = false, ok;
	uv_timer_t tick;

	uv_timer_init(loop, &tick);
	tick.data = &gone;
	uv_timer_start(&tick, on_tick, 1, 5);
	while (!(ok = cond(arg)) && clock_mono_us() / 1000 < end)
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&tick, on_tick_closed);
	while (!gone)
		uv_run(loop, UV_RUN_NOWAIT);
	return ok;
}

static bool never(void *arg)
{
	return false;
}

void fake_run(uv_loop_t *loop, int ms)
{
	fake_until(loop, never, NULL, ms);
}
