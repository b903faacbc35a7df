/* ha_take.c: blocks of the log that a master sends, straight into the log. */
#include "ha_replica_private.h"
#include "flush.h"
#include "ha_proof.h"
#include "ha_sync.h"
#include "hold.h"
#include "member.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/err.h>
#include <store/replica.h>

enum {
	PIECE = 128 << 10,      /* at most so much of a block at once */
	TURN_MAX = 4 << 20,     /* bytes in one turn of the loop: then others have theirs */
};

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

	if (rc < 0 && !r->f.began && ha_proof_is_asked(r->head, HA_HEAD))
		err_set(why, MQ_EPROTO, "%s", HA_PROOF_ASKED);
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

void ha_take_read(struct ha_replica *r)
{
	int64_t begin = r->bytes, was = mqstore_log_max(r->b->store);
	struct mq_error why = { 0 };
	ssize_t got;
	int rc = 0;

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
		ha_replica_lost(r, rc == MQ_ECLOSED ? "the master ended the connection" : why.text,
				rc == MQ_ECLOSED ? HA_RETRY_MS : HA_REST_MS);
}
