/* recv_flow.c: the way of a message through mq-recv. */
#include "recv_flow.h"
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

/* A queue from which something came. */
struct recv_queue {
	UT_hash_handle hh;
	struct queue_key {
		const char *broker;   /* the client's text: its address is its name */
		int64_t id;
		char topic[256];
	} key;
	struct mqclient_queue q;
	struct recv_flow *flow;
	struct runner_lane lane;
	int64_t open;                 /* messages under way */
	int32_t level;                /* at which the message at hand is sent back */
	int resume;                   /* entry, -1 = none */
	struct mqclient_direct *direct; /* not NULL: not a queue, but one message that an administrator has handed over */
};

static struct mq_str topic_of(const struct recv_queue *rq)
{
	return (struct mq_str){ rq->key.topic, strlen(rq->key.topic) };
}

static struct recv_queue *find(struct recv_flow *f, struct mq_str topic, const struct mqclient_queue *q, bool make)
{
	struct recv_queue *rq = f->last;
	struct queue_key key = { .broker = q->broker, .id = q->id };

	if (rq && rq->q.id == q->id && rq->q.broker == q->broker && strlen(rq->key.topic) == topic.n &&
	    memcmp(rq->key.topic, topic.p, topic.n) == 0)
		return rq;
	if (topic.n >= sizeof(key.topic))
		topic.n = sizeof(key.topic) - 1;
	memcpy(key.topic, topic.p, topic.n);
	HASH_FIND(hh, f->queues, &key, sizeof(key), rq);
	if (!rq && make) {
		rq = calloc(1, sizeof(*rq));
		if (!rq)
			cli_die(CLI_SYSTEM, "out of memory");
		rq->key = key;
		rq->q = *q;
		rq->flow = f;
		rq->resume = recv_resume_find(&f->resume, rq->key.topic, q, true);
		HASH_ADD(hh, f->queues, key, sizeof(key), rq);
	}
	if (rq)
		f->last = rq;
	return rq;
}

/* ---- Arrived ---------------------------------------------------------------------------------------------------------- */

static void settled(struct recv_flow *f, struct recv_queue *rq, int64_t off)
{
	f->accepted++;
	f->last_ms = (int64_t)uv_now(f->loop);
	rq->open--;
	if (rq->resume >= 0)
		recv_resume_set(&f->resume, rq->resume, off + 1);
	if (f->consumer)
		mqclient_settle(f->consumer, topic_of(rq), &rq->q, off, true);
}

static void on_accepted(void *arg, void *queue, int64_t off)
{
	settled(arg, queue, off);
}

static void on_broken(void *arg, int rc)
{
	struct recv_flow *f = arg;

	f->broken = rc;
	recv_flow_stop(f);
}

/* ---- A command has ended ---------------------------------------------------------------------------------------------- */

enum {
	AGAIN_MS = 1000,                /* in place, or when the broker does not take a message back */
	REFUSED_TIMES = 3,              /* so often it may say no */
};

static void fail(struct recv_flow *f, struct runner_job *j, const char *why)
{
	const struct recv_queue *rq = j->queue;

	if (f->command_failed) {
		cli_warn("%s: %s at %s %s:%d offset %" PRId64, f->runner.command.opt, why, rq->key.topic, rq->q.broker, rq->q.id, j->off);
		runner_drop(j);
		return;
	}
	f->command_failed = true;
	f->why.code = MQ_ECANCELLED;
	snprintf(f->why.text, sizeof(f->why.text), "%s: %.250s at %.127s %.60s:%d offset %" PRId64 ": stopped, not committed",
	         f->runner.command.opt, why, rq->key.topic, rq->q.broker, rq->q.id, j->off);
	recv_flow_stop(f);
	runner_stop(&f->runner);
	runner_drop(j);
}

static void done_with(struct recv_flow *f, struct runner_job *j)
{
	struct recv_queue *rq = j->queue;

	settled(f, rq, j->off);
	runner_end(j);
}

static void tell(struct recv_flow *f, const struct runner_job *j, const char *why, const char *what)
{
	const struct recv_queue *rq = j->queue;

	cli_warn("%s: %s at %s %s:%d offset %" PRId64 ": %s", f->runner.command.opt, why, rq->key.topic, rq->q.broker,
	         rq->q.id, j->off, what);
}

static void send_back(struct runner_job *j);

static void on_sent_back(void *arg, int rc, const struct mq_error *err)
{
	struct runner_job *j = arg;
	struct recv_queue *rq = j->queue;
	struct recv_flow *f = rq->flow;

	if (rc == 0) {
		*(rq->level < 0 ? &f->dead : &f->retried) += 1;
		done_with(f, j);
		return;
	}
	/* A broker that is away comes again; one that says no will not say yes. */
	if (rc == MQ_EREFUSED && ++j->refused >= REFUSED_TIMES) {
		fail(f, j, err->text);
		return;
	}
	cli_warn("%s: tried again", err->text);
	runner_later(j, AGAIN_MS, send_back);
}

/* rq->level says when it is to come again. */
static void send_back(struct runner_job *j)
{
	struct recv_queue *rq = j->queue;
	struct recv_flow *f = rq->flow;
	struct mqclient_back b = { .broker = rq->q.broker, .topic = bytes_view(&j->topic), .log_off = j->log_off, .id = j->id,
	                           .delay_level = rq->level,
	                           .max_times = f->max_attempts > 0 && rq->level >= 0 ? f->max_attempts - 1 : -1 };
	struct mq_error err;
	int rc = mqclient_send_back(f->consumer, &b, on_sent_back, j, &err);

	if (rc != 0)
		on_sent_back(j, rc, &err);
}

/* Where there is no way back a message that is to be buried is passed over. */
static void bury(struct recv_flow *f, struct runner_job *j, const char *why)
{
	struct recv_queue *rq = j->queue;

	if (f->broadcast) {
		tell(f, j, why, "passed over: who broadcasts has no dead letters");
		done_with(f, j);
		return;
	}
	tell(f, j, why, "to the dead letters");
	rq->level = -1;
	send_back(j);
}

static void retry(struct recv_flow *f, struct runner_job *j, const struct exit_action *a, const char *why)
{
	struct recv_queue *rq = j->queue;

	if (!f->in_place) {
		tell(f, j, why, "sent back");
		rq->level = a->level;
		send_back(j);
		return;
	}
	if (f->max_attempts > 0 && (int64_t)j->reconsumed + j->runs >= f->max_attempts) {
		bury(f, j, why);
		return;
	}
	if (j->runs == 1)
		tell(f, j, why, "tried again, and what is behind it waits");
	runner_later(j, a->ms > 0 ? a->ms : AGAIN_MS, runner_again);
}

static void decide(struct recv_flow *f, struct runner_job *j, const struct child_end *end)
{
	const struct exit_action *a = exit_map_of(&f->on_exit, end);

	if (a->what == EXIT_OK)
		done_with(f, j);
	else if (a->what == EXIT_STOP || !f->group)
		fail(f, j, end->why);
	else if (a->what == EXIT_DEAD)
		bury(f, j, end->why);
	else
		retry(f, j, a, end->why);
}

/* The asker has it, or is no longer there. */
static void on_replied(void *arg, int rc, const struct mq_error *err)
{
	struct runner_job *j = arg;
	struct recv_queue *rq = j->queue;

	if (rc != 0)
		cli_warn("%s", err->text);
	done_with(rq->flow, j);
}

static void direct_end(struct recv_queue *rq, bool consumed, const char *why)
{
	mqclient_direct_end(rq->direct, consumed, why);
	rq->direct = NULL;
}

static void on_done(void *arg, struct runner_job *j, const struct child_end *end)
{
	struct recv_flow *f = arg;
	struct recv_queue *rq = j->queue;
	struct mq_message m = { .props = bytes_view(&j->props) };
	struct mq_error err;
	int rc;

	if (rq->direct) {
		direct_end(rq, exit_map_of(&f->on_exit, end)->what == EXIT_OK, end->why);
		runner_end(j);
		free(rq);
		return;
	}
	if (!f->reply || end->code != 0 || !mqclient_wants_reply(&m)) {
		decide(f, j, end);
		return;
	}
	rc = mqclient_reply(f->client, &m, rq->q.broker, f->group, end->output, on_replied, j, &err);
	if (rc != 0)
		on_replied(j, rc, &err);
}

static void on_dropped(void *arg, void *queue, int64_t off)
{
	struct recv_flow *f = arg;
	struct recv_queue *rq = queue;

	if (rq->direct) {
		direct_end(rq, false, "the member is leaving");
		return;
	}
	rq->open--;
	if (f->consumer)
		mqclient_settle(f->consumer, topic_of(rq), &rq->q, off, false);
}

/* ---- On the way ------------------------------------------------------------------------------------------------------- */

static void pause_source(struct recv_flow *f, bool on)
{
	if (f->paused == on)
		return;
	f->paused = on;
	if (f->consumer)
		mqclient_pause(f->consumer, on);
	if (f->store)
		recv_store_pause(f->store, on);
}

static bool full(const struct recv_flow *f)
{
	return f->run ? runner_full(&f->runner) : sink_full(&f->sink);
}

/* Open what is sealed, and see who signed it.  A message that cannot be trusted ends the program: it is not committed. */
static bool unseal(struct recv_flow *f, const struct recv_queue *rq, struct mq_message *m, struct mq_str *body)
{
	struct mq_error err;

	if (!seal_in(&f->seal) || seal_open(&f->seal, body, &m->props, &err) == 0)
		return true;
	if (!f->fatal) {
		f->why.code = MQ_EREFUSED;
		f->why.response = 0;
		snprintf(f->why.text, sizeof(f->why.text), "%.127s %.60s:%d offset %" PRId64 ": %.200s: stopped, not committed",
		         rq->key.topic, rq->q.broker, rq->q.id, m->queue_off, err.text);
	}
	f->fatal = true;
	recv_flow_stop(f);
	return false;
}

static void put(struct recv_flow *f, struct recv_queue *rq, const struct shown *s)
{
	struct mq_str line;

	f->line.n = 0;
	if (f->json_input)
		record_out_write(&f->out, &f->line, s);
	line = bytes_view(&f->line);
	runner_put(&f->runner, &rq->lane, rq, s, f->json_input ? &line : NULL);
}

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct recv_flow *f = arg;
	struct recv_queue *rq;
	struct mq_message shown_m = *m;
	struct shown s = { .m = &shown_m, .body = body, .broker = q->broker };
	struct mq_str first;

	if (f->stopped)
		return;
	rq = find(f, m->topic, q, true);
	/* What was sent back to the group shows the topic that it was sent to. */
	if (m->topic.n > 7 && memcmp(m->topic.p, "%RETRY%", 7) == 0 && (first = mq_prop_get(m->props, "RETRY_TOPIC")).n)
		shown_m.topic = first;
	if (!unseal(f, rq, &shown_m, &s.body))
		return;
	rq->open++;
	f->taken++;
	f->last_ms = (int64_t)uv_now(f->loop);
	if (f->run) {
		put(f, rq, &s);
	} else {
		record_out_write(&f->out, sink_bytes(&f->sink), &s);
		sink_record(&f->sink, rq, m->queue_off);
	}
	if (f->count && f->taken == f->count)
		recv_flow_stop(f);
	else if (full(f))
		pause_source(f, true);
}

/* The group shared its queues out anew: commands that wait for messages of a queue that is another's now are not started. */
static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
	struct recv_flow *f = arg;
	struct recv_queue *rq, *tmp;

	HASH_ITER(hh, f->queues, rq, tmp) {
		struct mq_str name = topic_of(rq);
		bool ours = false;

		if (name.n != topic.n || memcmp(name.p, topic.p, topic.n) != 0)
			continue;
		for (size_t i = 0; i < n && !ours; i++)
			ours = q[i].id == rq->q.id && q[i].broker == rq->q.broker;
		if (!ours)
			runner_lane_free(&f->runner, &rq->lane);
	}
}

static void on_ended(void *arg)
{
	struct recv_flow *f = arg;

	f->ended = true;
}

static int64_t on_start(void *arg, struct mq_str topic, const struct mqclient_queue *q)
{
	struct recv_flow *f = arg;
	char name[256];
	int entry;

	snprintf(name, sizeof(name), MQ_STR_FMT, MQ_STR_ARG(topic));
	entry = recv_resume_find(&f->resume, name, q, false);
	return entry < 0 ? -1 : f->resume.entry[entry].next; /* -1 there, too: not known yet */
}

static void on_trouble(void *arg, const struct mq_error *err, bool fatal)
{
	struct recv_flow *f = arg;

	if (!fatal) {
		cli_warn("%s", err->text);
		return;
	}
	if (!f->fatal)
		f->why = *err;
	f->fatal = true;
	recv_flow_stop(f);
}

/* A command for it, like any other; what it is worth is told, and nothing is sent back. */
static void on_direct(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q,
                      struct mqclient_direct *d)
{
	struct recv_flow *f = arg;
	struct mq_message shown_m = *m;
	struct shown s = { .m = &shown_m, .body = body, .broker = q->broker };
	struct recv_queue *rq;
	struct mq_error err;

	if (!f->run || f->stopped) {
		mqclient_direct_end(d, false, f->run ? "the member is leaving" : "the member has no command that could be run");
		return;
	}
	if (seal_in(&f->seal) && seal_open(&f->seal, &s.body, &shown_m.props, &err) != 0) {
		mqclient_direct_end(d, false, err.text);
		return;
	}
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		cli_die(CLI_SYSTEM, "out of memory");
	rq->q = *q;
	rq->flow = f;
	rq->direct = d;
	put(f, rq, &s);
}

const struct mqclient_consume_ops recv_flow_ops = {
	.message = on_message, .assigned = on_assigned, .ended = on_ended, .start_at = on_start, .trouble = on_trouble,
	.direct = on_direct,
};

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

int recv_flow_open(struct recv_flow *f, uv_loop_t *loop, const char *opt, const char *command)
{
	static const struct sink_ops ops = { on_accepted, on_broken };

	f->loop = loop;
	f->last_ms = (int64_t)uv_now(loop);
	f->run = command != NULL;
	if (!command)
		return sink_open(&f->sink, STDOUT_FILENO, loop, &ops, f);
	f->runner.capture = f->reply;
	f->runner.done = on_done;
	f->runner.dropped = on_dropped;
	f->runner.arg = f;
	runner_open(&f->runner, loop, opt, command);
	return 0;
}

void recv_flow_turn(struct recv_flow *f)
{
	if (!f->run)
		sink_push(&f->sink);
	if (f->paused && !f->stopped && !full(f))
		pause_source(f, false);
}

void recv_flow_stop(struct recv_flow *f)
{
	f->stopped = true;
	pause_source(f, true);
}

bool recv_flow_idle(const struct recv_flow *f)
{
	return f->run ? runner_idle(&f->runner) : f->broken || sink_idle(&f->sink);
}

/* A queue of which nothing is under way stands where the source does: also behind what a filter left out. */
static void note(void *arg, const struct mqclient_progress *p)
{
	struct recv_flow *f = arg;
	struct recv_queue *rq = find(f, p->topic, &p->queue, true);

	if (rq->open == 0 && p->next_off >= 0)
		recv_resume_set(&f->resume, rq->resume, p->next_off);
}

void recv_flow_note(struct recv_flow *f)
{
	if (!f->resume.path)
		return;
	if (f->consumer)
		mqclient_progress(f->consumer, note, f);
	if (f->store)
		recv_store_progress(f->store, note, f);
}

static void add_lag(void *arg, const struct mqclient_progress *p)
{
	int64_t *lag = arg;

	if (p->next_off >= 0 && p->max_off > p->next_off)
		*lag += p->max_off - p->next_off;
}

int64_t recv_flow_lag(struct recv_flow *f)
{
	int64_t lag = 0;

	if (f->consumer)
		mqclient_progress(f->consumer, add_lag, &lag);
	if (f->store)
		recv_store_progress(f->store, add_lag, &lag);
	return lag + f->taken - f->accepted;
}

void recv_flow_free(struct recv_flow *f)
{
	struct recv_queue *rq, *tmp;

	HASH_ITER(hh, f->queues, rq, tmp) {
		runner_lane_free(&f->runner, &rq->lane);
		HASH_DEL(f->queues, rq);
		free(rq);
	}
	record_out_free(&f->out);
	bytes_free(&f->line);
	recv_resume_free(&f->resume);
}
