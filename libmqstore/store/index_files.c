/* index_files.c: the files of an index in order.
 *
 * A file's name is the local time of its making, yyyyMMddHHmmssSSS; the order of the names is the order of the files, and log
 * offsets only grow from file to file. */
#define LOG_MODULE "index"
#include "index_files.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { NAME_DIGITS = 17 };

void index_files_add(struct index_files *fs, struct index_file *f)
{
	if (fs->n == fs->cap) {
		fs->cap = fs->cap ? fs->cap * 2 : 8;
		fs->v = mem_realloc(fs->v, fs->cap * sizeof(*fs->v));
	}
	fs->v[fs->n++] = f;
}

static struct index_file *take_out(struct index_files *fs, size_t i)
{
	struct index_file *f = fs->v[i];

	memmove(fs->v + i, fs->v + i + 1, (--fs->n - i) * sizeof(*fs->v));
	return f;
}

static void forget(struct index_files *fs, size_t i)
{
	index_file_close(take_out(fs, i));
}

struct index_file *index_files_unlink(struct index_files *fs, size_t i)
{
	int rc = sys.unlink(fs->v[i]->path);

	if (rc < 0 && rc != -ENOENT)
		log_warn("cannot remove file path=%s error=%s", fs->v[i]->path, mq_strerror(rc));
	return take_out(fs, i);
}

void index_files_remove(struct index_files *fs, size_t i)
{
	index_file_close(index_files_unlink(fs, i));
}

void index_files_forget_gone(struct index_files *fs)
{
	struct stat st;
	for (size_t i = fs->n; i-- > 0;)
		if (sys.stat(fs->v[i]->path, &st) == -ENOENT)
			forget(fs, i);
}

void index_files_close(struct index_files *fs)
{
	while (fs->n)
		forget(fs, fs->n - 1);
	free(fs->v);
	free(fs->dir);
}

static bool parse_name(const char *name, int64_t *v)
{
	struct mq_str s = str_of(name);
	return s.n == NAME_DIGITS && name[0] != '-' && name[0] != '+' && str_i64(s, v) == 0;
}

static bool have(const struct index_files *fs, int64_t name)
{
	for (size_t i = 0; i < fs->n; i++)
		if (fs->v[i]->name == name)
			return true;
	return false;
}

static int load_file(struct index_files *fs, const char *text, int64_t name, struct mq_error *err)
{
	struct index_file *f;
	char *path = mem_printf("%s/%s", fs->dir, text);
	int rc = index_file_open(&f, path, name, fs->slots, fs->entries, !fs->read_only, fs->adopt_sizes);
	if (rc == 0) {
		index_files_add(fs, f);
		fs->suspect |= f->suspect;
	} else if (fs->read_only) {
		if (!fs->told && rc != MQ_ENOTFOUND)
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
			path, fs->slots, fs->entries);
	} else {
		err_sys(err, rc, "index file '%s'", path);
	}
	free(path);
	return rc;
}

int index_files_load(struct index_files *fs, struct mq_error *err)
{
	char **names;
	size_t n;
	int rc = sys_list(fs->dir, &names, &n);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(err, rc, "list index directory '%s'", fs->dir);
	for (size_t i = 0; i < n && rc == 0; i++) {
		int64_t name;
		if (parse_name(names[i], &name)) {
			if (!have(fs, name))
				rc = load_file(fs, names[i], name, err);
		} else if (!fs->told) {
			log_warn("not an index file, left alone path=%s/%s", fs->dir, names[i]);
		}
	}
	fs->told = true;
	free(names);
	return rc;
}

/* Behind a file that is not full nothing can be trusted: it is removed, and read from the log again. */
void index_files_repair(struct index_files *fs, int64_t checkpoint_ms)
{
	for (size_t i = 0; i < fs->n; i++) {
		struct index_file *f = fs->v[i];
		if (index_file_full(f) && f->end_ms <= checkpoint_ms)
			continue;
		int32_t was = f->count;
		int rc = index_file_repair(f);
		if (rc < 0)
			log_warn("cannot repair file, made anew path=%s error=%s", f->path, mq_strerror(rc));
		else if (f->count != was)
			log_warn("file cut path=%s entries=%d kept=%d", f->path, was - 1, f->count - 1);
		size_t keep = rc < 0 ? i : index_file_full(f) ? fs->n : i + 1;
		while (fs->n > keep)
			index_files_remove(fs, fs->n - 1);
	}
}

void index_files_drop_empty(struct index_files *fs)
{
	for (size_t i = fs->n; i-- > 0;)
		if (index_file_empty(fs->v[i]) && i + 1 < fs->n)
			index_files_remove(fs, i);
}

void index_files_cut(struct index_files *fs, int64_t log_off)
{
	for (size_t i = fs->n; i-- > 0;) {
		struct index_file *f = fs->v[i];
		index_file_cut(f, log_off);
		if (!index_file_empty(f))
			break;
		if (i + 1 == fs->n && !f->syncing)
			index_files_remove(fs, i);
	}
}

/* Names grow though a clock is set back or summer time ends. */
static int64_t next_name(const struct index_files *fs)
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
	struct index_file *f = index_files_last(fs);
	return f && name <= f->name ? f->name + 1 : name;
}

int index_files_make(struct index_files *fs, struct index_file **f)
{
	int rc = sys_mkdir_all(fs->dir);
	if (rc < 0)
		return rc;
	int64_t name = next_name(fs);
	char *path = mem_printf("%s/%0*lld", fs->dir, NAME_DIGITS, (long long)name);
	rc = index_file_create(f, path, name, fs->slots, fs->entries);
	free(path);
	if (rc < 0)
		return rc;
	fs->new_name = true;
	/* Not only when it is taken into use: should we crash before, the peer sees from it how far the index goes. */
	if (fs->n)
		index_file_follow(*f, index_files_last(fs));
	return 0;
}
