/* golden_store.h: the stores in tests/golden/store, which the Java broker wrote, and what its clients saw of them. */
#ifndef TESTS_GOLDEN_STORE_H
#define TESTS_GOLDEN_STORE_H

#include <jansson.h>
#include <mq.h>

/* Sizes of all of them. */
enum { GOLDEN_SEGMENT = 65536, GOLDEN_QUEUE_SEGMENT = 2000, GOLDEN_SLOTS = 500, GOLDEN_ENTRIES = 400 };

/* "clean", "crashed", ...; NULL-ended. */
extern const char *const golden_stores[];

/* Unpack a store to DIR/store and return that path (malloc'd).  Fails the test if it cannot. */
char *golden_store(const char *dir, const char *name);
/* Its manifest.json; json_decref() it.  NUL characters in it are given as U+E000. */
json_t *golden_manifest(const char *name);

/* Each record of a commit log directory, read without the code of the store.  Stops at the first that is none. */
typedef void golden_record_cb(void *arg, const struct mq_message *m, const char *record);
void golden_log(const char *store, golden_record_cb *cb, void *arg);

/* Every file below `dir` with its content as one number: equal before and after = nothing was changed. */
uint64_t golden_fingerprint(const char *dir);

#endif
