/* limit.c: a server that does nothing but frame and answer: what the machine, the kernel and our own framing allow at most.
 *
 * A process of its own.  It parses each frame, as every server must, and gives an answer of the size that a broker gives. */
#include "bench.h"
#include <base/byte.h>
#include <base/clock.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/request.h>
#include <errno.h>
#include <net/server.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct limit {
	struct buf sent;            /* answer to a send, opaque left out: two parts */
	size_t opaque_at;
	struct buf records;         /* body of the answer to a pull */
	int per_pull;
	int64_t end;                /* of the one queue it pretends to have */
	struct conn *waiting;       /* a pull that waits for the next send; holds a reference */
	struct frame_id waiting_id;
	int64_t waiting_off;
};

static void answer_pull(struct limit *l, struct conn *c, struct frame_id id, int64_t off, int messages)
{
	struct pull_answer a = { .nextBeginOffset = off + messages, .maxOffset = INT64_MAX };
	struct frame_out o;

	frame_answer(&o, conn_out(c), id, RESP_SUCCESS, MQ_STR("FOUND"));
	header_encode(&pull_answer_desc, &a, false, &o);
	frame_body(&o);
	buf_put(o.buf, l->records.p, l->records.n / (size_t)l->per_pull * (size_t)messages);
	frame_end(&o);
}

static void answer_send(struct limit *l, struct conn *c, int32_t opaque)
{
	struct buf *out = conn_out(c);
	size_t start = out->n, n;

	buf_put(out, l->sent.p, l->opaque_at);
	buf_i64(out, opaque);
	buf_put(out, l->sent.p + l->opaque_at, l->sent.n - l->opaque_at);
	n = out->n - start;
	put_be32(out->p + start, (uint32_t)(n - 4));
	put_be32(out->p + start + 4, (uint32_t)(n - 8));
	l->end++;
	if (l->waiting) {
		answer_pull(l, l->waiting, l->waiting_id, l->waiting_off, 1);
		conn_unref(l->waiting);
		l->waiting = NULL;
	}
}

static void answer_offset(struct conn *c, struct frame *f, int64_t off)
{
	struct frame_out o;

	frame_answer(&o, conn_out(c), frame_id_of(f), RESP_SUCCESS, (struct mq_str){ NULL, 0 });
	frame_i64(&o, "offset", off);
	frame_end(&o);
}

static int on_request(struct conn *c, struct frame *f)
{
	struct limit *l = conn_public(c)->owner;
	int64_t off = 0;

	switch (f->code) {
	case REQ_PULL_MESSAGE:
		str_i64(frame_get(f, "queueOffset"), &off);
		if (off < l->end) {
			answer_pull(l, c, frame_id_of(f), off, str_is(frame_get(f, "suspendTimeoutMillis"), "0") ? l->per_pull : 1);
			break;
		}
		if (l->waiting)
			conn_unref(l->waiting);
		conn_ref(c);
		l->waiting = c;
		l->waiting_id = frame_id_of(f);
		l->waiting_off = off;
		break;
	case REQ_GET_MAX_OFFSET:
		answer_offset(c, f, l->end);
		break;
	case REQ_GET_MIN_OFFSET:
		answer_offset(c, f, 0);
		break;
	default:
		answer_send(l, c, f->opaque);
	}
	return 0;
}

static void prepare(struct limit *l, const struct bench_opt *o)
{
	struct mq_host host = { .ip = { 127, 0, 0, 1 }, .len = 4, .port = 10911 };
	struct send_answer a = {
		.msgId = MQ_STR("7F00000100002A9F0000000000000000"),
		.queueOffset = 123456,
		.transactionId = MQ_STR("7F000001000070EF0000000000532300"),
		.region = MQ_STR("DefaultRegion"),
		.trace = MQ_STR("true"),
	};
	struct message_parts m = { .topic = str_of(o->topic), .born_host = host, .store_host = host };
	struct frame_id id = { .opaque = 7777777, .type = FRAME_JSON };
	struct buf body = { 0 };
	struct frame_out out;
	size_t n;

	frame_answer(&out, &l->sent, id, RESP_SUCCESS, (struct mq_str){ NULL, 0 });
	header_encode(&send_answer_desc, &a, false, &out);
	frame_end(&out);
	l->opaque_at = (size_t)((char *)memmem(l->sent.p, l->sent.n, "7777777", 7) - l->sent.p);
	memmove(l->sent.p + l->opaque_at, l->sent.p + l->opaque_at + 7, l->sent.n - l->opaque_at - 7);
	l->sent.n -= 7;

	memset(buf_room(&body, (size_t)o->size), 'x', (size_t)o->size);
	m.body = (struct mq_str){ body.p, (size_t)o->size };
	m.props[0] = MQ_STR("UNIQ_KEY\1" "7F000001000070EF0000000000532300\2WAIT\1true\2MSG_REGION\1DefaultRegion\2TRACE_ON\1true");
	/* As much as brokers give: no more than was asked for, and not much more than maxMsgBytes. */
	n = (size_t)message_size(&m);
	l->per_pull = (int)(BENCH_PULL_BYTES / n) < o->pull_max ? (int)(BENCH_PULL_BYTES / n) : o->pull_max;
	if (l->per_pull < 1)
		l->per_pull = 1;
	l->end = o->mode == BENCH_CONSUME ? (int64_t)1 << 60 : 0;
	for (int i = 0; i < l->per_pull; i++) {
		message_encode(&m, buf_room(&l->records, n));
		l->records.n += n;
	}
	buf_free(&body);
}

static _Noreturn void serve(const struct bench_opt *o, int ready)
{
	static const struct conn_ops ops = { .request = on_request };
	struct server_opt so = { .bind = "127.0.0.1" };
	struct server *s;
	struct mq_error e;
	struct limit l = { 0 };
	uv_loop_t loop;
	int port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the run that uses it decides when to end */
	prepare(&l, o);
	uv_loop_init(&loop);
	s = server_listen(&loop, &so, &ops, &l, &e);
	if (!s)
		cli_fail(&e);
	port = server_port(s);
	if (write(ready, &port, sizeof port) != sizeof port)
		_exit(CLI_SYSTEM);
	close(ready);
	uv_run(&loop, UV_RUN_DEFAULT);
	_exit(CLI_SYSTEM);
}

int limit_start(const struct bench_opt *o, int *pid)
{
	int ready[2], port = 0;

	if (pipe(ready) < 0)
		cli_die(CLI_SYSTEM, "pipe: %s", strerror(errno));
	*pid = fork();
	if (*pid < 0)
		cli_die(CLI_SYSTEM, "start a server: %s", strerror(errno));
	if (*pid == 0) {
		close(ready[0]);
		serve(o, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &port, sizeof port) != sizeof port)
		cli_die(CLI_SYSTEM, "the server that does nothing did not start");
	close(ready[0]);
	return port;
}
