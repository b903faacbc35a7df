/* drive.c: main of a harness that is not linked with libFuzzer: runs files, and all files of directories, in order of names. */
#include "drive.h"
#include "base/mem.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 16 * 1024 * 1024 };

static int inputs;

static int run(const char *path)
{
	char **names, *p;
	uint8_t *exact;
	struct stat st;
	size_t n;
	int rc = sys.stat(path, &st);

	if (rc == 0 && S_ISDIR(st.st_mode)) {
		rc = sys_list(path, &names, &n);
		for (size_t i = 0; rc == 0 && i < n; i++) {
			char *inner = mem_printf("%s/%s", path, names[i]);

			rc = run(inner);
			free(inner);
		}
		if (rc == 0)
			free(names);
		return rc;
	}
	if (rc == 0)
		rc = sys_read_file(path, INPUT_MAX, &p, &n);
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", path, mq_strerror(rc));
		return rc;
	}
	/* In memory of exactly its size, so that a step beyond is seen. */
	exact = malloc(n ? n : 1);
	memcpy(exact, p, n);
	free(p);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	inputs++;
	return 0;
}

int main(int argc, char **argv)
{
	int rc = 0;

	for (int i = 1; i < argc && rc == 0; i++)
		rc = run(argv[i]);
	printf("%d inputs\n", inputs);
	return rc < 0 ? 2 : 0;
}
