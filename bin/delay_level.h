/* delay_level.h: the 18 delays that every broker has, as the tools name them. */
#ifndef BIN_DELAY_LEVEL_H
#define BIN_DELAY_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

enum { DELAY_LEVELS = 18, DELAY_LEVEL_MAX = 1000 /* a broker may be configured to have more */ };

/* The level of just this delay in the default table (messageDelayLevel), or 0. */
int32_t delay_level_of(int64_t ms);
/* "level:N", or a duration that is a level.  *ms: its delay, 0 unknown.  What is neither ends the program with exit 2. */
int32_t delay_level_parse(const char *opt, const char *value, int64_t *ms);

#endif
