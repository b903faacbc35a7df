/* retain.h: what may be deleted, and whether the disk is full (the public half is in mqstore.h). */
#ifndef STORE_RETAIN_H
#define STORE_RETAIN_H

#include "store.h"

/* Queues follow the log, some at a time.  True if there are more to look at. */
bool retain_tend(struct mqstore *s);
/* Used part (0..1) of the file system that holds dir, and its sizes; 0 or -errno. */
int retain_disk(const char *dir, double *used, int64_t *total, int64_t *avail);

#endif
