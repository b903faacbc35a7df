/* mqstore.h: a store directory: append, read, query, flush, trim.
 *
 * PUBLIC.  One directory holds the commit log (every message of every topic, in order of arrival) and what is derived from
 * it: a consume queue for each queue of each topic, the key index, the checkpoint.  The files are those of Apache
 * RocketMQ 5.2.0, byte for byte (mqstore(5)): either program opens the directory that the other has left.
 *
 * Caveats, first those that hurt:
 *   - A message that mqstore_append() took is readable at once and survives the death of the process, but is on the disk
 *     only after a flush that covers it (mqstore_flush_*).  A power cut before that may lose it; it never leaves half of it.
 *   - After a flush has failed the store takes no more writes until it is opened again (MQ_EBROKEN): the kernel may have
 *     dropped the dirty pages, and trying again would only look like success.
 *   - Queue entries gather in memory and reach their files when there are many, or with mqstore_flush_begin(all).  A process
 *     that is killed loses none of them: whoever opens the store next, this library or the Java broker, reads them from the log.
 *   - One process writes.  A second mqstore_open() for writing gets MQ_EBUSY.  Read-only opens change not one byte, need no
 *     lock, and may run beside a writer (ours or the Java broker); they see what was there when opened, and more after
 *     mqstore_refresh().
 *
 * Threads: a handle belongs to one thread.  Only mqstore_flush_run() may be called from another.
 * Pointers into the store (records) are good until the caller returns to its event loop, or until the next call of
 * mqstore_trim(), mqstore_refresh(), mqstore_tend(), mqstore_close() on the handle; also not beyond some thousand other
 * segments looked at, which only a walk over a log of tiny segments does.
 * Functions return 0 or a negative code (mq.h); `err`, where there is one, may be NULL. */
#ifndef MQSTORE_H
#define MQSTORE_H

#include <mq.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mqstore;
struct mqstore_queue; /* one queue of one topic; lives as long as the handle unless its topic is deleted */

/* ---- Opening --------------------------------------------------------------------------------------------------------- */

/* Zeroed, then mqstore_defaults(), then what differs.  Names in brackets are the keys of broker.conf. */
struct mqstore_opt {
	const char *dir;              /* root [storePathRootDir]; borrowed during open */
	const char *log_dir;          /* commit log [storePathCommitLog]; NULL = dir/commitlog */
	bool read_only;
	bool adopt_sizes;             /* take segment sizes from the files that exist rather than fail with MQ_EMISMATCH */
	int64_t log_segment_bytes;    /* [mappedFileSizeCommitLog] 1 GiB */
	int64_t queue_segment_bytes;  /* [mappedFileSizeConsumeQueue] 6,000,000; rounded up to a multiple of 20 */
	int32_t index_slots;          /* [maxHashSlotNum] 5,000,000 */
	int32_t index_entries;        /* [maxIndexNum] 20,000,000 */
	bool index_enable;            /* [messageIndexEnable] true */
	bool index_safe;              /* [messageIndexSafe] false */
	bool check_crc;               /* [checkCRCOnRecover] true */
	int32_t max_body_bytes;       /* [maxMessageSize] 4 MiB */
	int64_t max_total_bytes;      /* [maxStoreBytes] 0 = no limit: oldest segments go first when the log is larger */
	int64_t min_free_bytes;       /* [minFreeBytes] 0 = use the ratios below; else appends stop below this much free space */
	int32_t reserved_hours;       /* [fileReservedTime] 72 */
	char delete_when[64];         /* [deleteWhen] "04" */
	int32_t disk_max_used;        /* [diskMaxUsedSpaceRatio] 75 % */
	int32_t disk_clean_forcibly;  /* [diskSpaceCleanForciblyRatio] 85 % */
	int32_t disk_warning;         /* [diskSpaceWarningLevelRatio] 90 % */
	bool clean_forcibly;          /* [cleanFileForciblyEnable] true */
	const char *delay_levels;     /* [messageDelayLevel] "1s 5s 10s ..."; the due time in SCHEDULE_TOPIC_XXXX entries */
	int32_t memory_ratio;         /* [accessMessageInMemoryMaxRatio] 40 %: part of the RAM that the newest messages may fill */
	bool queue_ext;               /* [enableConsumeQueueExt] false: new entries get a unit in consumequeue_ext */
	int64_t queue_ext_bytes;      /* [mappedFileSizeConsumeQueueExt] 48 MiB: a new file of these */
	bool gather;                  /* what is appended waits for mqstore_write_out(): one write for many messages */
	int32_t max_maps;             /* consume queue files mapped at once for reading; 0 = a bound that fits the machine */
};

MQ_API void mqstore_defaults(struct mqstore_opt *opt);

/* Lock, open, recover.  A missing directory is made (not when read_only).  After a clean stop this reads the tail only; after
 * a crash it walks the log from the last checkpoint, cuts the torn tail, and repairs queues and index from the log.  A damaged
 * record or a missing segment in the middle costs what was in it and nothing behind it: it is logged, readers are led over it,
 * and its numbers are not given again.  Read-only handles do all this in memory.
 * On failure *s is NULL and err says which file and what to do; nothing needs closing.
 * Returns 0, MQ_EBUSY, MQ_EMISMATCH, MQ_ECORRUPT, MQ_EINVAL or MQ_EUNSUPPORTED (an option), MQ_ENOTFOUND (read_only and no store
 * there), or -errno. */
MQ_API int mqstore_open(struct mqstore **s, const struct mqstore_opt *opt, struct mq_error *err);

/* Flush everything, write the checkpoint, remove `abort`, unlock, free.  If a flush fails `abort` stays, so that the next
 * open recovers; the handle is gone all the same.  Returns the first error. */
MQ_API int mqstore_close(struct mqstore *s, struct mq_error *err);

/* Read-only handles: look for what was written since. */
MQ_API int mqstore_refresh(struct mqstore *s);

/* ---- Queues ---------------------------------------------------------------------------------------------------------- */

/* The queue, or NULL if it has never held a message.  With `create` it comes into being in memory (its directory with the
 * first message) and NULL means out of bounds: queue_id < 0 or a name that mq_check_topic() refuses. */
MQ_API struct mqstore_queue *mqstore_queue(struct mqstore *s, struct mq_str topic, int32_t queue_id, bool create);

MQ_API int64_t mqstore_queue_min(const struct mqstore_queue *q);   /* first readable offset */
MQ_API int64_t mqstore_queue_max(const struct mqstore_queue *q);   /* next offset to be given */
MQ_API struct mq_str mqstore_queue_topic(const struct mqstore_queue *q);
MQ_API int32_t mqstore_queue_id(const struct mqstore_queue *q);

/* Every queue that exists, in no order.  Stops when cb returns non-zero and returns that. */
typedef int mqstore_queue_cb(void *arg, struct mqstore_queue *q);
MQ_API int mqstore_each_queue(struct mqstore *s, mqstore_queue_cb *cb, void *arg);

/* Called inside mqstore_append() for each new entry of a queue for which mqstore_queue_watch(q, true) was said: costs
 * nothing for queues that nobody waits on.  The callback may read the store but not append. */
typedef void mqstore_arrival_cb(void *arg, struct mqstore_queue *q, int64_t queue_off, int64_t tags_code,
                                struct mq_str props);
MQ_API void mqstore_on_arrival(struct mqstore *s, mqstore_arrival_cb *cb, void *arg);
MQ_API void mqstore_queue_watch(struct mqstore_queue *q, bool on);

/* Remove a topic's consume queues (files too).  Handles of its queues are dead afterwards. */
MQ_API int mqstore_delete_topic(struct mqstore *s, struct mq_str topic, struct mq_error *err);

/* ---- Appending ------------------------------------------------------------------------------------------------------- */

/* What is appended; all views borrowed and copied.  Properties are given in up to three pieces that are written one after the
 * other; a piece that is not last and does not end with 0x02 gets one.  If `keys`, `uniq_key`, `tags` are known to the
 * caller it sets parsed = true and the views, which spares a scan of the properties. */
struct mqstore_record {
	struct mqstore_queue *queue;
	struct mq_str body;
	struct mq_str props[3];
	int32_t flag, sys_flag, reconsume_times;
	int64_t born_ms, prepared_off;
	struct mq_host born_host, store_host;
	bool parsed;
	struct mq_str uniq_key, keys, tags;
	int32_t delay_level;          /* property DELAY, when parsed; else found in props */
	bool again;                   /* a copy of a record that is in the log: max_body_bytes was looked at when that came */
};

struct mqstore_place {
	int64_t log_off;              /* of the record */
	int64_t queue_off;
	int64_t store_ms;
	int64_t end_off;              /* log offset behind the record: flushed when mqstore_flushed() >= end_off */
	int32_t size;
};

/* Append `n` records as one: all in one segment, consecutive offsets per queue, or none.  `place` has room for n.
 * Derives queue entries and index, and calls the arrival callback, before it returns.
 * Returns 0, MQ_ETOOBIG (body, properties or the whole; err names size and limit), MQ_EFULL, MQ_EREADONLY, MQ_EBROKEN,
 * MQ_EUNSUPPORTED (a topic with batch consume queues, which are only read), or -errno.  A refused record uses up no offset.
 * After MQ_EFULL try again whenever you like: it works as soon as there is room. */
MQ_API int mqstore_append(struct mqstore *s, const struct mqstore_record *r, size_t n, struct mqstore_place *place,
                          struct mq_error *err);

/* With `gather`: write what was appended to the log's file, so that it survives the death of the process.  Call it before anybody
 * is told that his message was taken, and before waiting.  Readers of the handle see gathered messages without it; a full buffer
 * (256 KiB) and a flush write by themselves. */
MQ_API void mqstore_write_out(struct mqstore *s);

/* The delay levels in use [messageDelayLevel]: how many, and the ms of each, level 1 first (good as long as the handle).  A record
 * of queue n-1 of SCHEDULE_TOPIC_XXXX with level n gets its store time plus these ms, its due time, as tags code. */
#define MQSTORE_DELAY_LEVELS_MAX 64
MQ_API int mqstore_delay_levels(const struct mqstore *s, const int64_t **ms);

/* With `queue_ext`: the bits of a message with these properties, which goes to q, into `bits`; returns their bytes, 0 = none.  What they
 * mean is the caller's; he finds them again by mqstore_get_opt.bits.  Called inside mqstore_append(); may not append. */
#define MQSTORE_BITS_MAX 1024
typedef size_t mqstore_bits_cb(void *arg, const struct mqstore_queue *q, struct mq_str props, uint8_t bits[MQSTORE_BITS_MAX]);
MQ_API void mqstore_on_bits(struct mqstore *s, mqstore_bits_cb *cb, void *arg);

/* ---- Flushing -------------------------------------------------------------------------------------------------------- */

MQ_API int64_t mqstore_log_min(const struct mqstore *s);
MQ_API int64_t mqstore_log_max(const struct mqstore *s);
MQ_API int64_t mqstore_flushed(const struct mqstore *s);     /* the log is on the disk up to here */

/* Group commit off the loop, in three steps.  begin (owner thread): take note of what is dirty; returns 0, MQ_ENOTFOUND if
 * there is nothing to do, or MQ_EBROKEN.  run (any thread, no lock needed, may block for long).  end (owner thread):
 * mqstore_flushed() moves; returns 0 or the failure, after which the store is MQ_EBROKEN.  One job at a time; the caller
 * owns `job` from begin to end.  With `all` queues, index and checkpoint too, else the log alone; of very many dirty queues
 * each job takes a part, those first that have waited longest.  Call with `all` every second or so. */
struct mqstore_flush {
	void *impl;
};
MQ_API int mqstore_flush_begin(struct mqstore *s, bool all, struct mqstore_flush *job);
MQ_API void mqstore_flush_run(struct mqstore_flush *job);
/* From the owner thread, between begin and end: somebody waits for mqstore_flushed() to move on, so this job leaves to the next what
 * can be left: queue entries.  (Otherwise they may take 0.2 s of it, and as long as the disk then needs for them.) */
MQ_API void mqstore_flush_hurry(struct mqstore_flush *job);
MQ_API int mqstore_flush_end(struct mqstore *s, struct mqstore_flush *job, struct mq_error *err);

/* All three, here and now, until nothing is dirty.  MQ_EFULL: the log is on the disk, but queue entries wait for room. */
MQ_API int mqstore_flush(struct mqstore *s, struct mq_error *err);

/* Work that is better done ahead or behind: make the next segment, write the index, reserve disk space.  Call when idle and
 * at least once a second; returns true if there is more to do soon. */
MQ_API bool mqstore_tend(struct mqstore *s);

/* ---- Reading --------------------------------------------------------------------------------------------------------- */

enum mqstore_status {
	MQSTORE_FOUND,
	MQSTORE_NO_MATCHED_MESSAGE,
	MQSTORE_MESSAGE_WAS_REMOVING,
	MQSTORE_OFFSET_FOUND_NULL,
	MQSTORE_OFFSET_OVERFLOW_BADLY,
	MQSTORE_OFFSET_OVERFLOW_ONE,
	MQSTORE_OFFSET_TOO_SMALL,
	MQSTORE_NO_MATCHED_LOGIC_QUEUE,
	MQSTORE_NO_MESSAGE_IN_QUEUE,
};
MQ_API const char *mqstore_status_name(enum mqstore_status st); /* "FOUND", as the peer's remark has it */

/* Decide by entry (record = NULL, cheap) and then by record.  Return true to keep. */
typedef bool mqstore_filter_cb(void *arg, int64_t tags_code, const struct mq_str *record);

/* Decide by the bits of a message (see mqstore_on_bits), stored at `store_ms`, after the entry and before the record are.
 * Return true to keep.  Not asked for a message that has none. */
typedef bool mqstore_bits_filter_cb(void *arg, int64_t store_ms, struct mq_str bits);

struct mqstore_get_opt {
	int32_t max_messages;         /* > 0 */
	int32_t max_bytes;            /* soft: at least one message is returned */
	int32_t far_messages, far_bytes; /* instead of these, for messages that may have to come from the disk; 0 = the same */
	mqstore_filter_cb *filter;    /* NULL = all */
	mqstore_bits_filter_cb *bits; /* besides; NULL = all */
	void *filter_arg;             /* of both */
};

#define MQSTORE_GET_MAX 1024
struct mqstore_result {
	enum mqstore_status status;
	int64_t next_off, min_off, max_off;
	int32_t n;                    /* records */
	int64_t bytes;                /* their sum */
	struct mq_str record[MQSTORE_GET_MAX]; /* views into the log */
	bool far_behind;              /* beyond the part of the log that is expected in memory */
};

/* Read from queue offset `off` on, with the statuses and limits of the peer's DefaultMessageStore.  q may be NULL (unknown queue).
 * next_off is where to go on: behind the last record, over what was filtered out, damaged or deleted.
 * Never blocks but for a page that is not in memory.  Returns 0, or -errno if files cannot be mapped. */
MQ_API int mqstore_get(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt,
                       struct mqstore_result *res);

/* One record at a log offset; checks that a whole record starts there.  Returns 0, MQ_ENOTFOUND. */
MQ_API int mqstore_at(struct mqstore *s, int64_t log_off, struct mq_str *record);

/* One queue entry, with the tags code proper where the entry names a unit of consumequeue_ext (whose address it keeps when there is none).
 * Returns 0, MQ_ENOTFOUND. */
struct mqstore_entry {
	int64_t log_off;
	int32_t size;
	int64_t tags_code;
};
MQ_API int mqstore_entry(struct mqstore_queue *q, int64_t off, struct mqstore_entry *e);

/* Offset by time: with upper = false the first whose store time >= ms, else the last <= ms; clamped into [min, max]. */
MQ_API int64_t mqstore_search_time(struct mqstore *s, struct mqstore_queue *q, int64_t ms, bool upper);

/* Store time of the record at queue offset off, or -1. */
MQ_API int64_t mqstore_time_at(struct mqstore *s, struct mqstore_queue *q, int64_t off);

/* Log offsets of messages with this key (KEYS word or unique id) stored in [begin_ms, end_ms], oldest first, at most max
 * (the newest are kept).  Different keys with one hash are told apart.  Returns the number found; *last_ms and *last_off
 * say how far the index reaches (may be NULL). */
MQ_API int mqstore_query(struct mqstore *s, struct mq_str topic, struct mq_str key, int max, int64_t begin_ms,
                         int64_t end_ms, int64_t *log_off, int64_t *last_ms, int64_t *last_off);

/* Walk the log from `off` (0 = start), record by record; the record is good until cb returns.  Stops at the end, or when cb
 * returns non-zero, which is returned.  Damaged or missing parts are logged and stepped over. */
typedef int mqstore_walk_cb(void *arg, int64_t log_off, struct mq_str record);
MQ_API int mqstore_walk(struct mqstore *s, int64_t off, mqstore_walk_cb *cb, void *arg, struct mq_error *err);

/* ---- Timers ----------------------------------------------------------------------------------------------------------- */

/* A message for a given time that waits in the store (properties TIMER_*), as the timer files of the directory have it. */
struct mqstore_timer {
	int64_t due_ms;               /* the begin of the step of time [timerPrecisionMs] at whose end it is due */
	bool rolls;                   /* it is due later: due_ms is when it is looked at again */
	bool cancels;                 /* no message: it cancels those of that time whose UNIQ_KEY is in TIMER_DEL_UNIQKEY */
	struct mq_str record;         /* in rmq_sys_wheel_timer; REAL_TOPIC and REAL_QID say where it goes */
};
typedef int mqstore_timer_cb(void *arg, const struct mqstore_timer *t);

/* Each that waits, by the time; stops when cb returns non-zero and returns that.  The timer files are read anew and not changed, and
 * may be those of a running broker, ours or the Java broker: then what came within the last second may be missing, and what
 * has just been delivered may be there.  A store without timers has none: 0. */
MQ_API int mqstore_each_timer(struct mqstore *s, mqstore_timer_cb *cb, void *arg, struct mq_error *err);

/* ---- Retention ------------------------------------------------------------------------------------------------------- */

/* Remove what may go (by age and use of the disk as the peer does, and by the limits in bytes), and set or clear "disk full".
 * now_ms is wall time.  With `force` segments past their time go at any hour.  Call every 10 s.  Files of queues follow, a few at
 * once: the rest of them is for mqstore_tend(), the blocks of segments and index files for the next flush. */
MQ_API int mqstore_trim(struct mqstore *s, int64_t now_ms, bool force, struct mq_error *err);

/* Other limits from now on: max_total_bytes, min_free_bytes, reserved_hours, delete_when, disk_*, clean_forcibly of opt; the rest
 * of it is not looked at.  They are felt with the next mqstore_trim(). */
MQ_API void mqstore_retention(struct mqstore *s, const struct mqstore_opt *opt);

/* Remove consume queues whose last entry lies below the log's start (not those of system topics).  Their handles stay good,
 * as of queues that have never held a message. */
MQ_API int mqstore_clean_queues(struct mqstore *s, struct mq_error *err);

/* ---- Looking at ------------------------------------------------------------------------------------------------------ */

struct mqstore_stat {
	int64_t log_min, log_max, log_flushed;
	int64_t log_bytes;            /* log_max - log_min */
	int64_t index_bytes;          /* of the files */
	int64_t queues, segments;
	int64_t earliest_ms;          /* store time of the first record, -1 if none */
	int64_t latest_ms;            /* of the last one, -1 if none */
	double log_disk_used, queue_disk_used; /* 0..1 of their partitions */
	int64_t disk_total, disk_free;
	int64_t appended, refused;    /* messages since open */
	bool disk_full, broken, recovered; /* recovered: the last stop was not clean */
	char why_not_writable[300];   /* path, used, free, limit and the key to change; "" if writable */
};
MQ_API void mqstore_stat(struct mqstore *s, struct mqstore_stat *st);
/* Of the files of consume queues.  Looks into every queue, which takes a while if there are very many. */
MQ_API int64_t mqstore_queue_bytes(struct mqstore *s);
/* Is a disk full?  why: as why_not_writable above (n: its room), "" if messages can be taken.  Costs nothing. */
MQ_API bool mqstore_why_not_writable(struct mqstore *s, char *why, size_t n);

/* ---- Files as they are ----------------------------------------------------------------------------------------------- */

/* The files of a store as they stand on the disk, damaged or not: nothing is recovered and not one byte is changed.  Of opt
 * only `dir` and `log_dir` count; sizes are found out from the files.  May be used beside a writer, ours or the Java broker:
 * what it is just writing is then told from damage as far as can be.  MQ_ENOTFOUND: no store there. */
struct mqstore_files;
MQ_API int mqstore_files_open(struct mqstore_files **f, const struct mqstore_opt *opt, struct mq_error *err);
MQ_API void mqstore_files_close(struct mqstore_files *f);

struct mqstore_files_info {
	int64_t log_min, log_max;     /* where the first segment begins, where the last one ends */
	int64_t log_bytes;            /* of the segments that are there */
	int64_t segments, queues, queue_files, index_files;
	bool abort;                   /* the last stop was not clean, or a writer has it open */
	bool in_use;                  /* a writer holds the lock now */
	int64_t checkpoint_bytes;     /* length of the file, -1 = missing; the numbers: mqstore(5) */
	int64_t log_ms, queue_ms, index_ms, master_flushed_off, confirm_off;
};
MQ_API void mqstore_files_info(struct mqstore_files *f, struct mqstore_files_info *info);

/* What the log is made of.  Pieces come in order and leave nothing out: the sum of `bytes` is that of the segments. */
enum mqstore_piece_kind {
	MQSTORE_RECORD,               /* a whole record: `record` and `m`, good until the callback returns */
	MQSTORE_BLANK,                /* the end of a segment, where the next record did not fit */
	MQSTORE_DAMAGED,              /* no whole record, but there are some behind it */
	MQSTORE_HOLE,                 /* a segment, or its end, is missing; 0 bytes */
	MQSTORE_TORN,                 /* bytes behind the last whole record, up to the last that is not zero */
	MQSTORE_FREE,                 /* zeros behind it */
};
struct mqstore_piece {
	enum mqstore_piece_kind kind;
	int64_t from, to;             /* log offsets */
	int64_t bytes;                /* of files between them */
	struct mq_str record;
	struct mq_message m;
};
typedef int mqstore_piece_cb(void *arg, const struct mqstore_piece *p);

/* The walks below stop when cb returns non-zero and return that; else 0 or a negative code. */
MQ_API int mqstore_files_log(struct mqstore_files *f, mqstore_piece_cb *cb, void *arg, struct mq_error *err);

/* Every entry of every consume queue file, topic by topic, up to the last of a file that is not zero; then those of batch queues. */
struct mqstore_file_entry {
	struct mq_str topic;
	int32_t queue_id;
	int64_t off;                  /* number in the queue */
	struct mqstore_entry e;
	int32_t count;                /* of messages in the record: 0 but in batch queues */
	int64_t store_ms;             /* the same: when it was stored */
};
typedef int mqstore_file_entry_cb(void *arg, const struct mqstore_file_entry *e);
MQ_API int mqstore_files_queues(struct mqstore_files *f, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err);

/* Every index file: its head (n = 0), then its entries, numbered from 1. */
struct mqstore_file_index {
	const char *file;             /* its name */
	int32_t slots, entries;       /* what it has room for */
	int64_t begin_ms, end_ms, begin_off, end_off;
	int32_t used_slots, count;    /* count: number of the next entry */
	int32_t n;
	int32_t hash, seconds, previous; /* of entry n */
	int64_t log_off;
};
typedef int mqstore_file_index_cb(void *arg, const struct mqstore_file_index *i);
MQ_API int mqstore_files_index(struct mqstore_files *f, mqstore_file_index_cb *cb, void *arg, struct mq_error *err);

/* ---- Checking and repairing ------------------------------------------------------------------------------------------ */

enum mqstore_grade {
	MQSTORE_NOTE,                 /* worth knowing, nothing is wrong */
	MQSTORE_FOLLOWS,              /* comes of other damage, and goes with it */
	MQSTORE_DAMAGE,
};
struct mqstore_finding {
	enum mqstore_grade grade;
	const char *kind;             /* a word; the list is in mq-admin(1), check */
	const char *file;             /* below the directory; "" if it is about a queue or the log */
	struct mq_str topic;          /* of a queue, else n == 0 */
	int32_t queue_id;             /* -1 = not about a queue */
	int64_t from, to;             /* log offsets; numbers of entries when it is about a queue or an index file */
	int64_t count;                /* records or entries; bytes if it is about a part of the log */
	bool mendable;                /* mqstore_repair() mends it */
	const char *text;             /* what is wrong, and what a start does with it */
};
typedef void mqstore_finding_cb(void *arg, const struct mqstore_finding *f);

struct mqstore_check_opt {
	mqstore_finding_cb *finding;  /* may be NULL */
	/* Is there such a topic?  Messages of one that was deleted stay in the log and are in no queue.  NULL: a topic without
	 * any queue was deleted. */
	bool (*topic_exists)(void *arg, struct mq_str topic);
	void *arg;                    /* of both */
};
struct mqstore_checked {
	int64_t records, queue_entries, index_entries; /* looked at */
	int64_t notes, follows, damages;
};

/* Compare everything with everything: each record, whether each queue and the index list it, whether each of their entries
 * points at such a record, the links of the index, the checkpoint.  The log is read once; beside a writer, what it is just
 * doing is a note.  Once per handle. */
MQ_API int mqstore_files_check(struct mqstore_files *f, const struct mqstore_check_opt *opt, struct mqstore_checked *sum,
                               struct mq_error *err);

/* Mend what mqstore_files_check() finds and can be mended: what is torn is cut, queues and index are written again from the
 * log.  Whole records stay as they are.  Everything that is cut or overwritten is first saved below `save_dir`, which must not
 * exist and is made when there is something to save.  `step` (may be NULL) is told each act in words.  dry_run: only tells.
 * The store is as after a clean stop afterwards.  A crash in the middle leaves one that any start recovers.
 * Returns the number of acts (0 = nothing to do), MQ_EBUSY while a writer has the store, or another negative code. */
struct mqstore_repair_opt {
	const char *save_dir;
	bool dry_run;
	void (*step)(void *arg, const char *text);
	bool (*topic_exists)(void *arg, struct mq_str topic); /* as above */
	void *arg;
};
MQ_API int mqstore_repair(const struct mqstore_opt *opt, const struct mqstore_repair_opt *how, struct mq_error *err);

#ifdef __cplusplus
}
#endif
#endif
