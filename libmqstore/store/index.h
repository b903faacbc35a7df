/* index.h: by key and time: which log offsets hold a message with this key.
 *
 * Knows files, hashes, and how far it has come; nothing of messages: it is told (topic, keys, log offset, store time) in log
 * order and answers with log offsets.  Byte-compatible with the peer's files (reference: mqstore(5)).
 *
 * Promises:
 *   1. A put costs no system call and no cache miss on the way of a send: it lands in a small ring, which is written to the
 *      files in batches (when full, in index_tend(), before a query, at close).
 *   2. The index never makes a send fail.  When a file cannot be made or the disk is full it falls behind: puts are dropped,
 *      index_behind() says from where on the log is missing, one error per minute is logged, and index_tend() reads the
 *      missed part from `source` when there is room again.
 *   3. After a crash, whole or not, it repairs itself: files that the checkpoint does not cover are checked entry by entry,
 *      cut at the first bad one, and what is missing is read from `source`.  compat: the peer throws such files away and
 *      loses the entries of older segments (unless messageIndexSafe).
 *   4. No access can hit a hole on a full disk (SIGBUS): blocks are reserved before they are touched.
 *
 * Belongs to the store's thread; index_flush_run() may be called from any. */
#ifndef STORE_INDEX_H
#define STORE_INDEX_H

#include <mq.h>

struct index;

/* One record of the log as the index wants it. */
struct index_record {
	int32_t topic_hash;         /* index_topic_hash() of the record's topic */
	struct mq_str uniq_key;     /* property UNIQ_KEY; n == 0 = none */
	struct mq_str keys;         /* property KEYS: words separated by blanks */
	bool skip;                  /* rollback type, or not a record to be indexed: only next_off counts */
	int64_t log_off, store_ms;
	int64_t next_off;           /* where the next record begins (source only) */
};

/* The log, for catching up: fill r with the record at log_off (if the log begins later: the first one).
 * Returns 1, 0 at the end of the log, or a negative code. */
typedef int index_source_cb(void *arg, int64_t log_off, struct index_record *r);

struct index_opt {
	const char *dir;            /* borrowed during index_open */
	int32_t slots, entries;     /* of new files [maxHashSlotNum, maxIndexNum] */
	bool read_only;
	bool adopt_sizes;           /* find slots and entries of each existing file from its contents */
	bool abnormal;              /* the last stop was not clean */
	int64_t checkpoint_ms;      /* indexMsgTimestamp: files that end at or before it are known to be on the disk */
	index_source_cb *source;    /* NULL: never catches up */
	void *source_arg;
};

/* Open what is there (a missing directory is an empty index, made with the first file).  Writing: half-made files are removed,
 * files not covered by the checkpoint are repaired if abnormal.  Read-only: changes nothing, skips what it cannot use.
 * Then index_log() must be called before the first put.  Returns 0, MQ_EMISMATCH, or -errno. */
int index_open(struct index **ix, const struct index_opt *opt, struct mq_error *err);

/* The log is recovered and holds [min, max): drop what points at or beyond max.  What lies between the index's end and max is
 * read from `source`, the first few records here, more by index_tend(), puts and queries.  Until that is done index_behind()
 * is >= 0 and puts are dropped.  Again when the log was cut. */
int index_log(struct index *ix, int64_t min, int64_t max, struct mq_error *err);

/* Hash of "TOPIC#", to be kept per topic so that no put hashes it again. */
int32_t index_topic_hash(struct mq_str topic);

/* Index one record, UNIQ_KEY first, then each word of KEYS.  Records come in log order; one that is in already is skipped. */
void index_put(struct index *ix, const struct index_record *r);

/* Log offset from which on the log is not in the index, or -1 if nothing is missing. */
int64_t index_behind(const struct index *ix);

/* Write the ring, reserve space and make the next file ahead of need, catch up a little.  True: more to do soon. */
bool index_tend(struct index *ix);

/* Candidates for (topic, key) with store time in [begin_ms, end_ms], newest first, until cb returns non-zero (returned).
 * compat: hashes are compared, and times to the second: cb must compare key and store time of the record.  The caller limits
 * the number; no more than some million entries are looked at. */
typedef int index_hit_cb(void *arg, int64_t log_off);
int index_query(struct index *ix, struct mq_str topic, struct mq_str key, int64_t begin_ms, int64_t end_ms,
                index_hit_cb *cb, void *arg);

/* From now on a query does not wait for the disk: what it needs of the files first is noted in g, and its hits are not all then.
 * (cold.h; NULL: it waits.) */
struct cold_guard;
void index_guard(struct index *ix, struct cold_guard *g);

/* Store time and log offset of the newest record in the index; 0, 0 if empty. */
void index_last(const struct index *ix, int64_t *ms, int64_t *log_off);

/* Remove files that hold nothing at or above log_off; never the newest. */
void index_trim(struct index *ix, int64_t log_off);

/* Read-only: look for files made since, and for those that are gone. */
int index_refresh(struct index *ix);

/* Sync files to the disk off the loop: begin (owner) returns the number of files, 0 = nothing to do (but what is doomed is to be
 * buried); run (any thread); end
 * (owner) returns 0 or the failure.  Files that became full since the last time, with `all` the one being filled too.
 * Only one job at a time; it must be ended before index_close(). */
enum { INDEX_FLUSH_FILES = 8 };
struct index_flush {
	int fd[INDEX_FLUSH_FILES];
	int n, rc;
	const char *sync_dir;       /* a file was made: its name must be on the disk too */
	int64_t full_ms;            /* see index_flushed_ms */
	struct index_file **doomed; /* removed files: they are unmapped and closed here, which frees their blocks and takes long */
	size_t doomed_n;
};
int index_flush_begin(struct index *ix, bool all, struct index_flush *job);
void index_flush_run(struct index_flush *job);
void index_flush_bury(struct index_flush *job);     /* any thread; run does it too */
int index_flush_end(struct index *ix, struct index_flush *job, struct mq_error *err);

/* End time of the last full file that is on the disk: indexMsgTimestamp of the checkpoint; 0 if none. */
int64_t index_flushed_ms(const struct index *ix);

/* Bytes of all files (their sizes, not their blocks). */
int64_t index_bytes(const struct index *ix);

/* Write the ring, sync all files (writable), unmap, remove a file made ahead that was not used, free.  Returns the first error. */
int index_close(struct index *ix, struct mq_error *err);

#endif
