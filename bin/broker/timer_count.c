/* timer_count.c: how many timers wait, by the topic that they go to: config/timermetrics.  At a start that was not clean they are
 * counted again. */
#include "broker.h"
#include "timer_private.h"

int64_t timer_count(const struct timer *t, struct mq_str topic)
{
	return waiting_count(&t->counts, topic);
}

void timer_write_counts(struct timer *t, struct buf *out)
{
	waiting_write(&t->counts, out);
}

void timer_count_lost(struct timer *t, int32_t topic_hash)
{
	struct waiting_topic *x = waiting_of_hash(&t->counts, topic_hash);

	if (x && x->count > 0)
		waiting_add(&t->counts, (struct mq_str){ x->name, x->n }, -1);
}

static int count_unit(void *arg, const struct wheel_unit *u)
{
	struct timer *t = arg;
	struct waiting_topic *x = waiting_of_hash(&t->counts, u->topic_hash);
	struct mq_str name = { x ? x->name : NULL, x ? x->n : 0 };
	struct mq_message m;

	if (!x && timer_read(t, u->log_off, &m))
		name = mq_prop_get(m.props, PROP_REAL_TOPIC);
	waiting_add(&t->counts, name, u->magic & WHEEL_DELETE ? -1 : 1);
	return 0;
}

int timer_counts_open(struct timer *t, bool trust, struct mq_error *e)
{
	int rc = waiting_open(&t->counts, t->b, "timermetrics", "timingCount", trust, e);

	return rc < 0 || trust ? rc : wheel_each(t->wheel, t->read_ms, INT64_MAX, count_unit, t);
}
