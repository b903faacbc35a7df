/* ha_replica.c: a slave's end of the replication connection: when it is made, agreed upon, used and ended. */
#include "ha_replica_private.h"
#include "ha_agree.h"
#include "ha_prove.h"
#include "ha_sync.h"
#include "hold.h"
#include "member.h"
#include "pop_hold.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <store/replica.h>
#include <stdlib.h>

#define LOG_MODULE "ha"

enum {
	HELLO_MS = 5000,        /* that the master has for its answer to our greeting */
	TICK_MS = 1000, SOON_MS = 20, HOMELESS_MS = 200,
	DIAL_MS = 3000,
	SAY_AGAIN_MS = 60000,
};

/* ---- What can be said of it ------------------------------------------------------------------------------------------------ */

enum ha_phase ha_replica_phase(const struct ha_replica *r) { return r->f.phase; }
const char *ha_replica_master_addr(const struct ha_replica *r) { return r->addr; }
int64_t ha_replica_master_flushed(const struct ha_replica *r) { return r->master_flushed; }
void ha_replica_set_master_flushed(struct ha_replica *r, int64_t off) { r->master_flushed = off; }
bool ha_replica_homeless(const struct ha_replica *r) { return r->f.phase == HA_HOMELESS; }
bool ha_replica_agrees(const struct ha_replica *r) { return r->f.phase == HA_FOLLOWING; }

/* Once, and again when it is something else or a minute has passed. */
void ha_replica_say(struct ha_replica *r, const char *why)
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
	json_member_i64(j, "masterFlushOffset", r->master_flushed);
	json_member_i64(j, "maxOffset", mqstore_log_max(r->b->store));
	json_member_cstr(j, "state", ha_phase_name(r->f.phase));
	json_member_i64(j, "transferredByteInSecond", r->speed);
	json_close(j, '}');
}

/* ---- Ending a connection ------------------------------------------------------------------------------------------------- */

void ha_replica_hang_up(struct ha_replica *r)
{
	ha_prove_cancel(r->prove);
	r->prove = NULL;
	if (r->agree)
		ha_agree_cancel(r->agree);
	r->agree = NULL;
	if (r->s)
		stream_close(r->s);
	r->s = NULL;
	r->head_n = r->report_left = 0;
	r->hello.n = 0;
	r->heard = false;
	r->body = 0;
}

void ha_replica_lost(struct ha_replica *r, const char *why, int64_t rest_ms)
{
	ha_replica_hang_up(r);
	if (why)
		ha_replica_say(r, why);
	ha_follower_lost(&r->f, clock_mono_ms(), rest_ms);
}

/* ---- Reports ------------------------------------------------------------------------------------------------------------- */

/* Under SYNC_FLUSH a slave has what is on its disk. */
static int64_t have(struct ha_replica *r)
{
	int64_t max = mqstore_log_max(r->b->store), flushed = mqstore_flushed(r->b->store);

	return r->b->conf->flushDiskType == FLUSH_SYNC && r->f.began && flushed < max ? flushed : max;
}

void ha_replica_send(struct ha_replica *r)
{
	struct iovec v = { r->report + (r->report_n - r->report_left), r->report_left };
	ssize_t n = stream_send(r->s, &v, 1, false);

	if (n < 0) {
		ha_replica_lost(r, mq_strerror((int)n), HA_RETRY_MS);
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
	if (r->b->opt.member) {
		put_be32(r->report, HA_SWITCH_TRANSFER);
		put_be64(r->report + 4, (uint64_t)off);
	} else
		put_be64(r->report, (uint64_t)off);
	r->report_left = r->report_n = r->b->opt.member ? 12 : 8;
	r->write_ms = clock_now_ms();
	ha_follower_reported(&r->f, off, clock_mono_ms());
	ha_replica_send(r);
}

void ha_replica_flushed(struct ha_replica *r)
{
	if (r && !r->stopped && r->f.phase == HA_FOLLOWING)
		ha_replica_act(r);
}

static void on_readable(struct stream *s)
{
	struct ha_replica *r = stream_owner(s);

	if (r->f.phase == HA_CUTTING)
		return;
	if (r->b->opt.member && r->f.phase == HA_AGREEING)
		ha_hello_read(r);
	else
		ha_take_read(r);
	ha_replica_act(r);
}

static void on_writable(struct stream *s)
{
	struct ha_replica *r = stream_owner(s);

	if (r->report_left)
		ha_replica_send(r);
	ha_replica_act(r);
}

/* ---- Agreement ----------------------------------------------------------------------------------------------------------- */

void ha_replica_agreed(struct ha_replica *r)
{
	r->trouble[0] = 0;
	ha_follower_agreed(&r->f, clock_mono_ms());
	ha_sync_now(r->sync);
	/* What readers had to wait for may be seen now. */
	hold_run(r->b->hold);
	pop_hold_run(r->b->pops);
}

static void on_agreed(void *arg, const struct ha_agreed *a)
{
	struct ha_replica *r = arg;
	struct mq_error e;

	r->agree = NULL;
	r->master_max = a->master_max;
	switch (a->what) {
	case HA_AGREE_FAILED:
		ha_replica_lost(r, a->why, HA_REST_MS);
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
			ha_replica_lost(r, e.text, HA_REST_MS);
			break;
		}
		log_info("following the master addr=%s from=%lld master_end=%lld", r->ha_addr, (long long)mqstore_log_max(r->b->store),
			 (long long)a->master_max);
		ha_replica_agreed(r);
		break;
	}
	ha_replica_act(r);
}

static void agree(struct ha_replica *r)
{
	struct conn *c = ha_sync_conn(r->sync);

	if (r->b->opt.member) {
		if (clock_mono_ms() - r->f.heard_ms > HELLO_MS)
			ha_replica_lost(r, "the master does not answer the handshake", HA_RETRY_MS);
		return;
	}
	if (r->agree)
		return;
	if (!c) {
		/* Without it nothing is asked for.  The name servers say where it is. */
		if (clock_mono_ms() - r->f.heard_ms > HA_REST_MS)
			ha_replica_lost(r, *r->addr ? "the master does not answer requests" :
			     "the name servers do not say where the master takes requests", HA_RETRY_MS);
		return;
	}
	replica_tidy(r->b->store);
	r->agree = ha_agree_start(r->b, c, on_agreed, r);
}

void ha_replica_can_ask(struct ha_replica *r)
{
	if (r->stopped)
		return;
	if (r->b->opt.member)
		ha_where_ask(r);
	ha_replica_act(r);
}

/* ---- What to do ---------------------------------------------------------------------------------------------------------- */

static void begin(struct ha_replica *r)
{
	ha_follower_connected(&r->f, clock_mono_ms());
	if (r->b->opt.member) {
		replica_tidy(r->b->store);
		ha_hello_send(r);
	}
	ha_replica_act(r);
}

static void on_opened(struct stream *s, int rc);

static const struct stream_ops replica_ops = { .opened = on_opened, .readable = on_readable, .writable = on_writable };

static void on_proved(void *arg, int rc, const char *why)
{
	struct ha_replica *r = arg;

	r->prove = NULL;
	if (rc < 0) {
		ha_replica_lost(r, why, HA_REST_MS);
		return;
	}
	stream_hand_over(r->s, &replica_ops, r);
	begin(r);
}

static void on_opened(struct stream *s, int rc)
{
	struct ha_replica *r = stream_owner(s);
	struct mq_error why;

	if (rc < 0) {
		err_set(&why, rc, "cannot connect: %s", mq_strerror(rc));
		ha_replica_lost(r, why.text, HA_RETRY_MS);
	} else if (r->b->ha_secret)
		r->prove = ha_prove_start(r->b->loop, s, HA_PROOF_SLAVE, r->b->ha_secret, on_proved, r);
	else
		begin(r);
}

static void dial(struct ha_replica *r)
{
	struct mq_error e;

	r->f.phase = HA_DIALLING;
	r->s = stream_dial(r->b->loop, r->ha_addr, DIAL_MS, &replica_ops, r, &e);
	if (!r->s)
		ha_replica_lost(r, e.text, HA_REST_MS);
}

static struct ha_limits limits(struct ha_replica *r)
{
	return (struct ha_limits){ .silence_ms = r->b->conf->haHousekeepingInterval };
}

void ha_replica_act(struct ha_replica *r)
{
	struct ha_limits l = limits(r);

	if (r->stopped)
		return;
	if (r->f.phase == HA_CUTTING)
		ha_cut_run(r);
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
		ha_replica_lost(r, "the master says nothing", HA_RETRY_MS);
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
		ha_replica_say(r, e.text);
	if (r->b->opt.member)
		ha_where_ask(r);
	ha_replica_act(r);
	uv_timer_start(&r->tick, on_tick, r->f.phase == HA_CUTTING ? SOON_MS :
		       r->b->opt.member && r->f.phase == HA_HOMELESS ? HOMELESS_MS : TICK_MS, 0);
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
		ha_replica_hang_up(r);
		ha_follower_master(&r->f, true, clock_mono_ms());
		ha_replica_act(r);
	}
}

void ha_replica_switch(struct ha_replica *r, const char *addr)
{
	if (r->stopped)
		return;
	ha_replica_hang_up(r);
	ha_follower_master(&r->f, false, clock_mono_ms());
	ha_where_forget(r);
	r->ha_addr[0] = '\0';
	snprintf(r->addr, sizeof r->addr, "%s", addr);
	if (*r->addr)
		ha_sync_master(r->sync, r->addr);
	uv_timer_start(&r->tick, on_tick, SOON_MS, 0);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

struct ha_replica *ha_replica_new(struct broker *b)
{
	struct ha_replica *r = mem_alloc(sizeof *r);

	r->b = b;
	r->head_size = b->opt.member ? HA_SWITCH_HEAD : HA_HEAD;
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
	ha_replica_hang_up(r);
	r->stopped = true;
	uv_timer_stop(&r->tick);
	ha_sync_stop(r->sync);
}

static void on_closed(uv_handle_t *handle)
{
	struct ha_replica *r = handle->data;

	ha_where_free(r);
	buf_free(&r->hello);
	free(r);
}

void ha_replica_free(struct ha_replica *r)
{
	if (!r)
		return;
	ha_replica_stop(r);
	ha_sync_free(r->sync);
	uv_close((uv_handle_t *)&r->tick, on_closed);
}
