/* dispatch.h: a request on its way through the name server, and how it is answered.
 *
 * To add a request: its row in codec/request.c, a handler declared here, its row in dispatch.c. */
#ifndef NAMESRV_DISPATCH_H
#define NAMESRV_DISPATCH_H

#include "namesrv.h"
#include <codec/request.h>

struct ns_request {
	struct namesrv *ns;
	struct conn *c;
	const struct frame *f;
	const void *h;                  /* the header struct of this code, decoded and checked */
	struct buf *out;
};
typedef void ns_handler(const struct ns_request *q);

/* An answer without body; fmt NULL: no remark. */
void ns_answer(const struct ns_request *q, int32_t code, const char *fmt, ...) MQ_PRINTF(3, 4);
/* Success with fields (desc may be NULL) and then a body: the caller appends it to q->out and calls frame_end(). */
void ns_answer_body(const struct ns_request *q, struct frame_out *o, const struct header_desc *desc,
                    const void *fields);
/* Success with fields only. */
void ns_answer_fields(const struct ns_request *q, const struct header_desc *desc, const void *fields);

/* handle_route.c */
ns_handler handle_route_get;            /* 105 */
ns_handler handle_route_all_topics;     /* 206 */
ns_handler handle_route_delete;         /* 216 */
ns_handler handle_route_register;       /* 217 */
ns_handler handle_route_cluster_topics; /* 224 */
ns_handler handle_route_system_topics;  /* 304 */
ns_handler handle_route_unit_topics;    /* 311, 312, 313 */
/* handle_broker.c */
ns_handler handle_broker_register;      /* 103 */
ns_handler handle_broker_unregister;    /* 104 */
ns_handler handle_broker_clusters;      /* 106 */
ns_handler handle_broker_wipe_perm;     /* 205 */
ns_handler handle_broker_version;       /* 322 */
ns_handler handle_broker_add_perm;      /* 327 */
ns_handler handle_broker_members;       /* 901 */
ns_handler handle_broker_heartbeat;     /* 904 */
/* handle_kv.c */
ns_handler handle_kv_put;               /* 100 */
ns_handler handle_kv_get;               /* 101 */
ns_handler handle_kv_delete;            /* 102 */
ns_handler handle_kv_list;              /* 219 */
/* handle_config.c */
ns_handler handle_config_update;        /* 318 */
ns_handler handle_config_get;           /* 319 */

#endif
