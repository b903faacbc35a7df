/* controller.h: who may be master of each group of brokers: a pure state machine.  Events go in, answers and new events come out;
 * no network, no file, no clock, so that a simulator can run it and every controller comes to the same state.
 *
 * A request is judged against the state and makes at most one event (struct controller_verdict).  The event counts when
 * controller_happened() is called with it: after the other controllers have it too.  Between judging one request and its
 * event nothing else may be judged that makes an event: whoever drives this sees to that.
 *
 * Promises:
 *   1. An epoch of a group has at most one master: each election makes the next epoch.
 *   2. A master is elected from the living members of the sync set, except the first one of a group, and when `unclean` is asked for.
 *   3. The sync set changes by an election, or when the master of the newest epoch asks for it and knows the newest set; it
 *      always holds the master.
 *   4. An id is never given to two brokers: it goes with the check code with which it was first asked for, until it is cleaned.
 *   5. The same events in the same order make the same state; controller_load() of what controller_save() wrote too.
 *
 * Codes and rules: the peer's ReplicasInfoManager.  compat: equal candidates are told apart by their id, and offsets are
 * compared as a whole (the peer cuts their difference to 32 bits). */
#ifndef NAMESRV_CONTROLLER_H
#define NAMESRV_CONTROLLER_H

#include <base/buf.h>
#include <codec/body_controller.h>
#include <codec/request.h>

enum { CONTROLLER_NOBODY = -1, CONTROLLER_FIRST_ID = 1, CONTROLLER_TEXT_MAX = 65535 };

struct controller;

struct controller_replica {
	int64_t id;
	char *addr, *check;
};

struct controller_group {
	char *cluster, *name;
	struct controller_replica *v;   /* n of them, by id */
	size_t n;
	int64_t next_id;
	int64_t master;                 /* CONTROLLER_NOBODY */
	int32_t master_epoch;           /* 0 = there has never been one */
	struct body_sync_set sync;      /* with its epoch */
};

enum controller_kind { CONTROLLER_APPLY_ID = 1, CONTROLLER_ADDRESS, CONTROLLER_ELECT, CONTROLLER_ALTER, CONTROLLER_CLEAN };

/* What has happened.  Views are borrowed. */
struct controller_event {
	enum controller_kind kind;
	struct mq_str cluster, name;
	struct mq_str addr, check;      /* APPLY_ID; ADDRESS: addr */
	int64_t id;                     /* APPLY_ID, ADDRESS; ELECT: the master, or NOBODY */
	struct body_sync_set set;       /* ALTER: the new members; CLEAN: who is forgotten, none = all */
};

struct controller_verdict {
	int32_t code;                   /* RESP_* */
	char remark[256];
	bool happens;                   /* code 0 or not: there is an event that must count before the answer leaves */
	struct controller_event event;
};

/* What is known of a broker that lives. */
struct controller_life {
	int32_t epoch;
	int64_t max_off;
	int32_t priority;               /* lowest first */
};
/* NULL: it does not live. */
typedef const struct controller_life *controller_look(void *arg, struct mq_str cluster, struct mq_str name, int64_t id);
struct controller_eyes {
	controller_look *look;
	void *arg;
};

struct controller *controller_new(void);
void controller_free(struct controller *c);

/* Views of the state: good until the next event counts. */
const struct controller_group *controller_group(const struct controller *c, struct mq_str name);
const struct controller_group *controller_group_at(const struct controller *c, size_t i);   /* NULL behind the last */
const char *controller_addr(const struct controller_group *g, int64_t id);                  /* NULL: no such id */

/* The id that the next broker of the group should ask for (1012). */
int64_t controller_next_id(const struct controller *c, struct mq_str name);
/* Judge a request, whose views the event borrows: 1013, a broker takes an id for its check code; 1003, where that broker is now; 1001, the
 * master names its sync set; 1002, a master is wanted; 1011, forget brokers. */
void controller_apply_id(const struct controller *c, const struct apply_broker_id_header *h, struct controller_verdict *v);
void controller_register(const struct controller *c, const struct controller_register_header *h, struct controller_verdict *v);
void controller_alter(const struct controller *c, const struct alter_sync_set_header *h, const struct body_sync_set *set,
                      const struct controller_eyes *eyes, struct controller_verdict *v);
/* Without an event and code MASTER_STILL_EXIST: the master stays, nothing changes. */
void controller_elect(const struct controller *c, const struct elect_master_header *h, bool unclean,
                      const struct controller_eyes *eyes, struct controller_verdict *v);
void controller_clean(const struct controller *c, const struct clean_broker_header *h, const struct controller_eyes *eyes,
                      struct controller_verdict *v);
/* Its master is dead, and somebody lives. */
bool controller_headless(const struct controller_group *g, const struct controller_eyes *eyes);

/* The event counts from now on.  It is copied. */
void controller_happened(struct controller *c, const struct controller_event *e);

/* ---- controller_event.c: as bytes.  Big-endian; text: 16 bits length, bytes; a first byte 1 is the version. -------------- */

void controller_event_encode(const struct controller_event *e, struct buf *out);
int controller_event_decode(struct mq_str bytes, struct controller_event *e);     /* MQ_ECORRUPT; views into bytes */
void controller_save(const struct controller *c, struct buf *out);
/* Replaces the state; MQ_ECORRUPT leaves it as it was. */
int controller_load(struct controller *c, struct mq_str bytes);

/* ---- For controller_event.c ---- */
struct controller_group *controller_add_group(struct controller *c, struct mq_str cluster, struct mq_str name);
void controller_add_replica(struct controller_group *g, int64_t id, struct mq_str addr, struct mq_str check);
void controller_swap(struct controller *a, struct controller *b);

#endif
