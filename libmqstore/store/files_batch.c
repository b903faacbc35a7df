/* files_batch.c: the files of batch consume queues as they stand, entry by entry.  What an entry is made of is bqueue's. */
#include "../base/err.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "bqueue.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 1 << 30 };

/* Entries of one file, up to the first that is none. */
static int each_entry(const char *path, struct mqstore_file_entry *e, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err)
{
	struct bentry b;
	size_t n;
	char *p;
	int rc = sys_read_file(path, FILE_MAX, &p, &n);

	if (rc < 0)
		return err_sys(err, rc, "read '%s'", path);
	for (size_t at = 0; at + BATCH_CQ_ENTRY <= n && rc == 0 && bqueue_decode((uint8_t *)p + at, &b); at += BATCH_CQ_ENTRY) {
		e->off = b.base;
		e->e = (struct mqstore_entry){ b.log_off, b.size, b.tags_code };
		e->count = b.count;
		e->store_ms = b.store_ms;
		rc = cb(arg, e);
	}
	free(p);
	return rc;
}

static int each_file(const char *dir, struct mqstore_file_entry *e, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err)
{
	char path[SEGMENT_PATH], **names;
	int rc = 0;
	size_t n;

	if (sys_list(dir, &names, &n) < 0)
		return 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (segment_name(names[i]) >= 0)
			rc = each_entry(segment_path(dir, segment_name(names[i]), path), e, cb, arg, err);
	free(names);
	return rc;
}

int files_batch_entries(struct mqstore_files *f, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err)
{
	char dir[SEGMENT_PATH], **ids;
	int rc = 0;
	size_t n;

	for (size_t i = 0; i < f->batch_n && rc == 0; i++) {
		snprintf(dir, sizeof(dir), "%s/batchconsumequeue/%s", f->dir, f->batch[i]);
		if (sys_list(dir, &ids, &n) < 0)
			continue;
		for (size_t k = 0; k < n && rc == 0; k++) {
			struct mqstore_file_entry e = { .topic = str_of(f->batch[i]) };

			if (str_i32(str_of(ids[k]), &e.queue_id) < 0 || e.queue_id < 0)
				continue;
			snprintf(dir, sizeof(dir), "%s/batchconsumequeue/%s/%s", f->dir, f->batch[i], ids[k]);
			rc = each_file(dir, &e, cb, arg, err);
		}
		free(ids);
	}
	return rc;
}
