/* ports.h: where the broker is reached: listenPort, the fast port two below, the one for slaves; embedded, a Unix socket; and the
 * leaving of an embedded broker whose last client has left. */
#ifndef BROKER_PORTS_H
#define BROKER_PORTS_H

#include <mq.h>

struct broker;

/* brokerIP1 as an address, for records and message ids.  0, or MQ_EINVAL: no such host. */
int ports_find_host(struct broker *b, struct mq_error *e);
/* Listen, and say where (b->addr, b->ha_addr).  On failure ports_close() takes back what was done. */
int ports_open(struct broker *b, struct mq_error *e);
/* Close what listens at once, without a wait for answers. */
void ports_close(struct broker *b);
/* Embedded with idle_exit_ms: from now on nobody is there. */
void ports_watch_idle(struct broker *b);

#endif
