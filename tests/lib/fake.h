/* fake.h: a scripted name server and broker in one, on the loop of the test.
 *
 * By itself it does what a small right broker would do: routes, heartbeats, members, sends, pulls that wait, offsets.
 * A test says what goes wrong: answer the next requests of a code with something else, not at all, twice, or by hanging
 * up.  Everything that came is counted and the last fields of each request code are kept. */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include "base/buf.h"
#include "net/server.h"

enum { FAKE_CODES = 512, FAKE_TOPICS = 8, FAKE_QUEUES = 16, FAKE_RULES = 16, FAKE_OFFSETS = 64, FAKE_MEMBERS = 64,
	FAKE_LENT = 64 };

/* Where what belongs to a request code is kept, in count[] and the like: those of pop are large numbers. */
static inline int fake_slot(int code)
{
	return code >= 0 && code < FAKE_CODES ? code : code >= 200050 && code < 200060 ? FAKE_CODES - 20 + code - 200050 : 0;
}

enum fake_act {
	FAKE_ANSWER,        /* with this code and remark */
	FAKE_SILENT,        /* no answer ever */
	FAKE_HANG_UP,       /* close the connection */
	FAKE_TWICE,         /* the right answer, twice */
};

struct fake_queue {
	int64_t min, max;
	struct buf *record;         /* [i]: the message at offset min0 + i */
	int64_t first;              /* offset of record[0] */
	size_t nrecords;
	int64_t reset_to;           /* >= 0: the next pull is told code 21 and this */
	int64_t popped;             /* before this all has been popped */
};

struct fake_topic {
	char name[256];
	int nqueues, perm;
	struct fake_queue queue[FAKE_QUEUES];
};

struct fake_rule {
	int code, times;
	enum fake_act act;
	int answer;
	const char *remark;
};

struct fake_offset {
	char key[600];              /* group@topic@queue */
	int64_t off;
	int commits;
};

/* A message that a pop took. */
struct fake_lent {
	int topic, queue;
	int64_t off, pop_ms;        /* pop_ms: of the handle that counts */
	bool here;                  /* it is to come again */
};

struct fake_parked;

struct fake {
	uv_loop_t *loop;
	struct server *server;
	int port;
	bool stopped;
	char addr[200], broker[32];
	char *path;                 /* of its Unix socket; NULL = TCP */
	int64_t broker_id;
	struct fake *more[4];       /* further brokers in the routes that this one answers */
	int nmore;
	struct fake_topic topic[FAKE_TOPICS];
	int ntopics;
	bool auto_create;           /* TBW102 has a route, and sends make topics */
	bool no_hold;               /* pulls are answered at once */
	struct fake_rule rule[FAKE_RULES];
	int count[FAKE_CODES];
	struct buf last[FAKE_CODES]; /* fields of the last request: key=value\n ... */
	struct buf last_body[FAKE_CODES];
	struct fake_offset offset[FAKE_OFFSETS];
	int noffsets;
	char member[FAKE_MEMBERS][128]; /* of any group, besides those that sent heartbeats */
	int nmembers;
	char known[FAKE_MEMBERS][128];  /* client ids heard of, one per connection */
	struct conn *known_conn[FAKE_MEMBERS];
	int nknown;
	struct fake_parked *parked;
	int64_t log_off;
	int delay_ms[FAKE_CODES];   /* answers to this code come so much later */
	int nlater;                 /* answers that are to come */
	int answers, answer_code;   /* of clients to our requests */
	struct buf answer_body;
	char lock_of[FAKE_OFFSETS][400]; /* client@topic@queue of each lock */
	int nlocks;
	struct fake_lent lent[FAKE_LENT]; /* popped and not acked */
	int nlent;
	int64_t pop_ms;             /* of the last pop or change: each has another */
	bool pop_no_handles;        /* answers to pops lack what handles are made of */
	int pop_max;                /* of one answer; 0: what is asked for */
	int unknown_pulls;          /* pulls of members that sent no heartbeat on their connection */
};

struct fake *fake_start(uv_loop_t *loop, const char *broker);
/* On a Unix socket, as a broker with --embedded. */
struct fake *fake_start_unix(uv_loop_t *loop, const char *broker, const char *path);
/* Stop listening and hang up on everybody; the port stays the same for fake_again(). */
void fake_stop(struct fake *f);
void fake_again(struct fake *f);
void fake_free(struct fake *f);

struct fake_topic *fake_topic(struct fake *f, const char *name, int queues);
/* A message at the end of a queue; pulls that wait get it.  tag may be NULL. */
void fake_put(struct fake *f, const char *topic, int queue, const char *body, const char *tag);
/* Any record, for damaged ones. */
void fake_put_record(struct fake *f, const char *topic, int queue, const void *p, size_t n);
void fake_record(struct fake *f, struct buf *b, const char *topic, int queue, int64_t off, const char *body,
                 const char *tag, int sys_flag);

/* The next `times` requests of this code are treated so. */
void fake_script(struct fake *f, int code, int times, enum fake_act act, int answer, const char *remark);
/* A field of the last request of this code; "" if it had none. */
const char *fake_field(struct fake *f, int code, const char *name);
struct mq_str fake_body(struct fake *f, int code);
/* What is stored; -1 = nothing.  fake_commits(): so often. */
int64_t fake_offset(struct fake *f, const char *group, const char *topic, int queue);
/* Who has the lock of a queue: a client id, "" = nobody. */
const char *fake_lock(struct fake *f, const char *topic, int queue);
/* Another has it from here on, or nobody. */
void fake_set_lock(struct fake *f, const char *topic, int queue, const char *client);
void fake_set_offset(struct fake *f, const char *group, const char *topic, int queue, int64_t off);
int fake_commits(struct fake *f, const char *group, const char *topic, int queue);
/* A message that was popped comes again, under another handle: its time is over. */
void fake_pop_again(struct fake *f, const char *topic, int queue, int64_t off);
/* Offsets of what was popped and not acked, "0 1 2"; of those only that are to come again. */
const char *fake_lent(struct fake *f, bool here);
/* Tell all clients that the members of a group changed. */
void fake_notify(struct fake *f, const char *group);
/* Send any request to all clients.  What they answer is in answer_code and answer_body. */
void fake_request_all(struct fake *f, int code, const char *key, const char *value, const char *body);

/* Turn the loop until cond(arg), at most ms.  True if it came to be. */
bool fake_until(uv_loop_t *loop, bool (*cond)(void *arg), void *arg, int ms);
void fake_run(uv_loop_t *loop, int ms);

#endif
