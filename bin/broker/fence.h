/* fence.h: has another broker been made master in this one's place?
 *
 * `mq-admin promote` writes the address of a name's new master into every name server (FENCE_NAMESPACE, key = the name) before it makes
 * it one.  A master asks each name server before it registers there, and again with every period: if somebody else's address
 * stands there it takes no messages and does not register until it is a slave, or the entry is gone.  masterFence=true: nor before
 * the first name server has answered.
 * Not asked: slaves, brokers under a controller, embedded ones. */
#ifndef BROKER_FENCE_H
#define BROKER_FENCE_H

#include <net/conn.h>

struct broker;

#define FENCE_NAMESPACE "MQ_PROMOTED"   /* of the name servers' settings; ours alone */

bool fence_applies(const struct broker *b);
/* Ask over c; done(arg) when it is known and b->deposed says so, or when it cannot be known. */
void fence_ask(struct broker *b, struct conn *c, void (*done)(void *arg, bool closed), void *arg);
/* A request that changes messages, of a broker that was deposed. */
bool fence_stops(int32_t code);

#endif
