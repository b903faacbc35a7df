/* ha_sync.h: a slave's connection to where its master takes requests, and the tables that it copies from there every HA_SYNC_MS:
 * topics (21), groups (201), offsets of groups (43) and of delay levels (45), request modes (402), counts of the timer (61), and
 * how far the timer has come (60).
 *
 * The last is what a broker that starts here as master one day goes on from: only what was to be delivered since is looked for in the
 * log.  It says that something was delivered, so it counts only while what was is in this log, on the disk: the file
 * config/timercheck is written when the log is flushed up to where the master's ended (28) after it had said so, and removed before
 * anything is cut.
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
void ha_sync_cuts(struct ha_sync *s);           /* the log is about to lose its end */

#endif
