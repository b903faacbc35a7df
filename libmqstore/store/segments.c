/* segments.c: an ordered run of segments in one directory.  Knows order and holes; records and entries are known to the owners. */
#include "segments.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "store"
enum { STEP_MAX = 16 << 20, STEP_PARTS = 4, PAGE = 4096, MAPS = 8192 };

static struct segment *segment_new(int64_t start, int64_t size)
{
	struct segment *g = mem_alloc(sizeof(*g));

	g->start = start;
	g->size = size;
	return g;
}

static void put_at(struct segments *run, size_t i, struct segment *g)
{
	if (run->n == run->cap) {
		run->cap = run->cap ? run->cap * 2 : 16;
		run->v = mem_realloc(run->v, run->cap * sizeof(*run->v));
	}
	memmove(run->v + i + 1, run->v + i, (run->n - i) * sizeof(*run->v));
	run->v[i] = g;
	run->n++;
}

static struct segment *take_at(struct segments *run, size_t i)
{
	struct segment *g = run->v[i];

	memmove(run->v + i, run->v + i + 1, (run->n - i - 1) * sizeof(*run->v));
	run->n--;
	run->hint = NULL;
	return g;
}

static void forget(struct segments *run, struct segment *g)
{
	run->mapped -= g->p != NULL;
	segment_unmap(g);
	free(g);
}

/* One file of the directory.  1 = belongs to the run with *st filled, 0 = pass over, or an error. */
static int look(struct segments *run, const char *name, bool last, bool adopt, struct mq_error *err)
{
	int64_t start = segment_name(name);
	char path[SEGMENT_PATH];
	struct stat st;
	int rc;

	if (start < 0) {
		log_warn("foreign file left alone dir=%s file=%s", run->dir, name);
		return 0;
	}
	segment_path(run->dir, start, path);
	rc = sys.stat(path, &st);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(err, rc, "look at '%s'", path);
	if (S_ISDIR(st.st_mode))
		return 0;
	if (st.st_size == 0 && last) {
		if (run->write)
			sys.unlink(path);
		return 0;
	}
	if (adopt && run->n == 0)
		run->size = st.st_size;
	if (st.st_size != run->size || run->size == 0)
		return err_set(err, MQ_EMISMATCH, "'%s' has %lld bytes, the configured size is %lld: set the size to that of the "
						   "files or move the file away", path, (long long)st.st_size, (long long)run->size);
	return 1;
}

int segments_open(struct segments *run, const char *dir, int64_t size, bool write, bool adopt, struct mq_error *err)
{
	char **names;
	size_t n;
	int rc;

	memset(run, 0, sizeof(*run));
	run->dir = mem_strdup(dir);
	run->size = size;
	run->write = write;
	run->max_maps = MAPS;
	run->keep = INT64_MAX;
	rc = sys_list(dir, &names, &n);
	if (rc == -ENOENT) {
		n = 0;
		names = NULL;
		rc = 0;
	} else if (rc < 0) {
		err_sys(err, rc, "list '%s'", dir);
		segments_close(run);
		return rc;
	}
	for (size_t i = 0; i < n; i++) {
		rc = look(run, names[i], i + 1 == n, adopt, err);
		if (rc < 0)
			break;
		if (rc == 1 && run->n && segment_name(names[i]) < segments_end(run)) {
			rc = err_set(err, MQ_ECORRUPT, "'%s/%s' begins inside of the file before it: move one of them away", dir,
				     names[i]);
			break;
		}
		if (rc == 1)
			put_at(run, run->n, segment_new(segment_name(names[i]), run->size));
	}
	free(names);
	if (rc < 0) {
		segments_close(run);
		return rc;
	}
	run->step = run->size / STEP_PARTS / PAGE * PAGE;
	run->step = run->step > STEP_MAX ? STEP_MAX : run->step < PAGE ? PAGE : run->step;
	return 0;
}

void segments_close(struct segments *run)
{
	while (run->n)
		forget(run, take_at(run, run->n - 1));
	if (run->ahead)
		forget(run, run->ahead);
	segments_bury(run->doomed, run->doomed_n);
	free(run->v);
	free(run->dir);
	memset(run, 0, sizeof(*run));
}

/* Number of segments that start at or before off. */
static size_t upto(const struct segments *run, int64_t off)
{
	size_t lo = 0, hi = run->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (run->v[mid]->start <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct segment *segments_at(struct segments *run, int64_t off)
{
	struct segment *g = run->hint;
	size_t i;

	if (g && off >= g->start && off - g->start < g->size)
		return g;
	i = upto(run, off);
	if (i == 0)
		return NULL;
	g = run->v[i - 1];
	if (off - g->start >= g->size)
		return NULL;
	run->hint = g;
	return g;
}

struct segment *segments_behind(struct segments *run, int64_t off)
{
	size_t i = off > 0 ? upto(run, off - 1) : 0;

	return i < run->n ? run->v[i] : NULL;
}

uint8_t *segments_bytes(struct segments *run, struct segment *g)
{
	int rc;

	g->used = true;
	if (g->p)
		return g->p;
	rc = segment_map(g, run->dir, run->write);
	if (rc == -ENOMEM && run->mapped) {
		size_t max = run->max_maps;

		run->max_maps = run->mapped / 2;
		segments_shed(run);
		run->max_maps = max;
		rc = segment_map(g, run->dir, run->write);
	}
	if (rc < 0) {
		run->map_rc = rc;
		log_error("cannot map file=%s/%020lld reason=\"%s\"", run->dir, (long long)g->start, mq_strerror(rc));
		return NULL;
	}
	run->mapped++;
	return g->p;
}

static int make(struct segments *run, int64_t start, struct segment **out)
{
	struct segment *g = segment_new(start, run->size);
	char path[SEGMENT_PATH];
	int rc = segment_file_make(segment_path(run->dir, start, path), run->size, run->step, &g->p);

	if (rc < 0) {
		free(g);
		return rc;
	}
	run->mapped++;
	g->reserved = run->step < run->size ? run->step : run->size;
	g->fresh = true;
	*out = g;
	return 0;
}

int segments_add(struct segments *run, int64_t start, struct segment **g)
{
	int rc = 0;

	if (run->ahead && run->ahead->start == start) {
		*g = run->ahead;
		run->ahead = NULL;
	} else {
		rc = make(run, start, g);
	}
	if (rc == 0)
		put_at(run, run->n, *g);
	return rc;
}

int segments_make_ahead(struct segments *run, int64_t start)
{
	if (run->ahead && run->ahead->start == start)
		return 0;
	segments_drop_ahead(run);
	return make(run, start, &run->ahead);
}

void segments_drop_ahead(struct segments *run)
{
	char path[SEGMENT_PATH];

	if (!run->ahead)
		return;
	sys.unlink(segment_path(run->dir, run->ahead->start, path));
	forget(run, run->ahead);
	run->ahead = NULL;
}

int segments_cut(struct segments *run, int64_t end)
{
	char path[SEGMENT_PATH];
	int n = 0, rc;

	while (run->n && run->v[run->n - 1]->start > end) {
		rc = sys.unlink(segment_path(run->dir, run->v[run->n - 1]->start, path));
		if (rc < 0 && rc != -ENOENT)
			return rc;
		forget(run, take_at(run, run->n - 1));
		n++;
	}
	return n;
}

int segments_drop(struct segments *run, size_t i)
{
	struct segment *g = run->v[i];
	char path[SEGMENT_PATH];
	int rc;

	/* While it is mapped, removing the name is cheap: the blocks go when the map goes. */
	segments_bytes(run, g);
	rc = sys.unlink(segment_path(run->dir, g->start, path));
	if (rc < 0 && rc != -ENOENT)
		return rc;
	take_at(run, i);
	run->mapped -= g->p != NULL;
	run->doomed = mem_realloc(run->doomed, (run->doomed_n + 1) * sizeof(*run->doomed));
	run->doomed[run->doomed_n++] = g;
	return 0;
}

struct segment **segments_take_doomed(struct segments *run, size_t *n)
{
	struct segment **v = run->doomed;

	*n = run->doomed_n;
	run->doomed = NULL;
	run->doomed_n = 0;
	return v;
}

void segments_bury(struct segment **v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		segment_unmap(v[i]);
		free(v[i]);
	}
	free(v);
}

void segments_shed(struct segments *run)
{
	for (int round = 0; round < 2 && run->mapped > run->max_maps; round++)
		for (size_t i = 0; i < run->n && run->mapped > run->max_maps; i++) {
			struct segment *g = run->v[i];

			if (!g->p || g->pins || g->start + g->size > run->keep)
				continue;
			if (g->used) {
				g->used = false;
			} else {
				segment_unmap(g);
				run->mapped--;
			}
		}
}

int segments_refresh(struct segments *run)
{
	size_t n, at = 0;
	char **names;
	int rc = sys_list(run->dir, &names, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);

		if (start < 0)
			continue;
		while (at < run->n && run->v[at]->start < start)
			forget(run, take_at(run, at));
		if (at == run->n || run->v[at]->start != start) {
			/* A size that does not fit shows when it is mapped; one of length 0 is about to be made. */
			if (look(run, names[i], i + 1 == n, false, NULL) != 1)
				continue;
			put_at(run, at, segment_new(start, run->size));
		}
		at++;
	}
	while (at < run->n)
		forget(run, take_at(run, run->n - 1));
	free(names);
	return 0;
}
