/* role.c: a broker's way to its role, and what is said to and by the controller.  The sync set is in role_set.c. */
#include "role_private.h"
#include <base/str.h>

#include <stdio.h>

enum { FIND_MS = 500, RETRY_MS = 1000, STUCK_MS = 5000, RETURN_MS = 12000 };

/* ---- Actions --------------------------------------------------------------------------------------------------------- */

struct role_act *role_do(struct role *r, enum role_do what)
{
	struct role_act *a = &r->act[r->act_put++ % ROLE_ACTS];

	*a = (struct role_act){ .what = what, .id = r->id, .m = r->master };
	return a;
}

bool role_next(struct role *r, struct role_act *a)
{
	if (r->act_take == r->act_put)
		return false;
	/* Who does not take them loses the oldest; all of them come again. */
	if (r->act_put - r->act_take > ROLE_ACTS)
		r->act_take = r->act_put - ROLE_ACTS;
	*a = r->act[r->act_take++ % ROLE_ACTS];
	return true;
}

static void stuck(struct role *r, const char *why)
{
	snprintf(role_do(r, ROLE_STUCK)->why, sizeof(r->act[0].why), "%s", why);
	r->next_ms = r->now + STUCK_MS;
}

uint32_t role_ask(struct role *r, int32_t code, struct role_act **act)
{
	struct role_act *a = role_do(r, ROLE_ASK);

	a->code = code;
	a->seq = ++r->seq ? r->seq : ++r->seq;
	snprintf(a->to, sizeof(a->to), "%s", r->leader);
	if (act)
		*act = a;
	return a->seq;
}

static void ask_for_life(struct role *r, int32_t code, struct role_act **act)
{
	r->life_code = code;
	r->life_seq = role_ask(r, code, act);
	r->life_ms = r->now;
	r->life_due = r->now + r->conf.answer_ms;
}

/* ---- Which role ------------------------------------------------------------------------------------------------------ */

static void change(struct role *r)
{
	if (r->changing) {
		r->told = true;
		return;
	}
	r->changing = true;
	r->told = false;
	role_set_begin(r);
	role_do(r, r->master.id == r->id ? ROLE_BECOME_MASTER : ROLE_BECOME_SLAVE)->whole = r->whole;
}

static void take_nothing(struct role *r)
{
	if (r->is == ROLE_IS_MASTER)
		r->fenced = true;
	role_set_level(r);
}

/* This broker was master of the epoch when it ended, and has lost what others may have of it.  Who does not say that it lives is
 * replaced, if anybody else is there. */
static bool waits_for_others(struct role *r)
{
	if (r->whole)
		return false;
	if (!r->return_ms)
		r->return_ms = r->now + RETURN_MS;
	return r->now < r->return_ms;
}

/* The controller says who is master. */
static void told(struct role *r, const struct role_master *m, const struct body_sync_set *set)
{
	bool moved = m->epoch == r->master.epoch && m->id == r->master.id && strcmp(m->addr, r->master.addr) != 0;

	if (m->epoch < r->master.epoch || r->id == 0)
		return;
	if (m->id < 0) {
		if (m->epoch == r->master.epoch && r->master.id >= 0)
			return;
		r->master = *m;
		r->beats = true;
		take_nothing(r);
		r->phase = ROLE_ELECTING;
		return;
	}
	if (m->id == r->id && m->epoch < r->log_epoch) {
		stuck(r, "the controller names an older epoch than the log here knows: its state was lost");
		return;
	}
	if (m->id == r->id && m->epoch == r->log_epoch && m->epoch != r->master.epoch && waits_for_others(r)) {
		r->phase = ROLE_RETURNING;
		r->beats = false;
		return;
	}
	r->phase = ROLE_RUNNING;
	r->beats = true;
	if (m->epoch == r->master.epoch && m->id == r->master.id && !(moved && m->id != r->id)) {
		role_set_told(r, set);
		return;
	}
	if (m->epoch == r->master.epoch && r->master.id >= 0 && m->id != r->master.id) {
		stuck(r, "the controller names two masters of one epoch: its state has been lost or mixed up");
		return;
	}
	r->fenced = true;
	r->master = *m;
	r->fresh = *set;
	change(r);
}

void role_changed(struct role *r, bool ok, int64_t now)
{
	r->now = now;
	if (!r->changing)
		return;
	r->changing = false;
	if (!ok || r->told) {
		/* It is begun again with the next tick, for the newest master. */
		r->told = true;
		r->next_ms = ok ? now : now + RETRY_MS;
		return;
	}
	if (r->master.id < 0)
		return;
	r->is = r->master.id == r->id ? ROLE_IS_MASTER : ROLE_IS_SLAVE;
	r->fenced = false;
	if (r->is == ROLE_IS_MASTER)
		role_set_master(r);
	role_set_level(r);
	r->registered = true;
	role_do(r, ROLE_REGISTER);
}

void role_notified(struct role *r, const struct role_master *m, const struct body_sync_set *set, int64_t now)
{
	r->now = now;
	if (r->phase >= ROLE_RETURNING)
		told(r, m, set);
}

/* ---- What is asked next ---------------------------------------------------------------------------------------------- */

static void forget_leader(struct role *r)
{
	r->leader[0] = '\0';
	r->probe = (r->probe + 1) % r->conf.controllers;
	r->next_ms = r->now;
}

static void ask_next(struct role *r)
{
	struct role_act *a;

	if (!r->leader[0] || r->now >= r->leader_ms) {
		ask_for_life(r, REQ_CONTROLLER_GET_METADATA_INFO, &a);
		snprintf(a->to, sizeof(a->to), "%s", r->conf.controller[r->probe]);
		return;
	}
	switch (r->phase) {
	case ROLE_NUMBERING:
		ask_for_life(r, REQ_CONTROLLER_GET_NEXT_BROKER_ID, NULL);
		break;
	case ROLE_APPLYING:
		ask_for_life(r, REQ_CONTROLLER_APPLY_BROKER_ID, &a);
		a->id = r->temp_id;
		snprintf(a->check, sizeof(a->check), "%s", r->temp_check);
		break;
	case ROLE_WRITING:
		break;
	case ROLE_REGISTERING:
		ask_for_life(r, REQ_CONTROLLER_REGISTER_BROKER, NULL);
		break;
	case ROLE_ELECTING:
		/* An election weighs what brokers say of themselves, so that is said first. */
		role_do(r, ROLE_BEAT);
		ask_for_life(r, REQ_CONTROLLER_ELECT_MASTER, NULL);
		break;
	case ROLE_RETURNING:
	case ROLE_RUNNING:
		if (r->now >= r->replicas_ms)
			ask_for_life(r, REQ_CONTROLLER_GET_REPLICA_INFO, NULL);
		break;
	}
}

static void write_temp(struct role *r, int64_t id, int64_t wall_ms)
{
	struct role_act *a;

	r->temp_id = id;
	snprintf(r->temp_check, sizeof(r->temp_check), "%.250s;%lld", r->conf.addr, (long long)wall_ms);
	r->phase = ROLE_WRITING;
	a = role_do(r, ROLE_WRITE_TEMP);
	a->id = id;
	snprintf(a->check, sizeof(a->check), "%s", r->temp_check);
}

void role_wrote(struct role *r, bool ok, int64_t now)
{
	r->now = now;
	if (r->phase != ROLE_WRITING)
		return;
	if (!ok) {
		/* The number is asked for again with the same check code, or a new one is taken. */
		r->phase = r->id ? ROLE_APPLYING : ROLE_NUMBERING;
		r->id = 0;
		r->next_ms = now + RETRY_MS;
		return;
	}
	r->phase = r->id ? ROLE_REGISTERING : ROLE_APPLYING;
}

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static int64_t pause_ms(struct role *r)
{
	r->dice = r->dice * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((r->dice >> 33) % 1000);
}

/* Answers that come from somebody who does not lead, or do not come. */
static bool is_elsewhere(int32_t code)
{
	return code == ROLE_NO_ANSWER || code == RESP_CONTROLLER_NOT_LEADER;
}

static void on_applied(struct role *r, int32_t code)
{
	if (code == RESP_SUCCESS) {
		r->id = r->temp_id;
		r->phase = ROLE_WRITING;
		role_do(r, ROLE_WRITE_IDENTITY);
	} else if (code == RESP_CONTROLLER_BROKER_ID_INVALID) {
		role_do(r, ROLE_FORGET_TEMP);
		r->temp_id = 0;
		r->phase = ROLE_NUMBERING;
		r->next_ms = r->now + pause_ms(r);
	} else {
		r->next_ms = r->now + RETRY_MS;
	}
}

static void on_life(struct role *r, const struct role_answer *a, int64_t wall_ms)
{
	int32_t code = r->life_code;

	r->next_ms = r->now;
	if (code == REQ_CONTROLLER_GET_METADATA_INFO) {
		if (a->code == RESP_SUCCESS && a->leader[0]) {
			snprintf(r->leader, sizeof(r->leader), "%s", a->leader);
			r->leader_ms = r->now + r->conf.metadata_ms;
		} else {
			forget_leader(r);
			r->next_ms = r->now + FIND_MS;
		}
		return;
	}
	if (is_elsewhere(a->code)) {
		forget_leader(r);
		return;
	}
	switch (code) {
	case REQ_CONTROLLER_GET_NEXT_BROKER_ID:
		if (a->code == RESP_SUCCESS && a->next_id > 0)
			write_temp(r, a->next_id, wall_ms);
		else
			r->next_ms = r->now + RETRY_MS;
		break;
	case REQ_CONTROLLER_APPLY_BROKER_ID:
		on_applied(r, a->code);
		break;
	case REQ_CONTROLLER_REGISTER_BROKER:
		if (a->code != RESP_SUCCESS) {
			stuck(r, "the controller does not know this broker's number: its state was lost or cleaned; remove the file "
				 "brokerIdentity to take a new number");
			break;
		}
		r->phase = ROLE_ELECTING;
		r->beats = true;
		if (a->master.id >= 0)
			told(r, &a->master, &a->set);
		break;
	case REQ_CONTROLLER_ELECT_MASTER:
		if ((a->code == RESP_SUCCESS || a->code == RESP_CONTROLLER_MASTER_STILL_EXIST) && a->master.id >= 0)
			told(r, &a->master, &a->set);
		if (r->phase == ROLE_ELECTING)
			r->next_ms = r->now + RETRY_MS;
		break;
	case REQ_CONTROLLER_GET_REPLICA_INFO:
		r->replicas_ms = r->now + (r->phase == ROLE_RETURNING ? RETRY_MS : r->conf.replicas_ms);
		if (a->code == RESP_SUCCESS) {
			told(r, &a->master, &a->set);
			if (a->master.epoch == r->master.epoch)
				role_set_unchanged(r, &a->set, r->life_ms);
		} else if (a->code == RESP_CONTROLLER_BROKER_METADATA_NOT_EXIST) {
			r->phase = ROLE_REGISTERING;
		}
		break;
	}
}

void role_answer(struct role *r, const struct role_answer *a, int64_t now, int64_t wall_ms)
{
	r->now = now;
	if (r->life_seq && a->seq == r->life_seq) {
		r->life_seq = 0;
		on_life(r, a, wall_ms);
		if (r->next_ms <= now && !r->life_seq)
			ask_next(r);
	} else if (r->set_seq && a->seq == r->set_seq) {
		r->set_seq = 0;
		if (role_set_answered(r, a))
			r->replicas_ms = now;
		if (is_elsewhere(a->code) && !r->life_seq)
			forget_leader(r);
	}
}

/* ---- Time ------------------------------------------------------------------------------------------------------------ */

void role_tick(struct role *r, int64_t now, int64_t wall_ms)
{
	r->now = now;
	if (r->life_seq && now >= r->life_due)
		role_answer(r, &(struct role_answer){ .seq = r->life_seq, .code = ROLE_NO_ANSWER, .master.id = -1 }, now, wall_ms);
	if (r->set_seq && now >= r->set_due)
		role_answer(r, &(struct role_answer){ .seq = r->set_seq, .code = ROLE_NO_ANSWER, .master.id = -1 }, now, wall_ms);
	if (r->beats && r->id && now >= r->beat_ms) {
		r->beat_ms = now + r->conf.beat_ms;
		role_do(r, ROLE_BEAT);
	}
	if (r->told && !r->changing && now >= r->next_ms && r->master.id >= 0)
		change(r);
	if (!r->life_seq && now >= r->next_ms)
		ask_next(r);
	role_set_tick(r);
}

void role_start(struct role *r, const struct role_conf *conf, const struct role_identity *disk, int32_t log_epoch, bool whole,
                int64_t now)
{
	*r = (struct role){ .conf = *conf, .id = disk->id, .temp_id = disk->temp_id, .log_epoch = log_epoch, .whole = whole, .now = now,
			    .next_ms = now, .fenced = true, .master = { .id = -1 }, .dice = conf->seed };
	snprintf(r->temp_check, sizeof(r->temp_check), "%s", disk->temp_check);
	r->phase = r->id ? ROLE_REGISTERING : r->temp_id ? ROLE_APPLYING : ROLE_NUMBERING;
	r->level = -1;
}
