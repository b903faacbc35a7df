/* post.h: an open send, lines or json of a topic: what is written becomes messages, and close or fsync says whether the broker has them.
 *
 * send: everything written until the process that opened the file closes it, or until fsync, is one message; what other processes
 * that inherited the file write belongs to it.  lines: each newline ends a message; json: each line is a message as mq-send -J
 * reads it; a last line without newline is whole.  Nothing written sends nothing.  A message that is too big is not sent at all. */
#ifndef MQFS_POST_H
#define MQFS_POST_H

#include "fuse.h"

#include <mq.h>
#include <stdbool.h>

struct post;

enum post_mode { POST_SEND, POST_LINES, POST_JSON };

struct post *post_open(enum post_mode mode, const char *topic, uint64_t ino, pid_t pid);
/* Answers the request; not before there is room, when a lot is under way. */
void post_write(struct post *p, fuse_req_t req, const char *buf, size_t size);
/* A property of the next message.  0 or -errno. */
int post_property(struct post *p, const char *name, struct mq_str value);
/* In a task, for flush: a close of one descriptor by this process.  fsync: whoever it is.  0 when all that was to be sent is stored. */
int post_flush(struct post *p, pid_t pid);
int post_sync(struct post *p);
/* The last descriptor is closed.  What is left is sent (nobody is there to hear how it went: it is told). */
void post_close(struct post *p);

/* Which of the open ones this process means that sets a property of the file `ino`: its own, else the only one.  NULL: cannot tell. */
struct post *post_of(uint64_t ino, pid_t pid);

/* What became of the last message that this process, or else anybody, has sent through the file. */
struct post_result {
	uint64_t ino;
	pid_t pid;
	char id[64], queue[300], offset[24], error[500];
};
const struct post_result *post_result(uint64_t ino, pid_t pid);

#endif
