/* when.h: times as names of files, and as text. */
#ifndef MQFS_WHEN_H
#define MQFS_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2026-11-30, 2026-11-30T12:00[:00[.123]], with Z for UTC, else local time; @SECONDS or @MILLISECONDS since 1970. */
bool when_parse(const char *text, int64_t *ms);
/* 2026-11-30T12:00:00.123, local. */
char *when_text(int64_t ms, char *out, size_t cap);

#endif
