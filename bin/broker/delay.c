/* delay.c: delivers delayed messages when they are due, and keeps count of how far it has got. */
#include "delay.h"
#include "broker.h"
#include "flush.h"
#include "record.h"
#include "table_file.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/property.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "delay"

enum {
	TURN_MAX = 256,         /* deliveries in one turn of the loop: then others have theirs */
	RETRY_MS = 100,         /* after a copy that could not be stored, doubled up to ... */
	RETRY_MAX_MS = 2000,
	FLUSHED_MS = 100,       /* between looks whether what was delivered is on the disk */
	WALK_MAX = 256 << 20,   /* bytes of log that are looked at when the file has no note of the peer's last save */
	LEVELS = MQSTORE_DELAY_LEVELS_MAX,
};

struct level {
	struct mqstore_queue *queue;    /* NULL: never used */
	int64_t off;            /* next to deliver */
	int64_t mark;           /* as of the save that is under way */
	int64_t saved;          /* for the file; -1: not in it */
	int64_t ms;             /* of the configuration; -1: has fewer levels now, what is there goes by its entry's time */
	int32_t retry_ms;       /* the last try failed */
	bool waits;             /* the entry at off has been looked at: */
	int64_t code;           /* wall time at which it is due */
	int64_t due;            /* monotonic time of the next try */
	int64_t last_code, last_due; /* of the one before; 0: there was none */
};

struct delay {
	struct broker *b;
	struct level level[LEVELS];
	int levels;             /* in use by the configuration */
	int turn;               /* level that is first in the next run */
	uv_timer_t timer, save_timer;
	int64_t armed;          /* monotonic ms for which the timer is set; INT64_MAX: not set */
	int closed;
	struct table_file file;
	struct body_version version;
	int64_t steps;          /* deliveries since the last new version */
	bool marked;
	int64_t mark_end;       /* end of the log at the mark */
	int64_t saved_end;      /* the same, for the file; -1: not known */
	bool stopped;
	bool slave;             /* nothing is delivered, offsets are the master's */
	char trouble[200];      /* why deliveries fail, as last said in the log */
};

static int level_number(const struct delay *d, const struct level *l)
{
	return (int)(l - d->level) + 1;
}

/* ---- When ---------------------------------------------------------------------------------------------------------------- */

/* Our clock is that of the turn's begin, the store's stamp is of the append: an entry may seem to lie this much further ahead. */
enum { DELAY_STAMP_MS = 1000 };

/* Waits are monotonic, entries have wall time.  An entry never waits for longer than its level's delay: if it seems to, the clock
 * was set back since it was stored, and it comes after the one before it as it was stored after it. */
static int64_t due_of(const struct level *l)
{
	int64_t now = clock_mono_ms(), wait = l->code - clock_now_ms();

	if (l->ms >= 0 && wait > l->ms + DELAY_STAMP_MS) {
		int64_t gap = l->code - l->last_code;

		if (!l->last_due)
			return now + l->ms;
		return l->last_due + (gap < 0 ? 0 : gap < l->ms ? gap : l->ms);
	}
	return now + (wait > 0 ? wait + 1 : 0); /* both clocks are cut to whole ms: never early */
}

/* Look at the entry at off.  False: there is none. */
static bool look(struct delay *d, struct level *l)
{
	struct mqstore_entry e;
	int64_t min, max;

	if (l->waits)
		return true;
	if (!l->queue)
		return false;
	min = mqstore_queue_min(l->queue);
	max = mqstore_queue_max(l->queue);
	if (l->off < min) {
		log_warn("level=%d: messages %lld to %lld are gone from the log: they are not delivered", level_number(d, l),
			 (long long)l->off, (long long)min - 1);
		d->b->metrics.delayed_lost += min - l->off;
		l->off = min;
	}
	for (; l->off < max && mqstore_entry(l->queue, l->off, &e) < 0; l->off++) {
		log_error("level=%d offset=%lld: no entry: the message is not delivered", level_number(d, l), (long long)l->off);
		d->b->metrics.delayed_lost++;
	}
	if (l->off >= max)
		return false;
	l->waits = true;
	l->code = e.tags_code;
	l->due = due_of(l);
	return true;
}

static bool is_due(const struct level *l)
{
	return l->waits && (l->due <= clock_mono_ms() || (l->code <= clock_now_ms() && !l->retry_ms));
}

static void on_timer(uv_timer_t *timer)
{
	delay_run(timer->data);
}

static void arm(struct delay *d)
{
	int64_t due = INT64_MAX;

	for (struct level *l = d->level; l < d->level + LEVELS; l++)
		if (look(d, l)) {
			int64_t at = is_due(l) ? clock_mono_ms() : l->due;

			if (at < due)
				due = at;
		}
	if (due >= d->armed || d->stopped)
		return;
	d->armed = due;
	uv_update_time(d->b->loop);
	uv_timer_start(&d->timer, on_timer, due > clock_mono_ms() ? (uint64_t)(due - clock_mono_ms()) : 0, 0);
}

/* ---- Delivery ------------------------------------------------------------------------------------------------------------ */

static void passed(struct delay *d, struct level *l)
{
	l->off++;
	l->waits = false;
	l->retry_ms = 0;
	l->last_code = l->code;
	l->last_due = l->due;
	if (++d->steps >= d->b->conf->delayOffsetUpdateVersionStep) {
		d->steps = 0;
		body_version_next(&d->version, clock_now_ms(), 0);
	}
}

/* Cannot be delivered, now or ever. */
static int drop(struct delay *d, struct level *l, const char *why)
{
	log_error("level=%d offset=%lld: not delivered: %s", level_number(d, l), (long long)l->off, why);
	d->b->metrics.delayed_lost++;
	passed(d, l);
	return 0;
}

static int deliver(struct delay *d, struct level *l, struct mq_error *e)
{
	struct mqstore_record r;
	struct mqstore_entry entry;
	struct mqstore_place place;
	struct mq_message m;
	struct mq_str record, topic;
	int32_t queue_id = -1;
	int rc;

	if (mqstore_entry(l->queue, l->off, &entry) < 0 || mqstore_at(d->b->store, entry.log_off, &record) < 0 ||
	    mq_message_decode(record.p, record.n, false, &m) <= 0)
		return drop(d, l, "its record cannot be read");
	topic = mq_prop_get(m.props, PROP_REAL_TOPIC);
	if (!topic.n || str_i32(mq_prop_get(m.props, PROP_REAL_QID), &queue_id) < 0)
		return drop(d, l, "it has no REAL_TOPIC and REAL_QID");
	if (str_is(topic, TOPIC_SCHEDULE) || str_is(topic, TOPIC_HALF))
		return drop(d, l, "REAL_TOPIC is a topic of the system");
	r = record_again(&m);
	r.queue = topic_table_queue(d->b->topics, topic, queue_id);
	if (!r.queue)
		return drop(d, l, "REAL_TOPIC and REAL_QID are no queue");
	r.props[0] = m.props; /* compat: with DELAY, REAL_TOPIC and REAL_QID */
	rc = mqstore_append(d->b->store, &r, 1, &place, e);
	if (rc < 0)
		return rc;
	d->b->metrics.delayed_out++;
	passed(d, l);
	return 1;
}

static void put_off(struct delay *d, struct level *l, const struct mq_error *e)
{
	l->retry_ms = !l->retry_ms ? RETRY_MS : l->retry_ms * 2 < RETRY_MAX_MS ? l->retry_ms * 2 : RETRY_MAX_MS;
	l->due = clock_mono_ms() + l->retry_ms;
	d->b->metrics.delayed_retries++;
	if (strncmp(d->trouble, e->text, sizeof d->trouble - 1))
		log_error("level=%d offset=%lld: cannot be stored, tried again: %s", level_number(d, l), (long long)l->off, e->text);
	snprintf(d->trouble, sizeof d->trouble, "%.*s", (int)sizeof d->trouble - 1, e->text);
}

void delay_run(struct delay *d)
{
	struct mq_error e = { 0 };
	int left = TURN_MAX, rc;
	bool any = false;

	clock_refresh();
	d->armed = INT64_MAX;
	d->turn = (d->turn + 1) % LEVELS;
	for (int i = 0; i < LEVELS && !d->stopped; i++) {
		struct level *l = &d->level[(d->turn + i) % LEVELS];

		for (; left > 0 && look(d, l) && is_due(l); left--) {
			rc = deliver(d, l, &e);
			if (rc < 0) {
				put_off(d, l, &e);
				break;
			}
			any = any || rc > 0;
		}
	}
	if (any) {
		d->trouble[0] = 0;
		if (d->b->conf->flushDiskType == FLUSH_SYNC)
			flush_soon(d->b->flush); /* readers see it when it is on the disk */
	}
	arm(d);
}

/* ---- Putting off --------------------------------------------------------------------------------------------------------- */

int32_t delay_level(const struct delay *d, int32_t n)
{
	return n < d->levels ? n : d->levels;
}

void delay_props(struct buf *out, int32_t level, struct mq_str topic, int32_t queue_id)
{
	char text[16];

	property_put(out, MQ_STR(PROP_DELAY), (struct mq_str){ text, (size_t)snprintf(text, sizeof text, "%d", level) });
	property_put(out, MQ_STR(PROP_REAL_TOPIC), topic);
	property_put(out, MQ_STR(PROP_REAL_QID), (struct mq_str){ text, (size_t)snprintf(text, sizeof text, "%d", queue_id) });
}

struct mqstore_queue *delay_queue(struct delay *d, int32_t level)
{
	struct level *l = &d->level[level - 1];

	if (!l->queue)
		l->queue = mqstore_queue(d->b->store, MQ_STR(TOPIC_SCHEDULE), level - 1, true);
	return l->queue;
}

void delay_stored(struct delay *d, int32_t level, size_t n)
{
	struct level *l = &d->level[level - 1];

	d->b->metrics.delayed_in += n;
	if (!l->waits)
		arm(d);
}

/* ---- Where each level stands --------------------------------------------------------------------------------------------- */

static void write_offsets(struct delay *d, struct buf *out, bool saved)
{
	struct json_out j = json_to(out);
	char key[16];

	json_open(&j, '{');
	body_version_put(&j, "dataVersion", &d->version);
	json_key(&j, "offsetTable");
	json_open(&j, '{');
	for (struct level *l = d->level; l < d->level + LEVELS; l++) {
		if (saved ? l->saved < 0 : !l->queue)
			continue;
		snprintf(key, sizeof key, "%d", level_number(d, l)); /* quoted, as in consumerOffset.json */
		json_key(&j, key);
		json_put_i64(&j, saved ? l->saved : l->off);
	}
	json_close(&j, '}');
	if (saved && d->saved_end >= 0)
		json_member_i64(&j, "logOffset", d->saved_end);
	json_close(&j, '}');
	buf_char(out, '\n');
}

static void write_file(void *table, struct buf *out)
{
	write_offsets(table, out, true);
}

void delay_write(struct delay *d, struct buf *out)
{
	write_offsets(d, out, false);
}

void delay_each(const struct delay *d, void (*cb)(void *arg, int32_t level, int64_t off, int64_t max), void *arg)
{
	for (const struct level *l = d->level; l < d->level + LEVELS; l++)
		if (l->queue)
			cb(arg, level_number(d, l), l->off, mqstore_queue_max(l->queue));
}

/* Note where the levels stand, to be saved when the log is on the disk up to here: a copy that a power cut takes back must not count
 * as delivered. */
static void mark(struct delay *d)
{
	for (struct level *l = d->level; l < d->level + LEVELS; l++)
		l->mark = l->queue ? l->off : -1;
	d->marked = true;
	d->mark_end = mqstore_log_max(d->b->store);
}

/* The mark is what the file is to say, if it is true.  False: not yet. */
static bool take_mark(struct delay *d)
{
	bool any = false;

	if (mqstore_flushed(d->b->store) < d->mark_end)
		return false;
	d->marked = false;
	for (struct level *l = d->level; l < d->level + LEVELS; l++) {
		if (l->mark < 0)
			continue;
		any = any || l->mark != l->saved || (l->mark < mqstore_queue_max(l->queue) && d->mark_end != d->saved_end);
		l->saved = l->mark;
	}
	d->saved_end = d->mark_end;
	if (any)
		table_file_changed(&d->file);
	return true;
}

static void on_save(uv_timer_t *timer)
{
	struct delay *d = timer->data;
	uint64_t next = FLUSHED_MS;

	clock_refresh();
	if (!d->marked)
		mark(d);
	if (take_mark(d)) {
		table_file_save(&d->file);
		next = d->b->conf->flushDelayOffsetInterval;
	}
	uv_timer_start(&d->save_timer, on_save, next, 0);
	delay_run(d); /* wall time may have jumped ahead of the timer: a machine that slept */
}

void delay_take(struct delay *d, const struct body_delay_table *from)
{
	bool any = false;

	for (size_t i = 0; i < from->n; i++) {
		struct level *l = from->level[i].id >= 1 && from->level[i].id <= LEVELS ? &d->level[from->level[i].id - 1] : NULL;

		if (!l || from->level[i].off < 0)
			continue;
		any = any || l->saved != from->level[i].off;
		l->off = l->saved = from->level[i].off;
	}
	d->version = from->version;
	d->saved_end = -1;      /* which deliveries are in the log behind these offsets is for the next start as a master to find out */
	if (any) {
		table_file_changed(&d->file);
		table_file_save(&d->file);
	}
}

int delay_save(struct delay *d, struct mq_error *e)
{
	if (!d->slave) {
		mark(d);
		take_mark(d);
	}
	return table_file_flush(&d->file, e);
}

bool delay_idle(const struct delay *d)
{
	return table_file_idle(&d->file);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

/* A stored offset lies within its queue, whatever became of that. */
static void correct(struct delay *d, struct level *l)
{
	int64_t min = mqstore_queue_min(l->queue), max = mqstore_queue_max(l->queue), was = l->off;

	l->off = was < min ? min : was > max ? max : was;
	if (l->off != was && (was > 0 || min > 0))
		log_warn("level=%d: offset corrected from=%lld to=%lld", level_number(d, l), (long long)was, (long long)l->off);
	if (level_number(d, l) > d->levels && l->off < max)
		log_warn("messageDelayLevel has %d levels: %lld messages of level %d are delivered at the time that they were given",
			 d->levels, (long long)(max - l->off), level_number(d, l));
}

/* Is m a copy, delivered, of the entry at l->off? */
static bool is_copy(struct delay *d, const struct level *l, const struct mq_message *m, struct mq_str uniq_key)
{
	struct mqstore_entry e;
	struct mq_message was;
	struct mq_str record;
	int32_t queue_id;

	return mqstore_entry(l->queue, l->off, &e) == 0 && mqstore_at(d->b->store, e.log_off, &record) == 0 &&
	       mq_message_decode(record.p, record.n, false, &was) > 0 && was.log_off < m->log_off && was.born_ms == m->born_ms &&
	       was.body_crc == m->body_crc && was.body.n == m->body.n && was.reconsume_times == m->reconsume_times &&
	       str_eq(mq_prop_get(was.props, PROP_UNIQ_KEY), uniq_key) && str_eq(mq_prop_get(was.props, PROP_REAL_TOPIC), m->topic) &&
	       str_i32(mq_prop_get(was.props, PROP_REAL_QID), &queue_id) == 0 && queue_id == m->queue_id;
}

static int see_delivered(void *arg, int64_t log_off, struct mq_str record)
{
	struct delay *d = arg;
	struct property_scan s;
	struct mq_message m;
	struct level *l;

	if (mq_message_decode(record.p, record.n, false, &m) <= 0 || str_is(m.topic, TOPIC_SCHEDULE))
		return 0;
	property_scan(m.props, &s);
	if (s.delay_level < 1 || s.delay_level > LEVELS)
		return 0;
	l = &d->level[s.delay_level - 1];
	if (l->queue && l->off < mqstore_queue_max(l->queue) && is_copy(d, l, &m, s.uniq_key)) {
		l->off++;
		d->b->metrics.delayed_found++;
	}
	return 0;
}

/* After a kill: what the log holds behind the last save, and behind the first message that is due, may be deliveries. */
static int find_delivered(struct delay *d, struct mq_error *e)
{
	int64_t from = INT64_MAX, end = mqstore_log_max(d->b->store);
	struct mqstore_entry entry;

	for (struct level *l = d->level; l < d->level + LEVELS; l++)
		if (l->queue && mqstore_entry(l->queue, l->off, &entry) == 0 && entry.tags_code <= clock_now_ms() && entry.log_off < from)
			from = entry.log_off;
	if (from < d->saved_end)
		from = d->saved_end;
	if (from >= end || (d->saved_end < 0 && end - from > WALK_MAX))
		return 0;
	return mqstore_walk(d->b->store, from, see_delivered, d, e);
}

static void load(void *table, const json_t *json)
{
	struct delay *d = table;
	const json_t *offsets = json_object_at(json, "offsetTable");
	const char *key;
	json_t *off;
	int32_t n;

	body_version_get(json_object_at(json, "dataVersion"), &d->version);
	d->saved_end = json_i64(json, "logOffset", -1);
	json_object_foreach((json_t *)offsets, key, off) {
		if (str_i32(str_of(key), &n) < 0 || n < 1 || n > LEVELS || !json_is_integer(off) || json_integer_value(off) < 0) {
			log_warn("delayOffset.json: level '%s' left out: not a level from 1 to %d with its offset", key, LEVELS);
			continue;
		}
		d->level[n - 1].off = d->level[n - 1].saved = json_integer_value(off);
	}
}

static const struct table_kind kind = { .name = "delayOffset", .write = write_file, .load = load, .later = true };

int delay_open(struct delay **out, struct broker *b, struct mq_error *e)
{
	struct delay *d = mem_alloc(sizeof *d);
	const int64_t *ms;
	int rc;

	*out = NULL;
	d->b = b;
	d->saved_end = -1;
	d->armed = INT64_MAX;
	d->levels = mqstore_delay_levels(b->store, &ms);
	for (int i = 0; i < LEVELS; i++)
		d->level[i] = (struct level){ .saved = -1, .ms = i < d->levels ? ms[i] : -1 };
	rc = table_file_open(&d->file, b, &kind, d, e);
	if (rc < 0) {
		free(d);
		return rc;
	}
	for (int i = 0; i < LEVELS; i++) {
		d->level[i].queue = mqstore_queue(b->store, MQ_STR(TOPIC_SCHEDULE), i, false);
		if (d->level[i].queue)
			correct(d, &d->level[i]);
	}
	rc = b->conf->brokerRole == ROLE_SLAVE ? 0 : find_delivered(d, e);
	if (rc < 0) {
		table_file_close(&d->file);
		free(d);
		return rc;
	}
	uv_timer_init(b->loop, &d->timer);
	uv_timer_init(b->loop, &d->save_timer);
	d->timer.data = d->save_timer.data = d;
	d->slave = b->conf->brokerRole == ROLE_SLAVE;
	if (!d->slave) {
		uv_timer_start(&d->save_timer, on_save, b->conf->flushDelayOffsetInterval, 0);
		arm(d);
	}
	*out = d;
	return 0;
}

void delay_stop(struct delay *d)
{
	d->stopped = true;
	uv_timer_stop(&d->timer);
	uv_timer_stop(&d->save_timer);
}

static void on_closed(uv_handle_t *handle)
{
	struct delay *d = handle->data;

	if (++d->closed == 2)
		free(d);
}

void delay_free(struct delay *d)
{
	if (!d)
		return;
	table_file_close(&d->file);
	uv_close((uv_handle_t *)&d->timer, on_closed);
	uv_close((uv_handle_t *)&d->save_timer, on_closed);
}
