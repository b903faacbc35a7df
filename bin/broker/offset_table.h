/* offset_table.h: how far each group has got: config/consumerOffset.json, saved every flushConsumerOffsetInterval.
 *
 * Key "topic@group".  The stored offset is the next to consume.  In memory only: the pull offset (what was delivered last), how
 * many popped messages are not acked yet, and a reset that waits to be picked up by the group's next pull.
 *
 * What is saved is what the table held when the log was as long as it is on the disk: a pop moves the offset on because its
 * check-point is in the log.  The file notes that place beside the peer's members ("logOffset"), for who reads on from there after a
 * kill. */
#ifndef BROKER_OFFSET_TABLE_H
#define BROKER_OFFSET_TABLE_H

#include "hash.h"
#include "table_file.h"
#include "tally.h"
#include <codec/body_offset.h>

struct offset_slot {
	int64_t stored;         /* -1 = none */
	int64_t pulled;         /* next offset after the last delivery, -1 = none */
	int64_t reset;          /* -1 = none */
	int64_t inflight;       /* popped since the start, not acked, not revived */
};
struct offsets {
	UT_hash_handle hh;
	int32_t n;              /* of slot: highest queue id seen + 1 */
	struct offset_slot *slot;
	struct tally got;       /* messages delivered */
	uint32_t topic_n, name_n;
	char name[];            /* "topic@group", NUL-terminated */
};
static inline struct mq_str offsets_topic(const struct offsets *o) { return (struct mq_str){ o->name, o->topic_n }; }
static inline struct mq_str offsets_group(const struct offsets *o)
{
	return (struct mq_str){ o->name + o->topic_n + 1, o->name_n - o->topic_n - 1 };
}

/* Has the group stored an offset in the topic?  If not it has only looked. */
bool offsets_any(const struct offsets *o);

struct offset_table {
	struct broker *b;
	struct offsets *all;    /* uthash */
	struct table_file file;
	struct body_version version;
	int64_t commits;        /* since the last new version */
	struct buf shot;        /* the file's text as of shot_end; n == 0: none */
	uint64_t shot_version;
	int64_t shot_end;       /* log offset */
	int64_t saved_end;      /* of the file that was loaded; -1: it does not say; 0: there was none */
	uv_timer_t timer;       /* until the log is on the disk */
	bool soon;              /* the timer runs */
};

int offset_table_open(struct offset_table **t, struct broker *b, struct mq_error *e);
void offset_table_free(struct offset_table *t);         /* ends with the next turns of the loop */

/* The group's offsets in a topic, or NULL. */
struct offsets *offset_table_find(struct offset_table *t, struct mq_str topic, struct mq_str group);
/* Stored offset, -1 if there is none.  A reset that waits is answered instead. */
int64_t offset_table_get(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id);
/* Store it.  `who` (a connection's name) is for the log.  Negative ones and those beyond `max` are ignored and logged.
 * Returns false when ignored. */
bool offset_table_commit(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t off,
                         int64_t max, const char *who);
/* n messages of `bytes` were delivered; the pull after them begins at `next`. */
void offset_table_pulled(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t next,
                         int64_t n, int64_t bytes);
/* Server-side reset (222): the stored offset becomes `off`, and the group's next pull of the queue is answered with it. */
void offset_table_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t off);
bool offset_table_has_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id);
/* The offset to go to, and the reset is over; -1 if there was none. */
int64_t offset_table_take_reset(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id);
/* What is stored of `from` becomes the offsets of another group in the same topic, in the place of those it had. */
void offset_table_clone(struct offset_table *t, const struct offsets *from, struct mq_str group);
/* So many more (or fewer) popped messages wait for their ack. */
void offset_table_inflight(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t more);
/* The log knows of a pop that the file does not know of: the offset moves on to `off`, never back. */
void offset_table_catch_up(struct offset_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t off);
/* End of the log as of the file that was loaded; -1: not known. */
int64_t offset_table_saved_end(const struct offset_table *t);
/* Save as soon as the log is on the disk up to its end now. */
void offset_table_save(struct offset_table *t);
void offset_table_stop(struct offset_table *t);                     /* nothing is saved any more but by table_file_flush() */
/* A slave's: what the master has stored wins; what it does not have stays. */
void offset_table_merge(struct offset_table *t, const struct body_offset_table *from);
void offset_table_drop_topic(struct offset_table *t, struct mq_str topic);
void offset_table_drop_group(struct offset_table *t, struct mq_str group);
/* All offsets of one group, or of one topic (the other view empty): cb for each. */
void offset_table_each(struct offset_table *t, struct mq_str topic, struct mq_str group,
                       void (*cb)(void *arg, struct offsets *o), void *arg);
void offset_table_write(struct offset_table *t, struct buf *out);   /* {"dataVersion","offsetTable"} */

#endif
