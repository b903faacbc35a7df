/* produce_pack.h: one send, and how its messages become its bytes: checks, ids, compression, batches. */
#ifndef CLIENT_PRODUCE_PACK_H
#define CLIENT_PRODUCE_PACK_H

#include "route.h"

struct send {
	TAILQ_ENTRY(send) entry;        /* free, waiting, or draining */
	struct mqclient *c;
	struct client_timer timer;      /* end of a pause; deadline of a wait */
	struct route_wait wait;
	struct topic *topic;
	struct producer *producer;
	struct broker *broker;          /* of the last try */
	struct link *link;
	struct broker *fixed;           /* != NULL: this queue only */
	int32_t fixed_id;
	int32_t key_hash;
	int32_t queue_id;
	int32_t flag, sys_flag;
	int32_t tries;                  /* left */
	int32_t pauses;
	uint32_t n;                     /* messages */
	bool keyed, batch, oneway, half, introduce;
	bool waiting;                   /* in waiting_sends */
	bool looked;                    /* the route was looked up for this send */
	bool final;                     /* what waits is only the callback */
	int64_t deadline_ms;            /* client_now() clock */
	int64_t born_ms;
	struct buf data;                /* properties of the header, then the body */
	size_t props_n;
	size_t uniq_n;
	char uniq[MQ_ID_TEXT];
	struct mq_error *why;           /* of the last failure; NULL = none yet */
	mqclient_sent_cb *cb;
	void *arg;
};

/* Check the messages and fill s->data, flags, batch, uniq; s->born_ms is set.  0, MQ_EINVAL, MQ_ETOOBIG. */
int produce_pack(struct send *s, const struct mq_message *m, size_t n, const struct mqclient_send_opt *opt,
                 struct mq_error *e);

#endif
