/* filter_table.h: which group filters which topic by SQL92: config/consumerFilter.json.
 *
 * What filters is the program in struct sub; what is here is for the file, as the peer has it, and, with enableCalcFilterBitMap, for the
 * bits that each message gets beside its queue entry: they tell by the entry alone that a filter does not pass it.  A filter that
 * nobody uses is kept as dead for filterDataCleanTimeSpan: the peer takes it up again when its consumer comes back. */
#ifndef BROKER_FILTER_TABLE_H
#define BROKER_FILTER_TABLE_H

#include "bloom.h"
#include "hash.h"
#include "sub.h"
#include "table_file.h"

/* Of one group on one topic.  Times are wall ms. */
struct filter {
	UT_hash_handle hh;                      /* by group */
	char *group, *expr;
	struct sql *program;                    /* of expr, for the bits; NULL: not needed so far, or wrong */
	int64_t version, born_ms;
	int64_t dead_ms;                        /* 0: in use */
	int32_t bit[BLOOM_HASHES_MAX];
};

struct filter_topic {
	UT_hash_handle hh;                      /* by name */
	struct filter *filters;                 /* uthash; never empty */
	char *name;
};

struct filter_table {
	struct broker *b;
	struct filter_topic *topics;            /* uthash */
	struct bloom bloom;
	struct table_file file;
};

int filter_table_open(struct filter_table **t, struct broker *b, struct mq_error *e);
void filter_table_free(struct filter_table *t);

/* The group subscribes so from now on; a TAG expression ends the filter that it had. */
void filter_table_use(struct filter_table *t, struct mq_str group, const struct sub *s);
/* It does not subscribe to the topic any more. */
void filter_table_end(struct filter_table *t, struct mq_str group, struct mq_str topic);
/* NULL: none. */
const struct filter *filter_table_find(const struct filter_table *t, struct mq_str group, struct mq_str topic);
/* Can a message that was stored at store_ms and has these bits pass?  True also when the bits do not tell. */
bool filter_table_may_pass(const struct filter_table *t, const struct filter *f, int64_t store_ms, struct mq_str bits);

#endif
