/* group_table.h: settings of consumer groups: config/subscriptionGroup.json. */
#ifndef BROKER_GROUP_TABLE_H
#define BROKER_GROUP_TABLE_H

#include "hash.h"
#include "table_file.h"

#define GROUP_SYSTEM_PREFIX "CID_RMQ_SYS_"

struct group {
	UT_hash_handle hh;
	bool consume_enable, from_min_enable, broadcast_enable, orderly, notify_enable;
	int32_t retry_queues, retry_max, sys_flag, consume_timeout_min;
	int64_t broker_id, slow_broker_id;      /* where to read from: usually, when far behind */
	json_t *retry_policy;                   /* groupRetryPolicy as given; NULL = {"type":"CUSTOMIZED"} */
	json_t *attributes;                     /* NULL = {} */
	json_t *subscriptions;                  /* subscriptionDataSet as given; NULL = absent */
	json_t *forbidden;                      /* topic -> bits; NULL = none */
	uint32_t name_n;
	char name[];                            /* NUL-terminated */
};

struct group_table {
	struct broker *b;
	struct group *all;                      /* uthash */
	struct table_file file;
	struct data_version version;
};

int group_table_open(struct group_table **t, struct broker *b, struct mq_error *e);
void group_table_free(struct group_table *t);

/* The group; an unknown but lawful name is added if autoCreateSubscriptionGroup or it is one of the system's; else NULL. */
struct group *group_table_find(struct group_table *t, struct mq_str name);
/* As it is, without adding. */
struct group *group_table_look(struct group_table *t, struct mq_str name);
/* Add or replace from a SubscriptionGroupConfig (200). 0 or MQ_EINVAL. */
int group_table_set(struct group_table *t, const json_t *config, struct mq_error *e);
/* false if unknown */
bool group_table_delete(struct group_table *t, struct mq_str name);
/* 353: set or clear the bit that forbids the group to read the topic. */
void group_table_forbid(struct group_table *t, struct group *g, struct mq_str topic, bool readable);
bool group_is_forbidden(const struct group *g, struct mq_str topic);
bool group_is_system(struct mq_str name);

void group_write(const struct group *g, struct json_out *o);                    /* SubscriptionGroupConfig */
void group_table_write_all(struct group_table *t, struct buf *out);             /* the whole table (201 and the file) */

#endif
