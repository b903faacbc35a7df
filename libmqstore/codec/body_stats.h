/* body_stats.h: numbers: of a topic's queues (202), of a group's progress (208, 317), of a counter (315), of anything (28, 219).
 * Source: the peer's remoting.protocol.admin.  The tables have objects as keys, which is no JSON: base/json copes. */
#ifndef CODEC_BODY_STATS_H
#define CODEC_BODY_STATS_H

#include "body.h"

struct body_queue_stats {
	struct body_queue queue;
	int64_t min_off, max_off, last_ms;      /* last_ms 0: empty */
};
struct body_topic_stats {               /* TopicStatsTable */
	struct body_keep keep;
	size_t n;
	struct body_queue_stats *queue;
};
int body_topic_stats_decode(struct mq_str body, struct body_topic_stats *s, struct mq_error *e);
void body_topic_stats_encode(const struct body_topic_stats *s, struct buf *out);
void body_topic_stats_free(struct body_topic_stats *s);

struct body_queue_progress {            /* OffsetWrapper */
	struct body_queue queue;
	int64_t broker_off, consumer_off, pull_off, last_ms;
};
struct body_consume_stats {             /* ConsumeStats */
	struct body_keep keep;
	double tps;
	size_t n;
	struct body_queue_progress *queue;
};
int body_consume_stats_decode(struct mq_str body, struct body_consume_stats *s, struct mq_error *e);
void body_consume_stats_encode(const struct body_consume_stats *s, struct buf *out);
void body_consume_stats_free(struct body_consume_stats *s);

struct body_group_progress {
	struct mq_str group;
	size_t n;
	struct body_consume_stats *stats;       /* one per topic; their keep is not used */
};
struct body_broker_progress {           /* ConsumeStatsList */
	struct body_keep keep;
	struct mq_str broker_addr;
	int64_t total_diff, total_inflight_diff;
	size_t n;
	struct body_group_progress *group;
};
int body_broker_progress_decode(struct mq_str body, struct body_broker_progress *p, struct mq_error *e);
void body_broker_progress_encode(const struct body_broker_progress *p, struct buf *out);
void body_broker_progress_free(struct body_broker_progress *p);

struct body_rate {                      /* BrokerStatsItem */
	int64_t sum;
	double tps, average;
};
struct body_broker_stats {              /* BrokerStatsData */
	struct body_rate minute, hour, day;
};
int body_broker_stats_decode(struct mq_str body, struct body_broker_stats *s, struct mq_error *e);
void body_broker_stats_encode(const struct body_broker_stats *s, struct buf *out);

struct body_kv {                        /* KVTable */
	struct body_keep keep;
	size_t n;
	struct body_pair *pair;
};
int body_kv_decode(struct mq_str body, struct body_kv *t, struct mq_error *e);
void body_kv_encode(const struct body_kv *t, struct buf *out);
void body_kv_free(struct body_kv *t);
struct mq_str body_kv_get(const struct body_kv *t, const char *key);    /* p == NULL: absent */

#endif
