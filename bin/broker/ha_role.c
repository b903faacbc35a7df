/* ha_role.c: the rules of replication.  Nothing here waits, reads or writes. */
#include "ha_role.h"
#include <base/err.h>

/* ---- A master's view of one slave -------------------------------------------------------------------------------------- */

void ha_slave_begin(struct ha_slave *s, int64_t now)
{
	*s = (struct ha_slave){ .acked = -1, .heard_ms = now, .wrote_ms = now };
}

static int first_report(struct ha_slave *s, const struct ha_log *log, int64_t off, struct mq_error *why)
{
	if (off > log->end)
		return err_set(why, MQ_EPROTO, "it is ahead: it has bytes up to %lld, this log ends at %lld; nothing is sent until it has "
			       "given up what is not here", (long long)off, (long long)log->end);
	if (off != 0 && off < log->min)
		return err_set(why, MQ_EPROTO, "it wants bytes from %lld on, this log begins at %lld; it has to start anew with an empty "
			       "log", (long long)off, (long long)log->min);
	s->known = true;
	s->asked = off;
	/* compat: who has nothing gets everything; from the peer it gets the last segment, and lacks the rest for ever. */
	s->next = off != 0 ? off : log->min;
	return 0;
}

int ha_slave_report(struct ha_slave *s, const struct ha_log *log, int64_t off, int64_t now, struct mq_error *why)
{
	int rc = 0;

	s->heard_ms = now;
	if (off < 0)
		return err_set(why, MQ_EPROTO, "it reports %lld, which is no offset", (long long)off);
	if (!s->known)
		rc = first_report(s, log, off, why);
	else if (off > s->next)
		rc = err_set(why, MQ_EPROTO, "it reports bytes up to %lld, it was sent those up to %lld", (long long)off,
			     (long long)s->next);
	if (rc == 0 && off > s->acked)
		s->acked = off;
	return rc;
}

/* Bytes that may still be sent in this second. */
static int64_t left(const struct ha_slave *s, const struct ha_limits *l)
{
	return !l->second_bytes ? INT64_MAX : s->in_second < l->second_bytes ? l->second_bytes - s->in_second : 0;
}

void ha_slave_second(struct ha_slave *s)
{
	s->in_second = 0;
}

bool ha_slave_is_held(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l)
{
	return s->known && s->next < log->end && left(s, l) == 0;
}

struct ha_send ha_slave_next(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l, int64_t now)
{
	int64_t n = log->end - s->next, segment = log->segment - s->next % log->segment, rate = left(s, l);

	n = n < rate ? n : rate;
	if (!s->known)
		return (struct ha_send){ .what = HA_SEND_NOTHING };
	if (n <= 0)
		return (struct ha_send){ .what = now - s->wrote_ms >= l->heartbeat_ms ? HA_SEND_HEARTBEAT : HA_SEND_NOTHING,
					 .off = s->next };
	n = n < segment ? n : segment;
	n = n < l->block_bytes ? n : l->block_bytes;
	return (struct ha_send){ .what = HA_SEND_BLOCK, .off = s->next, .n = (int32_t)n };
}

void ha_slave_sent(struct ha_slave *s, const struct ha_send *sent, int64_t now)
{
	s->next += sent->n;
	s->in_second += sent->n;
	s->wrote_ms = now;
}

bool ha_slave_is_gone(const struct ha_slave *s, const struct ha_limits *l, int64_t now)
{
	return now - s->heard_ms > l->silence_ms;
}

bool ha_slave_in_sync(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l)
{
	return s->known && s->acked >= 0 && log->end - s->acked < l->gap_bytes;
}

/* ---- How many machines -------------------------------------------------------------------------------------------------- */

int32_t ha_wish_acks(const struct ha_wish *w, int32_t in_sync)
{
	int32_t n = w->replicas, least = w->min_replicas;

	if (!w->sync)
		return 1;
	if (w->strict && least < 2)
		least = 2;
	if (w->strict && n < 2)
		n = 2;
	/* With the switch on, as many as there are, between the two numbers. */
	if (w->automatic)
		n = in_sync < n ? in_sync : n;
	if (w->all && in_sync > n)
		n = in_sync;
	if (n < least)
		n = least;
	if (n < 1)
		n = 1;
	/* compat: with inSyncReplicas alone a message is stored and its answer waits, even when nobody is there. */
	return (w->strict || w->automatic || w->min_replicas > 1) && n > in_sync ? 0 : n;
}

int64_t ha_replicated(const int64_t *acked, size_t slaves, int32_t n, int64_t end)
{
	int64_t below = INT64_MAX, best = -1;

	if (n <= 1)
		return end;
	if ((size_t)n - 1 > slaves)
		return -1;
	/* The (n-1)-th largest; there are few slaves, and n is mostly 2. */
	for (int32_t rank = 1; rank < n;) {
		int32_t same = 0;

		best = -1;
		for (size_t i = 0; i < slaves; i++)
			if (acked[i] < below && acked[i] >= best) {
				same = acked[i] == best ? same + 1 : 1;
				best = acked[i];
			}
		if (same == 0)
			return -1;
		rank += same;
		below = best;
	}
	return best < end ? best : end;
}

/* ---- A slave -------------------------------------------------------------------------------------------------------------- */

const char *ha_phase_name(enum ha_phase p)
{
	static const char *const names[] = { "no master known", "waiting to try again", "connecting", "comparing logs", "cutting",
					     "following" };

	return names[p];
}

void ha_follower_begin(struct ha_follower *f)
{
	*f = (struct ha_follower){ .phase = HA_HOMELESS, .reported = -1 };
}

bool ha_follower_master(struct ha_follower *f, bool known, int64_t now)
{
	bool busy = f->phase != HA_HOMELESS && f->phase != HA_RESTING;

	f->phase = known ? HA_RESTING : HA_HOMELESS;
	f->due_ms = now;
	f->reported = -1;
	return busy;
}

void ha_follower_connected(struct ha_follower *f, int64_t now)
{
	f->phase = HA_AGREEING;
	f->reported = -1;
	f->began = false;
	f->heard_ms = f->wrote_ms = now;
}

void ha_follower_agreed(struct ha_follower *f, int64_t now)
{
	f->phase = HA_FOLLOWING;
	f->heard_ms = now;
}

void ha_follower_must_cut(struct ha_follower *f)
{
	f->phase = HA_CUTTING;
}

void ha_follower_cut(struct ha_follower *f, int64_t now)
{
	f->phase = HA_AGREEING;
	f->heard_ms = now;
}

void ha_follower_lost(struct ha_follower *f, int64_t now, int64_t rest_ms)
{
	if (f->phase == HA_HOMELESS)
		return;
	f->phase = HA_RESTING;
	f->due_ms = now + rest_ms;
	f->reported = -1;
}

int ha_follower_head(struct ha_follower *f, int64_t off, int64_t n, int64_t end, int64_t now, struct mq_error *why)
{
	f->heard_ms = now;
	if (f->phase != HA_FOLLOWING)
		return err_set(why, MQ_EPROTO, "the master sends before it was asked to");
	if (n < 0 || n > INT32_MAX / 2 || off < 0)
		return err_set(why, MQ_EPROTO, "the master sends a block of %lld bytes at %lld: that is none", (long long)n,
			       (long long)off);
	if (off != end)
		return err_set(why, MQ_EPROTO, "the master sends from %lld on, the log here ends at %lld", (long long)off, (long long)end);
	f->began |= n > 0;
	return 0;
}

enum ha_do ha_follower_next(const struct ha_follower *f, int64_t end, const struct ha_limits *l, int64_t now)
{
	switch (f->phase) {
	case HA_HOMELESS:
	case HA_DIALLING:
	case HA_CUTTING:
		return HA_DO_NOTHING;
	case HA_RESTING:
		return now >= f->due_ms ? HA_DO_DIAL : HA_DO_NOTHING;
	case HA_AGREEING: /* the time limits of the questions themselves hold */
		return HA_DO_NOTHING;
	case HA_FOLLOWING:
		break;
	}
	if (now - f->heard_ms > l->silence_ms)
		return HA_DO_HANG_UP;
	return f->reported < end || now - f->wrote_ms >= HA_REPORT_MS ? HA_DO_REPORT : HA_DO_NOTHING;
}

void ha_follower_reported(struct ha_follower *f, int64_t off, int64_t now)
{
	f->reported = off;
	f->wrote_ms = now;
}

/* ---- Where two logs part --------------------------------------------------------------------------------------------------- */

void ha_search_begin(struct ha_search *s, size_t n)
{
	*s = (struct ha_search){ 0, n, true };
}

size_t ha_search_next(const struct ha_search *s)
{
	return s->tail_first ? s->hi - 1 : s->lo + (s->hi - s->lo) / 2;
}

void ha_search_answer(struct ha_search *s, size_t at, bool same)
{
	s->tail_first = false;
	if (same)
		s->lo = at + 1;
	else
		s->hi = at;
}
