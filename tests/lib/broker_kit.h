/* broker_kit.h: a whole broker on the loop of the test, and connections that ask it raw questions.
 *
 * Everything that is not expected ends the test by an assertion of cmocka. */
#ifndef TEST_BROKER_KIT_H
#define TEST_BROKER_KIT_H

#include "base/buf.h"
#include "codec/message.h"
#include "net/conn.h"

struct broker;
struct broker_kit;

/* What came back.  Good until asked_free(). */
struct asked {
	bool done;
	int rc;                 /* 0: an answer; MQ_ECLOSED, MQ_ETIMEOUT: none */
	int32_t code;
	struct buf remark, body, fields; /* remark NUL-terminated; fields: key NUL value NUL ... */
};

/* A broker in its own directory with small files; props: "key=value" ..., ended by NULL.  It listens on free ports of 127.0.0.1. */
struct broker_kit *broker_kit_start(const char *const *props);
/* The same on a directory that is there and stays (not removed at the end).  On failure NULL with e. */
struct broker_kit *broker_kit_start_in(const char *dir, const char *const *props, struct mq_error *e);
void broker_kit_stop(struct broker_kit *k);     /* orderly */
struct broker *broker_kit_broker(struct broker_kit *k);
uv_loop_t *broker_kit_loop(struct broker_kit *k);
const char *broker_kit_dir(struct broker_kit *k);

/* A connection; vip: to the fast port. */
struct conn *broker_kit_dial(struct broker_kit *k, bool vip);
struct conn *broker_kit_dial_to(struct broker_kit *k, const char *addr);
/* Change one key while it runs, as a request does. */
void broker_kit_set(struct broker_kit *k, const char *key, const char *value);
void broker_kit_hang_up(struct broker_kit *k, struct conn *c);
/* Requests that the broker sent us over any connection, so far. */
int broker_kit_called(struct broker_kit *k, int32_t code);
/* From now on such a request is answered by code 0 and this body (borrowed); else there is no answer. */
void broker_kit_answers(struct broker_kit *k, int32_t code, const char *body);
/* The last request that the broker sent us.  Good until the next one. */
struct asked *broker_kit_last(struct broker_kit *k);

/* Ask and wait for the answer.  Fields: key, value, ..., NULL.  The asked is the kit's, good until the next call of it. */
struct asked *ask(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...) __attribute__((sentinel));
/* Ask and go on; free with asked_free() when done. */
struct asked *ask_later(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...) __attribute__((sentinel));
struct asked *ask_oneway(struct broker_kit *k, struct conn *c, int32_t code, struct mq_str body, ...) __attribute__((sentinel));
void asked_wait(struct broker_kit *k, struct asked *a);
void asked_free(struct asked *a);
const char *asked_get(const struct asked *a, const char *key);  /* "" if absent */
int64_t asked_i64(const struct asked *a, const char *key);      /* -1 if absent */

/* Turn the loop for a moment, and until what was given to the workers is done and answered; or for ms. */
void broker_kit_settle(struct broker_kit *k);
void broker_kit_run(struct broker_kit *k, int ms);

/* Workers (flushes, saves) do not get to run until they are let go. */
void broker_kit_block_workers(struct broker_kit *k);
void broker_kit_unblock_workers(struct broker_kit *k);

/* Common requests.  tag, props may be NULL; props: name=value;... written as properties. */
struct asked *kit_send(struct broker_kit *k, struct conn *c, const char *topic, int queue, const char *body, const char *tag);
struct asked *kit_pull_later(struct broker_kit *k, struct conn *c, const char *group, const char *topic, int queue, int64_t off,
                             const char *expr, int suspend_ms);
struct asked *kit_heartbeat(struct broker_kit *k, struct conn *c, const char *client, const char *group, const char *topic,
                            const char *expr);
/* With properties as they are on the wire, NUL-terminated; flag 7. */
struct asked *kit_send_props(struct broker_kit *k, struct conn *c, const char *topic, int queue, const char *body, const char *props);
/* Bodies in a pull's answer, joined by blanks, in a static buffer. */
const char *asked_bodies(const struct asked *a);

/* Straight from the store: messages in a queue so far, until there are n of them, and the one at an offset (good until the next
 * append). */
int64_t kit_stored(struct broker_kit *k, const char *topic, int queue);
void kit_await(struct broker_kit *k, const char *topic, int queue, int64_t n);
struct mq_message kit_look(struct broker_kit *k, const char *topic, int queue, int64_t off);
/* The property is there once with this value; want NULL: it is not there. */
void assert_prop(struct mq_str props, const char *name, const char *want);

#endif
