/* ha_role.h: who sends what to whom when a log is replicated: the rules of the default (classic) replication as pure state machines.
 *
 * Events go in, decisions come out; no clock, no socket, no file: ha_master.c and ha_replica.c bring these, and a simulator can.
 * Times are monotonic ms.  Sources of the rules: the peer's DefaultHAConnection, DefaultHAClient; mq-wire(7).
 *
 * Promises:
 *   1. A slave is never sent a byte that does not follow what it has: the first one sent is the one that it asked for, and no report
 *      moves the place from which is sent.
 *   2. No report is believed that names a byte which the master has not, or, after the first, one that was not sent.  So nobody
 *      makes a message count as replicated by naming a high number.
 *   3. A slave takes a block only if it begins where its log ends.
 *   4. A slave asks for bytes only after it has seen that the newest record both can have is the same in both logs
 *      (ha_agree), and gives up of its own log no more than what lies behind the last such record.
 *   5. A message counts as replicated on n machines only while n - 1 connections have each acknowledged its last byte. */
#ifndef BROKER_HA_ROLE_H
#define BROKER_HA_ROLE_H

#include <mq.h>

/* The log as it is now: bytes [min, end), in segments of `segment` bytes. */
struct ha_log {
	int64_t min, end, segment;
};

/* ---- A master's view of one slave -------------------------------------------------------------------------------------- */

struct ha_limits {
	int64_t heartbeat_ms;       /* haSendHeartbeatInterval */
	int64_t silence_ms;         /* haHousekeepingInterval: nothing heard for so long ends the connection */
	int64_t block_bytes;        /* haTransferBatchSize */
	int64_t gap_bytes;          /* haMaxGapNotInSync: farther behind is not in sync */
	int64_t second_bytes;       /* maxHaTransferByteInSecond, if haFlowControlEnable; else 0: no limit */
};

struct ha_slave {
	bool known;                 /* it has reported where it stands */
	int64_t asked;              /* first report */
	int64_t acked;              /* it has everything below; -1: nothing is known */
	int64_t next;               /* next byte to be sent */
	int64_t heard_ms, wrote_ms;
	int64_t in_second;          /* bytes sent since ha_slave_second() */
};

struct ha_send {
	enum { HA_SEND_NOTHING, HA_SEND_HEARTBEAT, HA_SEND_BLOCK } what;
	int64_t off;
	int32_t n;                  /* bytes of the body; 0 in a heartbeat */
};

void ha_slave_begin(struct ha_slave *s, int64_t now);
/* It says that it has everything below `off`.  0, or MQ_EPROTO with the reason: end the connection. */
int ha_slave_report(struct ha_slave *s, const struct ha_log *log, int64_t off, int64_t now, struct mq_error *why);
/* What to send next.  The caller sends it and says so with ha_slave_sent(). */
struct ha_send ha_slave_next(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l, int64_t now);
void ha_slave_sent(struct ha_slave *s, const struct ha_send *sent, int64_t now);
/* A second is over: what may be sent in one counts anew. */
void ha_slave_second(struct ha_slave *s);
/* Is there something that waits for the next second? */
bool ha_slave_is_held(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l);
/* Has it been silent for too long? */
bool ha_slave_is_gone(const struct ha_slave *s, const struct ha_limits *l, int64_t now);
bool ha_slave_in_sync(const struct ha_slave *s, const struct ha_log *log, const struct ha_limits *l);

/* ---- How many machines must have a message ------------------------------------------------------------------------------ */

struct ha_wish {
	bool sync;                  /* SYNC_MASTER, or `strict` */
	bool strict;                /* ackOnTwoMachines: never fewer than two, or refuse */
	int32_t replicas;           /* inSyncReplicas */
	int32_t min_replicas;       /* minInSyncReplicas */
	bool automatic;             /* enableAutoInSyncReplicas */
	bool all;                   /* allAckInSyncStateSet */
};
/* Machines, the master included, that must have a message which is stored while `in_sync` have (nearly) everything: 1 = no wait;
 * 0 = it must not be stored, for there are too few. */
int32_t ha_wish_acks(const struct ha_wish *w, int32_t in_sync);

/* Log offset below which everything is on at least n machines, the master with its log's end included.  acked: of each slave. */
int64_t ha_replicated(const int64_t *acked, size_t slaves, int32_t n, int64_t end);

/* ---- A slave -------------------------------------------------------------------------------------------------------------- */

enum ha_phase {
	HA_HOMELESS,                /* does not know its master */
	HA_RESTING,                 /* waits before it tries (again) */
	HA_DIALLING,
	HA_AGREEING,                /* connected: compares logs with the master before a byte flows */
	HA_CUTTING,                 /* takes back what the master has not */
	HA_FOLLOWING,
};
const char *ha_phase_name(enum ha_phase p);

struct ha_follower {
	enum ha_phase phase;
	int64_t due_ms;             /* RESTING: until then */
	int64_t reported;           /* last report sent; -1: none over this connection */
	int64_t heard_ms, wrote_ms;
	bool began;                 /* FOLLOWING: the first block has come */
};

enum ha_do {
	HA_DO_NOTHING,
	HA_DO_DIAL,
	HA_DO_REPORT,               /* send where the log ends */
	HA_DO_HANG_UP,              /* silent for too long: close, then ha_follower_lost() */
};

enum { HA_REST_MS = 5000, HA_REPORT_MS = 5000 };

void ha_follower_begin(struct ha_follower *f);
/* The master is known, or another one, or not any more (false).  True: a connection that there is has to be closed. */
bool ha_follower_master(struct ha_follower *f, bool known, int64_t now);
void ha_follower_connected(struct ha_follower *f, int64_t now);
/* What agreement came to: follow from here on; or cut first, then agree again. */
void ha_follower_agreed(struct ha_follower *f, int64_t now);
void ha_follower_must_cut(struct ha_follower *f);
void ha_follower_cut(struct ha_follower *f, int64_t now);
/* The connection is gone, or was never made, or what came was wrong.  It is tried again after rest_ms. */
void ha_follower_lost(struct ha_follower *f, int64_t now, int64_t rest_ms);
/* The head of a block (n bytes from `off` on; 0 = heartbeat) has come.  end: of the log.  0, or MQ_EPROTO with the reason. */
int ha_follower_head(struct ha_follower *f, int64_t off, int64_t n, int64_t end, int64_t now, struct mq_error *why);
/* What to do now.  `end`: what can be reported.  Call after each block, and every second. */
enum ha_do ha_follower_next(const struct ha_follower *f, int64_t end, const struct ha_limits *l, int64_t now);
void ha_follower_reported(struct ha_follower *f, int64_t off, int64_t now);

/* ---- Where two logs part --------------------------------------------------------------------------------------------------- */

/* Finds, among records in order, the first that is not the same in both logs, when all before it are and none behind it is.  Ask for
 * ha_search_next() until it is ha_search_done(). */
struct ha_search {
	size_t lo, hi;              /* those below lo are the same, hi and those behind are not */
	bool tail_first;            /* the newest is looked at first: most logs do not part at all */
};
void ha_search_begin(struct ha_search *s, size_t n);
static inline bool ha_search_done(const struct ha_search *s) { return s->lo == s->hi; }
size_t ha_search_next(const struct ha_search *s);
void ha_search_answer(struct ha_search *s, size_t at, bool same);

#endif
