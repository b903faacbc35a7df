/* pull.h: one look into a queue for a pull, and the answer to it. */
#ifndef BROKER_PULL_H
#define BROKER_PULL_H

#include "dispatch.h"
#include "sub.h"
#include "topic_table.h"

/* What to look for; all borrowed. */
struct pull {
	struct topic *topic;
	struct sub *sub;
	struct mq_str group;
	int32_t queue_id, max_messages, max_bytes;
	int64_t off;
	bool listed, fetched;       /* from the disk, because they were not in memory: entries of the queue, messages; not so again */
};

/* Look; answer when there is something to say: messages, or an offset to go on from.  False: nothing new, nothing answered; then
 * wait (hold.h), or pull_nothing(). */
bool pull_try(struct req *q, const struct pull *p);
/* Code 19: nothing new. */
void pull_nothing(struct req *q, const struct pull *p);

#endif
