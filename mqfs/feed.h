/* feed.h: an open stream: bodies, a newline behind each that does not end with one, from where it was opened on.
 *
 * A read takes what is there, and waits if nothing is.  Not all readers know streams: who asks for the end of the file (lseek to the
 * end, as tail(1) does) takes it for a log that grows, and gets an end of file instead of waiting; who reads some bytes back
 * (as a shell's `read` does) gets them again, KEEP of them. */
#ifndef MQFS_FEED_H
#define MQFS_FEED_H

#include "held.h"
#include "source.h"

struct node;
struct feed;

/* In a task.  The stream begins as `want` says (for END its queues are asked here).  0 or -errno. */
int feed_open(struct feed **out, struct node *n, struct stream_want *want);
void feed_close(struct feed *f);

/* From the source. */
void feed_push(struct feed *f, struct mq_str body);
/* rc: -errno.  Readers that wait too long end with it.  fatal: nothing more will come. */
void feed_trouble(struct feed *f, int rc, bool fatal);

/* From the kernel; each answers its request, now or later. */
void feed_read(struct feed *f, fuse_req_t req, size_t size, off_t off, bool nonblock);
void feed_poll(struct feed *f, fuse_req_t req, struct fuse_pollhandle *ph);

/* Bytes that have come through this one; of a node: the most of any of its streams, and when (Unix ms, 0 = never).  at_end: somebody
 * asked for the end of this one. */
int64_t feed_size(struct feed *f, bool at_end);
int64_t feed_node_size(const struct node *n, int64_t *ms);

/* Before the loop sleeps: who waits gets what came. */
void feed_turn(void);
/* Every so often: readers that wait are ended when the brokers are away. */
void feed_tick(void);
/* At the end: every reader is told. */
void feed_close_all(void);

#endif
