/* broker.h: what the broker owns, and the order in which it starts and stops.
 *
 * One libuv loop owns everything here; what would block (fdatasync, rename of a table) runs in a libuv worker and comes back
 * as a callback.  Files come in three shapes, seen from the name:
 *	handle_*.c	a request in, an answer out, no state
 *	*_table.c	owned state, saved as the peer's JSON by table_file.c; no network
 *	plain nouns	things with a clock: hold, flush, register, upkeep
 *
 * Start: conf -> store (lock, recover) -> tables -> what has a clock -> listen -> register -> ready.
 * Stop (SIGTERM): unregister, stop listening, answer what is held, save tables, flush and close the store; within a second. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "broker_conf.h"
#include "dispatch.h"
#include "metrics.h"
#include <codec/body.h>
#include <mqstore.h>
#include <net/server.h>

struct topic_table;
struct group_table;
struct offset_table;
struct client_table;
struct hold;
struct settle;
struct flush;
struct registrar;
struct upkeep;
struct rates;
struct namesrv;

struct broker_opt {
	struct conf *rows;          /* of the conf below: from broker_conf_new(), filled in and checked; taken */
	struct broker_conf *conf;   /* borrowed */
	const char *conf_path;      /* file that `rows` came from, or NULL; read again on SIGHUP */
	const char *embedded_dir;   /* serve name server and broker on DIR/mq.sock and nothing else; NULL = TCP */
	int idle_exit_ms;           /* embedded: stop after so long without a client; 0 = never */
};

struct broker {
	uv_loop_t *loop;
	struct broker_conf *conf;
	struct conf *conf_rows;
	const char *conf_path;
	struct metrics metrics;
	int64_t boot_ms;            /* wall time of the start */
	struct body_version conf_version; /* of the configuration: one more with each change by request */

	char addr[MQ_HOST_TEXT + 512]; /* told to clients: "brokerIP1:port", or "unix:DIR/mq.sock" */
	char ha_addr[MQ_HOST_TEXT + 512];
	struct mq_host store_host;  /* brokerIP1 and port, in every record */
	struct mq_host ip1;

	struct mqstore *store;
	struct topic_table *topics;
	struct group_table *groups;
	struct offset_table *offsets;
	struct client_table *clients;
	struct hold *hold;
	struct settle *settle;
	struct flush *flush;
	struct registrar *reg;
	struct upkeep *upkeep;
	struct rates *rates;

	struct server *main, *vip;  /* embedded: main is the Unix socket, vip is NULL */
	struct namesrv *namesrv;    /* embedded only */
	char embedded_dir[512];
	int idle_exit_ms;
	uv_timer_t idle_timer;

	uv_check_t turn;            /* broker_turn_end(): runs after the input of a loop turn has been handled */
	bool turn_wanted;
	struct buf void_out;        /* answers to one-way requests */

	bool stopping;
	int stop_steps;             /* parts that have not yet reported that they stopped */
	int stop_rc;
	void (*stopped)(void *arg, int rc);
	void *stopped_arg;
};

/* Open, listen, register.  On failure nothing is left and err says what.  0 or a negative code. */
int broker_start(struct broker **b, uv_loop_t *loop, const struct broker_opt *opt, struct mq_error *err);
/* In order; stopped(arg, rc) comes once, on the loop, when everything is closed (rc: first failure of a flush or save) and *b is
 * freed after it. */
void broker_stop(struct broker *b, void (*stopped)(void *arg, int rc), void *arg);
/* Port that is listened on (0 when embedded). */
int broker_port(const struct broker *b);
/* Read conf_path again; what may change while running is changed. */
void broker_reload(struct broker *b);
/* The values of conf changed (by file or by request): make them felt where they do not act by themselves.  `perm_before`:
 * brokerPermission until now. */
void broker_conf_changed(struct broker *b, int32_t perm_before);

/* Ask for broker_turn_end() after this turn's input: flushes for waiting sends, pulls to wake. */
void broker_want_turn(struct broker *b);

/* The text of why the store takes no messages, for a remark ("" if it does).  Costs a look at the disk. */
const char *broker_why_not_writable(struct broker *b);

#endif
