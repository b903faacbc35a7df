/* ha_sync.h: a slave's connection to where its master takes requests, and the tables that it copies from there every HA_SYNC_MS:
 * topics (21), groups (201), offsets of groups (43) and of delay levels (45), request modes (402), counts of the timer (61).
 *
 * Only while the logs are known to agree: tables of another master's are not for this store. */
#ifndef BROKER_HA_SYNC_H
#define BROKER_HA_SYNC_H

struct broker;
struct conn;
struct ha_replica;
struct ha_sync;

enum { HA_SYNC_MS = 10000 };

struct ha_sync *ha_sync_new(struct broker *b, struct ha_replica *r);
void ha_sync_stop(struct ha_sync *s);
void ha_sync_free(struct ha_sync *s);           /* ends with the next turns of the loop */

void ha_sync_master(struct ha_sync *s, const char *addr);      /* another one */
/* NULL: it is not connected (yet); then ha_replica_can_ask() comes when it is. */
struct conn *ha_sync_conn(struct ha_sync *s);
void ha_sync_now(struct ha_sync *s);            /* copy soon */

#endif
