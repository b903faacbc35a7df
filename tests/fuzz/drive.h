/* drive.h: what a fuzz harness is: one function that takes any bytes, and a main that feeds it (drive.c).
 *
 *      fuzz_NAME.f FILE...                     run these inputs (a fuzzer's crashers, seeds)
 *      fuzz_NAME.f                             run standard input (as AFL++ feeds it: afl-fuzz -i SEEDS -o OUT -- fuzz_NAME.f)
 *      fuzz_NAME.f -m SECONDS [-s N] FILE...   without a fuzzer: change the files at random for so long, from seed N
 *
 * Built by ./configure --enable-fuzz --enable-sanitize and make; the function is libFuzzer's, so clang can drive it too. */
#ifndef TESTS_FUZZ_DRIVE_H
#define TESTS_FUZZ_DRIVE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
