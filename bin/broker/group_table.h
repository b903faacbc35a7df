/* group_table.h: settings of consumer groups: config/subscriptionGroup.json. */
#ifndef BROKER_GROUP_TABLE_H
#define BROKER_GROUP_TABLE_H

#include "hash.h"
#include "table_file.h"
#include <codec/body_group.h>

#define GROUP_SYSTEM_PREFIX "CID_RMQ_SYS_"

struct group_forbidden {
	struct group_forbidden *next;
	int32_t value;                          /* bit 0 */
	size_t topic_n;
	char topic[];
};

struct group {
	UT_hash_handle hh;
	struct body_group conf;                 /* conf.name is `name` below; the rest lives in keep */
	struct body_keep keep;
	struct group_forbidden *forbidden;      /* NULL-ended list: topics that it may not read */
	char name[];                            /* NUL-terminated; length: conf.name.n */
};

struct group_table {
	struct broker *b;
	struct group *all;                      /* uthash */
	struct table_file file;
	struct body_version version;
};

int group_table_open(struct group_table **t, struct broker *b, struct mq_error *e);
void group_table_free(struct group_table *t);

/* The group; an unknown but lawful name is added if autoCreateSubscriptionGroup or it is one of the system's; else NULL. */
struct group *group_table_find(struct group_table *t, struct mq_str name);
/* As it is, without adding. */
struct group *group_table_look(struct group_table *t, struct mq_str name);
/* Add or replace (200); everything is copied.  0, or MQ_EINVAL with the reason. */
int group_table_set(struct group_table *t, const struct body_group *conf, struct mq_error *e);
/* false if unknown */
bool group_table_delete(struct group_table *t, struct mq_str name);
/* A slave's: the master's table in the place of this one, if it is another version. */
void group_table_replace(struct group_table *t, const struct body_group_table *to);
/* 353: set or clear the bit that forbids the group to read the topic. */
void group_table_forbid(struct group_table *t, struct group *g, struct mq_str topic, bool readable);
bool group_is_forbidden(const struct group *g, struct mq_str topic);
bool group_is_system(struct mq_str name);

void group_table_write(struct group_table *t, struct buf *out);                 /* SubscriptionGroupWrapper: 201 and the file */

#endif
