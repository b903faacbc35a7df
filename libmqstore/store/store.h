/* store.h: the open store, as the files of this folder share it. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "checkpoint.h"
#include "commitlog.h"
#include "cqueues.h"
#include "index.h"
#include <mqstore.h>

/* A part of the log that holds no whole record. */
struct damage {
	int64_t from, to;
	bool hole;              /* the file is missing */
};
enum { DAMAGE_MAX = 1024 };

/* cold.c: a part of the log that was found in memory. */
struct warm_window {
	int64_t window, until_ms;
};
/* A page of a queue's file. */
struct warm_page {
	const uint8_t *p;
	int64_t until_ms;
};
enum { WARM_WINDOWS = 256, WARM_BYTES = 256 * 1024, WARM_PAGES = 256 };

struct cold_guard;
struct flush_job;

struct mqstore {
	struct mqstore_opt opt; /* without the strings, which are below */
	char *dir, *log_dir, *queue_dir;
	int lock_fd;            /* -1 = read-only */
	bool unclean;           /* the last stop was not clean, or (read-only) a writer has it open */
	bool distrust;          /* ... said by an empty `abort`, as an operator makes it: everything shall be checked */
	bool opening;           /* recovery is at work */
	bool check_queues;      /* some queues may still point beyond the log's end at open */
	bool broken;            /* a flush failed: no more writes */
	bool full;              /* trim says that the disk is */
	bool no_space;          /* the file system said so at the last try */
	bool follower;          /* replica.h: the log grows by a master's bytes alone */
	int64_t derived;        /* follower: queues and index hold the records below */
	int64_t stuck;          /* follower: what stands at `derived` is no record; looked at again when the log has grown to this */
	char why[300];          /* full or broken: what and what to do */

	struct commitlog log;
	struct cqueues queues;
	struct index *index;
	struct checkpoint check;
	struct damage *damage;
	int damage_n;

	int64_t level_ms[MQSTORE_DELAY_LEVELS_MAX];
	int levels;
	int64_t memory_bytes;   /* part of the log that is expected to be in memory */

	mqstore_arrival_cb *arrival;
	void *arrival_arg;
	mqstore_bits_cb *bits;  /* of a new unit beside a queue entry */
	void *bits_arg;
	int64_t appended, refused;

	/* flush.c */
	struct flush_job *job;  /* running */
	int64_t pass_target;    /* queues that had become dirty when the pass began: all are on disk when so many are flushed */
	int64_t pass_ms, pass_off; /* newest message when the pass began */
	int64_t pass_end_ms;    /* when the last one ended (monotonic) */
	struct mqstore_queue **dead; /* of deleted topics, while a job may look at them */
	size_t dead_n;

	/* retain.c */
	int64_t trimmed_min;    /* start of the log that queues and index were trimmed to */

	struct warm_window warm[WARM_WINDOWS];
	struct warm_page warm_page[WARM_PAGES];
	struct cold_guard *guard; /* NULL: one who looks waits for the disk */

	/* follow.c */
	int64_t looked_ms;      /* when directories were last read */
};

/* Is off within a known damaged part? */
bool store_damaged(const struct mqstore *s, int64_t off);
void store_note_damage(struct mqstore *s, int64_t from, int64_t to, bool hole);

#endif
