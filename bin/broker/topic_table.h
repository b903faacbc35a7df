/* topic_table.h: the topics of this broker: config/topics.json.
 *
 * One lookup by name gives everything that a send or a pull needs: permissions, queue numbers, handles of the queues in
 * the store.  A struct topic lives until the topic is deleted: keep none across turns of the loop, but by topic_get(). */
#ifndef BROKER_TOPIC_TABLE_H
#define BROKER_TOPIC_TABLE_H

#include "table_file.h"
#include "hash.h"
#include <mqstore.h>

enum { TOPIC_INHERIT = 1, TOPIC_WRITE = 2, TOPIC_READ = 4, TOPIC_PRIORITY = 8 };
enum { TOPIC_QUEUES_MAX = 65535 };      /* bound of readQueueNums and writeQueueNums */

/* Well-known names. */
#define TOPIC_DEFAULT "TBW102"
#define TOPIC_SCHEDULE "SCHEDULE_TOPIC_XXXX"
#define TOPIC_RETRY_PREFIX "%RETRY%"
#define TOPIC_DLQ_PREFIX "%DLQ%"

struct topic {
	UT_hash_handle hh;
	int refs;                       /* the table's, and of each held pull */
	bool deleted;
	int32_t read_queues, write_queues, perm, sys_flag;
	bool order, multi_tag;
	bool system;                    /* of the system: not changed or deleted by request */
	bool no_send;                   /* clients may not send to it */
	bool retry;                     /* %RETRY%... */
	json_t *attributes;             /* NULL = none; strings by name, without sign */
	uint64_t since;                 /* version of the table's file in which it first stands */
	int32_t nqueues;                /* of `queue`: max(read, write) */
	struct mqstore_queue **queue;   /* filled on first use */
	uint32_t name_n;
	char name[];                    /* NUL-terminated */
};

struct topic_table {
	struct broker *b;
	struct topic *all;              /* uthash */
	struct table_file file;
	struct data_version version;
};

/* What to make of a topic. */
struct topic_spec {
	struct mq_str name;
	int32_t read_queues, write_queues, perm, sys_flag;
	bool order, multi_tag;
	struct mq_str attributes;       /* "+k=v,-k" as in request 17; empty: as they are */
};

/* Load and add the topics that exist in every broker.  *t NULL on failure. */
int topic_table_open(struct topic_table **t, struct broker *b, struct mq_error *e);
void topic_table_free(struct topic_table *t);

struct topic *topic_table_find(struct topic_table *t, struct mq_str name);      /* NULL if unknown */
/* The topic for a send to an unknown name: made after `like` (TBW102) if that has INHERIT; NULL if not. */
struct topic *topic_table_auto_create(struct topic_table *t, struct mq_str name, struct mq_str like, int32_t queues,
                                      int32_t sys_flag);
/* A topic that must be there (%RETRY%group, %DLQ%group): found or made. */
struct topic *topic_table_need(struct topic_table *t, struct mq_str name, int32_t queues, int32_t perm);
/* Create or change (17).  0, or MQ_EINVAL with the reason.  *changed = false when all was so before. */
int topic_table_set(struct topic_table *t, const struct topic_spec *s, bool *changed, struct mq_error *e);
/* Delete with its queues in the store.  0 also when unknown; negative when the store failed. */
int topic_table_delete(struct topic_table *t, struct mq_str name, struct mq_error *e);
/* Which topics are in order, by the name servers' KV table {"table":{topic:...}}. */
void topic_table_order(struct topic_table *t, const json_t *table);
/* Something that is registered for all topics changed (brokerPermission): a new DataVersion, no save. */
void topic_table_touch(struct topic_table *t);

/* Queue handle; create = false: NULL if it never held a message. id must be >= 0 and < nqueues. */
struct mqstore_queue *topic_queue(struct topic_table *t, struct topic *topic, int32_t id, bool create);
/* The store dropped queues (mqstore_clean_queues): forget all handles. */
void topic_table_forget_queues(struct topic_table *t);
struct topic *topic_get(struct topic *t);       /* take a reference: `deleted` says whether it is still real */
void topic_put(struct topic *t);
static inline struct mq_str topic_name(const struct topic *t) { return (struct mq_str){ t->name, t->name_n }; }

bool topic_is_system(struct mq_str name);

/* JSON: one TopicConfig; and {"dataVersion",...,"topicConfigTable":{...}} (answer to 21; with mask: perms ANDed with it, for
 * registration). */
void topic_write(const struct topic *topic, int32_t perm_mask, struct json_out *o);
void topic_table_write_all(struct topic_table *t, int32_t perm_mask, struct buf *out);

#endif
