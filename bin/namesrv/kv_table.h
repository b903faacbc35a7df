/* kv_table.h: small settings by namespace and key, kept in a file (the peer's kvConfig.json).  No network. */
#ifndef NAMESRV_KV_TABLE_H
#define NAMESRV_KV_TABLE_H

#include <codec/body_stats.h>

enum { KV_BYTES_MAX = 16 * 1024 * 1024 };       /* of all names and values together */
#define KV_ORDER_NAMESPACE "ORDER_TOPIC_CONFIG"

struct kv_table;
/* path NULL or "": in memory only.  A file that is damaged is replaced by its .bak; if that is no better, NULL with err. */
struct kv_table *kv_table_open(const char *path, struct mq_error *err);
void kv_table_free(struct kv_table *t);

/* The change is in the file when they return 0; else nothing has changed: MQ_ETOOBIG or -errno with err. */
int kv_table_put(struct kv_table *t, struct mq_str namespace, struct mq_str key, struct mq_str value,
                 struct mq_error *err);
int kv_table_delete(struct kv_table *t, struct mq_str namespace, struct mq_str key,
                    struct mq_error *err); /* 0 also if absent */
/* p == NULL: absent.  Good until the next change. */
struct mq_str kv_table_get(const struct kv_table *t, struct mq_str namespace, struct mq_str key);
/* All of a namespace: views, free with body_kv_free().  false: there is no such namespace. */
bool kv_table_list(const struct kv_table *t, struct mq_str namespace, struct body_kv *out);
size_t kv_table_count(const struct kv_table *t);

#endif
