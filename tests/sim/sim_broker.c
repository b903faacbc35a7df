/* sim_broker.c: three brokers: the real role.c, role_set.c, epoch.c, ha_switch_role.c, ha_role.c; a log of numbers (one message a byte), a
 * disk that flushes now and then, connections that deliver in order or break. */
#include "sim.h"
#include "../../bin/broker/role_private.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static const struct ha_limits limits = { .heartbeat_ms = 5000, .silence_ms = 20000, .block_bytes = BLOCK, .gap_bytes = 1 << 20 };

static int64_t safe_end(const struct broker_sim *s)
{
	return w->sync_flush ? s->flushed : s->end;
}

static struct ha_log log_of(const struct broker_sim *s, bool safe)
{
	return (struct ha_log){ 0, safe ? safe_end(s) : s->end, 1 << 20 };
}

/* ---- What consumers see and producers are told ------------------------------------------------------------------------ */

static void show(struct broker_sim *s, int64_t to)
{
	to = to < s->end ? to : s->end;
	for (; s->seen < to; s->seen++) {
		uint32_t id = s->log[s->seen];

		if (s->seen < w->seen_end && w->seen[s->seen] != id)
			wrong("at %lld consumers saw message %u, and see %u now", (long long)s->seen, w->seen[s->seen], id);
		w->seen[s->seen] = id;
		w->seen_end = s->seen + 1 > w->seen_end ? s->seen + 1 : w->seen_end;
	}
}

static void acknowledge(int i)
{
	struct broker_sim *s = &w->b[i];
	int64_t to = role_level(&s->role);
	int32_t epoch = s->role.master.epoch;

	to = to < safe_end(s) ? to : safe_end(s);
	for (; s->puts_done < s->puts && s->put[s->puts_done].off < to; s->puts_done++) {
		struct put *p = &s->put[s->puts_done];

		if (w->acked[p->off] && w->acked[p->off] != p->id)
			wrong("at %lld message %u is acknowledged after message %u was", (long long)p->off, p->id, w->acked[p->off]);
		if (epoch < 4096 && w->epoch_of[epoch] && w->epoch_of[epoch] != i + 1)
			wrong("two brokers acknowledge in epoch %d", epoch);
		if (epoch < 4096)
			w->epoch_of[epoch] = i + 1;
		w->acked[p->off] = p->id;
		w->acked_end = p->off + 1 > w->acked_end ? p->off + 1 : w->acked_end;
		w->acks++;
	}
	if (s->role.is == ROLE_IS_MASTER)
		show(s, role_confirm(&s->role));
}

static void look_at_elected(int i)
{
	struct broker_sim *s = &w->b[i];

	for (int64_t off = 0; off < w->acked_end; off++)
		if (w->acked[off] && (off >= s->end || s->log[off] != w->acked[off])) {
			wrong("broker %d became master of epoch %d without message %u, acknowledged at %lld; its log ends at %lld", i,
			      s->role.master.epoch, w->acked[off], (long long)off, (long long)s->end);
			return;
		}
}

/* ---- Connections between brokers --------------------------------------------------------------------------------------- */

static void drain(int i);

static void msg_free(struct msg *m)
{
	free(m->list);
	free(m);
}

static void conn_end(struct conn_sim *c, bool master_hears)
{
	uint64_t key = c->key;
	struct msg *m;

	for (int side = 0; side < 2; side++)
		while ((m = TAILQ_FIRST(&c->q[side]))) {
			TAILQ_REMOVE(&c->q[side], m, q);
			msg_free(m);
		}
	c->key = 0;
	say("connection of slave %d to %d ends", c->slave, c->master);
	if (w->b[c->slave].to_master == c) {
		w->b[c->slave].to_master = NULL;
		ha_follower_lost(&w->b[c->slave].follower, w->now, 200 + roll(5000));
	}
	if (master_hears && w->b[c->master].up && life_of(c->master) == c->master_life) {
		role_slave_lost(&w->b[c->master].role, key, w->now);
		drain(c->master);
	}
}

static void broken(struct event *e)
{
	struct conn_sim *c = &w->conn[e->a];

	if (c->key == *(uint64_t *)e->p)
		conn_end(c, true);
}

/* One end is gone: the other hears of it at once, or by silence. */
static void conns_of(int i, int how)
{
	for (int k = 0; k < CONNS; k++) {
		struct conn_sim *c = &w->conn[k];
		uint64_t *key;

		if (!c->key || (c->slave != i && c->master != i))
			continue;
		if (how == 0) {
			conn_end(c, c->master != i);
			continue;
		}
		key = mem_alloc(sizeof(*key));
		*key = c->key;
		at(roll(20000), broken, -1, k, 0, key);
		if (w->b[c->slave].to_master == c && c->slave == i)
			w->b[c->slave].to_master = NULL;
	}
}

static void arrives(struct event *e);

static void send(struct conn_sim *c, int side, struct msg *m)
{
	struct msg *last = TAILQ_LAST(&c->q[side], msgs);
	uint64_t *key = mem_alloc(sizeof(*key));

	m->at = w->now + 1 + roll(3 + (uint32_t)w->slow_ms);
	if (last && last->at > m->at)
		m->at = last->at;
	TAILQ_INSERT_TAIL(&c->q[side], m, q);
	*key = c->key;
	at(m->at - w->now, arrives, -1, (int)(c - w->conn), side, key);
}

static void feed(int i, struct conn_sim *c)
{
	struct broker_sim *s = &w->b[i];
	struct ha_log log = log_of(s, true);
	struct ha_switch_send a;

	while (c->key && (a = ha_switch_next(&c->view, &log, &s->epochs, &limits, w->now)).what != HA_SWITCH_NOTHING) {
		struct msg *m = mem_alloc(sizeof(*m));

		*m = (struct msg){ .what = a.what == HA_SWITCH_ANSWER ? MSG_ANSWER : MSG_BLOCK, .off = a.off, .n = a.n, .epoch = a.epoch,
				   .confirm = role_confirm(&s->role) };
		if (a.what == HA_SWITCH_ANSWER) {
			m->epochs = s->epochs.n;
			m->list = mem_alloc((m->epochs + 1) * sizeof(m->list[0]));
			memcpy(m->list, s->epochs.v, m->epochs * sizeof(m->list[0]));
		}
		memcpy(m->id, s->log + a.off, (size_t)a.n * sizeof(m->id[0]));
		ha_switch_sent(&c->view, &log, &a, w->now);
		send(c, 1, m);
	}
}

static void feed_all(int i)
{
	for (int k = 0; k < CONNS; k++)
		if (w->conn[k].key && w->conn[k].has_view && w->conn[k].master == i)
			feed(i, &w->conn[k]);
}

/* At the master. */
static void from_slave(struct conn_sim *c, const struct msg *m)
{
	struct broker_sim *s = &w->b[c->master];
	struct ha_log log = log_of(s, true);
	int64_t start = s->epochs.n ? s->epochs.v[s->epochs.n - 1].start : 0;
	int rc;

	if (s->role.is != ROLE_IS_MASTER || s->role.changing) {
		conn_end(c, false);
		return;
	}
	if (!c->has_view) {
		ha_switch_begin(&c->view, w->now);
		c->has_view = true;
	}
	rc = m->what == MSG_HELLO ? ha_switch_greet(&c->view, &m->hello, w->now, NULL) :
				    ha_switch_report(&c->view, &log, m->off, w->now, NULL);
	if (rc < 0) {
		conn_end(c, true);
		return;
	}
	if (m->what == MSG_REPORT) {
		say("slave %d reports %lld to %d, which ends at %lld", c->slave, (long long)m->off, c->master, (long long)log.end);
		role_slave_report(&s->role, c->key, c->view.hello.id, false, c->view.base.acked, ha_switch_caught_up(&c->view), start,
				  c->view.caught_up_ms, w->now);
		drain(c->master);
	}
	if (c->key)
		feed(c->master, c);
}

static void cut(struct broker_sim *s, int64_t to)
{
	s->end = to;
	s->flushed = s->flushed < to ? s->flushed : to;
	s->seen = s->seen < to ? s->seen : to;
	s->confirm = s->confirm < to ? s->confirm : to;
	epoch_cut(&s->epochs, to);
}

static void heard_list(int i, const struct msg *m)
{
	struct broker_sim *s = &w->b[i];
	struct epoch_list theirs = { .n = m->epochs };
	struct ha_switch_decision d;
	struct ha_log log;

	if (s->follower.phase != HA_AGREEING)
		return;
	memcpy(theirs.v, m->list, m->epochs * sizeof(m->list[0]));
	for (;;) {
		log = log_of(s, false);
		d = ha_switch_decide(&s->epochs, &log, &theirs, m->off, NULL);
		if (d.what != HA_SWITCH_CUT)
			break;
		if (w->bug == BUG_LENGTH && s->end <= m->off) {
			d.what = HA_SWITCH_FOLLOW;
			s->epochs = theirs;
			epoch_cut(&s->epochs, s->end);
			break;
		}
		say("broker %d cuts its log from %lld to %lld", i, (long long)s->end, (long long)d.at);
		cut(s, d.at);
	}
	if (d.what == HA_SWITCH_REFUSE) {
		/* Somebody empties it by hand. */
		say("broker %d cannot follow, and is emptied", i);
		cut(s, 0);
	}
	ha_follower_agreed(&s->follower, w->now);
}

static void from_master(struct conn_sim *c, const struct msg *m)
{
	struct broker_sim *s = &w->b[c->slave];
	struct ha_switch_head h = { m->off, m->n, m->epoch, m->confirm };
	struct mq_error why;
	bool grew;

	if (m->what == MSG_ANSWER) {
		heard_list(c->slave, m);
	} else if (s->disk_stopped_until > w->now && roll(2)) {
		conn_end(c, true);      /* it cannot write, and is too slow */
		return;
	} else if (ha_switch_take(&s->follower, &s->epochs, &h, s->end, w->now, &grew, &why) < 0) {
		say("broker %d does not take a block: %s", c->slave, why.text);
		conn_end(c, true);
		return;
	} else {
		memcpy(s->log + s->end, m->id, (size_t)m->n * sizeof(m->id[0]));
		s->end += m->n;
		s->confirm = m->confirm < s->end ? m->confirm : s->end;
		show(s, s->confirm);
	}
	drain(c->slave);
}

static void arrives(struct event *e)
{
	struct conn_sim *c = &w->conn[e->a];
	int from = e->b ? c->master : c->slave, to = e->b ? c->slave : c->master;
	struct msg *m;

	if (c->key != *(uint64_t *)e->p || !(m = TAILQ_FIRST(&c->q[e->b])))
		return;
	if ((e->b && (life_of(to) != c->slave_life || w->b[to].to_master != c)) || (!e->b && life_of(to) != c->master_life))
		return;
	if (w->cut[from][to] || !w->b[to].up) {
		uint64_t *key = mem_alloc(sizeof(*key));

		/* Sent again, or given up. */
		*key = c->key;
		m->at = w->now + 300;
		at(300, roll(100) ? arrives : broken, -1, e->a, e->b, key);
		return;
	}
	TAILQ_REMOVE(&c->q[e->b], m, q);
	if (e->b)
		from_master(c, m);
	else
		from_slave(c, m);
	msg_free(m);
}

/* ---- A slave ----------------------------------------------------------------------------------------------------------- */

static void dial(int i)
{
	struct broker_sim *s = &w->b[i];
	struct msg *m;

	if (s->master < 0 || !reaches(i, s->master) || !reaches(s->master, i)) {
		ha_follower_lost(&s->follower, w->now, 1000);
		return;
	}
	for (int k = 0; k < CONNS; k++) {
		struct conn_sim *c = &w->conn[k];

		if (c->key)
			continue;
		*c = (struct conn_sim){ .key = ++w->keys, .slave = i, .master = s->master, .slave_life = s->life,
					.master_life = life_of(s->master) };
		TAILQ_INIT(&c->q[0]);
		TAILQ_INIT(&c->q[1]);
		s->to_master = c;
		ha_follower_connected(&s->follower, w->now);
		m = mem_alloc(sizeof(*m));
		*m = (struct msg){ .what = MSG_HELLO, .hello.id = s->role.id };
		send(c, 0, m);
		return;
	}
}

static void follow(int i)
{
	struct broker_sim *s = &w->b[i];
	int64_t end = w->bug == BUG_UNFLUSHED ? s->end : safe_end(s);
	struct msg *m;

	if (s->role.is != ROLE_IS_SLAVE || s->role.changing)
		return;
	switch (ha_follower_next(&s->follower, end, &limits, w->now)) {
	case HA_DO_DIAL:
		dial(i);
		break;
	case HA_DO_REPORT:
		m = mem_alloc(sizeof(*m));
		*m = (struct msg){ .what = MSG_REPORT, .off = end };
		ha_follower_reported(&s->follower, end, w->now);
		send(s->to_master, 0, m);
		break;
	case HA_DO_HANG_UP:
		conn_end(s->to_master, true);
		break;
	case HA_DO_NOTHING:
		if (s->follower.phase == HA_AGREEING && w->now - s->follower.heard_ms > limits.silence_ms && s->to_master)
			conn_end(s->to_master, true);
		break;
	}
}

/* ---- What the role wants ------------------------------------------------------------------------------------------------ */

static void changed(struct event *e)
{
	struct broker_sim *s = &w->b[e->node];
	struct role_master *m = e->p;
	bool ok = true;

	if (e->b != s->change)
		return;
	if (e->a) {
		struct mq_error why;

		if (w->bug == BUG_REPEAT && s->epochs.n && s->epochs.v[s->epochs.n - 1].start == s->end)
			ok = true;
		else if (epoch_begin(&s->epochs, m->epoch, true, 0, s->end, &why) < 0)
			ok = false, wrong("broker %d: %s", e->node, why.text);
		say("broker %d is master of epoch %d from %lld on", e->node, m->epoch, (long long)s->end);
		role_log(&s->role, safe_end(s));
		if (m->epoch == w->newest)
			look_at_elected(e->node);
	} else {
		s->master = m->addr[1] - '0';
		ha_follower_begin(&s->follower);
		ha_follower_master(&s->follower, true, w->now);
		say("broker %d is slave of %d, epoch %d", e->node, s->master, m->epoch);
	}
	w->changes++;
	role_changed(&s->role, ok, w->now);
	drain(e->node);
}

static void wrote(struct event *e)
{
	struct broker_sim *s = &w->b[e->node];
	struct role_act *a = e->p;

	if (s->disk_stopped_until > w->now) {
		role_wrote(&s->role, false, w->now);
	} else if (a->what == ROLE_WRITE_TEMP) {
		s->disk.temp_id = a->id;
		snprintf(s->disk.temp_check, sizeof(s->disk.temp_check), "%s", a->check);
		role_wrote(&s->role, true, w->now);
	} else {
		s->disk = (struct role_identity){ .id = a->id };
		role_wrote(&s->role, true, w->now);
	}
	drain(e->node);
}

static void obey(int i, const struct role_act *a)
{
	struct broker_sim *s = &w->b[i];
	struct role_master *m;
	struct role_act *copy;

	switch (a->what) {
	case ROLE_ASK:
		controller_request(i, a);
		break;
	case ROLE_BEAT:
		controller_beat(i);
		break;
	case ROLE_WRITE_TEMP:
	case ROLE_WRITE_IDENTITY:
		copy = mem_alloc(sizeof(*copy));
		*copy = *a;
		at(roll(20), wrote, i, 0, 0, copy);
		break;
	case ROLE_FORGET_TEMP:
		s->disk.temp_id = 0;
		break;
	case ROLE_BECOME_MASTER:
	case ROLE_BECOME_SLAVE:
		conns_of(i, 0);
		s->puts = s->puts_done = 0;
		m = mem_alloc(sizeof(*m));
		*m = a->m;
		at(roll(200), changed, i, a->what == ROLE_BECOME_MASTER, ++s->change, m);
		break;
	case ROLE_STUCK:
		wrong("broker %d is stuck: %s", i, a->why);
		break;
	case ROLE_SET:
		say("broker %d: set %d has %zu: %lld %lld %lld", i, a->set.epoch, a->set.n, (long long)a->set.id[0],
		    a->set.n > 1 ? (long long)a->set.id[1] : 0, a->set.n > 2 ? (long long)a->set.id[2] : 0);
		break;
	case ROLE_REGISTER:
		break;
	}
}

static void drain(int i)
{
	struct broker_sim *s = &w->b[i];
	struct role_act a;

	while (s->up && role_next(&s->role, &a)) {
		obey(i, &a);
		if (w->bug == BUG_UNION) {
			s->role.asked.n = 0;
			for (size_t k = 0; k < s->role.slaves; k++)
				s->role.slave[k].joining = false;
			role_set_level(&s->role);
		}
	}
	acknowledge(i);
	follow(i);
}

void broker_answer(int i, const struct role_answer *a)
{
	role_answer(&w->b[i].role, a, w->now, w->now);
	drain(i);
}

void broker_notified(int i, const struct role_master *m, const struct body_sync_set *set)
{
	role_notified(&w->b[i].role, m, set, w->now);
	drain(i);
}

void broker_put(int i)
{
	struct broker_sim *s = &w->b[i];
	uint32_t n = 1 + roll(3);

	if (!s->up || s->disk_stopped_until > w->now || role_puts(&s->role) != ROLE_PUT_OK)
		return;
	for (; n-- && s->end < LOG_MAX - 1 && s->puts < LOG_MAX; s->end++) {
		s->log[s->end] = ++w->next_id;
		s->put[s->puts++] = (struct put){ s->end, w->next_id };
	}
	role_log(&s->role, safe_end(s));
	acknowledge(i);
	feed_all(i);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static void flush(struct event *e)
{
	struct broker_sim *s = &w->b[e->node];

	at(5 + roll(60), flush, e->node, 0, 0, NULL);
	if (s->disk_stopped_until > w->now || s->flushed == s->end)
		return;
	s->flushed = s->end;
	role_log(&s->role, safe_end(s));
	drain(e->node);
	if (s->role.is == ROLE_IS_MASTER)
		feed_all(e->node);
}

static void tick(struct event *e)
{
	int i = e->node;

	at(100, tick, i, 0, 0, NULL);
	role_tick(&w->b[i].role, w->now, w->now);
	drain(i);
	for (int k = 0; k < CONNS; k++) {
		struct conn_sim *c = &w->conn[k];

		if (!c->key || c->master != i || !c->has_view || c->master_life != w->b[i].life)
			continue;
		if (ha_slave_is_gone(&c->view.base, &limits, w->now))
			conn_end(c, true);
		else
			feed(i, c);
	}
}

void broker_start(int i)
{
	struct broker_sim *s = &w->b[i];
	static char addr[BROKERS][8];
	struct role_conf conf = { .addr = addr[i], .controller = { "c0", "c1", "c2" }, .controllers = CONTROLLERS, .beat_ms = 1000,
				  .metadata_ms = 10000, .replicas_ms = 5000, .check_ms = 5000, .behind_ms = 15000, .answer_ms = 3000,
				  .all_ack = true, .min_in_sync = 1, .in_sync = 1, .seed = roll(1000) };
	int32_t last = epoch_last(&s->epochs);

	if (s->up)
		return;
	snprintf(addr[i], sizeof(addr[i]), "b%d", i);
	s->up = true;
	s->life++;
	s->master = -1;
	s->puts = s->puts_done = 0;
	s->confirm = 0;
	s->seen = 0;
	epoch_cut(&s->epochs, s->end + 1);
	ha_follower_begin(&s->follower);
	role_start(&s->role, &conf, &s->disk, last, true, w->now);
	role_log(&s->role, safe_end(s));
	at(0, tick, i, 0, 0, NULL);
	at(roll(60), flush, i, 0, 0, NULL);
}

void broker_crash(int i, bool power)
{
	struct broker_sim *s = &w->b[i];

	if (!s->up)
		return;
	conns_of(i, power && roll(2));
	if (roll(2))
		controller_broker_gone(i);
	s->up = false;
	s->life++;
	s->to_master = NULL;
	if (power)
		s->end = s->flushed;
}

void brokers_end(void)
{
	for (int i = 0; i < BROKERS; i++)
		broker_crash(i, false);
	for (int k = 0; k < CONNS; k++)
		if (w->conn[k].key)
			conn_end(&w->conn[k], false);
}
