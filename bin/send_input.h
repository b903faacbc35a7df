/* send_input.h: the records of mq-send's input: FILEs one after the other, or stdin.
 *
 * Nothing waits for a full buffer, and nothing blocks but the disk under a regular file: when nothing is there send_input_next()
 * says so, and the loop is turned until something is.  It says so, too, when much was read and no record was worth a send: signals
 * and answers must get through also while a record without end, or nothing but empty lines, is passed over. */
#ifndef BIN_SEND_INPUT_H
#define BIN_SEND_INPUT_H

#include "frame_in.h"
#include "watch.h"

enum input_got {
	INPUT_RECORD,
	INPUT_WAIT,     /* nothing now; the loop wakes up when there is */
	INPUT_END,
	INPUT_BAD,      /* a record that cannot be a message; err says why; go on */
	INPUT_FAILED,   /* the input cannot be read; err says why */
};

/* A place in the input: everything before it was read. */
struct input_place {
	int file;           /* index of FILE */
	int64_t record;     /* records of it before this place */
	int64_t offset;     /* bytes of it */
};

struct send_input {
	struct frame_in frames;
	const char *const *names;
	int nnames;
	/* --- own matters below --- */
	uv_loop_t *loop;
	int file, fd;
	bool opened, regular, ended, draining;
	int64_t size;       /* of a regular file, -1 unknown */
	int64_t to_skip;    /* bytes that were sent before (--resume) */
	size_t read;        /* bytes since the loop was turned */
	uv_timer_t turn;
	struct watch *watch;
};

/* names: FILEs, "-" for stdin; n 0 = stdin. */
void send_input_init(struct send_input *in, uv_loop_t *loop, const char *const *names, int n, enum frame_mode mode,
                     size_t max_record);
/* Begin at a place of an earlier run.  Before the first _next. */
void send_input_seek(struct send_input *in, const struct input_place *at);

enum input_got send_input_next(struct send_input *in, struct mq_str *rec, struct mq_error *err);
/* Behind the last record. */
struct input_place send_input_place(const struct send_input *in);
/* Read no more: only records that have come whole are still handed out, of a regular file none. */
void send_input_drain(struct send_input *in);
/* Bytes that came of a record that did not come whole, when all was handed out. */
size_t send_input_left(const struct send_input *in);
void send_input_close(struct send_input *in);

/* "line 7", "FILE: record 7": what an error about record `number` of FILE number `file` begins with. */
void send_input_name(const struct send_input *in, int file, int64_t number, char *out, size_t cap);

#endif
