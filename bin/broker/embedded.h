/* embedded.h: the name server inside of an embedded broker: it knows this broker alone, and at once. */
#ifndef BROKER_EMBEDDED_H
#define BROKER_EMBEDDED_H

#include <net/conn.h>

struct broker;
struct embedded;

/* NULL with e. */
struct embedded *embedded_new(struct broker *b, struct mq_error *e);
void embedded_free(struct embedded *x);         /* ends with the next turns of the loop */
/* Let the routes have the topics as they are now, if they changed. */
void embedded_turn(struct embedded *x);
/* A request that the broker does not serve itself: false if the name server does not either. */
bool embedded_request(struct embedded *x, struct conn *c, struct frame *f);
void embedded_closed(struct embedded *x, struct conn *c);

#endif
