/* dispatch.c: THE table of what the name server serves, and the way of a request through it. */
#include "dispatch.h"
#include "private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { HEADER_BYTES = 256 };    /* of the largest header struct */

static const struct dispatch_row {
	int32_t code;
	ns_handler *handler;
} dispatch_rows[] = {
	{ REQ_GET_ROUTEINFO_BY_TOPIC,                 handle_route_get },
	{ REQ_REGISTER_BROKER,                        handle_broker_register },
	{ REQ_UNREGISTER_BROKER,                      handle_broker_unregister },
	{ REQ_QUERY_DATA_VERSION,                     handle_broker_version },
	{ REQ_BROKER_HEARTBEAT,                       handle_broker_heartbeat },
	{ REQ_GET_BROKER_MEMBER_GROUP,                handle_broker_members },
	{ REQ_GET_BROKER_CLUSTER_INFO,                handle_broker_clusters },
	{ REQ_WIPE_WRITE_PERM_OF_BROKER,              handle_broker_wipe_perm },
	{ REQ_ADD_WRITE_PERM_OF_BROKER,               handle_broker_add_perm },
	{ REQ_GET_ALL_TOPIC_LIST_FROM_NAMESERVER,     handle_route_all_topics },
	{ REQ_DELETE_TOPIC_IN_NAMESRV,                handle_route_delete },
	{ REQ_REGISTER_TOPIC_IN_NAMESRV,              handle_route_register },
	{ REQ_GET_TOPICS_BY_CLUSTER,                  handle_route_cluster_topics },
	{ REQ_GET_SYSTEM_TOPIC_LIST_FROM_NS,          handle_route_system_topics },
	{ REQ_GET_UNIT_TOPIC_LIST,                    handle_route_unit_topics },
	{ REQ_GET_HAS_UNIT_SUB_TOPIC_LIST,            handle_route_unit_topics },
	{ REQ_GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,     handle_route_unit_topics },
	{ REQ_PUT_KV_CONFIG,                          handle_kv_put },
	{ REQ_GET_KV_CONFIG,                          handle_kv_get },
	{ REQ_DELETE_KV_CONFIG,                       handle_kv_delete },
	{ REQ_GET_KVLIST_BY_NAMESPACE,                handle_kv_list },
	{ REQ_UPDATE_NAMESRV_CONFIG,                  handle_config_update },
	{ REQ_GET_NAMESRV_CONFIG,                     handle_config_get },
};

static const struct dispatch_row *find(int32_t code)
{
	for (size_t i = 0; i < sizeof(dispatch_rows) / sizeof(dispatch_rows[0]); i++)
		if (dispatch_rows[i].code == code)
			return &dispatch_rows[i];
	return NULL;
}

bool namesrv_serves(int32_t code)
{
	return find(code) != NULL;
}

int namesrv_request(struct namesrv *ns, struct conn *c, struct frame *f)
{
	const struct dispatch_row *row = find(f->code);
	struct buf *out = conn_out(c);
	struct ns_request q = { .ns = ns, .c = c, .f = f, .out = out };
	_Alignas(16) char header[HEADER_BYTES];
	size_t before = out->n;
	const struct header_desc *desc;
	struct mq_error e;

	ns->requests++;
	if (!row) {
		ns_answer(&q, RESP_REQUEST_CODE_NOT_SUPPORTED, " request type %d not supported", f->code);
	} else {
		desc = request_find(f->code)->header;
		assert(desc->size <= sizeof(header));
		if (header_decode(desc, f, header, &e) < 0 || header_check_texts(desc, header, &e) < 0) {
			ns_answer(&q, RESP_SYSTEM_ERROR, "%s", e.text);
		} else {
			q.h = header;
			row->handler(&q);
		}
	}
	if (f->flag & FRAME_ONEWAY)
		out->n = before;
	return 0;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

void ns_answer(const struct ns_request *q, int32_t code, const char *fmt, ...)
{
	char remark[1024] = "";
	struct frame_out o;
	va_list ap;

	if (fmt) {
		va_start(ap, fmt);
		vsnprintf(remark, sizeof(remark), fmt, ap);
		va_end(ap);
	}
	frame_answer(&o, q->out, frame_id_of(q->f), code, (struct mq_str){ remark, strlen(remark) });
	frame_end(&o);
}

void ns_answer_body(const struct ns_request *q, struct frame_out *o, const struct header_desc *desc, const void *fields)
{
	frame_answer(o, q->out, frame_id_of(q->f), RESP_SUCCESS, MQ_STR(""));
	if (desc)
		header_encode(desc, fields, false, o);
	frame_body(o);
}

void ns_answer_fields(const struct ns_request *q, const struct header_desc *desc, const void *fields)
{
	struct frame_out o;

	ns_answer_body(q, &o, desc, fields);
	frame_end(&o);
}
