/* watch.h: wait on the client's loop for a descriptor that is not ours alone (stdin, stdout).
 *
 * libuv makes what it polls non-blocking, which would reach every process that shares the terminal or pipe.  An epoll set that
 * holds just the descriptor stands between: libuv polls the set. */
#ifndef BIN_WATCH_H
#define BIN_WATCH_H

#include <stdint.h>
#include <sys/epoll.h>
#include <uv.h>

struct watch;

#define WATCH_OFF UINT32_MAX

/* Begin, waiting for nothing but errors and hang-up.  0; 1 if there is nothing to wait for (a regular file: always ready; *w is
 * NULL); or -errno. */
int watch_open(struct watch **w, uv_loop_t *loop, int fd, void (*cb)(void *arg, uint32_t events), void *arg);
/* EPOLLIN, EPOLLOUT; 0: errors and hang-up only (they are told again and again until the watch is off or closed); WATCH_OFF. */
void watch_for(struct watch *w, uint32_t events);
/* w may be NULL, here and above. */
void watch_close(struct watch *w);

#endif
