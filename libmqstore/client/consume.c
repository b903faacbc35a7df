/* consume.c: the life of a consumer: options, routes, start, end; and what the user says to it. */
#include "consume.h"
#include "balance.h"
#include "heartbeat.h"
#include "link.h"
#include "offset.h"
#include "pop.h"
#include "pop_lent.h"
#include "qlock.h"
#include "pull.h"

/* ---- For the other files --------------------------------------------------------------------------------------------- */

void consume_trouble(struct mqclient_consumer *k, const struct mq_error *e, bool fatal)
{
	if (k->dead)
		return;
	k->dead = fatal;
	client_log(k->c, fatal ? 0 : 1, "%s", e->text);
	if (k->ops.trouble)
		k->ops.trouble(k->arg, e, fatal);
}

bool consume_denied(struct mqclient_consumer *k, const struct mq_error *e)
{
	/* compat: the code is that of any error; the peer's own tools look for the name of the class. */
	if (!strstr(e->text, "acl.common.AclException"))
		return false;
	consume_trouble(k, e, !k->group || k->stop_at_end || k->only_broker);
	return true;
}

void consume_check_end(struct mqclient_consumer *k)
{
	struct pull *p;

	if (!k->stop_at_end || k->ended || k->dead || k->phase != CONSUME_RUNNING || k->balancing)
		return;
	for (size_t i = 0; i < k->nsubs; i++)
		if (!k->subs[i].balanced)
			return;
	TAILQ_FOREACH(p, &k->pulls, entry)
		if (!p->at_end)
			return;
	k->ended = true;
	if (k->ops.ended)
		k->ops.ended(k->arg);
}

void consume_link_known(struct link *l)
{
	struct mqclient_consumer *k;
	struct pull *p;

	LIST_FOREACH(k, &l->c->consumers, entry) {
		if (!k->member || k->phase != CONSUME_RUNNING)
			continue;
		TAILQ_FOREACH(p, &k->pulls, entry) {
			if (!p->started || broker_link(p->broker, p->from_id) != l)
				continue;
			client_timer_stop(k->c, &p->pause);
			pull_go(p);
		}
	}
}

static void run(struct mqclient_consumer *k)
{
	k->phase = CONSUME_RUNNING;
	k->started_ms = client_now();
	if (k->group)
		client_timer_start(k->c, &k->commit_timer, k->pop_ms ? POP_AGAIN_MS / 2 : CLIENT_COMMIT_MS);
	balance_kick(k);
}

void consume_beat_done(struct mqclient *c)
{
	struct mqclient_consumer *k;

	/* One whose subscriptions are not in the heartbeats that were answered waits for the next. */
	if (c->beat_stale)
		return;
	LIST_FOREACH(k, &c->consumers, entry)
		if (k->phase == CONSUME_BEAT)
			run(k);
}

struct pull *consume_find(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q)
{
	struct pull *p = k->last;

	if (p && p->q.broker == q->broker && p->q.id == q->id && p->topic->name_n == topic.n &&
	    memcmp(p->topic->name, topic.p, topic.n) == 0)
		return p;
	TAILQ_FOREACH(p, &k->pulls, entry) {
		if (p->q.id != q->id || p->topic->name_n != topic.n || memcmp(p->topic->name, topic.p, topic.n) != 0)
			continue;
		if (p->q.broker == q->broker || strcmp(p->q.broker, q->broker) == 0) {
			k->last = p;
			return p;
		}
	}
	return NULL;
}

/* The queue when it is being given up: of those that were handed out of it some are not settled. */
static struct pull *find_gone(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q)
{
	struct pull *p;

	TAILQ_FOREACH(p, &k->gone, entry)
		if (p->draining && p->q.id == q->id && p->topic->name_n == topic.n &&
		    memcmp(p->topic->name, topic.p, topic.n) == 0 && strcmp(p->q.broker, q->broker) == 0)
			return p;
	return NULL;
}

/* ---- Routes first ---------------------------------------------------------------------------------------------------- */

static void step(struct mqclient_consumer *k)
{
	for (size_t i = 0; i < k->nsubs; i++)
		if (!k->subs[i].routed)
			return;
	if (k->phase != CONSUME_ROUTES || k->dead)
		return;
	if (!k->member) {
		run(k);
		return;
	}
	/* Who asks for its share before the brokers know it gets none. */
	k->phase = CONSUME_BEAT;
	heartbeat_changed(k->c);
}

static void on_route(struct route_wait *w, int rc, const struct mq_error *e)
{
	struct sub *s = client_container(w, struct sub, wait);
	struct mqclient_consumer *k = s->k;
	bool once = !k->group || k->stop_at_end || k->only_broker;

	if (k->phase == CONSUME_LEAVING || rc == MQ_ECANCELLED)
		return;
	if (rc < 0 && !(s->retry && rc == MQ_ENOROUTE)) {
		/* Who looks wants to see it now; a member may be there before its topic or its servers are. */
		if (!s->retry && (once || !s->troubled))
			consume_trouble(k, e, once);
		s->troubled = true;
		if (k->dead)
			return;
		client_timer_start(k->c, &k->route_timer, CLIENT_BALANCE_AGAIN_MS);
		if (rc != MQ_ENOROUTE)
			return;
	}
	if (rc == 0)
		s->troubled = false;
	s->routed = true;
	step(k);
}

/* Look again for what was not there. */
static void on_route_timer(struct client_timer *t)
{
	struct mqclient_consumer *k = client_container(t, struct mqclient_consumer, route_timer);

	for (size_t i = 0; i < k->nsubs; i++) {
		struct sub *s = &k->subs[i];
		if (!s->wait.on && s->troubled)
			route_wait(s->topic, &s->wait);
	}
}

static void on_commit_timer(struct client_timer *t)
{
	struct mqclient_consumer *k = client_container(t, struct mqclient_consumer, commit_timer);

	offset_commit_all(k);
	pop_lent_tick(k);
	client_timer_start(k->c, &k->commit_timer, k->pop_ms ? POP_AGAIN_MS / 2 : CLIENT_COMMIT_MS);
}

static void on_balance_timer(struct client_timer *t)
{
	balance_kick(client_container(t, struct mqclient_consumer, balance_timer));
}

static void on_resume_timer(struct client_timer *t)
{
	struct mqclient_consumer *k = client_container(t, struct mqclient_consumer, resume_timer);
	struct pull *p, *next;

	if (k->pop_ms) {
		pop_resume(k);
		return;
	}
	for (p = TAILQ_FIRST(&k->pulls); p && !k->paused; p = next) {
		next = TAILQ_NEXT(p, entry);
		pull_resume(p);
	}
}

/* ---- Begin ----------------------------------------------------------------------------------------------------------- */

static int sub_init(struct sub *s, struct mqclient_consumer *k, struct mq_str topic, const char *expr, bool sql,
                    bool retry, struct mq_error *e)
{
	int rc = mq_check_topic(topic, e);

	if (rc < 0)
		return rc;
	if (!sql) {
		rc = tag_parse(str_of(expr), &s->tags, e);
		if (rc < 0)
			return err_wrap(e, "filter '%s'", expr);
	}
	s->k = k;
	s->expr = mem_strdup(expr);
	s->sql = sql;
	s->retry = retry;
	s->version = clock_wall_ms();
	s->wait.cb = on_route;
	s->topic = route_topic(k->c, topic);
	s->topic->subscribed++;
	k->nsubs++;
	return 0;
}

static void consumer_free(struct mqclient_consumer *k)
{
	for (size_t i = 0; i < k->nsubs; i++) {
		struct sub *s = &k->subs[i];
		route_unwait(s->topic, &s->wait);
		s->topic->subscribed--;
		tag_free(&s->tags);
		free(s->expr);
	}
	client_timer_stop(k->c, &k->balance_timer);
	client_timer_stop(k->c, &k->commit_timer);
	client_timer_stop(k->c, &k->resume_timer);
	client_timer_stop(k->c, &k->route_timer);
	client_timer_stop(k->c, &k->leave_timer);
	pop_lent_free_all(k);
	free(k->subs);
	free(k->group);
	free(k->only_broker);
	free(k);
}

static int check(struct mqclient *c, const struct mqclient_consume_opt *opt, const struct mqclient_consume_ops *ops,
                 struct mq_error *e)
{
	const struct mqclient_consumer *k;
	int rc;

	if ((opt->broadcast || opt->orderly) && !opt->group)
		return err_set(e, MQ_EINVAL, "%s consumption needs a group", opt->broadcast ? "broadcast" : "ordered");
	if (opt->pop && (!opt->group || opt->broadcast))
		return err_set(e, MQ_EINVAL, "popping needs a group that does not broadcast");
	if (opt->pop_ms < 0 || (opt->pop_ms > 0 && opt->pop_ms < POP_INVISIBLE_MIN_MS) || opt->pop_ms > POP_INVISIBLE_MAX_MS)
		return err_set(e, MQ_EINVAL, "messages can be popped for %d to %d ms", POP_INVISIBLE_MIN_MS, POP_INVISIBLE_MAX_MS);
	if (opt->broadcast && opt->orderly)
		return err_set(e, MQ_EINVAL, "ordered and broadcast consumption exclude each other");
	if (!opt->ntopics)
		return err_set(e, MQ_EINVAL, "no topic to receive from");
	if (!ops->message)
		return err_set(e, MQ_EINVAL, "no callback for messages");
	if (opt->window < 0 || opt->window > CONSUME_WINDOW_MAX)
		return err_set(e, MQ_EINVAL, "window %d: 1 to %d are allowed", opt->window, CONSUME_WINDOW_MAX);
	if (opt->batch < 0 || opt->batch > CONSUME_BATCH_MAX)
		return err_set(e, MQ_EINVAL, "batch %d: 1 to %d are allowed", opt->batch, CONSUME_BATCH_MAX);
	if (opt->start == MQCLIENT_LAST_N && opt->start_value < 0)
		return err_set(e, MQ_EINVAL, "last %lld messages: 0 or more are allowed", (long long)opt->start_value);
	if (!opt->group)
		return 0;
	rc = mq_check_group(str_of(opt->group), e);
	if (rc < 0)
		return rc;
	LIST_FOREACH(k, &c->consumers, entry)
		if (k->group && strcmp(k->group, opt->group) == 0)
			return err_set(e, MQ_EBUSY, "group '%s' is consumed by this client already", opt->group);
	return 0;
}

static void on_leave_timer(struct client_timer *t);

int mqclient_consume(struct mqclient *c, struct mqclient_consumer **out, const struct mqclient_consume_opt *opt,
                     const struct mqclient_consume_ops *ops, void *arg, struct mq_error *e)
{
	const char *expr = opt->filter && *opt->filter ? opt->filter : "*";
	struct mqclient_consumer *k;
	int rc = check(c, opt, ops, e);
	char *retry;

	*out = NULL;
	if (rc < 0)
		return rc;
	k = mem_alloc(sizeof *k);
	k->c = c;
	k->group = opt->group ? mem_strdup(opt->group) : NULL;
	k->member = opt->group && (opt->pop || !opt->queue.broker);
	k->pop_ms = !opt->pop ? 0 : opt->pop_ms ? opt->pop_ms : POP_INVISIBLE_MS;
	k->pop_order = opt->pop && opt->orderly;
	k->start = opt->start;
	k->start_value = opt->start_value;
	k->only_broker = opt->queue.broker ? mem_strdup(opt->queue.broker) : NULL;
	k->only_id = opt->queue.id;
	k->stop_at_end = opt->stop_at_end;
	k->orderly = opt->orderly && !opt->pop; /* popped in order: the broker sees to it */
	k->broadcast = opt->broadcast;
	k->window = opt->window ? opt->window : CONSUME_WINDOW;
	k->batch = opt->batch ? opt->batch : CONSUME_BATCH;
	if (k->group && k->batch > k->window)
		k->batch = k->window;
	if (k->pop_ms && k->batch > POP_BATCH_MAX)
		k->batch = POP_BATCH_MAX;
	k->ops = *ops;
	k->arg = arg;
	k->balance_timer.cb = on_balance_timer;
	k->commit_timer.cb = on_commit_timer;
	k->resume_timer.cb = on_resume_timer;
	k->route_timer.cb = on_route_timer;
	k->leave_timer.cb = on_leave_timer;
	TAILQ_INIT(&k->pulls);
	TAILQ_INIT(&k->gone);
	LIST_INIT(&k->rounds);
	qlock_init(k);
	k->subs = mem_alloc((opt->ntopics + 1) * sizeof *k->subs);
	for (size_t i = 0; i < opt->ntopics && rc == 0; i++)
		rc = sub_init(&k->subs[i], k, opt->topics[i], expr, opt->sql, false, e);
	/* Who broadcasts sends nothing back; what comes again of a pop is popped with its topic. */
	if (rc == 0 && k->member && !k->broadcast && !k->pop_ms) {
		retry = mem_printf(CONSUME_RETRY_PREFIX "%s", k->group);
		rc = sub_init(&k->subs[k->nsubs], k, str_of(retry), "*", false, true, e);
		free(retry);
	}
	if (rc < 0) {
		consumer_free(k);
		return rc;
	}
	LIST_INSERT_HEAD(&c->consumers, k, entry);
	for (size_t i = 0; i < k->nsubs; i++)
		route_wait(k->subs[i].topic, &k->subs[i].wait);
	*out = k;
	return 0;
}

/* ---- What the user says ---------------------------------------------------------------------------------------------- */

void mqclient_settle(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q,
                     int64_t queue_off, bool commit)
{
	struct pull *p, *p2;

	if (!k->group)
		return;
	if (k->pop_ms) {
		pop_settle(k, topic, q, queue_off, commit);
		return;
	}
	p = consume_find(k, topic, q);
	if (k->orderly && (p2 = find_gone(k, topic, q)) && window_settle(&p2->window, queue_off, commit)) {
		qlock_settled(p2);
		return;
	}
	if (!p || !window_settle(&p->window, queue_off, commit))
		return;
	if (offset_point(p) >= p->commit_next && !p->committing)
		offset_commit(p);
	if (!p->pulling)
		pull_go(p);
}

void mqclient_commit(struct mqclient_consumer *k)
{
	offset_commit_all(k);
}

void mqclient_pause(struct mqclient_consumer *k, bool on)
{
	if (k->paused == on)
		return;
	k->paused = on;
	/* Not from here: the user may be in the middle of a message. */
	if (!on)
		client_timer_start(k->c, &k->resume_timer, 0);
}

void mqclient_progress(struct mqclient_consumer *k, void (*cb)(void *arg, const struct mqclient_progress *p), void *arg)
{
	struct pull *p;

	TAILQ_FOREACH(p, &k->pulls, entry) {
		struct mqclient_progress g = {
			.topic = { p->topic->name, p->topic->name_n },
			.queue = p->q,
			.min_off = p->min_off,
			.max_off = p->max_off,
			.next_off = p->handed,
			.committed_off = p->stored,
		};
		cb(arg, &g);
	}
}

/* ---- End ------------------------------------------------------------------------------------------------------------- */

enum { COMMIT_AGAIN_MS = 50 };

/* The last commits: again, as long as there is time, if a broker does not take them. */
static int commit_rest(struct mqclient_consumer *k, int64_t until)
{
	int64_t again = client_now() + COMMIT_AGAIN_MS, now;
	struct pull *p, *next;
	bool open, due;

	for (;;) {
		now = client_now();
		open = due = false;
		for (p = TAILQ_FIRST(&k->gone); p; p = next) {
			next = TAILQ_NEXT(p, entry);
			if (now >= again)
				offset_commit(p);
			open |= p->committing;
			due |= offset_due(p);
		}
		pop_lent_tick(k);
		open |= pop_lent_busy(k);
		if (!open && !due)
			return 0;
		if (now >= until)
			break;
		if (now >= again)
			again = now + COMMIT_AGAIN_MS;
		mqclient_run(k->c, (int)((again < until ? again : until) - now));
	}
	if (!k->commit_rc)
		k->commit_rc = err_set(&k->commit_why, MQ_ETIMEOUT, "%s of group '%s': no answer in time",
		                       k->pop_ms ? "acks" : "store offsets", k->group);
	return k->commit_rc;
}

/* What both ways to leave begin with: nothing more is taken, what is settled is committed. */
static void leave_begin(struct mqclient_consumer *k)
{
	struct pull *p;

	k->phase = CONSUME_LEAVING;
	k->commit_rc = 0;
	balance_stop(k);
	qlock_stop(k);
	client_timer_stop(k->c, &k->commit_timer);
	client_timer_stop(k->c, &k->route_timer);
	client_timer_stop(k->c, &k->resume_timer);
	pop_lent_give_back(k);
	while ((p = TAILQ_FIRST(&k->pulls)))
		pull_drop(p);
}

/* And end with.  Pulls that a broker still holds outlive us. */
static void leave_end(struct mqclient_consumer *k)
{
	struct pull *p;

	while ((p = TAILQ_FIRST(&k->gone)))
		pull_forget(p);
	LIST_REMOVE(k, entry);
	consumer_free(k);
}

/* A commit that no broker took is sent again as long as there is time. */
static void on_leave_timer(struct client_timer *t)
{
	struct mqclient_consumer *k = client_container(t, struct mqclient_consumer, leave_timer);
	void (*cb)(void *, int, const struct mq_error *) = k->left;
	void *arg = k->left_arg;
	struct pull *p, *next;
	struct mq_error why;
	bool open = false;
	int rc;

	for (p = TAILQ_FIRST(&k->gone); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		offset_commit(p);
		open |= p->committing || offset_due(p);
	}
	pop_lent_tick(k);
	open |= pop_lent_busy(k);
	if (open && client_now() < k->leave_until) {
		client_timer_start(k->c, &k->leave_timer, COMMIT_AGAIN_MS);
		return;
	}
	if (open && !k->commit_rc)
		k->commit_rc = err_set(&k->commit_why, MQ_ETIMEOUT, "store offsets of group '%s': no answer in time",
		                       k->group);
	rc = open ? k->commit_rc : 0;
	why = k->commit_why;
	qlock_unlock_all(k);
	if (k->member)
		heartbeat_unregister(k->c, k->group);
	leave_end(k);
	if (cb)
		cb(arg, rc, rc < 0 ? &why : NULL);
}

void mqclient_consumer_leave(struct mqclient_consumer *k, int timeout_ms, void (*cb)(void *arg, int rc, const struct mq_error *err),
                             void *arg)
{
	leave_begin(k);
	k->left = cb;
	k->left_arg = arg;
	k->leave_until = client_now() + (timeout_ms > 0 ? timeout_ms : 0);
	client_timer_start(k->c, &k->leave_timer, 0);
}

int mqclient_consumer_free(struct mqclient_consumer *k, int timeout_ms, struct mq_error *e)
{
	int64_t until = client_now() + (timeout_ms > 0 ? timeout_ms : 0), left;
	struct mqclient *c = k->c;
	int rc;

	/* It was leaving by itself: the rest is waited for. */
	client_timer_stop(c, &k->leave_timer);
	leave_begin(k);
	/* One turn at least, so that what was written leaves. */
	mqclient_run(c, 0);
	rc = commit_rest(k, until);
	if (rc < 0 && e)
		*e = k->commit_why;
	qlock_unlock_all(k);
	if (k->member) {
		heartbeat_unregister(c, k->group);
		mqclient_run(c, 0);
		while (c->leaves_open > 0 && (left = until - client_now()) > 0)
			mqclient_run(c, (int)left);
	}
	if (k->left)
		k->left(k->left_arg, rc, rc < 0 ? &k->commit_why : NULL);
	leave_end(k);
	return rc;
}
