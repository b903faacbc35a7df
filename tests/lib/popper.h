/* popper.h: a consumer that pops from a scripted broker, and what came to it: for the tests of popping. */
#ifndef TESTS_POPPER_H
#define TESTS_POPPER_H

#include "fake.h"
#include "codec/request.h"
#include <mqclient.h>

enum { GOT_MAX = 400, ACK = REQ_ACK_MESSAGE, CHANGE = REQ_CHANGE_MESSAGE_INVISIBLETIME, POP = REQ_POP_MESSAGE };

struct popper_got {
	char topic[64], body[64], retry_topic[64];
	int queue;
	int64_t off, log_off;
};

struct popper {
	uv_loop_t loop;
	struct fake *a;
	struct mqclient *c;
	struct mqclient_consumer *k;
	struct mq_error e;
	struct popper_got got[GOT_MAX];
	int ngot, ended, troubles, fatal;
	bool settle, commit;        /* each as it comes */
	int pause_at;
	struct mq_error trouble;
	int back, back_rc;          /* answers to what was sent back */
};

/* cmocka's set-up and tear-down: *state is the popper, whose broker a has the topic t of 2 queues; nothing is consumed yet. */
int popper_start(void **state);
int popper_stop(void **state);
/* Begin: group g, topic t.  timeout_ms of requests; `more` may be NULL; in it pop_ms 0 = a minute. */
void popper_consume(struct popper *w, int timeout_ms, struct mqclient_consume_opt *more);
/* n messages "QUEUE-OFFSET". */
void popper_put(struct popper *w, int queue, int n);
/* A record of the group's retry topic, with the handle that the broker gave it. */
void popper_put_retried(struct popper *w, const char *topic, const char *ck);
/* The message in got[i]. */
void popper_settle(struct popper *w, int i, bool commit);

/* Until *n is at least so much. */
void popper_wait_for(struct popper *w, const int *n, int least);
/* Until n messages in all, and no more, have come. */
void popper_wait_got(struct popper *w, int n);
/* Requests of this code that the broker got. */
const int *popper_count(struct popper *w, int code);
void popper_wait_count(struct popper *w, int code, int n);
/* Until what is lent are these offsets, "0 1 2". */
void popper_wait_lent(struct popper *w, const char *offsets);

#endif
