/* index.c: what waits to be written to the index, what is missing, what is found.
 *
 * A put goes: hash the key (the topic's part is known) → ring.  The ring goes, many at once: room in the newest file? → put.
 * No room, and none to be had: the index falls behind at the log offset of the first put that found no place; what that record
 * had put already is taken back, so that `behind` is exact.  From then on records are read from `source` until the end of the
 * log is met, and puts are taken again. */
#define LOG_MODULE "index"
#include "index.h"
#include "index_files.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include <errno.h>
#include <stdlib.h>

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
	struct index_files files;
	bool abnormal;
	index_source_cb *source;
	void *source_arg;

	struct index_file **doomed;     /* removed, but for their blocks */
	size_t doomed_n;

	struct index_file *spare;       /* made ahead; joins the files when the last is full */
	int32_t step;                   /* entries reserved at once */

	struct index_entry ring[RING];
	size_t waiting;

	int64_t done_off;               /* log offset of the newest record that is in, ring included; -1: none */
	int64_t key_off, key_ms;        /* of the newest one that has a key; 0, 0: none */
	int64_t behind;                 /* -1: nothing is missing */
	unsigned falls;                 /* how often it fell behind */
	int64_t whole_off;              /* when catching up: this record is in already; -1: none */
	int32_t credit;                 /* records that puts have earned for catching up */

	struct cold_guard *guard;       /* NULL: queries wait for the disk */

	int64_t retry_at, report_at;    /* monotonic ms */
	int64_t flushed_ms;
};

/* ---- Opening --------------------------------------------------------------------------------------------------------- */

static void note_end(struct index *ix)
{
	ix->done_off = -1;
	ix->key_off = ix->key_ms = 0;
	for (size_t i = ix->files.n; i-- > 0 && ix->done_off < 0;) {
		struct index_file *f = ix->files.v[i];
		if (ix->files.read_only)
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
	ix->files = (struct index_files){
		.dir = mem_strdup(opt->dir), .slots = opt->slots, .entries = opt->entries, .read_only = opt->read_only,
		.adopt_sizes = opt->adopt_sizes,
	};
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
		rc = index_files_load(&ix->files, err);
	if (rc < 0) {
		index_close(ix, NULL);
		return rc;
	}
	if (!opt->read_only) {
		ix->abnormal = opt->abnormal || ix->files.suspect;
		if (ix->abnormal)
			index_files_repair(&ix->files, opt->checkpoint_ms);
		index_files_drop_empty(&ix->files);
		for (size_t i = 0; i < ix->files.n; i++) {
			struct index_file *f = ix->files.v[i];
			if (index_file_full(f) && f->end_ms <= opt->checkpoint_ms)
				ix->flushed_ms = f->end_ms;
		}
	}
	note_end(ix);
	*out = ix;
	return 0;
}

/* Take back everything at or beyond log_off. */
static void cut(struct index *ix, int64_t log_off)
{
	index_files_cut(&ix->files, log_off);
	note_end(ix);
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
	log_error("%s, messages are taken but not indexed until this is mended dir=%s error=%s", what, ix->files.dir, mq_strerror(rc));
}

static void fall_behind(struct index *ix, int64_t log_off)
{
	ix->falls++;
	ix->waiting = 0;
	ix->whole_off = -1;
	ix->behind = log_off;
	cut(ix, log_off); /* other keys of the same record */
}

static int make_spare(struct index *ix)
{
	int rc = index_files_make(&ix->files, &ix->spare);
	if (rc < 0)
		stall(ix, "cannot make an index file", rc);
	else
		ix->retry_at = 0;
	return rc;
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
	struct index_file *f = index_files_last(&ix->files);
	if (f == NULL || index_file_full(f)) {
		if (ix->spare == NULL && (stalled(ix) || make_spare(ix) < 0))
			return NULL;
		if (f)
			index_file_follow(ix->spare, f);
		index_files_add(&ix->files, ix->spare);
		ix->spare = NULL;
		f = index_files_last(&ix->files);
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
		if (f->rc < 0) {
			stall(ix, "cannot reserve space for the index", f->rc);
			fall_behind(ix, ix->ring[done].log_off);
			return;
		}
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
				log_info("complete again dir=%s log_off=%lld", ix->files.dir, (long long)from);
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

int index_log(struct index *ix, int64_t min, int64_t max, struct mq_error *err)
{
	if (ix->files.read_only)
		return 0;
	write_ring(ix);
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
	catch_up(ix, CATCH_UP_BATCH); /* after an orderly stop that is all of it */
	return 0;
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
	struct index_file *f = index_files_last(&ix->files);
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
	if (ix->files.read_only)
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
	catch_up(ix, CATCH_UP_TEND);
	write_ring(ix);
	for (size_t i = ix->files.n; i-- > 0 && rc == 0 && steps > 0;) {
		struct index_file *f = ix->files.v[i];
		if (ix->files.read_only)
			index_file_look(f);
		if (index_file_empty(f))
			continue;
		/* A clock that was set back may have left an end before the begin. */
		int64_t from = f->begin_ms < f->end_ms ? f->begin_ms : f->end_ms;
		int64_t to = f->begin_ms < f->end_ms ? f->end_ms : f->begin_ms;
		if (begin_ms <= to && end_ms >= from)
			rc = index_file_find(f, h, begin_ms, end_ms, &steps, ix->guard, cb, arg);
		if (from < begin_ms)
			break;
	}
	return rc;
}

void index_guard(struct index *ix, struct cold_guard *g) { ix->guard = g; }

void index_last(const struct index *ix, int64_t *ms, int64_t *log_off)
{
	*ms = ix->key_ms;
	*log_off = ix->key_off;
}

void index_trim(struct index *ix, int64_t log_off)
{
	while (ix->files.n > 1 && ix->files.v[0]->end_off < log_off && !ix->files.v[0]->syncing) {
		ix->doomed = mem_realloc(ix->doomed, (ix->doomed_n + 1) * sizeof(*ix->doomed));
		ix->doomed[ix->doomed_n++] = index_files_unlink(&ix->files, 0);
	}
}

int index_refresh(struct index *ix)
{
	index_files_forget_gone(&ix->files);
	int rc = index_files_load(&ix->files, NULL);
	note_end(ix);
	return rc;
}

int64_t index_bytes(const struct index *ix)
{
	int64_t sum = ix->spare ? (int64_t)ix->spare->bytes : 0;
	for (size_t i = 0; i < ix->files.n; i++)
		sum += (int64_t)ix->files.v[i]->bytes;
	return sum;
}

/* ---- Flushing and closing -------------------------------------------------------------------------------------------- */

int index_flush_begin(struct index *ix, bool all, struct index_flush *job)
{
	*job = (struct index_flush){ .full_ms = ix->flushed_ms, .doomed = ix->doomed, .doomed_n = ix->doomed_n };
	ix->doomed = NULL;
	ix->doomed_n = 0;
	if (ix->files.read_only)
		return 0;
	if (all)
		write_ring(ix);
	for (size_t i = 0; i < ix->files.n && job->n < INDEX_FLUSH_FILES; i++) {
		struct index_file *f = ix->files.v[i];
		bool full = index_file_full(f);
		if (f->dirty && (full || all)) {
			f->dirty = false;
			f->syncing = true;
			job->fd[job->n++] = f->fd;
		}
		if (full)
			job->full_ms = f->end_ms;
	}
	if (job->n && ix->files.new_name) {
		job->sync_dir = ix->files.dir;
		ix->files.new_name = false;
	}
	return job->n;
}

void index_flush_run(struct index_flush *job)
{
	for (int i = 0; i < job->n && job->rc == 0; i++)
		job->rc = sys.fdatasync(job->fd[i]);
	if (job->sync_dir && job->rc == 0)
		job->rc = sys_sync_dir(job->sync_dir);
	index_flush_bury(job);
}

void index_flush_bury(struct index_flush *job)
{
	for (size_t i = 0; i < job->doomed_n; i++)
		index_file_close(job->doomed[i]);
	free(job->doomed);
	job->doomed = NULL;
	job->doomed_n = 0;
}

int index_flush_end(struct index *ix, struct index_flush *job, struct mq_error *err)
{
	for (size_t i = 0; i < ix->files.n; i++)
		ix->files.v[i]->syncing = false;
	if (job->rc < 0)
		return err_sys(err, job->rc, "sync index files in '%s'", ix->files.dir);
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
	index_flush_bury(&job);
	if (ix->spare) {
		sys.unlink(ix->spare->path);
		index_file_close(ix->spare);
	}
	index_files_close(&ix->files);
	free(ix);
	return rc;
}
