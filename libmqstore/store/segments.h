/* segments.h: an ordered run of segments in one directory: load, find, roll, cut, drop.
 *
 * All of one size; sorted by start.  Holes between neighbours are allowed (a file was lost or could not be removed) and are
 * for readers to step over.  Files are mapped when first looked at. */
#ifndef STORE_SEGMENTS_H
#define STORE_SEGMENTS_H

#include "segment.h"

struct segments {
	char *dir;
	int64_t size;           /* of each file */
	int64_t step;           /* blocks are reserved in steps of this */
	bool write;
	struct segment **v;     /* n of them, by start */
	size_t n, cap;
	size_t mapped, max_maps;
	int64_t keep;           /* segments that reach beyond this stay mapped: they are being written or flushed */
	int map_rc;             /* the last failure to map a file, until somebody sets it to 0 */
	struct segment *hint;   /* where the last look-up ended */
	struct segment *ahead;  /* the next one, made before it is needed; not part of the run yet */
	struct segment **doomed;/* taken out of the run but not yet removed: unmapping a large file takes long */
	size_t doomed_n;
};

/* Look at what is there.  Foreign names are passed over with a warning.  A last file of length 0 is removed (read-only: passed
 * over); any other length than `size` is MQ_EMISMATCH, unless adopt, which takes the length of the first file.  A missing
 * directory is an empty run. */
int segments_open(struct segments *run, const char *dir, int64_t size, bool write, bool adopt, struct mq_error *err);
void segments_close(struct segments *run);

/* The segment that holds `off`, or NULL. */
struct segment *segments_at(struct segments *run, int64_t off);
/* The first segment that starts at or behind `off`, or NULL. */
struct segment *segments_behind(struct segments *run, int64_t off);
static inline struct segment *segments_last(const struct segments *run) { return run->n ? run->v[run->n - 1] : NULL; }
static inline int64_t segments_min(const struct segments *run) { return run->n ? run->v[0]->start : 0; }
static inline int64_t segments_end(const struct segments *run) { return run->n ? run->v[run->n - 1]->start + run->size : 0; }

/* Mapped, or NULL if it cannot be. */
uint8_t *segments_bytes(struct segments *run, struct segment *g);

/* A new last segment that starts at `start` (taken from `ahead` if that fits). */
int segments_add(struct segments *run, int64_t start, struct segment **g);
/* Make the segment at `start` now so that segments_add() will find it. */
int segments_make_ahead(struct segments *run, int64_t start);
/* Remove the one made ahead. */
void segments_drop_ahead(struct segments *run);
/* Remove every segment that starts beyond `end`. Returns how many, or -errno. */
int segments_cut(struct segments *run, int64_t end);
/* Take segment i out of the run and remove its name.  Its memory and blocks go with segments_bury(), which another thread may
 * do with what segments_take_doomed() gave it.  -errno: the file could not be removed and stays in the run. */
int segments_drop(struct segments *run, size_t i);
struct segment **segments_take_doomed(struct segments *run, size_t *n);
void segments_bury(struct segment **v, size_t n);

/* Unmap what was not looked at for long when more than `max_maps` are mapped. */
void segments_shed(struct segments *run);
/* Read-only: take in files made since, leave out those that are gone. */
int segments_refresh(struct segments *run);

#endif
