/* handle_query.c: messages by key and by offset id. */
#include "broker.h"
#include "cold.h"
#include "handle.h"
#include <stdlib.h>

enum {
	QUERY_MAX = 1024,                       /* of maxNum: what one answer can be asked to hold */
	QUERY_BYTES_MAX = 8 * 1024 * 1024,      /* of the bodies in an answer: a frame has 16 MiB */
};

void handle_query_message(struct req *q)
{
	const struct query_message_header *h = q->h;
	static int64_t log_off[QUERY_MAX]; /* one loop */
	int max = h->uniqueKeyQuery ? q->b->conf->defaultQueryMaxNum : h->maxNum;
	int64_t last_ms = 0, last_off = 0;
	struct frame_out o;
	size_t bytes = 0;
	int n;

	if (max < 1) {
		reply(q, RESP_SYSTEM_ERROR, "maxNum %d: 1 or more would be right", h->maxNum);
		return;
	}
	cold_begin(q);
	n = mqstore_query(q->b->store, h->topic, h->key, max < QUERY_MAX ? max : QUERY_MAX, h->beginTimestamp, h->endTimestamp,
			  log_off, &last_ms, &last_off);
	if (cold_waits(q))
		return;
	if (n < 0) {
		reply(q, RESP_SYSTEM_ERROR, "query topic '" MQ_STR_FMT "' key '" MQ_STR_FMT "': %s", MQ_STR_ARG(h->topic),
		      MQ_STR_ARG(h->key), mq_strerror(n));
		return;
	}
	reply_begin(q, &o, n ? RESP_SUCCESS : RESP_QUERY_NOT_FOUND,
		    n ? NULL : "can not find message, maybe time range not correct");
	frame_i64(&o, "indexLastUpdateTimestamp", last_ms);
	frame_i64(&o, "indexLastUpdatePhyoffset", last_off);
	frame_body(&o);
	for (int i = 0; i < n; i++) {
		struct mq_str record;

		if (mqstore_at(q->b->store, log_off[i], &record) < 0 || bytes + record.n > QUERY_BYTES_MAX)
			continue;
		bytes += record.n;
		buf_str(o.buf, record);
	}
	reply_end(q, &o);
}

void handle_view_message(struct req *q)
{
	const struct view_message_header *h = q->h;
	struct mq_str record;
	int rc;

	cold_begin(q);
	rc = mqstore_at(q->b->store, h->offset, &record);
	if (cold_waits(q))
		return;
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "can not find message by the offset, %lld", (long long)h->offset);
	else
		reply_body(q, record);
}
