/* recover.h: after a stop, clean or not: where the log ends, and everything derived from it made to agree.
 *
 * Read-only handles do the same in memory and change no file. */
#ifndef STORE_RECOVER_H
#define STORE_RECOVER_H

#include "store.h"

/* Log segments and queue names are loaded, the checkpoint is read.  0 or a negative code. */
int recover_run(struct mqstore *s, struct mq_error *err);
/* Load up to max queues that recovery has not looked at. 1 = there are more, 0 = done, -1 = one cannot be loaded. */
int recover_check_queues(struct mqstore *s, int max);
/* At a clean stop: how many queues have a directory, for the next start to see whether one is gone.  0 or a negative code. */
int recover_note_queues(struct mqstore *s, struct mq_error *err);
/* The log was cut, or is about to be: no queue lists what does not end at or before `end`.  end < 0: no queue lists anything. */
int recover_cut_queues(struct mqstore *s, int64_t end);
/* Put what the log holds for one queue into it (cqueues.rebuild). */
int recover_queue(void *store, struct mqstore_queue *q);

#endif
