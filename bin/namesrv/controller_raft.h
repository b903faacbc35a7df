/* controller_raft.h: carries events to all controllers in one order, with libraft on our loop.
 *
 * One controller alone leads as soon as it has started; of three, two must be there.  Events, votes and terms are on the disk before
 * they count (directory `dir`, libraft's own format).  The address of the others' Raft ports is not that of their requests. */
#ifndef NAMESRV_CONTROLLER_RAFT_H
#define NAMESRV_CONTROLLER_RAFT_H

#include "controller.h"
#include <uv.h>

enum { CONTROLLER_PEERS_MAX = 9 };

struct controller_peer {
	char id[64];
	char host[256];
	int port, raft_port;            /* of requests; of Raft */
};
struct controller_peers {
	struct controller_peer v[CONTROLLER_PEERS_MAX];
	size_t n, self;
};
/* "n0-host:port;n1-host:port;...", raft ports being `offset` above; self must be one of the ids. */
int controller_peers_parse(const char *text, const char *self, int offset, struct controller_peers *p, struct mq_error *err);

struct controller_raft;

struct controller_raft_opt {
	const char *dir;                        /* made if missing */
	const struct controller_peers *peers;   /* borrowed until the end */
	void (*leads)(void *arg);               /* this one leads from now on, and knows all that has happened */
	void *arg;
};
/* `state` changes only from here on by what is proposed.  NULL with err. */
struct controller_raft *controller_raft_start(uv_loop_t *loop, const struct controller_raft_opt *opt, struct controller *state,
                                              struct mq_error *err);
bool controller_raft_leads(const struct controller_raft *r);
/* The leader as far as known, or NULL. */
const struct controller_peer *controller_raft_leader(struct controller_raft *r);
/* One at a time.  done(arg, 0): it has happened, `state` says so; else a negative code, and whether it will happen is not known. */
void controller_raft_propose(struct controller_raft *r, const struct controller_event *e, void (*done)(void *arg, int rc), void *arg);
void controller_raft_stop(struct controller_raft *r, void (*stopped)(void *arg), void *arg);

#endif
