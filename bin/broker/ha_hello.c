/* ha_hello.c: the greeting of a slave and its master under a controller, and what the two lists of epochs mean. */
#include "ha_replica_private.h"
#include "ha_proof.h"
#include "ha_sync.h"
#include "member.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <store/replica.h>

#define LOG_MODULE "ha"

void ha_hello_send(struct ha_replica *r)
{
	put_be32(r->report, HA_SWITCH_HANDSHAKE);
	put_be16(r->report + 4, r->b->conf->syncFromLastFile);
	put_be16(r->report + 6, r->b->conf->asyncLearner);
	put_be64(r->report + 8, (uint64_t)member_id(r->b->opt.member));
	r->report_left = r->report_n = HA_GREETING; /* in one write: the peer looks at it when it has 12 bytes */
	ha_replica_send(r);
}

/* Both lists are known: follow, cut, or stay out. */
void ha_hello_decide(struct ha_replica *r)
{
	struct epoch_list *mine = member_epochs_change(r->b->opt.member);
	struct ha_log log = { mqstore_log_min(r->b->store), mqstore_log_max(r->b->store), replica_segment_bytes(r->b->store) };
	struct mq_error why = { 0 };
	struct ha_switch_decision d = ha_switch_decide(mine, &log, &r->theirs, r->their_end, &why);

	if (d.what == HA_SWITCH_CUT && d.at == log.end) { /* an epoch in which nothing was written */
		epoch_cut(mine, d.at);
		if (member_save_epochs(r->b->opt.member, &why) < 0) {
			ha_replica_lost(r, why.text, HA_REST_MS);
			return;
		}
		d = ha_switch_decide(mine, &log, &r->theirs, r->their_end, &why);
	}
	switch (d.what) {
	case HA_SWITCH_REFUSE:
		ha_replica_lost(r, why.text, HA_REST_MS);
		break;
	case HA_SWITCH_CUT:
		r->cut_last = ha_cut_last_before(r, d.at);
		r->cut_end = r->cut_last < 0 ? -1 : d.at;
		ha_follower_must_cut(&r->f);
		break;
	case HA_SWITCH_FOLLOW:
		log_info("following the master addr=%s from=%lld master_end=%lld epoch=%d", r->ha_addr, (long long)log.end,
			 (long long)r->their_end, epoch_last(&r->theirs));
		r->master_max = r->their_end;
		ha_replica_agreed(r);
		break;
	}
}

static int take_hello(struct ha_replica *r, struct mq_error *why)
{
	const uint8_t *p = (const uint8_t *)r->hello.p;
	size_t n = be32(p + 4) / HA_SWITCH_ENTRY;

	r->their_end = (int64_t)be64(p + 8);
	r->theirs.n = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *entry = p + HA_SWITCH_HELLO + HA_SWITCH_ENTRY * i;

		if (epoch_append(&r->theirs, (int32_t)be32(entry), (int64_t)be64(entry + 4), why) < 0)
			return MQ_EPROTO;
	}
	if (r->their_end < 0)
		return err_set(why, MQ_EPROTO, "the master says that its log ends at %lld", (long long)r->their_end);
	r->heard = true;
	return 0;
}

/* No more than the answer: blocks follow only when they are asked for. */
void ha_hello_read(struct ha_replica *r)
{
	struct mq_error why = { 0 };
	ssize_t got;
	size_t want = HA_SWITCH_HELLO;
	int rc = 0;

	while (!r->heard) {
		struct iovec v;

		if (r->hello.n >= HA_SWITCH_HELLO) {
			uint32_t list = be32((const uint8_t *)r->hello.p + 4);

			if (be32(r->hello.p) != HA_SWITCH_HANDSHAKE || list % HA_SWITCH_ENTRY || list / HA_SWITCH_ENTRY > EPOCH_MAX) {
				rc = err_set(&why, MQ_EPROTO, "%s", ha_proof_is_asked((const uint8_t *)r->hello.p, HA_SWITCH_HELLO) ?
					     HA_PROOF_ASKED : "the master's answer to the handshake is none");
				break;
			}
			want = HA_SWITCH_HELLO + list;
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
		ha_replica_lost(r, why.text, HA_REST_MS);
	else if (r->heard)
		ha_hello_decide(r);
}

