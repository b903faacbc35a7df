/* share.c: see share.h. */
#include "share.h"
#include "cluster.h"
#include "fail.h"
#include "options.h"
#include "proc.h"
#include "source.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
	WINDOW = 64,                    /* messages of a queue that are here and not acknowledged */
	LINGER_MS = 1000,               /* a script that opens the file again and again stays a member */
	LEAVE_MS = 3000,
	COMMIT_MS = 100,
	PROBE_MS = 500,
};

struct record {
	TAILQ_ENTRY(record) entry;
	struct mqclient_queue q;
	int64_t off;
	char topic[256];
	size_t n;
	char bytes[];                   /* body, and a newline if it does not end with one */
};
TAILQ_HEAD(records, record);

struct share {
	LIST_ENTRY(share) entry;
	char group[256], topic[256];
	struct mqclient_consumer *k;    /* NULL: has left */
	struct records ready;
	LIST_HEAD(, taker) takers;
	int64_t empty_ms;               /* nobody has it open since; 0 = somebody has */
	int64_t commit_ms;              /* something was acknowledged that is not committed, since; 0 = nothing */
	bool leaving, probing, ended;
	int trouble;                    /* as of a feed */
	int64_t away_ms;
	int refs;                       /* of probes */
};
static bool closing;
static LIST_HEAD(, share) shares = LIST_HEAD_INITIALIZER(shares);

struct taker {
	LIST_ENTRY(taker) entry;
	struct share *s;
	struct record *cur;
	size_t at;                      /* of cur was read */
	int64_t start;                  /* file offset of its first byte */
	struct held_list held;
	bool killed;                    /* one who had it open was killed since cur was taken */
	bool clean;                     /* the last one that closed it closed it cleanly */
};

/* ---- Records ----------------------------------------------------------------------------------------------------- */

static void acknowledge(struct share *s, struct record *r)
{
	if (s->k)
		mqclient_settle(s->k, (struct mq_str){ r->topic, strlen(r->topic) }, &r->q, r->off, true);
	if (!s->commit_ms)
		s->commit_ms = task_now_ms();
	free(r);
}

/* Answer a read that asks for the next record, which is there. */
static void give(struct taker *t, fuse_req_t req, size_t size)
{
	size_t n;

	if (!t->cur) {
		t->cur = TAILQ_FIRST(&t->s->ready);
		TAILQ_REMOVE(&t->s->ready, t->cur, entry);
		t->at = 0;
		t->killed = false;
	}
	n = t->cur->n - t->at;
	if (n > size)
		n = size;
	fuse_reply_buf(req, t->cur->bytes + t->at, n);
	t->at += n;
}

static void serve(struct share *s)
{
	struct taker *t;

	LIST_FOREACH(t, &s->takers, entry) {
		struct held *h = TAILQ_FIRST(&t->held.reads);
		if (TAILQ_EMPTY(&s->ready))
			return;
		if (h) {
			size_t size = h->size;
			give(t, held_take(h), size);
		} else {
			held_wake_poll(&t->held);
		}
	}
}

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct share *s = arg;
	struct record *r = malloc(sizeof(*r) + body.n + 1);

	if (!r)
		cli_die(CLI_SYSTEM, "out of memory");
	r->q = *q;
	r->off = m->queue_off;
	snprintf(r->topic, sizeof(r->topic), MQ_STR_FMT, MQ_STR_ARG(m->topic));
	r->n = body.n;
	if (body.n)
		memcpy(r->bytes, body.p, body.n);
	if (!body.n || body.p[body.n - 1] != '\n')
		r->bytes[r->n++] = '\n';
	s->trouble = 0;
	s->away_ms = 0;
	TAILQ_INSERT_TAIL(&s->ready, r, entry);
	serve(s);
}

/* Queues that went to another member take their messages with them. */
static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
	struct share *s = arg;
	struct record *r, *next;

	for (r = TAILQ_FIRST(&s->ready); r; r = next) {
		size_t i = 0;
		next = TAILQ_NEXT(r, entry);
		if (strlen(r->topic) != topic.n || memcmp(r->topic, topic.p, topic.n) != 0)
			continue;
		while (i < n && (q[i].id != r->q.id || strcmp(q[i].broker, r->q.broker) != 0))
			i++;
		if (i < n)
			continue;
		TAILQ_REMOVE(&s->ready, r, entry);
		free(r);
	}
}

static void on_trouble(void *arg, const struct mq_error *err, bool fatal)
{
	struct share *s = arg;
	struct taker *t;

	s->trouble = fail_error(s->group, err);
	s->ended |= fatal;
	if (fatal)
		LIST_FOREACH(t, &s->takers, entry) {
			held_end(&t->held, s->trouble, INT64_MAX);
			held_wake_poll(&t->held);
		}
}

/* ---- The life of a membership ------------------------------------------------------------------------------------ */

static void maybe_free(struct share *s)
{
	if (s->k || s->refs || s->leaving || !LIST_EMPTY(&s->takers))
		return;
	LIST_REMOVE(s, entry);
	free(s);
}

static int join(struct share *s)
{
	static const struct mqclient_consume_ops ops = { .message = on_message, .assigned = on_assigned, .trouble = on_trouble };
	struct mq_str topic = { s->topic, strlen(s->topic) };
	struct mqclient_consume_opt opt = { .group = s->group, .topics = &topic, .ntopics = 1, .start = MQCLIENT_STORED,
	                                    .window = WINDOW, .batch = WINDOW / 2 };
	struct mq_error err;

	if (mqclient_consume(cluster_client(), &s->k, &opt, &ops, s, &err) < 0)
		return fail_error(s->group, &err);
	s->trouble = 0;
	s->ended = false;
	return 0;
}

static void on_left(void *arg, int rc, const struct mq_error *err)
{
	struct share *s = arg;

	if (rc < 0)
		fail_error(s->group, err);
	s->leaving = false;
	s->k = NULL;
	/* It was opened again meanwhile. */
	if (!closing && !LIST_EMPTY(&s->takers) && join(s) < 0)
		s->ended = true;
	maybe_free(s);
}

static void leave(struct share *s)
{
	struct record *r;

	while ((r = TAILQ_FIRST(&s->ready))) {
		TAILQ_REMOVE(&s->ready, r, entry);
		free(r);
	}
	s->leaving = true;
	s->commit_ms = 0;
	mqclient_consumer_leave(s->k, LEAVE_MS, on_left, s);
}

int share_open(struct taker **out, const char *group, const char *topic)
{
	struct share *s;
	struct taker *t;
	int rc = source->has_topic(topic);

	if (rc)
		return rc;
	LIST_FOREACH(s, &shares, entry)
		if (strcmp(s->group, group) == 0)
			break;
	if (s && strcmp(s->topic, topic) != 0 && (!LIST_EMPTY(&s->takers) || s->leaving))
		return fail(-EBUSY, "groups/%s/recv/%s: members of a group read the same topics, and here it reads '%s'", group, topic,
		            s->topic);
	if (s && strcmp(s->topic, topic) != 0) {
		/* It lingers with the other topic. */
		leave(s);
		return -EBUSY;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			cli_die(CLI_SYSTEM, "out of memory");
		snprintf(s->group, sizeof(s->group), "%s", group);
		snprintf(s->topic, sizeof(s->topic), "%s", topic);
		TAILQ_INIT(&s->ready);
		LIST_INSERT_HEAD(&shares, s, entry);
	}
	if (!s->k && !s->leaving && (rc = join(s)) < 0) {
		maybe_free(s);
		return rc;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		cli_die(CLI_SYSTEM, "out of memory");
	t->s = s;
	held_init(&t->held);
	LIST_INSERT_HEAD(&s->takers, t, entry);
	s->empty_ms = 0;
	*out = t;
	return 0;
}

void share_flush(struct taker *t, pid_t pid)
{
	enum proc_end end = proc_ending(pid);

	t->clean = end == PROC_LIVES || end == PROC_EXITS;
	t->killed |= end == PROC_KILLED;
}

void share_close(struct taker *t)
{
	struct share *s = t->s;

	held_close(&t->held);
	LIST_REMOVE(t, entry);
	if (t->cur && t->at == t->cur->n && t->clean && !t->killed)
		acknowledge(s, t->cur);
	else if (t->cur)
		TAILQ_INSERT_HEAD(&s->ready, t->cur, entry);
	free(t);
	serve(s);
	if (s->k && s->commit_ms)
		mqclient_commit(s->k);
	if (LIST_EMPTY(&s->takers))
		s->empty_ms = task_now_ms();
	maybe_free(s);
}

void share_close_all(void)
{
	struct share *s;
	struct taker *t;

	closing = true;
	LIST_FOREACH(s, &shares, entry)
		LIST_FOREACH(t, &s->takers, entry)
			held_close(&t->held);
}

/* ---- From the kernel --------------------------------------------------------------------------------------------- */

/* A shell reads a block and seeks back to the end of the line that it wanted: the record at hand can be read again. */
static bool seek(struct taker *t, off_t off)
{
	if (off < t->start || off > t->start + (int64_t)(t->cur ? t->cur->n : 0))
		return false;
	if (t->cur)
		t->at = (size_t)(off - t->start);
	return true;
}

void share_read(struct taker *t, fuse_req_t req, size_t size, off_t off, bool nonblock)
{
	struct share *s = t->s;

	if (!seek(t, off)) {
		fuse_reply_err(req, ESPIPE);
		return;
	}
	if (t->cur && t->at < t->cur->n) {
		give(t, req, size);
		return;
	}
	/* Who asks for the next is done with this one. */
	if (t->cur) {
		t->start += (int64_t)t->cur->n;
		acknowledge(s, t->cur);
		t->cur = NULL;
	}
	if (!TAILQ_EMPTY(&s->ready))
		give(t, req, size);
	else if (s->ended)
		fuse_reply_err(req, s->trouble ? -s->trouble : EIO);
	else if (nonblock)
		fuse_reply_err(req, s->trouble ? -s->trouble : EAGAIN);
	else
		held_add(&t->held, req, size, 0);
}

void share_poll(struct taker *t, fuse_req_t req, struct fuse_pollhandle *ph)
{
	unsigned events = (t->cur && t->at < t->cur->n) || !TAILQ_EMPTY(&t->s->ready) ? POLLIN | POLLRDNORM : 0;

	if (t->s->ended)
		events |= POLLERR | POLLIN;
	if (ph)
		held_poll(&t->held, ph);
	fuse_reply_poll(req, events);
}

/* ---- The clock --------------------------------------------------------------------------------------------------- */

static void probe(void *arg)
{
	struct share *s = arg;
	struct queue_states q;
	int64_t begun = task_now_ms();
	int rc = source->queues(s->topic, &q);
	struct taker *t;
	bool gives_up;

	if (rc == 0)
		queue_states_free(&q);
	gives_up = held_gives_up(&s->away_ms, rc, begun);
	if (!s->ended && (gives_up || rc == 0))
		s->trouble = rc;
	if (gives_up)
		LIST_FOREACH(t, &s->takers, entry)
			held_end(&t->held, rc, begun);
	s->probing = false;
	s->refs--;
	maybe_free(s);
}

static bool waits_long(const struct share *s, int64_t now)
{
	const struct taker *t;

	LIST_FOREACH(t, &s->takers, entry) {
		const struct held *h = TAILQ_FIRST(&t->held.reads);
		if (h && now - h->since_ms >= PROBE_MS)
			return true;
	}
	return false;
}

void share_tick(void)
{
	int64_t now = task_now_ms();
	struct share *s, *next;

	for (s = LIST_FIRST(&shares); s; s = next) {
		next = LIST_NEXT(s, entry);
		if (s->k && !s->leaving && s->commit_ms && now - s->commit_ms >= COMMIT_MS) {
			s->commit_ms = 0;
			mqclient_commit(s->k);
		}
		if (s->k && !s->leaving && s->empty_ms && now - s->empty_ms >= LINGER_MS)
			leave(s);
		else if (!s->probing && waits_long(s, now)) {
			s->probing = true;
			s->refs++;
			task_start(probe, s, now + options.timeout_ms);
			/* The list may look otherwise now. */
			return;
		}
	}
}
