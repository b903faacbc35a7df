/* ha_where.c: under a controller a master says itself where it replicates. */
#include "ha_replica_private.h"
#include "ha_sync.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "ha"

enum { ANSWER_MS = 3000, AGAIN_MS = 200 };      /* for the answer; until it is asked again if it cannot say yet */

struct ha_where {
	struct ha_replica *r;   /* NULL: it is gone */
	unsigned asked;
};

static void found(struct ha_replica *r, struct mq_str ha)
{
	char addr[sizeof r->ha_addr];

	snprintf(addr, sizeof addr, MQ_STR_FMT, MQ_STR_ARG(ha));
	if (ha_follower_master(&r->f, true, clock_mono_ms()))
		ha_replica_hang_up(r);
	snprintf(r->ha_addr, sizeof r->ha_addr, "%s", addr);
	log_info("master ha=%s addr=%s", r->ha_addr, r->addr);
	ha_replica_act(r);
}

static void on_where(void *arg, int rc, struct frame *f)
{
	struct ha_where *w = arg;
	struct ha_replica *r = w->r;
	struct mq_str ha = { 0 };

	if (rc == 0 && f->code == RESP_SUCCESS)
		ha = frame_get(f, "masterHaAddress");
	if (r)
		r->where = NULL;
	if (r && !r->stopped && w->asked == r->asked) {
		r->asking = false;
		r->ask_ms = clock_mono_ms() + AGAIN_MS;
		if (ha.n)
			found(r, ha);
		else if (rc < 0)
			ha_replica_say(r, "the master does not say where it replicates");
	}
	free(w);
}

void ha_where_ask(struct ha_replica *r)
{
	struct conn *c = ha_sync_conn(r->sync);
	struct frame_out o;

	if (!c || r->asking || r->where || r->f.phase != HA_HOMELESS || !*r->addr || clock_mono_ms() < r->ask_ms)
		return;
	r->asking = true;
	r->where = mem_alloc(sizeof *r->where);
	*r->where = (struct ha_where){ r, ++r->asked };
	conn_call(c, &o, REQ_EXCHANGE_BROKER_HA_INFO, FRAME_JSON, ANSWER_MS, on_where, r->where);
	frame_end(&o);
	conn_kick(c);
}

void ha_where_forget(struct ha_replica *r)
{
	r->asked++;
	r->asking = false;
	r->ask_ms = 0;
}

void ha_where_free(struct ha_replica *r)
{
	if (r->where)
		r->where->r = NULL;
}
