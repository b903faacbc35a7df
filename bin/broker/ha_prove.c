/* ha_prove.c: the socket and the clock of a mutual proof. */
#include "ha_prove.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/mem.h>
#include <sodium.h>
#include <stdlib.h>

struct ha_prove {
	struct stream *s;
	struct ha_proof proof;
	uv_timer_t late;
	void (*done)(void *arg, int rc, const char *why);
	void *arg;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void ha_prove_cancel(struct ha_prove *p)
{
	if (!p)
		return;
	stream_want_write(p->s, false);
	stream_pause(p->s, false);
	ha_proof_wipe(&p->proof);
	uv_close((uv_handle_t *)&p->late, on_closed);
}

static void end(struct ha_prove *p, int rc, const char *why)
{
	void (*done)(void *, int, const char *) = p->done;
	void *arg = p->arg;

	ha_prove_cancel(p);
	done(arg, rc, why);
}

/* 0, or a negative code. */
static int send_some(struct ha_prove *p)
{
	struct ha_proof *f = &p->proof;

	while (f->out_done < f->out_n) {
		struct iovec v = { f->out + f->out_done, f->out_n - f->out_done };
		ssize_t n = stream_send(p->s, &v, 1, false);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		f->out_done += (size_t)n;
	}
	stream_want_write(p->s, f->out_done < f->out_n);
	return 0;
}

/* A connection that ends says nothing of why. */
static void go_on(struct ha_prove *p, int rc, struct mq_error *why)
{
	if (rc == 0)
		rc = send_some(p);
	if (rc == MQ_ECLOSED)
		err_set(why, rc, "%s (the connection has ended)", ha_proof_missing(&p->proof));
	else if (rc < 0 && rc != MQ_EPROTO)
		err_set(why, rc, "%s", mq_strerror(rc));
	if (rc < 0 || ha_proof_done(&p->proof))
		end(p, rc, rc < 0 ? why->text : NULL);
	else
		stream_pause(p->s, ha_proof_room(&p->proof) == 0); /* what comes behind the proof is for who comes after us */
}

static void on_readable(struct stream *s)
{
	struct ha_prove *p = stream_owner(s);
	struct mq_error why = { 0 };
	struct iovec v = { p->proof.in + p->proof.in_n, ha_proof_room(&p->proof) };
	ssize_t got;
	int rc = 0;

	if (!v.iov_len)
		return;
	got = stream_recv(s, &v, 1);
	if (got > 0)
		rc = ha_proof_took(&p->proof, (size_t)got, &why);
	go_on(p, got < 0 ? (int)got : rc, &why);
}

static void on_writable(struct stream *s)
{
	struct mq_error why = { 0 };

	go_on(stream_owner(s), 0, &why);
}

static const struct stream_ops prove_ops = { .readable = on_readable, .writable = on_writable };

static void on_late(uv_timer_t *timer)
{
	struct ha_prove *p = timer->data;
	struct mq_error why;

	clock_refresh();
	err_set(&why, MQ_ETIMEOUT, "%s (%d s have passed)", ha_proof_missing(&p->proof), HA_PROVE_MS / 1000);
	end(p, MQ_ETIMEOUT, why.text);
}

struct ha_prove *ha_prove_start(uv_loop_t *loop, struct stream *s, enum ha_proof_side side, const struct ha_secret *secret,
				void (*done)(void *arg, int rc, const char *why), void *arg)
{
	struct ha_prove *p = mem_alloc(sizeof *p);
	uint8_t mine[HA_PROOF_RANDOM];

	randombytes_buf(mine, sizeof mine);
	ha_proof_begin(&p->proof, side, secret, mine);
	p->s = s;
	p->done = done;
	p->arg = arg;
	uv_timer_init(loop, &p->late);
	p->late.data = p;
	uv_timer_start(&p->late, on_late, HA_PROVE_MS, 0);
	stream_hand_over(s, &prove_ops, p);
	stream_want_write(s, side == HA_PROOF_MASTER);
	return p;
}
