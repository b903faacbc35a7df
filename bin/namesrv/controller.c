/* controller.c: the rules of elections.  Bytes are in controller_event.c, time and network in controller_node.c. */
#include "controller.h"
#include <base/mem.h>
#include <base/str.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct controller {
	struct controller_group **v;    /* by name */
	size_t n;
};

struct controller *controller_new(void)
{
	return mem_alloc(sizeof(struct controller));
}

static void free_group(struct controller_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->v[i].addr);
		free(g->v[i].check);
	}
	free(g->v);
	free(g->cluster);
	free(g->name);
	free(g);
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		free_group(c->v[i]);
	free(c->v);
	free(c);
}

void controller_swap(struct controller *a, struct controller *b)
{
	struct controller t = *a;

	*a = *b;
	*b = t;
}

/* ---- Look-up --------------------------------------------------------------------------------------------------------- */

/* Where the name stands, or would stand. */
static size_t place_of(const struct controller *c, struct mq_str name, bool *found)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (str_cmp(str_of(c->v[mid]->name), name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*found = lo < c->n && str_eq(str_of(c->v[lo]->name), name);
	return lo;
}

static struct controller_group *group_of(const struct controller *c, struct mq_str name)
{
	bool found;
	size_t i = place_of(c, name, &found);

	return found ? c->v[i] : NULL;
}

const struct controller_group *controller_group(const struct controller *c, struct mq_str name)
{
	return group_of(c, name);
}

const struct controller_group *controller_group_at(const struct controller *c, size_t i)
{
	return i < c->n ? c->v[i] : NULL;
}

static struct controller_replica *replica_of(const struct controller_group *g, int64_t id)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].id == id)
			return &g->v[i];
	return NULL;
}

const char *controller_addr(const struct controller_group *g, int64_t id)
{
	const struct controller_replica *r = replica_of(g, id);

	return r ? r->addr : NULL;
}

static const struct controller_life *look(const struct controller_eyes *eyes, const struct controller_group *g, int64_t id)
{
	return eyes->look(eyes->arg, str_of(g->cluster), str_of(g->name), id);
}

/* ---- Judging --------------------------------------------------------------------------------------------------------- */

static void MQ_PRINTF(3, 4) refuse(struct controller_verdict *v, int32_t code, const char *fmt, ...)
{
	va_list ap;

	v->code = code;
	va_start(ap, fmt);
	vsnprintf(v->remark, sizeof(v->remark), fmt, ap);
	va_end(ap);
}

static struct controller_event *happen(struct controller_verdict *v, enum controller_kind kind, struct mq_str name)
{
	v->happens = true;
	v->event = (struct controller_event){ .kind = kind, .name = name };
	return &v->event;
}

int64_t controller_next_id(const struct controller *c, struct mq_str name)
{
	const struct controller_group *g = group_of(c, name);

	return g ? g->next_id : CONTROLLER_FIRST_ID;
}

/* Texts go into events with 16 bits of length.  That they are texts was looked at when the request was decoded. */
static bool fits(struct mq_str s)
{
	return s.n <= CONTROLLER_TEXT_MAX;
}

void controller_apply_id(const struct controller *c, const struct apply_broker_id_header *h, struct controller_verdict *v)
{
	const struct controller_group *g = group_of(c, h->brokerName);
	const struct controller_replica *r = g ? replica_of(g, h->appliedBrokerId) : NULL;
	struct controller_event *e;
	const char *end;

	*v = (struct controller_verdict){ 0 };
	if (!fits(h->brokerName) || !fits(h->clusterName) || !fits(h->registerCheckCode)) {
		refuse(v, RESP_CONTROLLER_BROKER_ID_INVALID,
		       "brokerName, clusterName and registerCheckCode may have %d bytes at most", CONTROLLER_TEXT_MAX);
		return;
	}
	if (!g && h->appliedBrokerId != CONTROLLER_FIRST_ID) {
		refuse(v, RESP_CONTROLLER_BROKER_ID_INVALID,
		       "Broker-set: " MQ_STR_FMT " hasn't been registered in controller, but broker try to apply brokerId: %lld",
		       MQ_STR_ARG(h->brokerName), (long long)h->appliedBrokerId);
		return;
	}
	if ((r && !str_eq(str_of(r->check), h->registerCheckCode)) || (g && !r && g->n == SYNC_SET_MAX)) {
		refuse(v, RESP_CONTROLLER_BROKER_ID_INVALID, "Fail to apply brokerId: %lld in broker-set: " MQ_STR_FMT,
		       (long long)h->appliedBrokerId, MQ_STR_ARG(h->brokerName));
		return;
	}
	e = happen(v, CONTROLLER_APPLY_ID, h->brokerName);
	end = h->registerCheckCode.n ? memchr(h->registerCheckCode.p, ';', h->registerCheckCode.n) : NULL;
	e->cluster = h->clusterName;
	e->addr = (struct mq_str){ h->registerCheckCode.p, end ? (size_t)(end - h->registerCheckCode.p) : h->registerCheckCode.n };
	e->check = h->registerCheckCode;
	e->id = h->appliedBrokerId;
}

void controller_register(const struct controller *c, const struct controller_register_header *h, struct controller_verdict *v)
{
	const struct controller_group *g = group_of(c, h->brokerName);
	const struct controller_replica *r = g ? replica_of(g, h->brokerId) : NULL;

	*v = (struct controller_verdict){ 0 };
	if (!fits(h->brokerAddress)) {
		refuse(v, RESP_CONTROLLER_BROKER_ID_INVALID, "brokerAddress may have %d bytes at most", CONTROLLER_TEXT_MAX);
	} else if (!g) {
		refuse(v, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, "Broker-set: " MQ_STR_FMT " hasn't been registered in controller",
		       MQ_STR_ARG(h->brokerName));
	} else if (!r) {
		refuse(v, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, "BrokerId: %lld hasn't been registered in broker-set: " MQ_STR_FMT,
		       (long long)h->brokerId, MQ_STR_ARG(h->brokerName));
	} else if (!str_eq(str_of(r->addr), h->brokerAddress)) {
		struct controller_event *e = happen(v, CONTROLLER_ADDRESS, h->brokerName);

		e->id = h->brokerId;
		e->addr = h->brokerAddress;
	}
}

static bool same_members(const struct body_sync_set *a, const struct body_sync_set *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!body_sync_set_has(b, a->id[i]))
			return false;
	return a->n == b->n;
}

void controller_alter(const struct controller *c, const struct alter_sync_set_header *h, const struct body_sync_set *set,
                      const struct controller_eyes *eyes, struct controller_verdict *v)
{
	const struct controller_group *g = group_of(c, h->brokerName);

	*v = (struct controller_verdict){ 0 };
	if (!g) {
		refuse(v, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "Broker metadata is not existed");
		return;
	}
	if (same_members(set, &g->sync)) {
		refuse(v, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
		       "The newSyncStateSet is equal with oldSyncStateSet, no needed to update syncStateSet");
		return;
	}
	if (g->master == CONTROLLER_NOBODY || g->master != h->masterBrokerId) {
		refuse(v, RESP_CONTROLLER_INVALID_MASTER,
		       "Rejecting alter syncStateSet request because the current leader is:{%lld}, not {%lld}", (long long)g->master,
		       (long long)h->masterBrokerId);
		return;
	}
	if (h->masterEpoch != g->master_epoch) {
		refuse(v, RESP_CONTROLLER_FENCED_MASTER_EPOCH,
		       "Rejecting alter syncStateSet request because the current master epoch is:{%d}, not {%d}", g->master_epoch,
		       h->masterEpoch);
		return;
	}
	if (set->epoch != g->sync.epoch) {
		refuse(v, RESP_CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
		       "Rejecting alter syncStateSet request because the current syncStateSet epoch is:{%d}, not {%d}", g->sync.epoch,
		       set->epoch);
		return;
	}
	for (size_t i = 0; i < set->n; i++) {
		if (!replica_of(g, set->id[i])) {
			refuse(v, RESP_CONTROLLER_INVALID_REPLICAS,
			       "Rejecting alter syncStateSet request because the replicas {%lld} don't exist", (long long)set->id[i]);
			return;
		}
		if (!look(eyes, g, set->id[i])) {
			refuse(v, RESP_CONTROLLER_BROKER_NOT_ALIVE,
			       "Rejecting alter syncStateSet request because the replicas {%lld} don't alive", (long long)set->id[i]);
			return;
		}
	}
	if (!body_sync_set_has(set, g->master)) {
		refuse(v, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
		       "Rejecting alter syncStateSet request because the newSyncStateSet don't contains origin leader {%lld}",
		       (long long)g->master);
		return;
	}
	happen(v, CONTROLLER_ALTER, h->brokerName)->set = *set;
}

/* ---- Elections ------------------------------------------------------------------------------------------------------- */

/* Is a the better candidate? */
static bool better(const struct controller_life *a, int64_t a_id, const struct controller_life *b, int64_t b_id)
{
	if (a->epoch != b->epoch)
		return a->epoch > b->epoch;
	if (a->max_off != b->max_off)
		return a->max_off > b->max_off;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a_id < b_id;
}

/* Among the living replicas (those in the sync set, or all): the wanted one or nobody, else the old master, else the best. */
static int64_t choose(const struct controller_group *g, bool in_sync, int64_t wanted, const struct controller_eyes *eyes)
{
	int64_t best = CONTROLLER_NOBODY;
	struct controller_life best_life = { 0 };
	bool old_lives = false;

	for (size_t i = 0; i < g->n; i++) {
		int64_t id = g->v[i].id;
		const struct controller_life *life;

		if ((in_sync && !body_sync_set_has(&g->sync, id)) || !(life = look(eyes, g, id)))
			continue;
		if (id == wanted)
			return id;
		old_lives |= id == g->master;
		if (best == CONTROLLER_NOBODY || better(life, id, &best_life, best)) {
			best = id;
			best_life = *life;
		}
	}
	if (wanted != CONTROLLER_NOBODY)
		return CONTROLLER_NOBODY;
	return old_lives ? g->master : best;
}

void controller_elect(const struct controller *c, const struct elect_master_header *h, bool unclean,
                      const struct controller_eyes *eyes, struct controller_verdict *v)
{
	const struct controller_group *g = group_of(c, h->brokerName);
	int64_t wanted = h->designateElect ? h->brokerId : CONTROLLER_NOBODY, chosen = CONTROLLER_NOBODY;

	*v = (struct controller_verdict){ 0 };
	if (!g) {
		refuse(v, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, "Broker hasn't been registered");
		return;
	}
	if (g->master_epoch == 0 && replica_of(g, h->brokerId))
		chosen = h->brokerId;
	if (chosen == CONTROLLER_NOBODY)
		chosen = choose(g, true, wanted, eyes);
	if (chosen == CONTROLLER_NOBODY && unclean)
		chosen = choose(g, false, wanted, eyes);
	if (chosen != CONTROLLER_NOBODY && chosen == g->master) {
		refuse(v, RESP_CONTROLLER_MASTER_STILL_EXIST,
		       "The old master %lld is still alive, not need to elect new master for broker %s", (long long)chosen, g->name);
		return;
	}
	if (chosen != CONTROLLER_NOBODY) {
		happen(v, CONTROLLER_ELECT, h->brokerName)->id = chosen;
	} else if (h->brokerId == CONTROLLER_NOBODY) {
		/* Everybody is to know that there is none now; but once is enough. */
		if (g->master != CONTROLLER_NOBODY)
			happen(v, CONTROLLER_ELECT, h->brokerName)->id = CONTROLLER_NOBODY;
		refuse(v, RESP_CONTROLLER_MASTER_NOT_AVAILABLE, "Old master has down and failed to elect a new broker master");
	} else {
		refuse(v, RESP_CONTROLLER_ELECT_MASTER_FAILED, "Failed to elect a new master");
	}
}

bool controller_headless(const struct controller_group *g, const struct controller_eyes *eyes)
{
	if (g->master == CONTROLLER_NOBODY || look(eyes, g, g->master))
		return false;
	for (size_t i = 0; i < g->n; i++)
		if (look(eyes, g, g->v[i].id))
			return true;
	return false;
}

/* ---- Forgetting ------------------------------------------------------------------------------------------------------ */

/* "1;2" into set.  false: no list of numbers, or too many. */
static bool read_ids(struct mq_str text, struct body_sync_set *set)
{
	while (text.n) {
		const char *end = memchr(text.p, ';', text.n);
		size_t n = end ? (size_t)(end - text.p) : text.n;
		int64_t id;

		if (str_i64((struct mq_str){ text.p, n }, &id) < 0 || set->n == SYNC_SET_MAX)
			return false;
		if (!body_sync_set_has(set, id))
			set->id[set->n++] = id;
		n += end != NULL;
		text = (struct mq_str){ text.p + n, text.n - n };
	}
	return true;
}

void controller_clean(const struct controller *c, const struct clean_broker_header *h, const struct controller_eyes *eyes,
                      struct controller_verdict *v)
{
	const struct controller_group *g = group_of(c, h->brokerName);
	struct body_sync_set who = { 0 };

	*v = (struct controller_verdict){ 0 };
	if (!read_ids(h->brokerControllerIdsToClean, &who)) {
		refuse(v, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
		       "Please set the option <brokerControllerIdsToClean> according to the format: ids with ; between them");
		return;
	}
	if (!g) {
		refuse(v, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
		       "Broker " MQ_STR_FMT " is not existed,clean broker data failure.", MQ_STR_ARG(h->brokerName));
		return;
	}
	if (!h->isCleanLivingBroker && !who.n && g->master != CONTROLLER_NOBODY) {
		refuse(v, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA, "Broker %s is still alive, clean up failure", g->name);
		return;
	}
	for (size_t i = 0; !h->isCleanLivingBroker && i < who.n; i++)
		if (look(eyes, g, who.id[i])) {
			refuse(v, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
			       "Broker [%s,  %lld] is still alive, clean up failure", g->name, (long long)who.id[i]);
			return;
		}
	happen(v, CONTROLLER_CLEAN, h->brokerName)->set = who;
}

/* ---- What has happened ----------------------------------------------------------------------------------------------- */

struct controller_group *controller_add_group(struct controller *c, struct mq_str cluster, struct mq_str name)
{
	struct controller_group *g = mem_alloc(sizeof(*g));
	bool found;
	size_t i = place_of(c, name, &found);

	g->cluster = str_dup(cluster);
	g->name = str_dup(name);
	g->next_id = CONTROLLER_FIRST_ID;
	g->master = CONTROLLER_NOBODY;
	c->v = mem_realloc(c->v, (c->n + 1) * sizeof(*c->v));
	memmove(c->v + i + 1, c->v + i, (c->n - i) * sizeof(*c->v));
	c->v[i] = g;
	c->n++;
	return g;
}

void controller_add_replica(struct controller_group *g, int64_t id, struct mq_str addr, struct mq_str check)
{
	size_t i = g->n;

	g->v = mem_realloc(g->v, (g->n + 1) * sizeof(*g->v));
	for (; i && g->v[i - 1].id > id; i--)
		g->v[i] = g->v[i - 1];
	g->v[i] = (struct controller_replica){ id, str_dup(addr), str_dup(check) };
	g->n++;
}

static void forget_group(struct controller *c, struct mq_str name)
{
	bool found;
	size_t i = place_of(c, name, &found);

	free_group(c->v[i]);
	c->n--;
	memmove(c->v + i, c->v + i + 1, (c->n - i) * sizeof(*c->v));
}

static void forget_replica(struct controller_group *g, int64_t id)
{
	for (size_t i = 0; i < g->sync.n; i++)
		if (g->sync.id[i] == id) {
			g->sync.n--;
			memmove(g->sync.id + i, g->sync.id + i + 1, (g->sync.n - i) * sizeof(g->sync.id[0]));
			break;
		}
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].id == id) {
			free(g->v[i].addr);
			free(g->v[i].check);
			g->n--;
			memmove(g->v + i, g->v + i + 1, (g->n - i) * sizeof(*g->v));
			break;
		}
	if (g->master == id)
		g->master = CONTROLLER_NOBODY;
}

void controller_happened(struct controller *c, const struct controller_event *e)
{
	struct controller_group *g = group_of(c, e->name);
	struct controller_replica *r;

	if (!g && e->kind != CONTROLLER_APPLY_ID)
		return;
	switch (e->kind) {
	case CONTROLLER_APPLY_ID:
		if (!g)
			g = controller_add_group(c, e->cluster, e->name);
		if (replica_of(g, e->id))
			return;
		controller_add_replica(g, e->id, e->addr, e->check);
		g->next_id = e->id >= g->next_id ? e->id + 1 : g->next_id;
		break;
	case CONTROLLER_ADDRESS:
		r = replica_of(g, e->id);
		if (r) {
			free(r->addr);
			r->addr = str_dup(e->addr);
		}
		break;
	case CONTROLLER_ELECT:
		g->master = e->id;
		g->master_epoch++;
		if (e->id != CONTROLLER_NOBODY)
			g->sync = (struct body_sync_set){ .id = { e->id }, .n = 1, .epoch = g->sync.epoch + 1 };
		break;
	case CONTROLLER_ALTER: {
		int32_t epoch = g->sync.epoch + 1;

		g->sync = e->set;
		g->sync.epoch = epoch;
		break;
	}
	case CONTROLLER_CLEAN:
		for (size_t i = 0; i < e->set.n; i++)
			forget_replica(g, e->set.id[i]);
		if (!e->set.n || !g->n)
			forget_group(c, e->name);
		break;
	}
}
