/* feed.c: see feed.h.
 *
 * The bytes lie in one buffer: [start, at) was read and is kept, [at, n) waits.  The source is paused above HIGH and goes on
 * below LOW.  What came in one turn of the loop is given out at its end: many messages to one read. */
#include "feed.h"
#include "fail.h"
#include "node.h"
#include "options.h"
#include "task.h"
#include "../bin/bytes.h"
#include "../bin/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HIGH = 4 * 1024 * 1024, LOW = 2 * 1024 * 1024, KEEP = 256 * 1024, DROP = 4 * 1024 * 1024, PROBE_MS = 500 };

struct feed {
	TAILQ_ENTRY(feed) entry;
	int refs;                       /* the open file's, and of a probe */
	bool closed;
	struct node *node;
	struct stream *stream;
	struct bytes buf;
	size_t at;
	int64_t pos;                    /* file offset of `at` */
	bool paused, ended, like_log;
	int trouble;                    /* -errno: nothing comes because of this; 0 = all is well */
	int64_t last_ms;                /* Unix ms of the last message */
	struct held_list held;
	char topic[256];
	struct queue_name queue;        /* broker[0] = 0: all */
	int64_t away_ms;                /* of held_gives_up() */
	bool probing;
	bool fresh;                     /* something came in this turn */
};
static TAILQ_HEAD(, feed) feeds = TAILQ_HEAD_INITIALIZER(feeds);

/* ---- Open and close ---------------------------------------------------------------------------------------------- */

static void unref(struct feed *f)
{
	if (--f->refs > 0)
		return;
	bytes_free(&f->buf);
	free(f);
}

int feed_open(struct feed **out, struct node *n, struct stream_want *want)
{
	struct feed *f;
	int rc = 0;

	if (want->start == MQCLIENT_END)
		rc = source->queues(want->topic, &want->at);
	if (rc)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		cli_die(CLI_SYSTEM, "out of memory");
	f->refs = 1;
	f->node = n;
	held_init(&f->held);
	snprintf(f->topic, sizeof(f->topic), "%s", want->topic);
	if (want->queue)
		f->queue = *want->queue;
	rc = source->stream(&f->stream, f, want);
	queue_states_free(&want->at);
	if (rc) {
		unref(f);
		return rc;
	}
	TAILQ_INSERT_TAIL(&feeds, f, entry);
	*out = f;
	return 0;
}

void feed_close(struct feed *f)
{
	TAILQ_REMOVE(&feeds, f, entry);
	f->closed = true;
	held_close(&f->held);
	source->stream_close(f->stream);
	unref(f);
}

void feed_close_all(void)
{
	struct feed *f;

	TAILQ_FOREACH(f, &feeds, entry)
		held_close(&f->held);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

static void pause_source(struct feed *f, bool on)
{
	if (f->paused == on)
		return;
	f->paused = on;
	source->stream_pause(f->stream, on);
}

/* What was read long ago makes room. */
static void forget_old(struct feed *f)
{
	if (f->at > DROP) {
		size_t old = f->at - KEEP;
		bytes_drop(&f->buf, old);
		f->at -= old;
	}
}

/* Answer a read of bytes that are there. */
static void give(struct feed *f, fuse_req_t req, size_t size)
{
	size_t n = f->buf.n - f->at;

	if (n > size)
		n = size;
	fuse_reply_buf(req, f->buf.p + f->at, n);
	f->at += n;
	f->pos += (int64_t)n;
	forget_old(f);
	if (f->buf.n - f->at < LOW)
		pause_source(f, false);
}

static void serve(struct feed *f)
{
	struct held *h;

	while (f->buf.n > f->at && (h = TAILQ_FIRST(&f->held.reads))) {
		size_t size = h->size;
		give(f, held_take(h), size);
	}
}

void feed_push(struct feed *f, struct mq_str body)
{
	bytes_add(&f->buf, body.p, body.n);
	if (!body.n || body.p[body.n - 1] != '\n')
		bytes_byte(&f->buf, '\n');
	f->trouble = 0;
	f->away_ms = 0;
	if (f->buf.n - f->at > HIGH)
		pause_source(f, true);
	f->fresh = true;
}

void feed_turn(void)
{
	struct feed *f;
	struct timespec t;

	TAILQ_FOREACH(f, &feeds, entry) {
		if (!f->fresh)
			continue;
		f->fresh = false;
		clock_gettime(CLOCK_REALTIME, &t);
		f->last_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
		serve(f);
		held_wake_poll(&f->held);
	}
}

void feed_trouble(struct feed *f, int rc, bool fatal)
{
	f->trouble = rc;
	f->ended |= fatal;
	if (fatal) {
		held_end(&f->held, rc, INT64_MAX);
		held_wake_poll(&f->held);
	}
}

/* ---- From the kernel --------------------------------------------------------------------------------------------- */

/* Bytes that were read already; KEEP of them are here. */
static void give_again(struct feed *f, fuse_req_t req, size_t size, off_t off)
{
	size_t back = (size_t)(f->pos - off);

	if (back > f->at) {
		fuse_reply_err(req, ESPIPE);
		return;
	}
	fuse_reply_buf(req, f->buf.p + f->at - back, back < size ? back : size);
}

void feed_read(struct feed *f, fuse_req_t req, size_t size, off_t off, bool nonblock)
{
	if (off < f->pos)
		give_again(f, req, size, off);
	else if (off > f->pos)
		fuse_reply_buf(req, NULL, 0);
	else if (f->buf.n > f->at)
		give(f, req, size);
	else if (f->ended)
		fuse_reply_err(req, -f->trouble);
	else if (nonblock)
		fuse_reply_err(req, f->trouble ? -f->trouble : EAGAIN);
	else if (f->like_log)
		fuse_reply_buf(req, NULL, 0);
	else
		held_add(&f->held, req, size, off);
}

void feed_poll(struct feed *f, fuse_req_t req, struct fuse_pollhandle *ph)
{
	unsigned events = f->buf.n > f->at ? POLLIN | POLLRDNORM : 0;

	if (f->ended)
		events |= POLLERR | POLLIN;
	if (ph)
		held_poll(&f->held, ph);
	fuse_reply_poll(req, events);
}

int64_t feed_size(struct feed *f, bool at_end)
{
	f->like_log |= at_end;
	return f->pos + (int64_t)(f->buf.n - f->at);
}

int64_t feed_node_size(const struct node *n, int64_t *ms)
{
	struct feed *f;
	int64_t size = 0;

	*ms = 0;
	TAILQ_FOREACH(f, &feeds, entry) {
		if (f->node != n)
			continue;
		if (feed_size(f, false) > size)
			size = feed_size(f, false);
		if (f->last_ms > *ms)
			*ms = f->last_ms;
	}
	return size;
}

/* ---- Is anybody there? ------------------------------------------------------------------------------------------- */

/* A broker that is silent looks like a queue without messages.  Whoever waits has it asked something now and then. */
static void probe(void *arg)
{
	struct feed *f = arg;
	struct queue_states s = { 0 };
	int64_t begun = task_now_ms(), min, max;
	int rc = f->queue.broker[0] ? source->range(f->topic, &f->queue, &min, &max) : source->queues(f->topic, &s);

	queue_states_free(&s);
	f->probing = false;
	if (!f->closed && !f->ended) {
		bool gives_up = held_gives_up(&f->away_ms, rc, begun);
		if (gives_up || rc == 0)
			f->trouble = rc;
		if (gives_up)
			held_end(&f->held, rc, begun);
	}
	unref(f);
}

void feed_tick(void)
{
	int64_t now = task_now_ms();
	struct feed *f, *next;

	for (f = TAILQ_FIRST(&feeds); f; f = next) {
		struct held *h = TAILQ_FIRST(&f->held.reads);
		next = TAILQ_NEXT(f, entry);
		if (!h || f->probing || now - h->since_ms < PROBE_MS)
			continue;
		f->probing = true;
		f->refs++;
		task_start(probe, f, now + options.timeout_ms);
	}
}
