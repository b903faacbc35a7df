/* scan.h: from record to record through the log, over blanks, holes and damage.
 *
 * The one place that decides whether bytes in the log are a record.  Damage in the middle does not end the log: when something
 * is no record, the next place that is one is looked for (right magic, its own log offset, sizes and checksum in order, not
 * older than what came before), and only if there is none the log ends there. */
#ifndef STORE_SCAN_H
#define STORE_SCAN_H

#include "commitlog.h"

enum scan_kind {
	SCAN_END,       /* nothing more; `end` is where the next record would go */
	SCAN_RECORD,    /* m and record are filled */
	SCAN_HOLE,      /* [from, to): a segment is missing */
	SCAN_DAMAGED,   /* [from, to): no records, but there are some behind */
	SCAN_FAILED,    /* a file could not be mapped: log->run.map_rc says why; what is there is not known */
};

struct scan {
	struct commitlog *log;
	int64_t off;            /* where to look next */
	bool check_crc;         /* of every body; in doubt it is checked anyway */
	bool torn;              /* the last stop was not clean: a record that ends in zeros at the very end was not written whole */
	bool live;              /* somebody may be writing: what is no record yet may be one in a moment */
	bool quick;             /* zeros are the end: do not look behind them */
	int64_t end;            /* behind the last record seen; start of the segment behind it if that one ended with a blank */
	int64_t last_off, last_ms; /* start and store time of the last record seen; -1, 0 */
	struct mq_message m;
	struct mq_str record;
	int64_t from, to;
};

/* `log->max` must be where the search shall stop at the latest.  Changes nothing. */
enum scan_kind scan_next(struct scan *sc);

/* Is there a whole record at `off`, with a right checksum?  Returns its size and fills m, or 0. */
int32_t scan_at(struct commitlog *log, int64_t off, bool check_crc, struct mq_message *m);

/* Bytes other than zero in [from, to): how many, and behind the last one. */
int64_t scan_rubbish(struct commitlog *log, int64_t from, int64_t to, int64_t *last);

#endif
