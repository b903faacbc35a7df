/* lock_table.c: leases of queues, by group. */
#include "lock_table.h"
#include "hash.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "lock"

enum { NAME_MAX_BYTES = 255, KEY_BYTES = 2 * (NAME_MAX_BYTES + 1) + sizeof(int32_t) };

struct lock {
	UT_hash_handle hh;              /* by topic, broker and queue */
	int64_t seen_ms;
	char *client;
	size_t client_n, key_n;
	char key[];
};

struct lock_group {
	UT_hash_handle hh;
	struct lock *locks;             /* uthash */
	size_t name_n;
	char name[];
};

struct lock_table {
	struct lock_group *groups;      /* uthash */
	size_t n;                       /* locks */
};

/* topic NUL broker NUL id; 0 if a name is too long. */
static size_t make_key(char key[KEY_BYTES], const struct body_queue *q)
{
	char *p = key;

	if (q->topic.n > NAME_MAX_BYTES || q->broker.n > NAME_MAX_BYTES)
		return 0;
	if (q->topic.n)
		memcpy(p, q->topic.p, q->topic.n);
	p += q->topic.n;
	*p++ = 0;
	if (q->broker.n)
		memcpy(p, q->broker.p, q->broker.n);
	p += q->broker.n;
	*p++ = 0;
	memcpy(p, &q->id, sizeof q->id);
	return (size_t)(p - key) + sizeof q->id;
}

static struct lock_group *group_of(const struct lock_table *t, struct mq_str name)
{
	struct lock_group *g;

	HASH_FIND(hh, t->groups, name.p, name.n, g);
	return g;
}

static struct lock *lock_of(const struct lock_group *g, const char *key, size_t n)
{
	struct lock *l;

	HASH_FIND(hh, g->locks, key, n, l);
	return l;
}

static bool run_out(const struct lock *l, int64_t now)
{
	return now - l->seen_ms > LOCK_LEASE_MS;
}

static bool is_of(const struct lock *l, struct mq_str client)
{
	return str_eq((struct mq_str){ l->client, l->client_n }, client);
}

static void set_client(struct lock *l, struct mq_str client)
{
	free(l->client);
	l->client = str_dup(client);
	l->client_n = client.n;
}

static void drop_lock(struct lock_table *t, struct lock_group *g, struct lock *l)
{
	HASH_DEL(g->locks, l);
	free(l->client);
	free(l);
	t->n--;
}

static void drop_group(struct lock_table *t, struct lock_group *g)
{
	HASH_DEL(t->groups, g);
	free(g);
}

static struct lock *add(struct lock_table *t, struct mq_str group, const char *key, size_t key_n)
{
	struct lock_group *g = group_of(t, group);
	struct lock *l = mem_alloc(sizeof *l + key_n);

	if (!g) {
		g = mem_alloc(sizeof *g + group.n);
		memcpy(g->name, group.p, group.n);
		g->name_n = group.n;
		HASH_ADD_KEYPTR(hh, t->groups, g->name, g->name_n, g);
	}
	memcpy(l->key, key, key_n);
	l->key_n = key_n;
	HASH_ADD_KEYPTR(hh, g->locks, l->key, l->key_n, l);
	t->n++;
	return l;
}

bool lock_table_take(struct lock_table *t, struct mq_str group, const struct body_queue *queue, struct mq_str client, int64_t now_ms)
{
	struct lock_group *g = group_of(t, group);
	char key[KEY_BYTES];
	size_t n = make_key(key, queue);
	struct lock *l = g && n ? lock_of(g, key, n) : NULL;

	if (!l) {
		if (!n || !group.n || group.n > NAME_MAX_BYTES || !client.n || client.n > NAME_MAX_BYTES || t->n >= LOCKS_MAX)
			return false;
		l = add(t, group, key, n);
		set_client(l, client);
	} else if (!is_of(l, client)) {
		if (!run_out(l, now_ms) || client.n > NAME_MAX_BYTES)
			return false;
		log_info("queue changes hands: its lock had run out group=" MQ_STR_FMT " topic=" MQ_STR_FMT
			 " queue=%d from=%s to=" MQ_STR_FMT,
			 MQ_STR_ARG(group), MQ_STR_ARG(queue->topic), queue->id, l->client, MQ_STR_ARG(client));
		set_client(l, client);
	}
	l->seen_ms = now_ms;
	return true;
}

void lock_table_release(struct lock_table *t, struct mq_str group, const struct body_queue *queue, struct mq_str client)
{
	struct lock_group *g = group_of(t, group);
	char key[KEY_BYTES];
	size_t n = make_key(key, queue);
	struct lock *l = g && n ? lock_of(g, key, n) : NULL;

	if (!l || !is_of(l, client))
		return;
	drop_lock(t, g, l);
	if (!g->locks)
		drop_group(t, g);
}

bool lock_table_live(const struct lock_table *t, struct mq_str group, int64_t now_ms)
{
	struct lock_group *g = group_of(t, group);
	struct lock *l, *tmp;

	if (g)
		HASH_ITER(hh, g->locks, l, tmp)
			if (!run_out(l, now_ms))
				return true;
	return false;
}

static void sweep(struct lock_table *t, int64_t now_ms, bool all)
{
	struct lock_group *g, *gtmp;
	struct lock *l, *tmp;

	HASH_ITER(hh, t->groups, g, gtmp) {
		HASH_ITER(hh, g->locks, l, tmp)
			if (all || run_out(l, now_ms))
				drop_lock(t, g, l);
		if (!g->locks)
			drop_group(t, g);
	}
}

void lock_table_sweep(struct lock_table *t, int64_t now_ms)
{
	sweep(t, now_ms, false);
}

size_t lock_table_count(const struct lock_table *t)
{
	return t->n;
}

struct lock_table *lock_table_new(void)
{
	return mem_alloc(sizeof(struct lock_table));
}

void lock_table_free(struct lock_table *t)
{
	if (!t)
		return;
	sweep(t, 0, true);
	free(t);
}
