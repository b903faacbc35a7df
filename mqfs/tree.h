/* tree.h: THE table of node kinds: what there is in the mount, what it is called, what reading gives and writing does.
 *
 * To add a file: (1) a word in TREE_KINDS, (2) its row in tree.c, with functions from the tree_*.c file of its noun, (3) its
 * paragraph in mqfs(8).  Looking up, listing, reading, writing and the man test follow from the rows.
 *
 * Functions of a kind run in a task and may wait; they return 0 or -errno. */
#ifndef MQFS_TREE_H
#define MQFS_TREE_H

#include "names.h"
#include "node.h"
#include "source.h"
#include "../bin/bytes.h"

#include <sys/types.h>

enum tree_kind {
	K_ROOT, K_README, K_STATUS,
	K_CLUSTERS, K_CLUSTER, K_CLUSTER_BROKERS,
	K_BROKERS, K_BROKER, K_BROKER_ID, K_BROKER_STATUS, K_BROKER_METRICS, K_BROKER_CONFIG,
	K_TOPICS, K_TOPIC, K_TOPIC_CONFIG, K_TOPIC_ROUTE, K_TOPIC_STATS, K_SEND, K_LINES, K_JSON, K_TOPIC_TAIL, K_TOPIC_FROM,
	K_QUEUES, K_QUEUE, K_MIN, K_MAX, K_QUEUE_TAIL, K_QUEUE_FROM, K_MESSAGES, K_MESSAGE, K_METAS, K_META,
	K_KEYS, K_KEY, K_KEY_MESSAGE, K_TIMES, K_TIME, K_TIME_MESSAGE,
	K_IDS, K_ID,
	K_GROUPS, K_GROUP, K_GROUP_CONFIG, K_CLIENTS, K_LAG, K_OFFSETS, K_OFFSET_TOPIC, K_OFFSET, K_RECVS, K_RECV,
	K_DLQS, K_DLQ, K_DELAYED, K_DELAYED_MESSAGE, K_TIMER, K_TRANSACTIONS, K_TRANSACTION,
	K_STREAMS, K_STREAM_TAILS, K_STREAM_TAIL, K_STREAM_RECVS, K_STREAM_RECV,
	K_COUNT
};

enum tree_flags {
	TREE_HIDDEN = 1,        /* found by name, not listed */
	TREE_CLUSTER = 2,       /* only with servers */
	TREE_KEPT = 4,          /* its text is kept a second: who asks for the size and then reads sees one text */
	TREE_MESSAGE = 8,       /* a message: never changes; time, size and xattrs are its own */
	TREE_STREAM = 16,       /* feed.h */
	TREE_RECV = 32,         /* share.h */
	TREE_POST = 64,         /* post.h */
	TREE_LASTING = 128,     /* the kernel may remember for a second that it is there */
};

struct kind {
	enum tree_kind parent;
	const char *name;       /* NULL: many, told apart by `find` */
	mode_t mode;            /* type, and permissions before umask */
	unsigned flags;
	int (*find)(struct node *dir, const char *name);                /* NULL: its name is enough.  0, or -ENOENT */
	int (*list)(struct node *dir, struct names *out);               /* NULL with a NULL name: not listed */
	int (*read)(struct node *n, struct bytes *out);                 /* text of a file, target of a link */
	int (*write)(struct node *n, struct mq_str text);               /* a new text; NULL: read only */
	int (*make)(struct node *dir, const char *name);                /* mkdir and rmdir */
	int (*remove)(struct node *dir, const char *name);
};
extern const struct kind tree[K_COUNT];

/* The child `name`, one reference for the caller. */
int tree_lookup(struct node *dir, const char *name, struct node **out);

struct tree_entry {
	const struct kind *kind;
	char *name;
};
struct tree_list {
	struct tree_entry *v;
	size_t n;
};
int tree_list(struct node *dir, struct tree_list *out);
void tree_list_free(struct tree_list *l);

/* The text of a file or target of a link. */
int tree_read(struct node *n, struct bytes *out);
/* The message that a node with TREE_MESSAGE is about; a reference. */
int tree_message(struct node *n, struct message **out);
/* Is it there for this mount (options, source)? */
bool tree_visible(const struct kind *k);
/* The kind whose mkdir works in this directory, or NULL. */
const struct kind *tree_made_in(const struct node *dir);

/* Names along the path: of the topic, group, ... a node is below. */
const char *tree_name(const struct node *n, enum tree_kind kind);
/* "BROKER:ID"; false if it is none. */
bool tree_queue_name(const char *text, struct queue_name *q);
/* The queue a node is below. */
bool tree_queue(const struct node *n, struct queue_name *q);
/* An offset as a file's name has it: digits, no zeros in front. */
bool tree_offset(const char *text, int64_t *off);
/* from@WHERE as a stream; the topic and queue are those of the node. */
int tree_from(struct node *n, struct stream_want *want, struct queue_name *q);

#endif
