/* recv_resume.h: mq-recv --resume: the next offset to read in each queue, in a file: "OFFSET TOPIC BROKER:ID" a line. */
#ifndef BIN_RECV_RESUME_H
#define BIN_RECV_RESUME_H

#include "bytes.h"

#include <mqclient.h>

struct recv_resume {
	const char *path;             /* NULL = none */
	struct resume_entry {
		char *queue;          /* "TOPIC BROKER:ID" */
		int64_t next; /* -1 = not known yet */
	} *entry;
	size_t n;
	bool changed;
};

/* Read the file if there is one.  0, or MQ_EINVAL / -errno with the reason. */
int recv_resume_open(struct recv_resume *r, const char *path, struct mq_error *err);
/* The entry of a queue; made if `make`.  Its index, or -1. */
int recv_resume_find(struct recv_resume *r, const char *topic, const struct mqclient_queue *q, bool make);
/* Everything before `next` was accepted. */
void recv_resume_set(struct recv_resume *r, int entry, int64_t next);
/* Write the file if anything changed. */
int recv_resume_save(struct recv_resume *r, struct mq_error *err);
void recv_resume_free(struct recv_resume *r);

#endif
