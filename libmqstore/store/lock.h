/* lock.h: one writer per store: the file `lock`, as the peer locks it, and (for record locks do not keep a process from itself)
 * a list of what this process has open. */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include <mq.h>

/* MQ_EBUSY if somebody has it. */
int lock_take(const char *path, int *fd, struct mq_error *err);
/* fd may be -1. */
void lock_release(int fd);
/* Does anybody, this process too, hold the lock?  Changes nothing; a missing file is not held. */
bool lock_held(const char *path);

#endif
