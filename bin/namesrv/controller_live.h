/* controller_live.h: which brokers of the groups live, by their heartbeats (904) and the connections these came over.
 *
 * Every controller keeps its own; brokers send to all.  Times are monotonic ms. */
#ifndef NAMESRV_CONTROLLER_LIVE_H
#define NAMESRV_CONTROLLER_LIVE_H

#include "controller.h"

enum { CONTROLLER_SILENT_MS = 10000 };  /* a broker that does not say how long its silence may be */

struct controller_lives;

struct controller_lives *controller_lives_new(void);
void controller_lives_free(struct controller_lives *l);
/* conn is only compared.  epoch and maxOffset never go back while it lives. */
void controller_lives_beat(struct controller_lives *l, const struct broker_heartbeat_header *h, const void *conn, int64_t now_ms);
/* The connection is gone, and with it who came over it.  How many that were. */
int controller_lives_lost(struct controller_lives *l, const void *conn);
/* Those that were silent for too long are gone.  How many. */
int controller_lives_scan(struct controller_lives *l, int64_t now_ms);
/* controller_look. */
const struct controller_life *controller_lives_look(void *lives, struct mq_str cluster, struct mq_str name, int64_t id);

#endif
