/* runner.c: see runner.h.
 *
 *      waiting (in its lane) -> running -> done() -> runner_end
 *            ^                               |
 *            `--- runner_again <-- runner_later (a timer) */
#include "runner.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_BYTES ((size_t)8 << 20)
#define WAITING_MAX 1000

static void start_more(struct runner *r);

void runner_open(struct runner *r, uv_loop_t *loop, const char *opt, const char *command)
{
	r->loop = loop;
	r->ready_last = &r->ready;
	LIST_INIT(&r->timed);
	command_open(&r->command, opt, command);
}

void runner_close(struct runner *r)
{
	command_close(&r->command);
}

/* ---- Lanes ------------------------------------------------------------------------------------------------------------ */

static void job_free(struct runner_job *j)
{
	bytes_free(&j->env.text);
	bytes_free(&j->body);
	bytes_free(&j->topic);
	bytes_free(&j->props);
	free(j);
}

static void on_timer_closed(uv_handle_t *h)
{
	job_free(h->data);
}

static void lane_ready(struct runner *r, struct runner_lane *lane)
{
	if (lane->queued || lane->at || !lane->first)
		return;
	lane->queued = true;
	lane->next = NULL;
	*r->ready_last = lane;
	r->ready_last = &lane->next;
}

static void wait_in_lane(struct runner *r, struct runner_job *j, bool in_front)
{
	struct runner_lane *lane = j->lane;

	if (!lane->first)
		lane->last = &lane->first;
	if (in_front) {
		j->next = lane->first;
		lane->first = j;
		if (!j->next)
			lane->last = &j->next;
	} else {
		j->next = NULL;
		*lane->last = j;
		lane->last = &j->next;
	}
	r->waiting++;
	r->waiting_bytes += j->body.n;
	lane_ready(r, lane);
}

static struct runner_job *take(struct runner *r, struct runner_lane *lane)
{
	struct runner_job *j = lane->first;

	if (!j)
		return NULL;
	lane->first = j->next;
	if (!lane->first)
		lane->last = &lane->first;
	r->waiting--;
	r->waiting_bytes -= j->body.n;
	return j;
}

/* ---- Running ---------------------------------------------------------------------------------------------------------- */

static void on_done(void *arg, const struct child_end *end)
{
	struct runner_job *j = arg;
	struct runner *r = j->r;

	r->running--;
	r->done(r->arg, j, end);
	start_more(r);
}

static void start(struct runner *r, struct runner_job *j)
{
	struct child_end end = { .code = -1 };
	size_t text_n = j->env.text.n, n = j->env.n;
	int rc;

	j->lane->at = j;
	r->running++;
	r->held++;
	j->runs++;
	child_env_int(&j->env, "MQ_ATTEMPT", (int64_t)j->reconsumed + j->runs);
	rc = child_start(r->loop, &r->command, &j->env, bytes_view(&j->body), r->capture, r->timeout_ms, on_done, j);
	j->env.text.n = text_n;
	j->env.n = n;
	if (rc == 0)
		return;
	r->running--;
	snprintf(end.why, sizeof(end.why), "%s", uv_strerror(rc));
	r->done(r->arg, j, &end);
}

static void start_more(struct runner *r)
{
	while (!r->stopped && r->running < r->jobs && r->ready) {
		struct runner_lane *lane = r->ready;
		struct runner_job *j;

		r->ready = lane->next;
		if (!r->ready)
			r->ready_last = &r->ready;
		lane->queued = false;
		j = lane->at ? NULL : take(r, lane); /* NULL: runner_lane_free() took it */
		if (j)
			start(r, j);
	}
}

void runner_put(struct runner *r, struct runner_lane *lane, void *queue, const struct shown *s, const struct mq_str *input)
{
	struct mq_str uniq = mq_prop_get(s->m->props, "UNIQ_KEY");
	struct runner_job *j = calloc(1, sizeof(*j));

	if (!j)
		cli_die(CLI_SYSTEM, "out of memory");
	j->r = r;
	j->lane = lane;
	j->queue = queue;
	j->off = s->m->queue_off;
	j->log_off = s->m->log_off;
	j->reconsumed = s->m->reconsume_times;
	snprintf(j->id, sizeof(j->id), MQ_STR_FMT, MQ_STR_ARG(uniq));
	child_env_message(&j->env, s);
	bytes_add(&j->topic, s->m->topic.p, s->m->topic.n);
	bytes_add(&j->props, s->m->props.p, s->m->props.n);
	bytes_add(&j->body, (input ? input : &s->body)->p, (input ? input : &s->body)->n);
	wait_in_lane(r, j, false);
	start_more(r);
}

/* ---- Afterwards ------------------------------------------------------------------------------------------------------- */

/* The lane goes on without it. */
static void leave(struct runner_job *j)
{
	struct runner *r = j->r;
	bool had_timer = j->later != NULL;

	r->held--;
	if (j->lane->at == j) {
		j->lane->at = NULL;
		lane_ready(r, j->lane);
	}
	if (had_timer)
		uv_close((uv_handle_t *)&j->timer, on_timer_closed);
	else
		job_free(j);
}

void runner_end(struct runner_job *j)
{
	struct runner *r = j->r;

	leave(j);
	start_more(r);
}

void runner_drop(struct runner_job *j)
{
	struct runner *r = j->r;

	r->dropped(r->arg, j->queue, j->off);
	leave(j);
}

static void on_timer(uv_timer_t *t)
{
	struct runner_job *j = t->data;

	LIST_REMOVE(j, timed);
	j->waits = false;
	if (j->r->stopped || j->over)
		runner_drop(j);
	else
		j->later(j);
}

void runner_later(struct runner_job *j, int64_t ms, void (*then)(struct runner_job *j))
{
	if (!j->later)
		uv_timer_init(j->r->loop, &j->timer);
	j->timer.data = j;
	j->later = then;
	LIST_INSERT_HEAD(&j->r->timed, j, timed);
	j->waits = true;
	uv_timer_start(&j->timer, on_timer, j->r->stopped ? 0 : (uint64_t)ms, 0);
}

void runner_again(struct runner_job *j)
{
	struct runner *r = j->r;

	r->held--;
	j->lane->at = NULL;
	wait_in_lane(r, j, true);
	start_more(r);
}

bool runner_full(const struct runner *r)
{
	return r->waiting >= WAITING_MAX || r->waiting_bytes >= WAITING_BYTES;
}

bool runner_idle(const struct runner *r)
{
	return r->held == 0 && (r->waiting == 0 || r->stopped);
}

void runner_stop(struct runner *r)
{
	struct runner_job *j;

	r->stopped = true;
	LIST_FOREACH(j, &r->timed, timed)
		uv_timer_start(&j->timer, on_timer, 0, 0);
}

void runner_lane_free(struct runner *r, struct runner_lane *lane)
{
	struct runner_job *j;

	while ((j = take(r, lane))) {
		if (r->dropped)
			r->dropped(r->arg, j->queue, j->off);
		if (j->later)
			uv_close((uv_handle_t *)&j->timer, on_timer_closed);
		else
			job_free(j);
	}
	/* One that waits to be tried again is dropped in the next turn. */
	if (lane->at && lane->at->waits) {
		lane->at->over = true;
		uv_timer_start(&lane->at->timer, on_timer, 0, 0);
	}
}
