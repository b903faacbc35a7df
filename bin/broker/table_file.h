/* table_file.h: keeps one table in config/NAME.json: loads it (or its .bak), and saves it in the background.
 *
 * Loading: NAME.json; if that is missing, empty, or broken, NAME.json.bak, which is said in the log, and the broken file is moved
 * aside to NAME.json.broken first so that the next save does not copy it over the good one.  Both there and broken: an
 * error, the broker does not start with nothing.
 * Saving: the text is made on the loop, written by a worker with sys_replace_file(); one save at a time, changes that come
 * meanwhile go into the next. */
#ifndef BROKER_TABLE_FILE_H
#define BROKER_TABLE_FILE_H

#include <base/json.h>
#include <uv.h>

struct broker;

/* What one kind of table keeps where, and how. */
struct table_kind {
	const char *name;                       /* "topics": of config/NAME.json, and for the log */
	const char *file;                       /* config/FILE, where that has no .json; NULL */
	bool later;                             /* save only when asked to: table_file_save() */
	void (*write)(void *table, struct buf *out);
	void (*load)(void *table, const json_t *json); /* an object; what is no good in it is left out and said */
};

struct table_file {
	struct broker *b;
	struct table_kind kind;
	char *path;
	void *table;
	uint64_t version;                       /* of the table in memory: counts changes */
	uint64_t saved;                         /* version that is on the disk */
	uint64_t saving;                        /* version that a worker writes now, 0 = none */
	uint64_t failed;                        /* version of the last save if that failed, with rc; 0 = it did not */
	void (*saved_cb)(struct broker *b);     /* after each save; may be NULL */
	struct table_wait *wait, **wait_end;
	uv_work_t work;
	struct buf text;
	int rc;
};

/* Load the table.  1: done; 0: there is no file; or a negative code with the names in e, and nothing to close.  kind is copied. */
int table_file_open(struct table_file *t, struct broker *b, const struct table_kind *kind, void *table, struct mq_error *e);
/* The table changed: a save follows at the end of the turn (unless it is saved `later`). */
void table_file_changed(struct table_file *t);
/* Save now if something changed. */
void table_file_save(struct table_file *t);
/* cb(arg, rc) when what the table holds now is on the disk (rc 0) or could not be written.  At once if it is. */
void table_file_when_saved(struct table_file *t, void (*cb)(void *arg, int rc), void *arg);
static inline bool table_file_is_saved(const struct table_file *t) { return t->saved == t->version; }
/* Save here and now, blocking; for the stop.  No worker may be active: see table_file_idle(). */
int table_file_flush(struct table_file *t, struct mq_error *e);
bool table_file_idle(const struct table_file *t);
void table_file_close(struct table_file *t);

#endif
