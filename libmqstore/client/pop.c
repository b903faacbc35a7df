/* pop.c: messages that a broker lends: asked for, handed out, settled. */
#include "pop.h"
#include "heartbeat.h"
#include "link.h"
#include "pop_lent.h"
#include "pull.h"
#include "pull_start.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "../codec/receipt.h"

/* ---- Handing out --------------------------------------------------------------------------------------------------------- */

static void hand_out(struct popped *m, const struct mq_message *is)
{
	struct mqclient_consumer *k = m->k;
	struct mqclient *c = k->c;
	void *scratch = c->scratch.p;
	struct mq_message shown = *is;
	struct buf props = { 0 };
	struct mq_str body = is->body;
	int rc = 0;

	if (is->sys_flag & MQ_SYS_COMPRESSED) {
		rc = mq_message_body(is, CLIENT_BODY_MAX, &scratch, &c->scratch.cap, &body);
		c->scratch.p = scratch;
	}
	if (rc < 0) {
		struct mq_error e;

		err_set(&e, MQ_ECORRUPT, "topic '%s' queue %s:%d offset %lld: compressed body is damaged or too big; passed over", m->topic,
			m->q.broker, m->q.id, (long long)m->off);
		consume_trouble(k, &e, false);
		pop_lent_set(m, POPPED_ACK);
		pop_lent_finish(m);
		return;
	}
	if (!str_is(is->topic, m->topic)) { /* it comes again: as what is sent back to a group shows it */
		property_put(&props, MQ_STR(PROP_RETRY_TOPIC), is->topic);
		buf_str(&props, is->props);
		shown.topic = str_of(m->topic);
		shown.props = buf_view(&props);
	}
	pop_lent_set(m, POPPED_OUT);
	k->ops.message(k->arg, &shown, body, &m->q);
	buf_free(&props);
}

/* Where the pop began in a queue, by startOffsetInfo. */
static bool start_of(struct mq_str info, enum receipt_retry retry, int32_t id, int64_t *start)
{
	struct mq_str one, f[3];

	while (str_split(&info, ';', &one)) {
		int32_t r, q;

		if (str_split(&one, ' ', &f[0]) && str_split(&one, ' ', &f[1]) && str_split(&one, ' ', &f[2]) &&
		    str_i32(f[0], &r) == 0 && str_i32(f[1], &q) == 0 && r == (int32_t)retry && q == id)
			return str_i64(f[2], start) == 0;
	}
	return false;
}

/* The handle of a message, and the topic in which it lies (in `topic`).  NULL: the answer does not say. */
static char *handle_of(struct pull *p, const struct frame *f, const struct mq_message *m, char topic[RECEIPT_TOPIC_MAX + 1])
{
	struct mq_str ck = mq_prop_get(m->props, PROP_POP_CK), name = { p->topic->name, p->topic->name_n };
	struct buf text = { 0 };
	struct receipt r = { .queue_id = m->queue_id, .off = m->queue_off, .retry = receipt_retry_of(m->topic),
			     .broker = str_of(p->broker->name) };
	char *handle;

	if (ck.p ? receipt_parse(ck, &r, NULL) < 0 :
		   !start_of(frame_get(f, "startOffsetInfo"), r.retry, m->queue_id, &r.start) ||
		   str_i64(frame_get(f, "popTime"), &r.pop_ms) < 0 || str_i64(frame_get(f, "invisibleTime"), &r.invisible_ms) < 0 ||
		   str_i32(frame_get(f, "reviveQid"), &r.revive_queue) < 0)
		return NULL;
	if (!receipt_topic(topic, r.retry, name, str_of(p->k->group)).p)
		return NULL;
	receipt_write(&r, &text);
	handle = str_dup(buf_view(&text));
	buf_free(&text);
	return handle;
}

static void take(struct pull *p, const struct frame *f, const struct mq_message *m)
{
	struct mqclient_consumer *k = p->k;
	char topic[RECEIPT_TOPIC_MAX + 1];
	char *handle = handle_of(p, f, m, topic);
	struct popped *x;

	if (!handle) {
		struct mq_error e;

		err_set(&e, MQ_EPROTO, "topic '%s' at %s: the answer to a pop lacks the handle of a message; it comes again",
			p->topic->name, p->broker->name);
		consume_trouble(k, &e, false);
		return;
	}
	x = pop_lent_add(k, p, str_of(topic), m->queue_id, m->queue_off);
	x->handle = handle;
	x->log_off = m->log_off;
	x->times = m->reconsume_times;
	pop_lent_for(x, p->asked_ms, k->pop_ms);
	/* The broker compared hashes; two tags may have the same. */
	if (!p->sub->sql && !p->sub->tags.all && !tag_match_name(&p->sub->tags, mq_prop_get(m->props, PROP_TAGS))) {
		pop_lent_set(x, POPPED_ACK);
		pop_lent_finish(x);
	} else {
		hand_out(x, m);
	}
}

static void take_all(struct pull *p, const struct frame *f)
{
	struct mqclient_consumer *k = p->k;
	struct mq_str s = f->body;
	struct mq_message m;
	int32_t n;

	p->handing = true;
	while (s.n && !p->dropped && !k->dead) {
		n = mq_message_decode(s.p, s.n, true, &m);
		if (n <= 0)
			break; /* damaged: it comes again when its time is over */
		if (k->paused) {
			char topic[RECEIPT_TOPIC_MAX + 1];
			char *handle = handle_of(p, f, &m, topic);
			struct popped *x = handle ? pop_lent_add(k, p, str_of(topic), m.queue_id, m.queue_off) : NULL;

			if (x) {
				x->handle = handle;
				x->log_off = m.log_off;
				x->times = m.reconsume_times;
				pop_lent_for(x, p->asked_ms, k->pop_ms);
				buf_put(&x->record, s.p, (size_t)n);
			}
		} else {
			take(p, f, &m);
		}
		s.p += n;
		s.n -= (size_t)n;
	}
	p->handing = false;
}

void pop_resume(struct mqclient_consumer *k)
{
	struct popped *m = k->pop ? TAILQ_FIRST(&k->pop->list) : NULL;
	struct pull *p, *next;

	while (m && !k->paused && !k->dead) {
		struct popped *after = TAILQ_NEXT(m, entry);
		struct mq_message is;

		if (m->state == POPPED_HELD && mq_message_decode(m->record.p, m->record.n, false, &is) > 0) {
			struct buf record = m->record;

			m->record = (struct buf){ 0 };
			hand_out(m, &is);
			buf_free(&record);
		}
		m = after;
	}
	for (p = TAILQ_FIRST(&k->pulls); p && !k->paused; p = next) {
		next = TAILQ_NEXT(p, entry);
		pop_go(p);
	}
}

/* ---- Popping ------------------------------------------------------------------------------------------------------------- */

static void refused(struct pull *p, const struct frame *f)
{
	struct mq_error e;
	char show[300];

	if (f->code == RESP_GO_AWAY)
		link_reset(p->link);
	err_set(&e, MQ_EREFUSED, "%s: %s", response_name(f->code), str_show(f->remark, show, sizeof show));
	e.response = f->code;
	pull_failed(p, "pop from", &e);
}

static void on_popped(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;
	struct mqclient_consumer *k = p->k;
	struct mq_error e;

	p->pulling = false;
	if (p->dropped || !k || k->dead || k->phase == CONSUME_LEAVING) {
		pull_unref(p); /* what it brought comes again */
		return;
	}
	if (rc < 0) {
		rc = link_error(p->link, rc, p->broker->name, &e);
		pull_failed(p, "pop from", &e);
		pull_unref(p);
		return;
	}
	switch (f->code) {
	case RESP_SUCCESS:
		p->fails = 0;
		p->troubled = false;
		take_all(p, f);
		break;
	case RESP_PULL_NOT_FOUND:
	case RESP_POLLING_TIMEOUT:
	case RESP_POLLING_FULL:
		p->fails = 0;
		/* What is behind those in hand, now or when it was asked, is not shown yet. */
		if (k->pop_order && k->stop_at_end && (p->in_hand || !TAILQ_EMPTY(&pop_lent_state(k)->list))) {
			pull_pause(p, PULL_PAUSE_MIN_MS);
		} else if (k->stop_at_end) {
			p->at_end = true;
			consume_check_end(k);
		} else if (client_now() - p->asked_ms < PULL_PAUSE_MIN_MS) { /* it does not hold pops */
			pull_pause(p, PULL_PAUSE_MS);
		}
		break;
	default:
		refused(p, f);
	}
	if (!p->dropped)
		pop_go(p);
	pull_unref(p);
}

void pop_go(struct pull *p)
{
	struct mqclient_consumer *k = p->k;
	int64_t room = k->window - (int64_t)pop_lent_state(k)->open;
	struct frame_out o;
	struct mq_error e;
	struct link *l;

	if (p->dropped || p->pulling || p->handing || p->at_end || k->paused || k->dead || k->phase != CONSUME_RUNNING ||
	    client_timer_on(&p->pause) || room <= 0)
		return;
	p->started = true;
	l = broker_master(p->broker);
	if (!l)
		l = broker_link(p->broker, 0);
	if (!l) {
		err_set(&e, MQ_ENOROUTE, "no address is known");
		pull_failed(p, "pop from", &e);
		return;
	}
	if (link_connect(l, &e) < 0 || link_call(l, &o, REQ_POP_MESSAGE, PULL_TIMEOUT_MS, on_popped, p, &e) < 0) {
		pull_failed(p, "pop from", &e);
		return;
	}
	p->in_hand = !TAILQ_EMPTY(&pop_lent_state(k)->list);
	p->link = l;
	p->pulling = true;
	p->calls++;
	p->asked_ms = client_now();
	frame_cstr(&o, "consumerGroup", k->group);
	frame_str(&o, "topic", (struct mq_str){ p->topic->name, p->topic->name_n });
	frame_i64(&o, "queueId", p->q.id);
	frame_i64(&o, "maxMsgNums", room < k->batch ? room : k->batch);
	frame_i64(&o, "invisibleTime", k->pop_ms);
	frame_i64(&o, "pollTime", k->stop_at_end ? 0 : PULL_SUSPEND_MS);
	frame_i64(&o, "bornTime", 0); /* when it arrives: clocks may differ */
	frame_i64(&o, "initMode", k->start == MQCLIENT_BEGIN ? 0 : 1);
	frame_cstr(&o, "exp", p->sub->expr);
	frame_cstr(&o, "expType", p->sub->sql ? "SQL92" : "TAG");
	frame_bool(&o, "order", k->pop_order);
	frame_cstr(&o, "bname", p->broker->name);
	link_send(l, &o);
}

void pop_assign(struct sub *s, void (*assign)(struct sub *s, const struct route_queue *v, size_t n))
{
	const struct mqclient_consumer *k = s->k;
	const struct topic *t = s->topic;
	struct route_queue *v;
	size_t n = 0;

	if (!t->known || t->made_up)
		return;
	v = mem_alloc((t->nread + 1) * sizeof *v);
	for (size_t i = 0; i < t->nread; i++) /* sorted by broker */
		if (k->only_broker ? strcmp(t->read[i].broker->name, k->only_broker) == 0 && t->read[i].id == k->only_id :
				     n == 0 || v[n - 1].broker != t->read[i].broker) {
			v[n] = t->read[i];
			v[n++].id = k->only_broker ? k->only_id : -1;
		}
	assign(s, v, n);
	free(v);
}

/* ---- What the user says -------------------------------------------------------------------------------------------------- */

void pop_settle(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t off, bool commit)
{
	struct popped *m = pop_lent_find(k, topic, q, off);
	struct pull *p, *next;

	if (!m || m->state == POPPED_ACK || m->state == POPPED_BACK)
		return;
	if (m->state == POPPED_AWAY) {
		pop_lent_drop(m);
	} else {
		pop_lent_set(m, commit ? POPPED_ACK : POPPED_BACK);
		pop_lent_finish(m);
	}
	for (p = TAILQ_FIRST(&k->pulls); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		pop_go(p);
	}
}

/* compat: the delay levels of a broker that was not told others. */
static int64_t level_ms(int32_t level)
{
	static const int32_t s[] = { 1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200 };
	const int32_t n = sizeof s / sizeof s[0];

	return (int64_t)s[level < 1 ? 0 : level > n ? n - 1 : level - 1] * 1000;
}

/* 1: it is put off, and cb comes.  0: it is to go to the dead letters, as any message that is sent back. */
int pop_send_back(struct mqclient_consumer *k, const struct mqclient_back *b, mqclient_done_cb *cb, void *arg, struct mq_error *e)
{
	struct popped *m;
	int rc;

	if (b->delay_level < 0)
		return 0;
	TAILQ_FOREACH(m, &pop_lent_state(k)->list, entry)
		if (m->state == POPPED_OUT && m->log_off == b->log_off && strcmp(m->q.broker, b->broker) == 0)
			break;
	if (!m)
		return err_set(e, MQ_ENOTFOUND, "message %s: its time is over, it comes again", b->id);
	if (b->max_times >= 0 && m->times >= b->max_times)
		return 0;
	rc = pop_lent_ask(m, level_ms(b->delay_level ? b->delay_level : 3 + m->times), cb, arg, e);
	if (rc < 0)
		return rc;
	pop_lent_set(m, POPPED_AWAY);
	return 1;
}
