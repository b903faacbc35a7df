/* tree_nodes.h: the functions of the kinds, by noun; only tree.c asks for them. */
#ifndef MQFS_TREE_NODES_H
#define MQFS_TREE_NODES_H

#include "tree.h"

/* tree_top.c */
int top_readme(struct node *n, struct bytes *out);
int top_status(struct node *n, struct bytes *out);

/* tree_broker.c */
int broker_clusters(struct node *dir, struct names *out);
int broker_find_cluster(struct node *dir, const char *name);
int broker_cluster_text(struct node *n, struct bytes *out);
int broker_names(struct node *dir, struct names *out);
int broker_find(struct node *dir, const char *name);
int broker_ids(struct node *dir, struct names *out);
int broker_find_id(struct node *dir, const char *name);
int broker_status(struct node *n, struct bytes *out);
int broker_metrics(struct node *n, struct bytes *out);
int broker_config(struct node *n, struct bytes *out);
int broker_set_config(struct node *n, struct mq_str text);

/* tree_topic.c */
int topic_names(struct node *dir, struct names *out);
int topic_find(struct node *dir, const char *name);
int topic_make(struct node *dir, const char *name);
int topic_remove(struct node *dir, const char *name);
int topic_config(struct node *n, struct bytes *out);
int topic_set_config(struct node *n, struct mq_str text);
int topic_route(struct node *n, struct bytes *out);
int topic_stats(struct node *n, struct bytes *out);
int topic_tail(struct node *n, struct bytes *out);

/* tree_queue.c */
int queue_names(struct node *dir, struct names *out);
int queue_find(struct node *dir, const char *name);
int queue_min(struct node *n, struct bytes *out);
int queue_max(struct node *n, struct bytes *out);
int queue_tail(struct node *n, struct bytes *out);
int queue_find_from(struct node *dir, const char *name);
int queue_messages(struct node *dir, struct names *out);
int queue_metas(struct node *dir, struct names *out);
int queue_find_message(struct node *dir, const char *name);
int queue_find_meta(struct node *dir, const char *name);
int queue_body(struct node *n, struct bytes *out);
int queue_meta(struct node *n, struct bytes *out);

/* tree_find.c */
int find_key(struct node *dir, const char *name);
int find_key_names(struct node *dir, struct names *out);
int find_key_message(struct node *dir, const char *name);
int find_key_link(struct node *n, struct bytes *out);
int find_time(struct node *dir, const char *name);
int find_time_names(struct node *dir, struct names *out);
int find_time_message(struct node *dir, const char *name);
int find_time_link(struct node *n, struct bytes *out);
int find_id(struct node *dir, const char *name);
int find_id_link(struct node *n, struct bytes *out);

/* tree_group.c */
int group_names(struct node *dir, struct names *out);
int group_find(struct node *dir, const char *name);
int group_make(struct node *dir, const char *name);
int group_remove(struct node *dir, const char *name);
int group_config(struct node *n, struct bytes *out);
int group_set_config(struct node *n, struct mq_str text);
int group_clients(struct node *n, struct bytes *out);
int group_lag(struct node *n, struct bytes *out);
int group_offset_topics(struct node *dir, struct names *out);
int group_find_offset_topic(struct node *dir, const char *name);
int group_offsets(struct node *dir, struct names *out);
int group_find_offset(struct node *dir, const char *name);
int group_offset(struct node *n, struct bytes *out);
int group_set_offset(struct node *n, struct mq_str text);
int group_recv(struct node *n, struct bytes *out);
int group_find_recv(struct node *dir, const char *name);
int group_dlqs(struct node *dir, struct names *out);
int group_find_dlq(struct node *dir, const char *name);
int group_dlq(struct node *n, struct bytes *out);

/* tree_waiting.c */
int waiting_delayed(struct node *dir, struct names *out);
int waiting_find_delayed(struct node *dir, const char *name);
int waiting_delayed_link(struct node *n, struct bytes *out);
int waiting_timers(struct node *dir, struct names *out);
int waiting_find_timer(struct node *dir, const char *name);
int waiting_timer_body(struct node *n, struct bytes *out);
int waiting_transactions(struct node *dir, struct names *out);
int waiting_find_transaction(struct node *dir, const char *name);
int waiting_transaction_link(struct node *n, struct bytes *out);

/* tree_stream.c */
int stream_find_tail(struct node *dir, const char *name);
int stream_find_recv(struct node *dir, const char *name);
/* "GROUP@TOPIC" of a recv stream. */
bool stream_recv_names(const char *name, char group[256], char topic[256]);

#endif
