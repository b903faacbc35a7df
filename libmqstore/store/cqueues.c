/* cqueues.c: the table of consume queues.  A name costs a few hundred bytes; files are opened when a queue is used. */
#include "cqueues.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "index.h"
#include "segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { MAPS_DEFAULT = 16384, MAPS_FEW = 16, BUFFERS_MAX = 32 << 20, SIZES = 9 };

/* ---- Maps ------------------------------------------------------------------------------------------------------------ */

void cqueues_unmap(struct mqstore_queue *q)
{
	struct cqueues *c = q->all;

	if (!q->map.p)
		return;
	sys.munmap(q->map.p, (size_t)c->file_bytes);
	q->map.p = NULL;
	c->maps[q->map.at] = c->maps[--c->maps_n];
	c->maps[q->map.at]->map.at = q->map.at;
}

/* One turn of the hand: the first map that was not used since the hand came by is unmapped. */
static void evict(struct cqueues *c, const struct mqstore_queue *but)
{
	for (uint32_t tries = 0; tries < 2 * c->maps_n + 1; tries++) {
		struct mqstore_queue *q = c->maps[c->hand++ % c->maps_n];

		if (q == but)
			continue;
		if (q->map.used) {
			q->map.used = false;
			continue;
		}
		cqueues_unmap(q);
		return;
	}
}

void cqueues_mapped(struct mqstore_queue *q)
{
	struct cqueues *c = q->all;

	q->map.at = c->maps_n;
	q->map.used = true;
	c->maps[c->maps_n++] = q;
	if (c->maps_n > c->maps_max)
		evict(c, q);
}

void cqueues_shed(struct cqueues *c)
{
	uint32_t keep = c->maps_n / 2;

	log_warn("the system has no more maps, half of them are given back count=%u (vm.max_map_count)", c->maps_n - keep);
	while (c->maps_n > keep)
		evict(c, NULL);
	c->maps_max = keep > MAPS_FEW ? keep : MAPS_FEW;
}

/* Half of what the system allows is for others: log segments, index files, the process itself. */
static uint32_t maps_bound(int32_t asked)
{
	int64_t max = 0;
	char *text;
	size_t n;

	if (asked > 0)
		return asked < MAPS_FEW ? MAPS_FEW : (uint32_t)asked;
	if (sys_read_file("/proc/sys/vm/max_map_count", 64, &text, &n) < 0)
		return MAPS_DEFAULT;
	if (str_i64(str_trim((struct mq_str){ text, n }), &max) < 0)
		max = 0;
	free(text);
	max /= 2;
	return max > MAPS_DEFAULT || max <= 0 ? MAPS_DEFAULT : max < MAPS_FEW ? MAPS_FEW : (uint32_t)max;
}

/* ---- Table ----------------------------------------------------------------------------------------------------------- */

struct topic *cqueues_topic(struct cqueues *c, struct mq_str name)
{
	struct topic *t = c->last;

	if (t && t->n == name.n && memcmp(t->name, name.p, name.n) == 0)
		return t;
	HASH_FIND(hh, c->topics, name.p, name.n, t);
	if (t)
		c->last = t;
	return t;
}

static struct topic *topic_add(struct cqueues *c, struct mq_str name)
{
	struct topic *t = mem_alloc(sizeof(*t));

	t->name = mem_strndup(name.p, name.n);
	t->n = name.n;
	t->index_hash = index_topic_hash(name);
	t->schedule = str_is(name, "SCHEDULE_TOPIC_XXXX");
	t->lmq = str_starts(name, "%LMQ%");
	c->any_lmq |= t->lmq;
	HASH_ADD_KEYPTR(hh, c->topics, t->name, t->n, t);
	return t;
}

/* A name that comes from the log becomes that of a directory: it shall be one, and no way out. */
static bool is_file_name(struct mq_str s)
{
	return s.n > 0 && s.n <= 255 && !memchr(s.p, '/', s.n) && !memchr(s.p, '\0', s.n) && !str_is(s, ".") && !str_is(s, "..");
}

/* Place of id in the sorted array, or where it would go. */
static int32_t place_of(const struct topic *t, int32_t id)
{
	int32_t lo = 0, hi = t->count;

	if (id < t->count && t->v[id]->id == id)
		return id;
	while (lo < hi) {
		int32_t mid = (lo + hi) / 2;

		if (t->v[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct mqstore_queue *queue_add(struct cqueues *c, struct topic *t, int32_t id, int32_t at)
{
	struct mqstore_queue *q = mem_alloc(sizeof(*q));

	q->all = c;
	q->topic = t;
	q->id = id;
	q->min_for = -1;
	if (t->count == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 4;
		t->v = mem_realloc(t->v, (size_t)t->cap * sizeof(*t->v));
	}
	memmove(t->v + at + 1, t->v + at, (size_t)(t->count - at) * sizeof(*t->v));
	t->v[at] = q;
	t->count++;
	c->count++;
	c->unloaded++;
	return q;
}

struct mqstore_queue *cqueues_get(struct cqueues *c, struct mq_str name, int32_t id, bool create)
{
	struct topic *t = id < 0 ? NULL : cqueues_topic(c, name);
	int32_t at;

	if (!t && (!create || id < 0 || !is_file_name(name)))
		return NULL;
	if (!t)
		t = topic_add(c, name);
	at = place_of(t, id);
	if (at < t->count && t->v[at]->id == id)
		return t->v[at];
	if (!create)
		return NULL;
	return queue_add(c, t, id, at);
}

int cqueues_each(struct cqueues *c, mqstore_queue_cb *cb, void *arg)
{
	struct topic *t, *next;
	int rc = 0;

	HASH_ITER(hh, c->topics, t, next)
		for (int32_t i = 0; i < t->count && rc == 0; i++)
			rc = cb(arg, t->v[i]);
	return rc;
}

void cqueues_forget(struct cqueues *c, struct mqstore_queue *q)
{
	struct topic *t = q->topic;
	int32_t at = place_of(t, q->id);

	cqueues_unmap(q);
	if (q->dirty) {
		TAILQ_REMOVE(&c->dirty, q, to_flush);
		c->dirty_n--;
		c->flushed++;
		q->dirty = false;
	}
	memmove(t->v + at, t->v + at + 1, (size_t)(t->count - at - 1) * sizeof(*t->v));
	t->count--;
	c->count--;
	c->unloaded -= !q->loaded;
	q->loaded = false;
}

/* ---- Directories ----------------------------------------------------------------------------------------------------- */

/* Decimal queue id, or -1. */
static int32_t id_of(const char *name)
{
	int32_t id;

	if (str_i32(str_of(name), &id) < 0 || id < 0 || (name[0] == '0' && name[1]))
		return -1;
	return id;
}

/* The size of the first file tells that of all if it is the configured one; else that of most of the first, for one may be
 * damaged. */
struct sizes {
	int64_t v[SIZES];
	char *path[SIZES];
	int n;
};

static bool seen_enough(const struct cqueues *c, const struct sizes *sizes)
{
	return sizes->n == SIZES || (sizes->n && sizes->v[0] == c->file_bytes);
}

static int note_sizes(const struct cqueues *c, struct sizes *sizes, const char *dir, struct mq_error *err)
{
	char path[SEGMENT_PATH], **names;
	struct stat st;
	size_t n;
	int rc = sys_list(dir, &names, &n);

	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : err_sys(err, rc, "list '%s'", dir);
	for (size_t i = 0; i < n && !seen_enough(c, sizes); i++) {
		if (segment_name(names[i]) < 0)
			continue;
		segment_path(dir, segment_name(names[i]), path);
		if (sys.stat(path, &st) < 0 || st.st_size == 0 || !S_ISREG(st.st_mode))
			continue;
		sizes->path[sizes->n] = mem_strndup(path, strlen(path));
		sizes->v[sizes->n++] = st.st_size;
	}
	free(names);
	return 0;
}

static int judge_sizes(struct cqueues *c, const struct sizes *sizes, bool adopt, struct mq_error *err)
{
	int best = 0, best_n = 0;

	for (int i = 0; i < sizes->n; i++) {
		int same = 0;

		for (int k = 0; k < sizes->n; k++)
			same += sizes->v[k] == sizes->v[i];
		/* Of as many the one that is configured. */
		if (same > best_n || (same == best_n && sizes->v[i] == c->file_bytes)) {
			best = i;
			best_n = same;
		}
	}
	if (sizes->n && adopt && sizes->v[best] % CQ_ENTRY == 0)
		c->file_bytes = sizes->v[best];
	if (sizes->n && sizes->v[best] != c->file_bytes)
		return err_set(err, MQ_EMISMATCH,
			       "'%s' has %lld bytes, the configured size is %lld (mappedFileSizeConsumeQueue): set it to that of the "
			       "files", sizes->path[best], (long long)sizes->v[best], (long long)c->file_bytes);
	return 0;
}

/* `sizes` may be NULL. */
static int scan(struct cqueues *c, const char *root, bool batch, struct sizes *sizes, struct mq_error *err)
{
	char **topics, **ids, dir[SEGMENT_PATH];
	size_t n, m;
	int rc = sys_list(root, &topics, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : err_sys(err, rc, "list '%s'", root);
	for (size_t i = 0; i < n && rc == 0; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", root, topics[i]);
		rc = sys_list(dir, &ids, &m);
		if (rc == -ENOTDIR || rc == -ENOENT) {
			rc = 0;
			continue;
		}
		if (rc < 0) {
			err_sys(err, rc, "list '%s'", dir);
			break;
		}
		for (size_t k = 0; k < m && rc == 0; k++) {
			struct mqstore_queue *q;
			int32_t id = id_of(ids[k]);

			if (id < 0)
				continue;
			q = cqueues_get(c, str_of(topics[i]), id, true);
			q->made = true;
			q->topic->batch |= batch;
			if (sizes && !seen_enough(c, sizes))
				rc = note_sizes(c, sizes, cqueue_dir(q, dir), err);
		}
		free(ids);
	}
	free(topics);
	return rc;
}

int cqueues_open(struct cqueues *c, const char *root, int64_t file_bytes, bool write, bool adopt, int32_t max_maps,
		 const struct commitlog *log, struct mq_error *err)
{
	struct sizes sizes = { .n = 0 };
	int rc;

	memset(c, 0, sizeof(*c));
	TAILQ_INIT(&c->dirty);
	c->log = log;
	c->dir = mem_printf("%s/consumequeue", root);
	c->batch_dir = mem_printf("%s/batchconsumequeue", root);
	c->ext_dir = mem_printf("%s/consumequeue_ext", root);
	c->file_bytes = file_bytes;
	c->write = write;
	c->log_end_at_open = INT64_MAX;
	c->buf_max = BUFFERS_MAX;
	c->maps_max = maps_bound(max_maps);
	c->maps = mem_alloc((c->maps_max + 1) * sizeof(*c->maps));
	rc = scan(c, c->dir, false, &sizes, err);
	if (rc == 0)
		rc = judge_sizes(c, &sizes, adopt, err);
	if (rc == 0)
		rc = scan(c, c->batch_dir, true, NULL, err);
	for (int i = 0; i < sizes.n; i++)
		free(sizes.path[i]);
	if (rc < 0)
		cqueues_close(c);
	return rc;
}

static int forget_files(void *arg, struct mqstore_queue *q)
{
	q->made = false;
	return 0;
}

static int reset_gone(void *arg, struct mqstore_queue *q)
{
	if (!q->made && q->loaded && !q->buf && !q->topic->batch)
		cqueue_reset(q);
	return 0;
}

int cqueues_refresh(struct cqueues *c)
{
	int rc;

	cqueues_each(c, forget_files, NULL);
	rc = scan(c, c->dir, false, NULL, NULL);
	if (rc == 0)
		rc = scan(c, c->batch_dir, true, NULL, NULL);
	cqueues_each(c, reset_gone, NULL);
	return rc;
}

void cqueues_close(struct cqueues *c)
{
	struct topic *t, *next;

	HASH_ITER(hh, c->topics, t, next) {
		HASH_DEL(c->topics, t);
		for (int32_t i = 0; i < t->count; i++)
			cqueue_free(t->v[i]);
		free(t->v);
		free(t->name);
		free(t);
	}
	free(c->maps);
	free(c->dir);
	free(c->batch_dir);
	free(c->ext_dir);
	memset(c, 0, sizeof(*c));
}
