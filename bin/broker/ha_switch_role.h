/* ha_switch_role.h: replication under a controller: the same blocks as ha_role.h, told apart by epochs: rules only.
 *
 * Sources: the peer's AutoSwitchHAConnection; mq-wire(7).  A slave shakes hands, hears the master's list of epochs, cuts what
 * the master has not, reports, and follows.  A master closes all connections when its role changes; a list that grows by a new
 * epoch of the same master needs no new handshake.
 *
 * Promises, besides 1, 2, 3 and 5 of ha_role.h:
 *   1. No report is believed, and nothing is sent, before the slave has heard the master's list.
 *   2. A block never spans two epochs, and names the one that wrote it.
 *   3. A slave takes a block only behind its log's end, and only if the block's epoch is its last one, or a later one which begins
 *      exactly there; so its own list always says who wrote what.
 *   4. A slave that follows has a log which is a prefix of the master's: it cuts behind the last offset on which both lists agree, and
 *      without such an offset (and with a log) it does not follow.
 *   5. A handshake that is repeated before the answer is there is answered once. */
#ifndef BROKER_HA_SWITCH_ROLE_H
#define BROKER_HA_SWITCH_ROLE_H

#include "epoch.h"
#include "ha_role.h"

/* First number of each message. */
enum ha_switch_state { HA_SWITCH_READY, HA_SWITCH_HANDSHAKE, HA_SWITCH_TRANSFER, HA_SWITCH_SUSPEND, HA_SWITCH_SHUTDOWN };

/* ---- A master's view of one slave -------------------------------------------------------------------------------------- */

struct ha_switch_hello {
	int64_t id;
	bool last_segment;              /* an empty slave wants the last segment only */
	bool learner;                   /* never in the sync set */
};

struct ha_switch_slave {
	struct ha_slave base;
	bool greeted, answered;
	struct ha_switch_hello hello;
	int64_t end_at_send;            /* the log's end when it was last sent something */
	int64_t sent_ms;                /* when it left */
	int64_t caught_up_ms;           /* last time at which it had everything */
};

struct ha_switch_send {
	enum { HA_SWITCH_NOTHING, HA_SWITCH_ANSWER, HA_SWITCH_HEARTBEAT, HA_SWITCH_BLOCK } what;
	int64_t off;                    /* ANSWER: the log's end */
	int32_t n;
	struct epoch epoch;             /* of the block.  ANSWER: the last epoch's number; the list follows */
};

void ha_switch_begin(struct ha_switch_slave *s, int64_t now);
int ha_switch_greet(struct ha_switch_slave *s, const struct ha_switch_hello *h, int64_t now, struct mq_error *why);
/* 0, or MQ_EPROTO with the reason: end the connection.  Pass on to role_slave_report() what it says. */
int ha_switch_report(struct ha_switch_slave *s, const struct ha_log *log, int64_t off, int64_t now, struct mq_error *why);
struct ha_switch_send ha_switch_next(const struct ha_switch_slave *s, const struct ha_log *log, const struct epoch_list *epochs,
                                     const struct ha_limits *l, int64_t now);
void ha_switch_sent(struct ha_switch_slave *s, const struct ha_log *log, const struct ha_switch_send *sent, int64_t now);
/* It had, at its last report, everything that there was when it was last sent something. */
bool ha_switch_caught_up(const struct ha_switch_slave *s);

/* ---- A slave; its phases are struct ha_follower's: AGREEING until the answer to its handshake is there ------------------- */

struct ha_switch_decision {
	enum { HA_SWITCH_FOLLOW, HA_SWITCH_CUT, HA_SWITCH_REFUSE } what;
	int64_t at;                     /* FOLLOW: report this; CUT: the log is to end here, the epochs too; decide again then */
};
/* What the master's answer means.  REFUSE: why says so; the log has to be emptied by hand. */
struct ha_switch_decision ha_switch_decide(const struct epoch_list *mine, const struct ha_log *log,
                                           const struct epoch_list *theirs, int64_t their_end, struct mq_error *why);

struct ha_switch_head {
	int64_t off, n;                 /* n = 0: heartbeat */
	struct epoch epoch;
	int64_t confirm;
};
/* The head of a block has come.  *list_grew: a new epoch was appended to mine, to be saved before the block's bytes are reported.
 * 0, or MQ_EPROTO with the reason. */
int ha_switch_take(struct ha_follower *f, struct epoch_list *mine, const struct ha_switch_head *h, int64_t end, int64_t now,
                   bool *list_grew, struct mq_error *why);

#endif
