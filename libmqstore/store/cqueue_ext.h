/* cqueue_ext.h: what a consume queue knows of a message beyond its entry: consumequeue_ext, one run of files beside each queue.
 *
 * An entry whose tags code is an address (below every 32-bit number) has a unit there: the tags code proper, the store time, and the
 * bits of the SQL filters that the message passes.  Units only save looking at the record: whoever does not find one, or not yet,
 * looks at the record instead.  So they are never synced, and none is ever overwritten while an entry may point to it.
 *
 * Units gather in memory and are written before the entries that point to them.  Owner thread only.
 *
 *	unit, big-endian: i16 size of it all (20 + bits) | i64 tags code | i64 store time | i16 bytes of bits | bits
 *	address = position + INT64_MIN; a unit never crosses files: where one does not fit with 4 bytes to spare stands i16 -1, and
 *	the next begins the next file.
 *
 * Source: the peer's ConsumeQueueExt. */
#ifndef STORE_CQUEUE_EXT_H
#define STORE_CQUEUE_EXT_H

#include "cqueues.h"

enum { CQ_UNIT = 20 };

struct cqueue_unit {
	int64_t tags_code, store_ms;
	struct mq_str bits;     /* a view, good until another unit of any queue is looked at or put */
};

static inline bool cqueue_ext_is_address(int64_t tags_code) { return tags_code < INT32_MIN; }

/* Bytes of the unit at p, of which `room` can be read; 0: none stands there. */
static inline int64_t cqueue_unit_size(const uint8_t *p, int64_t room)
{
	int64_t n = room < CQ_UNIT ? 0 : (int16_t)be16(p);

	return n >= CQ_UNIT && n <= room && (int16_t)be16(p + 18) == n - CQ_UNIT ? n : 0;
}

/* A new unit; returns its address, or tags_code when there can be none (the disk is full: told in the log). */
int64_t cqueue_ext_put(struct mqstore_queue *q, int64_t tags_code, int64_t store_ms, struct mq_str bits);
bool cqueue_ext_get(struct mqstore_queue *q, int64_t address, struct cqueue_unit *u);
/* The tags code proper of an entry; its address if there is no unit. */
int64_t cqueue_ext_tags(struct mqstore_queue *q, int64_t tags_code);

/* Write what waits in memory. */
void cqueue_ext_write_out(struct mqstore_queue *q);
/* Remove files that end before the unit of this address, never the last one. */
void cqueue_ext_trim(struct mqstore_queue *q, int64_t address);
/* Remove all files and the directory; 0 or -errno. */
int cqueue_ext_remove(const struct mqstore_queue *q);
/* Forget what is known of the files. */
void cqueue_ext_free(struct mqstore_queue *q);

#endif
