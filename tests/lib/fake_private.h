/* fake_private.h: what the parts of a fake have in common. */
#ifndef TESTS_FAKE_PRIVATE_H
#define TESTS_FAKE_PRIVATE_H

#include "fake.h"

/* A pull or pop that waits. */
struct fake_parked {
	struct fake_parked *next;
	struct conn *conn;
	struct frame_id id;
	int topic, queue;
	int64_t off;                /* -1: a pop */
	int max;
};

struct fake_topic *fake_find_topic(struct fake *f, struct mq_str name);
void fake_answer(struct conn *c, struct frame_id id, int code, const char *remark);
/* Look again after those that wait. */
void fake_wake(struct fake *f);

/* fake_group.c */
void fake_on_offset(struct fake *f, struct conn *c, struct frame *in);
void fake_on_heartbeat(struct fake *f, struct conn *c, struct frame *in);
void fake_on_members(struct fake *f, struct conn *c, struct frame *in);
void fake_on_lock(struct fake *f, struct conn *c, struct frame *in);
/* A connection has ended: its client is no member any more. */
void fake_forget(struct fake *f, struct conn *c);

/* fake_pop.c.  fake_answer_pop(): false: there is nothing, no answer was given. */
bool fake_answer_pop(struct fake *f, struct conn *c, struct frame_id id, struct fake_topic *t, int queue, int max);
void fake_on_pop(struct fake *f, struct conn *c, struct frame *in);
void fake_on_settled(struct fake *f, struct conn *c, struct frame *in);

#endif
