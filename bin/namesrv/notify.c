/* notify.c: one connection per notice: dial, write, close.  A broker that cannot be reached finds out with its next question. */
#include "notify.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/request.h>
#include <net/conn.h>

#include <stdlib.h>

#define LOG_MODULE "notify"

enum { NOTIFY_CONNECT_MS = 3000 };

static void on_opened(struct conn *c)
{
	const struct buf *frame = conn_public(c)->owner;

	buf_put(conn_out(c), frame->p, frame->n);
	conn_kick(c);
	conn_close_after_write(c);
}

static void on_closed(struct conn *c, int why)
{
	struct buf *frame = conn_public(c)->owner;

	if (why)
		log_warn("a broker was not told of a change peer=%s: %s", conn_name(c), mq_strerror(why));
	buf_free(frame);
	free(frame);
}

static const struct conn_ops notify_ops = { .opened = on_opened, .closed = on_closed };

void notify_send(uv_loop_t *loop, const char *addr, struct buf *frame)
{
	struct mq_error e;

	if (conn_dial(loop, addr, NOTIFY_CONNECT_MS, &notify_ops, frame, &e))
		return;
	log_warn("a broker cannot be told of a change addr=%s: %s", addr, e.text);
	buf_free(frame);
	free(frame);
}

void notify_first(uv_loop_t *loop, const struct route_first *f)
{
	struct min_broker_change_header h = {
		.minBrokerId = f->id, .minBrokerAddr = f->addr, .offlineBrokerAddr = f->offline, .haBrokerAddr = f->ha
	};

	HEADER_SET(min_broker_change_header, &h, minBrokerId);
	for (size_t i = 0; i < f->n; i++) {
		struct buf *frame = mem_alloc(sizeof(*frame));
		char *addr = str_dup(f->tell[i]);
		struct frame_out o;

		frame_request(&o, frame, FRAME_JSON, REQ_NOTIFY_MIN_BROKER_ID_CHANGE, (int32_t)i, FRAME_ONEWAY);
		header_encode(&min_broker_change_header_desc, &h, false, &o);
		frame_end(&o);
		notify_send(loop, addr, frame);
		free(addr);
	}
}
