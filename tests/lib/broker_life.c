/* broker_life.c: see broker_life.h. */
#include "broker_life.h"
#include "base/clock.h"
#include "tempdir.h"
#include "mq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

int life_make(struct life *l)
{
	return tempdir_make(&l->dir);
}

void life_end(struct life *l)
{
	if (l->k)
		life_stop(l);
	clock_shift_wall(-l->shifted);
	tempdir_remove(&l->dir);
}

void life_start(struct life *l, const char *const *props)
{
	life_start_in(l, l->dir, props);
}

void life_start_in(struct life *l, const char *dir, const char *const *props)
{
	struct mq_error e = { 0 };

	l->k = broker_kit_start_in(dir, props, &e);
	if (!l->k)
		fail_msg("%s", e.text);
	l->c = broker_kit_dial(l->k, false);
}

void life_stop(struct life *l)
{
	broker_kit_stop(l->k);
	l->k = NULL;
}

struct broker *life_broker(const struct life *l)
{
	return broker_kit_broker(l->k);
}

void life_shift(struct life *l, int64_t ms)
{
	clock_shift_wall(ms);
	l->shifted += ms;
}
