/* ha_door.h: who may come in at the replication port: haAllowedAddresses, and who proves the secret of haSecretFile if there is one.
 *
 * Those who have not proved it yet are few (HA_DOOR_MAX): who comes then takes the place of who has stood there longest, so nobody keeps
 * others out by standing there. */
#ifndef BROKER_HA_DOOR_H
#define BROKER_HA_DOOR_H

#include <net/stream.h>

struct broker;
struct ha_door;

enum { HA_DOOR_MAX = 16 };

struct ha_door_ops {
	/* s is who has come in, and its owner's from now on. */
	void (*entered)(void *owner, struct stream *s);
	/* Who was turned away and why; it is gone. */
	void (*refused)(void *owner, const struct mq_host *peer, const char *why);
};

/* Listen; port 0: any.  NULL with e. */
struct ha_door *ha_door_open(struct broker *b, int port, const struct ha_door_ops *ops, void *owner, struct mq_error *e);
int ha_door_port(const struct ha_door *d);
/* Nobody comes in any more, and who waits goes. */
void ha_door_close(struct ha_door *d);

#endif
