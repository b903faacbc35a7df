/* ha_replica.c: a slave's end of the replication connection. */
#include "ha_replica.h"
#include "broker.h"
#include "flush.h"
#include "ha_agree.h"
#include "ha_sync.h"
#include "hold.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <net/stream.h>
#include <store/replica.h>
#include <stdlib.h>
#include <time.h>

#define LOG_MODULE "ha"

enum {
	HEAD = 12,
	TICK_MS = 1000, SOON_MS = 20,
	DIAL_MS = 3000,
	RETRY_MS = 1000,        /* after a connection that ended or could not be made */
	PIECE = 128 << 10,      /* at most so much of a block at once */
	TURN_MAX = 4 << 20,     /* bytes in one turn of the loop: then others have theirs */
	SAY_AGAIN_MS = 60000,
};

struct ha_replica {
	struct broker *b;
	struct ha_follower f;
	struct ha_sync *sync;
	struct ha_agree *agree;
	struct stream *s;
	char ha_addr[300], addr[300];
	uv_timer_t tick;
	bool stopped;

	uint8_t head[HEAD];
	size_t head_n;
	int64_t body;           /* bytes of the block that are to come */
	uint8_t report[8];
	size_t report_left;     /* bytes of it that the socket did not take yet */

	int64_t cut_end, cut_last; /* CUTTING */
	int64_t bytes, bytes_before, speed, speed_ms;
	int64_t read_ms, write_ms; /* wall */
	int64_t queues;         /* as of the last copy of the tables */
	int64_t master_max;     /* as of the last agreement, or the last byte */
	char trouble[400];      /* why it does not follow, as last said */
	int64_t said_ms;
};

static void act(struct ha_replica *r);

/* ---- What can be said of it ------------------------------------------------------------------------------------------------ */

enum ha_phase ha_replica_phase(const struct ha_replica *r) { return r->f.phase; }
const char *ha_replica_master_addr(const struct ha_replica *r) { return r->addr; }
bool ha_replica_homeless(const struct ha_replica *r) { return r->f.phase == HA_HOMELESS; }
bool ha_replica_agrees(const struct ha_replica *r) { return r->f.phase == HA_FOLLOWING; }

/* Once, and again when it is something else or a minute has passed. */
static void say(struct ha_replica *r, const char *why)
{
	int64_t now = clock_mono_ms();

	if (strncmp(r->trouble, why, sizeof r->trouble - 1) != 0 || now - r->said_ms > SAY_AGAIN_MS) {
		log_warn("not following the master addr=%s reason=\"%s\"", r->ha_addr, why);
		r->said_ms = now;
	}
	snprintf(r->trouble, sizeof r->trouble, "%s", why);
}

void ha_replica_status(const struct ha_replica *r, struct json_out *j)
{
	json_key(j, "haClientRuntimeInfo");
	json_open(j, '{');
	json_member_bool(j, "activated", r->f.phase == HA_FOLLOWING);
	json_member_cstr(j, "lastError", r->trouble);
	json_member_i64(j, "lastReadTimestamp", r->read_ms);
	json_member_i64(j, "lastWriteTimestamp", r->write_ms);
	json_member_cstr(j, "masterAddr", r->ha_addr);
	json_member_i64(j, "masterFlushOffset", 0);
	json_member_i64(j, "maxOffset", mqstore_log_max(r->b->store));
	json_member_cstr(j, "state", ha_phase_name(r->f.phase));
	json_member_i64(j, "transferredByteInSecond", r->speed);
	json_close(j, '}');
}

/* ---- Ending a connection ------------------------------------------------------------------------------------------------- */

static void hang_up(struct ha_replica *r)
{
	if (r->agree)
		ha_agree_cancel(r->agree);
	r->agree = NULL;
	if (r->s)
		stream_close(r->s);
	r->s = NULL;
	r->head_n = r->report_left = 0;
	r->body = 0;
}

static void lost(struct ha_replica *r, const char *why, int64_t rest_ms)
{
	hang_up(r);
	if (why)
		say(r, why);
	ha_follower_lost(&r->f, clock_mono_ms(), rest_ms);
}

/* ---- Reports ------------------------------------------------------------------------------------------------------------- */

/* Under SYNC_FLUSH a slave has what is on its disk. */
static int64_t have(struct ha_replica *r)
{
	int64_t max = mqstore_log_max(r->b->store), flushed = mqstore_flushed(r->b->store);

	return r->b->conf->flushDiskType == FLUSH_SYNC && r->f.began && flushed < max ? flushed : max;
}

static void send_report(struct ha_replica *r)
{
	struct iovec v = { r->report + (sizeof r->report - r->report_left), r->report_left };
	ssize_t n = stream_send(r->s, &v, 1, false);

	if (n < 0) {
		lost(r, mq_strerror((int)n), RETRY_MS);
		return;
	}
	r->report_left -= (size_t)n;
	stream_want_write(r->s, r->report_left > 0);
}

static void report(struct ha_replica *r)
{
	int64_t off = have(r);

	if (r->report_left)
		return; /* the next one says more */
	put_be64(r->report, (uint64_t)off);
	r->report_left = sizeof r->report;
	r->write_ms = clock_now_ms();
	ha_follower_reported(&r->f, off, clock_mono_ms());
	send_report(r);
}

void ha_replica_flushed(struct ha_replica *r)
{
	if (r && !r->stopped && r->f.phase == HA_FOLLOWING)
		act(r);
}

/* ---- Bytes --------------------------------------------------------------------------------------------------------------- */

static int begin_block(struct ha_replica *r, struct mq_error *why)
{
	int64_t off = (int64_t)be64(r->head), n = (int32_t)be32(r->head + 8);
	int rc = ha_follower_head(&r->f, off, n, mqstore_log_max(r->b->store), clock_mono_ms(), why);

	r->head_n = 0;
	r->body = rc < 0 ? 0 : n;
	return rc;
}

/* One read: what is left of the block, and the head of the next one with it.  Bytes, 0 = none now, or a negative code. */
static ssize_t read_some(struct ha_replica *r, struct mq_error *why)
{
	int64_t want = r->body < PIECE ? r->body : PIECE;
	struct iovec v[2];
	uint8_t *to = NULL;
	ssize_t got;
	int rc, n = 0;

	if (want) {
		rc = replica_room(r->b->store, want, &to, why);
		if (rc < 0)
			return rc;
		v[n++] = (struct iovec){ to, (size_t)want };
	}
	if (want == r->body)
		v[n++] = (struct iovec){ r->head + r->head_n, HEAD - r->head_n };
	got = stream_recv(r->s, v, n);
	if (got <= 0)
		return got == 0 ? 0 : err_set(why, (int)got, "%s", mq_strerror((int)got));
	r->bytes += got;
	r->b->metrics.ha_bytes_in += (uint64_t)got;
	if (want) {
		int64_t body = got < want ? got : want;

		replica_wrote(r->b->store, body);
		r->body -= body;
		r->head_n += (size_t)(got - body);
	} else
		r->head_n += (size_t)got;
	return got;
}

static void on_readable(struct stream *s)
{
	struct ha_replica *r = stream_owner(s);
	int64_t begin = r->bytes, was = mqstore_log_max(r->b->store);
	struct mq_error why = { 0 };
	ssize_t got;
	int rc = 0;

	do {
		got = read_some(r, &why);
		rc = got < 0 ? (int)got : 0;
		if (rc == 0 && r->head_n == HEAD)
			rc = begin_block(r, &why);
	} while (rc == 0 && got > 0 && r->bytes - begin < TURN_MAX);
	r->read_ms = clock_now_ms();
	if (mqstore_log_max(r->b->store) > was) {
		struct mq_error trouble;

		if (replica_derive(r->b->store, &trouble) < 0) {
			if (rc == 0)
				rc = err_set(&why, trouble.code, "%s", trouble.text);
		} else
			r->trouble[0] = 0;
		/* A queue that was not there before: its topic is new, too, and readers will ask for it. */
		if (replica_queues(r->b->store) != r->queues) {
			r->queues = replica_queues(r->b->store);
			ha_sync_now(r->sync);
		}
		hold_run(r->b->hold);
		if (r->b->conf->flushDiskType == FLUSH_SYNC)
			flush_soon(r->b->flush);
	}
	if (mqstore_log_max(r->b->store) > r->master_max)
		r->master_max = mqstore_log_max(r->b->store);
	if (rc < 0)
		lost(r, rc == MQ_ECLOSED ? "the master ended the connection" : why.text, rc == MQ_ECLOSED ? RETRY_MS : HA_REST_MS);
	act(r);
}

static void on_writable(struct stream *s)
{
	struct ha_replica *r = stream_owner(s);

	if (r->report_left)
		send_report(r);
	act(r);
}

/* ---- Agreement ----------------------------------------------------------------------------------------------------------- */

/* A place for what is cut: ROOT/cut/20260131-235959-OFFSET. */
static void cut_dir(struct ha_replica *r, int64_t end, char *out, size_t cap)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	char when[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
	snprintf(out, cap, "%s/cut/%s-%lld", r->b->conf->storePathRootDir, when, (long long)(end < 0 ? 0 : end));
}

static void cut(struct ha_replica *r)
{
	int64_t was = mqstore_log_max(r->b->store), saved;
	struct mq_error e;
	char dir[4096];

	if (!flush_idle(r->b->flush))
		return; /* soon */
	cut_dir(r, r->cut_end, dir, sizeof dir);
	if (replica_cut(r->b->store, r->cut_end, r->cut_last, dir, &saved, &e) < 0) {
		err_wrap(&e, "give up what the master has not");
		lost(r, e.text, HA_REST_MS);
		return;
	}
	r->b->metrics.ha_cuts++;
	log_warn("cut: the master does not have it from=%lld to=%lld bytes=%lld saved=%s", (long long)(r->cut_end < 0 ? 0 : r->cut_end),
		 (long long)was, (long long)saved, dir);
	hold_wake_all(r->b->hold);
	broker_want_turn(r->b);
	ha_follower_cut(&r->f, clock_mono_ms());
}

static void on_agreed(void *arg, const struct ha_agreed *a)
{
	struct ha_replica *r = arg;
	struct mq_error e;

	r->agree = NULL;
	r->master_max = a->master_max;
	switch (a->what) {
	case HA_AGREE_FAILED:
		lost(r, a->why, HA_REST_MS);
		break;
	case HA_AGREE_TOO_OLD:
		log_warn("the log is set aside and begins anew: %s", a->why);
		/* fall through */
	case HA_AGREE_CUT:
		r->cut_end = a->what == HA_AGREE_CUT ? a->end : -1;
		r->cut_last = a->what == HA_AGREE_CUT ? a->last : -1;
		ha_follower_must_cut(&r->f);
		break;
	case HA_AGREE_FOLLOW:
		if (replica_last(r->b->store) < 0 && replica_begin(r->b->store, a->begin, &e) < 0) {
			lost(r, e.text, HA_REST_MS);
			break;
		}
		log_info("following the master addr=%s from=%lld master_end=%lld", r->ha_addr, (long long)mqstore_log_max(r->b->store),
			 (long long)a->master_max);
		r->trouble[0] = 0;
		ha_follower_agreed(&r->f, clock_mono_ms());
		ha_sync_now(r->sync);
		break;
	}
	act(r);
}

static void agree(struct ha_replica *r)
{
	struct conn *c = ha_sync_conn(r->sync);

	if (r->agree)
		return;
	if (!c) {
		/* Without it nothing is asked for.  The name servers say where it is. */
		if (clock_mono_ms() - r->f.heard_ms > HA_REST_MS)
			lost(r, *r->addr ? "the master does not answer requests" :
			     "the name servers do not say where the master takes requests", RETRY_MS);
		return;
	}
	replica_tidy(r->b->store);
	r->agree = ha_agree_start(r->b, c, on_agreed, r);
}

void ha_replica_can_ask(struct ha_replica *r)
{
	if (!r->stopped)
		act(r);
}

/* ---- What to do ---------------------------------------------------------------------------------------------------------- */

static void on_opened(struct stream *s, int rc)
{
	struct ha_replica *r = stream_owner(s);

	if (rc < 0) {
		char why[300];

		snprintf(why, sizeof why, "cannot connect: %s", mq_strerror(rc));
		lost(r, why, RETRY_MS);
		return;
	}
	ha_follower_connected(&r->f, clock_mono_ms());
	act(r);
}

static const struct stream_ops replica_ops = { .opened = on_opened, .readable = on_readable, .writable = on_writable };

static void dial(struct ha_replica *r)
{
	struct mq_error e;

	r->f.phase = HA_DIALLING;
	r->s = stream_dial(r->b->loop, r->ha_addr, DIAL_MS, &replica_ops, r, &e);
	if (!r->s)
		lost(r, e.text, HA_REST_MS);
}

static struct ha_limits limits(struct ha_replica *r)
{
	return (struct ha_limits){ .silence_ms = r->b->conf->haHousekeepingInterval };
}

static void act(struct ha_replica *r)
{
	struct ha_limits l = limits(r);

	if (r->stopped)
		return;
	if (r->f.phase == HA_CUTTING)
		cut(r);
	if (r->f.phase == HA_AGREEING)
		agree(r);
	switch (ha_follower_next(&r->f, have(r), &l, clock_mono_ms())) {
	case HA_DO_NOTHING:
		break;
	case HA_DO_DIAL:
		dial(r);
		break;
	case HA_DO_REPORT:
		report(r);
		break;
	case HA_DO_HANG_UP:
		lost(r, "the master says nothing", RETRY_MS);
		break;
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct ha_replica *r = timer->data;
	struct mq_error e;

	clock_refresh();
	if (clock_mono_ms() - r->speed_ms >= TICK_MS) {
		r->speed = r->bytes - r->bytes_before;
		r->bytes_before = r->bytes;
		r->speed_ms = clock_mono_ms();
	}
	/* What could not be listed, for want of room, may be by now. */
	if (r->f.phase == HA_FOLLOWING && replica_derived(r->b->store) < mqstore_log_max(r->b->store) &&
	    replica_derive(r->b->store, &e) < 0)
		say(r, e.text);
	act(r);
	uv_timer_start(&r->tick, on_tick, r->f.phase == HA_CUTTING ? SOON_MS : TICK_MS, 0);
}

/* ---- Who the master is --------------------------------------------------------------------------------------------------- */

void ha_replica_master(struct ha_replica *r, struct mq_str ha_addr, struct mq_str addr)
{
	char ha[sizeof r->ha_addr], plain[sizeof r->addr];

	if (r->stopped)
		return;
	if (*r->b->conf->haMasterAddress)
		ha_addr = str_of(r->b->conf->haMasterAddress);
	snprintf(ha, sizeof ha, MQ_STR_FMT, MQ_STR_ARG(ha_addr));
	snprintf(plain, sizeof plain, MQ_STR_FMT, MQ_STR_ARG(addr));
	/* While a master is away the name servers forget it: it comes back to where it was, or they name another. */
	if (*plain && strcmp(plain, r->addr) != 0 && strcmp(plain, r->b->addr) != 0) {
		snprintf(r->addr, sizeof r->addr, "%s", plain);
		ha_sync_master(r->sync, r->addr);
	}
	if (*ha && strcmp(ha, r->ha_addr) != 0) {
		log_info("master ha=%s addr=%s", ha, r->addr);
		snprintf(r->ha_addr, sizeof r->ha_addr, "%s", ha);
		hang_up(r);
		ha_follower_master(&r->f, true, clock_mono_ms());
		act(r);
	}
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

struct ha_replica *ha_replica_new(struct broker *b)
{
	struct ha_replica *r = mem_alloc(sizeof *r);

	r->b = b;
	ha_follower_begin(&r->f);
	replica_follow(b->store);
	r->sync = ha_sync_new(b, r);
	uv_timer_init(b->loop, &r->tick);
	r->tick.data = r;
	uv_timer_start(&r->tick, on_tick, SOON_MS, 0);
	return r;
}

void ha_replica_stop(struct ha_replica *r)
{
	if (!r || r->stopped)
		return;
	hang_up(r);
	r->stopped = true;
	uv_timer_stop(&r->tick);
	ha_sync_stop(r->sync);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void ha_replica_free(struct ha_replica *r)
{
	if (!r)
		return;
	ha_replica_stop(r);
	ha_sync_free(r->sync);
	uv_close((uv_handle_t *)&r->tick, on_closed);
}
