/* pop_lent.c: what brokers have lent to a consumer: the table of it, and what is asked of them about it: acks, other times. */
#include "pop_lent.h"
#include "link.h"
#include "pop.h"
#include "../codec/receipt.h"

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

struct pop_state *pop_lent_state(struct mqclient_consumer *k)
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

struct popped *pop_lent_find(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t off)
{
	char *key = make_key(topic, q->broker, q->id, off);
	struct popped *m;

	HASH_FIND(hh, pop_lent_state(k)->all, key, strlen(key), m);
	free(key);
	return m;
}

static bool pop_lent_open(const struct popped *m)
{
	return m->state == POPPED_HELD || m->state == POPPED_OUT;
}

void pop_lent_drop(struct popped *m)
{
	struct pop_state *s = m->k->pop;
	struct pop_call *call;

	LIST_FOREACH(call, &s->calls, entry)
		if (call->m == m)
			call->m = NULL;
	s->open -= pop_lent_open(m);
	HASH_DEL(s->all, m);
	TAILQ_REMOVE(&s->list, m, entry);
	buf_free(&m->record);
	free(m->topic);
	free(m->handle);
	free(m);
}

void pop_lent_set(struct popped *m, enum popped_state state)
{
	m->k->pop->open -= pop_lent_open(m);
	m->state = state;
	m->k->pop->open += pop_lent_open(m);
}

struct popped *pop_lent_add(struct mqclient_consumer *k, struct pull *p, struct mq_str topic, int32_t id, int64_t off)
{
	struct pop_state *s = pop_lent_state(k);
	char *key = make_key(topic, p->broker->name, id, off);
	size_t n = strlen(key);
	struct popped *m;

	HASH_FIND(hh, s->all, key, n, m);
	if (m) /* its time was over before we knew, and it came again */
		pop_lent_drop(m);
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

void pop_lent_for(struct popped *m, int64_t asked_ms, int64_t ms)
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
int pop_lent_ask(struct popped *m, int64_t ms, mqclient_done_cb *cb, void *arg, struct mq_error *e)
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
void pop_lent_finish(struct popped *m)
{
	struct mq_error e;

	if (m->calling)
		return; /* a renewal: its answer goes on from here */
	m->again = client_now() + POP_AGAIN_MS;
	pop_lent_ask(m, m->state == POPPED_ACK ? -1 : 0, NULL, NULL, &e);
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
	pop_lent_for(m, call->asked_ms, call->ms);
}

static void answered(struct popped *m, struct pop_call *call, int rc, struct frame *f)
{
	bool late = rc < 0 && f; /* refused: there is nothing to be done about it */

	if (call->code == REQ_ACK_MESSAGE || call->ms == 0) {
		if (late && call->code == REQ_ACK_MESSAGE)
			came_too_late(m);
		if (rc == 0 || late)
			pop_lent_drop(m);
		return; /* else pop_lent_tick() does it again */
	}
	if (m->state == POPPED_AWAY) {
		if (rc < 0) /* it stays with the user */
			pop_lent_set(m, POPPED_OUT);
		return;
	}
	/* A renewal. */
	if (rc == 0)
		take_handle(m, call, f);
	else if (late)
		m->renew = INT64_MAX;
	if (!pop_lent_open(m)) /* the user has settled it meanwhile */
		pop_lent_finish(m);
}

void pop_lent_tick(struct mqclient_consumer *k)
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
			pop_lent_drop(m);
		} else if ((m->state == POPPED_ACK || m->state == POPPED_BACK) && now >= m->again) {
			pop_lent_finish(m);
		} else if (pop_lent_open(m) && now >= m->renew && k->phase == CONSUME_RUNNING) {
			m->renew = now + POP_AGAIN_MS;
			pop_lent_ask(m, k->pop_ms, NULL, NULL, &e);
		}
	}
}

/* ---- End ----------------------------------------------------------------------------------------------------------------- */

void pop_lent_give_back(struct mqclient_consumer *k)
{
	struct popped *m, *next;

	for (m = k->pop ? TAILQ_FIRST(&k->pop->list) : NULL; m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (!pop_lent_open(m))
			continue;
		pop_lent_set(m, POPPED_BACK);
		pop_lent_finish(m);
	}
}

bool pop_lent_busy(const struct mqclient_consumer *k)
{
	return k->pop && (!LIST_EMPTY(&k->pop->calls) || !TAILQ_EMPTY(&k->pop->list));
}

void pop_lent_free_all(struct mqclient_consumer *k)
{
	struct pop_call *call;
	struct popped *m;

	if (!k->pop)
		return;
	while ((m = TAILQ_FIRST(&k->pop->list)))
		pop_lent_drop(m);
	while ((call = LIST_FIRST(&k->pop->calls))) { /* they end with their answers */
		LIST_REMOVE(call, entry);
		call->left = true;
	}
	free(k->pop);
	k->pop = NULL;
}
