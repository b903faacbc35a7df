/* node.h: the files and directories that the kernel, or an open file, knows of: number, place in the tree, references.
 *
 * A node's number is made of its path, so that a file has the same number as long as the mount lives, whether the kernel has
 * forgotten it in between or not, and readdir can tell it without making a node.  Two paths that come to one number (2^-64 for
 * each pair) are told apart while both are there: the later one gets the next free number.
 *
 * What a node is, is said by its kind (tree.h); its name within its directory tells which of many. */
#ifndef MQFS_NODE_H
#define MQFS_NODE_H

#include <mq.h>
#include <uthash.h>

struct kind;

struct node {
	UT_hash_handle hh;
	uint64_t ino;
	struct node *parent;            /* referenced; NULL: the root */
	const struct kind *kind;
	uint64_t lookups;               /* the kernel's */
	uint32_t refs;                  /* of children, open files, requests */
	/* The text that was read last, for kinds whose text is kept a moment (tree.c). */
	char *text;
	size_t text_n;
	int64_t text_ms;                /* until then it is good; monotonic */
	char name[];
};

#define NODE_ROOT_INO 1

struct node *node_root(const struct kind *kind);
struct node *node_by_ino(uint64_t ino);
/* The child with this name, made if it is not there; with one reference for the caller. */
struct node *node_child(struct node *parent, const struct kind *kind, const char *name);
/* The number that it has or would have. */
uint64_t node_child_ino(const struct node *parent, const char *name);

void node_ref(struct node *n);
void node_unref(struct node *n);
void node_looked_up(struct node *n);
void node_forget(struct node *n, uint64_t lookups);

/* The text kept for it goes. */
void node_drop_text(struct node *n);
/* The node itself or the nearest above it of this kind; never NULL where tree.c asks. */
const struct node *node_up(const struct node *n, const struct kind *kind);
/* "topics/T/config" into out. */
char *node_path(const struct node *n, char *out, size_t cap);
/* Every node goes; at the end. */
void node_free_all(void);
size_t node_count(void);

#endif
