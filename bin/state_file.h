/* state_file.h: the small files of --resume: read whole, replaced whole.  After a crash either the old or the new one is there. */
#ifndef BIN_STATE_FILE_H
#define BIN_STATE_FILE_H

#include "bytes.h"

/* Read `path` into b, with a NUL behind it that does not count.  Returns 0, MQ_ENOTFOUND if there is none (b empty), or a failure
 * with its reason. */
int state_file_read(const char *path, struct bytes *b, struct mq_error *err);

/* Replace `path`: written aside, synced, renamed, directory synced.  0 or a failure with its reason. */
int state_file_write(const char *path, struct mq_str text, struct mq_error *err);

/* The file `name` in `dir` of $XDG_STATE_HOME/mq (~/.local/state/mq), directories made.  Allocated; NULL with the reason. */
char *state_file_home(const char *dir, const char *name, struct mq_error *err);

/* Take `path` for this process until it ends (by PATH.lock).  0; MQ_EBUSY if another has it; or a failure with its reason. */
int state_file_lock(const char *path, struct mq_error *err);

#endif
