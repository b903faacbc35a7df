/* index_file.h: one file of the index: slots, entries, header.  Layout: codec/layout.h, mqstore(5).
 *
 * Knows how entries hang together and how to mend them; leaves which file is written, and when, to index.c. */
#ifndef STORE_INDEX_FILE_H
#define STORE_INDEX_FILE_H

#include <mq.h>

struct cold_guard;

struct index_file {
	char *path;
	int64_t name;               /* yyyyMMddHHmmssSSS as a number: files are ordered by it */
	int fd;
	uint8_t *map;
	size_t bytes;
	int32_t slots, entries;
	uint64_t slots_inverse;     /* for hash % slots without a division */
	bool writable;
	bool suspect;               /* the contents do not look as if they had these slots and entries */
	bool dirty;                 /* changed since the last sync began */
	bool syncing;               /* a flush job holds fd */
	int32_t reserved;           /* entries below it have blocks */
	uint64_t *ready;            /* bit n: bytes [n, n + 1) * 128 KiB of header and slots have blocks */
	int rc;                     /* why index_file_put() stopped before a slot: -ENOSPC, ...; 0 = no room for entries */

	/* The header; a writable file writes it with each put, a read-only one reads it again with index_file_look(). */
	int32_t count;              /* next free entry, from 1 on: entry 0 is never used */
	int32_t used_slots;
	int64_t begin_ms, end_ms, begin_off, end_off;
};

/* What is put. */
struct index_entry {
	int32_t hash;               /* index_hash() */
	int64_t log_off, store_ms;
};

int64_t index_file_bytes(int32_t slots, int32_t entries);

/* A new, empty file.  Failure leaves no file.  Returns 0 or -errno. */
int index_file_create(struct index_file **f, const char *path, int64_t name, int32_t slots, int32_t entries);

/* An existing one.  With `adopt` slots and entries are found from the contents if they do not fit.  Returns 0, MQ_EMISMATCH
 * (other slots or entries), MQ_ENOTFOUND (empty: half made), or -errno. */
int index_file_open(struct index_file **f, const char *path, int64_t name, int32_t slots, int32_t entries, bool write,
                    bool adopt);
void index_file_close(struct index_file *f);                    /* unmap, close, free */

static inline bool index_file_full(const struct index_file *f) { return f->count >= f->entries; }
static inline bool index_file_empty(const struct index_file *f) { return f->count <= 1; }

/* Make sure that entries below `upto` have blocks on the disk.  0, -ENOSPC, or -errno. */
int index_file_reserve(struct index_file *f, int32_t upto);

/* A file follows a full one: begin and end start as the old one's end. */
void index_file_follow(struct index_file *f, const struct index_file *old);

/* Put entries until all are in, the file is full, the reserved entries end, or a slot gets no block.  Returns how many. */
size_t index_file_put(struct index_file *f, const struct index_entry *e, size_t n);

/* Take back what points at or beyond log_off. */
void index_file_cut(struct index_file *f, int64_t log_off);

/* After a crash: keep the entries up to the first impossible one and hang them together anew.  0 or -errno (no room). */
int index_file_repair(struct index_file *f);

void index_file_look(struct index_file *f);                     /* read the header again */

/* Log offsets with this hash and a time in [begin_ms, end_ms] (to the second), newest first; *steps counts down the entries
 * that may be looked at.  Stops when cb returns non-zero and returns it; and at what is not in memory, under a guard (cold.h). */
int index_file_find(struct index_file *f, int32_t hash, int64_t begin_ms, int64_t end_ms, int64_t *steps, struct cold_guard *guard,
                    int (*cb)(void *arg, int64_t log_off), void *arg);

#endif
