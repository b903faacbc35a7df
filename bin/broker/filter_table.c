/* filter_table.c: SQL92 filters of groups, to and from config/consumerFilter.json. */
#include "filter_table.h"
#include "broker.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "filter"

enum { LOAD_DEAD_MS = 30000 };  /* a filter in use in the file of a broker that has gone: dead for so long already, as with the peer */

static struct filter_topic *topic_find(const struct filter_table *t, struct mq_str name)
{
	struct filter_topic *ft;

	HASH_FIND(hh, t->topics, name.p, name.n, ft);
	return ft;
}

static struct filter *find(const struct filter_table *t, struct mq_str group, struct mq_str topic)
{
	struct filter_topic *ft = topic_find(t, topic);
	struct filter *f = NULL;

	if (ft)
		HASH_FIND(hh, ft->filters, group.p, group.n, f);
	return f;
}

const struct filter *filter_table_find(const struct filter_table *t, struct mq_str group, struct mq_str topic)
{
	return find(t, group, topic);
}

static struct filter *add(struct filter_table *t, struct mq_str group, struct mq_str topic)
{
	struct filter_topic *ft = topic_find(t, topic);
	struct filter *f = mem_alloc(sizeof *f);
	struct buf key = { 0 };

	if (!ft) {
		ft = mem_alloc(sizeof *ft);
		ft->name = str_dup(topic);
		HASH_ADD_KEYPTR(hh, t->topics, ft->name, topic.n, ft);
	}
	f->group = str_dup(group);
	HASH_ADD_KEYPTR(hh, ft->filters, f->group, group.n, f);
	buf_str(&key, group);
	buf_char(&key, '#');
	buf_str(&key, topic);
	bloom_positions(&t->bloom, buf_view(&key), f->bit);
	buf_free(&key);
	return f;
}

/* Its topic goes with its last. */
static void drop(struct filter_table *t, struct filter_topic *ft, struct filter *f)
{
	HASH_DEL(ft->filters, f);
	free(f->group);
	free(f->expr);
	sql_free(f->program);
	free(f);
	if (!ft->filters) {
		HASH_DEL(t->topics, ft);
		free(ft->name);
		free(ft);
	}
}

void filter_table_use(struct filter_table *t, struct mq_str group, const struct sub *s)
{
	struct mq_str topic = str_of(s->topic);
	struct filter *f = find(t, group, topic);

	if (!s->sql) {
		filter_table_end(t, group, topic);
		return;
	}
	if (s->why) { /* compat: nothing is kept of a new one that is wrong */
		if (f) {
			drop(t, topic_find(t, topic), f);
			table_file_changed(&t->file);
		}
		return;
	}
	if (!f)
		f = add(t, group, topic);
	if (!f->expr || strcmp(f->expr, s->expr)) {
		free(f->expr);
		sql_free(f->program);
		f->program = NULL;
		f->expr = mem_strdup(s->expr);
		f->born_ms = clock_now_ms();
		log_info("filter group=%s topic=%s expression=%s", f->group, s->topic, f->expr);
	}
	f->version = s->version;
	f->dead_ms = 0;
	table_file_changed(&t->file);
}

void filter_table_end(struct filter_table *t, struct mq_str group, struct mq_str topic)
{
	struct filter *f = find(t, group, topic);

	if (!f || f->dead_ms)
		return;
	f->dead_ms = clock_now_ms();
	table_file_changed(&t->file);
}

/* ---- Bits beside queue entries -------------------------------------------------------------------------------------------- */

/* mqstore_bits_cb.  compat: those of dead filters are set too. */
static size_t message_bits(void *table, const struct mqstore_queue *q, struct mq_str props, uint8_t *bits)
{
	struct filter_table *t = table;
	struct filter_topic *ft = topic_find(t, mqstore_queue_topic(q));
	struct filter *f, *tmp;
	struct mq_error e;

	if (!ft || bloom_bytes(&t->bloom) > MQSTORE_BITS_MAX)
		return 0;
	memset(bits, 0, bloom_bytes(&t->bloom));
	HASH_ITER(hh, ft->filters, f, tmp) {
		/* A filter that is wrong passes nothing, and says so to its consumers. */
		if (!f->program && sql_compile(&f->program, str_of(f->expr), &e) < 0)
			continue;
		if (sql_match(f->program, props))
			bloom_set(&t->bloom, f->bit, bits);
	}
	return bloom_bytes(&t->bloom);
}

bool filter_table_may_pass(const struct filter_table *t, const struct filter *f, int64_t store_ms, struct mq_str bits)
{
	/* Stored before the filter was there, or by a broker with other numbers. */
	if (store_ms <= f->born_ms || bits.n != bloom_bytes(&t->bloom))
		return true;
	return bloom_hit(&t->bloom, f->bit, (const uint8_t *)bits.p);
}

/* ---- The file ------------------------------------------------------------------------------------------------------------ */

static void clean(struct filter_table *t)
{
	int64_t oldest = clock_now_ms() - t->b->conf->filterDataCleanTimeSpan;
	struct filter_topic *ft, *ftmp;
	struct filter *f, *tmp;

	HASH_ITER(hh, t->topics, ft, ftmp) {
		HASH_ITER(hh, ft->filters, f, tmp)
			if (f->dead_ms && f->dead_ms <= oldest)
				drop(t, ft, f);
	}
}

static void put(const struct filter_table *t, const struct filter *f, const char *topic, struct json_out *o)
{
	json_open(o, '{');
	json_key(o, "bloomFilterData");
	json_open(o, '{');
	json_member_i64(o, "bitNum", t->bloom.bits);
	json_key(o, "bitPos");
	json_open(o, '[');
	for (int32_t i = 0; i < t->bloom.hashes; i++)
		json_put_i64(o, f->bit[i]);
	json_close(o, ']');
	json_close(o, '}');
	json_member_i64(o, "bornTime", f->born_ms);
	json_member_i64(o, "clientVersion", f->version);
	json_member_cstr(o, "consumerGroup", f->group);
	json_member_bool(o, "dead", f->dead_ms >= f->born_ms);
	json_member_i64(o, "deadTime", f->dead_ms);
	json_member_cstr(o, "expression", f->expr);
	json_member_cstr(o, "expressionType", "SQL92");
	json_member_cstr(o, "topic", topic);
	json_close(o, '}');
}

static void write_file(void *table, struct buf *out)
{
	struct filter_table *t = table;
	struct json_out o = json_to(out);
	struct filter_topic *ft, *ftmp;
	struct filter *f, *tmp;

	clean(t);
	json_open(&o, '{');
	json_key(&o, "filterDataByTopic");
	json_open(&o, '{');
	HASH_ITER(hh, t->topics, ft, ftmp) {
		json_key(&o, ft->name);
		json_open(&o, '{');
		json_key(&o, "groupFilterData");
		json_open(&o, '{');
		HASH_ITER(hh, ft->filters, f, tmp) {
			json_key(&o, f->group);
			put(t, f, ft->name, &o);
		}
		json_close(&o, '}');
		json_member_cstr(&o, "topic", ft->name);
		json_close(&o, '}');
	}
	json_close(&o, '}');
	json_close(&o, '}');
	buf_char(out, '\n');
}

static void load_one(struct filter_table *t, const char *topic, const char *group, const json_t *json)
{
	struct mq_str expr = json_str(json, "expression");
	int64_t dead = clock_now_ms() - LOAD_DEAD_MS;
	struct filter *f;

	if (!expr.n || !*group || !*topic || find(t, str_of(group), str_of(topic))) {
		log_warn("consumerFilter.json: filter left out: topic '%s' group '%s' has none or two", topic, group);
		return;
	}
	f = add(t, str_of(group), str_of(topic));
	f->expr = str_dup(expr);
	f->version = json_i64(json, "clientVersion", 0);
	f->born_ms = json_i64(json, "bornTime", 0);
	f->dead_ms = json_i64(json, "deadTime", 0);
	if (f->dead_ms == 0)
		f->dead_ms = dead > f->born_ms ? dead : f->born_ms;
	if (f->dead_ms == 0)
		f->dead_ms = 1; /* 0 is "in use" */
}

static void load(void *table, const json_t *json)
{
	struct filter_table *t = table;
	const char *topic, *group;
	json_t *of_topic, *of_group;

	json_object_foreach(json_object_at(json, "filterDataByTopic"), topic, of_topic) {
		json_object_foreach(json_object_at(of_topic, "groupFilterData"), group, of_group)
			load_one(t, topic, group, of_group);
	}
}

static const struct table_kind kind = { .name = "consumerFilter", .write = write_file, .load = load };

int filter_table_open(struct filter_table **out, struct broker *b, struct mq_error *e)
{
	struct filter_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	t->bloom = bloom_make(b->conf->maxErrorRateOfBloomFilter, b->conf->expectConsumerNumUseFilter);
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	if (b->conf->enableCalcFilterBitMap)
		mqstore_on_bits(b->store, message_bits, t);
	*out = t;
	return 0;
}

void filter_table_free(struct filter_table *t)
{
	struct filter_topic *ft, *ftmp;
	struct filter *f, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->topics, ft, ftmp) {
		HASH_ITER(hh, ft->filters, f, tmp)
			drop(t, ft, f);
	}
	table_file_close(&t->file);
	free(t);
}
