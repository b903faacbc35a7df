/* sender.h: a client that sends to one or two scripted brokers, and what it was told: for the tests of sending. */
#ifndef TESTS_SENDER_H
#define TESTS_SENDER_H

#include "fake.h"
#include <mqclient.h>

struct sender {
	uv_loop_t loop;
	struct fake *a, *b;             /* brokers of these names; b only after sender_second_broker() */
	struct mqclient *c;
	struct mq_error e;
	int sent, ok, failed;           /* sends that were told their end; of those, how */
	int64_t sent_ms;                /* when the last was told, on the clock of sender_now_ms() */
	struct mqclient_sent last;      /* its strings are gone: these are kept */
	char last_broker[64], last_id[64];
};

/* cmocka's set-up and tear-down: *state is the sender, whose broker a has the topic t of 4 queues. */
int sender_start(void **state);
int sender_stop(void **state);
/* b with the same topic, in the routes that a answers. */
void sender_second_broker(struct sender *w);
/* Another client in the place of one that was freed. */
void sender_open(struct sender *w, const char *addr);

/* The return code of mqclient_send(); NULL = the usual options. */
int sender_send(struct sender *w, const char *topic, const char *body, const struct mqclient_send_opt *opt);
/* To t, and it must be taken. */
void sender_text(struct sender *w, const char *body);
/* For sends that a test makes itself: the sender is their arg. */
void sender_on_sent(void *arg, const struct mqclient_sent *r);
/* Until n sends in all, and no more, were told their end. */
void sender_wait(struct sender *w, int n);
int64_t sender_now_ms(void);

#endif
