/* controller_raft.c: our state machine on libraft.  What events mean is known to controller.c. */
#include "controller_raft.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <net/server.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <raft.h>
#include <raft/uv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "controller"

enum {
	WORD = 8,                       /* entries are whole words */
	SEGMENT_BYTES = 256 * 1024,     /* of the log's files; libraft makes some ahead */
	SNAPSHOT_EVERY = 1024, SNAPSHOT_TRAIL = 128,
	ELECTION_MS = 1000, HEARTBEAT_MS = 100,
	WATCH_MS = 50,                  /* how soon a change of leaders is noticed */
	ADDRESS_MAX = 64,
};

struct controller_raft {
	uv_loop_t *loop;
	struct controller_raft_opt opt;
	struct controller *state;
	struct raft_uv_transport tcp;
	struct raft_io io;
	struct raft_fsm fsm;
	struct raft raft;
	uv_timer_t watch;
	bool ready, asked;              /* leads and knows all; a barrier is on its way */
	struct raft_barrier barrier;
	struct raft_apply apply;
	void (*done)(void *arg, int rc);
	void *done_arg;
	void (*stopped)(void *arg);
	void *stopped_arg;
	int closing;
};

/* ---- Peers ----------------------------------------------------------------------------------------------------------- */

int controller_peers_parse(const char *text, const char *self, int offset, struct controller_peers *p, struct mq_error *err)
{
	*p = (struct controller_peers){ .self = CONTROLLER_PEERS_MAX };
	while (*text) {
		size_t n = strcspn(text, ";"), id_n;
		struct controller_peer *peer = &p->v[p->n];
		char one[400], *dash;
		int rc;

		snprintf(one, sizeof(one), "%.*s", (int)n, text);
		text += n + (text[n] == ';');
		if (!*one)
			continue;
		dash = strchr(one, '-');
		id_n = dash ? (size_t)(dash - one) : 0;
		if (!dash || id_n == 0 || id_n >= sizeof(peer->id))
			return err_set(err, MQ_EINVAL, "controllerDLegerPeers: '%s' is not ID-HOST:PORT", one);
		if (p->n == CONTROLLER_PEERS_MAX)
			return err_set(err, MQ_EINVAL, "controllerDLegerPeers: more than %d", CONTROLLER_PEERS_MAX);
		memcpy(peer->id, one, id_n);
		rc = addr_split(dash + 1, peer->host, &peer->port, err);
		if (rc < 0)
			return err_wrap(err, "controllerDLegerPeers");
		peer->raft_port = peer->port + offset;
		if (peer->raft_port < 1 || peer->raft_port > 65535)
			return err_set(err, MQ_EINVAL, "controllerRaftPortOffset: %d + %d is no port", peer->port, offset);
		if (strcmp(peer->id, self) == 0)
			p->self = p->n;
		p->n++;
	}
	if (p->self == CONTROLLER_PEERS_MAX)
		return err_set(err, MQ_EINVAL, "controllerDLegerSelfId '%s' is not among controllerDLegerPeers", self);
	return 0;
}

/* libraft takes numbers only. */
static int raft_address(const struct controller_peer *p, char out[ADDRESS_MAX], struct mq_error *err)
{
	struct addrinfo want = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char host[INET_ADDRSTRLEN];
	int rc = getaddrinfo(p->host, NULL, &want, &found);

	if (rc)
		return err_set(err, MQ_EINVAL, "controllerDLegerPeers: '%s': %s", p->host, gai_strerror(rc));
	inet_ntop(AF_INET, &((struct sockaddr_in *)found->ai_addr)->sin_addr, host, sizeof(host));
	freeaddrinfo(found);
	snprintf(out, ADDRESS_MAX, "%s:%d", host, p->raft_port);
	return 0;
}

static raft_id raft_id_of(const struct controller_peer *p)
{
	return raft_digest(p->id, 0);
}

/* ---- The state machine as libraft sees it ---------------------------------------------------------------------------- */

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
	struct controller_raft *r = fsm->data;
	struct controller_event e;

	*result = NULL;
	if (controller_event_decode((struct mq_str){ buf->base, buf->len }, &e) < 0)
		log_error("an event that cannot be read is left out bytes=%zu", buf->len);
	else
		controller_happened(r->state, &e);
	return 0;
}

/* b as memory of libraft, in whole words. */
static int give(struct buf *b, struct raft_buffer *out)
{
	out->len = (b->n + WORD - 1) / WORD * WORD;
	out->base = raft_calloc(1, out->len);
	if (out->base)
		memcpy(out->base, b->p, b->n);
	buf_free(b);
	return out->base ? 0 : RAFT_NOMEM;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n)
{
	struct controller_raft *r = fsm->data;
	struct buf all = { 0 };

	*n = 1;
	*bufs = raft_malloc(sizeof(**bufs));
	if (!*bufs)
		return RAFT_NOMEM;
	controller_save(r->state, &all);
	return give(&all, *bufs);
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
	struct controller_raft *r = fsm->data;

	if (controller_load(r->state, (struct mq_str){ buf->base, buf->len }) < 0) {
		log_error("the saved state of the controller cannot be read dir=%s", r->opt.dir);
		return RAFT_CORRUPT;
	}
	raft_free(buf->base);
	return 0;
}

/* ---- Leading --------------------------------------------------------------------------------------------------------- */

static void on_barrier(struct raft_barrier *b, int status)
{
	struct controller_raft *r = b->data;

	r->asked = false;
	if (status || raft_state(&r->raft) != RAFT_LEADER)
		return;
	r->ready = true;
	log_info("this controller leads id=%s", r->opt.peers->v[r->opt.peers->self].id);
	r->opt.leads(r->opt.arg);
}

/* A new leader may have entries of former ones that it has not applied yet: behind a barrier it has. */
static void on_watch(uv_timer_t *t)
{
	struct controller_raft *r = t->data;

	if (raft_state(&r->raft) != RAFT_LEADER) {
		if (r->ready)
			log_info("this controller does not lead any more id=%s", r->opt.peers->v[r->opt.peers->self].id);
		r->ready = false;
		return;
	}
	if (r->ready || r->asked)
		return;
	r->barrier.data = r;
	r->asked = raft_barrier(&r->raft, &r->barrier, on_barrier) == 0;
}

bool controller_raft_leads(const struct controller_raft *r)
{
	return r->ready && raft_state((struct raft *)&r->raft) == RAFT_LEADER;
}

const struct controller_peer *controller_raft_leader(struct controller_raft *r)
{
	const char *address;
	raft_id id;

	raft_leader(&r->raft, &id, &address);
	for (size_t i = 0; id && i < r->opt.peers->n; i++)
		if (raft_id_of(&r->opt.peers->v[i]) == id)
			return &r->opt.peers->v[i];
	return NULL;
}

static void on_applied(struct raft_apply *req, int status, void *result)
{
	struct controller_raft *r = req->data;
	void (*done)(void *arg, int rc) = r->done;

	r->done = NULL;
	if (status)
		log_warn("an event was not taken reason=\"%s\"", raft_strerror(status));
	done(r->done_arg, status ? MQ_ECLOSED : 0);
}

void controller_raft_propose(struct controller_raft *r, const struct controller_event *e, void (*done)(void *arg, int rc), void *arg)
{
	struct buf bytes = { 0 };
	struct raft_buffer b;
	int rc;

	controller_event_encode(e, &bytes);
	r->done = done;
	r->done_arg = arg;
	r->apply.data = r;
	rc = give(&bytes, &b);
	if (rc == 0) {
		rc = raft_apply(&r->raft, &r->apply, &b, 1, on_applied);
		if (rc)
			raft_free(b.base);
	}
	if (rc) {
		log_warn("an event was not taken reason=\"%s\"", raft_strerror(rc));
		r->done = NULL;
		done(arg, MQ_ECLOSED);
	}
}

/* ---- Beginning and end ----------------------------------------------------------------------------------------------- */

static int bootstrap(struct controller_raft *r, struct mq_error *err)
{
	struct raft_configuration all;
	char address[ADDRESS_MAX];
	int rc = 0;

	raft_configuration_init(&all);
	for (size_t i = 0; rc == 0 && i < r->opt.peers->n; i++) {
		rc = raft_address(&r->opt.peers->v[i], address, err);
		if (rc < 0)
			break;
		rc = raft_configuration_add(&all, raft_id_of(&r->opt.peers->v[i]), address, RAFT_VOTER);
		if (rc)
			rc = err_set(err, MQ_EINVAL, "controllerDLegerPeers: '%s': %s", r->opt.peers->v[i].id, raft_strerror(rc));
	}
	if (rc == 0) {
		rc = raft_bootstrap(&r->raft, &all);
		/* It has been before. */
		rc = rc == RAFT_CANTBOOTSTRAP ? 0 : rc;
		if (rc)
			rc = err_set(err, MQ_EINVAL, "begin the controller's log in '%s': %s", r->opt.dir, raft_errmsg(&r->raft));
	}
	raft_configuration_close(&all);
	return rc;
}

static void free_all(struct controller_raft *r)
{
	void (*stopped)(void *arg) = r->stopped;
	void *arg = r->stopped_arg;

	if (--r->closing)
		return;
	free(r);
	if (stopped)
		stopped(arg);
}

static void on_raft_closed(struct raft *raft)
{
	struct controller_raft *r = raft->data;

	raft_uv_close(&r->io);
	raft_uv_tcp_close(&r->tcp);
	free_all(r);
}

static void on_watch_closed(uv_handle_t *h)
{
	free_all(h->data);
}

void controller_raft_stop(struct controller_raft *r, void (*stopped)(void *arg), void *arg)
{
	r->stopped = stopped;
	r->stopped_arg = arg;
	r->closing = 2;
	r->ready = false;
	uv_close((uv_handle_t *)&r->watch, on_watch_closed);
	raft_close(&r->raft, on_raft_closed);
}

struct controller_raft *controller_raft_start(uv_loop_t *loop, const struct controller_raft_opt *opt, struct controller *state,
                                              struct mq_error *err)
{
	struct controller_raft *r = mem_alloc(sizeof(*r));
	char address[ADDRESS_MAX];
	int rc;

	r->loop = loop;
	r->opt = *opt;
	r->state = state;
	/* libuv's streams, which libraft uses, do not keep it away. */
	signal(SIGPIPE, SIG_IGN);
	rc = raft_address(&opt->peers->v[opt->peers->self], address, err);
	if (rc == 0) {
		rc = sys_mkdir_all(opt->dir);
		rc = rc == -EEXIST ? 0 : rc;
		if (rc < 0)
			err_sys(err, rc, "make '%s'", opt->dir);
	}
	if (rc < 0)
		goto free_r;
	r->tcp.data = r;
	rc = raft_uv_tcp_init(&r->tcp, loop);
	if (rc) {
		err_set(err, MQ_EINVAL, "controller: %s", raft_strerror(rc));
		goto free_r;
	}
	rc = raft_uv_init(&r->io, loop, opt->dir, &r->tcp);
	if (rc) {
		err_set(err, MQ_EINVAL, "controllerStorePath '%s': %s", opt->dir, raft_strerror(rc));
		goto close_tcp;
	}
	raft_uv_set_segment_size(&r->io, SEGMENT_BYTES);
	r->fsm = (struct raft_fsm){ .version = 1, .data = r, .apply = fsm_apply, .snapshot = fsm_snapshot, .restore = fsm_restore };
	rc = raft_init(&r->raft, &r->io, &r->fsm, raft_id_of(&opt->peers->v[opt->peers->self]), address);
	if (rc) {
		err_set(err, MQ_EINVAL, "controllerStorePath '%s': %s", opt->dir, raft_errmsg(&r->raft));
		goto close_io;
	}
	r->raft.data = r;
	raft_set_snapshot_threshold(&r->raft, SNAPSHOT_EVERY);
	raft_set_snapshot_trailing(&r->raft, SNAPSHOT_TRAIL);
	raft_set_election_timeout(&r->raft, ELECTION_MS);
	raft_set_heartbeat_timeout(&r->raft, HEARTBEAT_MS);
	raft_set_pre_vote(&r->raft, true);
	uv_timer_init(loop, &r->watch);
	r->watch.data = r;
	rc = bootstrap(r, err);
	if (rc == 0) {
		rc = raft_start(&r->raft);
		if (rc)
			rc = err_set(err, MQ_EINVAL, "start the controller in '%s' on %s: %s", opt->dir, address, raft_errmsg(&r->raft));
	}
	if (rc < 0) {
		controller_raft_stop(r, NULL, NULL);
		return NULL;
	}
	uv_timer_start(&r->watch, on_watch, 0, WATCH_MS);
	return r;

close_io:
	raft_uv_close(&r->io);
close_tcp:
	raft_uv_tcp_close(&r->tcp);
free_r:
	free(r);
	return NULL;
}
