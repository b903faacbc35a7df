/* ha_replica.h: following a master: its log, byte for byte, and its tables (ha_sync.h).
 *
 * A slave learns its master from the answers to its registrations, or haMasterAddress.  It connects, compares logs (ha_agree.h),
 * gives up what the master has not (saved below storePathRootDir/cut/), and then takes what comes. */
#ifndef BROKER_HA_REPLICA_H
#define BROKER_HA_REPLICA_H

#include "ha_role.h"
#include <base/json.h>

struct broker;
struct ha_replica;

struct ha_replica *ha_replica_new(struct broker *b);
void ha_replica_stop(struct ha_replica *r);
void ha_replica_free(struct ha_replica *r);     /* ends with the next turns of the loop; NULL is allowed */

/* What a name server said: address for replication and for requests; empty: there is no master now. */
void ha_replica_master(struct ha_replica *r, struct mq_str ha_addr, struct mq_str addr);
/* Under a controller: the master takes requests at addr, and says itself where it replicates.  Empty: there is none. */
void ha_replica_switch(struct ha_replica *r, const char *addr);
/* masterFlushOffset of 906, 907 and 908: shown, of no other use; 0 at the start. */
int64_t ha_replica_master_flushed(const struct ha_replica *r);
void ha_replica_set_master_flushed(struct ha_replica *r, int64_t off);
/* Is the master still to be found out? */
bool ha_replica_homeless(const struct ha_replica *r);
/* The log is flushed further: under SYNC_FLUSH that is what the master hears. */
void ha_replica_flushed(struct ha_replica *r);

/* From ha_sync.c: the connection for questions is there. */
void ha_replica_can_ask(struct ha_replica *r);
/* Are log and master's log known to agree? */
bool ha_replica_agrees(const struct ha_replica *r);

/* Member haClientRuntimeInfo. */
void ha_replica_status(const struct ha_replica *r, struct json_out *j);
enum ha_phase ha_replica_phase(const struct ha_replica *r);
const char *ha_replica_master_addr(const struct ha_replica *r);        /* for requests; "" = not known */

#endif
