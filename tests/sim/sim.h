/* sim.h: three brokers and three controllers in one process without clock, network or disk of their own: tests/sim/README.md. */
#ifndef SIM_H
#define SIM_H

#include "../../bin/broker/ha_switch_role.h"
#include "../../bin/broker/role.h"
#include "../../bin/namesrv/controller.h"
#include "../../bin/namesrv/controller_live.h"

#include <sys/queue.h>

enum { BROKERS = 3, CONTROLLERS = 3, NODES = BROKERS + CONTROLLERS, LOG_MAX = 1 << 14, BLOCK = 16, CONNS = 64 };

/* Faults put in on purpose: the simulator has to find them. */
enum sim_bug {
	BUG_NONE,
	BUG_UNION,              /* a master counts only the set that it knows, not what it asked for */
	BUG_UNFLUSHED,          /* a slave reports what it has not flushed */
	BUG_LENGTH,             /* a slave that is not longer than its master cuts nothing */
	BUG_REPEAT,             /* a new epoch in which nothing was written yet keeps the old number (the peer's rule) */
	BUGS,
};

struct event {
	int64_t at;
	uint64_t order;
	void (*fn)(struct event *e);
	int node;               /* which has to be in the same life, or -1 */
	int life;
	int a, b;
	void *p;                /* freed with the event */
};

struct msg {                    /* between a master and a slave */
	TAILQ_ENTRY(msg) q;
	int64_t at;
	enum { MSG_HELLO, MSG_REPORT, MSG_ANSWER, MSG_BLOCK } what;
	int64_t off, confirm;
	int32_t n;
	struct epoch epoch;
	struct ha_switch_hello hello;
	uint32_t id[BLOCK];
	size_t epochs;
	struct epoch *list;
};

struct conn_sim {
	uint64_t key;           /* 0 = none */
	int slave, master, slave_life, master_life;
	TAILQ_HEAD(msgs, msg) q[2];      /* to the master, to the slave */
	struct ha_switch_slave view;
	bool has_view;
};

struct put {
	int64_t off;
	uint32_t id;
};

struct broker_sim {
	bool up;
	int life;
	struct role role;
	/* On disk. */
	uint32_t log[LOG_MAX];
	int64_t end, flushed;
	struct epoch_list epochs;
	struct role_identity disk;
	int64_t disk_stopped_until;
	/* In memory. */
	struct ha_follower follower;
	struct conn_sim *to_master;
	int master;             /* node that it follows, -1 */
	int64_t confirm;        /* as a slave */
	int64_t seen;           /* consumers have seen up to here */
	struct put put[LOG_MAX];
	size_t puts, puts_done;
	int change;
};

struct ask {
	STAILQ_ENTRY(ask) q;
	int from, from_life;
	struct role_act act;
	char name[8];
	bool ours;
	struct controller_verdict v;
	struct buf event;
	char cluster[8], broker[8], addr[16], check[ROLE_ADDR];
	char ids[8];
};

struct controller_sim {
	bool up, leads;
	int life;
	struct controller *state;
	struct controller_lives *lives;
	struct controller_eyes eyes;
	size_t applied;
	int64_t leads_since;
	int leads_term;
	STAILQ_HEAD(asks, ask) waiting;
	struct ask *judged;
};

struct world {
	uint64_t dice;
	int64_t now, fault_end, end;
	bool sync_flush, verbose;
	enum sim_bug bug;
	bool cut[NODES][NODES]; /* [a][b]: nothing goes from a to b */
	int loss;               /* of 1000 requests */
	int slow_ms;
	struct broker_sim b[BROKERS];
	struct controller_sim c[CONTROLLERS];
	struct conn_sim conn[CONNS];
	uint64_t keys, orders;
	/* The replicated log of the controllers. */
	struct buf raft[4096];
	size_t raft_n;
	int term, leader;
	int64_t leader_lost_ms;
	/* What the world has been promised. */
	uint32_t next_id;
	uint32_t acked[LOG_MAX], seen[LOG_MAX];
	int64_t acked_end, seen_end;
	int epoch_of[4096];     /* which broker acknowledged in it, + 1 */
	int32_t newest;         /* epoch */
	long acks, late_acks, changes, elections;
	char wrong[300];        /* the first broken promise */
};
extern struct world *w;

/* sim.c */
uint32_t roll(uint32_t n);                       /* 0 .. n-1 */
void at(int64_t in_ms, void (*fn)(struct event *e), int node, int a, int b, void *p);
bool reaches(int from, int to);
int life_of(int node);
void wrong(const char *fmt, ...) MQ_PRINTF(1, 2);
void say(const char *fmt, ...) MQ_PRINTF(1, 2);

/* sim_broker.c */
void brokers_end(void);
void broker_start(int i);
void broker_crash(int i, bool power);
void broker_answer(int i, const struct role_answer *a);
void broker_notified(int i, const struct role_master *m, const struct body_sync_set *set);
void broker_put(int i);

/* sim_controller.c */
void controllers_begin(void);
void controllers_end(void);
void controller_start(int i);
void controller_crash(int i);
void controller_request(int from, const struct role_act *act);   /* to act->to */
void controller_beat(int from);
void controller_broker_gone(int broker);
void raft_tick(void);

#endif
