/* revive.h: messages that were popped and not acked come again: the revive log.
 *
 * A pop stores a check-point, an ack a record of its own, both in rmq_sys_REVIVE_LOG_cluster, by way of the timer: they
 * get there when the pop's time is nearly over.  What lies in that topic behind the offset of CID_RMQ_SYS_REVIVE_GROUP is kept in memory:
 * check-points with what has been acked of them.  When the time of one is over what is left of it is copied to the group's retry topic,
 * each message together with an ack, so that no restart revives it twice, and the check-point is done with.
 * compat: the stored offset is that of the last record that is done with, not of the next one.
 *
 * An ack counts from when it is stored.  One that comes after its message was revived is refused: the message is on its way to
 * somebody again. */
#ifndef BROKER_REVIVE_H
#define BROKER_REVIVE_H

#include <codec/body_pop.h>
#include <mqstore.h>

struct broker;
struct revive;

/* Read the log; what was popped since the offsets of groups were saved moves these on.  *r NULL on failure. */
int revive_open(struct revive **r, struct broker *b, struct mq_error *e);
void revive_stop(struct revive *r);
void revive_free(struct revive *r);             /* ends with the next turns of the loop */
/* New records of the log, and what is due: at the end of a turn. */
void revive_run(struct revive *r);

/* The queue of the log for the next pop. */
int32_t revive_turn(struct revive *r);
bool revive_has_queue(const struct revive *r, int32_t queue);

/* Store a check-point: 0 or a negative code. */
int revive_put(struct revive *r, int32_t queue, const struct body_ck *ck, struct mq_error *e);

/* Ack what a->off names.  1: done, and true when the log is on the disk up to *end_off (0: it is); 0: it was too late for all of them;
 * negative: not stored. */
int revive_ack(struct revive *r, int32_t queue, const struct body_ack *a, int64_t invisible_ms, bool batch, int64_t *end_off,
               struct mq_error *e);
/* One message gets another time: a check-point of its own, and an ack of the old one, both or none.  As revive_ack(). */
int revive_change(struct revive *r, int32_t queue, const struct body_ck *ck, const struct body_ack *a, int64_t invisible_ms,
                  int64_t *end_off, struct mq_error *e);

size_t revive_pending(const struct revive *r);  /* check-points in memory */

#endif
