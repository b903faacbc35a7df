/* handle_kv.c: small settings: put, get, delete, list. */
#include "dispatch.h"
#include "kv_table.h"
#include "private.h"

void handle_kv_put(const struct ns_request *q)
{
	const struct put_kv_header *h = q->h;
	struct mq_error e;

	if (kv_table_put(q->ns->kv, h->namespace, h->key, h->value, &e) < 0)
		ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_kv_get(const struct ns_request *q)
{
	const struct get_kv_header *h = q->h;
	struct get_kv_answer a = { .value = kv_table_get(q->ns->kv, h->namespace, h->key) };

	if (a.value.p)
		ns_answer_fields(q, &get_kv_answer_desc, &a);
	else
		ns_answer(q, RESP_QUERY_NOT_FOUND, "No config item, Namespace: " MQ_STR_FMT " Key: " MQ_STR_FMT,
		          MQ_STR_ARG(h->namespace), MQ_STR_ARG(h->key));
}

void handle_kv_delete(const struct ns_request *q)
{
	const struct delete_kv_header *h = q->h;
	struct mq_error e;

	if (kv_table_delete(q->ns->kv, h->namespace, h->key, &e) < 0)
		ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_kv_list(const struct ns_request *q)
{
	const struct kv_list_header *h = q->h;
	struct frame_out o;
	struct body_kv list;

	if (!kv_table_list(q->ns->kv, h->namespace, &list)) {
		ns_answer(q, RESP_QUERY_NOT_FOUND, "No config item, Namespace: " MQ_STR_FMT, MQ_STR_ARG(h->namespace));
		return;
	}
	ns_answer_body(q, &o, NULL, NULL);
	body_kv_encode(&list, q->out);
	frame_end(&o);
	body_kv_free(&list);
}
