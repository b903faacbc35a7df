/* member.h: a broker in a controller's group: the process's life, of which each broker object is one part.
 *
 * The rules are role.h's; this brings clock, sockets and files to them: connections to controllers, brokerIdentity, the list of epochs
 * (epochFileCheckpoint), and the broker itself.  A role is taken on by a new start of the broker on the same store and the same ports,
 * in the same process: what a start does (recover, rebuild, look for what was delivered) is what a new master needs.  A slave
 * that gets another master goes on as it is.
 *
 * The broker asks here who it is, what the epochs are and what is confirmed, and tells of its slaves.  All on the loop's thread. */
#ifndef BROKER_MEMBER_H
#define BROKER_MEMBER_H

#include "broker.h"
#include "epoch.h"
#include "role.h"

struct member;

/* opt: as for broker_start(); opt.stopped comes when all of it has ended.  The first life, a slave's without a master, is started.  On
 * failure nothing is left once the loop has turned. */
int member_start(struct member **m, uv_loop_t *loop, const struct broker_opt *opt, struct mq_error *e);
void member_stop(struct member *m);
struct broker *member_broker(const struct member *m);           /* NULL: between two lives */

/* ---- For the broker --------------------------------------------------------------------------------------------------- */

/* The store is open: make the epochs fit the log, and begin one if this life is a master's.  0 or a negative code. */
int member_opened(struct member *m, struct mqstore *store, struct mq_error *e);
const struct epoch_list *member_epochs(const struct member *m);
/* The list may be changed; member_save_epochs() before anything is reported that depends on it. */
struct epoch_list *member_epochs_change(struct member *m);
int member_save_epochs(struct member *m, struct mq_error *e);
int64_t member_id(const struct member *m);                      /* 0: not known yet */
int32_t member_epoch(const struct member *m);                   /* of the master that is known; 0 = none yet */
const char *member_master_addr(const struct member *m);         /* "" = unknown, or this one */
bool member_fenced(const struct member *m);                     /* nothing is told to name servers yet */
int64_t member_confirm(const struct member *m);
void member_confirm_is(struct member *m, int64_t off);          /* a slave heard it */
/* Up to which offset consumers may see the log: of a master what is confirmed, of a slave all, once it agrees with its master. */
int64_t member_visible(struct member *m, int64_t log_end);
/* What of ha_master.h's: machines to wait for (1, 2 = the set, 0 = refuse) and the offset that they have. */
int32_t member_need(const struct member *m);
int64_t member_level(const struct member *m);
const struct body_sync_set *member_set(const struct member *m);
void member_slave_report(struct member *m, uint64_t conn, int64_t id, bool learner, int64_t acked, bool everything, int64_t caught_ms);
void member_slave_lost(struct member *m, uint64_t conn);
void member_notified(struct member *m, const struct role_master *master, const struct body_sync_set *set);

#endif
