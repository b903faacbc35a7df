/* source.c: which source an address means; lists of queues. */
#include "source.h"
#include "cluster.h"
#include "source_cluster.h"
#include "source_store.h"
#include "../bin/cli.h"

#include <stdlib.h>
#include <string.h>

const struct source *source;

int source_open(const char *addr, uv_loop_t *loop, struct mq_error *err)
{
	if (mqclient_addr_kind(addr) == MQCLIENT_STORE) {
		source = &source_store;
		return source_store_open(mqclient_addr_dir(addr), loop, err);
	}
	source = &source_cluster;
	return cluster_open(addr, loop, err);
}

void queue_states_add(struct queue_states *s, const struct queue_state *one)
{
	/* The room doubles at each power of two. */
	if ((s->n & (s->n - 1)) == 0) {
		s->v = realloc(s->v, (s->n ? s->n * 2 : 1) * sizeof(*s->v));
		if (!s->v)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	s->v[s->n++] = *one;
}

static int by_place(const void *x, const void *y)
{
	const struct queue_name *a = &((const struct queue_state *)x)->q, *b = &((const struct queue_state *)y)->q;
	int r = strcmp(a->broker, b->broker);

	return r ? r : (a->id > b->id) - (a->id < b->id);
}

void queue_states_sort(struct queue_states *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_place);
}

void queue_states_free(struct queue_states *s)
{
	free(s->v);
	*s = (struct queue_states){ 0 };
}
