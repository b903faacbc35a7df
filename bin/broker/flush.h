/* flush.h: when the log is flushed: off the loop, one job at a time.
 *
 * ASYNC_FLUSH: the log every flushIntervalCommitLog, with queues, index and checkpoint every flushIntervalConsumeQueue.
 * SYNC_FLUSH: also at the end of each turn in which a send began to wait (settle.h): group commit; while one flush runs, the
 * next group gathers.
 * A flush that fails is not tried again: the store takes no more messages and the log says why. */
#ifndef BROKER_FLUSH_H
#define BROKER_FLUSH_H

#include <mqstore.h>

struct broker;
struct flush;

struct flush *flush_new(struct broker *b);
void flush_turn(struct flush *f);                                       /* end of a turn */
/* The log, at the end of this turn: something is there for readers that may not see it before. */
void flush_soon(struct flush *f);
/* Everything, soon: the stop is near. */
void flush_last(struct flush *f);
/* No more jobs: done(arg) when none runs. */
void flush_stop(struct flush *f, void (*done)(void *arg), void *arg);
bool flush_idle(const struct flush *f);                                 /* no job is under way */
void flush_free(struct flush *f);                                       /* ends with the next turns of the loop */
/* Next offset of the queue that readers may see: all of it, or under SYNC_FLUSH what is on the disk.  A group must not get
 * ahead of what a power cut leaves. */
int64_t flush_visible_max(struct broker *b, const struct mqstore_queue *q);

#endif
