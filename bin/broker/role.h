/* role.h: a broker under a controller: its number, its role, the sync set, and what may be acknowledged: a pure state machine.
 *
 * Events go in (role_start ... role_slave_lost), actions come out (role_next); no clock, no socket, no file: others bring these,
 * and a simulator can (tests/sim).  Times are monotonic ms.  Sources of the rules: the peer's ReplicasManager; mq-broker(8).
 *
 * Words: the *set* is the sync set that this master knows the controller to hold.  *Asked* is everything that was proposed upon
 * that set and not surely refused: the controller may hold it by now.  *Joining* is who is about to be proposed.  *Required* are all
 * three together.
 *
 * Promises:
 *   1. role_puts() is ROLE_PUT_OK only between a finished change to master of the newest epoch that was heard of and the first word
 *      of a later one; a broker that has heard of a later epoch without a master takes nothing.
 *   2. With all_ack a message counts as replicated (role_level()) only while every required member has, over a connection that is
 *      there now, acknowledged its last byte, and they are min_in_sync or more.  The set that the controller holds is always among
 *      the required ones.
 *   3. So, with all_ack and clean elections (enableElectUncleanMaster=false), whoever is elected has every acknowledged message, and
 *      an old master that cannot reach anybody acknowledges nothing once another is elected: the other was required, and follows
 *      it no more.  No lease and no clock is needed for this.
 *   4. A proposal names the newest known set, and holds this broker.  A slave is proposed only after it was required, and has
 *      everything that may have been acknowledged before.
 *   5. The confirm offset of a master never goes back, and with all_ack what lies below it is at every required member, or was there
 *      when it was confirmed.
 *   6. An epoch is not begun twice: a broker that comes back as master of an epoch which its log knows already goes on with it if it
 *      has lost nothing that others may have (whole); if not, it does not say that it lives for 12 s, so that the controller makes
 *      the next epoch.  Only if nobody else is there is the epoch begun again, at the log's new end, as the peer always does: one
 *      number then names two things, and a third log can be cut at the wrong place.
 *   7. What was asked and not answered counts as asked until the controller tells a newer set; or tells, 30 s after it was asked, that
 *      the set is as it was: so long no request lies unread.
 *
 * Which configuration promises what:
 *   allAckInSyncStateSet=true, minInSyncReplicas=2 (or ackOnTwoMachines=true, which sets both): an acknowledged message is on
 *   two machines and survives every election.  With minInSyncReplicas=1: it survives every election, but a set that has shrunk to the
 *   master alone acknowledges alone, and waits for it when it dies.  With allAckInSyncStateSet=false (the peer's default):
 *   elections can lose acknowledged messages, and two masters can acknowledge at once; inSyncReplicas=n only says how many have it.
 *   All of this holds over a process's death; over a machine's with SYNC_FLUSH, where a slave reports what is flushed; with
 *   ASYNC_FLUSH as long as not every member of the set loses what it has not flushed. */
#ifndef BROKER_ROLE_H
#define BROKER_ROLE_H

#include <codec/body_controller.h>
#include <codec/request.h>

enum { ROLE_CONTROLLERS_MAX = 16, ROLE_ADDR = 300, ROLE_ACTS = 64 };

struct role_conf {
	const char *addr;                       /* ours, for the controller; borrowed, like the next ones */
	const char *controller[ROLE_CONTROLLERS_MAX];
	int controllers;
	int64_t beat_ms;                        /* controllerHeartBeatTimeoutMills / 10: 1000 */
	int64_t metadata_ms;                    /* syncControllerMetadataPeriod 10000 */
	int64_t replicas_ms;                    /* syncBrokerMetadataPeriod 5000 */
	int64_t check_ms;                       /* checkSyncStateSetPeriod 5000 */
	int64_t behind_ms;                      /* haMaxTimeSlaveNotCatchup 15000 */
	int64_t answer_ms;                      /* an answer that has not come by then does not come: 3000 */
	bool all_ack;                           /* allAckInSyncStateSet, or ackOnTwoMachines */
	int32_t min_in_sync, in_sync;           /* minInSyncReplicas, inSyncReplicas */
	uint32_t seed;                          /* of pauses that keep two beginners apart */
};

/* What is on disk: files brokerIdentity and brokerIdentity-temp.  0: there is none. */
struct role_identity {
	int64_t id;
	int64_t temp_id;
	char temp_check[ROLE_ADDR];
};

enum role_phase { ROLE_NUMBERING, ROLE_APPLYING, ROLE_WRITING, ROLE_REGISTERING, ROLE_RETURNING, ROLE_ELECTING, ROLE_RUNNING };
enum role_is { ROLE_IS_NOBODY, ROLE_IS_MASTER, ROLE_IS_SLAVE };

struct role_master {
	int64_t id;                             /* -1: there is none */
	char addr[ROLE_ADDR];
	int32_t epoch;
};

enum role_do {
	ROLE_ASK,                               /* request `code` to `to`; answer by role_answer() with `seq` */
	ROLE_BEAT,                              /* 904 to every controller, with id, the log's last epoch and end, role_confirm() */
	ROLE_WRITE_TEMP,                        /* id and check; then role_wrote() */
	ROLE_WRITE_IDENTITY,                    /* id, and remove the other file; then role_wrote() */
	ROLE_FORGET_TEMP,
	ROLE_BECOME_MASTER,                     /* of m.epoch: the list of epochs safe on disk; then role_changed() */
	ROLE_BECOME_SLAVE,                      /* of m; all connections of slaves end; then role_changed() */
	ROLE_REGISTER,                          /* at the name servers, as what it is now; not before the first one */
	ROLE_SET,                               /* the set has changed: who waits for acknowledgements looks again */
	ROLE_STUCK,                             /* it does not go on by itself: why */
};

struct role_act {
	enum role_do what;
	int32_t code;                           /* REQ_CONTROLLER_* */
	uint32_t seq;
	char to[ROLE_ADDR];
	int64_t id;                             /* APPLY_BROKER_ID, WRITE_*: the number; else ours */
	char check[ROLE_ADDR];
	bool whole;                             /* BECOME_MASTER: for epoch_begin() */
	struct role_master m;                   /* ALTER_SYNC_STATE_SET: epoch; BECOME_* */
	struct body_sync_set set;               /* ALTER_SYNC_STATE_SET, with the epoch of the set that it changes */
	char why[200];
};

enum { ROLE_NO_ANSWER = -1 };
/* What a controller said.  Fields that an answer has not are 0, master.id -1. */
struct role_answer {
	uint32_t seq;
	int32_t code;                           /* RESP_*, or ROLE_NO_ANSWER */
	char leader[ROLE_ADDR];                 /* GET_METADATA_INFO */
	int64_t next_id;                        /* GET_NEXT_BROKER_ID */
	struct role_master master;              /* REGISTER, ELECT, GET_REPLICA_INFO */
	struct body_sync_set set;               /* these and ALTER */
};

struct role_slave {
	int64_t id;
	uint64_t conn;                          /* its connection; 0: there is none */
	bool learner, joining;
	int64_t acked;                          /* over this connection; -1 = nothing */
	int64_t caught_ms, joining_ms;
};

struct role {
	struct role_conf conf;
	enum role_phase phase;
	enum role_is is;
	int64_t id;
	int64_t temp_id;
	char temp_check[ROLE_ADDR];
	char leader[ROLE_ADDR];
	int probe;
	struct role_master master;              /* of the newest epoch that was heard of */
	int32_t log_epoch;                      /* last epoch that the log knew when it was opened */
	bool whole;                             /* the log has lost nothing that others may have */
	int64_t return_ms;
	bool changing, told, fenced;            /* a change is under way; a newer one is to follow; nothing is taken */
	bool registered, beats;
	/* Requests: at most one of the life's and one about the set. */
	uint32_t seq, life_seq, set_seq;        /* 0: none is under way */
	int32_t life_code;
	int64_t life_ms, life_due, set_due;
	int64_t next_ms, beat_ms, leader_ms, replicas_ms, check_ms, now;
	/* A master's. */
	struct body_sync_set set, asked;
	struct body_sync_set fresh;             /* of a master that is about to be one */
	int uncertain;                          /* proposals in `asked` */
	int64_t asked_ms;                       /* the last one */
	struct role_slave slave[SYNC_SET_MAX];
	size_t slaves;
	int64_t end;                            /* of the log, as far as it counts here */
	int64_t begun;                          /* the log's end when this broker became master */
	int64_t confirm;
	int64_t level;
	struct role_act act[ROLE_ACTS];
	unsigned act_put, act_take;
	uint64_t dice;
};

/* ---- Events ---------------------------------------------------------------------------------------------------------- */

/* log_epoch: the newest epoch in the file, also if the log has lost it.  whole: nothing is missing at the log's end that a slave may
 * have been sent: it was closed in order, or only the process died, or (SYNC_FLUSH) slaves are sent only what is flushed. */
void role_start(struct role *r, const struct role_conf *conf, const struct role_identity *disk, int32_t log_epoch, bool whole,
                int64_t now);
/* wall_ms goes into a new check code. */
void role_tick(struct role *r, int64_t now, int64_t wall_ms);           /* every 100 ms or so */
void role_answer(struct role *r, const struct role_answer *a, int64_t now, int64_t wall_ms);
void role_wrote(struct role *r, bool ok, int64_t now);
/* NOTIFY_BROKER_ROLE_CHANGED. */
void role_notified(struct role *r, const struct role_master *m, const struct body_sync_set *set, int64_t now);
/* ROLE_BECOME_* is done, and role_log() has been called since; if not, it is asked for again. */
void role_changed(struct role *r, bool ok, int64_t now);
/* The log ends here (with SYNC_FLUSH: is flushed up to here). */
void role_log(struct role *r, int64_t end);
/* A slave said that it has everything below `acked`.  everything: it had, at this report, what there was when it was last sent something
 * (ha_switch_caught_up()); epoch_start: of the current epoch; caught_ms: struct ha_switch_slave's. */
void role_slave_report(struct role *r, uint64_t conn, int64_t id, bool learner, int64_t acked, bool everything, int64_t epoch_start,
                       int64_t caught_ms, int64_t now);
void role_slave_lost(struct role *r, uint64_t conn, int64_t now);

/* ---- What follows ---------------------------------------------------------------------------------------------------- */

bool role_next(struct role *r, struct role_act *a);                     /* false: nothing more is to be done now */

enum role_put { ROLE_PUT_OK, ROLE_PUT_NOT_MASTER, ROLE_PUT_TOO_FEW };
enum role_put role_puts(const struct role *r);
/* A message that ends at or below this may be acknowledged, as far as slaves matter; -1: none.  INT64_MAX: nobody is waited for. */
static inline int64_t role_level(const struct role *r) { return r->level; }
int64_t role_confirm(struct role *r);
bool role_required(const struct role *r, int64_t id);

#endif
