/* report.c: what was measured, in one line, or as a small table for people. */
#include "bench.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const modes[] = { "send", "batch", "consume", "latency" };

struct cell {
	const char *name;
	bool is_text;
	char value[320];    /* "" = not known */
};
enum { CELLS_MAX = 20 };

struct row {
	struct cell cell[CELLS_MAX];
	int n;
};

static void put_text(struct row *r, const char *name, const char *value)
{
	struct cell *c = &r->cell[r->n++];

	c->name = name;
	c->is_text = true;
	snprintf(c->value, sizeof c->value, "%s", value);
}

static void put_int(struct row *r, const char *name, int64_t v)
{
	struct cell *c = &r->cell[r->n++];

	c->name = name;
	if (v >= 0)
		snprintf(c->value, sizeof c->value, "%" PRId64, v);
}

static void put_real(struct row *r, const char *name, double v, int places)
{
	struct cell *c = &r->cell[r->n++];

	c->name = name;
	if (v >= 0)
		snprintf(c->value, sizeof c->value, "%.*f", places, v);
}

static void fill(struct row *r, const struct bench *b)
{
	double s = (double)(b->ended_us - b->began_us) / 1e6, per = b->messages > 0 ? 1.0 / (double)b->messages : -1;
	double cpu = b->cpu_began_us >= 0 && b->cpu_ended_us >= 0 ? (double)(b->cpu_ended_us - b->cpu_began_us) : -1;
	double own = (double)(b->own_cpu_ended_us - b->own_cpu_began_us);

	put_text(r, "mode", modes[b->o.mode]);
	put_text(r, "server", b->o.limit ? "limit" : b->addr);
	put_int(r, "messages", b->messages);
	put_real(r, "seconds", s, 3);
	put_real(r, "rate", s > 0 ? (double)b->messages / s : 0, 0);
	put_real(r, "mib_per_s", s > 0 ? (double)b->bytes / s / 1048576 : 0, 1);
	put_int(r, "p50_us", histogram_permille(&b->latency, 500));
	put_int(r, "p99_us", histogram_permille(&b->latency, 990));
	put_int(r, "p999_us", histogram_permille(&b->latency, 999));
	put_int(r, "max_us", b->latency.n ? b->latency.max : -1);
	put_int(r, "errors", b->errors);
	put_real(r, "cpu_percent", cpu >= 0 && s > 0 ? cpu / s / 1e4 : -1, 1);
	put_real(r, "cpu_us_per_message", cpu >= 0 && per >= 0 ? cpu * per : -1, 3);
	put_int(r, "anon_kib", b->rss_kb);
	put_real(r, "own_cpu_us_per_message", per >= 0 ? own * per : -1, 3);
}

void bench_report(const struct bench *b)
{
	struct row r = { .n = 0 };

	fill(&r, b);
	for (int i = 0; i < r.n; i++) {
		const struct cell *c = &r.cell[i];

		switch (b->o.format) {
		case BENCH_TABLE:
			printf("%-22s  %s\n", c->name, *c->value ? c->value : "-");
			break;
		case BENCH_TSV:
			printf("%s%s", i ? "\t" : "", *c->value ? c->value : "-");
			break;
		case BENCH_JSON:
			printf("%s\"%s\":%s%s%s", i ? "," : "{", c->name, c->is_text ? "\"" : "", *c->value ? c->value : "null",
			       c->is_text ? "\"" : "");
			break;
		}
	}
	if (b->o.format != BENCH_TABLE)
		printf("%s\n", b->o.format == BENCH_JSON ? "}" : "");
}
