/* metrics.c: the counters as text. */
#include "metrics.h"
#include <base/log.h>
#include <codec/request.h>
#include <inttypes.h>
#include <stdio.h>

#define LOG_MODULE "metrics"

static const struct metrics_row {
	const char *name, *help;
	size_t off;
} metrics_rows[] = {
#define METRICS_ROW(name, help) { #name, help, offsetof(struct metrics, name) },
	BROKER_METRICS(METRICS_ROW)
#undef METRICS_ROW
};

void metrics_each(const struct metrics *m, void (*cb)(void *arg, const char *name, const char *help, uint64_t v), void *arg)
{
	char name[64];

	for (int code = 0; code < 64; code++)
		if (m->answers[code]) {
			snprintf(name, sizeof name, "answer_%s", response_name(code));
			cb(arg, name, "answers with this code", m->answers[code]);
		}
	if (m->answers_other)
		cb(arg, "answer_other", "answers with codes of 64 and more", m->answers_other);
	for (size_t i = 0; i < sizeof metrics_rows / sizeof metrics_rows[0]; i++) {
		const struct metrics_row *r = &metrics_rows[i];

		cb(arg, r->name, r->help, *(const uint64_t *)((const char *)m + r->off));
	}
}

static void print_one(void *arg, const char *name, const char *help, uint64_t v)
{
	buf_printf(arg, "%s %" PRIu64 "\n", name, v);
}

void metrics_print(const struct metrics *m, struct buf *out)
{
	metrics_each(m, print_one, out);
}

static void log_one(void *arg, const char *name, const char *help, uint64_t v)
{
	log_line(LOG_INFO, LOG_MODULE, "%s: %s=%" PRIu64, help, name, v);
}

void metrics_log(const struct metrics *m)
{
	metrics_each(m, log_one, NULL);
}
