/* record_out.h: how mq-recv writes one message: framings, JSON, and formats of -f. */
#ifndef BIN_RECORD_OUT_H
#define BIN_RECORD_OUT_H

#include "bytes.h"

enum record_mode {
	RECORD_LINE,    /* -l: body, newline */
	RECORD_NUL,     /* -0: body, NUL */
	RECORD_RAW,     /* -w: the body and nothing else */
	RECORD_LENGTH,  /* -B: 4 bytes of length, big-endian, body */
	RECORD_JSON,    /* -J */
	RECORD_FORMAT,  /* -f */
};

/* A message as it is shown. */
struct shown {
	const struct mq_message *m;
	struct mq_str body;           /* in plain form */
	const char *broker;           /* whose queue m->queue_id is */
};

struct record_out {
	enum record_mode mode;
	/* --- own matters below --- */
	struct format_op *ops;
	size_t nops;
	struct bytes text;
};

/* Understand the format of -f.  0 or MQ_EINVAL with the reason. */
int record_out_format(struct record_out *r, const char *format, struct mq_error *err);
void record_out_free(struct record_out *r);

void record_out_write(const struct record_out *r, struct bytes *b, const struct shown *s);

/* The id that users see: that of the client, else that of the place in the log. */
void record_out_id(struct bytes *b, const struct mq_message *m);

/* Take the escapes of `text` away: \n \t \r \0 \\ \xHH.  Appended to b.  0 or MQ_EINVAL with the reason. */
int record_out_unescape(struct bytes *b, const char *text, struct mq_error *err);

#endif
