/* moved.h: tells the topic OFFSET_MOVED_EVENT that a group's pull was sent elsewhere (code 21): who watches it learns of offsets that
 * were lost or set.  compat: as the 4.x broker did; that of 5.2 has the code for it and does not call it. */
#ifndef BROKER_MOVED_H
#define BROKER_MOVED_H

#include "pull.h"

struct broker;

/* The pull p asked for its offset, and is to go on at `to`. */
void moved_publish(struct broker *b, const struct pull *p, int64_t to);

#endif
