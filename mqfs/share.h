/* share.h: groups/G/recv/T: this mount as a member of a group, and its share of the messages handed to who reads.
 *
 * There is one membership for a group, however many files are open; a message goes to whoever asks first.  A read
 * returns bytes of one record only (a body, and a newline if it does not end with one).  To ask for the next one, or to
 * close cleanly after the whole of one was read, acknowledges it; else it is handed back and goes to the next reader here,
 * or, when the mount leaves the group, to another member.
 *
 * Cleanly is: by a process that goes on or ends with status 0.  Who is killed by a signal, or ends with another status with the file
 * still open, hands back; so does one that cannot be seen (another pid namespace). */
#ifndef MQFS_SHARE_H
#define MQFS_SHARE_H

#include "held.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct taker;                           /* one open file */

/* In a task.  0 or -errno: ENOENT no such topic, EBUSY the group reads another topic here. */
int share_open(struct taker **t, const char *group, const char *topic);
/* Some process closes one of its descriptors of this file: not the end, but the last one before the end counts. */
void share_flush(struct taker *t, pid_t pid);
void share_close(struct taker *t);

void share_read(struct taker *t, fuse_req_t req, size_t size, off_t off, bool nonblock);
void share_poll(struct taker *t, fuse_req_t req, struct fuse_pollhandle *ph);

void share_tick(void);
/* At the end: every reader is told; who was not acknowledged is not. */
void share_close_all(void);

#endif
