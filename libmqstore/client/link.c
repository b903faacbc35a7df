/* link.c: see link.h.  Knows connections and pauses, nothing of what is said on them. */
#include "link.h"
#include "account.h"
#include "answer.h"
#include "embedded.h"
#include "heartbeat.h"
#include "produce.h"
#include "trace.h"

static const struct conn_ops link_ops;

struct link *link_get(struct mqclient *c, const char *addr)
{
	struct link *l;

	HASH_FIND_STR(c->links, addr, l);
	if (l)
		return l;
	l = mem_alloc(sizeof *l);
	l->c = c;
	l->addr = mem_strdup(addr);
	TAILQ_INIT(&l->drain);
	HASH_ADD_KEYPTR(hh, c->links, l->addr, strlen(l->addr), l);
	return l;
}

bool link_usable(const struct link *l)
{
	return !l->c->closing && (l->conn ? conn_alive(l->conn) : client_now() >= l->retry_at);
}

/* 0, 100, 200, 400 ... ms, and a quarter more or less so that many clients do not come at once. */
static void link_failed(struct link *l)
{
	int64_t pause = client_pause_ms(l->fails++, CLIENT_BACKOFF_MS, CLIENT_BACKOFF_MAX_MS);

	l->retry_at = client_now() + pause * 3 / 4 + client_random((uint32_t)pause / 2);
}

static int link_dial(struct link *l, struct mq_error *e)
{
	struct mqclient *c = l->c;

	l->opened = l->known = l->beating = false;
	l->conn = conn_dial(c->loop, l->addr, CLIENT_TIMEOUT_MS, &link_ops, l, &l->why);
	if (!l->conn) {
		link_failed(l);
		if (e)
			*e = l->why;
		return l->why.code ? l->why.code : MQ_ECLOSED;
	}
	c->open_handles++;
	client_log(c, 3, "connect to %s", l->addr);
	/* The first thing a broker hears is who we are, or it would refuse our pulls. */
	if (l->is_broker)
		heartbeat_greet(l);
	return 0;
}

int link_connect(struct link *l, struct mq_error *e)
{
	if (l->conn && conn_alive(l->conn))
		return 0;
	if (link_usable(l))
		return link_dial(l, e);
	if (l->why.code && e)
		*e = l->why;
	else
		err_set(e, MQ_ECLOSED, "%s: no connection", l->addr);
	return l->why.code ? l->why.code : MQ_ECLOSED;
}

int link_call(struct link *l, struct frame_out *o, int code, int32_t timeout_ms, conn_answer_cb *cb, void *arg,
              struct mq_error *e)
{
	struct mqclient *c = l->c;
	int type = c->frame_type;
	int rc;

	rc = link_connect(l, e);
	if (rc < 0)
		return rc;
	/* The binary header has 16 bits for the code. */
	if (code > INT16_MAX)
		type = FRAME_JSON;
	if (c->trace && cb)
		cb = trace_answer(l, code, cb, &arg);
	conn_call(l->conn, o, code, type, timeout_ms, cb, arg);
	return 0;
}

void link_send(struct link *l, struct frame_out *o)
{
	frame_end(o);
	if (l->c->account)
		sign_request(o->buf, o->start, l->c->account);
	if (l->c->trace)
		trace_out(l, o);
	conn_kick(l->conn);
}

int link_error(const struct link *l, int rc, const char *name, struct mq_error *e)
{
	const char *sep = name ? " (" : "", *end = name ? ")" : "";

	if (!name)
		name = "";
	/* The calls on a connection hear of its end before we do. */
	if (rc == MQ_ECLOSED && l->conn && conn_why(l->conn))
		rc = conn_why(l->conn);
	if (rc != MQ_ETIMEOUT && !l->opened)
		return err_set(e, rc, "connect to %s%s%s%s: %s", name, sep, l->addr, end, mq_strerror(rc));
	return err_set(e, rc, "%s%s%s%s: %s", name, sep, l->addr, end, mq_strerror(rc));
}

void link_reset(struct link *l)
{
	if (l->conn)
		conn_close(l->conn);
}

void link_retry_now(struct link *l)
{
	l->retry_at = 0;
	l->fails = 0;
}

static void on_drain(struct conn *conn)
{
	struct link *l = conn_public(conn)->owner;

	if (l->conn == conn)
		produce_drained(l, 0);
}

void link_watch_drain(struct link *l)
{
	conn_on_drain(l->conn, on_drain);
}

/* ---- What a connection tells ----------------------------------------------------------------------------------------- */

static void on_opened(struct conn *conn)
{
	struct link *l = conn_public(conn)->owner;

	l->opened = true;
	l->opened_ms = client_now();
	l->opened_read = conn_public(conn)->last_read_ms;
	l->why.code = 0;
	client_log(l->c, 3, "connected to %s", l->addr);
}

static void on_closed(struct conn *conn, int why)
{
	struct link *l = conn_public(conn)->owner;
	struct mqclient *c = l->c;
	/* Taken and thrown out at once is no better than refused. */
	bool failed = !l->opened ||
	              (conn_public(conn)->last_read_ms == l->opened_read && client_now() - l->opened_ms < 1000);

	c->open_handles--;
	l->conn = NULL;
	l->known = l->beating = false;
	if (!l->opened)
		err_set(&l->why, why ? why : MQ_ECLOSED, "connect to %s: %s", l->addr,
		        mq_strerror(why ? why : MQ_ECLOSED));
	else
		err_set(&l->why, MQ_ECLOSED, "%s: connection closed%s%s", l->addr, why ? ": " : "",
		        why ? mq_strerror(why) : "");
	client_log(c, l->opened && !why ? 3 : 1, "%s", l->why.text);
	if (failed) {
		link_failed(l);
	} else {
		l->fails = 0;
		l->retry_at = 0;
	}
	produce_drained(l, MQ_ECLOSED);
	if (c->closing)
		return;
	if (!l->opened && c->kind == MQCLIENT_FILE)
		embedded_start(c);
}

static int on_request(struct conn *conn, struct frame *f)
{
	struct link *l = conn_public(conn)->owner;

	if (l->c->trace)
		trace_in(l, f);
	return answer_request(l, f);
}

static const struct conn_ops link_ops = { .request = on_request, .opened = on_opened, .closed = on_closed };

/* ---- End ------------------------------------------------------------------------------------------------------------- */

void link_close_all(struct mqclient *c)
{
	struct link *l, *tmp;

	HASH_ITER(hh, c->links, l, tmp) {
		if (l->conn)
			conn_close(l->conn);
	}
}

void link_free_all(struct mqclient *c)
{
	struct link *l, *tmp;

	HASH_ITER(hh, c->links, l, tmp) {
		HASH_DEL(c->links, l);
		free(l->addr);
		free(l);
	}
}
