/* client.h: what the files of this layer share: the client itself, its timers, its log.
 *
 * Who knows what:
 *   client     life: open, run, free; timers            address   which address; http lists of name servers
 *   account    as who
 *   link       one connection per address, back-off     embedded  starts a broker for file:DIR
 *   nameserver one request to whichever answers         route     topic -> queues -> brokers, kept fresh
 *   ask        raw requests, the _wait calls            trace     a line per frame
 *   heartbeat  staying known to the brokers             answer    requests that brokers send to us
 *   produce    sending                                  consume   life of a consumer, its settings
 *   balance    which queues are ours                    pull      one queue: start, pull, hand out
 *   offset     how far a queue is settled; commits   qlock      locks of queues
 *   direct     messages that an administrator hands over
 *   back       sending back                          done       requests that are answered with yes or no
 *   half       ends of transactions, questions       request    messages that ask for a reply, and replies
 *
 * All of it runs on the thread of the loop. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "../mqclient.h"
#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/heap.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../codec/frame.h"
#include "../codec/id.h"
#include "../codec/request.h"
#include "../net/conn.h"
#include <sys/queue.h>
#include <uthash.h>
#include <uv.h>

/* Times in ms.  The 30 s, 20 s, 5 s, 2 min are the peer's (ClientConfig, RebalanceService, MQClientInstance). */
enum {
	CLIENT_TIMEOUT_MS = 3000,
	CLIENT_ROUTE_MS = 30000,
	CLIENT_HEARTBEAT_MS = 30000,
	CLIENT_BALANCE_MS = 20000,
	CLIENT_BALANCE_AGAIN_MS = 1000,
	CLIENT_COMMIT_MS = 5000,
	CLIENT_ADDR_POLL_MS = 120000,
	CLIENT_BACKOFF_MS = 100,
	CLIENT_BACKOFF_MAX_MS = 2000,
	CLIENT_BODY_MAX = 64 * 1024 * 1024, /* of a body after inflating: bounds what a hostile body can cost */
};

/* A thing that happens later: embed it, set cb once.  Zeroed = not running. */
struct client_timer {
	struct heap_node node;
	void (*cb)(struct client_timer *t);
};

struct link;
struct topic;
struct broker;
struct send;
struct ns_call;
struct producer;
struct mqclient_consumer;
struct http_poll;
struct sign_key;
struct embedded;

TAILQ_HEAD(send_list, send);
TAILQ_HEAD(ns_call_list, ns_call);
LIST_HEAD(consumer_list, mqclient_consumer);

struct mqclient {
	uv_loop_t *loop;
	bool own_loop;
	bool closing;                   /* in mqclient_free(): failures are final, nothing is tried again */
	int frame_type;                 /* FRAME_JSON, FRAME_BINARY */
	bool trace;
	int32_t timeout_ms;
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
	char *addr;                     /* as given */
	enum mqclient_addr_kind kind;
	char id[256];                   /* client id */
	struct sign_key *account;       /* signs requests; NULL: they are not signed */
	struct id_maker ids;

	uv_timer_t timer;               /* of the heap */
	struct heap timers;
	int64_t timer_due;              /* what `timer` is set to; INT64_MAX = stopped */
	uv_timer_t run_timer;           /* limit of mqclient_run() */
	int64_t wall_diff, wall_at;     /* see client_wall() */
	int open_handles;               /* uv handles and workers that are not closed yet */

	struct link *links;             /* by address */
	struct broker *brokers;         /* by name */
	struct topic *topics;           /* by name */
	struct topic *last_topic;       /* the one that was looked up last */
	struct producer *producers;     /* by group */
	struct producer *last_producer;
	struct consumer_list consumers;

	/* Name servers. */
	struct link **ns;
	const char **ns_names;          /* for mqclient_nameservers() */
	size_t nns, ns_at;
	bool ns_wait;                   /* the list is on its way (http), or the broker is (file:) */
	struct ns_call_list ns_waiting; /* calls that wait for it */
	size_t ns_open;                 /* calls that have not ended */
	struct http_poll *http;
	struct embedded *embedded;

	/* Heartbeats. */
	struct client_timer beat_timer;
	struct buf beat_body;           /* the last body; built again when stale */
	bool beat_stale;
	int beats_open;                 /* answers awaited */
	int leaves_open;                /* of unregistering */

	/* Transactions and requests. */
	LIST_HEAD(, checker) checkers;  /* who answers for transactions of a group */
	struct asked *asked;            /* requests that wait for a reply, by id */

	/* Sending. */
	struct send_list free_sends;
	int nfree_sends;
	struct send_list waiting_sends; /* for a route, or for the end of a pause */
	size_t in_flight;               /* sends and asks without an answer */

	/* The views of the last _wait call. */
	struct buf wait_buf;
	struct mqclient_field *wait_fields;
	struct buf scratch;
};

/* Monotonic ms, read from the clock; the base of all timers here. */
static inline int64_t client_now(void) { return clock_mono_us() / 1000; }

/* Wall ms at that time: with the clocks' difference of at most a second ago, which saves reading another clock. */
static inline int64_t client_wall(struct mqclient *c, int64_t now)
{
	if (now - c->wall_at >= 1000 || now < c->wall_at) {
		c->wall_diff = clock_wall_ms() - now;
		c->wall_at = now;
	}
	return now + c->wall_diff;
}

/* How long to pause after failure n (0 = the first): first_ms, doubled with each, at most max_ms. */
static inline int64_t client_pause_ms(int n, int64_t first_ms, int64_t max_ms)
{
	int64_t ms = n < 16 ? first_ms << n : max_ms;

	return ms < max_ms ? ms : max_ms;
}

void client_timer_start(struct mqclient *c, struct client_timer *t, int64_t delay_ms);
void client_timer_stop(struct mqclient *c, struct client_timer *t);
static inline bool client_timer_on(const struct client_timer *t) { return t->node.at != 0; }

/* Level 0 error .. 3 debug.  Nothing if the user gave no log function. */
void client_log(struct mqclient *c, int level, const char *fmt, ...) MQ_PRINTF(3, 4);

/* A pseudo-random number below n: for spreading load, not for secrets. */
uint32_t client_random(uint32_t n);

#define client_container(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#endif
