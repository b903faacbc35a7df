/* register.h: keeps this broker known to every name server: REGISTER_BROKER every registerNameServerPeriod and at once on a
 * change of topics, UNREGISTER_BROKER at the stop.  Changes that come while a registration is on its way are sent after it. */
#ifndef BROKER_REGISTER_H
#define BROKER_REGISTER_H

struct broker;
struct registrar;

struct registrar *register_new(struct broker *b);
/* Register soon: at the end of the turn. */
void register_soon(struct registrar *r);
/* namesrvAddr may have changed. */
void register_reload(struct registrar *r);
void register_stop(struct registrar *r, void (*done)(void *arg), void *arg);
void register_free(struct registrar *r);

#endif
