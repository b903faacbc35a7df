/* revive.c: check-points and acks are stored, and messages that nobody acked brought back when their time is over. */
#include "revive_private.h"
#include "broker.h"
#include "flush.h"
#include "group_table.h"
#include "hold.h"
#include "offset_table.h"
#include "record.h"
#include "timer.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "revive"
#define GROUP MQ_STR("CID_RMQ_SYS_REVIVE_GROUP")
#define PROP_FIRST_POP "1ST_POP_TIME"

enum {
	CK_AHEAD_MS = 1000,     /* a check-point is there before its acks are */
	TURN_MAX = 256,         /* check-points revived in one turn of the loop */
	WAIT_MAX_MS = 1000,     /* between looks at the clock: wall time may jump */
	DONE_MS = 20,           /* between looks at how far the timer has come */
	RETRY_MS = 1000,        /* after messages that could not be stored */
	KEY_TEXT = 96,          /* numbers of a key */
};

/* ---- Storing: the caller's record gets its properties and its place, by way of the timer ------------------------------------- */

/* Up to what time everything that was put off has come: acks, too. */
static int64_t done_ms(const struct revive *r)
{
	return timer_done_ms(r->b->timer);
}

/* The first property is there: UNIQ_KEY. */
static int finish(struct revive *r, int slot, int32_t queue, const char *tag, int64_t deliver_ms, struct mqstore_record *rec,
                  struct mq_error *e)
{
	struct buf *props = &r->props[slot];
	size_t key_n = props->n - sizeof PROP_UNIQ_KEY - 1;
	enum timer_answer when;
	char why[256];
	int64_t due;

	*rec = (struct mqstore_record){
		.queue = r->queue[queue].q, .body = buf_view(&r->body[slot]), .parsed = true, .tags = str_of(tag),
		.born_ms = clock_now_ms(), .born_host = r->b->store_host, .store_host = r->b->store_host,
	};
	buf_printf(props, PROP_TAGS "\001%s\002" PROP_DELIVER "\001%lld\002", tag, (long long)deliver_ms);
	when = timer_asked(r->b->timer, buf_view(props), &due);
	if (when == TIMER_WAITS) {
		timer_props(props, due, r->topic->conf.name, queue);
		rec->queue = timer_queue(r->b->timer);
	} else if (when != TIMER_NONE && when != TIMER_OFF) {
		timer_refusal(r->b->timer, when, why, sizeof why);
		return err_set(e, MQ_EBUSY, "%s", why);
	}
	rec->props[0] = buf_view(props);
	rec->uniq_key = (struct mq_str){ props->p + sizeof PROP_UNIQ_KEY, key_n };
	return 0;
}

static int ck_record(struct revive *r, int slot, int32_t queue, const struct body_ck *ck, struct mqstore_record *rec, struct mq_error *e)
{
	struct buf *props = &r->props[slot];

	r->body[slot].n = props->n = 0;
	body_ck_encode(ck, &r->body[slot]);
	buf_printf(props, PROP_UNIQ_KEY "\001" MQ_STR_FMT "@%d@%lld@" MQ_STR_FMT "@%lld@" MQ_STR_FMT "@ck\002", MQ_STR_ARG(ck->topic),
		   (int)ck->queue_id, (long long)ck->start, MQ_STR_ARG(ck->group), (long long)ck->pop_ms, MQ_STR_ARG(ck->broker));
	return finish(r, slot, queue, "ck", ck->pop_ms + ck->invisible_ms - CK_AHEAD_MS, rec, e);
}

static int ack_record(struct revive *r, int slot, int32_t queue, const struct body_ack *a, bool batch, int64_t deliver_ms,
                      struct mqstore_record *rec, struct mq_error *e)
{
	struct buf *props = &r->props[slot];

	r->body[slot].n = props->n = 0;
	body_ack_encode(a, batch, &r->body[slot]);
	/* compat: the key of a batch has -1 where that of a single ack has its offset */
	buf_printf(props, PROP_UNIQ_KEY "\001" MQ_STR_FMT "@%d@%lld@" MQ_STR_FMT "@%lld@" MQ_STR_FMT "@ack\002", MQ_STR_ARG(a->topic),
		   (int)a->queue_id, batch ? -1LL : (long long)a->off[0], MQ_STR_ARG(a->group), (long long)a->pop_ms,
		   MQ_STR_ARG(a->broker));
	return finish(r, slot, queue, batch ? "bAck" : "ack", deliver_ms, rec, e);
}

static int append(struct revive *r, const struct mqstore_record *rec, size_t n, int64_t *end_off, struct mq_error *e)
{
	struct mqstore_place place[2];
	int rc = mqstore_append(r->b->store, rec, n, place, e);
	size_t timed = 0;

	if (rc < 0)
		return rc;
	if (end_off)
		*end_off = place[n - 1].end_off;
	for (size_t i = 0; i < n; i++)
		timed += str_is(mqstore_queue_topic(rec[i].queue), TOPIC_TIMER);
	if (timed)
		timer_stored(r->b->timer, timed);
	return 0;
}

int revive_put(struct revive *r, int32_t queue, const struct body_ck *ck, struct mq_error *e)
{
	struct mqstore_record rec;
	int rc = ck_record(r, 0, queue, ck, &rec, e);

	return rc < 0 ? rc : append(r, &rec, 1, NULL, e);
}

/* What of the ack is still to be said; *a is cut down to it.  False: nothing, and *result is the answer. */
static bool to_say(struct revive *r, int32_t queue, struct body_ack *a, int64_t invisible_ms, struct point **p, int *result)
{
	size_t n = 0;
	bool any = false;

	revive_log_read(r, &r->queue[queue]);
	*p = revive_log_find(r, revive_log_key(r, a->topic, a->group, a->queue_id, a->start, a->pop_ms));
	if (!*p || (*p)->n < 0) {
		*p = NULL;
		*result = 0;
		return a->pop_ms + invisible_ms >= done_ms(r);
	}
	for (size_t i = 0; i < a->n; i++) {
		int at = revive_log_index(*p, a->off[i]);

		any = any || at >= 0;
		if (at >= 0 && !((*p)->acked & 1u << at))
			a->off[n++] = a->off[i];
	}
	a->n = n;
	*result = any;
	return n > 0;
}

static void said(struct revive *r, struct point *p, const struct body_ack *a)
{
	for (size_t i = 0; p && i < a->n; i++)
		revive_log_mark(p, a->off[i]);
	offset_table_inflight(r->b->offsets, a->topic, a->group, a->queue_id, a->pop_ms >= r->b->boot_ms ? -(int64_t)a->n : 0);
	r->b->metrics.pops_acked += a->n;
}

int revive_ack(struct revive *r, int32_t queue, const struct body_ack *ack, int64_t invisible_ms, bool batch, int64_t *end_off,
               struct mq_error *e)
{
	struct body_ack a = *ack;
	struct mqstore_record rec;
	struct point *p;
	int result, rc;

	*end_off = 0;
	if (!to_say(r, queue, &a, invisible_ms, &p, &result))
		return result;
	rc = ack_record(r, 0, queue, &a, batch, a.pop_ms + invisible_ms, &rec, e);
	if (rc == 0)
		rc = append(r, &rec, 1, end_off, e);
	if (rc < 0)
		return rc;
	said(r, p, &a);
	return 1;
}

int revive_change(struct revive *r, int32_t queue, const struct body_ck *ck, const struct body_ack *ack, int64_t invisible_ms,
                  int64_t *end_off, struct mq_error *e)
{
	struct body_ack a = *ack;
	struct mqstore_record rec[2];
	struct point *p;
	int result, rc;

	*end_off = 0;
	if (!to_say(r, queue, &a, invisible_ms, &p, &result))
		return 0; /* acked: there is nothing to be put off */
	rc = ck_record(r, 0, queue, ck, &rec[0], e);
	if (rc == 0)
		rc = ack_record(r, 1, queue, &a, false, a.pop_ms + invisible_ms, &rec[1], e);
	if (rc == 0)
		rc = append(r, rec, 2, end_off, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; p && i < a.n; i++)
		revive_log_mark(p, a.off[i]);
	return 1;
}

/* ---- Reviving ------------------------------------------------------------------------------------------------------------ */

/* The retry topic that what is popped from this topic comes again by.  NULL: its name would be too long. */
static struct topic *retry_topic(struct revive *r, struct mq_str topic, struct mq_str group)
{
	const enum receipt_retry how = r->b->conf->enableRetryTopicV2 ? RECEIPT_RETRY_V2 : RECEIPT_RETRY_V1;
	char name[RECEIPT_TOPIC_MAX + 1];
	struct mq_str to = receipt_retry_of(topic) == RECEIPT_NORMAL ? receipt_topic(name, how, topic, group) : topic;
	struct topic *t = to.n ? topic_table_need(r->b->topics, to, 1) : NULL;

	if (t && offset_table_get(r->b->offsets, to, group, 0) < 0)
		offset_table_commit(r->b->offsets, to, group, 0, 0, 0, "revive");
	return t;
}

/* The message as it was popped, if it is still there.  compat: one that is younger than the pop is another message, of a topic that was
 * deleted and made again. */
static bool popped_message(struct revive *r, struct topic *t, const struct point *p, int64_t off, struct mq_message *m)
{
	struct mqstore_queue *q = mqstore_queue(r->b->store, t->conf.name, p->queue_id, false);

	return q && off >= mqstore_queue_min(q) && revive_log_read_at(r, q, off, m) && m->store_ms <= p->pop_ms;
}

static int revive_message(struct revive *r, struct topic *to, const struct point *p, int64_t off, const struct mq_message *m,
                          struct mq_error *e)
{
	static const char *const replaced[] = { PROP_FIRST_POP, NULL };
	struct mq_str first = mq_prop_get(m->props, PROP_FIRST_POP);
	int64_t one = off;
	struct body_ack ack = { .start = p->start, .pop_ms = p->pop_ms, .queue_id = p->queue_id, .n = 1, .off = &one,
				.topic = point_topic(p), .group = point_group(p), .broker = str_of(r->b->conf->brokerName) };
	struct mqstore_record rec[2] = { record_again(m) };
	int rc = ack_record(r, 1, p->queue->id, &ack, false, p->pop_ms, &rec[1], e); /* now: its time is past */

	if (rc < 0)
		return rc;
	r->props[0].n = 0;
	property_copy_without(&r->props[0], m->props, replaced);
	if (m->reconsume_times == 0 || !first.n)
		buf_printf(&r->props[0], PROP_FIRST_POP "\001%lld\002", (long long)p->pop_ms);
	else
		buf_printf(&r->props[0], PROP_FIRST_POP "\001" MQ_STR_FMT "\002", MQ_STR_ARG(first));
	rec[0].queue = topic_queue(r->b->topics, to, 0, true);
	if (!rec[0].queue)
		return err_set(e, MQ_EINVAL, "topic '%s' has no queue 0", to->name);
	rec[0].props[0] = buf_view(&r->props[0]);
	rec[0].born_host = rec[0].store_host = r->b->store_host; /* compat: of the broker */
	rec[0].reconsume_times = m->reconsume_times < INT32_MAX ? m->reconsume_times + 1 : INT32_MAX;
	rc = append(r, rec, 2, NULL, e);
	if (rc < 0)
		return rc;
	tally_add(&r->b->tallies, &to->put, 1, 1, (int64_t)m->body.n);
	r->b->metrics.pops_revived++;
	return 0;
}

/* The time of p is over.  0: it is done with; negative: not yet. */
static int revive_point(struct revive *r, struct point *p, struct mq_error *e)
{
	struct mq_str topic = point_topic(p), group = point_group(p), normal = receipt_normal_topic(topic, group);
	struct topic *from = topic_table_find(r->b->topics, topic), *to = NULL;
	struct mq_message m;

	if (!from || !normal.n || !topic_table_find(r->b->topics, normal) || !group_table_look(r->b->groups, group))
		return 0; /* compat: nobody is left to read it */
	for (int32_t i = 0; i < p->n; i++) {
		int64_t off = p->start + p->diff[i];
		int rc;

		if (p->acked & 1u << i)
			continue;
		if (!popped_message(r, from, p, off, &m)) {
			log_info("not revived, gone from the log: topic=" MQ_STR_FMT " queue=%d offset=%lld group=" MQ_STR_FMT,
				 MQ_STR_ARG(topic), p->queue_id, (long long)off, MQ_STR_ARG(group));
			r->b->metrics.pops_lost++;
		} else {
			to = to ? to : retry_topic(r, topic, group);
			if (!to) {
				log_error("not revived: topic '" MQ_STR_FMT "' and group '" MQ_STR_FMT "' are too long together",
					  MQ_STR_ARG(topic), MQ_STR_ARG(group));
				r->b->metrics.pops_lost++;
				return 0;
			}
			rc = revive_message(r, to, p, off, &m, e);
			if (rc < 0)
				return rc;
		}
		p->acked |= 1u << i;
		offset_table_inflight(r->b->offsets, topic, group, p->queue_id, p->pop_ms >= r->b->boot_ms ? -1 : 0);
	}
	return 0;
}

static void put_off(struct revive *r, struct point *p, const struct mq_error *e)
{
	int64_t due = clock_now_ms() + RETRY_MS;

	heap_remove(&r->due, &p->due);
	heap_push(&r->due, &p->due, due);
	if (strncmp(r->trouble, e->text, sizeof r->trouble - 1))
		log_error("messages are not revived, tried again: %s", e->text);
	snprintf(r->trouble, sizeof r->trouble, "%.*s", (int)sizeof r->trouble - 1, e->text);
}

/* How far each queue is done with. */
static void keep(struct revive *r, struct log_queue *lq)
{
	int64_t off = (lq->points ? lq->points->off : lq->next) - 1;

	if (off <= lq->kept)
		return;
	lq->kept = off;
	offset_table_commit(r->b->offsets, r->topic->conf.name, GROUP, lq->id, off, mqstore_queue_max(lq->q), "revive");
}

static void on_timer(uv_timer_t *timer)
{
	struct revive *r = timer->data;

	clock_refresh();
	revive_run(r);
}

static void arm(struct revive *r, bool soon)
{
	struct heap_node *n = heap_top(&r->due);
	int64_t ms;

	if (!n || r->stopped) {
		uv_timer_stop(&r->timer);
		return;
	}
	ms = soon ? 0 : n->due + 1 - clock_now_ms(); /* what is due at this ms may still be acked within it */
	if (ms <= 0 && !soon)
		ms = DONE_MS; /* the timer has not come so far yet */
	uv_update_time(r->b->loop);
	uv_timer_start(&r->timer, on_timer, ms < WAIT_MAX_MS ? (uint64_t)ms : WAIT_MAX_MS, 0);
}

void revive_run(struct revive *r)
{
	struct mq_error e = { 0 };
	struct heap_node *n;
	int left = TURN_MAX;

	if (r->stopped)
		return;
	if (r->news)
		for (int32_t i = 0; i < r->nqueues; i++)
			revive_log_read(r, &r->queue[i]);
	r->news = false;
	while ((n = heap_top(&r->due)) && n->due < done_ms(r) && left-- > 0) {
		struct point *p = (struct point *)(void *)((char *)n - offsetof(struct point, due));
		struct log_queue *lq = p->queue;

		if (revive_point(r, p, &e) < 0) {
			put_off(r, p, &e);
			continue;
		}
		r->trouble[0] = 0;
		revive_log_drop(r, p);
		keep(r, lq);
	}
	if (left < TURN_MAX && r->b->conf->flushDiskType == FLUSH_SYNC)
		flush_soon(r->b->flush); /* readers see it when it is on the disk */
	arm(r, left <= 0);
}

size_t revive_pending(const struct revive *r)
{
	return r->due.n;
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

int32_t revive_turn(struct revive *r)
{
	return (int32_t)(r->turn++ % (uint32_t)r->nqueues);
}

bool revive_has_queue(const struct revive *r, int32_t queue)
{
	return queue >= 0 && queue < r->nqueues;
}

static void arrived(struct hold_watch *w)
{
	struct log_queue *lq = (struct log_queue *)(void *)((char *)w - offsetof(struct log_queue, watch));

	lq->r->news = true;
	broker_want_turn(lq->r->b);
}

/* A pop moved the group on; the file may be older than that. */
static void catch_up(struct revive *r, const struct mq_message *m)
{
	const char *copy = str_is(m->topic, TOPIC_TIMER) ? "TIMER_ROLL_TIMES" : "TIMER_OUT_MS"; /* of an earlier pop */
	struct body_keep keep = { 0 };
	struct body_ck ck;

	if (mq_prop_get(m->props, copy).n || !str_is(mq_prop_get(m->props, PROP_TAGS), "ck") ||
	    body_ck_decode(&keep, m->body, &ck, NULL) < 0)
		return;
	if (ck.n > 0)
		offset_table_catch_up(r->b->offsets, ck.topic, ck.group, ck.queue_id, ck.start + ck.diff[ck.n - 1] + 1);
	body_free(&keep);
}

/* Check-points that lie behind the last save of the offsets, in one queue, from its end. */
static void catch_up_queue(struct revive *r, struct mqstore_queue *q, int64_t from)
{
	struct mqstore_entry entry;
	struct mq_message m;
	int64_t off = q ? mqstore_queue_max(q) - 1 : -1;

	for (; off >= 0 && mqstore_entry(q, off, &entry) == 0 && entry.log_off >= from; off--)
		if (revive_log_read_at(r, q, off, &m))
			catch_up(r, &m);
}

static int open_queue(struct revive *r, int32_t id, struct mq_error *e)
{
	struct log_queue *lq = &r->queue[id];
	int64_t max;

	lq->id = id;
	lq->r = r;
	lq->q = topic_queue(r->b->topics, r->topic, id, true);
	if (!lq->q)
		return err_set(e, MQ_EINVAL, "topic '%s': queue %d cannot be made", r->topic->name, id);
	max = mqstore_queue_max(lq->q);
	lq->kept = offset_table_get(r->b->offsets, r->topic->conf.name, GROUP, id);
	lq->next = lq->kept + 1 < max ? lq->kept + 1 : max;
	lq->watch.arrived = arrived;
	hold_watch(r->b->hold, &lq->watch, lq->q);
	revive_log_read(r, lq);
	return 0;
}

int revive_open(struct revive **out, struct broker *b, struct mq_error *e)
{
	struct revive *r = mem_alloc(sizeof *r);
	int64_t from = offset_table_saved_end(b->offsets);
	char *name = mem_printf("rmq_sys_REVIVE_LOG_%s", b->conf->brokerClusterName);
	int rc = 0;

	*out = r;
	r->b = b;
	r->topic = topic_get(topic_table_need(b->topics, str_of(name), b->conf->reviveQueueNum));
	free(name);
	uv_timer_init(b->loop, &r->timer);
	r->timer.data = r;
	/* A peer may have had more of them. */
	if (b->conf->brokerRole == ROLE_SLAVE) { /* its master does all this */
		r->stopped = true;
		return 0;
	}
	r->nqueues = r->topic->conf.read > r->topic->conf.write ? r->topic->conf.read : r->topic->conf.write;
	r->queue = mem_alloc((size_t)(r->nqueues + 1) * sizeof *r->queue);
	for (int32_t i = 0; i < r->nqueues && rc == 0; i++) {
		rc = open_queue(r, i, e);
		if (rc == 0 && from >= 0)
			catch_up_queue(r, r->queue[i].q, from);
	}
	if (rc == 0 && from >= 0)
		catch_up_queue(r, mqstore_queue(b->store, MQ_STR(TOPIC_TIMER), 0, false), from);
	if (rc < 0)
		return rc;
	if (r->due.n)
		log_info("pops that are not acked yet: %zu", r->due.n);
	arm(r, false);
	return 0;
}

void revive_stop(struct revive *r)
{
	r->stopped = true;
	uv_timer_stop(&r->timer);
	for (int32_t i = 0; i < r->nqueues; i++)
		hold_unwatch(r->b->hold, &r->queue[i].watch);
}

static void on_closed(uv_handle_t *handle)
{
	struct revive *r = handle->data;
	struct point *p, *tmp;

	HASH_ITER(hh, r->points, p, tmp)
		revive_log_drop(r, p);
	heap_free(&r->due);
	buf_free(&r->key);
	for (int i = 0; i < 2; i++) {
		buf_free(&r->body[i]);
		buf_free(&r->props[i]);
	}
	free(r->queue);
	free(r);
}

void revive_free(struct revive *r)
{
	if (!r)
		return;
	revive_stop(r);
	topic_put(r->topic);
	uv_close((uv_handle_t *)&r->timer, on_closed);
}
