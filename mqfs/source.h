/* source.h: where the messages are: a live cluster (also one that lives in a directory), or a store directory without a server.
 *
 * Everything above asks through these functions and does not know which of the two it is.  They run in a task and may wait; they
 * return 0 or -errno: ENOENT what is not there, ESTALE what retention deleted, ETIMEDOUT and EHOSTDOWN when nobody answers. */
#ifndef MQFS_SOURCE_H
#define MQFS_SOURCE_H

#include "message.h"
#include "names.h"

#include <mqclient.h>
#include <uv.h>

struct queue_state {
	struct queue_name q;
	int64_t min, max;               /* first readable offset; next to be given */
	int64_t last_ms;                /* when the newest was stored; 0 = none */
};
struct queue_states {
	struct queue_state *v;          /* by broker and id */
	size_t n;
};
void queue_states_free(struct queue_states *s);
void queue_states_add(struct queue_states *s, const struct queue_state *one);
void queue_states_sort(struct queue_states *s);

/* Where a stream begins, and what takes its messages. */
struct stream_want {
	const char *topic;
	const struct queue_name *queue; /* NULL = all */
	enum mqclient_start start;      /* END, AT_OFFSET, AT_TIME, LAST_N, BEGIN */
	int64_t value;
	struct queue_states at;         /* END: the queues as they were at open; what is not in it begins at 0 */
};
struct feed;
struct stream;                          /* of a source */

struct source {
	bool cluster;                   /* groups, brokers and what else only servers know; and sending */
	int (*topics)(struct names *out);
	int (*has_topic)(const char *topic);
	int (*queues)(const char *topic, struct queue_states *out);
	int (*has_queue)(const char *topic, const struct queue_name *q);
	int (*range)(const char *topic, const struct queue_name *q, int64_t *min, int64_t *max);
	int (*message)(const char *topic, const struct queue_name *q, int64_t off, struct message **out);
	int (*at_time)(const char *topic, const struct queue_name *q, int64_t ms, int64_t *off);
	/* The newest `max` with this key or unique id, stored in out; *n how many. */
	int (*by_key)(const char *topic, const char *key, struct message **out, size_t max, size_t *n);
	int (*by_id)(const char *id, struct message **out);
	/* Messages go to feed_push(), from the loop. */
	int (*stream)(struct stream **s, struct feed *f, const struct stream_want *want);
	void (*stream_pause)(struct stream *s, bool on);
	void (*stream_close)(struct stream *s);
	void (*close)(int timeout_ms);
};

extern const struct source *source;

int source_open(const char *addr, uv_loop_t *loop, struct mq_error *err);

#endif
