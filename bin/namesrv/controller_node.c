/* controller_node.c: when something is judged: requests in their order, elections when a master is gone. */
#include "controller_private.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "controller"

enum {
	QUIET_MS = 3000,        /* after the start: brokers say every second that they live, and not all at once */
	WAITING_MAX = 10000,
};

/* ---- One after the other --------------------------------------------------------------------------------------------- */

static void ask_free(struct controller_ask *a)
{
	if (a->c)
		conn_unref(a->c);
	free(a->bytes);
	free(a);
}

static void go_on(struct controller_node *n);

static void on_happened(void *arg, int rc)
{
	struct controller_node *n = arg;
	struct controller_ask *a = n->judged;

	n->judged = NULL;
	clock_refresh();
	if (!n->stopping) {
		if (rc == 0)
			handle_controller_answer(n, a);
		else
			handle_controller_refuse(a, RESP_CONTROLLER_NOT_LEADER, "The controller is not in leader state");
	}
	ask_free(a);
	go_on(n);
}

static void go_on(struct controller_node *n)
{
	struct controller_ask *a;

	while (!n->judged && !n->stopping && (a = TAILQ_FIRST(&n->waiting))) {
		TAILQ_REMOVE(&n->waiting, a, all);
		n->waiting_n--;
		if (!controller_raft_leads(n->raft)) {
			handle_controller_refuse(a, RESP_CONTROLLER_NOT_LEADER, "The controller is not in leader state");
			ask_free(a);
			continue;
		}
		handle_controller_judge(n, a);
		if (!a->v.happens) {
			handle_controller_answer(n, a);
			ask_free(a);
			continue;
		}
		n->judged = a;
		controller_raft_propose(n->raft, &a->v.event, on_happened, n);
	}
}

/* The frame's bytes are gone when the turn comes: texts and body get a place of their own. */
static void keep(struct controller_ask *a, const struct header_desc *d, struct mq_str body)
{
	size_t total = body.n;
	char *at;

	for (uint32_t i = 0; i < d->n; i++)
		if (d->field[i].type == HEADER_str)
			total += ((struct mq_str *)(a->header + d->field[i].off))->n;
	a->bytes = at = mem_alloc(total + 1);
	for (uint32_t i = 0; i < d->n; i++) {
		struct mq_str *s = (struct mq_str *)(a->header + d->field[i].off);

		if (d->field[i].type != HEADER_str || !s->p)
			continue;
		memcpy(at, s->p, s->n);
		s->p = at;
		at += s->n;
	}
	if (body.n)
		memcpy(at, body.p, body.n);
	a->body = (struct mq_str){ at, body.n };
}

static void wait_in_line(struct controller_node *n, struct conn *c, const struct frame *f)
{
	const struct header_desc *d = request_find(f->code)->header;
	struct controller_ask *a = mem_alloc(sizeof(*a));
	struct mq_error e;

	assert(d->size <= sizeof(a->header));
	a->code = f->code;
	a->id = frame_id_of(f);
	conn_ref(c);
	a->c = c;
	if (header_decode(d, f, a->header, &e) < 0 || header_check_texts(d, a->header, &e) < 0) {
		handle_controller_refuse(a, RESP_SYSTEM_ERROR, e.text);
		ask_free(a);
		return;
	}
	keep(a, d, f->body);
	TAILQ_INSERT_TAIL(&n->waiting, a, all);
	n->waiting_n++;
	go_on(n);
}

/* ---- Elections ------------------------------------------------------------------------------------------------------- */

static bool is_ours_for(const struct controller_ask *a, const char *name)
{
	return !a->c && str_is(((const struct elect_master_header *)a->header)->brokerName, name);
}

static bool asked_for(const struct controller_node *n, const char *name)
{
	const struct controller_ask *a;

	if (n->judged && is_ours_for(n->judged, name))
		return true;
	TAILQ_FOREACH(a, &n->waiting, all)
		if (is_ours_for(a, name))
			return true;
	return false;
}

static void want_election(struct controller_node *n, const struct controller_group *g)
{
	struct controller_ask *a = mem_alloc(sizeof(*a));
	struct elect_master_header *h = (struct elect_master_header *)a->header;

	a->code = REQ_CONTROLLER_ELECT_MASTER;
	h->clusterName = str_of(g->cluster);
	h->brokerName = str_of(g->name);
	h->brokerId = CONTROLLER_NOBODY;
	keep(a, &elect_master_header_desc, MQ_STR(""));
	TAILQ_INSERT_TAIL(&n->waiting, a, all);
	n->waiting_n++;
}

static void elect_where_needed(struct controller_node *n)
{
	const struct controller_group *g;

	if (n->stopping || !controller_raft_leads(n->raft) || clock_mono_ms() - n->start_ms < QUIET_MS)
		return;
	for (size_t i = 0; (g = controller_group_at(n->state, i)); i++)
		if (controller_headless(g, &n->eyes) && !asked_for(n, g->name))
			want_election(n, g);
	go_on(n);
}

static void on_scan(uv_timer_t *t)
{
	struct controller_node *n = t->data;

	clock_refresh();
	controller_lives_scan(n->lives, clock_mono_ms());
	elect_where_needed(n);
}

static void on_leads(void *arg)
{
	elect_where_needed(arg);
}

/* ---- Connections ----------------------------------------------------------------------------------------------------- */

static int on_request(struct conn *c, struct frame *f)
{
	struct controller_node *n = conn_public(c)->owner;
	bool led = handle_controller_led(f->code);
	struct frame_out o;
	char remark[64];

	if (handle_controller_here(n, c, f))
		return 0;
	if (led && n->waiting_n < WAITING_MAX) {
		wait_in_line(n, c, f);
		return 0;
	}
	snprintf(remark, sizeof(remark), " request type %d not supported", f->code);
	frame_answer(&o, conn_out(c), frame_id_of(f), led ? RESP_SYSTEM_BUSY : RESP_REQUEST_CODE_NOT_SUPPORTED,
	             led ? MQ_STR("too many requests wait for the controller") : str_of(remark));
	frame_end(&o);
	return 0;
}

static void on_closed(struct conn *c, int why)
{
	struct controller_node *n = conn_public(c)->owner;

	if (!n->stopping && controller_lives_lost(n->lives, c))
		elect_where_needed(n);
}

static const struct conn_ops node_ops = { .request = on_request, .closed = on_closed };

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static void part_closed(void *arg)
{
	struct controller_node *n = arg;
	void (*stopped)(void *) = n->stopped;
	void *stopped_arg = n->stopped_arg;
	struct controller_ask *a;

	if (--n->closing)
		return;
	while ((a = TAILQ_FIRST(&n->waiting))) {
		TAILQ_REMOVE(&n->waiting, a, all);
		ask_free(a);
	}
	controller_lives_free(n->lives);
	controller_free(n->state);
	free(n);
	if (stopped)
		stopped(stopped_arg);
}

static void on_scan_closed(uv_handle_t *h)
{
	part_closed(h->data);
}

void controller_node_stop(struct controller_node *n, int grace_ms, void (*stopped)(void *arg), void *arg)
{
	n->stopping = true;
	n->stopped = stopped;
	n->stopped_arg = arg;
	n->closing = 1 + (n->server != NULL) + (n->raft != NULL);
	if (n->server)
		server_stop(n->server, grace_ms, part_closed, n);
	if (n->raft)
		controller_raft_stop(n->raft, part_closed, n);
	uv_close((uv_handle_t *)&n->scan, on_scan_closed);
}

struct controller_node *controller_node_start(uv_loop_t *loop, const struct controller_node_opt *opt, struct mq_error *err)
{
	struct controller_node *n = mem_alloc(sizeof(*n));
	struct controller_raft_opt raft = { .leads = on_leads, .arg = n };
	struct server_opt server = { .bind = opt->conf->bindAddress, .idle_ms = opt->conf->serverChannelMaxIdleTimeSeconds * 1000 };
	const struct controller_peer *self;
	uint64_t every = (uint64_t)opt->conf->scanNotActiveBrokerInterval;
	int rc;

	n->loop = loop;
	n->opt = *opt;
	n->conf = opt->conf;
	TAILQ_INIT(&n->waiting);
	n->state = controller_new();
	n->lives = controller_lives_new();
	n->eyes = (struct controller_eyes){ controller_lives_look, n->lives };
	clock_refresh();
	n->start_ms = clock_mono_ms();
	uv_timer_init(loop, &n->scan);
	n->scan.data = n;
	rc = controller_peers_parse(n->conf->controllerDLegerPeers, n->conf->controllerDLegerSelfId, n->conf->controllerRaftPortOffset,
				    &n->peers, err);
	if (rc == 0) {
		self = &n->peers.v[n->peers.self];
		server.port = self->port;
		raft.dir = n->conf->controllerStorePath;
		raft.peers = &n->peers;
		n->server = server_listen(loop, &server, &node_ops, n, err);
		n->raft = n->server ? controller_raft_start(loop, &raft, n->state, err) : NULL;
		if (n->raft) {
			uv_timer_start(&n->scan, on_scan, every, every);
			log_info("controller id=%s port=%d raft_port=%d of=%zu dir=%s", self->id, self->port, self->raft_port, n->peers.n,
				 raft.dir);
			return n;
		}
	}
	controller_node_stop(n, 0, NULL, NULL);
	return NULL;
}

void controller_node_dump(const struct controller_node *n)
{
	const struct controller_group *g;

	log_info("controller leads=%d", controller_raft_leads(n->raft));
	for (size_t i = 0; (g = controller_group_at(n->state, i)); i++)
		log_info("controller group=%s master=%lld epoch=%d replicas=%zu in_sync=%zu", g->name, (long long)g->master,
			 g->master_epoch, g->n, g->sync.n);
}
