/* broker.h: what the broker owns, and the order in which it starts and stops.
 *
 * One libuv loop owns everything here; what would block (fdatasync, rename of a table) runs in a libuv worker and comes back
 * as a callback.  Files come in three shapes, seen from the name:
 *	handle_*.c	a request in, an answer out, no state
 *	*_table.c	owned state, saved as the peer's JSON by table_file.c; no network
 *	plain nouns	things with a clock: hold, pop_hold, cold, settle, flush, delay, timer, txn, revive, register, route,
 *			upkeep, rates
 *
 * Start: store (lock, recover) -> tables -> what has a clock -> listen -> register, and on a slave follow.
 * Stop: unregister everywhere -> let go of the master -> answer what is held -> last flush, what waited for it -> slaves,
 * connections -> save tables, close the store -> free.  Within a second, if the disk is. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "broker_conf.h"
#include "dispatch.h"
#include "metrics.h"
#include "tally.h"
#include <codec/body.h>
#include <codec/id.h>
#include <mqstore.h>
#include <net/server.h>

struct acl;
struct topic_table;
struct group_table;
struct offset_table;
struct filter_table;
struct client_table;
struct lock_table;
struct cold;
struct hold;
struct pop_hold;
struct revive;
struct order_table;
struct mode_table;
struct route;
struct settle;
struct flush;
struct delay;
struct timer;
struct txn;
struct registrar;
struct ha_master;
struct ha_replica;
struct ha_secret;
struct upkeep;
struct rates;
struct member;

/* A name server in the same process, which knows this broker alone. */
struct broker_names {
	void *(*open)(struct broker *b, struct mq_error *e);            /* NULL with e */
	void (*topics)(void *names);                                    /* the topics, or something else of them, changed */
	bool (*request)(void *names, struct conn *c, struct frame *f);  /* one that is not ours; false: not its either */
	void (*closed)(void *names, struct conn *c);
	void (*close)(void *names);                                     /* ends with the next turns of the loop */
};

struct broker_opt {
	struct conf *rows;          /* of the conf below: from broker_conf_new(), filled in and checked; borrowed */
	struct broker_conf *conf;   /* borrowed */
	const char *conf_path;      /* file that `rows` came from, or NULL: changes by request are written there; borrowed */
	/* The same configuration read again from where it came, for SIGHUP: a new conf into *c, or NULL with e. */
	struct conf *(*load)(void *arg, struct broker_conf *c, struct mq_error *e);
	void *load_arg;
	const char *embedded_dir;   /* serve name server and broker on DIR/mq.sock and nothing else; NULL = TCP; borrowed */
	const struct broker_names *names; /* embedded: the name server */
	struct member *member;      /* under a controller: whose life this is (member.h); else NULL */
	int64_t idle_exit_ms;       /* embedded: stop after so long without a client; 0 = never */
	/* It stopped by itself (idle) or by broker_stop(); it is gone.  rc: first failure of a flush or save. */
	void (*stopped)(void *arg, int rc);
	void *stopped_arg;
};

struct broker {
	uv_loop_t *loop;
	struct broker_opt opt;
	struct broker_conf *conf;
	struct conf *conf_rows;
	const char *conf_path;
	struct metrics metrics;
	struct tallies tallies;
	int64_t boot_ms;            /* wall time of the start */
	struct body_version conf_version; /* of the configuration: one more with each change by request */

	char addr[640];             /* told to clients: "brokerIP1:port", or "unix:DIR/mq.sock" */
	char ha_addr[640];
	struct mq_host store_host;  /* brokerIP1 and port, in every record */

	struct mqstore *store;
	struct topic_table *topics;
	struct group_table *groups;
	struct offset_table *offsets;
	struct filter_table *filters;
	struct client_table *clients;
	struct lock_table *locks;
	struct cold *cold;
	struct hold *hold;
	struct pop_hold *pops;
	struct revive *revive;
	struct order_table *orders;
	struct mode_table *modes;
	struct route *route;
	struct settle *settle;
	struct flush *flush;
	struct delay *delay;
	struct timer *timer;
	struct txn *txn;
	struct registrar *reg;
	struct ha_master *ha;       /* a master's replication port; NULL on a slave, and embedded */
	struct ha_replica *replica; /* a slave's; else NULL */
	struct ha_secret *ha_secret; /* that both prove to one another; NULL: there is none */
	struct acl *acl;            /* aclEnable: who may do what; else NULL: everybody everything */
	struct upkeep *upkeep;
	struct rates *rates;

	struct server *main, *vip;  /* embedded: main is the Unix socket, vip is NULL */
	void *names;                /* embedded: the name server, for opt.names; else NULL */
	uv_timer_t idle_timer;

	uv_check_t turn;            /* runs after the input of a loop turn has been handled, when wanted */
	uv_idle_t turn_now;         /* keeps that turn from waiting for input */
	bool turn_wanted;
	struct buf void_out;        /* answers to one-way requests */

	struct buf send_props;      /* MSG_REGION, TRACE_ON, CLUSTER: added to every message */
	struct id_maker ids;        /* UNIQ_KEY for messages without */
	uint32_t send_turn;         /* queue for sends that name none */
	uint32_t pop_turn;          /* where the next pop looks first */
	struct buf scratch;         /* of one handler call */

	bool stopping;              /* requests are turned away */
	enum { DEPOSED_NOT, DEPOSED_UNKNOWN, DEPOSED_BY_OTHER } deposed; /* fence.h */
	bool leaving;               /* broker_stop() was called */
	int waits;                  /* parts of the current step of the stop that are not done yet */
	int closed;                 /* handles that have ended */
	int rc;                     /* first failure while stopping */
};

/* Open, listen, register.  On failure nothing is left (once the loop has turned) and err says what.  0 or a negative code. */
int broker_start(struct broker **b, uv_loop_t *loop, const struct broker_opt *opt, struct mq_error *err);
/* In order; opt.stopped comes when all is done, and *b is gone. */
void broker_stop(struct broker *b);
/* Port that is listened on (0 when embedded). */
int broker_port(const struct broker *b);
/* Read the configuration again; what may change while running is changed. */
void broker_reload(struct broker *b);
/* The values of conf changed (by file or by request): make them felt where they do not act by themselves.  `perm_before`:
 * brokerPermission until now. */
void broker_conf_changed(struct broker *b, int32_t perm_before);

/* Ask for the end of this turn: tables to save, topics to register, waiting sends to flush for, pulls to answer. */
void broker_want_turn(struct broker *b);
/* Every connection, also our own to name servers, in and out of the tables. */
void broker_conn_opened(struct broker *b, struct conn *c);
void broker_conn_closed(struct broker *b, struct conn *c, int why);

/* The text of why the store takes no messages, for a remark ("" if it does); good until the next call.  Costs a look at the
 * disk. */
const char *broker_why_not_writable(struct broker *b);

#endif
