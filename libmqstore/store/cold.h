/* cold.h: will reading wait for the disk?  So that one who reads what is long past does not hold up those who write.
 *
 * Asks the kernel (mincore) for windows of the log, and believes its answer for a while: for what is in memory a look costs nothing
 * that can be measured.  It is a guess: a page may go between the look and the use, and then the reader waits, as anyone
 * who reads a map. */
#ifndef STORE_COLD_H
#define STORE_COLD_H

#include "segment.h"
#include <mqstore.h>

/* Bytes that are to be fetched first. */
struct cold_range {
	char path[SEGMENT_PATH];
	int64_t from, n;        /* within the file */
};

/* How many messages of those that mqstore_get() would return are in memory, from the first on; at most opt->max_messages.  0: not even
 * that one; then *r is to be fetched.  The filter is asked for codes of tags alone. */
int32_t cold_look(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt, struct cold_range *r);
/* Read it, so that it is in memory: in any thread.  If it cannot be read, the one who uses it will see. */
void cold_fetch(const struct cold_range *r);

#endif
