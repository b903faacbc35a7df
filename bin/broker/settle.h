/* settle.h: answers that wait until what they say is true: the message is on the disk, the topic is in config/topics.json and
 * known to the name servers.
 *
 * A send under SYNC_FLUSH waits for the log, at most syncFlushTimeout: then it gets code 10.  One that is to be on several machines
 * waits for their slaves, at most slaveTimeout: then it gets code 12, or 11 if there is no slave; with ackOnTwoMachines code 14.  A
 * send that made its topic, and a request that made, changed or deleted one, wait for the topic, at most SETTLE_TOPIC_MS: then they
 * are answered all the same, but a request by an error if config/topics.json could not be written. */
#ifndef BROKER_SETTLE_H
#define BROKER_SETTLE_H

#include "dispatch.h"

struct settle;

enum { SETTLE_TOPIC_MS = 2000 };

/* Answer to a send. */
struct send_done {
	int64_t end_off;            /* true when mqstore_flushed() >= end_off; 0 = do not wait for the log */
	int64_t ack_off;            /* true when so many machines (`acks`, this one included) have the log up to here */
	int32_t acks;               /* 0 or 1 = do not wait for slaves */
	uint64_t topics_version;    /* of topic_table's file; 0 = do not wait for it */
	int64_t log_off;            /* of the record; not used if `ids` is there */
	int64_t queue_off;
	int32_t queue_id;
	struct mq_str ids;          /* comma-separated offset ids of a batch */
	struct mq_str uniq_key;     /* transactionId */
	struct mq_str recall;       /* recallHandle of one that waits for its time; p == NULL: none */
	bool recalled;              /* answer to 370: uniq_key alone counts */
};

struct settle *settle_new(struct broker *b);
void settle_stop(struct settle *s);     /* answers what still waits, by what is true now */
void settle_free(struct settle *s);     /* ends with the next turns of the loop */

/* Answer the send now or when d is true; views in d are copied when it has to wait. */
void settle_send(struct settle *s, struct req *q, const struct send_done *d);
/* Code 0 when what d waits for is true; code 1 if it cannot be or is not in time.  Nothing else of d is looked at. */
void settle_plain(struct settle *s, struct req *q, const struct send_done *d);
/* A record that ends at end_off was stored while ha_master_need() was `acks`: d waits for what the configuration promises of it.
 * end_off 0: nothing was stored. */
void settle_promise(struct settle *s, struct send_done *d, int64_t end_off, int32_t acks);
/* Code 0 when the table of topics as it is now is saved and registered; code 1 with the file's name if it cannot be saved. */
void settle_topics(struct settle *s, struct req *q);
/* The log has been flushed further, or (failed: why) will not be; topics were saved or registered. */
void settle_check(struct settle *s, const char *failed);
/* Is this version of the topics saved and registered? */
bool settle_topics_are(const struct settle *s, uint64_t version);
bool settle_wants_flush(const struct settle *s);

#endif
