/* files.h: the files of a store as they stand, for those that look at all of them: check.c, check_index.c, repair.c.
 *
 * Nothing here needs a store that opens: a file of a wrong size is left out and noted. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "checkpoint.h"
#include "commitlog.h"
#include "cqueue.h"
#include "index_files.h"
#include <mqstore.h>
#include <uthash.h>

/* A run of numbers in a queue that is not as the log has it. */
enum fault_kind { FAULT_MISSING, FAULT_WRONG, FAULT_CODE, FAULT_KINDS };
struct fault {
	enum fault_kind kind;
	int64_t from, to;
};

enum { FQUEUE_WINDOW = 51 * CQ_ENTRY };

struct fqueue {
	char *topic;
	int32_t id;
	bool there;             /* it has a directory */
	int64_t *starts;        /* of its files, in order */
	size_t n;
	uint8_t *window;        /* entries that were read last: from byte win_from, win_n bytes */
	int64_t win_from, win_n;
	/* What check.c finds out. */
	int64_t listed, matched; /* records of the log that belong in it; whose entry is right */
	int64_t log_end;        /* number behind the largest of these */
	int64_t gone_end;       /* number behind the last entry that points below the log's start: what is before is never read */
	struct fault *faults;
	size_t faults_n, faults_cap;
	bool lost;              /* has entries of damaged messages: recovery overwrites them */
	int64_t bad;            /* number of the first entry that repair must write anew; INT64_MAX = none */
	UT_hash_handle hh;
};

/* A file that cannot be used as it is. */
struct misfit {
	char *path;             /* below the store's directory */
	char text[200];
	bool harmless;
	int64_t grow;           /* a segment that was cut short: the size that it should have; else 0 */
	struct fqueue *queue;   /* whose it is */
};

struct mqstore_files {
	char *dir, *log_dir, *queue_dir;
	struct commitlog log;   /* log.max = end of the last segment */
	int64_t queue_bytes;    /* size of consume queue files; 0 = there are none */
	struct fqueue *queues;  /* by "TOPIC/ID" */
	int64_t queue_n, queue_files;
	bool any_lmq;
	struct index_files index;
	bool index_there;       /* its directory has files */
	struct checkpoint check;
	int64_t check_bytes;
	bool abort, in_use;
	struct {
		char *path;     /* of the file of units that was looked at last */
		char *p;        /* its bytes; NULL = there is none */
		size_t n;
	} units;
	char **batch;           /* topics with a batch consume queue: their consume queues are not kept */
	size_t batch_n;
	struct misfit *misfits;
	size_t misfits_n;
};

/* Note a file that does not fit; path is the caller's no more. */
struct misfit *files_misfit(struct mqstore_files *f, char *path, bool harmless, const char *text);

/* Size that most files have; of two that are as frequent the larger, for files get cut short more often than long. */
enum { SIZES = 16 };
struct sizes {
	int64_t size[SIZES];
	int count[SIZES], n, seen;
};
void files_add_sizes(struct sizes *s, const char *dir, char **names, size_t n);
int64_t files_usual_size(const struct sizes *s);

int files_load_queues(struct mqstore_files *f, struct mq_error *err);
struct fqueue *files_queue(struct mqstore_files *f, struct mq_str topic, int32_t id, bool create);
void files_sort_queues(struct mqstore_files *f);        /* by topic and id */
bool files_batch_topic(const struct mqstore_files *f, struct mq_str topic);

/* Entry `off` as the files have it.  1, 0 = no file holds it (e is zero), or a negative code. */
int files_entry(struct mqstore_files *f, struct fqueue *q, int64_t off, struct mqstore_entry *e);
/* The tags code of the unit that an entry of q names by its address (cqueue_ext.h); false: there is none. */
bool files_unit(struct mqstore_files *f, const struct fqueue *q, int64_t address, int64_t *tags_code);
/* The bytes of one of its files, malloc'd; *used: up to the last entry that is not zero. */
int files_queue_file(struct mqstore_files *f, const struct fqueue *q, int64_t start, uint8_t **p, int64_t *used);
char *files_queue_path(const struct mqstore_files *f, const struct fqueue *q, int64_t start, char out[SEGMENT_PATH]);
/* Every entry of every batch consume queue. */
int files_batch_entries(struct mqstore_files *f, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err);

#endif
