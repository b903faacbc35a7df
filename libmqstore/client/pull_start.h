/* pull_start.h: where a consumer starts in a queue. */
#ifndef CLIENT_PULL_START_H
#define CLIENT_PULL_START_H

#include "consume.h"

/* Ask the broker what is needed, then start pulling. */
void pull_start(struct pull *p);

/* From pull.c. */
void pull_pause(struct pull *p, int64_t ms);
void pull_trouble(struct pull *p, const struct mq_error *e);
/* No answer: the connection broke, or could not be made, or the broker is silent, or it refused: again after a pause.  `doing` begins
 * the text: "receive from topic 't' at b: ..." */
void pull_failed(struct pull *p, const char *doing, struct mq_error *e);

#endif
