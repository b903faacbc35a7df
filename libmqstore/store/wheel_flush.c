/* wheel_flush.c: the wheel goes to the disk: timer log, slots, check-point, in this order, each synced before the next.
 *
 * The job holds copies, so the wheel turns on meanwhile; a page of slots that changes again is written again with the next. */
#include "wheel_private.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wheel_flush {
	char *path, *check_path, *log_dir;
	int64_t first, last;    /* starts of the files of the timer log that are to be synced; last < first: none */
	int64_t file;           /* size of one */
	int64_t end;
	int64_t synced;         /* files from here on may be new in their directory */
	int32_t *page;          /* numbers of pages */
	uint8_t *bytes;         /* their contents */
	int32_t n;
	struct wheel_check check;
	int rc;
	const char *what;       /* that failed */
};

bool wheel_dirty(const struct wheel *w)
{
	return w->slots.ndirty > 0 || w->synced < w->log.end;
}

struct wheel_flush *wheel_flush_begin(struct wheel *w, bool clean)
{
	struct wheel_flush *f = mem_alloc(sizeof *f);

	w->flushing = true;
	f->path = mem_strdup(w->path);
	f->check_path = mem_strdup(w->check_path);
	f->log_dir = mem_strdup(w->log.run.dir);
	f->file = w->log.run.size;
	f->end = w->log.end;
	f->synced = w->synced;
	f->first = 0;
	f->last = -1;
	if (w->synced < w->log.end && w->log.tail) {
		struct segment *g = segments_at(&w->log.run, w->synced);

		f->first = g ? g->start : segments_min(&w->log.run);
		f->last = w->log.tail->start;
	}
	f->page = mem_alloc(((size_t)w->slots.ndirty + 1) * sizeof *f->page);
	f->bytes = mem_alloc(((size_t)w->slots.ndirty + 1) * WHEEL_PAGE);
	for (int32_t i = 0; i < WHEEL_PAGES && f->n < w->slots.ndirty; i++)
		if (w->slots.dirty[i]) {
			f->page[f->n] = i;
			memcpy(f->bytes + (size_t)f->n++ * WHEEL_PAGE, w->slots.p + (size_t)i * WHEEL_PAGE, WHEEL_PAGE);
			w->slots.dirty[i] = 0;
		}
	w->slots.ndirty = 0;
	w->check.flush_pos = f->end;
	w->check.clean = clean;
	f->check = w->check;
	return f;
}

static int sync_log(const struct wheel_flush *f)
{
	char path[SEGMENT_PATH];
	int rc = 0;

	for (int64_t start = f->first; start <= f->last && rc == 0; start += f->file)
		rc = segment_file_sync(segment_path(f->log_dir, start, path), start >= f->synced);
	return rc;
}

static int write_slots(const struct wheel_flush *f)
{
	int fd, rc;

	if (!f->n)
		return 0;
	fd = sys.open(f->path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		return fd;
	rc = sys.ftruncate(fd, (off_t)WHEEL_PAGES * WHEEL_PAGE); /* it may be new, or of a wrong length */
	for (int32_t i = 0; i < f->n && rc == 0;) {
		int32_t n = 1; /* neighbours in one go */

		while (i + n < f->n && f->page[i + n] == f->page[i] + n)
			n++;
		rc = sys_write_all(fd, f->bytes + (size_t)i * WHEEL_PAGE, (size_t)n * WHEEL_PAGE, (off_t)f->page[i] * WHEEL_PAGE);
		i += n;
	}
	if (rc == 0)
		rc = sys.fsync(fd);
	sys.close(fd);
	return rc;
}

static int write_check(const struct wheel_flush *f)
{
	char dir[SEGMENT_PATH], *slash;
	int rc;

	snprintf(dir, sizeof dir, "%s", f->check_path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	rc = sys_mkdir_all(dir);
	return rc < 0 ? rc : wheel_check_save(&f->check, f->check_path);
}

void wheel_flush_run(struct wheel_flush *f)
{
	f->what = "sync the timer log";
	f->rc = sync_log(f);
	if (f->rc == 0) {
		f->what = "write the timer wheel";
		f->rc = write_slots(f);
	}
	if (f->rc == 0) {
		f->what = "write the timers' check-point";
		f->rc = write_check(f);
	}
}

static void undo(struct wheel *w, const struct wheel_flush *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		w->slots.ndirty += !w->slots.dirty[f->page[i]];
		w->slots.dirty[f->page[i]] = 1;
	}
}

static void drop(struct wheel *w, struct wheel_flush *f)
{
	w->flushing = false;
	free(f->path);
	free(f->check_path);
	free(f->log_dir);
	free(f->page);
	free(f->bytes);
	free(f);
}

void wheel_flush_forget(struct wheel *w, struct wheel_flush *f)
{
	undo(w, f);
	drop(w, f);
}

int wheel_flush_end(struct wheel *w, struct wheel_flush *f, struct mq_error *err)
{
	int rc = f->rc;

	if (rc < 0) {
		undo(w, f);
		err_sys(err, rc, "%s (%s)", f->what, f->what[0] == 's' ? f->log_dir : f->path);
	} else if (w->synced < f->end) {
		w->synced = f->end;
	}
	drop(w, f);
	return rc;
}
