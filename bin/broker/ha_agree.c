/* ha_agree.c: comparing this slave's log with its master's, question by question.
 *
 * 1. The master's segments must be of our size; its log begins at min and ends at max.
 * 2. An empty log begins where the master's does.
 * 3. The newest record: if the master has the same, and nothing else behind it, the logs agree.  This is how it nearly always ends.
 * 4. Else the first records of the segments, halving, then the records of the last segment whose first one is the same.
 * Nothing in common at all is not settled here: the master may be the one that has lost its disk. */
#include "ha_agree.h"
#include "broker.h"
#include "ha_role.h"
#include <base/byte.h>
#include <base/err.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_stats.h>
#include <codec/layout.h>
#include <codec/message.h>
#include <store/replica.h>
#include <stdlib.h>

enum { ASK_MS = 5000 };

struct ha_agree {
	struct broker *b;
	struct conn *c;
	void (*done)(void *arg, const struct ha_agreed *r);
	void *arg;
	struct ha_agreed r;
	bool cancelled;
	int64_t segment;                /* of the master */
	int64_t *v;                     /* starts of segments, then of records */
	size_t n;
	bool in_segment;                /* v are records */
	struct ha_search search;
	size_t asked;                   /* index in v */
};

static void over(struct ha_agree *a)
{
	conn_unref(a->c);
	free(a->v);
	free(a);
}

static void finish(struct ha_agree *a, int what)
{
	a->r.what = what;
	a->done(a->arg, &a->r);
	over(a);
}

static void fail(struct ha_agree *a, const char *fmt, ...) MQ_PRINTF(2, 3);
static void fail(struct ha_agree *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->r.why, sizeof a->r.why, fmt, ap);
	va_end(ap);
	finish(a, HA_AGREE_FAILED);
}

/* Answered?  False: it is over. */
static bool answered(struct ha_agree *a, int rc, const struct frame *f, const char *what, bool any_code)
{
	if (a->cancelled) {
		over(a);
		return false;
	}
	if (rc < 0)
		fail(a, "the master does not say %s: %s", what, mq_strerror(rc));
	else if (!any_code && f->code != RESP_SUCCESS)
		fail(a, "the master does not say %s: code %d " MQ_STR_FMT, what, f->code, MQ_STR_ARG(f->remark));
	else
		return true;
	return false;
}

static void ask(struct ha_agree *a, int32_t code, int64_t off, conn_answer_cb *cb)
{
	struct frame_out o;

	conn_call(a->c, &o, code, FRAME_JSON, ASK_MS, cb, a);
	if (code == REQ_VIEW_MESSAGE_BY_ID)
		frame_i64(&o, "offset", off);
	frame_end(&o);
	conn_kick(a->c);
}

static int32_t size_at(struct ha_agree *a, int64_t off)
{
	struct mq_str record;

	return mqstore_at(a->b->store, off, &record) == 0 ? (int32_t)record.n : 0;
}

/* Is what the master has at off what we have there? */
static bool same(struct ha_agree *a, int64_t off, const struct frame *f)
{
	struct mq_str record;

	return f->code == RESP_SUCCESS && mqstore_at(a->b->store, off, &record) == 0 && str_eq(record, f->body);
}

/* ---- Where they part ----------------------------------------------------------------------------------------------------- */

static void search_on(struct ha_agree *a);

/* The newest record that both have begins at off. */
static void cut_behind(struct ha_agree *a, int64_t off)
{
	a->r.last = off;
	a->r.end = off + size_at(a, off);
	finish(a, HA_AGREE_CUT);
}

static void searched(struct ha_agree *a)
{
	size_t same_n = a->search.lo;
	int64_t start;

	if (!same_n) {
		fail(a, "this log and the master's have no record in common: nothing is touched.  If the master is right, let this slave "
		     "begin with an empty store");
		return;
	}
	if (a->in_segment) {
		cut_behind(a, a->v[same_n - 1]);
		return;
	}
	start = a->v[same_n - 1];
	free(a->v);
	a->n = replica_records(a->b->store, start, &a->v);
	a->in_segment = true;
	ha_search_begin(&a->search, a->n);
	ha_search_answer(&a->search, 0, true);
	search_on(a);
}

static void on_searched(void *arg, int rc, struct frame *f)
{
	struct ha_agree *a = arg;

	if (!answered(a, rc, f, "what it has", true))
		return;
	ha_search_answer(&a->search, a->asked, same(a, a->v[a->asked], f));
	search_on(a);
}

static void search_on(struct ha_agree *a)
{
	/* What the master no longer has, or has not yet, need not be asked for. */
	while (!ha_search_done(&a->search)) {
		a->asked = ha_search_next(&a->search);
		if (a->v[a->asked] < a->r.master_max) {
			ask(a, REQ_VIEW_MESSAGE_BY_ID, a->v[a->asked], on_searched);
			return;
		}
		ha_search_answer(&a->search, a->asked, false);
	}
	searched(a);
}

static void search(struct ha_agree *a)
{
	size_t n = replica_segments(a->b->store, &a->v), skip = 0;

	while (skip < n && a->v[skip] < a->r.master_min)
		skip++;
	memmove(a->v, a->v + skip, (n - skip) * sizeof *a->v);
	ha_search_begin(&a->search, n - skip);
	search_on(a);
}

/* ---- The newest record --------------------------------------------------------------------------------------------------- */

/* Our segment ends behind the newest record; the master's must not go on there. */
static void on_behind(void *arg, int rc, struct frame *f)
{
	struct ha_agree *a = arg;
	uint32_t magic;

	if (!answered(a, rc, f, "what it has", true))
		return;
	magic = f->code == RESP_SUCCESS && f->body.n >= RECORD_MIN ? be32((const uint8_t *)f->body.p + RECORD_AT_MAGIC) : 0;
	if (magic == RECORD_MAGIC_V1 || magic == RECORD_MAGIC_V2)
		cut_behind(a, replica_last(a->b->store));
	else
		finish(a, HA_AGREE_FOLLOW);
}

static void on_newest(void *arg, int rc, struct frame *f)
{
	struct ha_agree *a = arg;
	int64_t last = replica_last(a->b->store), end;

	if (!answered(a, rc, f, "what it has", true))
		return;
	if (!same(a, last, f)) {
		search(a);
		return;
	}
	end = last + size_at(a, last);
	if (mqstore_log_max(a->b->store) > a->r.master_max)
		cut_behind(a, last);
	else if (mqstore_log_max(a->b->store) > end)
		ask(a, REQ_VIEW_MESSAGE_BY_ID, end, on_behind);
	else
		finish(a, HA_AGREE_FOLLOW);
}

/* ---- Master and segments ------------------------------------------------------------------------------------------------- */

static void compare(struct ha_agree *a)
{
	struct broker *b = a->b;
	int64_t last = replica_last(b->store), end = mqstore_log_max(b->store);

	if (a->segment != replica_segment_bytes(b->store)) {
		fail(a, "mappedFileSizeCommitLog is %lld here and %lld at the master: they have to be the same",
		     (long long)replica_segment_bytes(b->store), (long long)a->segment);
	} else if (last < 0) {
		/* compat: to a Java master 0 means its last segment; the first byte of a log is 0 in any case. */
		a->r.begin = a->r.master_min > 0 || a->r.master_max < a->segment ? a->r.master_min : 1;
		if (b->conf->syncFromLastFile && a->r.master_max - a->r.master_max % a->segment > a->r.master_min)
			a->r.begin = a->r.master_max - a->r.master_max % a->segment;
		finish(a, HA_AGREE_FOLLOW);
	} else if (last < a->r.master_min) {
		snprintf(a->r.why, sizeof a->r.why, "this log ends at %lld, the master's begins at %lld", (long long)end,
			 (long long)a->r.master_min);
		finish(a, HA_AGREE_TOO_OLD);
	} else if (last >= a->r.master_max) {
		search(a);
	} else {
		ask(a, REQ_VIEW_MESSAGE_BY_ID, last, on_newest);
	}
}

static void on_info(void *arg, int rc, struct frame *f)
{
	struct ha_agree *a = arg;
	struct body_kv kv;
	struct mq_error e;

	if (!answered(a, rc, f, "where its log begins and ends", false))
		return;
	if (body_kv_decode(f->body, &kv, &e) < 0) {
		fail(a, "the master's answer to 28: %s", e.text);
		return;
	}
	a->r.master_min = a->r.master_max = -1;
	for (size_t i = 0; i < kv.n; i++)
		if (str_is(kv.pair[i].key, "commitLogMinOffset"))
			str_i64(kv.pair[i].value, &a->r.master_min);
		else if (str_is(kv.pair[i].key, "commitLogMaxOffset"))
			str_i64(kv.pair[i].value, &a->r.master_max);
	body_kv_free(&kv);
	/* compat: the minimum of a Java master without a log is -1. */
	if (a->r.master_min < 0 && a->r.master_max == 0)
		a->r.master_min = 0;
	if (a->r.master_min < 0 || a->r.master_max < a->r.master_min)
		fail(a, "the master does not say where its log begins and ends");
	else
		compare(a);
}

static void on_config(void *arg, int rc, struct frame *f)
{
	struct ha_agree *a = arg;
	struct mq_str rest, line, key = MQ_STR("mappedFileSizeCommitLog=");

	if (!answered(a, rc, f, "how large its segments are", false))
		return;
	for (rest = f->body; rest.n && str_split(&rest, '\n', &line);)
		if (line.n > key.n && memcmp(line.p, key.p, key.n) == 0)
			str_i64(str_trim((struct mq_str){ line.p + key.n, line.n - key.n }), &a->segment);
	ask(a, REQ_GET_BROKER_RUNTIME_INFO, 0, on_info);
}

struct ha_agree *ha_agree_start(struct broker *b, struct conn *c, void (*done)(void *arg, const struct ha_agreed *r), void *arg)
{
	struct ha_agree *a = mem_alloc(sizeof *a);

	a->b = b;
	a->c = c;
	a->done = done;
	a->arg = arg;
	a->segment = -1;
	conn_ref(c);
	ask(a, REQ_GET_BROKER_CONFIG, 0, on_config);
	return a;
}

void ha_agree_cancel(struct ha_agree *a)
{
	a->cancelled = true;
}
