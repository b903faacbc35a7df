/* broker_life.h: brokers that come one after the other on one directory, and wall time that the test moves on for them. */
#ifndef TEST_BROKER_LIFE_H
#define TEST_BROKER_LIFE_H

#include "broker_kit.h"

struct life {
	struct broker_kit *k;   /* NULL: none runs */
	struct conn *c;         /* to the one that runs */
	void *dir;
	int64_t shifted;        /* of wall time, in ms */
};

/* A directory and no broker yet.  0, or what a setup of cmocka returns. */
int life_make(struct life *l);
/* Ends the broker if one runs, gives the time back, removes the directory. */
void life_end(struct life *l);

void life_start(struct life *l, const char *const *props);
/* On another directory, which stays. */
void life_start_in(struct life *l, const char *dir, const char *const *props);
void life_stop(struct life *l);
struct broker *life_broker(const struct life *l);
void life_shift(struct life *l, int64_t ms);

#endif
