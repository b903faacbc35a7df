/* mount.h: the mount point: what is mounted there now, and when it is no longer us. */
#ifndef MQFS_MOUNT_H
#define MQFS_MOUNT_H

#include <mq.h>

/* Before mounting: a directory is wanted.  A mount whose mqfs has died is taken away; one that lives is an error.
 * 0 or a negative code with the reason. */
int mount_prepare(const char *dir, struct mq_error *err);
/* The number of the newest mount at this place in /proc/self/mountinfo, -1 = none (or that file is not there). */
int64_t mount_id(const char *dir);
bool mount_is_there(int64_t id);

#endif
