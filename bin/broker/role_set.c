/* role_set.c: who counts: the sync set of a master, its proposals, and what they let it acknowledge. */
#include "role_private.h"
#include "ha_role.h"

enum { FIRST_CHECK_MS = 3000, AGAIN_MS = 1000, UNREAD_MS = 30000 };

static struct role_slave *slave_of(struct role *r, int64_t id)
{
	for (size_t i = 0; i < r->slaves; i++)
		if (r->slave[i].id == id)
			return &r->slave[i];
	return NULL;
}

static bool joins(const struct role *r, int64_t id)
{
	for (size_t i = 0; i < r->slaves; i++)
		if (r->slave[i].id == id)
			return r->slave[i].joining;
	return false;
}

bool role_required(const struct role *r, int64_t id)
{
	return body_sync_set_has(&r->set, id) || body_sync_set_has(&r->asked, id) || joins(r, id);
}

static void add(struct body_sync_set *s, int64_t id)
{
	if (!body_sync_set_has(s, id) && s->n < SYNC_SET_MAX)
		s->id[s->n++] = id;
}

static bool same(const struct body_sync_set *a, const struct body_sync_set *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!body_sync_set_has(b, a->id[i]))
			return false;
	return a->n == b->n;
}

/* ---- What may be acknowledged ---------------------------------------------------------------------------------------- */

/* Set and asked, without who is only joining. */
static struct body_sync_set members(const struct role *r)
{
	struct body_sync_set u = r->set;

	for (size_t i = 0; i < r->asked.n; i++)
		add(&u, r->asked.id[i]);
	return u;
}

static int64_t acked_by(struct role *r, int64_t id)
{
	const struct role_slave *s = slave_of(r, id);

	return s && s->conn ? s->acked : -1;
}

/* Everything below is at all that are required. */
static int64_t at_all(struct role *r)
{
	struct body_sync_set u = members(r);
	int64_t low = INT64_MAX;

	for (size_t i = 0; i < r->slaves; i++)
		if (r->slave[i].joining)
			add(&u, r->slave[i].id);
	for (size_t i = 0; i < u.n; i++) {
		int64_t a = u.id[i] == r->id ? INT64_MAX : acked_by(r, u.id[i]);

		low = a < low ? a : low;
	}
	return low;
}

static int64_t at_some(struct role *r)
{
	int64_t acked[SYNC_SET_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->slaves; i++)
		if (r->slave[i].conn)
			acked[n++] = r->slave[i].acked;
	return ha_replicated(acked, n, r->conf.in_sync, INT64_MAX);
}

enum role_put role_puts(const struct role *r)
{
	struct body_sync_set u;

	if (r->is != ROLE_IS_MASTER || r->fenced || r->changing)
		return ROLE_PUT_NOT_MASTER;
	u = members(r);
	return (int64_t)u.n < r->conf.min_in_sync ? ROLE_PUT_TOO_FEW : ROLE_PUT_OK;
}

static void confirm(struct role *r)
{
	int64_t c = r->end;

	if (r->is != ROLE_IS_MASTER || r->changing)
		return;
	if (r->conf.all_ack) {
		int64_t all = at_all(r);

		c = all < c ? all : c;
	}
	if (c > r->confirm)
		r->confirm = c;
}

void role_set_level(struct role *r)
{
	confirm(r);
	r->level = role_puts(r) != ROLE_PUT_OK ? -1 : r->conf.all_ack ? at_all(r) : at_some(r);
}

int64_t role_confirm(struct role *r)
{
	return r->confirm;
}

void role_log(struct role *r, int64_t end)
{
	r->end = end;
	confirm(r);
}

/* ---- Proposals ------------------------------------------------------------------------------------------------------- */

static bool is_behind(struct role *r, const struct role_slave *s)
{
	return !s || !s->conn || r->now - s->caught_ms > r->conf.behind_ms;
}

/* Everything that may have been acknowledged without it: in this life, by one before, or by another master. */
static bool has_all(const struct role *r, const struct role_slave *s)
{
	return s->acked >= r->confirm && s->acked >= r->begun;
}

/* The set as it should be: who is lost or has been behind for too long goes, who joins and has everything comes. */
static struct body_sync_set wanted(struct role *r)
{
	struct body_sync_set w = { .epoch = r->set.epoch };

	add(&w, r->id);
	for (size_t i = 0; i < r->set.n; i++)
		if (r->set.id[i] != r->id && !is_behind(r, slave_of(r, r->set.id[i])))
			add(&w, r->set.id[i]);
	for (size_t i = 0; i < r->slaves; i++) {
		const struct role_slave *s = &r->slave[i];

		if (s->joining && has_all(r, s) && !is_behind(r, s))
			add(&w, s->id);
	}
	return w;
}

static void propose(struct role *r)
{
	struct body_sync_set w;
	struct role_act *a;

	if (r->is != ROLE_IS_MASTER || r->changing || r->fenced || r->set_seq || !r->leader[0])
		return;
	w = wanted(r);
	if (same(&w, &r->set) && !r->uncertain)
		return;
	/* What was asked and never answered may stand by now.  As nothing can be asked twice upon one set, asking again for what is
	 * wanted shows which it is; if that is the set as it is known, asking who is in it has to do. */
	if (same(&w, &r->set)) {
		r->replicas_ms = r->now;
		return;
	}
	for (size_t i = 0; i < w.n; i++)
		add(&r->asked, w.id[i]);
	r->uncertain++;
	r->asked_ms = r->now;
	r->set_seq = role_ask(r, REQ_CONTROLLER_ALTER_SYNC_STATE_SET, &a);
	r->set_due = r->now + r->conf.answer_ms;
	r->check_ms = r->now + AGAIN_MS;
	a->set = w;
	role_set_level(r);
}

static void take_set(struct role *r, const struct body_sync_set *set)
{
	r->set = *set;
	add(&r->set, r->id);
	r->asked = (struct body_sync_set){ 0 };
	r->uncertain = 0;
	for (size_t i = 0; i < r->slaves; i++)
		if (body_sync_set_has(&r->set, r->slave[i].id))
			r->slave[i].joining = false;
	role_set_level(r);
	role_do(r, ROLE_SET)->set = r->set;
}

/* The controller tells the set of this master's epoch.  With a greater number it is newer than everything that was asked upon the old
 * one: of that at most one came about, and it is this or was overtaken by it. */
void role_set_told(struct role *r, const struct body_sync_set *set)
{
	if (r->changing && r->master.id == r->id && set->epoch > r->fresh.epoch)
		r->fresh = *set;
	else if (r->is == ROLE_IS_MASTER && !r->changing && set->epoch > r->set.epoch)
		take_set(r, set);
}

void role_set_unchanged(struct role *r, const struct body_sync_set *set, int64_t asked_ms)
{
	if (r->is != ROLE_IS_MASTER || r->changing || !r->uncertain || r->set_seq || set->epoch != r->set.epoch ||
	    asked_ms - r->asked_ms < UNREAD_MS)
		return;
	r->uncertain = 0;
	r->asked = (struct body_sync_set){ 0 };
	role_set_level(r);
}

bool role_set_answered(struct role *r, const struct role_answer *a)
{
	switch (a->code) {
	case RESP_SUCCESS:
		role_set_told(r, &a->set);
		propose(r);
		return false;
	case RESP_CONTROLLER_INVALID_REPLICAS:
	case RESP_CONTROLLER_BROKER_NOT_ALIVE:
	case RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED:
		/* Surely refused.  If nothing else is uncertain, nothing is. */
		if (--r->uncertain == 0)
			r->asked = (struct body_sync_set){ 0 };
		role_set_level(r);
		return a->code == RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED;
	default:
		return true;
	}
}

void role_set_tick(struct role *r)
{
	if (r->is != ROLE_IS_MASTER || r->changing || r->now < r->check_ms)
		return;
	r->check_ms = r->now + r->conf.check_ms;
	for (size_t i = 0; i < r->slaves; i++) {
		struct role_slave *s = &r->slave[i];

		/* It holds everybody up, and does not come near. */
		if (s->joining && r->now - s->joining_ms > r->conf.behind_ms && !body_sync_set_has(&r->asked, s->id))
			s->joining = false;
	}
	role_set_level(r);
	propose(r);
	if (r->uncertain)
		r->check_ms = r->now + AGAIN_MS;
}

/* ---- Life of a master ------------------------------------------------------------------------------------------------ */

void role_set_begin(struct role *r)
{
	r->slaves = 0;
	r->confirm = 0;
	r->set_seq = 0;
	r->level = -1;
}

void role_set_master(struct role *r)
{
	r->set = r->fresh;
	r->begun = r->end;
	add(&r->set, r->id);
	r->asked = (struct body_sync_set){ 0 };
	r->uncertain = 0;
	r->check_ms = r->now + FIRST_CHECK_MS;
	role_do(r, ROLE_SET)->set = r->set;
}

void role_slave_report(struct role *r, uint64_t conn, int64_t id, bool learner, int64_t acked, bool everything, int64_t epoch_start,
                       int64_t caught_ms, int64_t now)
{
	struct role_slave *s = slave_of(r, id);

	r->now = now;
	if (r->is != ROLE_IS_MASTER || r->changing || id == r->id)
		return;
	if (!s) {
		if (r->slaves == SYNC_SET_MAX)
			return;
		s = &r->slave[r->slaves++];
		*s = (struct role_slave){ .id = id, .acked = -1 };
	}
	if (s->conn != conn) {
		/* A newer connection: what the older one said does not count, for its log may have been cut since. */
		s->conn = conn;
		s->acked = -1;
		s->joining = s->joining && body_sync_set_has(&r->asked, id);
	}
	s->learner = learner;
	s->acked = acked > s->acked ? acked : s->acked;
	s->caught_ms = caught_ms;
	if (!learner && everything && acked >= epoch_start && !s->joining && !role_required(r, id)) {
		s->joining = true;
		s->joining_ms = now;
	}
	role_set_level(r);
	if (s->joining && has_all(r, s) && !body_sync_set_has(&r->asked, id))
		propose(r);
}

void role_slave_lost(struct role *r, uint64_t conn, int64_t now)
{
	r->now = now;
	for (size_t i = 0; i < r->slaves; i++) {
		struct role_slave *s = &r->slave[i];

		if (s->conn != conn)
			continue;
		s->conn = 0;
		s->acked = -1;
		s->joining = false;
		role_set_level(r);
		if (body_sync_set_has(&r->set, s->id))
			propose(r);
	}
}
