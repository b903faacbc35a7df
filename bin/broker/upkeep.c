/* upkeep.c: timers that keep the store and the tables in order. */
#include "upkeep.h"
#include "acl.h"
#include "broker.h"
#include "filter_table.h"
#include "group_table.h"
#include "hold.h"
#include "lock_table.h"
#include "offset_table.h"
#include "order_table.h"
#include "mode_table.h"
#include "pop_hold.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <stdlib.h>

#define LOG_MODULE "upkeep"

enum { TEND_MS = 200, TEND_SOON_MS = 1 };

struct upkeep {
	struct broker *b;
	uv_timer_t tend, trim, save, acl;
	int closed;
	bool full;              /* as last said in the log */
	char trouble[256];      /* of the last trim, said once */
};

static void on_tend(uv_timer_t *timer)
{
	struct upkeep *u = timer->data;

	uv_timer_start(&u->tend, on_tend, mqstore_tend(u->b->store) ? TEND_SOON_MS : TEND_MS, 0);
}

static void say_if_full(struct upkeep *u)
{
	char why[300];
	bool full = mqstore_why_not_writable(u->b->store, why, sizeof why);

	if (full && !u->full)
		log_error("no messages are taken: %s", why);
	else if (!full && u->full)
		log_warn("there is room again: messages are taken");
	u->full = full;
}

static void on_trim(uv_timer_t *timer)
{
	struct upkeep *u = timer->data;
	struct mq_error e = { 0 };

	clock_refresh();
	lock_table_sweep(u->b->locks, clock_mono_ms());
	if (mqstore_trim(u->b->store, clock_now_ms(), false, &e) < 0) {
		if (strncmp(u->trouble, e.text, sizeof u->trouble - 1))
			log_error("remove old segments: %s; tried again every %d ms", e.text, u->b->conf->cleanResourceInterval);
		snprintf(u->trouble, sizeof u->trouble, "%.*s", (int)sizeof u->trouble - 1, e.text);
	} else
		u->trouble[0] = 0;
	say_if_full(u);
	uv_timer_start(&u->trim, on_trim, u->b->conf->cleanResourceInterval, 0);
}

static void on_save(uv_timer_t *timer)
{
	struct upkeep *u = timer->data;

	clock_refresh();
	offset_table_save(u->b->offsets);
	/* These are saved when they change; here again if that failed. */
	table_file_save(&u->b->topics->file);
	table_file_save(&u->b->groups->file);
	table_file_save(&u->b->filters->file);
	table_file_save(&u->b->orders->file);
	table_file_save(&u->b->modes->file);
	uv_timer_start(&u->save, on_save, u->b->conf->flushConsumerOffsetInterval, 0);
}

static void on_acl(uv_timer_t *timer)
{
	struct upkeep *u = timer->data;

	acl_look(u->b->acl);
}

int upkeep_clean_queues(struct broker *b, struct mq_error *e)
{
	int rc;

	hold_wake_all(b->hold);
	pop_hold_wake_all(b->pops);
	topic_table_forget_queues(b->topics);
	rc = mqstore_clean_queues(b->store, e);
	broker_want_turn(b);
	return rc;
}

struct upkeep *upkeep_new(struct broker *b)
{
	struct upkeep *u = mem_alloc(sizeof *u);

	u->b = b;
	uv_timer_init(b->loop, &u->tend);
	uv_timer_init(b->loop, &u->trim);
	uv_timer_init(b->loop, &u->save);
	uv_timer_init(b->loop, &u->acl);
	u->tend.data = u->trim.data = u->save.data = u->acl.data = u;
	uv_timer_start(&u->tend, on_tend, TEND_MS, 0);
	uv_timer_start(&u->trim, on_trim, b->conf->cleanResourceInterval, 0);
	uv_timer_start(&u->save, on_save, b->conf->flushConsumerOffsetInterval, 0);
	if (b->acl)
		uv_timer_start(&u->acl, on_acl, ACL_LOOK_MS, ACL_LOOK_MS);
	return u;
}

void upkeep_stop(struct upkeep *u)
{
	uv_timer_stop(&u->tend);
	uv_timer_stop(&u->trim);
	uv_timer_stop(&u->save);
	uv_timer_stop(&u->acl);
}

static void on_closed(uv_handle_t *handle)
{
	struct upkeep *u = handle->data;

	if (++u->closed == 4)
		free(u);
}

void upkeep_free(struct upkeep *u)
{
	if (!u)
		return;
	uv_close((uv_handle_t *)&u->tend, on_closed);
	uv_close((uv_handle_t *)&u->trim, on_closed);
	uv_close((uv_handle_t *)&u->save, on_closed);
	uv_close((uv_handle_t *)&u->acl, on_closed);
}
