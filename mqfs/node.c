/* node.c: see node.h.  One hash table by number; a child is found by computing the number. */
#include "node.h"
#include "../bin/cli.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static struct node *nodes;
static size_t peak;

size_t node_count(void) { return HASH_COUNT(nodes); }

/* FNV-1a over the parent's number and the name, then mixed (the finalizer of MurmurHash3). */
static uint64_t number(const struct node *parent, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(parent->ino); i++)
		h = (h ^ ((const unsigned char *)&parent->ino)[i]) * 0x100000001b3u;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
	h ^= h >> 33;
	return h > NODE_ROOT_INO ? h : h + 2;
}

struct node *node_by_ino(uint64_t ino)
{
	struct node *n;

	HASH_FIND(hh, nodes, &ino, sizeof(ino), n);
	return n;
}

/* The node, or NULL with the number that is free for it. */
static struct node *find(const struct node *parent, const char *name, uint64_t *ino)
{
	struct node *n;

	for (*ino = number(parent, name); (n = node_by_ino(*ino)); *ino += 1)
		if (n->parent == parent && strcmp(n->name, name) == 0)
			return n;
	return NULL;
}

uint64_t node_child_ino(const struct node *parent, const char *name)
{
	uint64_t ino;

	find(parent, name, &ino);
	return ino;
}

static struct node *make(struct node *parent, const struct kind *kind, const char *name, uint64_t ino)
{
	size_t len = strlen(name);
	struct node *n = calloc(1, sizeof(*n) + len + 1);

	if (!n)
		cli_die(CLI_SYSTEM, "out of memory");
	memcpy(n->name, name, len + 1);
	n->parent = parent;
	n->kind = kind;
	n->ino = ino;
	n->refs = 1;
	if (parent)
		node_ref(parent);
	HASH_ADD(hh, nodes, ino, sizeof(n->ino), n);
	if (HASH_COUNT(nodes) > peak)
		peak = HASH_COUNT(nodes);
	return n;
}

struct node *node_root(const struct kind *kind)
{
	struct node *n = node_by_ino(NODE_ROOT_INO);

	return n ? n : make(NULL, kind, "", NODE_ROOT_INO);
}

struct node *node_child(struct node *parent, const struct kind *kind, const char *name)
{
	uint64_t ino;
	struct node *n = find(parent, name, &ino);

	if (n)
		node_ref(n);
	else
		n = make(parent, kind, name, ino);
	return n;
}

/* Most have gone.  The table grows but never shrinks by itself, and the allocator gives pages back only when told. */
static void shrink(void)
{
	struct node *n, *tmp, *fewer = NULL;

	HASH_ITER(hh, nodes, n, tmp) {
		HASH_DEL(nodes, n);
		HASH_ADD(hh, fewer, ino, sizeof(n->ino), n);
	}
	nodes = fewer;
	peak = HASH_COUNT(nodes);
	malloc_trim(0);
}

static void release(struct node *n)
{
	while (n && n->refs == 0 && n->lookups == 0) {
		struct node *parent = n->parent;
		HASH_DEL(nodes, n);
		free(n->text);
		free(n);
		if (parent)
			parent->refs--;
		n = parent;
	}
	if (peak > 50000 && HASH_COUNT(nodes) < peak / 4)
		shrink();
}

void node_ref(struct node *n) { n->refs++; }

void node_unref(struct node *n)
{
	n->refs--;
	release(n);
}

void node_looked_up(struct node *n) { n->lookups++; }

void node_forget(struct node *n, uint64_t lookups)
{
	n->lookups -= lookups < n->lookups ? lookups : n->lookups;
	release(n);
}

void node_drop_text(struct node *n)
{
	free(n->text);
	n->text = NULL;
	n->text_ms = 0;
}

const struct node *node_up(const struct node *n, const struct kind *kind)
{
	while (n && n->kind != kind)
		n = n->parent;
	return n;
}

char *node_path(const struct node *n, char *out, size_t cap)
{
	size_t at = cap - 1;

	out[at] = '\0';
	for (; n && n->parent; n = n->parent) {
		size_t len = strlen(n->name), slash = out[at] ? 1 : 0;
		if (len + slash > at)
			break;
		if (slash)
			out[--at] = '/';
		at -= len;
		memcpy(out + at, n->name, len);
	}
	memmove(out, out + at, cap - at);
	return out;
}

void node_free_all(void)
{
	struct node *n, *tmp;

	HASH_ITER(hh, nodes, n, tmp) {
		HASH_DEL(nodes, n);
		free(n->text);
		free(n);
	}
}
