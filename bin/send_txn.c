/* send_txn.c: see send_txn.h. */
#include "send_txn.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { CODE_UNKNOWN = 75 /* EX_TEMPFAIL */, TELL_AGAIN_MS = 1000, TELL_TIMES = 3 };

/* A half that a command decides about: one that was sent here (done is set), or one that a broker asks for. */
struct send_txn_job {
	struct send_txn *t;
	struct send_txn_job *prev, *next;
	struct mqclient_half half;
	struct child_env env;
	struct bytes body;
	bool stored, checking;
	bool decided, commit;           /* what is to be told to the broker */
	bool kept;                      /* it could not be told: told when the broker asks */
	int told;
	uv_timer_t timer;
	void (*done)(void *arg, enum send_txn_end end, const char *why);
	void *arg;
	char why[200];
};

/* ---- Jobs ------------------------------------------------------------------------------------------------------------- */

static struct send_txn_job *job_new(struct send_txn *t, const struct mq_message *m, struct mq_str body, const char *broker)
{
	struct send_txn_job *j = calloc(1, sizeof(*j));
	struct shown s = { .m = m, .body = body, .broker = broker };

	if (!j)
		cli_die(CLI_SYSTEM, "out of memory");
	j->t = t;
	child_env_message(&j->env, &s);
	child_env_str(&j->env, "MQ_GROUP", (struct mq_str){ t->group, strlen(t->group) });
	bytes_add(&j->body, body.p, body.n);
	uv_timer_init(t->loop, &j->timer);
	j->timer.data = j;
	j->next = t->jobs;
	if (j->next)
		j->next->prev = j;
	t->jobs = j;
	return j;
}

static void on_closed(uv_handle_t *h)
{
	struct send_txn_job *j = h->data;

	bytes_free(&j->env.text);
	bytes_free(&j->body);
	free(j);
}

static void job_free(struct send_txn_job *j)
{
	if (j->prev)
		j->prev->next = j->next;
	else
		j->t->jobs = j->next;
	if (j->next)
		j->next->prev = j->prev;
	uv_close((uv_handle_t *)&j->timer, on_closed);
}

static struct send_txn_job *find(struct send_txn *t, const char *id)
{
	struct send_txn_job *j;

	for (j = t->jobs; j; j = j->next)
		if (j->stored && strcmp(j->half.id, id) == 0)
			break;
	return j;
}

/* ---- The end ---------------------------------------------------------------------------------------------------------- */

static void end(struct send_txn_job *j, enum send_txn_end what)
{
	struct send_txn *t = j->t;

	if (j->done)
		j->done(j->arg, what, j->why);
	else
		t->busy--;
	j->done = NULL;
	if (!j->kept)
		job_free(j);
}

static void tell(struct send_txn_job *j);

static void on_timer(uv_timer_t *h)
{
	tell(h->data);
}

static void on_told(void *arg, int rc, const struct mq_error *err)
{
	struct send_txn_job *j = arg;

	if (rc == 0) {
		j->kept = false;
		end(j, j->commit ? SEND_TXN_COMMITTED : SEND_TXN_ROLLED_BACK);
		return;
	}
	if (rc != MQ_EREFUSED && ++j->told < TELL_TIMES) {
		uv_timer_start(&j->timer, on_timer, TELL_AGAIN_MS, 0);
		return;
	}
	/* What was decided is remembered, for when the broker asks. */
	snprintf(j->why, sizeof(j->why), "%s, but the broker could not be told: %.120s",
	         j->commit ? "to be committed" : "to be rolled back", err->text);
	j->kept = true;
	end(j, SEND_TXN_UNKNOWN);
}

static void tell(struct send_txn_job *j)
{
	struct mq_error err;
	int rc = mqclient_end(j->t->client, &j->half, j->commit, on_told, j, &err);

	if (rc != 0)
		on_told(j, rc, &err);
}

/* ---- Commands --------------------------------------------------------------------------------------------------------- */

static void run(struct send_txn_job *j, const struct command *c);

static void on_command(void *arg, const struct child_end *e)
{
	struct send_txn_job *j = arg;
	struct send_txn *t = j->t;
	bool local = !j->checking;

	snprintf(j->why, sizeof(j->why), "%s: %s", local ? t->local.opt : t->check.opt, e->why);
	if (e->code >= 0 && e->code != CODE_UNKNOWN) {
		j->decided = true;
		j->commit = e->code == 0;
		j->told = 0;
		tell(j);
	} else if (local && t->checks) {
		j->checking = true;
		run(j, &t->check);
	} else {
		end(j, SEND_TXN_UNKNOWN);
	}
}

static void run(struct send_txn_job *j, const struct command *c)
{
	int rc = child_start(j->t->loop, c, &j->env, bytes_view(&j->body), false, 0, on_command, j);

	if (rc == 0)
		return;
	/* Nothing has run, so nothing was done. */
	snprintf(j->why, sizeof(j->why), "%s: %s", c->opt, uv_strerror(rc));
	j->decided = !j->checking;
	j->commit = false;
	if (j->decided)
		tell(j);
	else
		end(j, SEND_TXN_UNKNOWN);
}

struct send_txn_job *send_txn_prepare(struct send_txn *t, const struct mq_message *m)
{
	return job_new(t, m, m->body, "");
}

void send_txn_run(struct send_txn_job *j, const struct mqclient_sent *r, void (*done)(void *arg, enum send_txn_end end, const char *why),
                  void *arg)
{
	struct mq_error err;

	j->done = done;
	j->arg = arg;
	if (mqclient_half_of(r, j->t->group, &j->half, &err) != 0) {
		snprintf(j->why, sizeof(j->why), "%.190s", err.text);
		end(j, SEND_TXN_UNKNOWN);
		return;
	}
	j->stored = true;
	run(j, &j->t->local);
}

void send_txn_drop(struct send_txn_job *j)
{
	job_free(j);
}

/* ---- Questions of brokers ---------------------------------------------------------------------------------------------- */

static void on_check(void *arg, const struct mqclient_half *h, const struct mq_message *m, struct mq_str body)
{
	struct send_txn *t = arg;
	struct send_txn_job *j = find(t, h->id);

	if (j && !j->kept)
		return; /* a command is at work, or its word on its way */
	if (!j && !t->checks)
		return;
	t->answered++;
	t->busy++;
	if (j) {
		j->half = *h;
		j->told = 0;
		tell(j);
		return;
	}
	j = job_new(t, m, body, h->queue.broker);
	j->half = *h;
	j->stored = j->checking = true;
	run(j, &t->check);
}

void send_txn_open(struct send_txn *t, const char *local, const char *check)
{
	t->checks = check != NULL;
	t->locals = local != NULL;
	if (local)
		command_open(&t->local, "--transaction", local);
	if (check)
		command_open(&t->check, "--check", check);
}

int send_txn_answer(struct send_txn *t, struct mq_str topic, struct mq_error *err)
{
	return mqclient_answer_checks(t->client, t->group, topic, on_check, t, err);
}

void send_txn_free(struct send_txn *t)
{
	while (t->jobs)
		job_free(t->jobs);
	if (t->locals)
		command_close(&t->local);
	if (t->checks)
		command_close(&t->check);
}
