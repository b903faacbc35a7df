/* session.h: the connection to the kernel, on the loop. */
#ifndef MQFS_SESSION_H
#define MQFS_SESSION_H

#include <mq.h>
#include <uv.h>

/* Mount options.mountpoint.  `ready` is called when the kernel has said hello, `gone` when it is no longer mounted, or the connection
 * has broken.  0 or a negative code with the reason. */
int session_open(uv_loop_t *loop, void (*ready)(void), void (*gone)(void), struct mq_error *err);
/* Unmount, also when files are open: who has one gets ENOTCONN. */
void session_close(void);

#endif
