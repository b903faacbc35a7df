/* mode_table.c: modes of consumption. */
#include "mode_table.h"
#include "broker.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "mode"

enum { MODES_MAX = 100000 };

static struct mode *find(const struct mode_table *t, struct mq_str topic, struct mq_str group)
{
	char key[RECEIPT_TOPIC_MAX + 1 + MQ_GROUP_MAX];
	size_t n = topic.n + 1 + group.n;
	struct mode *m = NULL;

	if (n <= sizeof key && topic.n && group.n) {
		memcpy(key, topic.p, topic.n);
		key[topic.n] = '@';
		memcpy(key + topic.n + 1, group.p, group.n);
		HASH_FIND(hh, t->all, key, n, m);
	}
	return m;
}

struct body_mode mode_table_get(const struct mode_table *t, struct mq_str topic, struct mq_str group)
{
	const struct mode *m = find(t, topic, group);
	struct body_mode out = { .topic = topic, .group = group };

	if (m) {
		out.pop = m->pop;
		out.share = m->share;
	} else if (!str_starts(topic, "%RETRY%") && str_is_nocase(str_of(t->b->conf->defaultMessageRequestMode), "POP")) {
		out.pop = true;
		out.share = t->b->conf->defaultPopShareQueueNum;
	}
	return out;
}

static void put(struct mode_table *t, const struct body_mode *m)
{
	struct mode *x = find(t, m->topic, m->group);
	size_t n = m->topic.n + 1 + m->group.n;

	if (!x) {
		x = mem_alloc(sizeof *x + n + 1);
		memcpy(x->key, m->topic.p, m->topic.n);
		x->key[m->topic.n] = '@';
		memcpy(x->key + m->topic.n + 1, m->group.p, m->group.n);
		x->topic_n = (uint32_t)m->topic.n;
		x->key_n = (uint32_t)n;
		HASH_ADD_KEYPTR(hh, t->all, x->key, x->key_n, x);
	}
	x->pop = m->pop;
	x->share = m->share;
}

int mode_table_set(struct mode_table *t, const struct body_mode *m, struct mq_error *e)
{
	int rc;

	if ((rc = mq_check_topic(m->topic, e)) < 0 || (rc = mq_check_group(m->group, e)) < 0)
		return rc;
	if (!find(t, m->topic, m->group) && HASH_COUNT(t->all) >= MODES_MAX)
		return err_set(e, MQ_ETOOBIG, "there are %d modes of consumption already", MODES_MAX);
	put(t, m);
	table_file_changed(&t->file);
	log_info("mode topic=" MQ_STR_FMT " group=" MQ_STR_FMT " mode=%s share=%d", MQ_STR_ARG(m->topic), MQ_STR_ARG(m->group),
		 m->pop ? "POP" : "PULL", (int)m->share);
	return 0;
}

void mode_table_replace(struct mode_table *t, const struct body_modes *to)
{
	size_t same = 0;
	struct mode *x, *tmp;

	for (size_t i = 0; i < to->n; i++) {
		x = find(t, to->mode[i].topic, to->mode[i].group);
		same += x && x->pop == to->mode[i].pop && x->share == to->mode[i].share;
	}
	if (same == to->n && HASH_COUNT(t->all) == to->n)
		return;
	HASH_ITER(hh, t->all, x, tmp) {
		HASH_DEL(t->all, x);
		free(x);
	}
	for (size_t i = 0; i < to->n && i < MODES_MAX; i++)
		if (mq_check_topic(to->mode[i].topic, NULL) == 0 && mq_check_group(to->mode[i].group, NULL) == 0)
			put(t, &to->mode[i]);
	table_file_changed(&t->file);
	log_info("modes of consumption taken from the master modes=%zu", to->n);
}

static int by_key(struct mode *a, struct mode *b)
{
	return str_cmp((struct mq_str){ a->key, a->key_n }, (struct mq_str){ b->key, b->key_n });
}

void mode_table_write(struct mode_table *t, struct buf *out)
{
	struct body_modes body = { .mode = mem_alloc((HASH_COUNT(t->all) + 1) * sizeof *body.mode) };
	struct mode *m, *tmp;

	HASH_SORT(t->all, by_key); /* those of one topic together */
	HASH_ITER(hh, t->all, m, tmp)
		body.mode[body.n++] = (struct body_mode){ { m->key, m->topic_n },
							  { m->key + m->topic_n + 1, m->key_n - m->topic_n - 1 }, m->pop, m->share };
	body_modes_encode(&body, out);
	free(body.mode);
}

static void write_file(void *table, struct buf *out)
{
	mode_table_write(table, out);
	buf_char(out, '\n');
}

static void load(void *table, const json_t *json)
{
	struct body_modes body = { 0 };

	body_modes_get(json, &body);
	for (size_t i = 0; i < body.n; i++)
		if (mq_check_topic(body.mode[i].topic, NULL) == 0 && mq_check_group(body.mode[i].group, NULL) == 0)
			put(table, &body.mode[i]);
	body_free(&body.keep);
}

static const struct table_kind kind = { .name = "messageRequestMode", .write = write_file, .load = load };

int mode_table_open(struct mode_table **out, struct broker *b, struct mq_error *e)
{
	struct mode_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void mode_table_free(struct mode_table *t)
{
	struct mode *m, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->all, m, tmp) {
		HASH_DEL(t->all, m);
		free(m);
	}
	table_file_close(&t->file);
	free(t);
}
