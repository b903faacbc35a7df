/* cqueues.h: the table of consume queues, by topic and number, and what they share: maps, the list of dirty ones. */
#ifndef STORE_CQUEUES_H
#define STORE_CQUEUES_H

#include "commitlog.h"
#include "cqueue.h"
#include <uthash.h>

struct topic {
	char *name;
	size_t n;
	int32_t index_hash;     /* index_topic_hash() */
	bool schedule;          /* SCHEDULE_TOPIC_XXXX: tags code = due time */
	bool lmq;               /* %LMQ%...: entries point to records of other topics */
	bool batch;             /* has batch consume queues (bqueue.h) instead */
	struct mqstore_queue **v; /* by id */
	int32_t count, cap;
	UT_hash_handle hh;
};

TAILQ_HEAD(cqueue_list, mqstore_queue);

struct cqueues {
	const struct commitlog *log; /* its start decides what can still be read */
	char *dir, *batch_dir;  /* ROOT/consumequeue, ROOT/batchconsumequeue */
	char *ext_dir;          /* ROOT/consumequeue_ext */
	int64_t file_bytes;
	int64_t ext_bytes;      /* of a new file of units (cqueue_ext.h) */
	bool ext;               /* new entries get one */
	bool write;
	bool any_lmq;           /* a %LMQ% topic was seen */
	bool abnormal;          /* find the end of a queue slot by slot: zeros may stand in the middle */
	int64_t log_end_at_open;/* records end here; entries beyond are cut when a queue is loaded */
	struct topic *topics;
	int64_t count, unloaded;
	int64_t buf_bytes, buf_max; /* of all buffers; they do not grow beyond */
	struct mqstore_queue **maps; /* all queues that have a file mapped; `hand` goes round */
	uint32_t maps_n, maps_max, hand;
	struct {
		uint8_t *p;     /* NULL = none; the last file of units that was looked at */
		struct mqstore_queue *q;
		int64_t start, size;
	} ext_map;
	struct cqueue_list dirty; /* oldest first */
	int64_t dirty_n, dirtied, flushed; /* entered the list, and left it by a flush, since open */
	struct topic *last;     /* of the last look-up */
	/* Entries behind this log offset are compared with their records when a queue is loaded: the log may have grown over the
	 * place that they point to since they were written.  NULL = no need to. */
	int64_t verify_from;
	bool (*matches)(void *arg, struct mqstore_queue *q, int64_t off, const struct mqstore_entry *e);
	/* Called when a queue that lost its last file is loaded outside of recovery: derive it from the log. */
	int (*rebuild)(void *arg, struct mqstore_queue *q);
	void *arg;              /* of both */
};

/* Read the names of topics and queues in ROOT/consumequeue and ROOT/batchconsumequeue.  The file size of the former is checked on
 * the first file found; with adopt it is taken from it. */
int cqueues_open(struct cqueues *c, const char *root, int64_t file_bytes, bool write, bool adopt, int32_t max_maps,
		 const struct commitlog *log, struct mq_error *err);
void cqueues_close(struct cqueues *c);
/* Read-only: queues made since. */
int cqueues_refresh(struct cqueues *c);

struct mqstore_queue *cqueues_get(struct cqueues *c, struct mq_str topic, int32_t id, bool create);
struct topic *cqueues_topic(struct cqueues *c, struct mq_str name);
int cqueues_each(struct cqueues *c, mqstore_queue_cb *cb, void *arg);
/* Take q out of the table (its memory is the caller's from then on). */
void cqueues_forget(struct cqueues *c, struct mqstore_queue *q);

/* Note that q has a file mapped now, and unmap others when there are too many. */
void cqueues_mapped(struct mqstore_queue *q);
void cqueues_unmap(struct mqstore_queue *q);
/* Unmap half of all, for the system has no maps left. */
void cqueues_shed(struct cqueues *c);

#endif
