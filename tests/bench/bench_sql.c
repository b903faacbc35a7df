/* bench_sql: evaluations of an SQL92 expression in a second, over the properties of a message as the Java client sends it.
 *
 * Usage: bench_sql [EXPRESSION ...] */
#include "base/str.h"
#include "codec/sql.h"

#include <stdio.h>
#include <time.h>

static const char props[] =
	"color\1red\2n\00117\2price\00119.95\2region\1eu-central\2TRACE_ON\1true\2MSG_REGION\1DefaultRegion\2"
	"UNIQ_KEY\1C0000202523C4AA31F0F1E3FD3F40000\2CLUSTER\1DefaultCluster\2WAIT\1true\2TAGS\1TagA\2";

/* Of this process: other work on the machine does not count. */
static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void bench(const char *expr)
{
	enum { ROUNDS = 3000000 };
	struct mq_str p = { props, sizeof props - 1 };
	struct mq_error e;
	struct sql *s;
	int64_t t, hits = 0;
	double ns;

	if (sql_compile(&s, str_of(expr), &e) < 0) {
		fprintf(stderr, "bench_sql: %s: %s\n", expr, e.text);
		return;
	}
	t = cpu_us();
	for (int i = 0; i < ROUNDS; i++) {
		__asm__ volatile("" : "+r"(p.p));
		hits += sql_match(s, p);
	}
	ns = (double)(cpu_us() - t) * 1000.0 / ROUNDS;
	printf("%-80s %s %4.0f ns, %5.2f M/s\n", expr, hits ? "yes" : "no ", ns, 1000.0 / ns);
	sql_free(s);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		for (int i = 1; i < argc; i++)
			bench(argv[i]);
	else {
		bench("n > 3");
		bench("color = 'red' AND n > 3");
		bench("color IN ('blue', 'green', 'red') AND n BETWEEN 10 AND 20 AND price < 20.0");
		bench("(region STARTSWITH 'us' OR region STARTSWITH 'eu') AND NOT (color = 'blue') AND TAGS IS NOT NULL AND gone IS NULL");
	}
	return 0;
}
