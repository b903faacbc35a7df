/* fuzz_frame: covers codec/frame*.c, header.c and every body_*.c: a frame is parsed, its header decoded by its code, its body by
 * each decoder there is, and what came out is written again.  Seeds: tests/golden/wire. */
#include "drive.h"
#include "codec/body_connection.h"
#include "codec/body_group.h"
#include "codec/body_offset.h"
#include "codec/body_register.h"
#include "codec/body_route.h"
#include "codec/body_stats.h"
#include "codec/request.h"

#include <assert.h>
#include <stdlib.h>

#define TRY(NOUN, TYPE, ENCODE) \
	do { \
		struct TYPE v; \
		if (body_##NOUN##_decode(body, &v, &e) == 0) { \
			ENCODE; \
			body_##NOUN##_free(&v); \
		} \
	} while (0)

static void bodies(struct mq_str body, const struct frame *f, struct buf *out)
{
	struct body_register reg;
	struct mq_error e;

	TRY(topic, body_topic_one, body_topic_encode(&v.topic, out));
	TRY(topic_table, body_topic_table, body_topic_table_encode(&v, out));
	TRY(topic_list, body_topic_list, body_topic_list_encode(&v, out));
	TRY(route, body_route, body_route_encode(&v, true, out));
	TRY(cluster, body_cluster, body_cluster_encode(&v, out));
	TRY(members, body_members, body_members_encode(&v, out));
	TRY(group, body_group_one, body_group_encode(&v.group, out));
	TRY(group_table, body_group_table, body_group_table_encode(&v, out));
	TRY(group_list, body_group_list, body_group_list_encode(&v, out));
	TRY(heartbeat, body_heartbeat, body_heartbeat_encode(&v, out));
	TRY(client_check, body_client_check, body_client_check_encode(&v, out));
	TRY(consumer_list, body_consumer_list, body_consumer_list_encode(&v, out));
	TRY(consumer_connection, body_consumer_connection, body_consumer_connection_encode(&v, out));
	TRY(producer_connection, body_producer_connection, body_producer_connection_encode(&v, out));
	TRY(producer_table, body_producer_table, body_producer_table_encode(&v, out));
	TRY(topic_stats, body_topic_stats, body_topic_stats_encode(&v, out));
	TRY(consume_stats, body_consume_stats, body_consume_stats_encode(&v, out));
	TRY(broker_progress, body_broker_progress, body_broker_progress_encode(&v, out));
	TRY(kv, body_kv, body_kv_encode(&v, out));
	TRY(offset_table, body_offset_table, body_offset_table_encode(&v, out));
	TRY(delay_table, body_delay_table, body_delay_table_encode(&v, out));
	TRY(reset, body_reset, body_reset_encode_list(&v, out));
	TRY(lock, body_lock, body_lock_encode(&v, out));
	TRY(locked, body_locked, body_locked_encode(&v, out));
	for (int compressed = 0; compressed < 2; compressed++)
		if (body_register_decode(body, compressed, f->version, &reg, &e) == 0) {
			body_register_encode(&reg, out);
			body_register_free(&reg);
		}
}

/* What was written must be read again as the same. */
static void again(const struct frame *f, const struct request_row *row, const void *header, struct buf *out)
{
	struct frame back;
	struct mq_error e;
	struct frame_out o;

	frame_request(&o, out, f->type, f->code, f->opaque, f->flag);
	header_encode(row->header, header, true, &o);
	frame_end(&o);
	assert(frame_length(out->p, out->n) == (int64_t)out->n);
	assert(frame_parse(out->p, out->n, &back, &e) == 0);
	assert(back.code == f->code && back.opaque == f->opaque);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	union { struct send_header send; char room[1024]; } header;
	char *copy = malloc(n ? n : 1);
	const struct request_row *row;
	struct buf out = { 0 };
	struct frame f;
	struct mq_error e;
	int64_t length;

	memcpy(copy, p, n);
	length = frame_length(copy, n);
	if (length > 0 && (size_t)length <= n && frame_parse(copy, (size_t)length, &f, &e) == 0) {
		row = request_find(f.code);
		if (row && header_decode(row->header, &f, &header, &e) == 0)
			again(&f, row, &header, &out);
		out.n = 0;
		if (f.body.n)
			bodies(f.body, &f, &out);
	}
	buf_free(&out);
	free(copy);
	return 0;
}
