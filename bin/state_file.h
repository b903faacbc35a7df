/* state_file.h: the small files of --resume: read whole, replaced whole.  After a crash either the old or the new one is there. */
#ifndef BIN_STATE_FILE_H
#define BIN_STATE_FILE_H

#include "bytes.h"

/* Read `path` into b, with a NUL behind it that does not count.  Returns 0, MQ_ENOTFOUND if there is none (b empty), or a failure
 * with its reason. */
int state_file_read(const char *path, struct bytes *b, struct mq_error *err);

/* Replace `path`: written aside, synced, renamed, directory synced.  0 or a failure with its reason. */
int state_file_write(const char *path, struct mq_str text, struct mq_error *err);

#endif
