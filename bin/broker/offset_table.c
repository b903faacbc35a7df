/* offset_table.c: how far each group has got in each queue. */
#include "offset_table.h"
#include "broker.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "offset"

enum {
	FLUSHED_MS = 100,       /* between looks whether the log is on the disk */
	KEY_MAX = 512,          /* "topic@group": two names of at most 255 bytes */
	QUEUE_MAX = 65535,      /* bound of a queue id: what a client names must not make memory grow without end */
};

/* "topic@group" into key; 0 if it cannot be one. */
static size_t make_key(char key[KEY_MAX], struct mq_str topic, struct mq_str group)
{
	size_t n = topic.n + 1 + group.n;

	if (n > KEY_MAX || !topic.n || !group.n)
		return 0;
	memcpy(key, topic.p, topic.n);
	key[topic.n] = '@';
	memcpy(key + topic.n + 1, group.p, group.n);
	return n;
}

struct offsets *offset_table_find(struct offset_table *t, struct mq_str topic, struct mq_str group)
{
	char key[KEY_MAX];
	size_t n = make_key(key, topic, group);
	struct offsets *o = NULL;

	if (n)
		HASH_FIND(hh, t->all, key, n, o);
	return o;
}

static struct offsets *add(struct offset_table *t, const char *key, size_t n, size_t topic_n)
{
	struct offsets *o = mem_alloc(sizeof *o + n + 1);

	memcpy(o->name, key, n);
	o->name_n = n;
	o->topic_n = topic_n;
	HASH_ADD_KEYPTR(hh, t->all, o->name, n, o);
	return o;
}

/* The offsets in which queue id has a slot, or NULL. */
static struct offsets *offsets_of(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, bool make)
{
	char key[KEY_MAX];
	size_t n = make_key(key, topic, group);
	struct offsets *o = NULL;

	if (!n || id < 0 || id > QUEUE_MAX)
		return NULL;
	HASH_FIND(hh, t->all, key, n, o);
	if (!o) {
		if (!make)
			return NULL;
		o = add(t, key, n, topic.n);
	}
	if (id >= o->n) {
		if (!make)
			return NULL;
		o->slot = mem_realloc(o->slot, (id + 1) * sizeof *o->slot);
		for (; o->n <= id; o->n++)
			o->slot[o->n] = (struct offset_slot){ -1, -1, -1, 0 };
	}
	return o;
}

static struct offset_slot *slot_of(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, bool make)
{
	struct offsets *o = offsets_of(t, topic, group, id, make);

	return o ? &o->slot[id] : NULL;
}

static void drop(struct offset_table *t, struct offsets *o)
{
	HASH_DEL(t->all, o);
	tally_end(&o->got);
	free(o->slot);
	free(o);
}

int64_t offset_table_get(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id)
{
	struct offset_slot *s = slot_of(t, topic, group, id, false);

	return !s ? -1 : s->reset >= 0 ? s->reset : s->stored;
}

/* A value was stored: the version moves on now and then, as the peer's does. */
static void stored(struct offset_table *t)
{
	t->b->metrics.offset_commits++;
	if (++t->commits >= t->b->conf->consumerOffsetUpdateVersionStep) {
		t->commits = 0;
		body_version_next(&t->version, clock_now_ms(), 0);
	}
	table_file_changed(&t->file);
}

bool offset_table_commit(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t off, int64_t max,
                         const char *who)
{
	struct offset_slot *s;

	if (off < 0 || off > max || !(s = slot_of(t, topic, group, id, true))) {
		t->b->metrics.offset_commits_ignored++;
		log_info("offset ignored topic=" MQ_STR_FMT " group=" MQ_STR_FMT " queue=%d offset=%lld max=%lld client=%s",
			 MQ_STR_ARG(topic), MQ_STR_ARG(group), id, (long long)off, (long long)max, who);
		return false;
	}
	if (off < s->stored) {
		t->b->metrics.commit_late++;
		log_info("offset goes back topic=" MQ_STR_FMT " group=" MQ_STR_FMT " queue=%d from=%lld to=%lld client=%s",
			 MQ_STR_ARG(topic), MQ_STR_ARG(group), id, (long long)s->stored, (long long)off, who);
	}
	if (off != s->stored) {
		s->stored = off;
		stored(t);
	}
	return true;
}

void offset_table_pulled(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t next, int64_t n,
                         int64_t bytes)
{
	struct offsets *o = offsets_of(t, topic, group, id, true);

	if (!o)
		return;
	o->slot[id].pulled = next;
	tally_add(&t->b->tallies, &o->got, 1, n, bytes);
}

void offset_table_inflight(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t more)
{
	struct offset_slot *s = more ? slot_of(t, topic, group, id, more > 0) : NULL;

	if (s)
		s->inflight = s->inflight + more > 0 ? s->inflight + more : 0;
}

void offset_table_catch_up(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t off)
{
	struct offset_slot *s = slot_of(t, topic, group, id, true);

	if (!s || s->stored >= off)
		return;
	s->stored = off;
	stored(t);
}

int64_t offset_table_saved_end(const struct offset_table *t)
{
	return t->saved_end;
}

void offset_table_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id, int64_t off)
{
	struct offset_slot *s = slot_of(t, topic, group, id, true);

	if (!s || off < 0)
		return;
	s->stored = s->reset = off;
	s->pulled = -1;
	s->inflight = 0;
	stored(t);
	offset_table_save(t);
}

bool offset_table_has_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id)
{
	struct offset_slot *s = slot_of(t, topic, group, id, false);

	return s && s->reset >= 0;
}

int64_t offset_table_take_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t id)
{
	struct offset_slot *s = slot_of(t, topic, group, id, false);
	int64_t off = s ? s->reset : -1;

	if (s)
		s->reset = -1;
	return off;
}

void offset_table_clone(struct offset_table *t, const struct offsets *from, struct mq_str group)
{
	struct offsets *to;

	if (from->n == 0 || str_eq(offsets_group(from), group))
		return;
	to = offsets_of(t, offsets_topic(from), group, from->n - 1, true);
	for (int32_t i = 0; to && i < to->n; i++)
		to->slot[i] = (struct offset_slot){ i < from->n ? from->slot[i].stored : -1, -1, -1, 0 };
	stored(t);
}

void offset_table_merge(struct offset_table *t, const struct body_offset_table *from)
{
	bool any = false;

	for (size_t i = 0; i < from->n; i++) {
		const struct body_group_offsets *g = &from->entry[i];
		const char *at = g->key.n ? memrchr(g->key.p, '@', g->key.n) : NULL;
		struct mq_str topic = { g->key.p, at ? (size_t)(at - g->key.p) : 0 };
		struct mq_str group = { at ? at + 1 : NULL, at ? g->key.n - topic.n - 1 : 0 };

		for (size_t k = 0; at && k < g->n; k++) {
			struct offset_slot *s = g->queue[k].off >= 0 ? slot_of(t, topic, group, g->queue[k].id, true) : NULL;

			if (!s || s->stored == g->queue[k].off)
				continue;
			s->stored = g->queue[k].off;
			any = true;
		}
	}
	if (any)
		table_file_changed(&t->file);
	t->version = from->version;
}

bool offsets_any(const struct offsets *o)
{
	for (int32_t i = 0; i < o->n; i++)
		if (o->slot[i].stored >= 0)
			return true;
	return false;
}

static bool matches(const struct offsets *o, struct mq_str topic, struct mq_str group)
{
	return (!topic.n || str_eq(offsets_topic(o), topic)) && (!group.n || str_eq(offsets_group(o), group));
}

static void drop_matching(struct offset_table *t, struct mq_str topic, struct mq_str group)
{
	struct offsets *o, *tmp;
	bool any = false;

	HASH_ITER(hh, t->all, o, tmp)
		if (matches(o, topic, group)) {
			drop(t, o);
			any = true;
		}
	if (any) {
		body_version_next(&t->version, clock_now_ms(), 0);
		table_file_changed(&t->file);
	}
}

void offset_table_drop_topic(struct offset_table *t, struct mq_str topic)
{
	if (topic.n)
		drop_matching(t, topic, (struct mq_str){ 0 });
}

void offset_table_drop_group(struct offset_table *t, struct mq_str group)
{
	if (group.n)
		drop_matching(t, (struct mq_str){ 0 }, group);
}

void offset_table_each(struct offset_table *t, struct mq_str topic, struct mq_str group, void (*cb)(void *, struct offsets *),
                       void *arg)
{
	struct offsets *o, *tmp;

	HASH_ITER(hh, t->all, o, tmp)
		if (matches(o, topic, group))
			cb(arg, o);
}

static void write_queues(const struct offsets *o, struct json_out *out)
{
	char id[16];

	json_open(out, '{');
	for (int32_t i = 0; i < o->n; i++)
		if (o->slot[i].stored >= 0) { /* ids quoted: JSON that every reader takes, the peer's too */
			snprintf(id, sizeof id, "%d", i);
			json_key(out, id);
			json_put_i64(out, o->slot[i].stored);
		}
	json_close(out, '}');
}

static void write_table(struct offset_table *t, struct buf *out, int64_t log_end)
{
	struct json_out j = json_to(out);
	struct offsets *o, *tmp;

	json_open(&j, '{');
	body_version_put(&j, "dataVersion", &t->version);
	json_key(&j, "offsetTable");
	json_open(&j, '{');
	HASH_ITER(hh, t->all, o, tmp) { /* a line each, as in topics.json */
		if (!offsets_any(o))
			continue;
		buf_cstr(out, j.comma ? ",\n" : "\n");
		j.comma = false;
		json_key_str(&j, (struct mq_str){ o->name, o->name_n });
		write_queues(o, &j);
	}
	json_close(&j, '}');
	if (log_end >= 0)
		json_member_i64(&j, "logOffset", log_end);
	json_close(&j, '}');
	buf_char(out, '\n');
}

void offset_table_write(struct offset_table *t, struct buf *out)
{
	write_table(t, out, -1);
}

/* ---- Saving -------------------------------------------------------------------------------------------------------------- */

static void write_file(void *table, struct buf *out)
{
	struct offset_table *t = table;

	if (t->shot.n)
		buf_str(out, buf_view(&t->shot));
	else /* the stop: all is on the disk */
		write_table(t, out, mqstore_log_max(t->b->store));
	t->shot.n = 0;
}

/* The shot goes to the file, if it is true by now.  What changed since stays to be saved. */
static bool try_save(struct offset_table *t)
{
	if (!t->shot.n || !table_file_idle(&t->file))
		return !t->shot.n;
	if (mqstore_flushed(t->b->store) < t->shot_end)
		return false;
	table_file_save(&t->file);
	if (t->file.version != t->shot_version)
		table_file_changed(&t->file);
	return true;
}

static void on_timer(uv_timer_t *timer)
{
	struct offset_table *t = timer->data;

	t->soon = !try_save(t);
	if (t->soon)
		uv_timer_start(&t->timer, on_timer, FLUSHED_MS, 0);
}

void offset_table_save(struct offset_table *t)
{
	if (table_file_is_saved(&t->file))
		return;
	if (!t->shot.n) {
		t->shot_end = mqstore_log_max(t->b->store);
		t->shot_version = t->file.version;
		write_table(t, &t->shot, t->shot_end);
	}
	if (!t->soon && !try_save(t)) {
		t->soon = true;
		uv_timer_start(&t->timer, on_timer, FLUSHED_MS, 0);
	}
}

void offset_table_stop(struct offset_table *t)
{
	uv_timer_stop(&t->timer);
	t->shot.n = 0;
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static void load(void *table, const json_t *json)
{
	struct offset_table *t = table;
	const json_t *offsets = json_object_at(json, "offsetTable");
	const char *key, *queue;
	json_t *value, *off;

	body_version_get(json_object_at(json, "dataVersion"), &t->version);
	t->saved_end = json_i64(json, "logOffset", -1);
	json_object_foreach((json_t *)offsets, key, value) {
		const char *at = strrchr(key, '@');
		struct mq_str topic = { key, at ? (size_t)(at - key) : 0 };

		if (!at) {
			log_warn("consumerOffset.json: '%s' left out: not topic@group", key);
			continue;
		}
		json_object_foreach(value, queue, off) {
			struct offset_slot *s = NULL;
			int32_t id;

			if (json_is_integer(off) && json_integer_value(off) >= 0 && str_i32(str_of(queue), &id) == 0)
				s = slot_of(t, topic, str_of(at + 1), id, true);
			if (s)
				s->stored = json_integer_value(off);
		}
	}
}

/* A peer with enableLmq keeps the offsets in another file, of the same shape and more. */
static void load_other(struct offset_table *t)
{
	char *path = mem_printf("%s/config/lmqConsumerOffset.json", t->b->conf->storePathRootDir);
	struct mq_error e;
	json_t *json;
	char *p;
	size_t n;

	if (sys_read_file(path, JSON_TEXT_MAX, &p, &n) == 0) {
		json = json_parse((struct mq_str){ p, n }, &e);
		free(p);
		if (json) {
			log_info("offsets are taken from '%s'", path);
			load(t, json);
			table_file_changed(&t->file);
			json_decref(json);
		} else {
			log_warn("'%s': %s; groups begin anew", path, e.text);
		}
	}
	free(path);
}

/* upkeep saves it every flushConsumerOffsetInterval */
static const struct table_kind kind = { .name = "consumerOffset", .write = write_file, .load = load, .later = true };

int offset_table_open(struct offset_table **out, struct broker *b, struct mq_error *e)
{
	struct offset_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	/* Without a file none was ever saved: the whole log is behind it. */
	t->saved_end = 0;
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	uv_timer_init(b->loop, &t->timer);
	t->timer.data = t;
	if (rc == 0)
		load_other(t);
	*out = t;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct offset_table *t = handle->data;

	buf_free(&t->shot);
	free(t);
}

void offset_table_free(struct offset_table *t)
{
	struct offsets *o, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->all, o, tmp)
		drop(t, o);
	table_file_close(&t->file);
	uv_close((uv_handle_t *)&t->timer, on_closed);
}
