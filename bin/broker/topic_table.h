/* topic_table.h: the topics of this broker (topic.h): config/topics.json.
 *
 * One lookup by name gives everything that a send or a pull needs: permissions, queue numbers, handles of the queues in
 * the store. */
#ifndef BROKER_TOPIC_TABLE_H
#define BROKER_TOPIC_TABLE_H

#include "table_file.h"
#include "topic.h"

struct topic_table {
	struct broker *b;
	struct topic *all;              /* uthash */
	struct table_file file;         /* its version counts every change that is registered */
	struct body_version version;
	uint64_t whole;                 /* file.version from which on who is behind needs the whole table */
};

/* Load and add the topics that exist in every broker.  *t NULL on failure. */
int topic_table_open(struct topic_table **t, struct broker *b, struct mq_error *e);
void topic_table_free(struct topic_table *t);

struct topic *topic_table_find(struct topic_table *t, struct mq_str name);      /* NULL if unknown */
/* The topic for a send to an unknown name: made after `like` (TBW102) if that has INHERIT; NULL if not. */
struct topic *topic_table_auto_create(struct topic_table *t, struct mq_str name, struct mq_str like, int32_t queues,
                                      int32_t sys_flag);
/* A topic that must be there: found or made, for reading and writing. */
struct topic *topic_table_need(struct topic_table *t, struct mq_str name, int32_t queues);
/* %RETRY%group, %DLQ%group, by prefix: found or made, with at least so many queues: a group may ask for more than it did. */
struct topic *topic_table_of_group(struct topic_table *t, const char *prefix, struct mq_str group, int32_t queues);
/* Create or change (17).  Attributes of *to are not looked at: `attributes` is "+k=v,-k"; empty: as they are.  0, or MQ_EINVAL
 * with the reason.  *changed = false when all was so before. */
int topic_table_set(struct topic_table *t, const struct body_topic *to, struct mq_str attributes, bool *changed, struct mq_error *e);
/* Delete with its queues in the store.  0 also when unknown; negative when the store failed. */
int topic_table_delete(struct topic_table *t, struct mq_str name, struct mq_error *e);
/* Which topics are in order, by the name servers' table of ORDER_TOPIC_CONFIG: those that stand in it. */
void topic_table_order(struct topic_table *t, const struct body_pair *pair, size_t n);
/* A slave's: the master's table in the place of this one, if it is another version; topics that are not in it go, with their queues. */
void topic_table_replace(struct topic_table *t, const struct body_topic_table *to);
/* Something that is registered for all topics changed (brokerPermission). */
void topic_table_touch(struct topic_table *t);

/* Queue handle; create = false: NULL if it never held a message. id must be >= 0 and < nqueues. */
struct mqstore_queue *topic_queue(struct topic_table *t, struct topic *topic, int32_t id, bool create);
/* The queue by name, for a message that was taken when the topic was there: a topic that was deleted meanwhile gets it too, as with
 * the peer, and has it when it is made again.  NULL: no queue can have this name. */
struct mqstore_queue *topic_table_queue(struct topic_table *t, struct mq_str topic, int32_t id);
/* The store dropped queues (mqstore_clean_queues): forget all handles. */
void topic_table_forget_queues(struct topic_table *t);
/* What the perm of each topic is ANDed with: cut down when the broker as a whole (brokerPermission) may not be read or written. */
int32_t topic_table_perm_mask(int32_t broker_permission);
/* The whole table as it is registered and answered (21), with that mask.  Views live as long as the topics stay;
 * free(out->topic). */
void topic_table_body(struct topic_table *t, int32_t perm_mask, struct body_topic_table *out);
/* The same of those topics alone that changed after `version` (> 0) of the file. */
void topic_table_changes(struct topic_table *t, uint64_t version, int32_t perm_mask, struct body_topic_table *out);

#endif
