/* upkeep.h: what has to be done now and then: removing old segments, making new ones ahead, saving what groups have
 * done, forgetting locks that have run out. */
#ifndef BROKER_UPKEEP_H
#define BROKER_UPKEEP_H

#include <mq.h>

struct broker;
struct upkeep;

struct upkeep *upkeep_new(struct broker *b);
void upkeep_stop(struct upkeep *u);
void upkeep_free(struct upkeep *u);             /* ends with the next turns of the loop */
/* Remove consume queues whose messages are all gone (306): handles of them are forgotten, pulls that wait are looked at anew. */
int upkeep_clean_queues(struct broker *b, struct mq_error *e);

#endif
