/* bench.h: one measured run: what is asked for, whom it is asked of, what was counted.
 *
 * Works on net and codec directly: a template per queue, of which a request is a copy with a few digits changed, so that the
 * generator costs little beside the server under test. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "../cli.h"
#include "histogram.h"
#include <codec/header.h>
#include <net/conn.h>

enum bench_mode { BENCH_SEND, BENCH_BATCH, BENCH_CONSUME, BENCH_LATENCY };

enum {
	BENCH_CONNS_MAX = 10000,
	BENCH_CONNS_FEW = 500,                  /* with fewer, one look at the clock per turn is exact enough */
	BENCH_IN_FLIGHT_MAX = 65536,            /* per connection */
	BENCH_SLOTS_MAX = 1000000,              /* of all connections together */
	BENCH_QUEUES_MAX = 100000,
	BENCH_OPAQUE = 1000000000,              /* + slot: always ten digits, so that a template fits every slot */
	BENCH_PULL_BYTES = 1 << 20,             /* asked for in a pull */
	BENCH_STALL_MS = 10000,                 /* no answer at all for so long: the run has failed */
};

struct bench_opt {
	enum bench_mode mode;
	const char *nameserver, *broker, *topic, *group;
	int size, in_flight, conns, batch, pull_max, queues, spin_us, pid;
	int64_t time_ms, warmup_ms, interval_ms;
	int64_t count;                          /* messages; 0 = by time */
	int64_t rate;                           /* messages a second; 0 = as fast as answers come */
	bool limit;
	enum { BENCH_TABLE, BENCH_TSV, BENCH_JSON } format;
};

struct bench {
	struct bench_opt o;
	uv_loop_t loop;

	/* Whom: bench_find_target(). */
	char addr[300];
	char broker_name[256];
	int read_queues, write_queues;

	/* The clock, read once per turn. */
	uv_prepare_t turn;
	bool fresh;
	int64_t now_us;

	/* Counted since the warm-up. */
	int64_t messages, bytes, errors;
	struct histogram latency;               /* us, of a request (latency mode: from send to receive) */
	int64_t began_us, ended_us;
	int64_t cpu_began_us, cpu_ended_us, own_cpu_began_us, own_cpu_ended_us; /* cpu_*: of opt.pid; -1 = unknown */
	int64_t rss_kb;                         /* anonymous memory of opt.pid at the end; -1 = unknown */

	bool counting, stopping;
	int64_t answers, answers_seen;          /* all of them; as of the last look for a stall */
	uv_timer_t warmup, end, watch;
	uv_signal_t interrupt;
	void (*stop)(struct bench *b);          /* of the mode: ask for nothing more */
	void *state;                            /* of the mode */
	char remark[300];                       /* of the first refusal */
};

int64_t bench_clock(struct bench *b);   /* reads it */
static inline int64_t bench_now_us(struct bench *b)
{
	/* With many connections a turn of the loop takes long, and has more than one round of input. */
	return b->fresh && b->o.conns < BENCH_CONNS_FEW ? b->now_us : bench_clock(b);
}

/* ---- run.c ----------------------------------------------------------------------------------------------------------- */

void bench_init(struct bench *b);
/* Start the clock, run the loop until bench_finished(), stop the clock. */
void bench_run(struct bench *b);
/* What was asked for is done, or time is up: no more requests; the loop ends when the mode calls bench_finished(). */
void bench_stop(struct bench *b);
void bench_finished(struct bench *b);
/* One answer, to a request sent at sent_us.  Counts what it stands for if it is a success, or keeps its remark. */
void bench_answer(struct bench *b, const struct frame *f, bool ok, int64_t messages, int64_t bytes, int64_t sent_us);
_Noreturn void bench_lost(struct bench *b, struct conn *c, int why);
/* One request that is waited for; ends the program if there is no answer. */
struct bench_reply {
	int32_t code;
	char remark[300];
	struct buf body;
	int64_t number;                         /* of the field `offset`, if there was one */
};
void bench_ask(struct bench *b, struct conn *c, int32_t code, const struct header_desc *d, const void *header,
	       struct bench_reply *r);
/* A connection that is up. */
struct conn *bench_connect(struct bench *b, const char *addr, const struct conn_ops *ops, void *owner);

/* ---- target.c -------------------------------------------------------------------------------------------------------- */

/* Fill in addr, broker_name and queues: by route, as given, or of a server of our own that does nothing. */
void bench_find_target(struct bench *b);
/* CPU time of a process in us, -1 if it cannot be read; its anonymous memory in KiB, -1. */
int64_t bench_cpu_us(int pid);
int64_t bench_rss_kb(int pid);

/* ---- limit.c --------------------------------------------------------------------------------------------------------- */

/* Start the server that only frames and answers; it ends with this program.  Its port; *pid is set. */
int limit_start(const struct bench_opt *o, int *pid);

/* ---- template.c ------------------------------------------------------------------------------------------------------ */

struct template {
	struct buf frame;
	size_t opaque_at;           /* ten digits */
	size_t born_at;             /* thirteen digits */
	size_t *id_at, ids;         /* last eight hex digits of each UNIQ_KEY */
};
/* A send, or a batch of sends, to this queue. */
void template_send(struct template *t, const struct bench *b, int queue);
void template_free(struct template *t);
/* Append a request.  ids counts up over all requests. */
void template_put(const struct template *t, struct buf *out, const char opaque[10], int64_t born_ms, uint32_t *ids);
void template_opaque(int slot, char out[10]);

/* ---- The modes ------------------------------------------------------------------------------------------------------- */

void bench_send(struct bench *b);       /* also batches */
void bench_consume(struct bench *b);
void bench_latency(struct bench *b);
/* A pull; `wait_ms` 0 = no long poll. */
void bench_pull(struct bench *b, struct conn *c, int opaque, int queue, int64_t off, int64_t wait_ms);
/* Messages and body bytes in the body of a pull answer. */
void bench_count_records(struct mq_str body, int64_t *messages, int64_t *bytes);

/* ---- report.c -------------------------------------------------------------------------------------------------------- */

void bench_report(const struct bench *b);

#endif
