/* notify.h: tells brokers that another of them is first among the replicas now (905, oneway, over a connection of its own). */
#ifndef NAMESRV_NOTIFY_H
#define NAMESRV_NOTIFY_H

#include "route_table.h"
#include <uv.h>

void notify_first(uv_loop_t *loop, const struct route_first *f);

#endif
