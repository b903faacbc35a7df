/* ha_replica.c: a slave's end of the replication connection. */
#include "ha_replica.h"
#include "broker.h"
#include "flush.h"
#include "ha_agree.h"
#include "ha_sync.h"
#include "ha_switch_role.h"
#include "hold.h"
#include "member.h"
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
	HEAD = 12, SWITCH_HEAD = 36,
	GREETING = 16,          /* our handshake */
	HELLO = 20, ENTRY = 12, /* its answer, and each epoch in it */
	WHERE_MS = 3000,        /* that the master gets to say where it replicates ... */
	WHERE_AGAIN_MS = 200,   /* ... and when it is asked again if it cannot yet */
	HELLO_MS = 5000,
	TICK_MS = 1000, SOON_MS = 20,
	DIAL_MS = 3000,
	RETRY_MS = 1000,        /* after a connection that ended or could not be made */
	PIECE = 128 << 10,      /* at most so much of a block at once */
	TURN_MAX = 4 << 20,     /* bytes in one turn of the loop: then others have theirs */
	SAY_AGAIN_MS = 60000,
};

struct where;

struct ha_replica {
	struct broker *b;
	struct ha_follower f;
	struct ha_sync *sync;
	struct ha_agree *agree;
	struct stream *s;
	char ha_addr[300], addr[300];
	uv_timer_t tick;
	bool stopped;

	uint8_t head[SWITCH_HEAD];
	size_t head_size;       /* HEAD, or SWITCH_HEAD under a controller */
	size_t head_n;
	int64_t body;           /* bytes of the block that are to come */
	uint8_t report[GREETING];
	size_t report_n;        /* bytes that it has */
	size_t report_left;     /* bytes of it that the socket did not take yet */

	int64_t cut_end, cut_last; /* CUTTING */

	/* Under a controller. */
	struct buf hello;       /* the answer to our handshake, so far */
	struct epoch_list theirs;
	int64_t their_end;
	bool heard;             /* theirs and their_end are what this master said */
	bool asking;            /* where the master replicates */
	struct where *where;    /* the question that is on its way */
	unsigned asked;         /* answers to older questions do not count */
	int64_t ask_ms;         /* not before */
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
	r->hello.n = 0;
	r->heard = false;
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
	struct iovec v = { r->report + (r->report_n - r->report_left), r->report_left };
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
	if (r->b->opt.member) {
		put_be32(r->report, HA_SWITCH_TRANSFER);
		put_be64(r->report + 4, (uint64_t)off);
	} else
		put_be64(r->report, (uint64_t)off);
	r->report_left = r->report_n = r->b->opt.member ? 12 : 8;
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

/* The head of a block under a controller.  A new epoch is on the disk before anything of it is reported. */
static int begin_switched(struct ha_replica *r, struct mq_error *why)
{
	struct member *m = r->b->opt.member;
	int64_t end = mqstore_log_max(r->b->store);
	struct ha_switch_head h = { .off = (int64_t)be64(r->head + 8), .n = (int32_t)be32(r->head + 4),
				    .epoch = { (int32_t)be32(r->head + 16), (int64_t)be64(r->head + 20) },
				    .confirm = (int64_t)be64(r->head + 28) };
	bool grew;
	int rc;

	r->head_n = 0;
	if (be32(r->head) != HA_SWITCH_TRANSFER)
		return err_set(why, MQ_EPROTO, "the master sends a message of state %d, where blocks are to come", (int)be32(r->head));
	rc = ha_switch_take(&r->f, member_epochs_change(m), &h, end, clock_mono_ms(), &grew, why);
	if (rc == 0 && h.n > 0 && end == 0 && h.off > 0)
		rc = replica_begin(r->b->store, h.off, why);
	if (rc == 0 && grew)
		rc = member_save_epochs(m, why);
	if (rc < 0)
		return rc;
	r->body = h.n;
	member_confirm_is(m, h.confirm);
	return 0;
}

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
		v[n++] = (struct iovec){ r->head + r->head_n, r->head_size - r->head_n };
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

/* ---- Handshake under a controller ------------------------------------------------------------------------------------------ */

static void greet(struct ha_replica *r)
{
	put_be32(r->report, HA_SWITCH_HANDSHAKE);
	put_be16(r->report + 4, r->b->conf->syncFromLastFile);
	put_be16(r->report + 6, r->b->conf->asyncLearner);
	put_be64(r->report + 8, (uint64_t)member_id(r->b->opt.member));
	r->report_left = r->report_n = GREETING; /* in one write: the peer looks at it when it has 12 bytes */
	send_report(r);
}

/* The newest record that begins before `end`; -1: none. */
static int64_t last_before(struct ha_replica *r, int64_t end)
{
	int64_t *v, *record, last = -1;
	size_t n = replica_segments(r->b->store, &v), k;

	while (n > 0 && last < 0) {
		if (v[--n] >= end)
			continue;
		k = replica_records(r->b->store, v[n], &record);
		while (k > 0 && record[k - 1] >= end)
			k--;
		last = k ? record[k - 1] : -1;
		free(record);
	}
	free(v);
	return last;
}

/* Both lists are known: follow, cut, or stay out. */
static void decide(struct ha_replica *r)
{
	struct epoch_list *mine = member_epochs_change(r->b->opt.member);
	struct ha_log log = { mqstore_log_min(r->b->store), mqstore_log_max(r->b->store), replica_segment_bytes(r->b->store) };
	struct mq_error why = { 0 };
	struct ha_switch_decision d = ha_switch_decide(mine, &log, &r->theirs, r->their_end, &why);

	if (d.what == HA_SWITCH_CUT && d.at == log.end) { /* an epoch in which nothing was written */
		epoch_cut(mine, d.at);
		if (member_save_epochs(r->b->opt.member, &why) < 0) {
			lost(r, why.text, HA_REST_MS);
			return;
		}
		d = ha_switch_decide(mine, &log, &r->theirs, r->their_end, &why);
	}
	switch (d.what) {
	case HA_SWITCH_REFUSE:
		lost(r, why.text, HA_REST_MS);
		break;
	case HA_SWITCH_CUT:
		r->cut_last = last_before(r, d.at);
		r->cut_end = r->cut_last < 0 ? -1 : d.at;
		ha_follower_must_cut(&r->f);
		break;
	case HA_SWITCH_FOLLOW:
		log_info("following the master addr=%s from=%lld master_end=%lld epoch=%d", r->ha_addr, (long long)log.end,
			 (long long)r->their_end, epoch_last(&r->theirs));
		r->trouble[0] = 0;
		r->master_max = r->their_end;
		ha_follower_agreed(&r->f, clock_mono_ms());
		ha_sync_now(r->sync);
		break;
	}
}

static int take_hello(struct ha_replica *r, struct mq_error *why)
{
	const uint8_t *p = (const uint8_t *)r->hello.p;
	size_t n = be32(p + 4) / ENTRY;

	r->their_end = (int64_t)be64(p + 8);
	r->theirs.n = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *entry = p + HELLO + ENTRY * i;

		if (epoch_append(&r->theirs, (int32_t)be32(entry), (int64_t)be64(entry + 4), why) < 0)
			return MQ_EPROTO;
	}
	if (r->their_end < 0)
		return err_set(why, MQ_EPROTO, "the master says that its log ends at %lld", (long long)r->their_end);
	r->heard = true;
	return 0;
}

/* No more than the answer: blocks follow only when they are asked for. */
static void read_hello(struct ha_replica *r)
{
	struct mq_error why = { 0 };
	ssize_t got;
	size_t want = HELLO;
	int rc = 0;

	while (!r->heard) {
		struct iovec v;

		if (r->hello.n >= HELLO) {
			uint32_t list = be32((const uint8_t *)r->hello.p + 4);

			if (be32(r->hello.p) != HA_SWITCH_HANDSHAKE || list % ENTRY || list / ENTRY > EPOCH_MAX) {
				rc = err_set(&why, MQ_EPROTO, "the master's answer to the handshake is none");
				break;
			}
			want = HELLO + list;
		}
		if (r->hello.n == want) {
			rc = take_hello(r, &why);
			break;
		}
		v = (struct iovec){ buf_room(&r->hello, want - r->hello.n), want - r->hello.n };
		got = stream_recv(r->s, &v, 1);
		if (got <= 0) {
			rc = got < 0 ? err_set(&why, (int)got, "%s", mq_strerror((int)got)) : 0;
			break;
		}
		r->hello.n += (size_t)got;
	}
	if (rc < 0)
		lost(r, why.text, HA_REST_MS);
	else if (r->heard)
		decide(r);
}

static void on_readable(struct stream *s)
{
	struct ha_replica *r = stream_owner(s);
	int64_t begin = r->bytes, was = mqstore_log_max(r->b->store);
	struct mq_error why = { 0 };
	ssize_t got;
	int rc = 0;

	if (r->b->opt.member && r->f.phase == HA_AGREEING) {
		read_hello(r);
		act(r);
		return;
	}
	if (r->f.phase == HA_CUTTING)
		return;
	do {
		got = read_some(r, &why);
		rc = got < 0 ? (int)got : 0;
		if (rc == 0 && r->head_n == r->head_size)
			rc = r->b->opt.member ? begin_switched(r, &why) : begin_block(r, &why);
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
	if (r->b->opt.member) {
		epoch_cut(member_epochs_change(r->b->opt.member), r->cut_end < 0 ? 0 : r->cut_end);
		if (member_save_epochs(r->b->opt.member, &e) < 0) {
			lost(r, e.text, HA_REST_MS);
			return;
		}
	}
	r->b->metrics.ha_cuts++;
	log_warn("cut: the master does not have it from=%lld to=%lld bytes=%lld saved=%s", (long long)(r->cut_end < 0 ? 0 : r->cut_end),
		 (long long)was, (long long)saved, dir);
	hold_wake_all(r->b->hold);
	broker_want_turn(r->b);
	ha_follower_cut(&r->f, clock_mono_ms());
	if (r->b->opt.member)
		decide(r);
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

	if (r->b->opt.member) {
		if (clock_mono_ms() - r->f.heard_ms > HELLO_MS)
			lost(r, "the master does not answer the handshake", RETRY_MS);
		return;
	}
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

/* ---- Where a master replicates ---------------------------------------------------------------------------------------------- */

struct where {
	struct ha_replica *r;   /* NULL: it is gone */
	unsigned asked;
};

static void found(struct ha_replica *r, struct mq_str ha)
{
	char addr[sizeof r->ha_addr];

	snprintf(addr, sizeof addr, MQ_STR_FMT, MQ_STR_ARG(ha));
	if (ha_follower_master(&r->f, true, clock_mono_ms()))
		hang_up(r);
	snprintf(r->ha_addr, sizeof r->ha_addr, "%s", addr);
	log_info("master ha=%s addr=%s", r->ha_addr, r->addr);
	act(r);
}

static void on_where(void *arg, int rc, struct frame *f)
{
	struct where *w = arg;
	struct ha_replica *r = w->r;
	struct mq_str ha = { 0 };

	if (rc == 0 && f->code == RESP_SUCCESS)
		ha = frame_get(f, "masterHaAddress");
	if (r)
		r->where = NULL;
	if (r && !r->stopped && w->asked == r->asked) {
		r->asking = false;
		r->ask_ms = clock_mono_ms() + WHERE_AGAIN_MS;
		if (ha.n)
			found(r, ha);
		else if (rc < 0)
			say(r, "the master does not say where it replicates");
	}
	free(w);
}

static void ask_where(struct ha_replica *r)
{
	struct conn *c = ha_sync_conn(r->sync);
	struct frame_out o;

	if (!c || r->asking || r->where || r->f.phase != HA_HOMELESS || !*r->addr || clock_mono_ms() < r->ask_ms)
		return;
	r->asking = true;
	r->where = mem_alloc(sizeof *r->where);
	*r->where = (struct where){ r, ++r->asked };
	conn_call(c, &o, REQ_EXCHANGE_BROKER_HA_INFO, FRAME_JSON, WHERE_MS, on_where, r->where);
	frame_end(&o);
	conn_kick(c);
}

void ha_replica_can_ask(struct ha_replica *r)
{
	if (r->stopped)
		return;
	if (r->b->opt.member)
		ask_where(r);
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
	if (r->b->opt.member) {
		replica_tidy(r->b->store);
		greet(r);
	}
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
	if (r->b->opt.member)
		ask_where(r);
	act(r);
	uv_timer_start(&r->tick, on_tick, r->f.phase == HA_CUTTING ? SOON_MS :
		       r->b->opt.member && r->f.phase == HA_HOMELESS ? WHERE_AGAIN_MS : TICK_MS, 0);
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

void ha_replica_switch(struct ha_replica *r, const char *addr)
{
	if (r->stopped)
		return;
	hang_up(r);
	ha_follower_master(&r->f, false, clock_mono_ms());
	r->asked++;
	r->asking = false;
	r->ask_ms = 0;
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
	r->head_size = b->opt.member ? SWITCH_HEAD : HEAD;
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
	struct ha_replica *r = handle->data;

	if (r->where)
		r->where->r = NULL;
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
