/* frame_in.c: cuts a stream of bytes into records.  Knows nothing of files and messages: bytes come in pieces of any size, and
 * the records that come out are the same for every way of cutting the pieces. */
#include "frame_in.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define READ_SIZE ((size_t)256 * 1024) /* room for one read: a few pipes full */

void frame_in_init(struct frame_in *f, enum frame_mode mode, size_t max)
{
	*f = (struct frame_in){ .mode = mode, .max = max };
}

void frame_in_free(struct frame_in *f)
{
	free(f->buf);
	f->buf = NULL;
}

void frame_in_restart(struct frame_in *f, int64_t number, int64_t offset)
{
	f->number = number;
	f->offset = offset;
	f->start = f->end = f->scanned = 0;
	f->eof = f->over = false;
	f->dropped = f->to_drop = 0;
}

char *frame_in_room(struct frame_in *f, size_t *n)
{
	size_t left = f->end - f->start, cap = f->cap ? f->cap : READ_SIZE;

	if (f->start > 0 && f->cap - f->end < READ_SIZE) {
		memmove(f->buf, f->buf + f->start, left);
		f->scanned -= f->start;
		f->start = 0;
		f->end = left;
	}
	/* A record of max bytes and its separator fit, and the one read that shows it to be longer. */
	while (cap < left + READ_SIZE / 4)
		cap *= 2;
	if (cap > f->cap) {
		f->buf = realloc(f->buf, cap);
		if (!f->buf)
			cli_die(CLI_SYSTEM, "out of memory");
		f->cap = cap;
	}
	*n = f->cap - f->end;
	return f->buf + f->end;
}

void frame_in_fed(struct frame_in *f, size_t n)
{
	f->end += n;
}

void frame_in_eof(struct frame_in *f)
{
	f->eof = true;
}

/* Hand out the next n bytes as a record, with `sep` bytes of separator behind it and `pre` in front. */
static enum frame_got record(struct frame_in *f, size_t pre, size_t n, size_t sep, struct mq_str *rec)
{
	*rec = (struct mq_str){ f->buf + f->start + pre, n };
	f->start += pre + n + sep;
	f->scanned = f->start;
	f->offset += (int64_t)(pre + n + sep);
	f->number++;
	return FRAME_RECORD;
}

/* The record that was too long has ended; `n` more bytes of it and `sep` of separator are in the buffer. */
static enum frame_got over_ends(struct frame_in *f, size_t n, size_t sep, struct mq_str *rec)
{
	*rec = (struct mq_str){ NULL, (size_t)(f->dropped + n) };
	f->start += n + sep;
	f->scanned = f->start;
	f->offset += (int64_t)(n + sep);
	f->number++;
	f->over = false;
	f->dropped = 0;
	return FRAME_TOO_LONG;
}

/* Forget what came of a record that is too long. */
static void drop(struct frame_in *f, size_t n)
{
	f->over = true;
	f->dropped += n;
	f->offset += (int64_t)n;
	f->start += n;
	f->scanned = f->start;
}

static enum frame_got next_delimited(struct frame_in *f, char delim, struct mq_str *rec)
{
	char *p = f->scanned < f->end ? memchr(f->buf + f->scanned, delim, f->end - f->scanned) : NULL;
	size_t have = f->end - f->start, n = p ? (size_t)(p - (f->buf + f->start)) : have;

	if (!p && !f->eof) {
		f->scanned = f->end;
		if (n > f->max || f->over)
			drop(f, n);
		return FRAME_MORE;
	}
	if (f->over || n > f->max)
		return over_ends(f, n, p != NULL, rec);
	if (!p && n == 0)
		return FRAME_END;
	return record(f, 0, n, p != NULL, rec);
}

static enum frame_got next_whole(struct frame_in *f, struct mq_str *rec)
{
	size_t have = f->end - f->start;

	if (f->over) { /* told already */
		drop(f, have);
		return f->eof ? FRAME_END : FRAME_MORE;
	}
	if (have > f->max) {
		drop(f, have);
		*rec = (struct mq_str){ NULL, have };
		f->number++;
		return FRAME_TOO_LONG;
	}
	if (!f->eof)
		return FRAME_MORE;
	return have ? record(f, 0, have, 0, rec) : FRAME_END;
}

/* The input ended inside of a record, of which `came` bytes were there. */
static enum frame_got torn(struct frame_in *f, size_t came, struct mq_str *rec)
{
	*rec = (struct mq_str){ NULL, came };
	f->number++;
	f->offset += (int64_t)(f->end - f->start);
	f->start = f->scanned = f->end;
	f->over = false;
	f->dropped = 0;
	return FRAME_TORN;
}

static enum frame_got next_length(struct frame_in *f, struct mq_str *rec)
{
	size_t have = f->end - f->start;
	const unsigned char *p = have ? (const unsigned char *)f->buf + f->start : NULL;
	uint32_t n;

	if (f->over) {
		if (have >= f->to_drop)
			return over_ends(f, (size_t)f->to_drop, 0, rec);
		f->to_drop -= have;
		drop(f, have);
	} else {
		if (have == 0 && f->eof)
			return FRAME_END;
		if (have < 4 && f->eof) {
			f->promised = 0;
			return torn(f, have, rec);
		}
		if (have < 4)
			return FRAME_MORE;
		n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
		f->promised = n;
		if (n > f->max) {
			f->over = true;
			f->to_drop = n;
			f->start += 4;
			f->offset += 4;
			return next_length(f, rec);
		}
		if (have - 4 >= n)
			return record(f, 4, n, 0, rec);
	}
	if (!f->eof)
		return FRAME_MORE;
	return torn(f, f->over ? (size_t)f->dropped : have - 4, rec);
}

enum frame_got frame_in_next(struct frame_in *f, struct mq_str *rec)
{
	switch (f->mode) {
	case FRAME_LINE:
	case FRAME_JSON:
		return next_delimited(f, '\n', rec);
	case FRAME_NUL:
		return next_delimited(f, '\0', rec);
	case FRAME_WHOLE:
		return next_whole(f, rec);
	case FRAME_LENGTH:
		return next_length(f, rec);
	}
	return FRAME_END;
}
