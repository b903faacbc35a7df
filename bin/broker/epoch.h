/* epoch.h: which master wrote which part of a log: a list of (epoch, first offset), oldest first, and where two such lists part.
 *
 * An epoch reaches to the first offset of the next one; the last reaches to the end of the log.  No file, no clock: the text of the
 * file epochFileCheckpoint is made and read here, kept by others.  Sources: the peer's EpochFileCache; mqstore(5).
 *
 * Promises:
 *   1. Numbers and offsets of a list only grow, whatever is asked for or read.
 *   2. What two lists agree on (epoch_agree) was written by the same masters in both logs, if both logs were written under
 *      these lists: an epoch number has one master, who has one log.
 * compat: an epoch in which nothing was written gives its place to the next one; the peer refuses the next one, so that what two
 * masters write has one number. */
#ifndef BROKER_EPOCH_H
#define BROKER_EPOCH_H

#include <base/buf.h>

enum { EPOCH_MAX = 1000 };      /* what a peer's handshake can hold; the oldest gives way */

struct epoch {
	int32_t number;
	int64_t start;
};

struct epoch_list {
	struct epoch v[EPOCH_MAX];
	size_t n;
};

int32_t epoch_last(const struct epoch_list *l);                                 /* -1: none */
/* The one that wrote the byte at off (or is to write it, off being the log's end); NULL: it is older than the list. */
const struct epoch *epoch_at(const struct epoch_list *l, int64_t off);
/* Where the i-th ends in a log that ends at log_end. */
int64_t epoch_end(const struct epoch_list *l, size_t i, int64_t log_end);
/* From `start` on a new epoch writes.  MQ_EINVAL with the reason: number or offset is not behind the last one. */
int epoch_append(struct epoch_list *l, int32_t number, int64_t start, struct mq_error *why);
/* A master begins `number` on a log [min, end).  What a list does not know yet (the log is older than the list) counts as its own.
 * One that it knows goes on if the log is whole (role.h, promise 6), else it begins again at the end.  MQ_EINVAL: the log knows
 * a later epoch. */
int epoch_begin(struct epoch_list *l, int32_t number, bool whole, int64_t min, int64_t end, struct mq_error *why);
void epoch_cut(struct epoch_list *l, int64_t off);                              /* the log ends at off now */
void epoch_forget(struct epoch_list *l, int64_t min);                           /* the log begins at min now */
/* The offset up to which two logs are the same; -1: no epoch is in both, nothing is known. */
int64_t epoch_agree(const struct epoch_list *mine, int64_t my_end, const struct epoch_list *theirs, int64_t their_end);

/* Number of entries; CRC-32 without its sign bit of the lines that follow (0 is not checked); "number-start" lines. */
void epoch_encode(const struct epoch_list *l, struct buf *out);
/* MQ_ECORRUPT with what is wrong; *l is empty then. */
int epoch_decode(struct mq_str text, struct epoch_list *l, struct mq_error *why);

#endif
