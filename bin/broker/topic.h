/* topic.h: one topic of this broker: what is set for it, its queues in the store, what the system thinks of its name.
 *
 * A struct topic lives until the topic is deleted: keep none across turns of the loop, but by topic_get(). */
#ifndef BROKER_TOPIC_H
#define BROKER_TOPIC_H

#include "hash.h"
#include "tally.h"
#include <codec/body_topic.h>
#include <mqstore.h>

enum { TOPIC_QUEUES_MAX = 65535 };      /* bound of readQueueNums and writeQueueNums */

/* Well-known names. */
#define TOPIC_DEFAULT "TBW102"
#define TOPIC_SCHEDULE "SCHEDULE_TOPIC_XXXX"
#define TOPIC_HALF "RMQ_SYS_TRANS_HALF_TOPIC"
#define TOPIC_OP_HALF "RMQ_SYS_TRANS_OP_HALF_TOPIC"
#define TOPIC_GIVEN_UP "TRANS_CHECK_MAX_TIME_TOPIC"
#define TOPIC_RETRY_PREFIX "%RETRY%"
#define TOPIC_DLQ_PREFIX "%DLQ%"

struct topic {
	UT_hash_handle hh;
	int refs;                       /* the table's, and of each held pull */
	bool deleted;
	struct body_topic conf;         /* conf.name is `name` below; attributes live in keep */
	struct body_keep keep;
	bool system;                    /* of the system: not changed or deleted by request */
	bool no_send;                   /* clients may not send to it */
	bool retry;                     /* %RETRY%... */
	const char *unserved;           /* attribute that is kept but not served: no sends; NULL = none */
	uint64_t changed;               /* version of the table's file with the last change */
	uint64_t since;                 /* version of the table's file in which it first stands; 0 = long settled */
	int32_t nqueues;                /* of `queue`: max(read, write) */
	struct mqstore_queue **queue;   /* filled on first use */
	struct tally put;               /* messages stored */
	char name[];                    /* NUL-terminated; length: conf.name.n */
};

/* Name and what follows from it; all else is zero.  One reference. */
struct topic *topic_new(struct mq_str name);
struct topic *topic_get(struct topic *t);       /* take a reference: `deleted` says whether it is still real */
void topic_put(struct topic *t);
/* Made and kept by the system, by name: not changed or deleted by request. */
bool topic_is_system(struct mq_str name);

#endif
