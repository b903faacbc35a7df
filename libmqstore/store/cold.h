/* cold.h: will reading wait for the disk?  So that one who reads what is long past does not hold up those who write.
 *
 * Asks the kernel (mincore) for windows of the log, and believes its answer for a while: for what is in memory a look costs nothing
 * that can be measured.  It is a guess: a page may go between the look and the use, and then the reader waits, as anyone
 * who reads a map. */
#ifndef STORE_COLD_H
#define STORE_COLD_H

#include "segment.h"
#include <mqstore.h>

struct mqstore_entry;

/* Bytes that are to be fetched first. */
struct cold_range {
	char path[SEGMENT_PATH];
	int64_t from, n;        /* within the file */
	bool entries;           /* of a queue: what they list may have to be fetched next */
};

/* What somebody who may not wait would have had to wait for. */
enum { COLD_RANGES = 16 };
struct cold_guard {
	int n;
	struct cold_range range[COLD_RANGES];
};

/* While a guard is set mqstore_at(), mqstore_query(), mqstore_search_time() and mqstore_time_at() do not wait for the disk: they note
 * in g what is to be fetched first.  If g->n > 0 afterwards what they have said is worth nothing; ask again when that has been
 * fetched, and perhaps again, for one thing leads to another.  NULL: they wait. */
void cold_guard(struct mqstore *s, struct cold_guard *g);

/* How many messages of those that mqstore_get() would return are in memory, from the first on; at most opt->max_messages.  0: not even
 * that one; then *r is to be fetched: messages, or entries of the queue.  The filter is asked for codes of tags alone. */
int32_t cold_look(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt, struct cold_range *r);
/* Read it, so that it is in memory: in any thread.  If it cannot be read, the one who uses it will see. */
void cold_fetch(const struct cold_range *r);
/* Does a record lie in the part of the log that is not expected in memory (memory_ratio)? */
bool cold_is_far(const struct mqstore *s, int64_t log_off);

/* ---- For those who look, under a guard; it may be NULL ------------------------------------------------------------------------ */

/* Bytes [at, at + n) of the file at `path`, of `size` bytes, which is mapped at `map`.  True: they are noted, do not touch them. */
bool cold_bytes(struct cold_guard *g, const char *path, const uint8_t *map, int64_t size, int64_t at, int64_t n);
/* The record at log_off; an entry that cqueue_entries() has shown. */
bool cold_record(struct mqstore *s, int64_t log_off);
bool cold_entry(struct mqstore *s, struct mqstore_queue *q, const uint8_t *entry);
static inline bool cold_met(const struct cold_guard *g) { return g && g->n > 0; }
static inline bool cold_full(const struct cold_guard *g) { return g && g->n == COLD_RANGES; }

#endif
