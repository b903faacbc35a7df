/* flush.h: when bytes are durable (the public half is in mqstore.h).
 *
 * A job syncs, in this order: the log up to its end as of begin; the files of some queues; index files; then the checkpoint
 * that says so.  Whatever the order in which a power cut stops it, the checkpoint never says more than is on the disk. */
#ifndef STORE_FLUSH_H
#define STORE_FLUSH_H

#include "store.h"

/* Everything is on the disk when this returns 0.  MQ_EFULL: the log is, but queue entries wait for room. */
int flush_all(struct mqstore *s, struct mq_error *err);
/* The files of q are about to be removed: the running job shall not write them any more. */
void flush_cancel_queue(struct mqstore *s, struct mqstore_queue *q);
/* Free a queue that is no longer in the table, at once or when the running job has ended. */
void flush_bury_queue(struct mqstore *s, struct mqstore_queue *q);

#endif
