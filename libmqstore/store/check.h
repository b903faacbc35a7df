/* check.h: what the parts of a check share: the log is walked once (check.c), queues (check_queue.c) and index (check_index.c)
 * look on and tell at the end. */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include "files.h"

/* What the index should go on with. */
struct index_cursor {
	size_t file;
	int32_t i;
	int64_t lacks, lacks_from, lacks_to;    /* records without their entries, the last run of them */
	int64_t wrong, wrong_from, wrong_to;    /* entries that name no such record */
	int64_t lost;                           /* entries of damaged messages */
	int64_t seconds;                        /* entries with another time */
	int64_t seen;                           /* entries that were right */
	struct mq_str topic;                    /* of the last hash */
	int32_t topic_hash;
	char topic_copy[256];
};

/* A stretch of the log, or of what is behind it. */
struct stretch {
	enum mqstore_piece_kind kind;
	int64_t from, to;
};

struct check {
	struct mqstore_files *f;
	const struct mqstore_check_opt *opt;
	struct mqstore_checked *sum;
	int64_t end;            /* of the log: behind the last record or its blank */
	int64_t last_ms;        /* store time of the last record */
	bool any_damage;        /* in the middle of the log */
	int64_t beyond;         /* entries of queues that point at or beyond the end */
	struct stretch *stretches; /* damaged, holes, torn */
	size_t stretches_n;
	struct index_cursor index;
	bool index_bad;         /* the index must be made anew */
};

/* Count and tell.  Of f only what matters need be set; text is printf-like. */
void check_tell(struct check *c, struct mqstore_finding f, const char *fmt, ...) MQ_PRINTF(3, 4);

/* Does off lie in a part of the log that holds no records? */
bool check_on_damage(const struct check *c, int64_t off);

/* Walk, compare, tell: mqstore_files_check(), with the findings left in c for repair.c.  check_done() frees. */
int check_run(struct check *c, struct mq_error *err);
void check_done(struct check *c);

/* check_queue.c, check_index.c: each record of the walk in order of the log, then what is told at its end. */
void check_queue_record(struct check *c, const struct mq_message *m);
int check_queue_end(struct check *c, struct mq_error *err);
void check_index_record(struct check *c, const struct mq_message *m);
void check_index_end(struct check *c);

#endif
