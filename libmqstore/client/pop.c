/* pop.c: messages that a broker lends: taken, handed out, acked, renewed, given back. */
#include "pop.h"
#include "heartbeat.h"
#include "link.h"
#include "pull.h"
#include "pull_start.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "../codec/receipt.h"

#define PROP_RETRY_TO PROP_RETRY_TOPIC

enum popped_state {
	POPPED_HELD,                    /* came while the consumer was paused: `record` */
	POPPED_OUT,                     /* in the user's hands */
	POPPED_ACK,                     /* to be acked, or an answer is awaited */
	POPPED_BACK,                    /* to be given back */
	POPPED_AWAY,                    /* put off by mqclient_send_back(): when the user settles it nothing is left to do */
};

/* A message that was lent. */
struct popped {
	UT_hash_handle hh;              /* by key */
	TAILQ_ENTRY(popped) entry;      /* in order of arrival */
	struct mqclient_consumer *k;
	struct broker *broker;
	struct mqclient_queue q;
	enum popped_state state;
	bool calling;                   /* an answer is awaited */
	char *topic;                    /* in which it lies: its own, or a retry topic */
	char *handle;
	struct buf record;
	int64_t off, log_off;
	int32_t times;                  /* that it came before */
	int64_t until;                  /* monotonic ms: its time is over */
	int64_t renew, again;           /* when to renew, to send an ack anew */
	size_t key_n;
	char key[];                     /* topic@broker@queue@offset */
};
TAILQ_HEAD(popped_list, popped);

struct pop_state {
	struct popped *all;             /* uthash */
	struct popped_list list;
	LIST_HEAD(, pop_call) calls;
	size_t open;                    /* handed out or held, not settled */
};

/* A request under way. */
struct pop_call {
	LIST_ENTRY(pop_call) entry;
	struct popped *m;               /* NULL: it is gone */
	bool left;                      /* the consumer, too: nobody is to be told */
	struct mqclient *c;
	struct link *link;
	int code;
	int64_t asked_ms, ms;           /* of a change: the time asked for */
	mqclient_done_cb *cb;
	void *arg;
};

static struct pop_state *state_of(struct mqclient_consumer *k)
{
	if (!k->pop) {
		k->pop = mem_alloc(sizeof *k->pop);
		TAILQ_INIT(&k->pop->list);
		LIST_INIT(&k->pop->calls);
	}
	return k->pop;
}

/* ---- What was lent ------------------------------------------------------------------------------------------------------- */

static char *make_key(struct mq_str topic, const char *broker, int32_t id, int64_t off)
{
	return mem_printf(MQ_STR_FMT "@%s@%d@%lld", MQ_STR_ARG(topic), broker, (int)id, (long long)off);
}

static struct popped *find(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t off)
{
	char *key = make_key(topic, q->broker, q->id, off);
	struct popped *m;

	HASH_FIND(hh, state_of(k)->all, key, strlen(key), m);
	free(key);
	return m;
}

static bool is_open(const struct popped *m)
{
	return m->state == POPPED_HELD || m->state == POPPED_OUT;
}

static void drop(struct popped *m)
{
	struct pop_state *s = m->k->pop;
	struct pop_call *call;

	LIST_FOREACH(call, &s->calls, entry)
		if (call->m == m)
			call->m = NULL;
	s->open -= is_open(m);
	HASH_DEL(s->all, m);
	TAILQ_REMOVE(&s->list, m, entry);
	buf_free(&m->record);
	free(m->topic);
	free(m->handle);
	free(m);
}

static void set_state(struct popped *m, enum popped_state state)
{
	m->k->pop->open -= is_open(m);
	m->state = state;
	m->k->pop->open += is_open(m);
}

static struct popped *add(struct mqclient_consumer *k, struct pull *p, struct mq_str topic, int32_t id, int64_t off)
{
	struct pop_state *s = state_of(k);
	char *key = make_key(topic, p->broker->name, id, off);
	size_t n = strlen(key);
	struct popped *m;

	HASH_FIND(hh, s->all, key, n, m);
	if (m) /* its time was over before we knew, and it came again */
		drop(m);
	m = mem_alloc(sizeof *m + n + 1);
	memcpy(m->key, key, n);
	m->key_n = n;
	free(key);
	m->k = k;
	m->broker = p->broker;
	m->q = (struct mqclient_queue){ p->broker->name, id };
	m->topic = str_dup(topic);
	m->off = off;
	HASH_ADD_KEYPTR(hh, s->all, m->key, m->key_n, m);
	TAILQ_INSERT_TAIL(&s->list, m, entry);
	s->open++;
	return m;
}

static void set_time(struct popped *m, int64_t asked_ms, int64_t ms)
{
	m->until = asked_ms + ms; /* from when it was asked for: never later than the broker thinks */
	m->renew = asked_ms + ms / 2;
}

/* ---- Asking the broker --------------------------------------------------------------------------------------------------- */

static void answered(struct popped *m, struct pop_call *call, int rc, struct frame *f);

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct pop_call *call = arg;
	struct popped *m = call->m;
	mqclient_done_cb *cb = call->cb;
	void *cb_arg = call->arg;
	struct mq_error why = { 0 };
	char show[200];

	if (!call->left)
		LIST_REMOVE(call, entry);
	if (rc < 0)
		rc = link_error(call->link, rc, m ? m->broker->name : NULL, &why);
	else if (f->code != RESP_SUCCESS) {
		rc = err_set(&why, MQ_EREFUSED, "%s: %s", response_name(f->code), str_show(f->remark, show, sizeof show));
		why.response = f->code;
	}
	if (m) {
		m->calling = false;
		answered(m, call, rc, f);
	}
	if (call->left)
		cb = NULL;
	free(call);
	if (cb)
		cb(cb_arg, rc, rc < 0 ? &why : NULL);
}

/* ms < 0: an ack.  Else another time from now on. */
static int ask(struct popped *m, int64_t ms, mqclient_done_cb *cb, void *arg, struct mq_error *e)
{
	struct mqclient_consumer *k = m->k;
	struct pop_call *call = mem_alloc(sizeof *call);
	struct frame_out o;
	int rc;

	*call = (struct pop_call){ .m = m, .c = k->c, .code = ms < 0 ? REQ_ACK_MESSAGE : REQ_CHANGE_MESSAGE_INVISIBLETIME,
				   .asked_ms = client_now(), .ms = ms, .cb = cb, .arg = arg };
	call->link = broker_master(m->broker);
	if (!call->link)
		call->link = broker_link(m->broker, 0);
	rc = call->link ? link_call(call->link, &o, call->code, k->c->timeout_ms, on_answer, call, e) :
	     err_set(e, MQ_ENOROUTE, "broker %s: no address is known", m->broker->name);
	if (rc < 0) {
		free(call);
		return rc;
	}
	LIST_INSERT_HEAD(&k->pop->calls, call, entry);
	m->calling = true;
	frame_cstr(&o, "consumerGroup", k->group);
	frame_cstr(&o, "topic", m->topic);
	frame_i64(&o, "queueId", m->q.id);
	frame_cstr(&o, "extraInfo", m->handle);
	frame_i64(&o, "offset", m->off);
	if (ms >= 0)
		frame_i64(&o, "invisibleTime", ms);
	frame_cstr(&o, "bname", m->broker->name);
	link_send(call->link, &o);
	return 0;
}

/* Ack it, or give it back; again later if that cannot be done now. */
static void finish(struct popped *m)
{
	struct mq_error e;

	if (m->calling)
		return; /* a renewal: its answer goes on from here */
	m->again = client_now() + POP_AGAIN_MS;
	ask(m, m->state == POPPED_ACK ? -1 : 0, NULL, NULL, &e);
}

static void came_too_late(struct popped *m)
{
	struct mq_error e;

	err_set(&e, MQ_ETIMEOUT, "message of topic '%s' queue %s:%d offset %lld: its time was over before it was acked; it comes again",
		m->topic, m->q.broker, m->q.id, (long long)m->off);
	consume_trouble(m->k, &e, false);
}

/* The handle for the time that was granted. */
static void take_handle(struct popped *m, const struct pop_call *call, const struct frame *f)
{
	struct buf text = { 0 };
	struct receipt r;

	if (receipt_parse(str_of(m->handle), &r, NULL) < 0 || str_i64(frame_get(f, "popTime"), &r.pop_ms) < 0 ||
	    str_i64(frame_get(f, "invisibleTime"), &r.invisible_ms) < 0 || str_i32(frame_get(f, "reviveQid"), &r.revive_queue) < 0)
		return;
	if (r.revive_queue != RECEIPT_ORDER_QUEUE)
		r.start = m->off; /* it is a pop of its own now */
	receipt_write(&r, &text);
	free(m->handle);
	m->handle = str_dup(buf_view(&text));
	buf_free(&text);
	set_time(m, call->asked_ms, call->ms);
}

static void answered(struct popped *m, struct pop_call *call, int rc, struct frame *f)
{
	bool late = rc < 0 && f; /* refused: there is nothing to be done about it */

	if (call->code == REQ_ACK_MESSAGE || call->ms == 0) {
		if (late && call->code == REQ_ACK_MESSAGE)
			came_too_late(m);
		if (rc == 0 || late)
			drop(m);
		return; /* else pop_tick() does it again */
	}
	if (m->state == POPPED_AWAY) {
		if (rc < 0) /* it stays with the user */
			set_state(m, POPPED_OUT);
		return;
	}
	/* A renewal. */
	if (rc == 0)
		take_handle(m, call, f);
	else if (late)
		m->renew = INT64_MAX;
	if (!is_open(m)) /* the user has settled it meanwhile */
		finish(m);
}

void pop_tick(struct mqclient_consumer *k)
{
	int64_t now = client_now();
	struct popped *m, *next;
	struct mq_error e;

	if (!k->pop)
		return;
	for (m = TAILQ_FIRST(&k->pop->list); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->calling)
			continue;
		if ((m->state == POPPED_ACK || m->state == POPPED_BACK) && now >= m->until) {
			if (m->state == POPPED_ACK)
				came_too_late(m);
			drop(m);
		} else if ((m->state == POPPED_ACK || m->state == POPPED_BACK) && now >= m->again) {
			finish(m);
		} else if (is_open(m) && now >= m->renew && k->phase == CONSUME_RUNNING) {
			m->renew = now + POP_AGAIN_MS;
			ask(m, k->pop_ms, NULL, NULL, &e);
		}
	}
}

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
		set_state(m, POPPED_ACK);
		finish(m);
		return;
	}
	if (!str_is(is->topic, m->topic)) { /* it comes again: as what is sent back to a group shows it */
		property_put(&props, MQ_STR(PROP_RETRY_TO), is->topic);
		buf_str(&props, is->props);
		shown.topic = str_of(m->topic);
		shown.props = buf_view(&props);
	}
	set_state(m, POPPED_OUT);
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
	x = add(k, p, str_of(topic), m->queue_id, m->queue_off);
	x->handle = handle;
	x->log_off = m->log_off;
	x->times = m->reconsume_times;
	set_time(x, p->asked_ms, k->pop_ms);
	/* The broker compared hashes; two tags may have the same. */
	if (!p->sub->sql && !p->sub->tags.all && !tag_match_name(&p->sub->tags, mq_prop_get(m->props, PROP_TAGS))) {
		set_state(x, POPPED_ACK);
		finish(x);
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
			struct popped *x = handle ? add(k, p, str_of(topic), m.queue_id, m.queue_off) : NULL;

			if (x) {
				x->handle = handle;
				x->log_off = m.log_off;
				x->times = m.reconsume_times;
				set_time(x, p->asked_ms, k->pop_ms);
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

static void failed(struct pull *p, struct mq_error *e)
{
	int64_t ms = p->fails < 5 ? (int64_t)PULL_PAUSE_MIN_MS << p->fails : PULL_PAUSE_MAX_MS;

	p->fails++;
	err_wrap(e, "pop from topic '%s' at %s", p->topic->name, p->broker->name);
	if (p->fails > 2)
		pull_trouble(p, e);
	else
		client_log(p->c, 1, "%s", e->text);
	route_refresh(p->topic);
	pull_pause(p, ms < PULL_PAUSE_MAX_MS ? ms : PULL_PAUSE_MAX_MS);
}

static void refused(struct pull *p, const struct frame *f)
{
	struct mq_error e;
	char show[300];

	if (f->code == RESP_GO_AWAY)
		link_reset(p->link);
	err_set(&e, MQ_EREFUSED, "%s: %s", response_name(f->code), str_show(f->remark, show, sizeof show));
	e.response = f->code;
	failed(p, &e);
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
		failed(p, &e);
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
		if (k->pop_order && k->stop_at_end && (p->in_hand || !TAILQ_EMPTY(&state_of(k)->list))) {
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
	int64_t room = k->window - (int64_t)state_of(k)->open;
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
		failed(p, &e);
		return;
	}
	if (link_connect(l, &e) < 0 || link_call(l, &o, REQ_POP_MESSAGE, PULL_TIMEOUT_MS, on_popped, p, &e) < 0) {
		failed(p, &e);
		return;
	}
	p->in_hand = !TAILQ_EMPTY(&state_of(k)->list);
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
	struct popped *m = find(k, topic, q, off);
	struct pull *p, *next;

	if (!m || m->state == POPPED_ACK || m->state == POPPED_BACK)
		return;
	if (m->state == POPPED_AWAY) {
		drop(m);
	} else {
		set_state(m, commit ? POPPED_ACK : POPPED_BACK);
		finish(m);
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
	TAILQ_FOREACH(m, &state_of(k)->list, entry)
		if (m->state == POPPED_OUT && m->log_off == b->log_off && strcmp(m->q.broker, b->broker) == 0)
			break;
	if (!m)
		return err_set(e, MQ_ENOTFOUND, "message %s: its time is over, it comes again", b->id);
	if (b->max_times >= 0 && m->times >= b->max_times)
		return 0;
	rc = ask(m, level_ms(b->delay_level ? b->delay_level : 3 + m->times), cb, arg, e);
	if (rc < 0)
		return rc;
	set_state(m, POPPED_AWAY);
	return 1;
}

/* ---- End ----------------------------------------------------------------------------------------------------------------- */

void pop_give_back(struct mqclient_consumer *k)
{
	struct popped *m, *next;

	for (m = k->pop ? TAILQ_FIRST(&k->pop->list) : NULL; m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (!is_open(m))
			continue;
		set_state(m, POPPED_BACK);
		finish(m);
	}
}

bool pop_busy(const struct mqclient_consumer *k)
{
	return k->pop && (!LIST_EMPTY(&k->pop->calls) || !TAILQ_EMPTY(&k->pop->list));
}

void pop_free_all(struct mqclient_consumer *k)
{
	struct pop_call *call;
	struct popped *m;

	if (!k->pop)
		return;
	while ((m = TAILQ_FIRST(&k->pop->list)))
		drop(m);
	while ((call = LIST_FIRST(&k->pop->calls))) { /* they end with their answers */
		LIST_REMOVE(call, entry);
		call->left = true;
	}
	free(k->pop);
	k->pop = NULL;
}
