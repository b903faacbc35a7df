/* index.c: the run of index files: which one is written, what waits to be written, what is missing.
 *
 * A put goes: hash the key (the topic's part is known) → ring.  The ring goes, many at once: room in the newest file? → put.
 * No room, and none to be had: the index falls behind at the log offset of the first put that found no place; what that record
 * had put already is taken back, so that `behind` is exact.  From then on records are read from `source` until the end of the
 * log is met, and puts are taken again. */
#define LOG_MODULE "index"
#include "index.h"
#include "index_file.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
	RING = 256,
	STEP_MIN_BYTES = 1 << 20, STEP_MAX_BYTES = 16 << 20,    /* of entries reserved at once */
	CATCH_UP_TEND = 4096,           /* records per index_tend() */
	CATCH_UP_PUT = 2,               /* records per put: twice as fast as the log can grow */
	CATCH_UP_BATCH = 64,
	RETRY_MS = 1000, REPORT_MS = 60000,
	WALK_MAX = 4 * 1000 * 1000,     /* entries looked at by one query: some 100 ms */
};

struct index {
	char *dir;
	int32_t slots, entries;
	bool read_only, adopt_sizes, abnormal;
	int64_t checkpoint_ms;
	index_source_cb *source;
	void *source_arg;

	struct index_file **file;       /* oldest first; the last one is written */
	size_t n, cap;
	struct index_file *spare;       /* made ahead; becomes file[n] when the last is full */
	int32_t step;                   /* entries reserved at once */

	struct index_entry ring[RING];
	size_t waiting;

	int64_t done_off;               /* log offset of the newest record that is in, ring included; -1: none */
	int64_t key_off, key_ms;        /* of the newest one that has a key; 0, 0: none */
	int64_t behind;                 /* -1: nothing is missing */
	unsigned falls;                 /* how often it fell behind */
	int64_t whole_off;              /* when catching up: this record is in already; -1: none */
	int32_t credit;                 /* records that puts have earned for catching up */

	int64_t retry_at, report_at;    /* monotonic ms */
	bool new_name;                  /* a file was made since the directory was synced */
	int64_t flushed_ms;
};

static struct index_file *last(const struct index *ix) { return ix->n ? ix->file[ix->n - 1] : NULL; }

static void add_file(struct index *ix, struct index_file *f)
{
	if (ix->n == ix->cap) {
		ix->cap = ix->cap ? ix->cap * 2 : 8;
		ix->file = mem_realloc(ix->file, ix->cap * sizeof(*ix->file));
	}
	ix->file[ix->n++] = f;
}

static void remove_file(struct index *ix, size_t i)
{
	struct index_file *f = ix->file[i];
	int rc = sys.unlink(f->path);
	if (rc < 0 && rc != -ENOENT)
		log_warn("cannot remove file path=%s error=%s", f->path, mq_strerror(rc));
	index_file_close(f);
	memmove(ix->file + i, ix->file + i + 1, (--ix->n - i) * sizeof(*ix->file));
}

/* ---- Opening --------------------------------------------------------------------------------------------------------- */

enum { NAME_DIGITS = 17 };

static bool parse_name(const char *name, int64_t *v)
{
	struct mq_str s = str_of(name);
	return s.n == NAME_DIGITS && name[0] != '-' && name[0] != '+' && str_i64(s, v) == 0;
}

static bool have_file(const struct index *ix, int64_t name)
{
	for (size_t i = 0; i < ix->n; i++)
		if (ix->file[i]->name == name)
			return true;
	return false;
}

static int load_file(struct index *ix, const char *text, int64_t name, struct mq_error *err)
{
	struct index_file *f;
	char *path = mem_printf("%s/%s", ix->dir, text);
	int rc = index_file_open(&f, path, name, ix->slots, ix->entries, !ix->read_only, ix->adopt_sizes);
	if (rc == 0) {
		add_file(ix, f);
		ix->abnormal |= f->suspect;
	} else if (ix->read_only) {
		log_warn("file left out path=%s error=%s", path, mq_strerror(rc));
		rc = 0;
	} else if (rc == MQ_ENOTFOUND) {
		log_info("half-made file removed path=%s", path);
		rc = sys.unlink(path);
		if (rc < 0)
			err_sys(err, rc, "remove half-made index file '%s'", path);
	} else if (rc == MQ_EMISMATCH) {
		err_set(err, rc, "index file '%s' was not made with maxHashSlotNum=%d and maxIndexNum=%d: set the values it was "
			"made with, or remove the directory (the index is then built again from the log)",
			path, ix->slots, ix->entries);
	} else {
		err_sys(err, rc, "index file '%s'", path);
	}
	free(path);
	return rc;
}

static int load_files(struct index *ix, struct mq_error *err)
{
	char **names;
	size_t n;
	int rc = sys_list(ix->dir, &names, &n);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(err, rc, "list index directory '%s'", ix->dir);
	for (size_t i = 0; i < n && rc == 0; i++) {
		int64_t name;
		if (!parse_name(names[i], &name))
			log_warn("not an index file, left alone path=%s/%s", ix->dir, names[i]);
		else if (!have_file(ix, name))
			rc = load_file(ix, names[i], name, err);
	}
	free(names);
	return rc;
}

/* Files that never held an entry are of no use, but the newest may be the one to be written next. */
static void drop_empty_files(struct index *ix)
{
	for (size_t i = ix->n; i-- > 0;)
		if (index_file_empty(ix->file[i]) && i + 1 < ix->n)
			remove_file(ix, i);
}

/* Offsets only grow from file to file: behind a file that is not full nothing can be trusted, it is read from the log again. */
static void repair_files(struct index *ix)
{
	for (size_t i = 0; i < ix->n; i++) {
		struct index_file *f = ix->file[i];
		if (index_file_full(f) && f->end_ms <= ix->checkpoint_ms)
			continue;
		int32_t was = f->count;
		int rc = index_file_repair(f);
		if (rc < 0)
			log_warn("cannot repair file, made anew path=%s error=%s", f->path, mq_strerror(rc));
		else if (f->count != was)
			log_warn("file cut path=%s entries=%d kept=%d", f->path, was - 1, f->count - 1);
		size_t keep = i + (rc == 0);
		while ((rc < 0 || !index_file_full(f)) && ix->n > keep)
			remove_file(ix, ix->n - 1);
	}
}

static void note_end(struct index *ix)
{
	ix->done_off = -1;
	ix->key_off = ix->key_ms = 0;
	for (size_t i = ix->n; i-- > 0 && ix->done_off < 0;) {
		struct index_file *f = ix->file[i];
		if (ix->read_only)
			index_file_look(f);
		if (!index_file_empty(f)) {
			ix->done_off = ix->key_off = f->end_off;
			ix->key_ms = f->end_ms;
		}
	}
}

int index_open(struct index **out, const struct index_opt *opt, struct mq_error *err)
{
	struct index *ix = mem_alloc(sizeof(*ix));
	ix->dir = mem_strdup(opt->dir);
	ix->slots = opt->slots;
	ix->entries = opt->entries;
	ix->read_only = opt->read_only;
	ix->adopt_sizes = opt->adopt_sizes;
	ix->abnormal = opt->abnormal;
	ix->checkpoint_ms = opt->checkpoint_ms;
	ix->source = opt->source;
	ix->source_arg = opt->source_arg;
	ix->behind = ix->whole_off = -1;
	ix->step = STEP_MIN_BYTES / INDEX_ENTRY;
	*out = NULL;
	int rc = 0;
	if (opt->slots < 1 || opt->entries < 2 || index_file_bytes(opt->slots, opt->entries) > INT32_MAX)
		rc = err_set(err, MQ_EINVAL, "maxHashSlotNum=%d and maxIndexNum=%d: want at least 1 and 2, and 40 + 4 * slots "
			     "+ 20 * entries below 2 GiB", opt->slots, opt->entries);
	if (rc == 0)
		rc = load_files(ix, err);
	if (rc < 0) {
		index_close(ix, NULL);
		return rc;
	}
	if (!ix->read_only) {
		if (ix->abnormal)
			repair_files(ix);
		drop_empty_files(ix);
		for (size_t i = 0; i < ix->n; i++)
			if (index_file_full(ix->file[i]) && ix->file[i]->end_ms <= ix->checkpoint_ms)
				ix->flushed_ms = ix->file[i]->end_ms;
	}
	note_end(ix);
	*out = ix;
	return 0;
}

/* Take back everything at or beyond log_off. */
static void cut(struct index *ix, int64_t log_off)
{
	for (size_t i = ix->n; i-- > 0;) {
		struct index_file *f = ix->file[i];
		index_file_cut(f, log_off);
		if (!index_file_empty(f))
			break;
		if (i + 1 == ix->n && !f->syncing)
			remove_file(ix, i);
	}
	note_end(ix);
}

int index_log(struct index *ix, int64_t min, int64_t max, struct mq_error *err)
{
	if (ix->read_only)
		return 0;
	if (ix->done_off >= max) {
		log_warn("log ends before the index, entries taken back log_end=%lld index_end=%lld", (long long)max,
			 (long long)ix->done_off);
		cut(ix, max);
	}
	ix->whole_off = -1;
	ix->behind = ix->done_off;
	if (ix->behind >= 0 && !ix->abnormal) {
		ix->whole_off = ix->behind;
	} else if (ix->behind >= 0) {
		/* The last record may have had more keys than were written. */
		cut(ix, ix->behind);
	}
	if (ix->behind < min)
		ix->behind = min;
	if (ix->behind >= max || ix->source == NULL)
		ix->behind = -1;
	return 0;
}

/* ---- Falling behind and catching up ---------------------------------------------------------------------------------- */

static bool stalled(const struct index *ix) { return ix->retry_at && clock_mono_ms() < ix->retry_at; }

static void stall(struct index *ix, const char *what, int rc)
{
	int64_t now = clock_mono_ms();
	ix->retry_at = now + RETRY_MS;
	if (ix->report_at && now < ix->report_at)
		return;
	ix->report_at = now + REPORT_MS;
	log_error("%s, messages are taken but not indexed until this is mended dir=%s error=%s", what, ix->dir, mq_strerror(rc));
}

static void fall_behind(struct index *ix, int64_t log_off)
{
	ix->falls++;
	ix->waiting = 0;
	ix->whole_off = -1;
	ix->behind = log_off;
	cut(ix, log_off); /* other keys of the same record */
}

/* Names grow: files are ordered by name, and a clock set back or the end of summer time must not change the order. */
static int64_t next_name(const struct index *ix)
{
	int64_t ms = clock_wall_ms(), name;
	time_t t = ms / 1000;
	struct tm tm;
	localtime_r(&t, &tm);
	name = tm.tm_year + 1900;
	name = name * 100 + tm.tm_mon + 1;
	name = name * 100 + tm.tm_mday;
	name = name * 100 + tm.tm_hour;
	name = name * 100 + tm.tm_min;
	name = name * 100 + tm.tm_sec;
	name = name * 1000 + ms % 1000;
	return ix->n && name <= last(ix)->name ? last(ix)->name + 1 : name;
}

static int make_spare(struct index *ix)
{
	int rc = sys_mkdir_all(ix->dir);
	if (rc == 0) {
		int64_t name = next_name(ix);
		char *path = mem_printf("%s/%0*lld", ix->dir, NAME_DIGITS, (long long)name);
		rc = index_file_create(&ix->spare, path, name, ix->slots, ix->entries);
		free(path);
	}
	if (rc < 0) {
		stall(ix, "cannot make an index file", rc);
		return rc;
	}
	ix->retry_at = 0;
	ix->new_name = true;
	/* Not only when it is taken into use: should we crash before, the peer sees from it how far the index goes. */
	if (last(ix))
		index_file_follow(ix->spare, last(ix));
	return 0;
}

static int reserve_step(struct index *ix, struct index_file *f)
{
	int64_t upto = (int64_t)f->count + ix->step;
	int rc = index_file_reserve(f, upto > f->entries ? f->entries : (int32_t)upto);
	if (rc < 0)
		stall(ix, "cannot reserve space for the index", rc);
	else
		ix->retry_at = 0;
	return rc;
}

/* The file to write, with at least one entry reserved; NULL if there is none to be had now. */
static struct index_file *room(struct index *ix)
{
	struct index_file *f = last(ix);
	if (f == NULL || index_file_full(f)) {
		if (ix->spare == NULL && (stalled(ix) || make_spare(ix) < 0))
			return NULL;
		if (f)
			index_file_follow(ix->spare, f);
		add_file(ix, ix->spare);
		ix->spare = NULL;
		f = last(ix);
	}
	if (f->count < f->reserved)
		return f;
	if (stalled(ix))
		return NULL;
	return reserve_step(ix, f) < 0 ? NULL : f;
}

static void write_ring(struct index *ix)
{
	for (size_t done = 0; done < ix->waiting;) {
		struct index_file *f = room(ix);
		if (f == NULL) {
			fall_behind(ix, ix->ring[done].log_off);
			return;
		}
		done += index_file_put(f, ix->ring + done, ix->waiting - done);
	}
	ix->waiting = 0;
}

static inline void put_key(struct index *ix, const struct index_record *r, struct mq_str key)
{
	int32_t h = str_java_hash_more(r->topic_hash, key);
	/* compat: absolute value, and 0 for the one number that has none. */
	h = h == INT32_MIN ? 0 : h < 0 ? -h : h;
	ix->ring[ix->waiting++] = (struct index_entry){ h, r->log_off, r->store_ms };
	if (ix->waiting == RING)
		write_ring(ix);
}

/* May end with the index behind at or before this record. */
static void put_record(struct index *ix, const struct index_record *r)
{
	unsigned falls = ix->falls;
	size_t keys = r->uniq_key.n != 0;
	if (keys)
		put_key(ix, r, r->uniq_key);
	for (size_t at = 0; at < r->keys.n && ix->falls == falls;) {
		const char *p = r->keys.p + at, *blank = memchr(p, ' ', r->keys.n - at);
		size_t n = blank ? (size_t)(blank - p) : r->keys.n - at;
		if (n)
			put_key(ix, r, (struct mq_str){ p, n });
		keys += n != 0;
		at += n + 1;
	}
	if (ix->falls != falls)
		return;
	ix->done_off = r->log_off;
	if (keys) {
		ix->key_off = r->log_off;
		ix->key_ms = r->store_ms;
	}
}

static void catch_up(struct index *ix, int records)
{
	while (ix->behind >= 0 && records-- > 0 && !stalled(ix)) {
		struct index_record r = { 0 };
		int64_t from = ix->behind;
		unsigned falls = ix->falls;
		int rc = ix->source(ix->source_arg, from, &r);
		if (rc == 0) {
			ix->behind = ix->whole_off = -1;
			if (falls)
				log_info("complete again dir=%s log_off=%lld", ix->dir, (long long)from);
			return;
		}
		if (rc < 0 || r.next_off <= from) {
			stall(ix, "cannot read the log to catch up (with the directory removed the index is built anew)",
			      rc < 0 ? rc : MQ_ECORRUPT);
			return;
		}
		if (!r.skip && r.log_off != ix->whole_off)
			put_record(ix, &r);
		if (ix->falls == falls)
			ix->behind = r.next_off;
	}
}

/* ---- The common way -------------------------------------------------------------------------------------------------- */

int32_t index_topic_hash(struct mq_str topic)
{
	return str_java_hash_more(str_java_hash(topic), MQ_STR("#"));
}

void index_put(struct index *ix, const struct index_record *r)
{
	if (__builtin_expect(ix->behind >= 0, 0)) {
		ix->credit += CATCH_UP_PUT;
		if (ix->credit >= CATCH_UP_BATCH) {
			ix->credit = 0;
			catch_up(ix, CATCH_UP_BATCH);
		}
		if (ix->behind >= 0)
			return;
	}
	if (r->log_off > ix->done_off && !r->skip)
		put_record(ix, r);
}

int64_t index_behind(const struct index *ix) { return ix->behind; }

/* Reserve the next step when half of this one is used, and the next file when this one is nearly full. */
static void reserve_ahead(struct index *ix)
{
	struct index_file *f = last(ix);
	if (f == NULL || stalled(ix))
		return;
	int64_t left = (int64_t)f->reserved - f->count;
	if (f->reserved < f->entries && left < ix->step / 2) {
		if (ix->step < STEP_MAX_BYTES / INDEX_ENTRY && f->count > 4 * ix->step)
			ix->step *= 2;
		reserve_step(ix, f);
	} else if (f->reserved == f->entries && left < f->entries / 16 && ix->spare == NULL) {
		make_spare(ix);
	}
}

bool index_tend(struct index *ix)
{
	if (ix->read_only)
		return false;
	write_ring(ix);
	if (ix->behind >= 0) {
		catch_up(ix, CATCH_UP_TEND);
		write_ring(ix);
	}
	reserve_ahead(ix);
	return ix->behind >= 0 && !stalled(ix);
}

int index_query(struct index *ix, struct mq_str topic, struct mq_str key, int64_t begin_ms, int64_t end_ms,
		index_hit_cb *cb, void *arg)
{
	int32_t h = str_java_hash_more(index_topic_hash(topic), key);
	int64_t steps = WALK_MAX;
	int rc = 0;
	h = h == INT32_MIN ? 0 : h < 0 ? -h : h;
	if (!ix->read_only)
		write_ring(ix);
	for (size_t i = ix->n; i-- > 0 && rc == 0 && steps > 0;) {
		struct index_file *f = ix->file[i];
		if (ix->read_only)
			index_file_look(f);
		if (index_file_empty(f))
			continue;
		/* A clock that was set back may have left an end before the begin. */
		int64_t from = f->begin_ms < f->end_ms ? f->begin_ms : f->end_ms;
		int64_t to = f->begin_ms < f->end_ms ? f->end_ms : f->begin_ms;
		if (begin_ms <= to && end_ms >= from)
			rc = index_file_find(f, h, begin_ms, end_ms, &steps, cb, arg);
		if (from < begin_ms)
			break;
	}
	return rc;
}

void index_last(const struct index *ix, int64_t *ms, int64_t *log_off)
{
	*ms = ix->key_ms;
	*log_off = ix->key_off;
}

void index_trim(struct index *ix, int64_t log_off)
{
	while (ix->n > 1 && ix->file[0]->end_off < log_off && !ix->file[0]->syncing)
		remove_file(ix, 0);
}

int index_refresh(struct index *ix)
{
	struct stat st;
	for (size_t i = ix->n; i-- > 0;) {
		if (sys.stat(ix->file[i]->path, &st) == 0)
			continue;
		index_file_close(ix->file[i]);
		memmove(ix->file + i, ix->file + i + 1, (--ix->n - i) * sizeof(*ix->file));
	}
	int rc = load_files(ix, NULL);
	note_end(ix);
	return rc;
}

int64_t index_bytes(const struct index *ix)
{
	int64_t sum = ix->spare ? (int64_t)ix->spare->bytes : 0;
	for (size_t i = 0; i < ix->n; i++)
		sum += (int64_t)ix->file[i]->bytes;
	return sum;
}

/* ---- Flushing and closing -------------------------------------------------------------------------------------------- */

int index_flush_begin(struct index *ix, bool all, struct index_flush *job)
{
	*job = (struct index_flush){ .full_ms = ix->flushed_ms };
	if (ix->read_only)
		return 0;
	if (all)
		write_ring(ix);
	for (size_t i = 0; i < ix->n && job->n < INDEX_FLUSH_FILES; i++) {
		struct index_file *f = ix->file[i];
		bool full = index_file_full(f);
		if (f->dirty && (full || all)) {
			f->dirty = false;
			f->syncing = true;
			job->fd[job->n++] = f->fd;
		}
		if (full)
			job->full_ms = f->end_ms;
	}
	if (job->n && ix->new_name) {
		job->sync_dir = ix->dir;
		ix->new_name = false;
	}
	return job->n;
}

void index_flush_run(struct index_flush *job)
{
	for (int i = 0; i < job->n && job->rc == 0; i++)
		job->rc = sys.fdatasync(job->fd[i]);
	if (job->sync_dir && job->rc == 0)
		job->rc = sys_sync_dir(job->sync_dir);
}

int index_flush_end(struct index *ix, struct index_flush *job, struct mq_error *err)
{
	for (size_t i = 0; i < ix->n; i++)
		ix->file[i]->syncing = false;
	if (job->rc < 0)
		return err_sys(err, job->rc, "sync index files in '%s'", ix->dir);
	ix->flushed_ms = job->full_ms;
	return 0;
}

int64_t index_flushed_ms(const struct index *ix) { return ix->flushed_ms; }

int index_close(struct index *ix, struct mq_error *err)
{
	int rc = 0;
	struct index_flush job;
	if (ix == NULL)
		return 0;
	while (rc == 0 && index_flush_begin(ix, true, &job) > 0) {
		index_flush_run(&job);
		rc = index_flush_end(ix, &job, err);
	}
	if (ix->spare) {
		sys.unlink(ix->spare->path);
		index_file_close(ix->spare);
	}
	for (size_t i = 0; i < ix->n; i++)
		index_file_close(ix->file[i]);
	free(ix->file);
	free(ix->dir);
	free(ix);
	return rc;
}
