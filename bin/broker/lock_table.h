/* lock_table.h: which member of a group may consume which queue in order.  In memory only.
 *
 * A lock is a lease of LOCK_LEASE_MS from when its client last asked for it.  Then anybody may take it; until then nobody else,
 * whether or not the client is still connected: it goes on consuming what it has. */
#ifndef BROKER_LOCK_TABLE_H
#define BROKER_LOCK_TABLE_H

#include <codec/body.h>

enum {
	LOCK_LEASE_MS = 60000,
	LOCKS_MAX = 1 << 18,            /* at one time: more are refused */
};

struct lock_table;

struct lock_table *lock_table_new(void);
void lock_table_free(struct lock_table *t);

/* Take or renew it; now_ms is monotonic.  False: another client has it (or: too many locks, a name longer than 255 bytes). */
bool lock_table_take(struct lock_table *t, struct mq_str group, const struct body_queue *queue, struct mq_str client, int64_t now_ms);
/* Give it back, if it is the client's. */
void lock_table_release(struct lock_table *t, struct mq_str group, const struct body_queue *queue, struct mq_str client);
/* Has anybody of the group a lock? */
bool lock_table_live(const struct lock_table *t, struct mq_str group, int64_t now_ms);
/* Forget what has run out. */
void lock_table_sweep(struct lock_table *t, int64_t now_ms);
size_t lock_table_count(const struct lock_table *t);

#endif
