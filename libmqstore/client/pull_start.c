/* pull_start.c: where a consumer starts in a queue: ask for everything that may count in one write, then decide. */
#include "pull_start.h"
#include "link.h"
#include "offset.h"
#include "pull.h"

static void decide(struct pull *p);

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static void asked(struct pull *p)
{
	p->asks--;
	if (p->asks == 0 && !p->dropped)
		decide(p);
	pull_unref(p);
}

static void ask_failed(struct pull *p, int rc, const struct frame *f, const char *what)
{
	char show[200];

	if (p->ask_rc || p->dropped)
		return;
	if (rc < 0) {
		link_error(p->link, rc, p->broker->name, &p->ask_why);
	} else {
		err_set(&p->ask_why, MQ_EREFUSED, "%s: %s", response_name(f->code),
		        str_show(f->remark, show, sizeof show));
		p->ask_why.response = f->code;
	}
	p->ask_rc = p->ask_why.code;
	err_wrap(&p->ask_why, "%s of topic '%s' queue %s:%d", what, p->topic->name, p->broker->name, p->q.id);
}

static void take_offset(struct pull *p, int rc, struct frame *f, const char *what, int64_t *to)
{
	int64_t v;

	if (rc < 0 || f->code != RESP_SUCCESS)
		ask_failed(p, rc, f, what);
	else if (str_i64(frame_get(f, "offset"), &v) < 0)
		ask_failed(p, MQ_EPROTO, f, what);
	else
		*to = v < 0 ? 0 : v;
	asked(p);
}

static void on_max(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;

	take_offset(p, rc, f, "largest offset", &p->max_off);
}

static void on_min(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;

	take_offset(p, rc, f, "smallest offset", &p->min_off);
}

static void on_time(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;

	take_offset(p, rc, f, "offset by time", &p->ask_time);
}

static void on_stored(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;

	if (rc == 0 && f->code == RESP_QUERY_NOT_FOUND)
		asked(p);
	else
		take_offset(p, rc, f, "stored offset", &p->ask_stored);
}

/* ---- Questions ------------------------------------------------------------------------------------------------------- */

static bool ask(struct pull *p, int code, conn_answer_cb *cb)
{
	struct mqclient_consumer *k = p->k;
	struct frame_out o;

	if (p->ask_rc || link_call(p->link, &o, code, p->c->timeout_ms, cb, p, &p->ask_why) < 0) {
		if (!p->ask_rc)
			p->ask_rc = p->ask_why.code;
		return false;
	}
	p->calls++;
	p->asks++;
	if (code == REQ_QUERY_CONSUMER_OFFSET)
		frame_cstr(&o, "consumerGroup", k->group);
	frame_str(&o, "topic", (struct mq_str){ p->topic->name, p->topic->name_n });
	frame_i64(&o, "queueId", p->q.id);
	if (code == REQ_QUERY_CONSUMER_OFFSET && k->start != MQCLIENT_STORED)
		frame_bool(&o, "setZeroIfNotFound", false);
	if (code == REQ_SEARCH_OFFSET_BY_TIMESTAMP)
		frame_i64(&o, "timestamp", k->start_value);
	frame_cstr(&o, "bname", p->broker->name);
	link_send(p->link, &o);
	return true;
}

static void start_failed(struct pull *p)
{
	int64_t ms = client_pause_ms(p->fails++, PULL_PAUSE_MIN_MS, PULL_PAUSE_MAX_MS);

	if (p->ask_rc == MQ_EREFUSED && !p->k->group && p->fails > 2) {
		consume_trouble(p->k, &p->ask_why, true);
		return;
	}
	if (p->fails > 2)
		pull_trouble(p, &p->ask_why);
	else
		client_log(p->c, 1, "%s", p->ask_why.text);
	route_refresh(p->topic);
	pull_pause(p, ms);
}

void pull_start(struct pull *p)
{
	struct mqclient_consumer *k = p->k;

	if (p->asks || k->dead)
		return;
	p->ask_rc = 0;
	p->ask_why.code = 0;
	p->ask_stored = -1;
	p->ask_time = 0;
	p->link = broker_link(p->broker, 0);
	if (!p->link) {
		p->ask_rc = err_set(&p->ask_why, MQ_ENOROUTE, "broker %s: no address is known", p->broker->name);
		start_failed(p);
		return;
	}
	ask(p, REQ_GET_MAX_OFFSET, on_max);
	ask(p, REQ_GET_MIN_OFFSET, on_min);
	if (k->group && !k->broadcast)
		ask(p, REQ_QUERY_CONSUMER_OFFSET, on_stored);
	if (k->start == MQCLIENT_AT_TIME)
		ask(p, REQ_SEARCH_OFFSET_BY_TIMESTAMP, on_time);
	if (!p->asks)
		start_failed(p);
}

/* ---- Deciding -------------------------------------------------------------------------------------------------------- */

static int64_t within(int64_t v, int64_t min, int64_t max)
{
	return v < min ? min : v > max ? max : v;
}

/* Where to start when nothing is stored. */
static int64_t start_of(const struct pull *p)
{
	const struct mqclient_consumer *k = p->k;

	/* What was sent back for this group is for it, from the first on. */
	if (p->sub->retry)
		return p->min_off;
	switch (k->start) {
	case MQCLIENT_BEGIN:
		return p->min_off;
	case MQCLIENT_AT_OFFSET:
		return within(k->start_value, p->min_off, p->max_off);
	case MQCLIENT_AT_TIME:
		return within(p->ask_time, p->min_off, p->max_off);
	case MQCLIENT_LAST_N:
		return within(p->max_off - (k->start_value < p->max_off ? k->start_value : p->max_off), p->min_off,
		              p->max_off);
	default:
		return p->max_off;
	}
}

static void decide(struct pull *p)
{
	struct mqclient_consumer *k = p->k;
	int64_t from = -1;

	if (p->ask_rc) {
		start_failed(p);
		return;
	}
	p->fails = 0;
	p->troubled = false;
	if (p->min_off > p->max_off)
		p->max_off = p->min_off;
	if (k->ops.start_at)
		from = k->ops.start_at(k->arg, (struct mq_str){ p->topic->name, p->topic->name_n }, &p->q);
	if (p->dropped)
		return;
	if (from < 0)
		from = p->ask_stored >= 0 ? p->ask_stored : start_of(p);
	p->stored = p->ask_stored;
	p->next = p->handed = from;
	p->commit_next = from + CONSUME_COMMIT_SPAN;
	p->end_off = k->stop_at_end ? p->max_off : -1;
	p->started = true;
	pull_go(p);
}
