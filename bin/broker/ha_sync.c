/* ha_sync.c: asks the master for its tables, one after the other, and puts them in the place of ours. */
#include "ha_sync.h"
#include "broker.h"
#include "delay.h"
#include "group_table.h"
#include "ha_replica.h"
#include "mode_table.h"
#include "offset_table.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <codec/body_group.h>
#include <codec/body_offset.h>
#include <codec/body_pop.h>
#include <codec/body_stats.h>
#include <codec/body_topic.h>
#include <errno.h>
#include <store/wheel.h>
#include <stdlib.h>

#define LOG_MODULE "ha"

enum { DIAL_MS = 3000, RETRY_MS = 1000, ASK_MS = 5000, TICK_MS = 1000, NOW_MS = 200, CHECK_BYTES = 4096 };

/* What is kept for when this broker is a master one day: nobody looks at it here. */
struct kept {
	const char *name;               /* of the file in config/ */
	uint64_t hash;                  /* of what is in it; 0 = not known */
	struct buf text;
	uv_work_t work;
	bool busy;
	bool unwanted;                  /* since it was given to a worker: the file goes */
	struct ha_sync *s;
};

struct ha_sync {
	struct broker *b;
	struct ha_replica *r;
	char *addr;                     /* NULL = not known */
	struct conn *c;
	bool opened, stopped, asking;
	int step;
	int64_t dial_ms, copy_ms;       /* monotonic: when it is due */
	int64_t begun_ms;               /* the last copy */
	bool again;                     /* one was wanted since */
	uv_timer_t tick;
	struct kept timer, check;
	struct wheel_check master;      /* how far the master's timer has come ... */
	bool heard;                     /* ... as it has said, */
	int64_t check_end;              /* and where its log ended after that; -1: not known yet */
	int closed;
	bool trouble;                   /* said in the log */
};

static void copy(struct ha_sync *s);

/* ---- What comes ---------------------------------------------------------------------------------------------------------- */

static int take_topics(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_topic_table t;
	int rc = body_topic_table_decode(body, &t, e);

	if (rc < 0)
		return rc;
	topic_table_replace(s->b->topics, &t);
	body_topic_table_free(&t);
	return 0;
}

static int take_groups(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_group_table t;
	int rc = body_group_table_decode(body, &t, e);

	if (rc < 0)
		return rc;
	group_table_replace(s->b->groups, &t);
	body_group_table_free(&t);
	return 0;
}

static int take_offsets(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_offset_table t;
	int rc = body_offset_table_decode(body, &t, e);

	if (rc < 0)
		return rc;
	offset_table_merge(s->b->offsets, &t);
	body_offset_table_free(&t);
	return 0;
}

static int take_delay(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_delay_table t;
	int rc = body_delay_table_decode(body, &t, e);

	if (rc < 0)
		return rc;
	delay_take(s->b->delay, &t);
	body_delay_table_free(&t);
	return 0;
}

static void kept_write(uv_work_t *work)
{
	struct kept *k = work->data;
	char *path = mem_printf("%s/config/%s", k->s->b->conf->storePathRootDir, k->name);
	int rc = sys_replace_file(path, k->text.p, k->text.n);

	k->hash = rc < 0 ? 0 : k->hash;
	free(path);
}

static void maybe_free(struct ha_sync *s)
{
	if (!s->closed || s->timer.busy || s->check.busy)
		return;
	buf_free(&s->timer.text);
	buf_free(&s->check.text);
	free(s->addr);
	free(s);
}

static void unkeep(struct kept *k)
{
	char *path = mem_printf("%s/config/%s", k->s->b->conf->storePathRootDir, k->name);
	int rc = sys.unlink(path);

	if (rc < 0 && rc != -ENOENT)
		log_error("remove '%s': %s", path, mq_strerror(rc));
	k->hash = 0;
	k->unwanted = false;
	free(path);
}

static void kept_written(uv_work_t *work, int status)
{
	struct kept *k = work->data;

	k->busy = false;
	if (k->unwanted)
		unkeep(k);
	maybe_free(k->s);
}

static int keep(struct ha_sync *s, struct kept *k, struct mq_str body)
{
	uint64_t hash = 1469598103934665603u;

	for (size_t i = 0; i < body.n; i++)
		hash = (hash ^ (uint8_t)body.p[i]) * 1099511628211u;
	if (k->busy || hash == k->hash || !body.n)
		return 0;
	k->hash = hash;
	k->text.n = 0;
	buf_str(&k->text, body);
	k->busy = true;
	k->work.data = k;
	uv_queue_work(s->b->loop, &k->work, kept_write, kept_written);
	return 0;
}

static int take_modes(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_modes m;
	int rc = body_modes_decode(body, &m, e);

	if (rc < 0)
		return rc;
	mode_table_replace(s->b->modes, &m);
	body_free(&m.keep);
	return 0;
}

static int take_timer(struct ha_sync *s, struct mq_str body, struct mq_error *e) { return keep(s, &s->timer, body); }

/* One that waits for the log is not replaced: were the tables copied more often than the log is flushed, none would ever be kept. */
static int take_check(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	if (s->heard && s->check_end >= 0)
		return 0;
	s->heard = body.n >= WHEEL_CHECK_BYTES && s->b->conf->timerWheelEnable;
	s->check_end = -1;
	if (s->heard)
		wheel_check_take(&s->master, (const uint8_t *)body.p);
	s->heard = s->heard && s->master.read_ms > 0;
	return 0;
}

static int take_end(struct ha_sync *s, struct mq_str body, struct mq_error *e)
{
	struct body_kv kv;
	int rc = body_kv_decode(body, &kv, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < kv.n && s->check_end < 0; i++)
		if (str_is(kv.pair[i].key, "commitLogMaxOffset"))
			str_i64(kv.pair[i].value, &s->check_end);
	body_kv_free(&kv);
	return 0;
}

/* Our file of the master's check-point.  There is no timer log behind it, so a wheel is made again from the queue (WHEEL_LOST), and what
 * was due before read_ms is done with. */
static void keep_check(struct ha_sync *s)
{
	uint8_t raw[CHECK_BYTES] = { 0 };
	struct wheel_check c = s->master;

	if (!s->heard || s->check_end < 0 || s->check.busy || mqstore_flushed(s->b->store) < s->check_end)
		return;
	c.flush_pos = 1;
	c.queue_off = 0;
	wheel_check_put(&c, raw);
	keep(s, &s->check, (struct mq_str){ (char *)raw, sizeof raw });
	s->heard = false;
}

void ha_sync_cuts(struct ha_sync *s)
{
	s->heard = false;
	unkeep(&s->check);
	s->check.unwanted = s->check.busy; /* a worker may yet write it */
}

static const struct step {
	int32_t code;
	int (*take)(struct ha_sync *s, struct mq_str body, struct mq_error *e);
	bool optional;          /* a master that does not know it is no trouble */
} steps[] = {
	{ REQ_GET_ALL_TOPIC_CONFIG, take_topics, false },
	{ REQ_GET_ALL_SUBSCRIPTIONGROUP_CONFIG, take_groups, false },
	{ REQ_GET_ALL_CONSUMER_OFFSET, take_offsets, false },
	{ REQ_GET_ALL_DELAY_OFFSET, take_delay, false },
	{ REQ_GET_ALL_MESSAGE_REQUEST_MODE, take_modes, true },
	{ REQ_GET_TIMER_METRICS, take_timer, true },
	{ REQ_GET_TIMER_CHECK_POINT, take_check, true },
	{ REQ_GET_BROKER_RUNTIME_INFO, take_end, true }, /* not before it has said the other */
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* ---- Asking -------------------------------------------------------------------------------------------------------------- */

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct ha_sync *s = arg;
	const struct step *step = &steps[s->step];
	struct mq_error e = { 0 };

	s->asking = false;
	if (s->stopped || rc == MQ_ECLOSED || !ha_replica_agrees(s->r))
		return; /* anew with the next connection, or the next agreement */
	if (rc == 0 && f->code == RESP_SUCCESS)
		rc = step->take(s, f->body, &e);
	else if (rc == 0 && !step->optional)
		rc = err_set(&e, MQ_EREFUSED, "%s: " MQ_STR_FMT, response_name(f->code), MQ_STR_ARG(f->remark));
	if (rc < 0) {
		if (!s->trouble)
			log_warn("tables of the master are not copied code=%d reason=\"%s\"", step->code,
				 e.text[0] ? e.text : mq_strerror(rc));
		s->trouble = true;
		return;
	}
	if (++s->step < STEPS)
		copy(s);
	else
		s->trouble = false;
}

static void copy(struct ha_sync *s)
{
	struct frame_out o;

	s->asking = true;
	conn_call(s->c, &o, steps[s->step].code, FRAME_JSON, ASK_MS, on_answer, s);
	frame_end(&o);
	conn_kick(s->c);
}

static void begin(struct ha_sync *s)
{
	s->again = false;
	s->begun_ms = clock_mono_ms();
	s->copy_ms = s->begun_ms + HA_SYNC_MS;
	s->step = 0;
	copy(s);
}

void ha_sync_now(struct ha_sync *s)
{
	s->again = true;
	if (s->opened && !s->asking && ha_replica_agrees(s->r) && clock_mono_ms() - s->begun_ms >= NOW_MS)
		begin(s);
}

/* ---- The connection ------------------------------------------------------------------------------------------------------ */

static int on_request(struct conn *c, struct frame *f)
{
	return 0; /* a master asks nothing of who asks it */
}

static void on_opened(struct conn *c)
{
	struct ha_sync *s = conn_public(c)->owner;

	if (c != s->c)
		return;
	s->opened = true;
	ha_replica_can_ask(s->r);
}

static void on_closed(struct conn *c, int why)
{
	struct ha_sync *s = conn_public(c)->owner;

	if (s && c == s->c) {
		s->c = NULL;
		s->opened = s->heard = false; /* who answers next may have another log */
	}
}

static const struct conn_ops sync_ops = { .request = on_request, .opened = on_opened, .closed = on_closed };

static void drop(struct ha_sync *s)
{
	if (s->c) {
		conn_public(s->c)->owner = NULL;
		conn_close(s->c);
	}
	s->c = NULL;
	s->opened = s->heard = false;
}

static void dial(struct ha_sync *s)
{
	struct mq_error e;

	s->dial_ms = clock_mono_ms() + RETRY_MS;
	s->c = conn_dial(s->b->loop, s->addr, DIAL_MS, &sync_ops, s, &e);
	if (!s->c)
		log_warn("master '%s': %s", s->addr, e.text);
}

struct conn *ha_sync_conn(struct ha_sync *s)
{
	return s->opened ? s->c : NULL;
}

void ha_sync_master(struct ha_sync *s, const char *addr)
{
	drop(s);
	free(s->addr);
	s->addr = mem_strdup(addr);
	dial(s);
}

static void on_tick(uv_timer_t *timer)
{
	struct ha_sync *s = timer->data;

	clock_refresh();
	if (s->addr && !s->c && clock_mono_ms() >= s->dial_ms)
		dial(s);
	if (ha_replica_agrees(s->r))
		keep_check(s);
	if (s->opened && !s->asking && ha_replica_agrees(s->r) && (s->again || clock_mono_ms() >= s->copy_ms))
		begin(s);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

struct ha_sync *ha_sync_new(struct broker *b, struct ha_replica *r)
{
	struct ha_sync *s = mem_alloc(sizeof *s);

	s->b = b;
	s->r = r;
	s->timer.name = "timermetrics";
	s->timer.s = s;
	s->check.name = "timercheck";
	s->check.s = s;
	s->check_end = -1;
	uv_timer_init(b->loop, &s->tick);
	s->tick.data = s;
	uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
	return s;
}

void ha_sync_stop(struct ha_sync *s)
{
	s->stopped = true;
	uv_timer_stop(&s->tick);
	drop(s);
}

static void on_tick_closed(uv_handle_t *handle)
{
	struct ha_sync *s = handle->data;

	s->closed = 1;
	maybe_free(s);
}

void ha_sync_free(struct ha_sync *s)
{
	uv_close((uv_handle_t *)&s->tick, on_tick_closed);
}
