/* fuzz_log: covers store/scan.c, recover.c, commitlog.c, segment*.c, derive.c, check.c, files_log.c and what they feed: the input
 * is the first segment of a commit log.  The first byte: 1 = after a crash, 2 = a second segment repeats the input, 4 = checksums
 * and log offsets are put right first (no fuzzer finds those), 8 = mqstore_repair() before the store is opened.
 * Seeds: segments of tests/golden/store. */
#include "lab_store.h"
#include "base/byte.h"
#include "base/crc.h"
#include "codec/message.h"

#include <stdlib.h>
#include <string.h>

static void put_right(char *p, size_t n, int64_t start)
{
	struct mq_message m;
	int32_t size;

	for (size_t at = 0; at < n && (size = mq_message_decode(p + at, n - at, false, &m)) > 0; at += (size_t)size) {
		put_be32(p + at + RECORD_AT_CRC, crc32_peer(m.body.p, m.body.n));
		put_be64(p + at + RECORD_AT_LOG_OFF, (uint64_t)(start + (int64_t)at));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy;
	uint8_t how;

	if (n < 1)
		return 0;
	how = p[0];
	n = n - 1 > LAB_SEGMENT ? LAB_SEGMENT : n - 1;
	copy = lab_copy(p + 1, n);
	lab_store_make(true, how & 1);
	if (how & 4)
		put_right(copy, n, 0);
	lab_write(lab_store_path("commitlog/00000000000000000000"), copy, n, LAB_SEGMENT);
	if (how & 2) {
		if (how & 4)
			put_right(copy, n, LAB_SEGMENT);
		lab_write(lab_store_path("commitlog/00000000000000008192"), copy, n, LAB_SEGMENT);
	}
	free(copy);
	lab_store_try(how & 8);
	return 0;
}
