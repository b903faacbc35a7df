/* lab.h: what harnesses share: quiet logs, and files for readers that want a path.
 *
 * The directory is fresh for each process, in memory where there is /dev/shm ($TMPDIR wins), and goes with a normal end. */
#ifndef TESTS_FUZZ_LAB_H
#define TESTS_FUZZ_LAB_H

#include "drive.h"
#include <mq.h>

/* True: no message was expected to hold, so the process ends here with what it was. */
#define LAB_CHECK(what) \
	do { \
		if (!(what)) \
			lab_wrong(__FILE__, __LINE__, #what); \
	} while (0)
_Noreturn void lab_wrong(const char *file, int line, const char *what);

void lab_quiet(void);                           /* log lines are made, and thrown away */
const char *lab_dir(void);                      /* made with the first call */
/* DIR/...; the text is good for 16 calls. */
char *lab_path(const char *fmt, ...) MQ_PRINTF(1, 2);
/* A file with these bytes, and zeros up to `size` behind them (size 0: exactly these). */
void lab_write(const char *path, const void *p, size_t n, size_t size);
/* Malloc'd to its exact size (at least 1): a step beyond is seen. */
char *lab_copy(const void *p, size_t n);

#endif
