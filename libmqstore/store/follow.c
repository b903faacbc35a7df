/* follow.c: a read-only handle beside a writer: take in what was written since (mqstore_refresh). */
#include "../base/clock.h"
#include "../base/log.h"
#include "derive.h"
#include "scan.h"

#define LOG_MODULE "store"
enum { DIRECTORIES_EVERY_MS = 5000 };

static int follow_files(void *arg, struct mqstore_queue *q)
{
	struct mqstore *s = arg;

	/* What was derived in memory is in the files by now. */
	if (q->buf)
		cqueue_follow(q, s->log.max);
	return 0;
}

/* Names change seldom and there may be many. */
static void look_around(struct mqstore *s)
{
	int64_t now = clock_mono_us() / 1000;

	if (now - s->looked_ms < DIRECTORIES_EVERY_MS)
		return;
	s->looked_ms = now;
	cqueues_refresh(&s->queues);
	cqueues_each(&s->queues, follow_files, s);
	if (s->index)
		index_refresh(s->index);
}

int mqstore_refresh(struct mqstore *s)
{
	struct scan sc = {
		.log = &s->log, .check_crc = true, .torn = true, .live = true, .quick = true,
		.last_off = s->log.last_off, .last_ms = s->log.last_ms,
	};
	enum scan_kind kind;
	int rc;

	if (!s->opt.read_only)
		return 0;
	rc = segments_refresh(&s->log.run);
	if (rc < 0)
		return rc;
	sc.off = sc.end = s->log.max;
	if (s->log.run.n && sc.off < segments_min(&s->log.run))
		sc.off = sc.end = segments_min(&s->log.run);
	s->log.max = segments_end(&s->log.run);
	while (rc >= 0 && (kind = scan_next(&sc)) != SCAN_END) {
		if (kind == SCAN_FAILED)
			rc = s->log.run.map_rc;
		else if (kind == SCAN_RECORD)
			rc = derive_again(s, &sc.m, NULL, true);
		else
			store_note_damage(s, sc.from, sc.to, kind == SCAN_HOLE);
	}
	s->log.max = s->log.flushed = sc.end;
	s->log.last_off = sc.last_off;
	s->log.last_ms = sc.last_ms;
	s->queues.log_end_at_open = sc.end;
	look_around(s);
	return rc < 0 ? rc : 0;
}
