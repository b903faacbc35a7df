/* delay.h: delay levels: a message with property DELAY=n waits in queue n-1 of SCHEDULE_TOPIC_XXXX until it is due, then a copy of
 * it goes where it was sent to.
 *
 * The due time is in the queue's entry (the store puts it there).  A level is a queue in order of time, so only its first entry is
 * looked at; one timer is set for the earliest of all levels.  How far each level has come is config/delayOffset.json, saved
 * every flushDelayOffsetInterval and at the stop.  What the file says was delivered is on the disk, so a power cut loses nothing.
 * What was delivered since the last save is found in the log at the start, from the log offset on that the file notes beside the
 * peer's fields: after a kill nothing comes twice.  (A file of the peer has no such note; then so
 * much of the log is looked at as is reasonable.)
 * A copy that cannot be stored is tried again until it can; what comes behind it in its level waits.
 *
 * To put a message off: delay_level(), delay_props() into its properties, delay_queue() as its queue, level as
 * mqstore_record.delay_level, mqstore_append(), delay_stored(). */
#ifndef BROKER_DELAY_H
#define BROKER_DELAY_H

#include <base/buf.h>
#include <codec/body_offset.h>
#include <mqstore.h>

struct broker;
struct delay;

/* Load the offsets; delivery begins with the loop's next turn, but not on a slave.  *d NULL on failure. */
int delay_open(struct delay **d, struct broker *b, struct mq_error *e);
void delay_stop(struct delay *d);       /* nothing is delivered any more */
/* After the last flush: save where each level stands.  No save may be running: delay_idle(). */
int delay_save(struct delay *d, struct mq_error *e);
bool delay_idle(const struct delay *d);
void delay_free(struct delay *d);       /* ends with the next turns of the loop */

/* Properties that delay_props() writes, or that have no meaning beside DELAY: to be left out of what is copied from the client.
 * Elements of a list for property_copy_without(). */
#define DELAY_PROPS PROP_DELAY, PROP_REAL_TOPIC, PROP_REAL_QID, "TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"

/* The level that a message with property DELAY=n gets: the highest for those above it; 0 = none, when there are no levels. */
int32_t delay_level(const struct delay *d, int32_t n);
/* Append DELAY, REAL_TOPIC and REAL_QID. */
void delay_props(struct buf *out, int32_t level, struct mq_str topic, int32_t queue_id);
/* Queue of a level from delay_level(). */
struct mqstore_queue *delay_queue(struct delay *d, int32_t level);
/* n messages were appended there. */
void delay_stored(struct delay *d, int32_t level, size_t n);

/* Deliver what is due now, as the timer does; for when wall time has jumped. */
void delay_run(struct delay *d);

/* A slave's: where the master's levels stand. */
void delay_take(struct delay *d, const struct body_delay_table *from);

void delay_write(struct delay *d, struct buf *out);             /* {"dataVersion","offsetTable"}: 45 */
/* Each level that has ever held a message: cb(arg, level, next offset, end of its queue). */
void delay_each(const struct delay *d, void (*cb)(void *arg, int32_t level, int64_t off, int64_t max), void *arg);

#endif
