/* ha_feed.c: blocks out, reports in, for one slave. */
#include "ha_feed.h"
#include "broker.h"
#include "member.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/err.h>
#include <base/mem.h>
#include <base/sys.h>
#include <errno.h>
#include <fcntl.h>
#include <store/cold.h>
#include <store/replica.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	FAR = 32 << 20,         /* so much behind the end: by sendfile() */
	COLD = 64 << 20,        /* so much behind: it may not be in memory */
	LOOK = 1 << 20,         /* how much is looked for in memory at once */
	WARM = 4 << 20,         /* how much a worker reads at once */
	PUSH_MAX = 8 << 20,     /* bytes in one turn: then others have theirs */
	REPORTS = 512,          /* read at once; only the newest counts */
};

void (*ha_feed_go_on)(struct ha_feed *f);

struct ha_log ha_log_now(struct broker *b)
{
	int64_t end = mqstore_log_max(b->store);

	/* Under a controller and SYNC_FLUSH nothing leaves that is not on this disk: so no other log has what this one can lose. */
	if (b->opt.member && b->conf->flushDiskType == FLUSH_SYNC && mqstore_flushed(b->store) < end)
		end = mqstore_flushed(b->store);
	return (struct ha_log){ mqstore_log_min(b->store), end, replica_segment_bytes(b->store) };
}

static int head_bytes(const struct ha_feed *f)
{
	return f->switched ? HA_SWITCH_HEAD : HA_HEAD;
}

struct ha_feed *ha_feed_new(struct broker *b, struct stream *s)
{
	static uint64_t number;
	struct ha_feed *f = mem_alloc(sizeof *f);

	f->b = b;
	f->s = s;
	f->fd = -1;
	f->switched = b->opt.member != NULL;
	f->number = ++number;
	f->began_ms = clock_now_ms();
	ha_switch_begin(&f->sw, clock_mono_ms());
	return f;
}

int64_t ha_feed_behind(const struct ha_feed *f)
{
	return f->sw.base.known ? ha_log_now(f->b).end - f->sw.base.next : 0;
}

static void drop_file(struct ha_feed *f)
{
	if (f->fd >= 0)
		sys.close(f->fd);
	f->fd = -1;
}

/* ---- Bringing cold bytes into memory ------------------------------------------------------------------------------------ */

struct ha_warm {
	struct ha_feed *feed;           /* NULL: it has gone */
	uv_work_t work;
	struct cold_range range;
};

static void warm_run(uv_work_t *work)
{
	cold_fetch(&((struct ha_warm *)work->data)->range);
}

static void warm_done(uv_work_t *work, int status)
{
	struct ha_warm *w = work->data;
	struct ha_feed *f = w->feed;

	clock_refresh();
	if (f) {
		f->warm = NULL;
		f->warm_to = f->sw.base.next + w->range.n;
		ha_feed_go_on(f);
	}
	free(w);
}

/* True: what comes next is in memory, or will be soon enough. */
static bool is_warm(struct ha_feed *f)
{
	int64_t off = f->sw.base.next, segment = replica_segment_bytes(f->b->store), left = segment - off % segment, start;
	struct ha_warm *w;

	if (f->warm)
		return false;
	if (ha_feed_behind(f) < COLD || off < f->warm_to)
		return true;
	if (replica_in_memory(f->b->store, off, left < LOOK ? left : LOOK)) {
		f->warm_to = off + LOOK;
		return true;
	}
	w = mem_alloc(sizeof *w);
	if (replica_file(f->b->store, off, w->range.path, &start) < 0) {
		free(w);
		return true; /* it is gone: that shows when it is sent */
	}
	w->feed = f;
	w->range.from = off - start;
	w->range.n = left < WARM ? left : WARM;
	w->work.data = w;
	f->warm = w;
	uv_queue_work(f->b->loop, &w->work, warm_run, warm_done);
	return false;
}

/* ---- Out ---------------------------------------------------------------------------------------------------------------- */

/* What comes next, and its head. */
static struct ha_send next_plain(struct ha_feed *f, const struct ha_log *log, const struct ha_limits *l, int64_t now, uint8_t *head)
{
	struct ha_send a = ha_slave_next(&f->sw.base, log, l, now);

	put_be64(head, (uint64_t)a.off);
	put_be32(head + 8, (uint32_t)a.n);
	if (a.what != HA_SEND_NOTHING)
		ha_slave_sent(&f->sw.base, &a, now);
	return a;
}

static struct ha_send next_switched(struct ha_feed *f, const struct ha_log *log, const struct ha_limits *l, int64_t now, uint8_t *head)
{
	struct ha_switch_send a = ha_switch_next(&f->sw, log, member_epochs(f->b->opt.member), l, now);

	if (a.what != HA_SWITCH_HEARTBEAT && a.what != HA_SWITCH_BLOCK)
		return (struct ha_send){ .what = HA_SEND_NOTHING };
	put_be32(head, HA_SWITCH_TRANSFER);
	put_be32(head + 4, (uint32_t)a.n);
	put_be64(head + 8, (uint64_t)a.off);
	put_be32(head + 16, (uint32_t)a.epoch.number);
	put_be64(head + 20, (uint64_t)a.epoch.start);
	put_be64(head + 28, (uint64_t)member_confirm(f->b->opt.member));
	ha_switch_sent(&f->sw, log, &a, now);
	return (struct ha_send){ a.what == HA_SWITCH_BLOCK ? HA_SEND_BLOCK : HA_SEND_HEARTBEAT, a.off, a.n };
}

/* The answer to a handshake: our epochs, and where our log ends. */
static void gather_hello(struct ha_feed *f, const struct ha_limits *l)
{
	const struct epoch_list *epochs = member_epochs(f->b->opt.member);
	struct ha_log log = ha_log_now(f->b);
	struct ha_switch_send a = ha_switch_next(&f->sw, &log, epochs, l, clock_mono_ms());
	uint8_t *to;

	if (a.what != HA_SWITCH_ANSWER)
		return;
	f->hello.n = f->hello_done = 0;
	to = (uint8_t *)buf_room(&f->hello, HA_SWITCH_HELLO + HA_SWITCH_ENTRY * epochs->n);
	put_be32(to, HA_SWITCH_HANDSHAKE);
	put_be32(to + 4, (uint32_t)(HA_SWITCH_ENTRY * epochs->n));
	put_be64(to + 8, (uint64_t)a.off);
	put_be32(to + 16, (uint32_t)a.epoch.number);
	for (size_t i = 0; i < epochs->n; i++) {
		put_be32(to + HA_SWITCH_HELLO + HA_SWITCH_ENTRY * i, (uint32_t)epochs->v[i].number);
		put_be64(to + HA_SWITCH_HELLO + HA_SWITCH_ENTRY * i + 4, (uint64_t)epochs->v[i].start);
	}
	f->hello.n = HA_SWITCH_HELLO + HA_SWITCH_ENTRY * epochs->n;
	ha_switch_sent(&f->sw, &log, &a, clock_mono_ms());
}

static int send_hello(struct ha_feed *f, struct mq_error *why)
{
	while (f->hello_done < f->hello.n) {
		struct iovec v = { f->hello.p + f->hello_done, f->hello.n - f->hello_done };
		ssize_t n = stream_send(f->s, &v, 1, false);

		if (n <= 0)
			return n < 0 ? err_set(why, (int)n, "%s", mq_strerror((int)n)) : 0;
		f->hello_done += (size_t)n;
		f->bytes += n;
	}
	return 1;
}

/* Fill f->out with what comes next.  False: nothing. */
static bool gather(struct ha_feed *f, const struct ha_limits *l)
{
	struct ha_log log = ha_log_now(f->b);
	int64_t now = clock_mono_ms();

	mqstore_write_out(f->b->store); /* what is sent is read from the files */
	f->out.n = 0;
	f->out.done = 0;
	f->out.by_file = log.end - f->sw.base.next > FAR;
	if (!is_warm(f))
		return false;
	while (f->out.n < (f->out.by_file ? 1 : HA_FEED_BLOCKS)) {
		uint8_t *head = f->out.head[f->out.n];
		struct ha_send a = f->switched ? next_switched(f, &log, l, now, head) : next_plain(f, &log, l, now, head);

		if (a.what == HA_SEND_NOTHING)
			break;
		f->out.block[f->out.n++] = a;
	}
	return f->out.n > 0;
}

static int gone(struct ha_feed *f, int64_t off, struct mq_error *why)
{
	return err_set(why, MQ_ENOTFOUND, "bytes at %lld are no longer here: the log begins at %lld", (long long)off,
		       (long long)mqstore_log_min(f->b->store));
}

/* What is left of f->out as pieces of memory. */
static ssize_t send_mapped(struct ha_feed *f, struct mq_error *why)
{
	struct iovec v[HA_FEED_BLOCKS * 2];
	int64_t skip = f->out.done, n;
	int at = 0, from = 0;

	for (int i = 0; i < f->out.n; i++) {
		const struct ha_send *a = &f->out.block[i];
		const uint8_t *body = a->n ? replica_view(f->b->store, a->off, &n) : NULL;

		if (a->n && (!body || n < a->n))
			return gone(f, a->off, why);
		v[at++] = (struct iovec){ f->out.head[i], (size_t)head_bytes(f) };
		if (a->n)
			v[at++] = (struct iovec){ (void *)(uintptr_t)body, (size_t)a->n };
	}
	while (from < at && skip >= (int64_t)v[from].iov_len)
		skip -= (int64_t)v[from++].iov_len;
	if (from == at)
		return 0;
	v[from].iov_base = (char *)v[from].iov_base + skip;
	v[from].iov_len -= (size_t)skip;
	return stream_send(f->s, v + from, at - from, false);
}

static int open_file(struct ha_feed *f, int64_t off, struct mq_error *why)
{
	char path[SEGMENT_PATH];

	if (f->fd >= 0 && off >= f->fd_start && off < f->fd_start + replica_segment_bytes(f->b->store))
		return 0;
	drop_file(f);
	if (replica_file(f->b->store, off, path, &f->fd_start) < 0)
		return gone(f, off, why);
	f->fd = sys.open(path, O_RDONLY, 0);
	return f->fd < 0 ? err_sys(why, f->fd, "open '%s'", path) : 0;
}

/* One block, its body straight from the file. */
static ssize_t send_by_file(struct ha_feed *f, struct mq_error *why)
{
	const struct ha_send *a = &f->out.block[0];
	int64_t done = f->out.done - head_bytes(f);
	int rc;

	if (done < 0) {
		struct iovec v = { f->out.head[0] + f->out.done, (size_t)-done };

		return stream_send(f->s, &v, 1, a->n > 0);
	}
	rc = open_file(f, a->off, why);
	return rc < 0 ? rc : stream_send_file(f->s, f->fd, a->off + done - f->fd_start, (size_t)(a->n - done));
}

/* 1 all of f->out has left, 0 the socket takes no more, or a negative code. */
static int send_out(struct ha_feed *f, struct mq_error *why)
{
	int64_t all = 0;

	for (int i = 0; i < f->out.n; i++)
		all += head_bytes(f) + f->out.block[i].n;
	while (f->out.done < all) {
		ssize_t n = f->out.by_file ? send_by_file(f, why) : send_mapped(f, why);

		if (n < 0 && !why->text[0])
			err_set(why, (int)n, "%s", mq_strerror((int)n));
		if (n <= 0)
			return (int)n;
		f->out.done += n;
		f->bytes += n;
	}
	f->out.n = 0;
	return 1;
}

int ha_feed_push(struct ha_feed *f, const struct ha_limits *l, struct mq_error *why)
{
	int64_t before = f->bytes;
	struct ha_log log;
	int rc = 1;

	why->text[0] = 0;
	if (f->switched && !f->out.n)
		gather_hello(f, l);
	rc = send_hello(f, why);
	while (rc > 0 && f->bytes - before < PUSH_MAX && (f->out.n || gather(f, l)))
		rc = send_out(f, why);
	log = ha_log_now(f->b);
	f->held = ha_slave_is_held(&f->sw.base, &log, l);
	stream_want_write(f->s, f->out.n > 0 || f->hello_done < f->hello.n || (rc > 0 && f->bytes - before >= PUSH_MAX));
	return rc < 0 ? rc : 0;
}

/* ---- In ----------------------------------------------------------------------------------------------------------------- */

/* One handshake or report of n bytes under a controller.  Bytes that it takes, 0: it is not whole, or a negative code. */
static int take_switched(struct ha_feed *f, const struct ha_log *log, const uint8_t *p, size_t n, struct mq_error *why)
{
	int32_t state = n >= 4 ? (int32_t)be32(p) : HA_SWITCH_TRANSFER;
	struct ha_switch_hello hello;
	int rc;

	if (state == HA_SWITCH_HANDSHAKE && n >= 16) {
		hello = (struct ha_switch_hello){ (int64_t)be64(p + 8), be16(p + 4) == 1, be16(p + 6) == 1 };
		rc = ha_switch_greet(&f->sw, &hello, clock_mono_ms(), why);
		return rc < 0 ? rc : 16;
	}
	if (state == HA_SWITCH_TRANSFER && n >= 12) {
		rc = ha_switch_report(&f->sw, log, (int64_t)be64(p + 4), clock_mono_ms(), why);
		return rc < 0 ? rc : 12;
	}
	if (state != HA_SWITCH_HANDSHAKE && state != HA_SWITCH_TRANSFER)
		return err_set(why, MQ_EPROTO, "it sends a message of state %d: that is none under a controller", state);
	return 0;
}

static int take_plain(struct ha_feed *f, const struct ha_log *log, const uint8_t *p, size_t n, struct mq_error *why)
{
	int rc = n < 8 ? 0 : ha_slave_report(&f->sw.base, log, (int64_t)be64(p), clock_mono_ms(), why);

	return rc < 0 ? rc : n < 8 ? 0 : 8;
}

int ha_feed_read(struct ha_feed *f, struct mq_error *why)
{
	uint8_t buf[REPORTS * 8];
	struct ha_log log = ha_log_now(f->b);
	size_t n, at = 0;
	ssize_t got;
	int rc = 1;

	memcpy(buf, f->in, f->in_n);
	got = stream_recv(f->s, &(struct iovec){ buf + f->in_n, sizeof buf - f->in_n }, 1);
	if (got <= 0)
		return got == 0 ? 0 : err_set(why, (int)got, "%s", mq_strerror((int)got));
	n = f->in_n + (size_t)got;
	/* Each is looked at: a number that is no good is not hidden by the one behind it. */
	while (at < n && rc > 0) {
		rc = f->switched ? take_switched(f, &log, buf + at, n - at, why) : take_plain(f, &log, buf + at, n - at, why);
		at += rc > 0 ? (size_t)rc : 0;
	}
	f->in_n = rc < 0 ? 0 : n - at;
	memcpy(f->in, buf + at, f->in_n);
	return rc < 0 ? rc : 0;
}

void ha_feed_free(struct ha_feed *f)
{
	if (f->warm)
		f->warm->feed = NULL;
	drop_file(f);
	stream_close(f->s);
	buf_free(&f->hello);
	free(f);
}
