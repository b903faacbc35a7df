/* body_group.h: consumer groups: one configuration (200, 352), a broker's table of them (201), lists of names (300).
 * Source: the peer's SubscriptionGroupConfig.  The file config/subscriptionGroup.json has the shape of the table. */
#ifndef CODEC_BODY_GROUP_H
#define CODEC_BODY_GROUP_H

#include "body.h"

struct body_group {                     /* SubscriptionGroupConfig */
	struct mq_str name;
	bool consume, consume_from_min, consume_broadcast;      /* default true */
	bool orderly;                           /* consumeMessageOrderly */
	bool notify_ids_changed;                /* default true */
	int32_t retry_queues;                   /* default 1 */
	int32_t retry_max;                      /* retryMaxTimes, default 16 */
	int64_t broker_id;
	int64_t broker_when_slow;               /* whichBrokerWhenConsumeSlowly, default 1 */
	int32_t sys_flag;
	int32_t timeout_minutes;                /* consumeTimeoutMinute, default 15 */
	size_t nattrs;
	struct body_pair *attr;
	/* Kept as JSON text, p == NULL: default / absent. */
	struct mq_str retry_policy;             /* groupRetryPolicy */
	struct mq_str subscriptions;            /* subscriptionDataSet */
};
struct body_group_one {
	struct body_keep keep;
	struct body_group group;
};
void body_group_init(struct body_group *g, struct mq_str name);         /* the defaults */
int body_group_decode(struct mq_str body, struct body_group_one *g, struct mq_error *e);
void body_group_encode(const struct body_group *g, struct buf *out);
void body_group_free(struct body_group_one *g);
void body_group_get(struct body_keep *k, const json_t *o, struct body_group *g);
void body_group_put(struct json_out *o, const struct body_group *g);

struct body_forbidden {                 /* a group may not read a topic: bit 0 of value */
	struct mq_str group, topic;
	int32_t value;
};
struct body_group_table {               /* SubscriptionGroupWrapper */
	struct body_keep keep;
	struct body_version version;
	size_t n, nforbidden;
	struct body_group *group;
	struct body_forbidden *forbidden;       /* those of one group stand together */
};
int body_group_table_decode(struct mq_str body, struct body_group_table *t, struct mq_error *e);
void body_group_table_encode(const struct body_group_table *t, struct buf *out);
void body_group_table_free(struct body_group_table *t);

struct body_group_list {
	struct body_keep keep;
	size_t n;
	struct mq_str *group;
};
int body_group_list_decode(struct mq_str body, struct body_group_list *l, struct mq_error *e);
void body_group_list_encode(const struct body_group_list *l, struct buf *out);
void body_group_list_free(struct body_group_list *l);

#endif
