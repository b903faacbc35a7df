/* notify.h: tells brokers of changes, oneway, each over a connection of its own. */
#ifndef NAMESRV_NOTIFY_H
#define NAMESRV_NOTIFY_H

#include "route_table.h"
#include <base/buf.h>
#include <uv.h>

/* One frame to one broker.  The frame (malloc'd, and its bytes) is freed when it has left or cannot. */
void notify_send(uv_loop_t *loop, const char *addr, struct buf *frame);
/* 905: another replica is first now. */
void notify_first(uv_loop_t *loop, const struct route_first *f);

#endif
