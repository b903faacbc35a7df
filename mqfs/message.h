/* message.h: messages that were read, kept a while: they never change, and a directory listing asks for many one by one.
 *
 * Kept are the last ones up to CACHE_BYTES; a message in use stays as long as it is used. */
#ifndef MQFS_MESSAGE_H
#define MQFS_MESSAGE_H

#include <mq.h>
#include <uthash.h>
#include <sys/queue.h>

/* A place: one queue, and a number in it. */
struct queue_name {
	char broker[256];
	int32_t id;
};

struct message {
	UT_hash_handle hh;
	TAILQ_ENTRY(message) lru;
	int refs;
	bool kept;                      /* in the table */
	struct mq_message m;            /* views into `record` */
	struct mq_str body;             /* in plain form; into `record` or `plain` */
	char broker[256];
	char *record;
	void *plain;
	size_t bytes;
	size_t key_n;
	char key[];                     /* topic, NUL, broker:id, NUL, offset */
};

/* Bring one record in; NULL if it is none.  broker: of its queue.  One reference for the caller.  A body that cannot be unpacked
 * is shown as stored. */
struct message *message_take(const char *topic, const char *broker, struct mq_str record);
/* The one at this place if it is kept; a reference. */
struct message *message_find(const char *topic, const char *broker, int32_t id, int64_t off);
void message_unref(struct message *m);
/* All that are kept go (of a topic that was deleted others take the numbers). */
void message_drop_all(void);

#endif
