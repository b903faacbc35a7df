/* delay_level.c: see delay_level.h. */
#include "delay_level.h"
#include "cli.h"

#include <string.h>

/* compat: messageDelayLevel of the peer, in seconds. */
static const int32_t seconds[DELAY_LEVELS] = { 1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200 };

int32_t delay_level_of(int64_t ms)
{
	for (int32_t i = 0; i < DELAY_LEVELS; i++)
		if (seconds[i] * (int64_t)1000 == ms)
			return i + 1;
	return 0;
}

int32_t delay_level_parse(const char *opt, const char *value, int64_t *ms)
{
	int32_t level;

	if (strncmp(value, "level:", 6) == 0) {
		level = (int32_t)cli_int(opt, value + 6, 1, DELAY_LEVEL_MAX);
		*ms = level <= DELAY_LEVELS ? seconds[level - 1] * (int64_t)1000 : 0;
		return level;
	}
	*ms = cli_duration_ms(opt, value);
	level = delay_level_of(*ms);
	if (!level)
		cli_usage_error("%s: '%s' is no level: level:N, or 1s 5s 10s 30s 1m to 10m 20m 30m 1h 2h", opt, value);
	return level;
}
