/* replica.h: the log as raw bytes: shipped to a replica, or coming from a master.
 *
 * A follower's log is a byte copy of its master's, from some segment's begin on.  Bytes arrive cut anywhere; queues and index are
 * derived from each record as soon as it is whole.  So the log has two ends: mqstore_log_max(), behind the last byte, and
 * replica_derived(), behind the last record that readers find.  What stands between them is lost by a stop: it comes again.
 *
 * Belongs to the store's thread. */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include "segment.h"
#include <mqstore.h>

/* ---- Shipping -------------------------------------------------------------------------------------------------------- */

int64_t replica_segment_bytes(const struct mqstore *s);
/* Bytes at `off`, *n of them (> 0), to the end of their segment or of the log; good until the caller returns to its loop.  NULL: there
 * are none, or they cannot be mapped. */
const uint8_t *replica_view(struct mqstore *s, int64_t off, int64_t *n);
/* The file that holds `off`, for sendfile(): its path, and the log offset of its first byte.  MQ_ENOTFOUND: there is none. */
int replica_file(struct mqstore *s, int64_t off, char path[SEGMENT_PATH], int64_t *start);
/* Would reading [off, off + n), all in one segment, be done without the disk? */
bool replica_in_memory(struct mqstore *s, int64_t off, int64_t n);

/* ---- Following ------------------------------------------------------------------------------------------------------- */

/* From now on mqstore_append() refuses (MQ_EREADONLY) and the log grows by the calls below. */
void replica_follow(struct mqstore *s);
/* The log is empty: it begins with the byte at `off`, which stands at most one byte behind the begin of a segment (that byte is then
 * zero, as the first one of each record is).  MQ_EINVAL, MQ_EBUSY (it is not empty). */
int replica_begin(struct mqstore *s, int64_t off, struct mq_error *err);
/* Where the next n bytes go; they count when replica_wrote() says so, a part of them will do.  MQ_EMISMATCH: the master's segments
 * are of another size; MQ_EFULL, MQ_EBROKEN, -errno. */
int replica_room(struct mqstore *s, int64_t n, uint8_t **p, struct mq_error *err);
void replica_wrote(struct mqstore *s, int64_t n);
/* Put whole records that are not derived yet into queues and index, and tell who waits.  0, MQ_EMISMATCH, or a failure of the disk:
 * then again later.  Bytes that are no record are waited with until one follows, then passed over and logged. */
int replica_derive(struct mqstore *s, struct mq_error *err);
int64_t replica_derived(const struct mqstore *s);
/* How many queues there are: one more when a record of a new one has come. */
int64_t replica_queues(const struct mqstore *s);
/* What is not whole goes: at the close, and when it may not be what the master has.  The log then ends at replica_derived(). */
void replica_tidy(struct mqstore *s);

/* ---- Does the log agree with the master's? --------------------------------------------------------------------------- */

/* Start of the newest whole record, -1 if there is none. */
int64_t replica_last(const struct mqstore *s);
/* Starts of segments that hold something, in order, into *v (malloc'd); returns how many. */
size_t replica_segments(struct mqstore *s, int64_t **v);
/* Starts of the whole records in the segment that begins at `start`, in order, into *v (malloc'd); returns how many. */
size_t replica_records(struct mqstore *s, int64_t start, int64_t **v);
/* The log shall end at `end`, where a record ends; the newest one before begins at `last`.  end < 0: nothing stays.  What is cut is
 * first saved below save_dir, which must not exist: as the log of a store, so that mq-recv can read it.  No flush may be under way.
 * *saved: bytes.  After a failure, or a crash in the middle, the log ends where it did or at `end`. */
int replica_cut(struct mqstore *s, int64_t end, int64_t last, const char *save_dir, int64_t *saved, struct mq_error *err);

#endif
