/* pop.c: take messages from queues for a pop, and write the answer. */
#include "pop.h"
#include "broker.h"
#include "flush.h"
#include "group_table.h"
#include "offset_table.h"
#include "order_table.h"
#include "pop_cold.h"
#include "pop_hold.h"
#include "revive.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>

#define LOG_MODULE "pop"

enum { RETRY_FIRST = 5 };       /* one in so many looks goes to the retry topic first */

/* What was found in one queue. */
struct found {
	struct topic *topic;
	int32_t queue_id;
	int64_t start, next;
	size_t first, n;        /* of the messages */
};

struct look {
	struct req *q;
	const struct pop *p;
	struct pop_wait *wait;
	int64_t pop_ms;
	int64_t bytes;
	size_t nfound, n;
	struct found found[RECEIPT_POP_MAX];
	struct mq_str record[RECEIPT_POP_MAX];
	int64_t off[RECEIPT_POP_MAX];
	int ncold;
	struct cold_range *cold; /* of queues whose next message is not in memory: POP_COLD_QUEUES, and a spare one */
};

/* ---- Queues -------------------------------------------------------------------------------------------------------------- */

static bool is_retry(const struct look *l, const struct found *f)
{
	return f->topic != l->p->topic;
}

/* A topic of the group's retries, if it has ever held a message. */
static struct topic *retry_topic(struct broker *b, const struct pop *p, enum receipt_retry how)
{
	char name[RECEIPT_TOPIC_MAX + 1];
	struct mq_str topic = receipt_topic(name, how, p->topic->conf.name, p->group);
	struct mqstore_queue *q;
	struct topic *t = topic.n ? topic_table_find(b->topics, topic) : NULL;

	if (t || !topic.n)
		return t;
	q = mqstore_queue(b->store, topic, 0, false); /* a kill may have come between the messages and the table */
	return q && mqstore_queue_max(q) > 0 ? topic_table_need(b->topics, topic, 1) : NULL;
}

/* Which form of the retry topic this look goes to. */
static enum receipt_retry retry_form(const struct broker *b, uint32_t turn)
{
	if (!b->conf->enableRetryTopicV2)
		return RECEIPT_RETRY_V1;
	return b->conf->retrieveMessageFromPopRetryTopicV1 && turn % 2 == 0 ? RECEIPT_RETRY_V1 : RECEIPT_RETRY_V2;
}

static void each_retry(struct broker *b, const struct pop *p, enum receipt_retry how, void (*cb)(void *, struct mqstore_queue *), void *arg)
{
	char name[RECEIPT_TOPIC_MAX + 1];
	struct mq_str topic = receipt_topic(name, how, p->topic->conf.name, p->group);
	struct mqstore_queue *q = topic.n ? mqstore_queue(b->store, topic, 0, true) : NULL;

	if (q)
		cb(arg, q);
}

void pop_each_queue(struct broker *b, const struct pop *p, void (*cb)(void *, struct mqstore_queue *), void *arg)
{
	int32_t from = p->queue_id < 0 ? 0 : p->queue_id, to = p->queue_id < 0 ? p->topic->conf.read : p->queue_id + 1;

	for (int32_t i = from; i < to; i++) {
		struct mqstore_queue *q = topic_queue(b->topics, p->topic, i, true);

		if (q)
			cb(arg, q);
	}
	if (p->order)
		return;
	if (!b->conf->enableRetryTopicV2 || b->conf->retrieveMessageFromPopRetryTopicV1)
		each_retry(b, p, RECEIPT_RETRY_V1, cb, arg);
	if (b->conf->enableRetryTopicV2)
		each_retry(b, p, RECEIPT_RETRY_V2, cb, arg);
}

/* ---- Where to begin ------------------------------------------------------------------------------------------------------ */

/* Is the first message of the queue among those expected in memory? */
static bool first_in_memory(struct broker *b, struct mqstore_queue *q)
{
	struct mqstore_entry e;

	return q && mqstore_entry(q, 0, &e) == 0 && !cold_is_far(b->store, e.log_off);
}

/* A group that has no offset.  compat: MAX begins with the last message, or with the first while the queue is young. */
static int64_t init_offset(struct broker *b, struct mqstore_queue *q, int32_t mode)
{
	int64_t min = q ? mqstore_queue_min(q) : 0, max = q ? mqstore_queue_max(q) : 0;

	if (mode == POP_INIT_MIN)
		return min;
	if (b->conf->initPopOffsetByCheckMsgInMem && min <= 0 && first_in_memory(b, q))
		return 0;
	return max > 0 ? max - 1 : 0;
}

static bool looks_only(const struct pop *p)
{
	return p->notify || p->peek;
}

static int64_t begin_offset(struct look *l, struct topic *t, int32_t id, struct mqstore_queue *q)
{
	struct broker *b = l->q->b;
	const struct pop *p = l->p;
	int64_t off, max = q ? mqstore_queue_max(q) : 0;

	if (offset_table_has_reset(b->offsets, t->conf.name, p->group, id) && !looks_only(p)) {
		off = offset_table_take_reset(b->offsets, t->conf.name, p->group, id);
		order_table_clear(b->orders, t->conf.name, p->group, id);
		return off;
	}
	off = offset_table_get(b->offsets, t->conf.name, p->group, id);
	if (off >= 0)
		return off;
	off = init_offset(b, q, looks_only(p) ? POP_INIT_MIN : p->init_mode);
	if (!looks_only(p))
		offset_table_commit(b->offsets, t->conf.name, p->group, id, off, max, "pop");
	return off;
}

/* ---- Looking ------------------------------------------------------------------------------------------------------------- */

struct judge {
	const struct sub *sub;
	int64_t left;           /* entries that may be seen: the rest is not on the disk yet */
};

static bool wanted(void *arg, int64_t code, const struct mq_str *record)
{
	struct judge *j = arg;

	if (record) {
		struct mq_message m;
		bool blank;

		return !j->sub || !j->sub->program ||
		       (message_peek(record->p, record->n, &m, &blank) > 0 && sub_match_props(j->sub, m.props));
	}
	return j->left-- > 0 && (!j->sub || sub_match(j->sub, code));
}

static bool is_blocked(struct look *l, struct topic *t, int32_t id)
{
	const struct pop *p = l->p;
	int64_t until = p->order ? order_table_blocked(l->q->b->orders, t->conf.name, p->group, id, p->attempt,
						       p->notify ? 0 : p->invisible_ms) : 0;

	if (until && (!l->wait->again_ms || until < l->wait->again_ms))
		l->wait->again_ms = until;
	return until > 0;
}

/* Too many messages of this queue are in the hands of the group. */
static bool is_full(const struct broker *b, const struct topic *t, const struct pop *p, int32_t id)
{
	struct offsets *o = b->conf->enablePopMessageThreshold ? offset_table_find(b->offsets, t->conf.name, p->group) : NULL;

	return o && id < o->n && o->slot[id].inflight > b->conf->popInflightMessageThreshold;
}

static void take(struct look *l, struct topic *t, int32_t id, int64_t start, const struct mqstore_result *r)
{
	struct found *f = &l->found[l->nfound++];

	*f = (struct found){ .topic = t, .queue_id = id, .start = start, .next = r->next_off, .first = l->n, .n = (size_t)r->n };
	for (int32_t i = 0; i < r->n; i++) {
		int64_t ms = message_store_ms(r->record[i].p);

		l->off[l->n] = message_queue_off(r->record[i].p);
		l->record[l->n++] = r->record[i];
		if (ms > l->pop_ms)
			l->pop_ms = ms; /* the clock was set back: a pop is never older than what it takes */
	}
	l->bytes += r->bytes;
}

/* Or only the first few are: opt is for these. */
static bool not_in_memory(struct look *l, struct mqstore_queue *q, int64_t off, struct mqstore_get_opt *opt)
{
	struct judge j = *(struct judge *)opt->filter_arg;
	struct mqstore_get_opt same = *opt;
	int32_t n;

	same.filter_arg = &j;
	n = cold_look(l->q->b->store, q, off, &same, &l->cold[l->ncold]);
	if (n == 0 && l->p->fetches < POP_COLD_FETCHES) {
		l->ncold += l->ncold < POP_COLD_QUEUES;
		return true;
	}
	opt->max_messages = n > 0 ? n : 1;
	return false;
}

enum { NOT_IN_MEMORY = 1 };
static int get(struct look *l, struct mqstore_queue *q, int64_t off, int64_t visible, struct mqstore_result *r)
{
	const struct broker_conf *c = l->q->b->conf;
	struct judge j = { l->p->sub, visible - off };
	struct mqstore_get_opt opt = { .max_messages = l->p->max_messages - (int32_t)l->n, .filter_arg = &j };

	opt.max_bytes = (int32_t)(c->maxTransferBytesOnMessageInMemory - l->bytes);
	if (opt.max_bytes < 1)
		opt.max_bytes = 1;
	if ((j.sub && (!j.sub->tags.all || j.sub->program)) || visible < mqstore_queue_max(q))
		opt.filter = wanted;
	if (not_in_memory(l, q, off, &opt))
		return NOT_IN_MEMORY;
	return mqstore_get(l->q->b->store, q, off, &opt, r);
}

static void look_queue(struct look *l, struct topic *t, int32_t id)
{
	static struct mqstore_result r; /* 16 KiB, and one loop */
	struct broker *b = l->q->b;
	const struct pop *p = l->p;
	struct mqstore_queue *q = topic_queue(b->topics, t, id, false);
	int64_t off = begin_offset(l, t, id, q), visible = q ? flush_visible_max(b, q) : 0;
	int rc;

	if (!q || off == visible) {
		l->wait->flush = l->wait->flush || (q && visible < mqstore_queue_max(q));
		return;
	}
	if (is_blocked(l, t, id) && p->notify)
		return;
	if (is_blocked(l, t, id) || (!p->peek && is_full(b, t, p, id)) || l->n >= (size_t)p->max_messages ||
	    l->bytes >= b->conf->maxTransferBytesOnMessageInMemory || p->notify) {
		l->wait->rest += visible > off ? visible - off : 0;
		return;
	}
	rc = get(l, q, off, visible, &r);
	if (rc == 0 && (r.status == MQSTORE_OFFSET_TOO_SMALL || r.status == MQSTORE_OFFSET_OVERFLOW_BADLY ||
			r.status == MQSTORE_OFFSET_FOUND_NULL)) {
		if (!p->peek) {
			log_info("pop offset corrected topic=%s queue=%d group=" MQ_STR_FMT " from=%lld to=%lld", t->name, id,
				 MQ_STR_ARG(p->group), (long long)off, (long long)r.next_off);
			offset_table_commit(b->offsets, t->conf.name, p->group, id, r.next_off, mqstore_queue_max(q), "pop");
		}
		off = r.next_off;
		rc = get(l, q, off, visible, &r);
	}
	if (rc == NOT_IN_MEMORY)
		l->wait->rest += visible > off ? visible - off : 0;
	if (rc != 0)
		return;
	if (r.next_off > visible)
		r.next_off = visible;
	if (r.n > 0)
		take(l, t, id, off, &r);
	else if (r.next_off > off && !p->peek) /* all of it was filtered away, or is gone */
		offset_table_commit(b->offsets, t->conf.name, p->group, id, r.next_off, mqstore_queue_max(q), "pop");
	if (!p->peek) /* compat: what is only shown is among the rest */
		off = r.next_off;
	l->wait->rest += visible > off ? visible - off : 0;
}

static void look_topic(struct look *l, struct topic *t, uint32_t turn)
{
	for (int32_t i = 0; t && i < t->conf.read; i++)
		look_queue(l, t, (int32_t)((turn + (uint32_t)i) % (uint32_t)t->conf.read));
}

/* ---- Taking -------------------------------------------------------------------------------------------------------------- */

static bool put_check_point(struct look *l, const struct found *f, int32_t revive_queue)
{
	struct body_ck ck = {
		.start = f->start, .pop_ms = l->pop_ms, .invisible_ms = l->p->invisible_ms, .queue_id = f->queue_id, .n = (int32_t)f->n,
		.topic = f->topic->conf.name, .group = l->p->group, .broker = str_of(l->q->b->conf->brokerName),
	};
	struct mq_error e;

	for (size_t i = 0; i < f->n; i++) {
		int64_t diff = l->off[f->first + i] - f->start;

		ck.diff[i] = (int32_t)diff;
		if (diff != ck.diff[i])
			return false;
	}
	if (revive_put(l->q->b->revive, revive_queue, &ck, &e) == 0)
		return true;
	log_error("pop topic=%s queue=%d group=" MQ_STR_FMT ": no check-point can be stored: %s", f->topic->name, f->queue_id,
		  MQ_STR_ARG(l->p->group), e.text);
	return false;
}

/* What was found becomes the group's.  False: it does not, and stays where it is. */
static bool take_found(struct look *l, const struct found *f, int32_t revive_queue, struct buf *counts)
{
	struct broker *b = l->q->b;
	const struct pop *p = l->p;
	int64_t bytes = 0;

	if (p->order)
		order_table_take(b->orders, f->topic->conf.name, p->group, f->queue_id, p->attempt, l->pop_ms, p->invisible_ms,
				 &l->off[f->first], f->n, counts);
	else if (!put_check_point(l, f, revive_queue))
		return false;
	/* compat: in order the offset stays with what is in hand, and moves on with the acks */
	offset_table_commit(b->offsets, f->topic->conf.name, p->group, f->queue_id, p->order ? f->start : f->next, f->next,
			    conn_name(l->q->c));
	for (size_t i = 0; i < f->n; i++)
		bytes += (int64_t)l->record[f->first + i].n;
	offset_table_pulled(b->offsets, f->topic->conf.name, p->group, f->queue_id, f->next, (int64_t)f->n, bytes);
	offset_table_inflight(b->offsets, f->topic->conf.name, p->group, f->queue_id, (int64_t)f->n);
	return true;
}

/* ---- The answer ---------------------------------------------------------------------------------------------------------- */

static void header(struct req *q, struct frame_out *o, const struct pop *p, int32_t code, const char *remark, int64_t pop_ms,
                   int32_t revive_queue, int64_t rest, struct mq_str starts, struct mq_str offs, struct mq_str counts)
{
	reply_begin(q, o, code, remark);
	frame_i64(o, "popTime", pop_ms);
	frame_i64(o, "invisibleTime", p->invisible_ms);
	frame_i64(o, "reviveQid", revive_queue);
	frame_i64(o, "restNum", rest);
	frame_str(o, "startOffsetInfo", starts);
	frame_str(o, "msgOffsetInfo", offs);
	if (p->order)
		frame_str(o, "orderCountInfo", counts);
}

/* compat: a message of a retry topic is shown under the topic that was popped, with its handle in it. */
static bool put_renamed(const struct look *l, const struct found *f, size_t i, int32_t revive_queue, struct buf *out)
{
	struct broker *b = l->q->b;
	struct receipt r = { .start = f->start, .pop_ms = l->pop_ms, .invisible_ms = l->p->invisible_ms, .off = l->off[i],
			     .revive_queue = revive_queue, .queue_id = f->queue_id, .retry = receipt_retry_of(f->topic->conf.name),
			     .broker = str_of(b->conf->brokerName) };
	struct message_parts m;
	struct mq_message is;
	int64_t size;

	if (mq_message_decode(l->record[i].p, l->record[i].n, false, &is) <= 0)
		return false;
	b->scratch.n = 0;
	buf_str(&b->scratch, is.props);
	if (b->scratch.n && b->scratch.p[b->scratch.n - 1] != '\002')
		buf_char(&b->scratch, '\002');
	if (!mq_prop_get(is.props, PROP_POP_CK).p) {
		buf_cstr(&b->scratch, PROP_POP_CK "\001");
		receipt_write(&r, &b->scratch);
		buf_char(&b->scratch, '\002');
	}
	m = (struct message_parts){
		.topic = l->p->topic->conf.name, .body = is.body, .props = { buf_view(&b->scratch) }, .queue_id = is.queue_id,
		.flag = is.flag,
		.sys_flag = is.sys_flag, .reconsume_times = is.reconsume_times, .queue_off = is.queue_off, .log_off = is.log_off,
		.born_ms = is.born_ms, .store_ms = is.store_ms, .prepared_off = is.prepared_off, .born_host = is.born_host,
		.store_host = is.store_host,
	};
	size = message_size(&m);
	if (size < 0)
		return false;
	message_encode(&m, buf_room(out, (size_t)size));
	out->n += (size_t)size;
	return true;
}

static void put_messages(const struct look *l, const struct found *f, int32_t revive_queue, struct buf *out)
{
	bool as_is = !is_retry(l, f) || l->q->b->conf->popResponseReturnActualRetryTopic;

	for (size_t i = f->first; i < f->first + f->n; i++)
		if (as_is || !put_renamed(l, f, i, revive_queue, out))
			buf_str(out, l->record[i]);
	l->q->b->metrics.messages_out += f->n;
}

static void answer(struct look *l)
{
	static struct buf starts, offs, counts; /* kept: one loop */
	struct broker *b = l->q->b;
	int32_t revive_queue = l->p->order ? RECEIPT_ORDER_QUEUE : revive_turn(b->revive);
	bool taken[RECEIPT_POP_MAX];
	struct frame_out o;

	starts.n = offs.n = counts.n = 0;
	for (size_t i = 0; i < l->nfound; i++) {
		const struct found *f = &l->found[i];
		int retry = (int)receipt_retry_of(f->topic->conf.name);

		taken[i] = take_found(l, f, revive_queue, &counts);
		if (!taken[i])
			continue;
		buf_printf(&starts, "%s%d %d %lld", starts.n ? ";" : "", retry, (int)f->queue_id, (long long)f->start);
		buf_printf(&offs, "%s%d %d ", offs.n ? ";" : "", retry, (int)f->queue_id);
		for (size_t k = f->first; k < f->first + f->n; k++)
			buf_printf(&offs, "%s%lld", k > f->first ? "," : "", (long long)l->off[k]);
	}
	if (!starts.n) {
		reply(l->q, RESP_SYSTEM_ERROR, "messages are there, but what was popped cannot be noted: %s", broker_why_not_writable(b));
		return;
	}
	header(l->q, &o, l->p, RESP_SUCCESS, "FOUND", l->pop_ms, revive_queue, l->wait->rest, buf_view(&starts), buf_view(&offs),
	       buf_view(&counts));
	frame_body(&o);
	for (size_t i = 0; i < l->nfound; i++)
		if (taken[i])
			put_messages(l, &l->found[i], revive_queue, o.buf);
	reply_end(l->q, &o);
	b->metrics.pops_found++;
	if (b->conf->flushDiskType == FLUSH_SYNC)
		flush_soon(b->flush);
}

/* compat: what lies in retry topics is shown as it is, and of the header only restNum says something. */
static void show(struct req *q, const struct pop *p, const struct look *l, int64_t rest)
{
	struct frame_out o;

	header(q, &o, &(struct pop){ .order = p->order }, l->n ? RESP_SUCCESS : RESP_PULL_NOT_FOUND, l->n ? "FOUND" : "NO_MESSAGE_IN_QUEUE",
	       0, 0, rest, (struct mq_str){ 0 }, (struct mq_str){ 0 }, (struct mq_str){ 0 });
	frame_body(&o);
	for (size_t i = 0; i < l->n; i++)
		buf_str(o.buf, l->record[i]);
	q->b->metrics.messages_out += l->n;
	reply_end(q, &o);
}

static void has_message(struct req *q, bool yes)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_bool(&o, "hasMsg", yes);
	reply_end(q, &o);
}

/* All that there is for it is on the disk. */
static bool wait_for_disk(struct req *q, const struct pop *p, const struct look *l, struct pop_wait *w)
{
	struct pop now = *p;

	if (cold_may_wait(q->b->cold)) {
		pop_cold_park(q, p, l->cold, l->ncold);
		return true;
	}
	now.fetches = POP_COLD_FETCHES;
	return pop_try(q, &now, w);
}

bool pop_try(struct req *q, const struct pop *p, struct pop_wait *w)
{
	static struct cold_range cold[POP_COLD_QUEUES + 1];
	static struct look l; /* large, and one loop */
	struct broker *b = q->b;
	uint32_t turn = b->pop_turn++;
	bool retry_first = turn % RETRY_FIRST == 0;
	struct topic *retry = p->order ? NULL : retry_topic(b, p, retry_form(b, turn / RETRY_FIRST));

	*w = (struct pop_wait){ 0 };
	clock_refresh();
	l = (struct look){ .q = q, .p = p, .wait = w, .pop_ms = clock_now_ms(), .cold = cold };
	if (retry_first)
		look_topic(&l, retry, turn);
	if (p->queue_id < 0)
		look_topic(&l, p->topic, turn);
	else
		look_queue(&l, p->topic, p->queue_id);
	if (!retry_first)
		look_topic(&l, retry, turn);
	if (p->notify) {
		if (w->rest > 0)
			has_message(q, true);
		return w->rest > 0;
	}
	if (l.ncold && !l.n)
		return wait_for_disk(q, p, &l, w);
	if (l.ncold)
		cold_ahead(b->cold, l.cold, l.ncold);
	if (p->peek) {
		show(q, p, &l, w->rest);
		return true;
	}
	if (l.n)
		answer(&l);
	return l.n > 0;
}

void pop_nothing(struct req *q, const struct pop *p, int32_t code)
{
	struct frame_out o;

	if (p->notify) {
		has_message(q, false);
		return;
	}
	header(q, &o, p, code, "NO_MESSAGE_IN_QUEUE", clock_now_ms(), p->order ? RECEIPT_ORDER_QUEUE : 0, 0, MQ_STR(""), MQ_STR(""),
	       MQ_STR(""));
	reply_end(q, &o);
}
