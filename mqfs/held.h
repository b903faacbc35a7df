/* held.h: reads that wait for a message, and who wants to know when there is one.
 *
 * A held read ends in exactly one way: answered, interrupted by a signal, or ended with an error. */
#ifndef MQFS_HELD_H
#define MQFS_HELD_H

#include "fuse.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct held {
	TAILQ_ENTRY(held) entry;
	struct held_list *list;
	fuse_req_t req;
	size_t size;
	off_t off;
	int64_t since_ms;               /* monotonic */
};
TAILQ_HEAD(held_queue, held);

struct held_list {
	struct held_queue reads;
	struct fuse_pollhandle *poll;   /* to be told when there is something to read */
};

void held_init(struct held_list *l);
void held_add(struct held_list *l, fuse_req_t req, size_t size, off_t off);
/* Take it off the list and give its request to be answered; the held is gone. */
fuse_req_t held_take(struct held *h);
/* End those that began at or before since_ms with this error (a negative errno; 0 = end of file). */
void held_end(struct held_list *l, int rc, int64_t since_ms);
/* Who polls wants to know; takes the handle. */
void held_poll(struct held_list *l, struct fuse_pollhandle *ph);
void held_wake_poll(struct held_list *l);
/* A question to those who serve what is waited for, asked at asked_ms, ended with rc.  Is it time to give up?  Nobody being there is
 * no reason before options.timeout_ms: a server that is started again has come back by then.  *away_ms: since when nobody is there,
 * 0 = somebody is. */
bool held_gives_up(int64_t *away_ms, int rc, int64_t asked_ms);
/* End all with ENOTCONN, forget who polls. */
void held_close(struct held_list *l);

#endif
