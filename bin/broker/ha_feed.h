/* ha_feed.h: the bytes of the log on their way to one slave.
 *
 * What is new leaves from the log's map, many blocks in one call; what is far behind the end leaves by sendfile(), and is brought into
 * memory by a worker first if it is not there: the loop never waits for the disk. */
#ifndef BROKER_HA_FEED_H
#define BROKER_HA_FEED_H

#include "ha_switch_role.h"
#include <base/buf.h>
#include <net/stream.h>

struct broker;

enum { HA_HEAD = 12, HA_SWITCH_HEAD = 36, HA_SWITCH_HELLO = 20, HA_SWITCH_ENTRY = 12, HA_FEED_BLOCKS = 16 };

struct ha_feed {
	struct ha_feed *prev, *next;    /* for the owner's list */
	struct broker *b;
	struct stream *s;
	bool switched;                  /* under a controller: blocks with epochs */
	struct ha_switch_slave sw;      /* what is known of it; without a controller, sw.base */
	uint64_t number;                /* of the connection, never 0 */
	struct buf hello;               /* the answer to its handshake, on its way */
	size_t hello_done;
	int64_t began_ms;               /* wall */
	int64_t bytes, bytes_before;    /* sent; until the last look at its speed */
	int64_t speed;                  /* bytes in the last second */
	bool held;                      /* there is more, but not in this second */
	int64_t said_held_ms;           /* 0: never */

	uint8_t in[16];                 /* a report or handshake that is not whole yet */
	size_t in_n;
	struct {                        /* on its way */
		struct ha_send block[HA_FEED_BLOCKS];
		uint8_t head[HA_FEED_BLOCKS][HA_SWITCH_HEAD];
		int n;
		int64_t done;           /* bytes that have left, heads included */
		bool by_file;
	} out;
	int fd;                         /* of the segment that is sent by sendfile(), -1 = none */
	int64_t fd_start;
	int64_t warm_to;                /* what is far behind is in memory up to here */
	struct ha_warm *warm;           /* a worker is at it */
};

struct ha_feed *ha_feed_new(struct broker *b, struct stream *s);    /* s is its own now; the caller hands it over */
/* Send what there is and what the socket takes; a heartbeat if one is due.  0, or a negative code with the reason: end it. */
int ha_feed_push(struct ha_feed *f, const struct ha_limits *l, struct mq_error *why);
/* Read reports.  0 or a negative code with the reason. */
int ha_feed_read(struct ha_feed *f, struct mq_error *why);
/* Bytes that wait to be sent. */
int64_t ha_feed_behind(const struct ha_feed *f);
void ha_feed_free(struct ha_feed *f);

struct ha_log ha_log_now(struct broker *b);
/* Set by the owner: a feed can go on after its worker is done. */
extern void (*ha_feed_go_on)(struct ha_feed *f);

#endif
