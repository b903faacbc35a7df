/* ha_master.h: the replication port of a master: slaves come, are fed, acknowledge; sends hear when enough of them have a message.
 *
 * What is new is shipped when the turn's input has been handled.  With slaves that nobody waits for (ASYNC_MASTER) it is gathered for
 * some ms, so that many messages cost as much as one.  Without slaves nothing of this costs anything. */
#ifndef BROKER_HA_MASTER_H
#define BROKER_HA_MASTER_H

#include "ha_role.h"
#include <base/json.h>

struct broker;

enum { HA_SLAVES_MAX = 64, HA_LEVELS = 16 };

/* What the hot path looks at. */
struct ha_master {
	int32_t need;                   /* machines that must have a message which is stored now; 1 = no wait, 0 = too few are there */
	int64_t level[HA_LEVELS + 1];   /* [n]: below this everything is on n machines (n >= 2) */
	struct ha_master_impl *impl;
};

/* Listen; port 0: any.  *h NULL on failure. */
int ha_master_open(struct ha_master **h, struct broker *b, int port, struct mq_error *e);
int ha_master_port(const struct ha_master *h);
void ha_master_stop(struct ha_master *h);       /* ships what there is, as far as the sockets take it; then all connections end */
void ha_master_free(struct ha_master *h);       /* ends with the next turns of the loop; NULL is allowed */
void ha_master_reload(struct ha_master *h);     /* the configuration may have changed */

/* Of h == NULL (a slave, or embedded): 1, true. */
static inline int32_t ha_master_need(const struct ha_master *h) { return h ? h->need : 1; }
static inline bool ha_master_has(const struct ha_master *h, int64_t end_off, int32_t n)
{
	return !h || n <= 1 || (n <= HA_LEVELS && h->level[n] >= end_off);
}
void ha_master_look(struct ha_master *h);       /* under a controller: what is required of slaves may have changed */
/* Slaves that are connected and have said where they stand. */
int ha_master_slaves(const struct ha_master *h);
/* Members haConnectionInfo, inSyncSlaveNums and (our own) refused: who was sent away last, and why. */
void ha_master_status(const struct ha_master *h, struct json_out *j);

#endif
