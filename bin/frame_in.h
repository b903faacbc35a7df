/* frame_in.h: where one message ends in a stream of bytes, and the next begins.
 *
 *     struct frame_in f;
 *     frame_in_init(&f, FRAME_LINE, MQ_BODY_MAX);
 *     for (;;) {
 *             switch (frame_in_next(&f, &rec)) {
 *             case FRAME_MORE: p = frame_in_room(&f, &n); n = read(fd, p, n); n ? frame_in_fed(&f, n) : frame_in_eof(&f);
 *             case FRAME_RECORD: ...
 *
 * Memory is bounded by `max`: what is longer is counted and dropped, and the stream goes on behind it. */
#ifndef BIN_FRAME_IN_H
#define BIN_FRAME_IN_H

#include <mq.h>

enum frame_mode {
	FRAME_LINE,   /* -l: ends at a newline, or with the input */
	FRAME_NUL,    /* -0: ends at a NUL byte, or with the input */
	FRAME_WHOLE,  /* -w: all of the input */
	FRAME_LENGTH, /* -B: 4 bytes of length, big-endian, in front */
	FRAME_JSON,   /* -J: a JSON text a line; read as FRAME_LINE */
};

enum frame_got {
	FRAME_MORE,     /* feed more bytes */
	FRAME_RECORD,   /* one record */
	FRAME_TOO_LONG, /* a record of rec->n > max bytes was left out (FRAME_WHOLE: so many came so far, the rest is dropped) */
	FRAME_TORN,     /* FRAME_LENGTH: the input ended inside of a record; rec->n of f->promised bytes came (0: of its length) */
	FRAME_END,      /* the input has ended and all of it was handed out */
};

struct frame_in {
	int64_t number;     /* of the last record, from 1 */
	int64_t offset;     /* in the input, of the byte behind the last record (and its separator) */
	uint32_t promised;  /* FRAME_LENGTH: the length in front of the last record */
	/* --- own matters below --- */
	enum frame_mode mode;
	size_t max;
	char *buf;
	size_t cap, start, end, scanned;
	bool eof, over;     /* over: in a record that is too long */
	uint64_t dropped;   /* bytes of it gone */
	uint64_t to_drop;   /* FRAME_LENGTH: bytes of it still to come */
};

void frame_in_init(struct frame_in *f, enum frame_mode mode, size_t max);
void frame_in_free(struct frame_in *f);
/* Begin another input: number and offset count from `number`, `offset` again. */
void frame_in_restart(struct frame_in *f, int64_t number, int64_t offset);

/* Where to read to, *n bytes at most.  Views handed out before are dead. */
char *frame_in_room(struct frame_in *f, size_t *n);
void frame_in_fed(struct frame_in *f, size_t n);
void frame_in_eof(struct frame_in *f);

/* The next record; a view that is good until frame_in_room() or _restart(). */
enum frame_got frame_in_next(struct frame_in *f, struct mq_str *rec);

#endif
