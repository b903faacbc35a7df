/* pull.c: one queue of a consumer: pulling and handing out.
 *
 * One pull is under way per queue; the next leaves in the same turn in which an answer came, so that a broker with
 * messages always has a request.  Messages are handed out in place, from the bytes that were received.  While the
 * consumer is paused, what comes is held (one answer per queue at most) and handed out later.
 *
 *      0   messages                         -> hand out, pull on
 *      19  nothing new within the hold time -> pull again
 *      20  nothing for us up to there       -> pull from there
 *      21  we are not where messages are    -> go where the broker says, tell the user what that means
 *      else                                 -> a pause; whose fault it is decides what else is done
 *
 * Where to start is in pull_start.c. */
#include "pull.h"
#include "heartbeat.h"
#include "link.h"
#include "offset.h"
#include "pop.h"
#include "qlock.h"
#include "pull_start.h"
#include "../base/byte.h"
#include "../codec/layout.h"
#include "../codec/message.h"
#include "../codec/property.h"

static void on_pause(struct client_timer *t)
{
	struct pull *p = client_container(t, struct pull, pause);

	if (p->dropped)
		return;
	if (p->started || p->k->pop_ms)
		pull_go(p);
	else if (p->k->orderly && !qlock_valid(p))
		qlock_ask(p);
	else
		pull_start(p);
}

void pull_add(struct sub *s, struct broker *b, int32_t id)
{
	struct pull *p = mem_alloc(sizeof *p);

	p->c = s->k->c;
	p->k = s->k;
	p->sub = s;
	p->topic = s->topic;
	p->broker = b;
	p->q = (struct mqclient_queue){ b->name, id };
	p->next = p->handed = p->stored = p->end_off = -1;
	p->pause.cb = on_pause;
	TAILQ_INSERT_TAIL(&s->k->pulls, p, entry);
	if (s->k->pop_ms)
		pop_go(p);
	else if (s->k->orderly)
		qlock_ask(p);
	else
		pull_start(p);
}

static void pull_free(struct pull *p)
{
	client_timer_stop(p->c, &p->pause);
	window_free(&p->window);
	buf_free(&p->held);
	free(p);
}

void pull_unref(struct pull *p)
{
	p->calls--;
	if (!p->dropped || p->calls > 0)
		return;
	/* consume.c tries the last commit again. */
	if (p->k && p->k->phase == CONSUME_LEAVING && offset_due(p))
		return;
	if (p->k)
		TAILQ_REMOVE(&p->k->gone, p, entry);
	pull_free(p);
}

void pull_forget(struct pull *p)
{
	if (p->draining) {
		p->draining = false;
		p->calls--;
	}
	TAILQ_REMOVE(&p->k->gone, p, entry);
	p->k = NULL;
	p->sub = NULL;
	if (!p->calls)
		pull_free(p);
}

void pull_drop(struct pull *p)
{
	struct mqclient_consumer *k = p->k;

	offset_commit(p);
	client_timer_stop(p->c, &p->pause);
	TAILQ_REMOVE(&k->pulls, p, entry);
	TAILQ_INSERT_TAIL(&k->gone, p, entry);
	if (k->last == p)
		k->last = NULL;
	p->dropped = true;
	buf_free(&p->held);
	p->calls++;
	if (k->orderly) {
		p->draining = true;
		p->calls++;
		qlock_settled(p);
	}
	pull_unref(p);
}

void pull_seek(struct pull *p, int64_t off)
{
	window_clear(&p->window);
	buf_free(&p->held);
	p->held_at = 0;
	p->next = p->handed = off;
	p->commit_next = off + CONSUME_COMMIT_SPAN;
	p->moved = true;
	p->seeks++;
}

/* ---- Trouble --------------------------------------------------------------------------------------------------------- */

void pull_pause(struct pull *p, int64_t ms)
{
	if (!p->dropped)
		client_timer_start(p->c, &p->pause, ms);
}

/* Once per broker, until it works again: with 64 queues one line is enough. */
void pull_trouble(struct pull *p, const struct mq_error *e)
{
	struct pull *other;
	bool told = p->troubled;

	p->troubled = true;
	TAILQ_FOREACH(other, &p->k->pulls, entry)
		told |= other != p && other->broker == p->broker && other->troubled;
	if (!told && !consume_denied(p->k, e))
		consume_trouble(p->k, e, false);
}

void pull_failed(struct pull *p, const char *doing, struct mq_error *e)
{
	int64_t ms = client_pause_ms(p->fails++, PULL_PAUSE_MIN_MS, PULL_PAUSE_MAX_MS);

	err_wrap(e, "%s topic '%s' at %s", doing, p->topic->name, p->broker->name);
	/* A restart within a second is nobody's concern. */
	if (p->fails > 2)
		pull_trouble(p, e);
	else
		client_log(p->c, 1, "%s", e->text);
	route_refresh(p->topic);
	pull_pause(p, ms);
}

static void pull_refused(struct pull *p, struct frame *f)
{
	struct mqclient_consumer *k = p->k;
	char show[300];
	struct mq_error e;
	bool ours = false;

	p->fails++;
	err_set(&e, MQ_EREFUSED, "receive from topic '%s' queue %s:%d: %s: %s", p->topic->name, p->broker->name,
	        p->q.id, response_name(f->code), str_show(f->remark, show, sizeof show));
	e.response = f->code;
	switch (f->code) {
	case RESP_GO_AWAY:
		link_reset(p->link);
		pull_pause(p, PULL_PAUSE_MIN_MS);
		return;
	case RESP_SUBSCRIPTION_NOT_EXIST:
	case RESP_SUBSCRIPTION_NOT_LATEST:
	case RESP_FILTER_DATA_NOT_EXIST:
	case RESP_FILTER_DATA_NOT_LATEST:
		/* It has not heard our heartbeat, or was restarted since. */
		heartbeat_now(p->link);
		if (p->fails > 3)
			pull_trouble(p, &e);
		break;
	case RESP_TOPIC_NOT_EXIST:
		route_refresh(p->topic);
		ours = true;
		break;
	case RESP_NO_PERMISSION:
	case RESP_SUBSCRIPTION_PARSE_FAILED:
	case RESP_SUBSCRIPTION_GROUP_NOT_EXIST:
	case RESP_REQUEST_CODE_NOT_SUPPORTED:
		ours = true;
		break;
	case RESP_SYSTEM_BUSY:
		if (p->fails > 5)
			pull_trouble(p, &e);
		break;
	default:
		ours = p->fails >= 3;
		if (!ours)
			client_log(p->c, 1, "%s", e.text);
	}
	/* Who only looks is told and goes; a member waits until somebody has mended it. */
	if (ours && !k->group) {
		consume_trouble(k, &e, true);
		return;
	}
	if (ours)
		pull_trouble(p, &e);
	pull_pause(p, PULL_PAUSE_MS);
}

/* ---- Handing out ----------------------------------------------------------------------------------------------------- */

static bool wanted(const struct sub *s, const struct mq_message *m)
{
	/* The broker compared hashes; two tags may have the same. */
	return s->sql || s->tags.all || tag_match_name(&s->tags, mq_prop_get(m->props, PROP_TAGS));
}

static void damaged(struct pull *p, int64_t off, const char *what)
{
	struct mq_error e;

	err_set(&e, MQ_ECORRUPT, "topic '%s' queue %s:%d offset %lld: %s; passed over", p->topic->name, p->broker->name,
	        p->q.id, (long long)off, what);
	consume_trouble(p->k, &e, false);
}

static void hand_out(struct pull *p, const struct mq_message *m)
{
	struct mqclient_consumer *k = p->k;
	struct mqclient *c = p->c;
	void *scratch = c->scratch.p;
	struct mq_str body;
	int rc;

	if (m->sys_flag & MQ_SYS_COMPRESSED) {
		rc = mq_message_body(m, CLIENT_BODY_MAX, &scratch, &c->scratch.cap, &body);
		c->scratch.p = scratch;
		if (rc < 0) {
			p->handed = m->queue_off + 1;
			damaged(p, m->queue_off,
			        rc == MQ_ETOOBIG ? "compressed body is too big" : "compressed body is damaged");
			return;
		}
	} else {
		body = m->body;
	}
	if (k->group)
		window_push(&p->window, m->queue_off);
	p->handed = m->queue_off + 1;
	k->ops.message(k->arg, m, body, &p->q);
}

/* Hand out what is at s.  Returns how many bytes were dealt with: fewer than s.n if the consumer was paused meanwhile. */
static size_t hand_out_all(struct pull *p, struct mq_str s)
{
	struct mqclient_consumer *k = p->k;
	struct mq_message m;
	uint32_t seeks = p->seeks;
	size_t at = 0;

	p->handing = true;
	while (at < s.n) {
		int32_t n;
		if (k->paused || p->dropped || p->seeks != seeks || k->dead || (k->orderly && !qlock_valid(p)))
			break;
		n = mq_message_decode(s.p + at, s.n - at, true, &m);
		if (n <= 0) {
			/* Its length may still be right: then only this one is lost. */
			struct cursor cur = cursor_of(s.p + at, s.n - at);
			uint32_t size = cursor_u32(&cur);
			damaged(p, p->handed, n < 0 ? "damaged message" : "message is cut short");
			at = n == 0 || size < RECORD_MIN || size > s.n - at ? s.n : at + size;
			continue;
		}
		at += (size_t)n;
		/* What was asked for begins at asked_off; stop_at_end ends before what came later. */
		if (m.queue_off < p->handed || (p->end_off >= 0 && m.queue_off >= p->end_off))
			continue;
		if (wanted(p->sub, &m))
			hand_out(p, &m);
		else
			p->handed = m.queue_off + 1;
	}
	p->handing = false;
	return at;
}

/* All of an answer was dealt with: the queue stands where the broker said. */
static void hand_out_end(struct pull *p, int64_t next)
{
	if (p->end_off >= 0 && next > p->end_off)
		next = p->end_off;
	if (next > p->handed)
		p->handed = next;
	if (p->next < p->handed)
		p->next = p->handed;
}

static void take_messages(struct pull *p, struct mq_str body, int64_t next)
{
	uint32_t seeks = p->seeks;
	size_t n = hand_out_all(p, body);

	if (p->dropped || p->seeks != seeks)
		return;
	if (n < body.n) {
		p->held.n = 0;
		p->held_at = 0;
		p->held_next = next;
		buf_put(&p->held, body.p + n, body.n - n);
		return;
	}
	hand_out_end(p, next);
}

void pull_resume(struct pull *p)
{
	if (p->held.n && !p->dropped && !p->k->paused) {
		struct buf held = p->held;
		struct mq_str left = { held.p + p->held_at, held.n - p->held_at };
		uint32_t seeks = p->seeks;
		size_t n;

		p->held = (struct buf){ 0 };
		n = hand_out_all(p, left);
		if (p->dropped || p->seeks != seeks) {
			buf_free(&held);
			return;
		}
		if (n < left.n) {
			p->held = held;
			p->held_at += n;
			return;
		}
		p->held_at = 0;
		buf_free(&held);
		hand_out_end(p, p->held_next);
	}
	pull_go(p);
}

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static bool read_header(const struct frame *f, struct pull *p, int64_t *next)
{
	int64_t id, min, max;

	if (str_i64(frame_get(f, "nextBeginOffset"), next) < 0 || str_i64(frame_get(f, "minOffset"), &min) < 0 ||
	    str_i64(frame_get(f, "maxOffset"), &max) < 0 || *next < 0)
		return false;
	if (str_i64(frame_get(f, "suggestWhichBrokerId"), &id) < 0)
		id = 0;
	p->min_off = min < 0 ? 0 : min;
	p->max_off = max < 0 ? 0 : max;
	p->from_id = id;
	return true;
}

/* Code 21: too small, too large, or a reset by an administrator. */
static void moved(struct pull *p, int64_t next)
{
	struct mqclient_consumer *k = p->k;
	int64_t was = p->next;
	struct mq_error e;

	pull_seek(p, next);
	if (next != was) {
		if (was < p->min_off)
			err_set(&e, MQ_ENOTFOUND,
			        "topic '%s' queue %s:%d: offset %lld was deleted; going on at %lld, %lld skipped",
			        p->topic->name, p->broker->name, p->q.id, (long long)was, (long long)next,
			        (long long)(next - was));
		else if (was > p->max_off)
			err_set(&e, MQ_ENOTFOUND,
			        "topic '%s' queue %s:%d: offset %lld is beyond the end; going on at %lld",
			        p->topic->name, p->broker->name, p->q.id, (long long)was, (long long)next);
		else
			err_set(&e, MQ_ENOTFOUND, "topic '%s' queue %s:%d: offset was reset from %lld to %lld",
			        p->topic->name, p->broker->name, p->q.id, (long long)was, (long long)next);
		consume_trouble(k, &e, false);
	}
	if (p->dropped)
		return;
	offset_commit(p);
}

static void on_pulled(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;
	struct mqclient_consumer *k = p->k;
	struct mq_error e;
	int64_t next = 0;
	bool soon;

	p->pulling = false;
	if (p->dropped || k->dead || k->phase == CONSUME_LEAVING) {
		pull_unref(p);
		return;
	}
	/* Held meanwhile by our own count: callbacks below may drop the queue. */
	if (rc < 0) {
		rc = link_error(p->link, rc, p->broker->name, &e);
		pull_failed(p, "receive from", &e);
		pull_unref(p);
		return;
	}
	switch (f->code) {
	case RESP_SUCCESS:
	case RESP_PULL_NOT_FOUND:
	case RESP_PULL_RETRY_IMMEDIATELY:
	case RESP_PULL_OFFSET_MOVED:
		if (!read_header(f, p, &next)) {
			err_set(&e, MQ_EPROTO, "answer to a pull lacks offsets");
			pull_failed(p, "receive from", &e);
			pull_unref(p);
			return;
		}
		break;
	default:
		pull_refused(p, f);
		pull_unref(p);
		return;
	}
	p->fails = 0;
	p->troubled = false;
	if (p->asked_off != p->next) {
		/* Somebody moved us while this was under way. */
		pull_go(p);
		pull_unref(p);
		return;
	}
	/* A broker that does not hold pulls must not be asked all the time. */
	soon = client_now() - p->asked_ms < PULL_PAUSE_MIN_MS;
	if (f->code == RESP_SUCCESS) {
		take_messages(p, f->body, next);
	} else if (f->code == RESP_PULL_OFFSET_MOVED) {
		moved(p, next);
	} else if (next > p->handed) {
		hand_out_end(p, next);
	}
	/* The queue got shorter after we asked for its end. */
	if (f->code == RESP_PULL_NOT_FOUND && p->end_off > p->next && p->max_off <= p->next)
		p->end_off = p->next;
	if (p->next == p->asked_off && f->code != RESP_SUCCESS && soon)
		pull_pause(p, PULL_PAUSE_MIN_MS);
	if (!p->dropped)
		pull_go(p);
	pull_unref(p);
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

/* How many messages may come; 0 = wait until some are settled. */
static int32_t room(const struct pull *p)
{
	const struct mqclient_consumer *k = p->k;
	int32_t left = k->window - (int32_t)p->window.open;

	if (!k->group)
		return k->batch;
	/* One that is never settled must not make the window grow for ever. */
	if (p->window.n >= 4 * (uint32_t)k->window)
		return 0;
	/* Not one by one when the window is nearly full: pulls are cheaper in batches. */
	if (left < k->batch && 2 * left < k->window)
		return 0;
	return left < k->batch ? left : k->batch;
}

void pull_go(struct pull *p)
{
	struct mqclient_consumer *k = p->k;
	struct frame_out o;
	struct mq_error e;
	struct link *l;
	int32_t n;

	if (k->pop_ms) {
		pop_go(p);
		return;
	}
	if (p->dropped || !p->started || p->pulling || p->handing || k->paused || k->dead ||
	    k->phase != CONSUME_RUNNING || p->held.n || client_timer_on(&p->pause) || (k->orderly && !qlock_valid(p)))
		return;
	if (p->end_off >= 0 && p->next >= p->end_off) {
		if (!p->at_end) {
			p->at_end = true;
			consume_check_end(k);
		}
		return;
	}
	n = room(p);
	if (n <= 0)
		return;
	l = broker_link(p->broker, p->from_id);
	if (!l) {
		err_set(&e, MQ_ENOROUTE, "no address is known");
		pull_failed(p, "receive from", &e);
		return;
	}
	if (link_connect(l, &e) < 0) {
		pull_failed(p, "receive from", &e);
		return;
	}
	if (k->member && !l->known) {
		/* It would refuse us.  consume_link_known() ends the pause as soon as it has heard of us. */
		heartbeat_now(l);
		pull_pause(p, PULL_PAUSE_MS);
		return;
	}
	if (link_call(l, &o, REQ_PULL_MESSAGE, PULL_TIMEOUT_MS, on_pulled, p, &e) < 0) {
		pull_failed(p, "receive from", &e);
		return;
	}
	p->link = l;
	p->pulling = true;
	p->calls++;
	p->asked_ms = client_now();
	p->asked_off = p->next;
	frame_cstr(&o, "consumerGroup", k->group ? k->group : CONSUME_TOOLS_GROUP);
	frame_str(&o, "topic", (struct mq_str){ p->topic->name, p->topic->name_n });
	frame_i64(&o, "queueId", p->q.id);
	frame_i64(&o, "queueOffset", p->next);
	frame_i64(&o, "maxMsgNums", n);
	frame_i64(&o, "sysFlag", PULL_SUSPEND | (k->member ? 0 : PULL_SUBSCRIPTION));
	frame_i64(&o, "commitOffset", 0);
	frame_i64(&o, "suspendTimeoutMillis", PULL_SUSPEND_MS);
	frame_i64(&o, "subVersion", k->member ? p->sub->version : 0);
	if (!k->member)
		frame_cstr(&o, "subscription", p->sub->expr);
	frame_cstr(&o, "expressionType", p->sub->sql ? "SQL92" : "TAG");
	frame_cstr(&o, "bname", p->broker->name);
	link_send(l, &o);
}
