/* pull.h: one queue of a consumer: where to start, pulling, handing out. */
#ifndef CLIENT_PULL_H
#define CLIENT_PULL_H

#include "consume.h"

/* Take up a queue. */
void pull_add(struct sub *s, struct broker *b, int32_t id);
/* Give it up: what is settled is committed, answers to come are ignored. */
void pull_drop(struct pull *p);
/* Pull if nothing speaks against it. */
void pull_go(struct pull *p);
/* Hand out what was held, then pull. */
void pull_resume(struct pull *p);
/* An answer less is awaited; frees a dropped queue after the last. */
void pull_unref(struct pull *p);
/* The consumer goes; answers that are still to come find a queue without one. */
void pull_forget(struct pull *p);
/* The group's offset was set by someone: go there. */
void pull_seek(struct pull *p, int64_t off);

#endif
