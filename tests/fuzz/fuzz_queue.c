/* fuzz_queue: covers store/cqueue*.c, bqueue.c, search.c, read.c, files_queue.c, check_queue.c: the input is a file of a consume
 * queue in a whole store.  The first byte: 1 = of a batch consume queue instead, 2 = after a crash, 4 = the second file of a
 * queue of which the first is whole, 8 = mqstore_repair() first.  Seeds: queue files of tests/golden/store. */
#include "lab_store.h"
#include "base/sys.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t how;

	if (n < 1)
		return 0;
	how = p[0];
	p++;
	n--;
	lab_store_make(false, how & 2);
	if (how & 1) {
		LAB_CHECK(sys_mkdir_all(lab_store_path("batchconsumequeue/B/0")) == 0);
		lab_write(lab_store_path("batchconsumequeue/B/0/00000000000000000000"), p, n, n > 460 ? 0 : 460);
	} else if (how & 4) {
		lab_write(lab_store_path("consumequeue/T/0/00000000000000000200"), p, n > LAB_QUEUE_FILE ? LAB_QUEUE_FILE : n,
			  LAB_QUEUE_FILE);
	} else {
		lab_write(lab_store_path("consumequeue/T/0/00000000000000000000"), p, n > LAB_QUEUE_FILE ? LAB_QUEUE_FILE : n,
			  LAB_QUEUE_FILE);
	}
	lab_store_try(how & 8);
	return 0;
}
