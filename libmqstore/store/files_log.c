/* files_log.c: the log as pieces that leave nothing out: records, blanks, damage, what is behind the end. */
#include "../base/err.h"
#include "files.h"
#include "scan.h"

struct pieces {
	struct mqstore_files *f;
	mqstore_piece_cb *cb;
	void *arg;
	int64_t at;             /* everything before it was told */
	int rc;
};

/* Bytes that files have in [from, to). */
static int64_t bytes_between(struct mqstore_files *f, int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = 0; i < f->log.run.n; i++) {
		const struct segment *g = f->log.run.v[i];
		int64_t lo = g->start > from ? g->start : from, hi = g->start + g->size < to ? g->start + g->size : to;

		sum += hi > lo ? hi - lo : 0;
	}
	return sum;
}

static void tell(struct pieces *p, enum mqstore_piece_kind kind, int64_t to)
{
	struct mqstore_piece piece = { .kind = kind, .from = p->at, .to = to };

	if (to <= p->at || p->rc)
		return;
	piece.bytes = bytes_between(p->f, p->at, to);
	p->at = to;
	p->rc = p->cb(p->arg, &piece);
}

static bool blank_at(struct mqstore_files *f, int64_t off)
{
	int64_t n;
	const uint8_t *b = commitlog_view(&f->log, off, &n);

	return b && n >= BLANK_BYTES && be32(b + 4) == RECORD_MAGIC_BLANK && be32(b) == n;
}

/* Behind the end, segment by segment. */
static void rest(struct pieces *p)
{
	struct mqstore_files *f = p->f;

	while (p->rc == 0 && p->at < f->log.max) {
		struct segment *g = segments_at(&f->log.run, p->at);
		int64_t end, last;

		if (!g) {
			g = segments_behind(&f->log.run, p->at + 1);
			tell(p, MQSTORE_HOLE, g ? g->start : f->log.max);
			continue;
		}
		end = g->start + g->size;
		/* The segment behind it was not made any more. */
		if (blank_at(f, p->at)) {
			tell(p, MQSTORE_BLANK, end);
			continue;
		}
		if (scan_rubbish(&f->log, p->at, end, &last) > 0)
			tell(p, MQSTORE_TORN, last);
		tell(p, MQSTORE_FREE, end);
	}
}

int mqstore_files_log(struct mqstore_files *f, mqstore_piece_cb *cb, void *arg, struct mq_error *err)
{
	struct pieces p = { f, cb, arg, segments_min(&f->log.run), 0 };
	struct scan sc = {
		.log = &f->log, .off = p.at, .end = p.at, .last_off = -1, .check_crc = true, .torn = f->abort || f->in_use,
		.live = f->in_use,
	};
	struct mqstore_piece piece = { .kind = MQSTORE_RECORD };
	enum scan_kind kind;

	while (p.rc == 0 && (kind = scan_next(&sc)) != SCAN_END) {
		if (kind == SCAN_FAILED)
			return err_sys(err, f->log.run.map_rc, "map a segment of '%s'", f->log_dir);
		if (kind == SCAN_RECORD) {
			tell(&p, MQSTORE_BLANK, sc.m.log_off);
			if (p.rc)
				break;
			piece.from = sc.m.log_off;
			piece.to = p.at = piece.from + sc.m.size;
			piece.bytes = sc.m.size;
			piece.record = sc.record;
			piece.m = sc.m;
			p.rc = cb(arg, &piece);
		} else {
			tell(&p, MQSTORE_BLANK, sc.from);
			tell(&p, kind == SCAN_HOLE ? MQSTORE_HOLE : MQSTORE_DAMAGED, sc.to);
		}
		if (f->log.run.mapped > f->log.run.max_maps)
			segments_shed(&f->log.run);
	}
	if (p.rc == 0) {
		/* A blank of which the segment behind is there. */
		tell(&p, MQSTORE_BLANK, sc.end);
		rest(&p);
	}
	return p.rc;
}
