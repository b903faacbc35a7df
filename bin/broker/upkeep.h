/* upkeep.h: what has to be done now and then: removing old segments, making new ones ahead, saving offsets. */
#ifndef BROKER_UPKEEP_H
#define BROKER_UPKEEP_H

struct broker;
struct upkeep;

struct upkeep *upkeep_new(struct broker *b);
void upkeep_stop(struct upkeep *u, void (*done)(void *arg), void *arg);
void upkeep_free(struct upkeep *u);

#endif
