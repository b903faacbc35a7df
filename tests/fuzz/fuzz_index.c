/* fuzz_index: covers store/index*.c and check_index.c: the input is an index file in a whole store.  The first byte: 1 = instead
 * of the store's own, else beside it, 2 = after a crash, 4 = of whatever size, else of the right one, 8 = mqstore_repair() first.
 * Seeds: index files of tests/golden/store with fewer slots and entries. */
#include "lab_store.h"
#include "base/mem.h"

#include <stdlib.h>

enum { INDEX_BYTES = 40 + 4 * LAB_SLOTS + 20 * LAB_ENTRIES };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *path;
	uint8_t how;

	if (n < 1)
		return 0;
	how = p[0];
	p++;
	n--;
	lab_store_make(false, how & 2);
	path = mem_strdup(lab_store_path(how & 1 ? lab_store_first("index") : "index/" LAB_INDEX_NAME));
	if (how & 4)
		lab_write(path, p, n, 0);
	else
		lab_write(path, p, n > INDEX_BYTES ? INDEX_BYTES : n, INDEX_BYTES);
	free(path);
	lab_store_try(how & 8);
	return 0;
}
