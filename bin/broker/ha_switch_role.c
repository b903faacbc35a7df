/* ha_switch_role.c: the rules of replication with epochs.  Nothing here waits, reads or writes. */
#include "ha_switch_role.h"
#include <base/err.h>

/* ---- A master's view of one slave -------------------------------------------------------------------------------------- */

void ha_switch_begin(struct ha_switch_slave *s, int64_t now)
{
	*s = (struct ha_switch_slave){ .sent_ms = now, .caught_up_ms = now };
	ha_slave_begin(&s->base, now);
}

int ha_switch_greet(struct ha_switch_slave *s, const struct ha_switch_hello *h, int64_t now, struct mq_error *why)
{
	s->base.heard_ms = now;
	if (h->id < 0)
		return err_set(why, MQ_EPROTO, "it says that its id is %lld, which is none", (long long)h->id);
	if (s->greeted && h->id != s->hello.id)
		return err_set(why, MQ_EPROTO, "it said that it was broker %lld, now it says %lld", (long long)s->hello.id,
			       (long long)h->id);
	s->greeted = true;
	s->hello = *h;
	return 0;
}

int ha_switch_report(struct ha_switch_slave *s, const struct ha_log *log, int64_t off, int64_t now, struct mq_error *why)
{
	bool first = !s->base.known;
	int rc;

	if (!s->answered) {
		s->base.heard_ms = now;
		return err_set(why, MQ_EPROTO, "it reports before it has heard the list of epochs");
	}
	rc = ha_slave_report(&s->base, log, off, now, why);
	if (rc < 0)
		return rc;
	if (first && off == 0 && s->hello.last_segment) {
		int64_t segment = log->end - log->end % log->segment;

		s->base.next = segment > log->min ? segment : log->min;
	}
	/* Caught up is who has everything; or has had everything when it was last sent something. */
	if (s->base.acked >= log->end)
		s->caught_up_ms = now;
	else if (ha_switch_caught_up(s) && s->sent_ms > s->caught_up_ms)
		s->caught_up_ms = s->sent_ms;
	return 0;
}

bool ha_switch_caught_up(const struct ha_switch_slave *s)
{
	return s->base.known && s->base.acked >= s->end_at_send;
}

struct ha_switch_send ha_switch_next(const struct ha_switch_slave *s, const struct ha_log *log, const struct epoch_list *epochs,
                                     const struct ha_limits *l, int64_t now)
{
	struct ha_switch_send out = { .what = HA_SWITCH_NOTHING };
	const struct epoch *e;
	struct ha_send a;
	int64_t room;

	if (s->greeted && !s->answered)
		return (struct ha_switch_send){ .what = HA_SWITCH_ANSWER, .off = log->end, .epoch.number = epoch_last(epochs) };
	a = ha_slave_next(&s->base, log, l, now);
	if (a.what == HA_SEND_NOTHING || !epochs->n)
		return out;
	e = epoch_at(epochs, a.off);
	/* compat: what is older than the list cannot be sent; a heartbeat carries the first entry then. */
	if (!e && a.what == HA_SEND_BLOCK && now - s->base.wrote_ms < l->heartbeat_ms)
		return out;
	out.what = a.what == HA_SEND_BLOCK && e ? HA_SWITCH_BLOCK : HA_SWITCH_HEARTBEAT;
	out.off = a.off;
	out.epoch = e ? *e : epochs->v[0];
	if (out.what == HA_SWITCH_HEARTBEAT)
		return out;
	room = epoch_end(epochs, (size_t)(e - epochs->v), log->end) - a.off;
	out.n = a.n < room ? a.n : (int32_t)room;
	return out;
}

void ha_switch_sent(struct ha_switch_slave *s, const struct ha_log *log, const struct ha_switch_send *sent, int64_t now)
{
	s->base.wrote_ms = s->sent_ms = now;
	s->end_at_send = log->end;
	if (sent->what == HA_SWITCH_ANSWER)
		s->answered = true;
	else {
		s->base.next += sent->n;
		s->base.in_second += sent->n;
	}
}

/* ---- A slave -------------------------------------------------------------------------------------------------------------- */

struct ha_switch_decision ha_switch_decide(const struct epoch_list *mine, const struct ha_log *log,
                                           const struct epoch_list *theirs, int64_t their_end, struct mq_error *why)
{
	struct ha_switch_decision d = { .what = HA_SWITCH_FOLLOW, .at = log->end };
	int64_t same;

	if (log->end <= log->min && !mine->n)
		return d;
	same = epoch_agree(mine, log->end, theirs, their_end);
	if (same < 0 && log->end <= log->min) {
		/* An epoch was begun here, and nothing is left of it. */
		d.what = HA_SWITCH_CUT;
	} else if (same < 0 && !theirs->n && their_end == 0) {
		err_set(why, MQ_EPROTO, "the master has nothing, not even an epoch; here is a log up to %lld", (long long)log->end);
		d.what = HA_SWITCH_REFUSE;
	} else if (same < 0) {
		err_set(why, MQ_EPROTO, "no epoch of this log (last %d) is in the master's (last %d): its log has to be emptied by hand "
			"before it can follow", epoch_last(mine), epoch_last(theirs));
		d.what = HA_SWITCH_REFUSE;
	} else if (same < log->min) {
		err_set(why, MQ_EPROTO, "both logs are the same up to %lld, this one begins at %lld: it has to be emptied by hand before "
			"it can follow", (long long)same, (long long)log->min);
		d.what = HA_SWITCH_REFUSE;
	} else if (same < log->end || (mine->n && mine->v[mine->n - 1].start >= same)) {
		d.what = HA_SWITCH_CUT;
		d.at = same;
	}
	return d;
}

int ha_switch_take(struct ha_follower *f, struct epoch_list *mine, const struct ha_switch_head *h, int64_t end, int64_t now,
                   bool *list_grew, struct mq_error *why)
{
	int32_t last = epoch_last(mine);
	int rc;

	*list_grew = false;
	/* An empty log takes any beginning; a heartbeat to it names where it would begin. */
	rc = ha_follower_head(f, h->off, h->n, end == 0 && !mine->n ? h->off : end, now, why);
	if (rc < 0 || h->n == 0)
		return rc;
	if (h->epoch.number < 0 || h->epoch.start < 0)
		return err_set(why, MQ_EPROTO, "the master sends bytes of epoch %d from %lld on, which is none", h->epoch.number,
			       (long long)h->epoch.start);
	if (h->epoch.number == last) {
		if (mine->v[mine->n - 1].start != h->epoch.start)
			return err_set(why, MQ_EPROTO, "the master says that epoch %d begins at %lld, here it begins at %lld", last,
				       (long long)h->epoch.start, (long long)mine->v[mine->n - 1].start);
		return 0;
	}
	if (h->epoch.number < last)
		return err_set(why, MQ_EPROTO, "the master sends bytes of epoch %d, here is already epoch %d", h->epoch.number, last);
	if (mine->n ? h->epoch.start != end : h->epoch.start > h->off)
		return err_set(why, MQ_EPROTO, "the master says that epoch %d begins at %lld, but sends it from %lld on", h->epoch.number,
			       (long long)h->epoch.start, (long long)h->off);
	if (epoch_append(mine, h->epoch.number, h->epoch.start, why) < 0)
		return MQ_EPROTO;
	*list_grew = true;
	return 0;
}
