/* waiting.c: counts by topic, and their file. */
#include "waiting.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

static struct waiting_topic *find(const struct waiting *w, struct mq_str name)
{
	struct waiting_topic *x;

	HASH_FIND(hh, w->all, name.p, name.n, x);
	return x;
}

static struct waiting_topic *need(struct waiting *w, struct mq_str name)
{
	struct waiting_topic *x = find(w, name);

	if (x)
		return x;
	x = mem_alloc(sizeof *x + name.n + 1);
	memcpy(x->name, name.p, name.n);
	x->n = name.n;
	x->hash = str_java_hash(name);
	HASH_ADD_KEYPTR(hh, w->all, x->name, x->n, x);
	return x;
}

void waiting_add(struct waiting *w, struct mq_str topic, int64_t by)
{
	struct waiting_topic *x;

	if (!topic.n)
		return;
	x = need(w, topic);
	x->count += by;
	x->stamp_ms = clock_now_ms();
	body_version_next(&w->version, x->stamp_ms, 0);
	table_file_changed(&w->file);
}

int64_t waiting_count(const struct waiting *w, struct mq_str topic)
{
	const struct waiting_topic *x = find(w, topic);

	return x && x->count > 0 ? x->count : 0;
}

struct waiting_topic *waiting_of_hash(const struct waiting *w, int32_t hash)
{
	struct waiting_topic *x = w->all;

	while (x && x->hash != hash)
		x = x->hh.next;
	return x;
}

void waiting_write(struct waiting *w, struct buf *out)
{
	struct json_out j = json_to(out);

	json_open(&j, '{');
	body_version_put(&j, "dataVersion", &w->version);
	json_key(&j, w->key);
	json_open(&j, '{');
	for (struct waiting_topic *x = w->all; x; x = x->hh.next) {
		json_key(&j, x->name);
		json_open(&j, '{');
		json_member_i64(&j, "count", x->count > 0 ? x->count : 0); /* a cancellation may come before what it cancels is known */
		json_member_i64(&j, "timeStamp", x->stamp_ms);
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_close(&j, '}');
}

static void write_file(void *table, struct buf *out)
{
	waiting_write(table, out);
}

static void load(void *table, const json_t *json)
{
	struct waiting *w = table;
	const char *key;
	json_t *v;

	body_version_get(json_object_at(json, "dataVersion"), &w->version);
	json_object_foreach((json_t *)json_object_at(json, w->key), key, v) {
		struct waiting_topic *x = need(w, str_of(key));

		x->count = w->trust ? json_i64(v, "count", 0) : 0;
		if (!w->trust && json_i64(v, "count", 0))
			table_file_changed(&w->file);
		x->stamp_ms = json_i64(v, "timeStamp", 0);
	}
}

int waiting_open(struct waiting *w, struct broker *b, const char *file, const char *key, bool trust, struct mq_error *e)
{
	const struct table_kind kind = { .name = file, .file = file, .later = true, .write = write_file, .load = load };
	int rc;

	w->key = key;
	w->trust = trust;
	rc = table_file_open(&w->file, b, &kind, w, e);
	return rc < 0 ? rc : 0;
}

void waiting_close(struct waiting *w)
{
	struct waiting_topic *x, *next;

	if (w->file.path)
		table_file_close(&w->file);
	HASH_ITER(hh, w->all, x, next) {
		HASH_DEL(w->all, x);
		free(x);
	}
}
