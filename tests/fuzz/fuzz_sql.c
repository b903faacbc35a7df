/* fuzz_sql: covers codec/sql*.c: an expression, a NUL byte, a properties text.  Seeds: seeds/sql. */
#include "lab.h"
#include "codec/sql.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *expr, *props;
	const uint8_t *nul = n ? memchr(p, 0, n) : NULL;
	size_t first = nul ? (size_t)(nul - p) : n, rest = nul ? n - first - 1 : 0;
	struct mq_error e = { 0 };
	struct sql *s;

	/* Each in memory of its own size. */
	expr = malloc(first + !first);
	props = malloc(rest + !rest);
	memcpy(expr, p, first);
	if (rest)
		memcpy(props, nul + 1, rest);
	if (sql_compile(&s, (struct mq_str){ expr, first }, &e) == 0) {
		memset(expr, 0xff, first); /* the program holds copies */
		bool once = sql_match(s, (struct mq_str){ props, rest });

		LAB_CHECK(once == sql_match(s, (struct mq_str){ props, rest }));
		sql_free(s);
	} else {
		LAB_CHECK(!s && strncmp(e.text, "SQL92 expression", 16) == 0);
	}
	free(expr);
	free(props);
	return 0;
}
