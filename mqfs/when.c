/* when.c: see when.h. */
#include "when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MS_FROM = 100000000 }; /* thousands of it: a number from 1e11 on is ms, below it seconds (until the year 5138) */

bool when_parse(const char *text, int64_t *ms)
{
	struct tm t = { .tm_isdst = -1 };
	const char *p;
	char *end;
	double seconds = 0;
	time_t s;
	bool utc;

	if (text[0] == '@') {
		size_t n = strspn(text + 1, "0123456789");
		if (!n || text[1 + n] || n > 18)
			return false;
		*ms = strtoll(text + 1, NULL, 10);
		if (*ms < (int64_t)MS_FROM * 1000)
			*ms *= 1000;
		return true;
	}
	p = strptime(text, "%Y-%m-%d", &t);
	if (p && (*p == 'T' || *p == ' ')) {
		p = strptime(p + 1, "%H:%M", &t);
		if (p && *p == ':') {
			if (p[1] < '0' || p[1] > '9')
				return false;
			seconds = strtod(p + 1, &end);
			p = end;
			if (seconds >= 61)
				return false;
		}
	}
	if (!p)
		return false;
	utc = *p == 'Z';
	if (p[utc ? 1 : 0])
		return false;
	s = utc ? timegm(&t) : mktime(&t);
	*ms = (int64_t)s * 1000 + (int64_t)(seconds * 1000 + 0.5);
	return s != (time_t)-1;
}

char *when_text(int64_t ms, char *out, size_t cap)
{
	time_t s = (time_t)(ms / 1000);
	struct tm t;
	char date[40];

	localtime_r(&s, &t);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &t);
	snprintf(out, cap, "%s.%03d", date, (int)(ms % 1000));
	return out;
}
