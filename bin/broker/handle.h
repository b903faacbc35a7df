/* handle.h: every handler, by the file it lives in. */
#ifndef BROKER_HANDLE_H
#define BROKER_HANDLE_H

#include "dispatch.h"

struct topic;

/* handle_send.c */
handler_fn handle_send;                 /* 10, 310, 320 */
/* handle_send_back.c */
handler_fn handle_send_back;            /* 36 */
/* handle_txn.c */
handler_fn handle_end_transaction;      /* 37 */
/* handle_timer.c */
handler_fn handle_timer_check;          /* 60 */
handler_fn handle_timer_metrics;        /* 61 */
handler_fn handle_recall;               /* 370 */
handler_fn handle_list_timers;          /* 900370 */
/* handle_order.c */
handler_fn handle_lock;                 /* 41 */
handler_fn handle_unlock;               /* 42 */
/* What is asked of a message's topic and queue before it is looked at: the topic, made if need be, and the queue.  False: answered. */
bool send_check(struct req *q, const struct send_header *h, struct topic **t, int32_t *queue_id);
/* handle_reply.c */
handler_fn handle_reply;                /* 324, 325 */
/* handle_pull.c */
handler_fn handle_pull;                 /* 11, 361 */
/* handle_pop.c */
handler_fn handle_pop;                  /* 200050 */
handler_fn handle_peek;                 /* 200052 */
handler_fn handle_notification;         /* 200054 */
handler_fn handle_polling_info;         /* 200055 */
/* handle_ack.c */
handler_fn handle_ack;                  /* 200051 */
handler_fn handle_batch_ack;            /* 200151 */
handler_fn handle_change_invisible;     /* 200053 */
/* handle_mode.c */
handler_fn handle_query_assignment;     /* 400 */
handler_fn handle_set_mode;             /* 401 */
handler_fn handle_request_modes;        /* 402 */
/* handle_offset.c */
handler_fn handle_query_offset;         /* 14 */
handler_fn handle_update_offset;        /* 15 */
handler_fn handle_search_offset;        /* 29 */
handler_fn handle_max_offset;           /* 30 */
handler_fn handle_min_offset;           /* 31 */
handler_fn handle_earliest_time;        /* 32 */
/* handle_client.c */
handler_fn handle_heartbeat;            /* 34 */
handler_fn handle_unregister_client;    /* 35 */
handler_fn handle_consumer_list;        /* 38 */
handler_fn handle_check_client;         /* 46 */
/* handle_query.c */
handler_fn handle_query_message;        /* 12 */
handler_fn handle_view_message;         /* 33 */
/* handle_admin_topic.c */
handler_fn handle_create_topic;         /* 17 */
handler_fn handle_create_topics;        /* 18 */
handler_fn handle_all_topics;           /* 21 */
handler_fn handle_delete_topic;         /* 215 */
handler_fn handle_topic_config;         /* 351 */
/* handle_admin_stats.c */
handler_fn handle_all_offsets;          /* 43 */
handler_fn handle_all_delay_offsets;    /* 45 */
handler_fn handle_topic_stats;          /* 202 */
handler_fn handle_consume_stats;        /* 208 */
handler_fn handle_topic_groups;         /* 300 */
handler_fn handle_system_topics;        /* 305 */
handler_fn handle_stats_data;           /* 315 */
handler_fn handle_broker_progress;      /* 317 */
handler_fn handle_group_topics;         /* 343 */
/* handle_admin_queue.c */
handler_fn handle_consume_span;         /* 303 */
handler_fn handle_correction_offset;    /* 308 */
handler_fn handle_consume_queue;        /* 321 */
/* handle_admin_store.c */
handler_fn handle_clean_queues;         /* 306 */
handler_fn handle_clean_topics;         /* 316 */
handler_fn handle_clean_log;            /* 329 */
handler_fn handle_ha_status;            /* 907 */
/* handle_admin_group.c */
handler_fn handle_create_group;         /* 200 */
handler_fn handle_all_groups;           /* 201 */
handler_fn handle_consumer_connection;  /* 203 */
handler_fn handle_producer_connection;  /* 204 */
handler_fn handle_delete_group;         /* 207 */
handler_fn handle_reset_offset;         /* 222 */
handler_fn handle_clone_offsets;        /* 314 */
handler_fn handle_all_producers;        /* 328 */
handler_fn handle_group_subscription;   /* 345 */
handler_fn handle_group_config;         /* 352 */
handler_fn handle_group_forbidden;      /* 353 */
/* handle_admin_broker.c */
handler_fn handle_update_config;        /* 25 */
handler_fn handle_get_config;           /* 26 */
handler_fn handle_runtime_info;         /* 28 */
/* handle_acl.c */
handler_fn handle_acl_set;              /* 50 */
handler_fn handle_acl_delete;           /* 51 */
handler_fn handle_acl_versions;         /* 52 */
handler_fn handle_acl_white;            /* 53 */
/* handle_member.c */
handler_fn handle_ha_info;              /* 906 */
handler_fn handle_reset_flush_offset;   /* 908 */
handler_fn handle_epochs;               /* 1007 */
handler_fn handle_role_changed;         /* 1008 */
/* handle_call_client.c */
handler_fn handle_consumer_status;      /* 223 */
handler_fn handle_running_info;         /* 307 */
handler_fn handle_consume_directly;     /* 309 */

#endif
