/* waiting.h: how many messages of each topic wait somewhere: for their time (config/timermetrics), for the end of their transaction
 * (config/transactionMetrics). */
#ifndef BROKER_WAITING_H
#define BROKER_WAITING_H

#include "hash.h"
#include "table_file.h"
#include <codec/body.h>

struct waiting_topic {
	UT_hash_handle hh;
	int64_t count;
	int64_t stamp_ms;
	int32_t hash;           /* of Java */
	size_t n;
	char name[];
};

struct waiting {
	const char *key;        /* "timingCount" */
	bool trust;             /* the counts of the file, too */
	struct waiting_topic *all; /* uthash */
	struct table_file file; /* saved when its owner says so */
	struct body_version version;
};

/* Load config/FILE; with `trust` the counts too, else all begin at 0, to be counted again. */
int waiting_open(struct waiting *w, struct broker *b, const char *file, const char *key, bool trust, struct mq_error *e);
void waiting_close(struct waiting *w);
void waiting_add(struct waiting *w, struct mq_str topic, int64_t by);
int64_t waiting_count(const struct waiting *w, struct mq_str topic);
/* The topic of this Java hash, or NULL. */
struct waiting_topic *waiting_of_hash(const struct waiting *w, int32_t hash);
/* {"dataVersion","KEY":{topic:{"count","timeStamp"}}} */
void waiting_write(struct waiting *w, struct buf *out);

#endif
