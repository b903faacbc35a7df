/* handle.h: every handler, by the file it lives in. */
#ifndef BROKER_HANDLE_H
#define BROKER_HANDLE_H

#include "dispatch.h"

/* handle_send.c */
handler_fn handle_send;                 /* 10, 310, 320 */
/* handle_pull.c */
handler_fn handle_pull;                 /* 11, 361 */
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
handler_fn handle_all_topics;           /* 21 */
handler_fn handle_delete_topic;         /* 215 */
handler_fn handle_topic_config;         /* 351 */

#endif
