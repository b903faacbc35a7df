/* send_resume.h: mq-send --resume: how much of the input is dealt with, so that a rerun goes on behind it.
 *
 * The file is text (mq-send(1), FILES):
 *     mq-send 1
 *     topic T              what the input is sent to, and how it is cut: a rerun must say the same
 *     framing -l
 *     file NAME            each FILE in order, - for stdin
 *     at 0 5000 123456     everything before is dealt with: FILE number, records and bytes of it
 *     done 0 5003 5010     and records 5003 to 5010 of FILE 0, too */
#ifndef BIN_SEND_RESUME_H
#define BIN_SEND_RESUME_H

#include "bytes.h"
#include "send_flight.h"
#include "send_input.h"

struct send_resume {
	const char *path;             /* NULL = none */
	struct bytes head;            /* what must be the same */
	struct input_place at;
	struct resume_run {
		int file;
		int64_t first, last;
	} *done;                      /* ascending */
	size_t ndone, next;
};

/* Read the file if there is one.  0, or MQ_EINVAL / -errno with the reason. */
int send_resume_open(struct send_resume *r, const char *path, const char *topic, const char *framing,
                     const char *const *names, int nnames, struct mq_error *err);
/* Was this record dealt with in the last run?  Asked in ascending order. */
bool send_resume_done(struct send_resume *r, int file, int64_t number);
int send_resume_save(struct send_resume *r, const struct flight *f, struct input_place reading, struct mq_error *err);
void send_resume_free(struct send_resume *r);

#endif
