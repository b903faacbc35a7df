/* handle_timer.c: timers by request: how far they have come and how many wait (60, 61), which wait (LIST_TIMERS, of our own), and taking
 * one back (370, of clients from 5.3 on). */
#include "broker.h"
#include "ha_master.h"
#include "handle.h"
#include "settle.h"
#include "timer.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/str.h>
#include <codec/property.h>
#include <sodium.h>
#include <store/wheel.h>

enum { LIST_MAX = 1024, LIST_BYTES = 1 << 20, LIST_SEEN = 65536, HANDLE_MAX = 1024 };

void handle_timer_check(struct req *q)
{
	struct buf out = { 0 };

	timer_write_check(q->b->timer, &out);
	reply_buf(q, &out);
}

void handle_timer_metrics(struct req *q)
{
	struct buf out = { 0 };

	if (!q->b->conf->timerWheelEnable) {
		reply(q, RESP_SYSTEM_ERROR, "The timer message store is null");
		return;
	}
	timer_write_counts(q->b->timer, &out);
	reply_buf(q, &out);
}

/* ---- Which wait ------------------------------------------------------------------------------------------------------------ */

struct listing {
	struct broker *b;
	const struct list_timers_header *h;
	struct buf body;
	int32_t n, max, seen;
	int64_t next_ms, next_before; /* where to go on; -1: at the end */
};

static bool is_wanted(const struct listing *l, const struct mq_message *m)
{
	struct mq_str key = mq_prop_get(m->props, PROP_UNIQ_KEY), cancels = mq_prop_get(m->props, "TIMER_DEL_UNIQKEY");

	if (l->h->topic.n && !str_eq(l->h->topic, mq_prop_get(m->props, PROP_REAL_TOPIC)))
		return false;
	return !l->h->key.n || str_eq(l->h->key, key) || str_eq(l->h->key, cancels) ||
	       (cancels.n > l->h->key.n && cancels.p[cancels.n - l->h->key.n - 1] == '+' &&
		memcmp(cancels.p + cancels.n - l->h->key.n, l->h->key.p, l->h->key.n) == 0);
}

static int list_one(void *arg, const struct wheel_unit *u)
{
	struct listing *l = arg;
	struct mq_message m;
	struct mq_str r;

	if (l->n == l->max || l->body.n >= LIST_BYTES || l->seen++ == LIST_SEEN) {
		l->next_ms = u->due_ms;
		l->next_before = u->pos + 1;
		return 1;
	}
	if (mqstore_at(l->b->store, u->log_off, &r) < 0 || mq_message_decode(r.p, r.n, false, &m) <= 0 || !str_is(m.topic, TOPIC_TIMER) ||
	    !is_wanted(l, &m))
		return 0;
	buf_str(&l->body, r);
	l->n++;
	return 0;
}

void handle_list_timers(struct req *q)
{
	const struct list_timers_header *h = q->h;
	struct listing l = { .b = q->b, .h = h, .max = h->maxMsgNums, .next_ms = -1, .next_before = -1 };
	struct frame_out o;

	if (!q->b->conf->timerWheelEnable) {
		reply(q, RESP_SYSTEM_ERROR, "timerWheelEnable is false: there are no timers");
		return;
	}
	if (l.max < 1 || l.max > LIST_MAX)
		l.max = LIST_MAX;
	timer_each(q->b->timer, h->fromMs, h->before > 0 ? h->before : INT64_MAX, list_one, &l);
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_i64(&o, "nextMs", l.next_ms);
	frame_i64(&o, "nextBefore", l.next_before);
	frame_i64(&o, "count", l.n);
	frame_body(&o);
	buf_str(o.buf, buf_view(&l.body));
	reply_end(q, &o);
	buf_free(&l.body);
}

/* ---- Taking one back ------------------------------------------------------------------------------------------------------- */

struct recall {
	struct mq_str topic, broker, time, id;
};

/* Of the base64 text of "v1 TOPIC BROKER TIME ID". */
static bool read_handle(struct mq_str handle, char text[HANDLE_MAX], struct recall *r)
{
	struct mq_str version, rest;
	size_t n;

	while (handle.n && handle.p[handle.n - 1] == '=')
		handle.n--;
	if (sodium_base642bin((unsigned char *)text, HANDLE_MAX, handle.p, handle.n, NULL, &n, NULL,
			      sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
		return false;
	rest = (struct mq_str){ text, n };
	return str_split(&rest, ' ', &version) && str_is(version, "v1") && str_split(&rest, ' ', &r->topic) &&
	       str_split(&rest, ' ', &r->broker) && str_split(&rest, ' ', &r->time) && str_split(&rest, ' ', &r->id);
}

/* The cancellation, to be stored as a timer of the same time.  Views into `props`. */
static void make_record(struct req *q, const struct recall *r, struct mq_str group, struct buf *props, struct mqstore_record *out)
{
	struct buf key = { 0 };

	buf_str(&key, r->topic);
	buf_char(&key, '+');
	buf_str(&key, r->id);
	props->n = 0;
	property_put(props, MQ_STR("TIMER_DEL_UNIQKEY"), buf_view(&key));
	property_put(props, MQ_STR(PROP_UNIQ_KEY), r->id);
	property_put(props, MQ_STR(PROP_TAGS), MQ_STR("_RECALL_TAG_"));
	if (group.n)
		property_put(props, MQ_STR(PROP_PGROUP), group);
	buf_free(&key);
	*out = (struct mqstore_record){
		.body = MQ_STR("0"), .props = { buf_view(props) }, .born_ms = clock_now_ms(), .born_host = conn_public(q->c)->peer,
		.store_host = q->b->store_host,
	};
}

void handle_recall(struct req *q)
{
	const struct recall_message_header *h = q->h;
	struct broker *b = q->b;
	struct send_done d = { 0 };
	struct mqstore_record record;
	struct mqstore_place place;
	char text[HANDLE_MAX];
	struct recall r;
	struct mq_error e;
	int64_t ms, left;
	int rc;

	if (!b->conf->recallMessageEnable)
		reply(q, RESP_NO_PERMISSION, "recall failed, operation is forbidden");
	else if (b->conf->startAcceptSendRequestTimeStamp > clock_now_ms())
		reply(q, RESP_SERVICE_NOT_AVAILABLE, "recall failed, broker service not available");
	else if (!topic_table_find(b->topics, h->topic))
		reply(q, RESP_TOPIC_NOT_EXIST, "recall failed, the topic[" MQ_STR_FMT "] not exist", MQ_STR_ARG(h->topic));
	else if (!read_handle(h->recallHandle, text, &r))
		reply(q, RESP_ILLEGAL_OPERATION, "recall handle is invalid");
	else if (!str_eq(r.topic, h->topic))
		reply(q, RESP_ILLEGAL_OPERATION, "recall failed, topic not match");
	else if (!str_is(r.broker, b->conf->brokerName))
		reply(q, RESP_ILLEGAL_OPERATION, "recall failed, broker service not available");
	else if (str_i64(r.time, &ms) < 0 || (left = ms - clock_now_ms()) <= 0 || left >= (int64_t)b->conf->timerMaxDelaySec * 1000)
		reply(q, RESP_ILLEGAL_OPERATION, "recall failed, timestamp invalid");
	else {
		make_record(q, &r, h->producerGroup, &b->scratch, &record);
		rc = timer_put(b->timer, &record, r.topic, 0, ms, &place, &e);
		if (rc < 0) {
			reply(q, RESP_SYSTEM_ERROR, "recall failed, execute error: %s", e.text);
			return;
		}
		settle_promise(b->settle, &d, place.end_off, ha_master_need(b->ha));
		d.recalled = true;
		d.uniq_key = r.id;
		settle_send(b->settle, q, &d);
	}
}

size_t timer_recall_handle(struct broker *b, struct mq_str topic, int64_t due_ms, struct mq_str uniq_key, char *out, size_t cap)
{
	char text[HANDLE_MAX];
	int n = snprintf(text, sizeof text, "v1 " MQ_STR_FMT " %s %lld " MQ_STR_FMT, MQ_STR_ARG(topic), b->conf->brokerName,
			 (long long)due_ms + 1, MQ_STR_ARG(uniq_key));

	if (n < 0 || (size_t)n >= sizeof text || sodium_base64_encoded_len((size_t)n, sodium_base64_VARIANT_URLSAFE) > cap)
		return 0;
	sodium_bin2base64(out, cap, (unsigned char *)text, (size_t)n, sodium_base64_VARIANT_URLSAFE);
	return strlen(out);
}
