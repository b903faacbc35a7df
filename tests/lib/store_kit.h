/* store_kit.h: a store in small sizes, messages that can be told apart, and the damage that a crash or an operator leaves.
 *
 * Everything that is not expected ends the test by an assertion of cmocka. */
#ifndef TEST_STORE_KIT_H
#define TEST_STORE_KIT_H

#include <mqstore.h>

enum { KIT_SEGMENT = 64 * 1024, KIT_QUEUE_FILE = 2000 };

/* Segments of 64 KiB, queue files of 100 entries, index of 500 slots and 400 entries (as the golden stores). */
struct mqstore_opt kit_opt(const char *dir);
struct mqstore *kit_open(const char *dir);
struct mqstore *kit_open_opt(const struct mqstore_opt *opt);
void kit_close(struct mqstore *s);
/* The process "dies": nothing is flushed, nothing written; memory and the lock are given back. */
void kit_die(struct mqstore *s);

struct mqstore_record kit_record(struct mqstore_queue *q, const char *body);
/* Append one message; -1 in the result's queue_off never happens: a failure ends the test. */
struct mqstore_place kit_append(struct mqstore *s, const char *topic, int id, const char *body);
/* Append messages "PREFIX0".. "PREFIXn-1" of at least `size` bytes each. */
void kit_fill(struct mqstore *s, const char *topic, int id, const char *prefix, int n, size_t size);

struct mqstore_queue *kit_queue(struct mqstore *s, const char *topic, int id);
/* Body of the message at an offset, up to its first '.', in a static buffer; "-" if it cannot be read. */
const char *kit_body(struct mqstore *s, const char *topic, int id, int64_t off);
/* Number of messages that a reader gets who goes from `off` to the end; *skipped = offsets it was led over. */
int kit_count(struct mqstore *s, const char *topic, int id, int64_t off, int *skipped);
int64_t kit_min(struct mqstore *s, const char *topic, int id);
int64_t kit_max(struct mqstore *s, const char *topic, int id);
/* Log offset of a message. */
int64_t kit_log_off(struct mqstore *s, const char *topic, int id, int64_t off);

/* Checks that hold for every store: each queue's entries name records that know their queue and number; 0 <= min <= max. */
void kit_check(struct mqstore *s);

/* Files. Paths are made with printf. */
char *kit_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* static ring */
void kit_copy(const char *from, const char *to);              /* a directory with all in it */
void kit_overwrite(const char *path, int64_t off, const void *p, size_t n);
void kit_zero(const char *path, int64_t off, size_t n);
void kit_flip(const char *path, int64_t off);                 /* one bit */
void kit_truncate(const char *path, int64_t n);
void kit_touch(const char *path);
void kit_remove(const char *path);                            /* a file or a directory with all in it */
bool kit_exists(const char *path);
int64_t kit_size(const char *path);
/* One number for names and contents of all files under a directory. */
uint64_t kit_sum(const char *dir);

/* Lines that the library has logged since kit_log_start() and that hold this text. */
void kit_log_start(void);
int kit_logged(const char *text);

#endif
