/* handle_admin_store.c: what is removed from the store when somebody asks for it, and how replicas of it do. */
#include "broker.h"
#include "ha_master.h"
#include "ha_replica.h"
#include "handle.h"
#include "topic_table.h"
#include "upkeep.h"
#include <base/clock.h>
#include <base/json.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "admin"

/* ---- 306 CLEAN_EXPIRED_CONSUMEQUEUE: queues whose last message is gone -------------------------------------------------- */

void handle_clean_queues(struct req *q)
{
	struct mq_error e;

	log_info("clean expired queues by=%s", conn_name(q->c));
	if (upkeep_clean_queues(q->b, &e) < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		reply(q, RESP_SUCCESS, NULL);
}

/* ---- 316 CLEAN_UNUSED_TOPIC: queues of topics that this broker does not have (any more) ---------------------------------- */

/* Names are collected first: deleting changes what is walked. */
struct unused {
	struct broker *b;
	char **v;
	size_t n, cap;
};

static int gather(void *arg, struct mqstore_queue *queue)
{
	struct unused *l = arg;
	struct mq_str name = mqstore_queue_topic(queue);

	if (topic_is_system(name) || topic_table_find(l->b->topics, name))
		return 0;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = mem_realloc(l->v, l->cap * sizeof *l->v);
	}
	l->v[l->n++] = str_dup(name); /* once for each queue: a second deletion does nothing */
	return 0;
}

void handle_clean_topics(struct req *q)
{
	struct unused l = { .b = q->b };
	struct mq_error e;
	int rc = 0;

	mqstore_each_queue(q->b->store, gather, &l);
	for (size_t i = 0; i < l.n; i++) {
		if (rc == 0)
			rc = mqstore_delete_topic(q->b->store, str_of(l.v[i]), &e);
		if (rc == 0)
			log_info("queues of unused topic removed name=%s by=%s", l.v[i], conn_name(q->c));
		free(l.v[i]);
	}
	free(l.v);
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		reply(q, RESP_SUCCESS, NULL);
}

/* ---- 329 DELETE_EXPIRED_COMMITLOG: at once, not at the hour of deleteWhen ------------------------------------------------ */

void handle_clean_log(struct req *q)
{
	struct mq_error e;

	log_info("remove expired segments by=%s", conn_name(q->c));
	if (mqstore_trim(q->b->store, clock_now_ms(), true, &e) < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		reply(q, RESP_SUCCESS, NULL);
}

/* ---- 907 GET_BROKER_HA_STATUS ---------------------------------------------------------------------------------------------- */

static void no_client(struct json_out *j)
{
	json_key(j, "haClientRuntimeInfo");
	json_open(j, '{');
	json_member_i64(j, "lastReadTimestamp", 0);
	json_member_i64(j, "lastWriteTimestamp", 0);
	json_member_i64(j, "masterFlushOffset", 0);
	json_member_i64(j, "maxOffset", 0);
	json_member_i64(j, "transferredByteInSecond", 0);
	json_close(j, '}');
}

void handle_ha_status(struct req *q)
{
	struct broker *b = q->b;
	struct frame_out o;
	struct json_out j;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	if (b->replica)
		ha_replica_status(b->replica, &j);
	else
		no_client(&j);
	ha_master_status(b->ha, &j);
	json_member_bool(&j, "master", !b->replica);
	json_member_i64(&j, "masterCommitLogMaxOffset", b->replica ? 0 : mqstore_log_max(b->store));
	json_close(&j, '}');
	reply_end(q, &o);
}
