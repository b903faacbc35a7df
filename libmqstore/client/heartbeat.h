/* heartbeat.h: staying known to the brokers: groups of producers and consumers, every 30 s and at once when they change.
 *
 * Goes to the brokers that routes name, by itself: it waits for no name server and no other broker.  A broker knows a
 * client by its connection, so a new connection starts with a heartbeat. */
#ifndef CLIENT_HEARTBEAT_H
#define CLIENT_HEARTBEAT_H

#include "client.h"

struct producer {
	char *name;
	size_t name_n;
	bool told;                      /* in a heartbeat that went out */
	UT_hash_handle hh;
};
/* The group of producers with this name; new ones are told to the brokers a second later. */
struct producer *heartbeat_producer(struct mqclient *c, const char *group);

void heartbeat_init(struct mqclient *c);
void heartbeat_free(struct mqclient *c);

/* Groups, subscriptions or brokers changed.  With consumers: at once. */
void heartbeat_changed(struct mqclient *c);
/* First frame of a connection that was just begun. */
void heartbeat_greet(struct link *l);
/* A broker does not seem to know us: tell it. */
void heartbeat_now(struct link *l);

/* Take leave of all brokers that know us: one request for each group of producers (consumer_group == NULL), or for that one.
 * c->leaves_open counts the answers that are awaited; the caller turns the loop. */
void heartbeat_unregister(struct mqclient *c, const char *consumer_group);
/* At the end: leave as producers, wait at most timeout_ms. */
void heartbeat_leave(struct mqclient *c, int timeout_ms);

#endif
