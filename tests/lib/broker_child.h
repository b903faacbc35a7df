/* broker_child.h: a broker in a process of its own, to be killed, and plain sockets to it.
 *
 * Everything that is not expected ends the test by an assertion of cmocka. */
#ifndef TEST_BROKER_CHILD_H
#define TEST_BROKER_CHILD_H

#include "base/buf.h"
#include "codec/frame.h"

#include <sys/types.h>

/* Start it on the directory, whatever the last kill left there; props as for broker_kit_start_in().  It ends with this process. */
pid_t broker_child_start(const char *dir, const char *const *props, int *port);
void broker_child_kill(pid_t pid);              /* -9, and waits for its end */

int broker_child_dial(int port);
/* All of it; b is empty then.  False: the connection has ended. */
bool broker_child_put(int fd, struct buf *b);
/* The next frame; its views point into *in, of which *used bytes were the last one.  False: the connection has ended. */
bool broker_child_next(int fd, struct buf *in, size_t *used, struct frame *f);

#endif
