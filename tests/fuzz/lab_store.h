/* lab_store.h: a small store that a harness may damage, and everything that reads a store, one after the other.
 *
 * Segments of 8 KiB, queue files of 10 entries, index files of 16 slots and 24 entries, so that a few messages roll all of them. */
#ifndef TESTS_FUZZ_LAB_STORE_H
#define TESTS_FUZZ_LAB_STORE_H

#include "lab.h"

enum { LAB_SEGMENT = 8192, LAB_QUEUE_FILE = 200, LAB_SLOTS = 16, LAB_ENTRIES = 24 };
#define LAB_INDEX_NAME "20260101000000000" /* older than those that the store makes */

/* A store as after a clean stop: messages of "T" (queues 0 and 1) with keys, of a delay level, and of a light queue.  `log_only`:
 * nothing but an empty directory.  `abort`: as after a crash. */
void lab_store_make(bool log_only, bool abort);
/* One of its files, below the directory of the store. */
char *lab_store_path(const char *name);
/* Name below the store of the first file in a directory of it; static. */
const char *lab_store_first(const char *dir);

/* Open it read-only, look at all of it; check its files; then open it for writing, append, and open it again: whatever the files
 * hold, nothing crashes or hangs, min <= max, readers get on, and what was appended is there.  `repair`: mend it first, after
 * which a check finds nothing that can be mended.  With $LAB_TELL the findings of checks and the acts of repairs are printed. */
void lab_store_try(bool repair);

#endif
