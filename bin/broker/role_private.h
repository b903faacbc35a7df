/* role_private.h: between role.c (a broker's life) and role_set.c (a master's sync set). */
#ifndef BROKER_ROLE_PRIVATE_H
#define BROKER_ROLE_PRIVATE_H

#include "role.h"

struct role_act *role_do(struct role *r, enum role_do what);
/* A request to the leader; *act to be filled in further, good until the next action. */
uint32_t role_ask(struct role *r, int32_t code, struct role_act **act);

void role_set_begin(struct role *r);            /* a change begins: connections of slaves are gone */
void role_set_master(struct role *r);           /* is master now, with the set r->fresh */
void role_set_told(struct role *r, const struct body_sync_set *set);
/* Of a proposal.  True: what is known here is old, ask. */
bool role_set_answered(struct role *r, const struct role_answer *a);
/* The set was asked for at asked_ms. */
void role_set_unchanged(struct role *r, const struct body_sync_set *set, int64_t asked_ms);
void role_set_tick(struct role *r);
void role_set_level(struct role *r);            /* anew, after any change */

#endif
