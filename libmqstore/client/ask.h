/* ask.h: a request kept whole, so that it can be written again to another server; the public asks are in ask.c. */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H

#include "link.h"

struct request {
	int code;
	int32_t timeout_ms;
	struct mqclient_field *fields;  /* one block with everything they point to */
	size_t nfields;
	struct mq_str body;
};

/* Copies everything. */
void request_keep(struct request *r, int code, const struct mqclient_field *fields, size_t nfields, struct mq_str body,
                  int32_t timeout_ms);
void request_free(struct request *r);
/* Write it to a link, as link_call(). */
int request_write(const struct request *r, struct link *l, conn_answer_cb *cb, void *arg, struct mq_error *e);

#endif
