/* settle.c: answers that wait, in two queues in order of arrival: for the log, then for the table of topics. */
#include "settle.h"
#include "broker.h"
#include "ha_master.h"
#include "register.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/ring.h>
#include <base/str.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	KEY_INLINE = 64,        /* a UNIQ_KEY has 32 or 56 bytes; longer texts are kept by malloc */
	TICK_MS = 50,           /* how exactly time-outs are kept */
};

struct held {
	struct later to;
	int64_t deadline_ms;    /* for the log, or for the topics */
	int64_t slaves_ms;      /* deadline for the slaves */
	struct send_done d;
	bool plain;             /* no send: a code without fields */
	char key[KEY_INLINE];
	char *text;             /* ids and a long key */
};

struct settle {
	struct broker *b;
	struct ring log, topics; /* of struct held */
	int64_t wanted;         /* the highest end_off that was waited for */
	uv_timer_t timer;       /* runs while something waits */
	bool ticking, stopped;
};

static struct held *first(const struct ring *q)
{
	return ring_first(q, sizeof(struct held));
}

static struct held *push(struct ring *q)
{
	return ring_push(q, sizeof(struct held));
}

/* ---- The answer --------------------------------------------------------------------------------------------------------- */

static void answer_send(struct broker *b, struct req *q, const struct send_done *d, int32_t code, const char *remark)
{
	char id[MQ_ID_TEXT];
	struct frame_out o;

	reply_begin(q, &o, code, remark);
	if (d->recalled) {
		frame_str(&o, "msgId", d->uniq_key);
		frame_cstr(&o, "MSG_REGION", b->conf->regionId);
		reply_end(q, &o);
		return;
	}
	if (d->ids.p)
		frame_str(&o, "msgId", d->ids);
	else
		frame_str(&o, "msgId", (struct mq_str){ id, mq_offset_id(&b->store_host, d->log_off, id) });
	frame_i64(&o, "queueId", d->queue_id);
	frame_i64(&o, "queueOffset", d->queue_off);
	if (d->uniq_key.n)
		frame_str(&o, "transactionId", d->uniq_key);
	if (d->recall.n)
		frame_str(&o, "recallHandle", d->recall);
	frame_cstr(&o, "MSG_REGION", b->conf->regionId);
	frame_bool(&o, "TRACE_ON", b->conf->traceOn);
	reply_end(q, &o);
}

static void finish(struct settle *s, struct held *h, int32_t code, const char *remark)
{
	struct req q = later_req(s->b, &h->to);

	if (code == RESP_FLUSH_DISK_TIMEOUT)
		s->b->metrics.flush_timeouts++;
	else if (code && code != RESP_SYSTEM_ERROR)
		s->b->metrics.slave_timeouts++;
	if (h->plain)
		reply(&q, code ? RESP_SYSTEM_ERROR : code, remark ? "%s" : NULL, remark);
	else {
		struct send_done d = h->d; /* a short key lies in the entry itself, which may have moved */

		if (d.uniq_key.n && d.uniq_key.n <= KEY_INLINE)
			d.uniq_key.p = h->key;
		answer_send(s->b, &q, &d, code, remark);
	}
	later_drop(&h->to);
	free(h->text);
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------------ */

bool settle_topics_are(const struct settle *s, uint64_t version)
{
	return s->b->topics->file.saved >= version && register_version(s->b->reg) >= version;
}

static void on_tick(uv_timer_t *timer)
{
	struct settle *s = timer->data;

	clock_refresh();
	settle_check(s, NULL);
	if (!s->log.n && !s->topics.n) {
		uv_timer_stop(&s->timer);
		s->ticking = false;
	}
}

static void tick(struct settle *s)
{
	if (s->ticking)
		return;
	s->ticking = true;
	uv_timer_start(&s->timer, on_tick, TICK_MS, TICK_MS);
}

static void hold(struct settle *s, struct ring *at, struct req *q, const struct send_done *d, bool plain, int64_t ms)
{
	struct held *h = push(at);

	*h = (struct held){ .deadline_ms = clock_mono_ms() + ms, .slaves_ms = clock_mono_ms() + s->b->conf->slaveTimeout,
			    .plain = plain, .d = *d };
	later_take(&h->to, q);
	tick(s);
	if (d->uniq_key.n && d->uniq_key.n <= KEY_INLINE)
		memcpy(h->key, d->uniq_key.p, d->uniq_key.n);
	if (!d->ids.n && !d->recall.n && d->uniq_key.n <= KEY_INLINE)
		return;
	h->text = mem_alloc(d->ids.n + d->uniq_key.n + d->recall.n + 1);
	if (d->recall.n)
		h->d.recall.p = memcpy(h->text + d->ids.n + d->uniq_key.n, d->recall.p, d->recall.n);
	if (d->ids.n)
		h->d.ids.p = memcpy(h->text, d->ids.p, d->ids.n);
	if (d->uniq_key.n)
		h->d.uniq_key.p = memcpy(h->text + d->ids.n, d->uniq_key.p, d->uniq_key.n);
}

static void settle(struct settle *s, struct req *q, const struct send_done *d, bool plain)
{
	if (q->id.oneway)
		return;
	if (mqstore_flushed(s->b->store) < d->end_off || !ha_master_has(s->b->ha, d->ack_off, d->acks)) {
		hold(s, &s->log, q, d, plain, s->b->conf->syncFlushTimeout);
		if (d->end_off > s->wanted)
			s->wanted = d->end_off;
		broker_want_turn(s->b);
	} else if (d->topics_version && !settle_topics_are(s, d->topics_version))
		hold(s, &s->topics, q, d, plain, SETTLE_TOPIC_MS);
	else if (plain)
		reply(q, RESP_SUCCESS, NULL);
	else
		answer_send(s->b, q, d, RESP_SUCCESS, NULL);
}

void settle_send(struct settle *s, struct req *q, const struct send_done *d)
{
	settle(s, q, d, false);
}

void settle_plain(struct settle *s, struct req *q, const struct send_done *d)
{
	settle(s, q, d, true);
}

void settle_promise(struct settle *s, struct send_done *d, int64_t end_off, int32_t acks)
{
	if (!end_off)
		return;
	if (s->b->conf->flushDiskType == FLUSH_SYNC)
		d->end_off = end_off;
	d->ack_off = end_off;
	d->acks = acks ? acks : 2; /* too few are there: it waits for one to come */
}

void settle_topics(struct settle *s, struct req *q)
{
	broker_want_turn(s->b); /* what failed to be saved before is tried again */
	settle_plain(s, q, &(struct send_done){ .topics_version = s->b->topics->file.version });
}

bool settle_wants_flush(const struct settle *s)
{
	return s->log.n > 0 && s->wanted > mqstore_flushed(s->b->store);
}

/* It is stored, but on too few machines, and the time is over. */
static void too_few(struct settle *s, struct held *h)
{
	if (s->b->conf->ackOnTwoMachines)
		finish(s, h, RESP_SERVICE_NOT_AVAILABLE, "stored here, but not on another machine within slaveTimeout: send it again");
	else if (!ha_master_slaves(s->b->ha))
		finish(s, h, RESP_SLAVE_NOT_AVAILABLE, "stored, but there is no slave");
	else
		finish(s, h, RESP_FLUSH_SLAVE_TIMEOUT, "stored, but not on enough slaves within slaveTimeout");
}

/* From the first queue: answered, or on to the second. */
static void check_log(struct settle *s, const char *failed)
{
	int64_t flushed = mqstore_flushed(s->b->store), now = clock_mono_ms();
	struct held *h;

	while ((h = first(&s->log))) {
		bool on_disk = h->d.end_off <= flushed, on_slaves = ha_master_has(s->b->ha, h->d.ack_off, h->d.acks);

		if (on_disk && on_slaves) {
			if (h->d.topics_version && !settle_topics_are(s, h->d.topics_version))
				*push(&s->topics) = *h;
			else
				finish(s, h, RESP_SUCCESS, NULL);
		} else if (!on_disk && failed)
			finish(s, h, RESP_FLUSH_DISK_TIMEOUT, failed);
		else if (!on_disk && (h->deadline_ms <= now || s->stopped))
			finish(s, h, RESP_FLUSH_DISK_TIMEOUT, "stored, but not on the disk within syncFlushTimeout");
		else if (!on_slaves && (h->slaves_ms <= now || s->stopped))
			too_few(s, h);
		else
			break;
		ring_pop(&s->log);
	}
}

/* A send is stored, whatever becomes of the topic that it made; a change of topics is nothing but its save.  compat: 5.2.0 answers with
 * success when the save fails. */
static void unsaved(struct settle *s, struct held *h)
{
	const struct table_file *f = &s->b->topics->file;
	char remark[512];

	snprintf(remark, sizeof remark, "it holds, but cannot be kept: write '%s': %s", f->path,
		 f->failed ? mq_strerror(f->rc) : "not done in time");
	finish(s, h, RESP_SYSTEM_ERROR, remark);
}

/* Nothing is left to wait for. */
static bool topics_told(const struct settle *s, const struct held *h)
{
	return settle_topics_are(s, h->d.topics_version) || (h->plain && s->b->topics->file.failed >= h->d.topics_version);
}

void settle_check(struct settle *s, const char *failed)
{
	const struct table_file *topics = &s->b->topics->file;
	struct held *h;

	check_log(s, failed);
	while ((h = first(&s->topics)) && (topics_told(s, h) || s->stopped || h->deadline_ms <= clock_mono_ms())) {
		if (h->plain && !s->stopped && topics->saved < h->d.topics_version)
			unsaved(s, h);
		else
			finish(s, h, RESP_SUCCESS, NULL);
		ring_pop(&s->topics);
	}
}

struct settle *settle_new(struct broker *b)
{
	struct settle *s = mem_alloc(sizeof *s);

	s->b = b;
	uv_timer_init(b->loop, &s->timer);
	s->timer.data = s;
	return s;
}

void settle_stop(struct settle *s)
{
	s->stopped = true;
	settle_check(s, NULL);
	uv_timer_stop(&s->timer);
}

static void on_closed(uv_handle_t *handle)
{
	struct settle *s = handle->data;

	ring_free(&s->log);
	ring_free(&s->topics);
	free(s);
}

void settle_free(struct settle *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->timer, on_closed);
}
