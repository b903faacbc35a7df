/* ha_cut.c: a slave gives up what its master has not, and keeps a copy. */
#include "ha_replica_private.h"
#include "flush.h"
#include "ha_sync.h"
#include "hold.h"
#include "member.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <store/replica.h>
#include <stdlib.h>
#include <time.h>

#define LOG_MODULE "ha"

/* The newest record that begins before `end`; -1: none. */
int64_t ha_cut_last_before(struct ha_replica *r, int64_t end)
{
	int64_t *v, *record, last = -1;
	size_t n = replica_segments(r->b->store, &v), k;

	while (n > 0 && last < 0) {
		if (v[--n] >= end)
			continue;
		k = replica_records(r->b->store, v[n], &record);
		while (k > 0 && record[k - 1] >= end)
			k--;
		last = k ? record[k - 1] : -1;
		free(record);
	}
	free(v);
	return last;
}

/* A place for what is cut: ROOT/cut/20260131-235959-OFFSET. */
static void cut_dir(struct ha_replica *r, int64_t end, char *out, size_t cap)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	char when[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
	snprintf(out, cap, "%s/cut/%s-%lld", r->b->conf->storePathRootDir, when, (long long)(end < 0 ? 0 : end));
}

void ha_cut_run(struct ha_replica *r)
{
	int64_t was = mqstore_log_max(r->b->store), saved;
	struct mq_error e;
	char dir[4096];

	if (!flush_idle(r->b->flush))
		return; /* soon */
	ha_sync_cuts(r->sync);
	cut_dir(r, r->cut_end, dir, sizeof dir);
	if (replica_cut(r->b->store, r->cut_end, r->cut_last, dir, &saved, &e) < 0) {
		err_wrap(&e, "give up what the master has not");
		ha_replica_lost(r, e.text, HA_REST_MS);
		return;
	}
	if (r->b->opt.member) {
		epoch_cut(member_epochs_change(r->b->opt.member), r->cut_end < 0 ? 0 : r->cut_end);
		if (member_save_epochs(r->b->opt.member, &e) < 0) {
			ha_replica_lost(r, e.text, HA_REST_MS);
			return;
		}
	}
	r->b->metrics.ha_cuts++;
	log_warn("cut: the master does not have it from=%lld to=%lld bytes=%lld saved=%s", (long long)(r->cut_end < 0 ? 0 : r->cut_end),
		 (long long)was, (long long)saved, dir);
	hold_wake_all(r->b->hold);
	broker_want_turn(r->b);
	ha_follower_cut(&r->f, clock_mono_ms());
	if (r->b->opt.member)
		ha_hello_decide(r);
}

