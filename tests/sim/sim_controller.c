/* sim_controller.c: three controllers: the real rules (controller.c), events in bytes, who lives; Raft as a log that is right by
 * construction: what was agreed on is agreed on, an old leader may believe for a while that it leads, and an answer may get lost. */
#include "sim.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

static bool majority(int i)
{
	int n = 1;

	for (int k = 0; k < CONTROLLERS; k++)
		n += k != i && reaches(BROKERS + i, BROKERS + k) && reaches(BROKERS + k, BROKERS + i);
	return w->c[i].up && n >= 2;
}

static void apply(struct controller_sim *c)
{
	struct controller_event e;

	while (c->applied < w->raft_n) {
		if (controller_event_decode(buf_view(&w->raft[c->applied++]), &e) < 0)
			wrong("an event cannot be read");
		controller_happened(c->state, &e);
	}
}

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static void ask_free(struct ask *a)
{
	buf_free(&a->event);
	free(a);
}

static void deliver(struct event *e)
{
	broker_answer(e->node, e->p);
}

static void answer(int c, struct ask *a, int32_t code)
{
	struct role_answer *r = mem_alloc(sizeof(*r));
	const struct controller_group *g = controller_group(w->c[c].state, MQ_STR("a"));

	*r = (struct role_answer){ .seq = a->act.seq, .code = code, .master.id = -1 };
	if (a->act.code == REQ_CONTROLLER_GET_NEXT_BROKER_ID)
		r->next_id = controller_next_id(w->c[c].state, MQ_STR("a"));
	if (g && (a->act.code == REQ_CONTROLLER_REGISTER_BROKER || a->act.code == REQ_CONTROLLER_ELECT_MASTER ||
		  a->act.code == REQ_CONTROLLER_GET_REPLICA_INFO || a->act.code == REQ_CONTROLLER_ALTER_SYNC_STATE_SET)) {
		bool lives = g->master >= 0 && controller_lives_look(w->c[c].lives, MQ_STR("C"), MQ_STR("a"), g->master);

		r->set = g->sync;
		r->master.epoch = g->master_epoch;
		if (g->master >= 0 && (lives || a->act.code != REQ_CONTROLLER_REGISTER_BROKER)) {
			r->master.id = g->master;
			snprintf(r->master.addr, sizeof(r->master.addr), "%s", controller_addr(g, g->master));
		}
	}
	if (!reaches(BROKERS + c, a->from) || life_of(a->from) != a->from_life || roll(1000) < (uint32_t)w->loss) {
		free(r);
		return;
	}
	at(1 + roll(5 + (uint32_t)w->slow_ms), deliver, a->from, 0, 0, r);
}

static void notice(struct event *e)
{
	struct role_answer *r = e->p;

	broker_notified(e->node, &r->master, &r->set);
}

static void notify(int c)
{
	const struct controller_group *g = controller_group(w->c[c].state, MQ_STR("a"));

	for (int i = 0; i < BROKERS; i++) {
		struct role_answer *r;

		if (!reaches(BROKERS + c, i) || roll(1000) < (uint32_t)w->loss)
			continue;
		r = mem_alloc(sizeof(*r));
		r->master = (struct role_master){ .id = g->master, .epoch = g->master_epoch };
		if (g->master >= 0)
			snprintf(r->master.addr, sizeof(r->master.addr), "%s", controller_addr(g, g->master));
		r->set = g->sync;
		at(1 + roll(5 + (uint32_t)w->slow_ms), notice, i, 0, 0, r);
	}
}

/* ---- One after the other --------------------------------------------------------------------------------------------- */

static void judge(struct controller_sim *c, struct ask *a)
{
	struct mq_str cluster = MQ_STR("C"), name = MQ_STR("a");

	a->v = (struct controller_verdict){ 0 };
	switch (a->act.code) {
	case REQ_CONTROLLER_APPLY_BROKER_ID:
		snprintf(a->check, sizeof(a->check), "%s", a->act.check);
		controller_apply_id(c->state, &(struct apply_broker_id_header){ .clusterName = cluster, .brokerName = name,
				    .appliedBrokerId = a->act.id, .registerCheckCode = str_of(a->check) }, &a->v);
		break;
	case REQ_CONTROLLER_REGISTER_BROKER:
		snprintf(a->addr, sizeof(a->addr), "b%d", a->from);
		controller_register(c->state, &(struct controller_register_header){ .clusterName = cluster, .brokerName = name,
				    .brokerId = a->act.id, .brokerAddress = str_of(a->addr) }, &a->v);
		break;
	case REQ_CONTROLLER_ELECT_MASTER:
		controller_elect(c->state, &(struct elect_master_header){ .clusterName = cluster, .brokerName = name,
				 .brokerId = a->ours ? CONTROLLER_NOBODY : a->act.id }, false, &c->eyes, &a->v);
		break;
	case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
		controller_alter(c->state, &(struct alter_sync_set_header){ .brokerName = name, .masterBrokerId = a->act.id,
				 .masterEpoch = a->act.m.epoch }, &a->act.set, &c->eyes, &a->v);
		break;
	default:
		break;
	}
}

static void go_on(int i);

static void agreed(struct event *e)
{
	struct controller_sim *c = &w->c[e->a];
	struct ask *a = c->judged;
	bool lost = roll(20) == 0;

	c->judged = NULL;
	if (e->b != w->term || w->leader != e->a || !majority(e->a)) {
		answer(e->a, a, RESP_CONTROLLER_NOT_LEADER);
	} else if (w->raft_n < sizeof(w->raft) / sizeof(w->raft[0])) {
		enum controller_kind kind = a->v.event.kind;

		w->raft[w->raft_n++] = a->event;
		a->event = (struct buf){ 0 };
		apply(c);
		if (kind == CONTROLLER_ELECT) {
			const struct controller_group *g = controller_group(c->state, MQ_STR("a"));

			w->elections++;
			w->newest = g->master_epoch;
			say("controller %d: master is %lld, epoch %d", e->a, (long long)g->master, g->master_epoch);
			notify(e->a);
		}
		if (!lost)
			answer(e->a, a, a->v.code);
	}
	ask_free(a);
	go_on(e->a);
}

static void go_on(int i)
{
	struct controller_sim *c = &w->c[i];
	struct ask *a;

	while (!c->judged && (a = STAILQ_FIRST(&c->waiting))) {
		STAILQ_REMOVE_HEAD(&c->waiting, q);
		if (!c->leads) {
			answer(i, a, RESP_CONTROLLER_NOT_LEADER);
			ask_free(a);
			continue;
		}
		judge(c, a);
		if (!a->v.happens) {
			answer(i, a, a->v.code);
			ask_free(a);
			continue;
		}
		controller_event_encode(&a->v.event, &a->event);
		c->judged = a;
		at(2 + roll(30 + (uint32_t)w->slow_ms), agreed, BROKERS + i, i, c->leads_term, NULL);
	}
}

/* ---- Requests -------------------------------------------------------------------------------------------------------- */

static void arrives(struct event *e)
{
	struct ask *a = e->p;
	int i = e->node - BROKERS;
	struct controller_sim *c = &w->c[i];

	e->p = NULL;
	if (a->act.code == REQ_CONTROLLER_GET_METADATA_INFO) {
		struct role_answer *r = mem_alloc(sizeof(*r));
		int leader = c->leads ? i : w->leader;

		*r = (struct role_answer){ .seq = a->act.seq, .master.id = -1 };
		if (leader >= 0 && (leader == i || reaches(BROKERS + leader, BROKERS + i)))
			snprintf(r->leader, sizeof(r->leader), "c%d", leader);
		if (reaches(BROKERS + i, a->from) && life_of(a->from) == a->from_life)
			at(1 + roll(5 + (uint32_t)w->slow_ms), deliver, a->from, 0, 0, r);
		else
			free(r);
		ask_free(a);
		return;
	}
	STAILQ_INSERT_TAIL(&c->waiting, a, q);
	go_on(i);
}

void controller_request(int from, const struct role_act *act)
{
	int to = act->to[0] == 'c' ? act->to[1] - '0' : -1;
	struct ask *a;

	if (to < 0 || !reaches(from, BROKERS + to) || roll(1000) < (uint32_t)w->loss)
		return;
	a = mem_alloc(sizeof(*a));
	a->from = from;
	a->from_life = life_of(from);
	a->act = *act;
	at(1 + roll(5 + (uint32_t)w->slow_ms), arrives, BROKERS + to, 0, 0, a);
}

struct beat {
	struct broker_heartbeat_header h;
	int from;
};

static void beats(struct event *e)
{
	struct beat *b = e->p;

	controller_lives_beat(w->c[e->node - BROKERS].lives, &b->h, &w->b[b->from], w->now);
}

void controller_beat(int from)
{
	struct broker_sim *s = &w->b[from];

	for (int i = 0; i < CONTROLLERS; i++) {
		struct beat *b;

		if (!reaches(from, BROKERS + i))
			continue;
		b = mem_alloc(sizeof(*b));
		b->from = from;
		b->h = (struct broker_heartbeat_header){ .clusterName = MQ_STR("C"), .brokerName = MQ_STR("a"), .brokerId = s->role.id,
							 .epoch = epoch_last(&s->epochs), .maxOffset = s->end };
		HEADER_SET(broker_heartbeat_header, &b->h, epoch);
		HEADER_SET(broker_heartbeat_header, &b->h, maxOffset);
		at(1 + roll(5 + (uint32_t)w->slow_ms), beats, BROKERS + i, 0, 0, b);
	}
}

void controller_broker_gone(int broker)
{
	for (int i = 0; i < CONTROLLERS; i++)
		if (w->c[i].up && !w->cut[broker][BROKERS + i])
			controller_lives_lost(w->c[i].lives, &w->b[broker]);
}

/* ---- Raft ------------------------------------------------------------------------------------------------------------ */

static void take_over(int i)
{
	struct controller_sim *c = &w->c[i];

	w->leader = i;
	w->term++;
	apply(c);
	c->leads = true;
	c->leads_term = w->term;
	c->leads_since = w->now;
	say("controller %d leads, term %d", i, w->term);
}

void raft_tick(void)
{
	if (w->leader >= 0 && !majority(w->leader)) {
		w->leader = -1;
		w->leader_lost_ms = w->now + 300 + roll(1500);
	}
	if (w->leader < 0 && w->now >= w->leader_lost_ms) {
		int i = (int)roll(CONTROLLERS);

		if (majority(i))
			take_over(i);
	}
	for (int i = 0; i < CONTROLLERS; i++) {
		struct controller_sim *c = &w->c[i];
		const struct controller_group *g;
		struct ask *a;

		if (!c->up)
			continue;
		/* Who led hears of it sooner or later. */
		if (c->leads && w->leader != i && roll(10) == 0)
			c->leads = false;
		if (!c->leads && w->leader >= 0 && reaches(BROKERS + w->leader, BROKERS + i))
			apply(c);
		controller_lives_scan(c->lives, w->now);
		if (!c->leads || w->now - c->leads_since < 3000 || !(g = controller_group(c->state, MQ_STR("a"))) ||
		    !controller_headless(g, &c->eyes) || c->judged || !STAILQ_EMPTY(&c->waiting))
			continue;
		a = mem_alloc(sizeof(*a));
		a->ours = true;
		a->act.code = REQ_CONTROLLER_ELECT_MASTER;
		a->from_life = -1;
		STAILQ_INSERT_TAIL(&c->waiting, a, q);
		go_on(i);
	}
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

void controller_start(int i)
{
	struct controller_sim *c = &w->c[i];

	if (c->up)
		return;
	*c = (struct controller_sim){ .up = true, .life = c->life + 1 };
	STAILQ_INIT(&c->waiting);
	c->state = controller_new();
	c->lives = controller_lives_new();
	c->eyes = (struct controller_eyes){ controller_lives_look, c->lives };
}

void controller_crash(int i)
{
	struct controller_sim *c = &w->c[i];
	struct ask *a;

	if (!c->up)
		return;
	while ((a = STAILQ_FIRST(&c->waiting))) {
		STAILQ_REMOVE_HEAD(&c->waiting, q);
		ask_free(a);
	}
	if (c->judged)
		ask_free(c->judged);
	controller_free(c->state);
	controller_lives_free(c->lives);
	c->up = c->leads = false;
	c->judged = NULL;
	c->life++;
}

void controllers_begin(void)
{
	w->leader = -1;
	for (int i = 0; i < CONTROLLERS; i++)
		controller_start(i);
}

void controllers_end(void)
{
	for (int i = 0; i < CONTROLLERS; i++)
		controller_crash(i);
	for (size_t i = 0; i < w->raft_n; i++)
		buf_free(&w->raft[i]);
}
