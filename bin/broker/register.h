/* register.h: keeps this broker known to every name server: REGISTER_BROKER every registerNameServerPeriod and at once on a
 * change of topics, UNREGISTER_BROKER at the stop.  Changes that come while a registration is on its way are sent after it. */
#ifndef BROKER_REGISTER_H
#define BROKER_REGISTER_H

#include <stdint.h>

struct broker;
struct conn;
struct registrar;

struct registrar *register_new(struct broker *b);
/* Register soon: at the end of the turn. */
void register_soon(struct registrar *r);
/* End of a turn. */
void register_turn(struct registrar *r);
/* Version of topic_table's file up to which every name server that can be reached knows the topics. */
uint64_t register_version(const struct registrar *r);
/* A connection to a name server, to ask something of it; NULL: there is none now. */
struct conn *register_conn(const struct registrar *r);
/* namesrvAddr may have changed. */
void register_reload(struct registrar *r);
/* Unregister everywhere: done(arg) when all have answered, at the latest after timeout_ms. */
void register_stop(struct registrar *r, int timeout_ms, void (*done)(void *arg), void *arg);
void register_free(struct registrar *r);        /* ends with the next turns of the loop */

#endif
