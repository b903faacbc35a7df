/* route.h: which brokers and queues a topic has in the whole cluster, as a name server tells: for what this broker decides for
 * clients (QUERY_ASSIGNMENT).  Kept for loadBalancePollNameServerInterval. */
#ifndef BROKER_ROUTE_H
#define BROKER_ROUTE_H

#include <codec/body_route.h>

struct broker;
struct route;

struct route *route_new(struct broker *b);
void route_free(struct route *r);       /* who waits is told that nothing is known */

/* cb(arg, route), at once or when a name server has answered; NULL: no name server knows the topic, or none can be asked. */
void route_ask(struct route *r, struct mq_str topic, void (*cb)(void *arg, const struct body_route *route), void *arg);

#endif
