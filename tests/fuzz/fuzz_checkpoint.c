/* fuzz_checkpoint: covers store/checkpoint.c, and recover.c as far as it believes it: the input is the checkpoint of a whole
 * store.  The first byte: 1 = after a crash, 2 = cut short where the input ends, 4 = mqstore_repair() first.
 * Seeds: checkpoints of tests/golden/store. */
#include "lab_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 1)
		return 0;
	lab_store_make(false, p[0] & 1);
	lab_write(lab_store_path("checkpoint"), p + 1, n - 1, p[0] & 2 || n > 4096 ? 0 : 4096);
	lab_store_try(p[0] & 4);
	return 0;
}
