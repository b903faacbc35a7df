/* member.c: lives of a broker, one after the other, as a controller gives it its role. */
#include "member_private.h"
#include "ha_feed.h"
#include "ha_master.h"
#include "ha_replica.h"
#include "register.h"
#include "settle.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <store/replica.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_MODULE "member"

enum { TICK_MS = 100, RETRY_MS = 1000, ANSWER_MS = 3000, END_MS = 1 };

static void start_life(struct member *m);

/* ---- What the broker asks ----------------------------------------------------------------------------------------------- */

struct broker *member_broker(const struct member *m) { return m->b; }
int64_t member_id(const struct member *m) { return m->role.id; }
int32_t member_epoch(const struct member *m) { return m->role.master.epoch; }
bool member_fenced(const struct member *m) { return !m->registered; }
int64_t member_level(const struct member *m) { return role_level(&m->role); }
const struct body_sync_set *member_set(const struct member *m) { return &m->role.set; }

const char *member_master_addr(const struct member *m)
{
	return m->leads ? "" : m->to.addr;
}

int64_t member_confirm(const struct member *m)
{
	if (m->leads)
		return role_confirm((struct role *)&m->role);
	return m->slave_confirm < m->log_end ? m->slave_confirm : m->log_end;
}

void member_confirm_is(struct member *m, int64_t off)
{
	m->slave_confirm = off;
}

int64_t member_visible(struct member *m, int64_t log_end)
{
	if (!m->role.conf.all_ack)
		return INT64_MAX;
	/* What only this one has may be cut, until it and its master agree. */
	if (!m->leads)
		return m->b && m->b->replica && ha_replica_agrees(m->b->replica) ? INT64_MAX : m->slave_confirm;
	role_log(&m->role, log_end);
	return role_confirm(&m->role);
}

int32_t member_need(const struct member *m)
{
	if (role_puts(&m->role) != ROLE_PUT_OK)
		return 0;
	return role_level(&m->role) == INT64_MAX ? 1 : 2;
}

static void log_end(struct member *m)
{
	if (!m->b || m->ending)
		return;
	m->log_end = m->leads ? ha_log_now(m->b).end : replica_derived(m->b->store);
	if (m->leads)
		role_log(&m->role, m->log_end);
}

static void on_soon(uv_timer_t *timer)
{
	struct member *m = timer->data;

	clock_refresh();
	if (!m->b && !m->stopping)
		start_life(m);
	member_run(m);
}

void member_slave_report(struct member *m, uint64_t conn, int64_t id, bool learner, int64_t acked, bool everything, int64_t caught_ms)
{
	int64_t start = m->epochs.n ? m->epochs.v[m->epochs.n - 1].start : 0;

	log_end(m);
	role_slave_report(&m->role, conn, id, learner, acked, everything, start, caught_ms, clock_mono_ms());
	/* Not from within a report: what follows may end this life. */
	if (m->role.act_take != m->role.act_put)
		uv_timer_start(&m->soon, on_soon, 0, 0);
}

void member_slave_lost(struct member *m, uint64_t conn)
{
	role_slave_lost(&m->role, conn, clock_mono_ms());
	uv_timer_start(&m->soon, on_soon, 0, 0);
}

void member_notified(struct member *m, const struct role_master *master, const struct body_sync_set *set)
{
	role_notified(&m->role, master, set, clock_mono_ms());
	uv_timer_start(&m->soon, on_soon, 0, 0);
}

/* ---- Epochs and the log --------------------------------------------------------------------------------------------------- */

static int begin_epoch(struct member *m, bool whole, int64_t min, int64_t end, struct mq_error *e)
{
	int rc = epoch_begin(&m->epochs, m->to.epoch, whole, min, end, e);

	if (rc < 0)
		return rc;
	rc = member_save_epochs(m, e);
	if (rc == 0)
		log_info("master epoch=%d from=%lld", m->to.epoch, (long long)end);
	return rc;
}

int member_opened(struct member *m, struct mqstore *store, struct mq_error *e)
{
	int64_t min = mqstore_log_min(store), end = mqstore_log_max(store);
	size_t n = m->epochs.n;

	m->log_end = end;
	epoch_cut(&m->epochs, end);
	epoch_forget(&m->epochs, min);
	if (m->leads)
		return begin_epoch(m, m->to_whole, min, end, e);
	return n != m->epochs.n ? member_save_epochs(m, e) : 0;
}

/* ---- Lives ---------------------------------------------------------------------------------------------------------------- */

static void changed(struct member *m, bool ok)
{
	m->change = MEMBER_STAYS;
	log_end(m);
	role_changed(&m->role, ok, clock_mono_ms());
}

/* The life that is has the role that is wanted. */
static void settle_in(struct member *m)
{
	if (m->change == MEMBER_TO_SLAVE)
		ha_replica_switch(m->b->replica, m->to.addr);
	if (m->change != MEMBER_STAYS)
		changed(m, true);
}

static void finish(struct member *m);

static void on_life_ended(void *arg, int rc)
{
	struct member *m = arg;

	m->b = NULL;
	m->ending = false;
	if (rc < 0)
		m->rc = rc;
	clock_refresh();
	if (m->stopping)
		finish(m);
	else
		uv_timer_start(&m->soon, on_soon, 0, 0); /* what ends in this turn has ended then */
}

static int live(struct member *m, struct mq_error *e)
{
	int rc;

	m->conf->brokerRole = m->leads ? ROLE_SYNC_MASTER : ROLE_SLAVE;
	m->conf->brokerId = m->leads ? 0 : m->role.id;
	m->registered = false;
	rc = broker_start(&m->b, m->loop, &m->opt, e);
	if (rc < 0)
		m->b = NULL;
	else if (m->conf->listenPort == 0)
		m->conf->listenPort = broker_port(m->b);
	return rc;
}

/* One after the first. */
static void start_life(struct member *m)
{
	struct mq_error e;

	if (m->stopping || m->b)
		return;
	if (live(m, &e) < 0) {
		log_error("not started as %s: %s; tried again", m->leads ? "master" : "slave", e.text);
		/* An epoch that cannot be begun is asked for again, and what is asked for may be another role then. */
		if (m->change == MEMBER_TO_MASTER) {
			m->leads = false;
			changed(m, false);
		}
		uv_timer_start(&m->soon, on_soon, RETRY_MS, 0);
		return;
	}
	settle_in(m);
	member_run(m);
}

static void turn_to(struct member *m, const struct role_master *to, bool whole, bool leads)
{
	struct mq_error e;

	m->to = *to;
	m->to_whole = whole;
	m->change = leads ? MEMBER_TO_MASTER : MEMBER_TO_SLAVE;
	log_info("role=%s epoch=%d master=%s", leads ? "master" : "slave", to->epoch, to->addr);
	if (m->b && m->leads == leads && !m->ending) {
		if (leads && begin_epoch(m, m->to_whole, mqstore_log_min(m->b->store), mqstore_log_max(m->b->store), &e) < 0) {
			log_error("%s", e.text);
			changed(m, false);
			return;
		}
		settle_in(m);
		return;
	}
	m->leads = leads;
	if (m->b && !m->ending) {
		m->ending = true;
		broker_stop(m->b);
	}
}

/* ---- What the rules want ---------------------------------------------------------------------------------------------------- */

static void write_identity(struct member *m, const struct role_act *a)
{
	struct mq_error e;
	int rc;

	if (a->what == ROLE_WRITE_TEMP)
		rc = member_file_write_temp(m, a->id, a->check, &e);
	else
		rc = member_file_write_identity(m, a->id, &e);
	if (rc < 0)
		log_error("%s", e.text);
	else if (a->what == ROLE_WRITE_IDENTITY)
		log_info("number=%lld in group=%s", (long long)a->id, m->conf->brokerName);
	role_wrote(&m->role, rc == 0, clock_mono_ms());
}

static void say_stuck(struct member *m, const char *why)
{
	if (strcmp(m->stuck, why) != 0)
		log_error("%s", why);
	snprintf(m->stuck, sizeof m->stuck, "%s", why);
}

static void say_set(const struct body_sync_set *set)
{
	struct buf ids = { 0 };

	for (size_t i = 0; i < set->n; i++)
		buf_printf(&ids, i ? ",%lld" : "%lld", (long long)set->id[i]);
	log_info("in sync ids=" MQ_STR_FMT " number=%d", MQ_STR_ARG(buf_view(&ids)), set->epoch);
	buf_free(&ids);
}

static void act(struct member *m, const struct role_act *a)
{
	switch (a->what) {
	case ROLE_ASK:
		member_call_ask(m, a);
		break;
	case ROLE_BEAT:
		log_end(m);
		member_call_beat(m);
		break;
	case ROLE_WRITE_TEMP:
	case ROLE_WRITE_IDENTITY:
		write_identity(m, a);
		break;
	case ROLE_FORGET_TEMP:
		member_file_forget_temp(m);
		break;
	case ROLE_BECOME_MASTER:
		turn_to(m, &a->m, a->whole, true);
		break;
	case ROLE_BECOME_SLAVE:
		turn_to(m, &a->m, false, false);
		break;
	case ROLE_REGISTER:
		m->registered = true;
		m->stuck[0] = '\0';
		m->conf->brokerId = m->leads ? 0 : m->role.id;
		if (m->b)
			register_soon(m->b->reg);
		break;
	case ROLE_SET:
		say_set(&a->set);
		break;
	case ROLE_STUCK:
		say_stuck(m, a->why);
		break;
	}
}

void member_run(struct member *m)
{
	int64_t level = role_level(&m->role);
	enum role_put puts = role_puts(&m->role);
	struct role_act a;
	bool set = false;

	if (m->stopping || !m->begun)
		return;
	while (role_next(&m->role, &a)) {
		act(m, &a);
		set = set || a.what == ROLE_SET;
	}
	if (m->b && !m->ending && m->b->ha && (level != role_level(&m->role) || puts != role_puts(&m->role) || set))
		ha_master_look(m->b->ha);
}

static void promises(struct member *m)
{
	struct role_conf *r = &m->role.conf;
	const struct broker_conf *c = m->conf;

	r->beat_ms = c->brokerHeartbeatInterval;
	r->metadata_ms = c->syncControllerMetadataPeriod;
	r->replicas_ms = c->syncBrokerMetadataPeriod;
	r->check_ms = c->checkSyncStateSetPeriod;
	r->behind_ms = c->haMaxTimeSlaveNotCatchup;
	r->answer_ms = ANSWER_MS;
	r->all_ack = c->allAckInSyncStateSet || c->ackOnTwoMachines;
	r->in_sync = c->inSyncReplicas;
	r->min_in_sync = c->ackOnTwoMachines && c->minInSyncReplicas < 2 ? 2 : c->minInSyncReplicas;
}

static void on_tick(uv_timer_t *timer)
{
	struct member *m = timer->data;

	clock_refresh();
	promises(m);
	log_end(m);
	member_call_tick(m);
	role_tick(&m->role, clock_mono_ms(), clock_wall_ms());
	member_run(m);
}

/* ---- Start and stop --------------------------------------------------------------------------------------------------------- */

static void begin(struct member *m, const struct role_identity *id, int32_t log_epoch)
{
	struct role_conf r = { .seed = (uint32_t)(clock_mono_us() ^ ((int64_t)getpid() << 16)) };
	struct mq_str rest = str_of(m->conf->controllerAddr), piece;
	char *to = m->controllers, *end = m->controllers + sizeof m->controllers;

	while (r.controllers < ROLE_CONTROLLERS_MAX && str_split(&rest, ';', &piece)) {
		piece = str_trim(piece);
		if (!piece.n || (size_t)(end - to) <= piece.n)
			continue;
		r.controller[r.controllers++] = to;
		to += snprintf(to, (size_t)(end - to), MQ_STR_FMT, MQ_STR_ARG(piece)) + 1;
	}
	snprintf(m->addr, sizeof m->addr, "%.*s", ROLE_ADDR - 1, m->b->addr);
	r.addr = m->addr;
	m->role.conf = r;
	promises(m);
	r = m->role.conf;
	role_start(&m->role, &r, id, log_epoch, member_file_same_boot(m), clock_mono_ms());
	m->begun = true;
	member_call_tick(m);
	uv_timer_start(&m->tick, on_tick, TICK_MS, TICK_MS);
}

static void on_closed(uv_handle_t *handle)
{
	struct member *m = handle->data;
	void (*stopped)(void *, int) = m->outer.stopped;
	void *arg = m->outer.stopped_arg;
	int rc = m->rc;
	bool tell = m->begun;

	if (++m->closed < 2)
		return;
	free(m);
	if (tell && stopped)
		stopped(arg, rc);
}

static void on_end(uv_timer_t *timer)
{
	struct member *m = timer->data;

	for (int i = 0; i < m->calls; i++)
		if (m->call[i].c)
			return;
	uv_close((uv_handle_t *)&m->tick, on_closed);
	uv_close((uv_handle_t *)&m->soon, on_closed);
}

/* The broker is gone: so are the connections to controllers, then. */
static void finish(struct member *m)
{
	uv_timer_stop(&m->soon);
	member_call_stop(m);
	uv_timer_start(&m->tick, on_end, END_MS, END_MS);
}

int member_start(struct member **out, uv_loop_t *loop, const struct broker_opt *opt, struct mq_error *e)
{
	struct member *m = mem_alloc(sizeof *m);
	struct role_identity id = { 0 };
	int32_t log_epoch = -1;
	int rc;

	*out = NULL;
	m->loop = loop;
	m->outer = m->opt = *opt;
	m->conf = opt->conf;
	m->opt.member = m;
	m->opt.stopped = on_life_ended;
	m->opt.stopped_arg = m;
	m->role.master.id = -1;
	m->role.level = -1;
	uv_timer_init(loop, &m->tick);
	uv_timer_init(loop, &m->soon);
	m->tick.data = m->soon.data = m;
	rc = member_file_load(m, &id, e);
	if (rc == 0) {
		log_epoch = epoch_last(&m->epochs);
		m->role.id = id.id;
		rc = live(m, e);
	}
	if (rc < 0) {
		uv_close((uv_handle_t *)&m->tick, on_closed);
		uv_close((uv_handle_t *)&m->soon, on_closed);
		return rc;
	}
	begin(m, &id, log_epoch);
	*out = m;
	return 0;
}

void member_stop(struct member *m)
{
	if (m->stopping)
		return;
	m->stopping = true;
	uv_timer_stop(&m->tick);
	uv_timer_stop(&m->soon);
	if (m->b && !m->ending)
		broker_stop(m->b);
	else if (!m->b)
		finish(m);
}
