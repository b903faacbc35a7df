/* timers.c: the timers of a store directory, for who only looks. */
#include "store.h"
#include "wheel.h"
#include "../base/str.h"

struct listing {
	struct mqstore *s;
	mqstore_timer_cb *cb;
	void *arg;
};

static int64_t queue_off(void *arg, const struct wheel_unit *u)
{
	struct mq_message m;
	struct mq_str record;

	return mqstore_at(arg, u->log_off, &record) == 0 && mq_message_decode(record.p, record.n, false, &m) > 0 ? m.queue_off : -1;
}

static int list_one(void *arg, const struct wheel_unit *u)
{
	struct listing *l = arg;
	struct mqstore_timer t = { .due_ms = u->due_ms, .rolls = u->magic & WHEEL_ROLL, .cancels = u->magic & WHEEL_DELETE };

	if (mqstore_at(l->s, u->log_off, &t.record) < 0 || t.record.n != (size_t)u->size)
		return 0;
	return l->cb(l->arg, &t);
}

int mqstore_each_timer(struct mqstore *s, mqstore_timer_cb *cb, void *arg, struct mq_error *err)
{
	struct wheel_opt o = {
		.dir = s->dir, .log_file_bytes = 1, .log_max = s->log.max, .read_only = true, .queue_off = queue_off, .arg = s,
	};
	struct listing l = { s, cb, arg };
	struct wheel *w;
	int rc = wheel_open(&w, &o, err);

	if (rc < 0)
		return rc;
	rc = wheel_each(w, wheel_check(w)->read_ms, INT64_MAX, list_one, &l);
	wheel_close(w);
	return rc;
}
