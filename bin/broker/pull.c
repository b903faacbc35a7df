/* pull.c: read from a queue what a pull wants, and write the answer: the stored bytes, straight into the connection's buffer.
 *
 * Codes: the peer's PullMessageProcessor.  compat: what is filtered away entirely, or lies where retention has been, is code 20: go on at
 * nextBeginOffset at once. */
#include "pull.h"
#include "broker.h"
#include "cold.h"
#include "filter_table.h"
#include "flush.h"
#include "group_table.h"
#include "ha_replica.h"
#include "moved.h"
#include "offset_table.h"
#include <base/mem.h>
#include <codec/message.h>

/* How an entry of the queue is judged. */
struct look {
	const struct broker *b;
	const struct sub *sub;
	const struct filter *filter; /* as it was when messages got their bits; NULL: bits do not tell */
	int64_t left;           /* entries that may be seen: the rest is not on the disk yet */
};

static bool wanted(void *arg, int64_t code, const struct mq_str *record)
{
	struct look *l = arg;

	if (record) {
		struct mq_message m;
		bool blank;

		return !l->sub->program || (message_peek(record->p, record->n, &m, &blank) > 0 && sub_match_props(l->sub, m.props));
	}
	return l->left-- > 0 && sub_match(l->sub, code);
}

static bool may_pass(void *arg, int64_t store_ms, struct mq_str bits)
{
	const struct look *l = arg;

	return filter_table_may_pass(l->b->filters, l->filter, store_ms, bits);
}

/* The filter that the group registered, if that is what this pull wants. */
static const struct filter *registered(const struct broker *b, const struct pull *p)
{
	const struct filter *f = p->sub->program ? filter_table_find(b->filters, p->group, p->topic->conf.name) : NULL;

	return f && !f->dead_ms && strcmp(f->expr, p->sub->expr) == 0 ? f : NULL;
}

/* Where the group should pull next.  far: what it wants may have to come from the disk. */
static int64_t suggested(const struct broker *b, const struct group *g, bool far)
{
	if (!b->conf->slaveReadEnable)
		return 0;
	return far ? (g ? g->conf.broker_when_slow : 1) : g ? g->conf.broker_id : 0;
}

/* A slave that follows sends those home to the master who are not far behind.  (Not so when the master is gone: then they wait here,
 * where the peer's would have them ask again and again.) */
static bool sends_home(const struct broker *b, bool far)
{
	return b->replica && !far && ha_replica_phase(b->replica) == HA_FOLLOWING;
}

static void answer(struct req *q, const struct pull *p, int32_t code, const char *remark, int64_t next, int64_t min, int64_t max,
                   bool far, struct frame_out *o)
{
	const struct group *g = group_table_look(q->b->groups, p->group);

	reply_begin(q, o, code, remark);
	frame_i64(o, "suggestWhichBrokerId", sends_home(q->b, far) ? 0 : suggested(q->b, g, far));
	frame_i64(o, "nextBeginOffset", next);
	frame_i64(o, "minOffset", min);
	frame_i64(o, "maxOffset", max);
	frame_i64(o, "topicSysFlag", p->topic->conf.sys_flag);
	frame_i64(o, "groupSysFlag", g ? g->conf.sys_flag : 0);
}

static int32_t code_of(enum mqstore_status st, int64_t off)
{
	switch (st) {
	case MQSTORE_FOUND:
		return RESP_SUCCESS;
	case MQSTORE_NO_MATCHED_LOGIC_QUEUE:
	case MQSTORE_NO_MESSAGE_IN_QUEUE:
		return off == 0 ? RESP_PULL_NOT_FOUND : RESP_PULL_OFFSET_MOVED;
	case MQSTORE_OFFSET_OVERFLOW_ONE:
		return RESP_PULL_NOT_FOUND;
	case MQSTORE_OFFSET_OVERFLOW_BADLY:
	case MQSTORE_OFFSET_TOO_SMALL:
		return RESP_PULL_OFFSET_MOVED;
	case MQSTORE_NO_MATCHED_MESSAGE:
	case MQSTORE_MESSAGE_WAS_REMOVING:
	case MQSTORE_OFFSET_FOUND_NULL:
		break;
	}
	return RESP_PULL_RETRY_IMMEDIATELY;
}

static void messages(struct req *q, const struct pull *p, const struct mqstore_result *r, struct frame_out *o)
{
	char *to;

	frame_body(o);
	to = buf_room(o->buf, r->bytes);
	for (int32_t i = 0; i < r->n; i++) {
		memcpy(to, r->record[i].p, r->record[i].n);
		to += r->record[i].n;
	}
	o->buf->n += r->bytes;
	q->b->metrics.pulls_found++;
	q->b->metrics.messages_out += r->n;
	q->b->metrics.bytes_out += r->bytes;
	offset_table_pulled(q->b->offsets, p->topic->conf.name, p->group, p->queue_id, r->next_off, r->n, r->bytes);
}

/* A pull that waits for the disk. */
struct cold_pull {
	struct cold_wait w;
	struct pull p;          /* topic, sub: references; group: below */
	char group[];
};

static void fetched(struct req *q, struct cold_wait *w, bool stopped)
{
	struct pull *p = &((struct cold_pull *)w)->p;

	if (!stopped && p->topic->deleted)
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", p->topic->name);
	else if (stopped || !pull_try(q, p))
		pull_nothing(q, p);
}

static void forget(struct cold_wait *w)
{
	topic_put(((struct cold_pull *)w)->p.topic);
	sub_put(((struct cold_pull *)w)->p.sub);
}

static void park(struct req *q, const struct pull *p, const struct cold_range *r)
{
	struct cold_pull *c = mem_alloc(sizeof *c + p->group.n);

	memcpy(c->group, p->group.p, p->group.n);
	c->p = *p;
	c->p.group.p = c->group;
	c->p.listed = true;
	c->p.fetched = !r->entries;
	c->w.ready = fetched;
	c->w.drop = forget;
	topic_get(p->topic);
	sub_get(p->sub);
	cold_park(q->b->cold, q, &c->w, r, 1);
}

/* What is in memory goes at once.  True: nothing is, and the pull waits until it has been fetched. */
static bool waits_for_disk(struct req *q, const struct pull *p, struct mqstore_queue *queue, struct mqstore_get_opt *opt)
{
	struct look look = { .sub = p->sub, .left = INT64_MAX };
	struct mqstore_get_opt same = *opt;
	struct cold_range range;
	int32_t n;

	same.filter_arg = &look;
	n = cold_look(q->b->store, queue, p->off, &same, &range);
	if (n == 0 && !(range.entries ? p->listed : p->fetched) && cold_may_wait(q->b->cold)) {
		park(q, p, &range);
		return true;
	}
	opt->max_messages = n > 0 ? n : 1;
	return false;
}

bool pull_try(struct req *q, const struct pull *p)
{
	static struct mqstore_result r; /* 16 KiB, and one loop */
	struct broker *b = q->b;
	struct mqstore_queue *queue = topic_queue(b->topics, p->topic, p->queue_id, false);
	int64_t visible = queue ? flush_visible_max(b, queue) : 0;
	struct look look = { .b = b, .sub = p->sub, .left = INT64_MAX };
	struct mqstore_get_opt opt = { .max_messages = p->max_messages, .max_bytes = p->max_bytes, .filter_arg = &look };
	struct frame_out o;
	int32_t code;
	int rc;

	if (offset_table_has_reset(b->offsets, p->topic->conf.name, p->group, p->queue_id)) {
		int64_t to = offset_table_take_reset(b->offsets, p->topic->conf.name, p->group, p->queue_id);

		answer(q, p, RESP_PULL_OFFSET_MOVED, "OFFSET_RESET", to, queue ? mqstore_queue_min(queue) : 0, visible,
		       false, &o);
		reply_end(q, &o);
		moved_publish(b, p, to);
		return true;
	}
	if (queue && visible < mqstore_queue_max(queue)) {
		if (p->off >= visible && p->off <= mqstore_queue_max(queue))
			return false;
		look.left = visible - p->off;
	}
	if (!p->sub->tags.all || p->sub->program || look.left != INT64_MAX)
		opt.filter = wanted;
	if (waits_for_disk(q, p, queue, &opt))
		return true;
	look.filter = b->conf->enableCalcFilterBitMap ? registered(b, p) : NULL;
	opt.bits = look.filter ? may_pass : NULL;
	rc = mqstore_get(b->store, queue, p->off, &opt, &r);
	if (rc < 0) {
		reply(q, RESP_SYSTEM_ERROR, "read topic '%s' queue %d at offset %lld: %s", p->topic->name, p->queue_id,
		      (long long)p->off, mq_strerror(rc));
		return true;
	}
	code = code_of(r.status, p->off);
	if (queue && r.next_off > visible)
		r.next_off = visible;
	/* compat: a slave may just be behind; its master knows what is right. */
	if (code == RESP_PULL_OFFSET_MOVED && b->replica && !b->conf->offsetCheckInSlave)
		code = RESP_PULL_RETRY_IMMEDIATELY;
	else if (code == RESP_PULL_NOT_FOUND && sends_home(b, r.far_behind))
		code = RESP_PULL_RETRY_IMMEDIATELY;
	else if (code == RESP_PULL_NOT_FOUND || (code == RESP_PULL_RETRY_IMMEDIATELY && r.next_off == p->off))
		return false;
	if (r.status == MQSTORE_NO_MATCHED_LOGIC_QUEUE) /* compat: the peer makes the queue when it is asked for */
		r.status = MQSTORE_NO_MESSAGE_IN_QUEUE;
	answer(q, p, code, mqstore_status_name(r.status), r.next_off, r.min_off, queue ? visible : r.max_off, r.far_behind, &o);
	if (code == RESP_SUCCESS)
		messages(q, p, &r, &o);
	reply_end(q, &o);
	if (code == RESP_PULL_OFFSET_MOVED)
		moved_publish(b, p, r.next_off);
	return true;
}

void pull_nothing(struct req *q, const struct pull *p)
{
	struct mqstore_queue *queue = topic_queue(q->b->topics, p->topic, p->queue_id, false);
	int64_t visible = queue ? flush_visible_max(q->b, queue) : 0;
	int64_t most = queue ? mqstore_queue_max(queue) : 0;
	struct frame_out o;

	/* p->off may have moved over entries that the filter does not want: the client need not come for them again.  Who was further at
	 * another broker than may be seen here stays where it is. */
	answer(q, p, RESP_PULL_NOT_FOUND, mqstore_status_name(visible > 0 ? MQSTORE_OFFSET_OVERFLOW_ONE : MQSTORE_NO_MESSAGE_IN_QUEUE),
	       p->off > most ? most : p->off, queue ? mqstore_queue_min(queue) : 0, visible, false, &o);
	reply_end(q, &o);
}
