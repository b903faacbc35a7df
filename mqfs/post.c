/* post.c: see post.h. */
#include "post.h"
#include "cluster.h"
#include "fail.h"
#include "options.h"
#include "proc.h"
#include "task.h"
#include "../bin/bytes.h"
#include "../bin/cli.h"
#include "../bin/compose.h"
#include "../bin/userprop.h"

#include <mqclient.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* A write of less than SMALL bytes of lines waits for its answers: a shell's echo looks at what write says, not at close. */
enum {
	SMALL = 4096,
	BATCH = 128, BATCH_BYTES = 64 * 1024,
	PERM_WRITE = 2, /* of a queue in a route, the protocol's number */
	FLIGHT_BYTES = 8 * 1024 * 1024, FLIGHT_MESSAGES = 128, WAITERS = 16, RESULTS = 64, JSON_LINE_MAX = 8 * 1024 * 1024,
};

struct post {
	LIST_ENTRY(post) entry;
	enum post_mode mode;
	char topic[256];
	uint64_t ino;
	pid_t pid;                      /* who opened it */
	struct compose compose;
	struct bytes buf;               /* what is not a message yet */
	struct bytes props;
	bool more;                      /* lines that are whole wait in buf for room */
	bool too_big;                   /* the message at hand is dropped up to its end */
	int rc;                         /* first failure that nobody was told of */
	size_t open, open_bytes;        /* sends under way */
	bool closed, busy;
	struct task *waiter[WAITERS];   /* flushes that wait until all are answered */
	size_t nwaiters;
	fuse_req_t writer;              /* a write that waits for room */
	size_t writer_size;
	bool writer_small;
};
static LIST_HEAD(, post) posts = LIST_HEAD_INITIALIZER(posts);

static struct post_result results[RESULTS];
static size_t next_result;

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct post *post_open(enum post_mode mode, const char *topic, uint64_t ino, pid_t pid)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p)
		cli_die(CLI_SYSTEM, "out of memory");
	p->mode = mode;
	p->ino = ino;
	p->pid = proc_of_thread(pid);
	snprintf(p->topic, sizeof(p->topic), "%s", topic);
	compose_init(&p->compose);
	p->compose.topic = (struct mq_str){ p->topic, strlen(p->topic) };
	p->compose.queue_from_record = true;
	LIST_INSERT_HEAD(&posts, p, entry);
	return p;
}

static void maybe_free(struct post *p)
{
	if (!p->closed || p->open || p->nwaiters || p->busy)
		return;
	compose_free(&p->compose);
	bytes_free(&p->buf);
	bytes_free(&p->props);
	free(p);
}

struct post *post_of(uint64_t ino, pid_t pid)
{
	struct post *p, *only = NULL;
	size_t n = 0;

	pid = proc_of_thread(pid);
	LIST_FOREACH(p, &posts, entry) {
		if (p->ino != ino)
			continue;
		if (p->pid == pid)
			return p;
		only = p;
		n++;
	}
	return n == 1 ? only : NULL;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

const struct post_result *post_result(uint64_t ino, pid_t pid)
{
	const struct post_result *any = NULL;

	pid = proc_of_thread(pid);
	for (size_t i = 0; i < RESULTS; i++) {
		const struct post_result *r = &results[(next_result + RESULTS - 1 - i) % RESULTS];
		if (r->ino != ino)
			continue;
		if (r->pid == pid)
			return r;
		if (!any)
			any = r;
	}
	return any;
}

static struct post_result *result_of(const struct post *p)
{
	struct post_result *r = NULL;

	for (size_t i = 0; i < RESULTS && !r; i++)
		if (results[i].ino == p->ino && results[i].pid == p->pid)
			r = &results[i];
	if (!r)
		r = &results[next_result++ % RESULTS];
	*r = (struct post_result){ .ino = p->ino, .pid = p->pid };
	return r;
}

static void failed(struct post *p, int rc, const char *text)
{
	struct post_result *r = result_of(p);

	snprintf(r->error, sizeof(r->error), "%s", text);
	if (!p->rc)
		p->rc = rc;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* A send under way; of a batch of lines the bytes are kept: if only the whole is too big each is tried by itself. */
struct sending {
	struct post *p;
	size_t bytes, n;
	struct bytes lines;             /* each with its newline */
	char why[200];                  /* of one that no queue was found for */
};

static void pump(struct post *p, bool all);

/* Lines keep their order: one batch at a time. */
static bool room(const struct post *p)
{
	return p->mode == POST_LINES ? !p->open : p->open_bytes < FLIGHT_BYTES && p->open < FLIGHT_MESSAGES;
}

static void go_on(struct post *p)
{
	/* Many at once: one by one each would travel alone. */
	if (p->more && p->open <= (p->mode == POST_LINES ? 0 : FLIGHT_MESSAGES / 2))
		pump(p, false);
	if (p->writer && !p->more && (p->writer_small ? !p->open : room(p))) {
		fuse_req_t req = p->writer;
		p->writer = NULL;
		if (p->writer_small && p->rc)
			fuse_reply_err(req, -p->rc);
		else
			fuse_reply_write(req, p->writer_size);
		p->rc = p->writer_small ? 0 : p->rc;
	}
	/* The last of them may close it. */
	p->busy = true;
	while (!p->open && p->nwaiters)
		task_wake(p->waiter[--p->nwaiters]);
	p->busy = false;
	maybe_free(p);
}

static void post_record(struct post *p, struct mq_str record);

static void each_by_itself(struct post *p, struct mq_str lines)
{
	while (lines.n) {
		size_t n = (size_t)((const char *)memchr(lines.p, '\n', lines.n) - lines.p);
		post_record(p, (struct mq_str){ lines.p, n });
		lines.p += n + 1;
		lines.n -= n + 1;
	}
}

static void stored(struct post *p, const struct mqclient_sent *s, size_t n)
{
	struct post_result *r = result_of(p);

	/* Of a batch the first one's id is told, and offsets follow each other. */
	if (n == 1)
		snprintf(r->id, sizeof(r->id), MQ_STR_FMT, MQ_STR_ARG(s->uniq_key));
	snprintf(r->queue, sizeof(r->queue), "%s:%d", s->queue.broker ? s->queue.broker : "", s->queue.id);
	snprintf(r->offset, sizeof(r->offset), "%lld", (long long)(s->queue_off + (int64_t)n - 1));
}

static void end_sending(struct sending *one)
{
	struct post *p = one->p;

	p->open -= one->n;
	p->open_bytes -= one->bytes;
	bytes_free(&one->lines);
	free(one);
	go_on(p);
}

/* No queue may be written to.  The topic was there when the file was opened: its brokers allow no writing, or they are away. */
static void no_queue(void *arg)
{
	struct sending *one = arg;
	struct cluster_route_queue *q = NULL;
	size_t n = 0, writable = 0;
	int rc = cluster_route(one->p->topic, &q, &n);

	for (size_t i = 0; i < n; i++)
		writable += (q[i].perm & PERM_WRITE) && q[i].write > 0;
	free(q);
	failed(one->p, rc == 0 && n && !writable ? -EACCES : -EHOSTDOWN, one->why);
	end_sending(one);
}

static void on_sent(void *arg, const struct mqclient_sent *s)
{
	struct sending *one = arg;
	struct post *p = one->p;
	int rc = s->rc ? fail_errno(&s->err) : 0;

	if (rc == 0) {
		stored(p, s, one->n);
	} else if (rc == -EMSGSIZE && one->n > 1) {
		each_by_itself(p, bytes_view(&one->lines));
	} else {
		fail_error(p->topic, &s->err);
		if (s->rc == MQ_ENOROUTE) {
			snprintf(one->why, sizeof(one->why), "%.190s", s->err.text);
			task_start(no_queue, one, task_now_ms() + options.timeout_ms);
			return;
		}
		failed(p, rc, s->err.text);
	}
	end_sending(one);
}

static void send_messages(struct post *p, const struct mq_message *m, size_t n, const struct mqclient_send_opt *opt, struct mq_str lines)
{
	struct sending *one = calloc(1, sizeof(*one));
	struct mq_error err;

	if (!one)
		cli_die(CLI_SYSTEM, "out of memory");
	one->p = p;
	one->n = n;
	for (size_t i = 0; i < n; i++)
		one->bytes += m[i].body.n + m[i].props.n;
	if (n > 1)
		bytes_add(&one->lines, lines.p, lines.n);
	p->open += n;
	p->open_bytes += one->bytes;
	if (mqclient_send(cluster_client(), m, n, opt, on_sent, one, &err) == 0)
		return;
	p->open -= n;
	p->open_bytes -= one->bytes;
	bytes_free(&one->lines);
	free(one);
	failed(p, fail_error(p->topic, &err), err.text);
}

static void send_message(struct post *p, const struct composed *c)
{
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = (int32_t)options.timeout_ms, .sharding_key = c->sharding_key };

	if (c->broker[0])
		opt.queue = (struct mqclient_queue){ c->broker, c->m.queue_id };
	send_messages(p, &c->m, 1, &opt, (struct mq_str){ NULL, 0 });
}

/* One message of these bytes. */
static void post_record(struct post *p, struct mq_str record)
{
	struct composed c;
	struct mq_error err;
	int rc;

	if (p->mode == POST_JSON) {
		rc = compose_record(&p->compose, FRAME_JSON, record, NULL, &c, &err);
		if (rc == COMPOSE_EMPTY && record.n) {
			failed(p, fail(-EINVAL, "%s: a JSON line without a body", p->topic), "a JSON line without a body");
			return;
		}
		if (rc == COMPOSE_EMPTY)
			return;
		if (rc) {
			failed(p, fail_error(p->topic, &err), err.text);
			return;
		}
	} else {
		if (!record.n)
			return;
		c = (struct composed){ .m = { .topic = p->compose.topic, .body = record, .queue_id = -1 } };
	}
	if (p->mode != POST_JSON)
		c.m.props = bytes_view(&p->props);
	send_message(p, &c);
}

static void tell_too_big(struct post *p, size_t max)
{
	char text[400];

	snprintf(text, sizeof(text), "topic '%s': a message of more than %zu bytes is not sent", p->topic, max);
	failed(p, fail(-EMSGSIZE, "%s", text), text);
}

static void gather(struct post *p, const char *buf, size_t size)
{
	if (p->too_big)
		return;
	if (p->buf.n + size <= MQ_BODY_MAX) {
		bytes_add(&p->buf, buf, size);
		return;
	}
	p->too_big = true;
	p->buf.n = 0;
	tell_too_big(p, MQ_BODY_MAX);
}

/* One batch of lines from `from` on, up to the first one that is too long.  Returns how many bytes it took. */
static size_t send_batch(struct post *p, size_t from)
{
	static struct mq_message m[BATCH];
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = (int32_t)options.timeout_ms };
	size_t at = from, n = 0;
	const char *nl;

	while (n < BATCH && at - from < BATCH_BYTES && p->buf.n > at && (nl = memchr(p->buf.p + at, '\n', p->buf.n - at))) {
		struct mq_str line = { p->buf.p + at, (size_t)(nl - p->buf.p) - at };
		if (line.n > MQ_BODY_MAX || (n && at + line.n - from > BATCH_BYTES))
			break;
		at += line.n + 1;
		if (line.n)
			m[n++] = (struct mq_message){ .topic = p->compose.topic, .body = line, .queue_id = -1 };
	}
	if (n)
		send_messages(p, m, n, &opt, (struct mq_str){ p->buf.p + from, at - from });
	return at - from;
}

/* Lines that are whole become messages, as long as there is room (or all of them). */
static void pump(struct post *p, bool all)
{
	size_t at = 0, n, max = p->mode == POST_JSON ? JSON_LINE_MAX : MQ_BODY_MAX;
	const char *nl = NULL;

	while (p->buf.n > at && (nl = memchr(p->buf.p + at, '\n', p->buf.n - at)) && (all || room(p))) {
		struct mq_str line = { p->buf.p + at, (size_t)(nl - p->buf.p) - at };
		if (p->mode == POST_LINES && !p->too_big && (n = send_batch(p, at)) > 0) {
			at += n;
			continue;
		}
		at += line.n + 1;
		if (p->too_big)
			p->too_big = false;
		else if (line.n > max)
			tell_too_big(p, max);
		else
			post_record(p, line);
	}
	p->more = nl && p->buf.n > at;
	bytes_drop(&p->buf, at);
	if (!p->more && (p->too_big || p->buf.n > max)) {
		if (!p->too_big)
			tell_too_big(p, max);
		p->too_big = true;
		p->buf.n = 0;
	}
}

/* What has gathered becomes a message. */
static void post_rest(struct post *p)
{
	if (p->mode != POST_SEND)
		pump(p, true);
	if (p->too_big)
		p->too_big = false;
	else if (p->buf.n)
		post_record(p, bytes_view(&p->buf));
	p->buf.n = 0;
	p->props.n = 0;
}

/* ---- From the kernel --------------------------------------------------------------------------------------------- */

static void on_interrupt(fuse_req_t req, void *arg)
{
	struct post *p = arg;

	/* Its bytes are taken, whether it waited or not: to say otherwise would send them twice. */
	if (p->writer == req) {
		p->writer = NULL;
		fuse_reply_write(req, p->writer_size);
	}
}

void post_write(struct post *p, fuse_req_t req, const char *buf, size_t size)
{
	bool small = p->mode != POST_SEND && size < SMALL;
	int rc = p->rc;

	/* A failure of what was written before is told once, and what comes with the telling is not sent. */
	if (rc && p->mode != POST_SEND) {
		p->rc = 0;
		fuse_reply_err(req, -rc);
		return;
	}
	if (p->mode == POST_SEND) {
		gather(p, buf, size);
	} else {
		bytes_add(&p->buf, buf, size);
		pump(p, false);
	}
	if (p->mode == POST_SEND && p->too_big) {
		fuse_reply_err(req, EMSGSIZE);
	} else if (small && !p->open && p->rc) {
		rc = p->rc;
		p->rc = 0;
		fuse_reply_err(req, -rc);
	} else if (p->writer || (!p->more && (small ? !p->open : room(p)))) {
		fuse_reply_write(req, size);
	} else {
		p->writer = req;
		p->writer_size = size;
		p->writer_small = small;
		fuse_req_interrupt_func(req, on_interrupt, p);
	}
}

int post_property(struct post *p, const char *name, struct mq_str value)
{
	struct mq_error err;
	bool keys = strcmp(name, "keys") == 0, tags = strcmp(name, "tags") == 0;
	struct mq_str key = keys ? MQ_STR("KEYS") : tags ? MQ_STR("TAGS") : (struct mq_str){ name, strlen(name) };

	if (p->mode != POST_SEND)
		return -EOPNOTSUPP;
	if (!keys && !tags) {
		if (strncmp(name, "prop.", 5) != 0)
			return -EINVAL;
		key.p += 5;
		key.n -= 5;
	}
	if (userprop_put(&p->props, key, value, keys || tags, name, &err) < 0)
		return fail_error(p->topic, &err);
	return p->props.n > MQ_PROPS_MAX ? -E2BIG : 0;
}

static int wait_all(struct post *p)
{
	int rc;

	if (p->open) {
		if (p->nwaiters == WAITERS)
			return -EAGAIN;
		p->waiter[p->nwaiters++] = task_self();
		task_park();
	}
	rc = p->rc;
	p->rc = 0;
	return rc;
}

int post_sync(struct post *p)
{
	post_rest(p);
	return wait_all(p);
}

int post_flush(struct post *p, pid_t pid)
{
	pid_t process = proc_of_thread(pid);

	/* A child that inherited the file ends: the message goes on, unless it is about lines, which are whole already. */
	if (process != p->pid)
		return p->mode == POST_SEND ? 0 : wait_all(p);
	if (proc_ending(pid) == PROC_KILLED) {
		/* Half a message is none. */
		if (p->buf.n)
			fail(0, "topic '%s': the writer was killed; %zu bytes are not sent", p->topic, p->buf.n);
		p->buf.n = 0;
		p->too_big = false;
		return 0;
	}
	post_rest(p);
	return wait_all(p);
}

void post_close(struct post *p)
{
	LIST_REMOVE(p, entry);
	post_rest(p);
	p->closed = true;
	if (p->writer) {
		fuse_reply_write(p->writer, p->writer_size);
		p->writer = NULL;
	}
	maybe_free(p);
}
