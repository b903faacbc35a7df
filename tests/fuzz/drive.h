/* drive.h: what a fuzz harness is: one function that takes any bytes and ends the process when something is wrong with what
 * became of them.  It is libFuzzer's: clang hunts with it; without clang drive.c feeds it files.
 *
 *      fuzz_NAME.f FILE|DIR...        run these inputs: a crasher, the seeds
 *
 * How to hunt, and where seeds come from: README.md, run. */
#ifndef TESTS_FUZZ_DRIVE_H
#define TESTS_FUZZ_DRIVE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
