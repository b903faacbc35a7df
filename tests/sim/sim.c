/* sim.c: time, network, faults and what is looked at; brokers and controllers are in files of their own. */
#include "sim.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct world *w;

/* ---- Time ------------------------------------------------------------------------------------------------------------ */

static struct event *heap;
static size_t heap_n, heap_cap;

uint32_t roll(uint32_t n)
{
	w->dice ^= w->dice << 13;
	w->dice ^= w->dice >> 7;
	w->dice ^= w->dice << 17;
	return (uint32_t)((w->dice >> 20) % n);
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void at(int64_t in_ms, void (*fn)(struct event *e), int node, int a, int b, void *p)
{
	struct event e = { w->now + in_ms, w->orders++, fn, node, node < 0 ? 0 : life_of(node), a, b, p };
	size_t i = heap_n++;

	if (heap_n > heap_cap) {
		heap_cap = heap_cap ? heap_cap * 2 : 1024;
		heap = mem_realloc(heap, heap_cap * sizeof(*heap));
	}
	for (; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event next_event(void)
{
	struct event first = heap[0], last = heap[--heap_n];
	size_t i = 0;

	for (;;) {
		size_t k = 2 * i + 1;

		if (k >= heap_n)
			break;
		if (k + 1 < heap_n && before(&heap[k + 1], &heap[k]))
			k++;
		if (!before(&heap[k], &last))
			break;
		heap[i] = heap[k];
		i = k;
	}
	heap[i] = last;
	return first;
}

/* ---- What is looked at ----------------------------------------------------------------------------------------------- */

void wrong(const char *fmt, ...)
{
	va_list ap;

	if (w->wrong[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->wrong, sizeof(w->wrong), fmt, ap);
	va_end(ap);
	say("WRONG: %s", w->wrong);
}

void say(const char *fmt, ...)
{
	va_list ap;

	if (!w->verbose)
		return;
	printf("%8.3f ", (double)w->now / 1000);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- Network and faults ---------------------------------------------------------------------------------------------- */

int life_of(int node)
{
	return node < BROKERS ? w->b[node].life : w->c[node - BROKERS].life;
}

bool reaches(int from, int to)
{
	bool up = (from < BROKERS ? w->b[from].up : w->c[from - BROKERS].up) && (to < BROKERS ? w->b[to].up : w->c[to - BROKERS].up);

	return up && !w->cut[from][to];
}

static void heal(struct event *e)
{
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < NODES; k++)
			if (e->a < 0 || i == e->a || k == e->a)
				w->cut[i][k] = false;
}

static void flap(struct event *e)
{
	bool cut = e->b & 1;

	for (int k = 0; k < NODES; k++)
		w->cut[e->a][k] = w->cut[k][e->a] = cut && k != e->a;
	if (e->b)
		at(200 + roll(2500), flap, -1, e->a, e->b - 1, NULL);
}

static void restart(struct event *e)
{
	if (e->a < BROKERS)
		broker_start(e->a);
	else
		controller_start(e->a - BROKERS);
}

static int master_now(void)
{
	for (int i = 0; i < BROKERS; i++)
		if (w->b[i].up && role_puts(&w->b[i].role) == ROLE_PUT_OK)
			return i;
	return (int)roll(BROKERS);
}

static void fault(struct event *e)
{
	int who = roll(2) ? master_now() : (int)roll(NODES), kind = (int)roll(100);
	int64_t last = 300 + (roll(3) ? roll(4000) : roll(25000));

	if (w->now >= w->fault_end)
		return;
	at(200 + roll(3500), fault, -1, 0, 0, NULL);
	if (kind < 30) {
		bool power = w->sync_flush && roll(2);

		say("fault: %d dies%s for %lld ms", who, power ? " with its memory" : "", (long long)last);
		if (who < BROKERS)
			broker_crash(who, power);
		else
			controller_crash(who - BROKERS);
		at(last, restart, -1, who, 0, NULL);
	} else if (kind < 34) {
		say("fault: no power for the brokers");
		for (int i = 0; i < BROKERS; i++) {
			broker_crash(i, w->sync_flush);
			at(500 + roll(8000), restart, -1, i, 0, NULL);
		}
	} else if (kind < 45) {
		say("fault: %d alone for %lld ms", who, (long long)last);
		for (int k = 0; k < NODES; k++)
			w->cut[who][k] = w->cut[k][who] = k != who;
		at(last, heal, -1, who, 0, NULL);
	} else if (kind < 60) {
		int other = (int)roll(NODES);

		say("fault: %d to %d cut one way for %lld ms", who, other, (long long)last);
		w->cut[who][other] = who != other;
		at(last, heal, -1, who, 0, NULL);
	} else if (kind < 70) {
		uint32_t side = roll(1 << NODES);

		say("fault: sides %x for %lld ms", side, (long long)last);
		for (int i = 0; i < NODES; i++)
			for (int k = 0; k < NODES; k++)
				w->cut[i][k] = (side >> i & 1) != (side >> k & 1);
		at(last, heal, -1, -1, 0, NULL);
	} else if (kind < 76) {
		say("fault: %d flaps", who);
		at(0, flap, -1, who, 8, NULL);
	} else if (kind < 90 && who < BROKERS) {
		say("fault: disk of %d stops for %lld ms", who, (long long)last);
		w->b[who].disk_stopped_until = w->now + last;
	} else if (kind < 95) {
		w->slow_ms = (int)roll(400);
	} else {
		w->loss = (int)roll(200);
	}
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static void client(struct event *e)
{
	int64_t left = w->end - 5000;

	/* Many clients, some of which have an old route. */
	for (int i = 0; i < BROKERS; i++)
		broker_put(i);
	if (w->now < left)
		at(1 + roll(roll(4) ? 60 : 400), client, -1, 0, 0, NULL);
}

static void raft(struct event *e)
{
	raft_tick();
	at(100, raft, -1, 0, 0, NULL);
}

static void all_well_again(struct event *e)
{
	say("no more faults");
	w->loss = w->slow_ms = 0;
	memset(w->cut, 0, sizeof(w->cut));
	for (int i = 0; i < BROKERS; i++)
		w->b[i].disk_stopped_until = 0;
}

static void look_at_acks(struct event *e)
{
	w->late_acks = w->acks;
}

static void look_at_end(void)
{
	int master = -1;

	for (int i = 0; i < BROKERS; i++)
		if (w->b[i].up && role_puts(&w->b[i].role) == ROLE_PUT_OK && (master < 0 || w->b[i].role.master.epoch >
			w->b[master].role.master.epoch))
			master = i;
	if (master < 0) {
		wrong("nobody takes messages, long after the last fault");
		return;
	}
	if (w->late_acks == w->acks)
		wrong("nothing is acknowledged any more, long after the last fault");
	for (int i = 0; i < BROKERS; i++) {
		struct broker_sim *s = &w->b[i], *m = &w->b[master];

		if (s->end != m->end || memcmp(s->log, m->log, (size_t)s->end * sizeof(s->log[0])) != 0)
			wrong("the logs of %d (up to %lld) and the master %d (up to %lld) are not the same, long after the last fault", i,
			      (long long)s->end, master, (long long)m->end);
	}
}

static void schedule(uint64_t seed, enum sim_bug bug, bool verbose)
{
	struct event e;

	memset(w, 0, sizeof(*w));
	w->dice = (seed + 1) * 0x9e3779b97f4a7c15u;
	w->bug = bug;
	w->verbose = verbose;
	w->sync_flush = bug == BUG_UNFLUSHED || roll(2);
	w->fault_end = 15000 + roll(25000);
	w->end = w->fault_end + 75000;
	heap_n = 0;
	controllers_begin();
	for (int i = 0; i < BROKERS; i++)
		at(roll(3000), restart, -1, i, 0, NULL);
	at(0, raft, -1, 0, 0, NULL);
	at(4000, client, -1, 0, 0, NULL);
	at(4000 + roll(4000), fault, -1, 0, 0, NULL);
	at(w->fault_end + 25000, all_well_again, -1, 0, 0, NULL);
	at(w->end - 15000, look_at_acks, -1, 0, 0, NULL);
	while (!w->wrong[0] && heap_n && heap[0].at <= w->end) {
		e = next_event();
		w->now = e.at;
		if (e.node < 0 || life_of(e.node) == e.life)
			e.fn(&e);
		free(e.p);
	}
	if (!w->wrong[0])
		look_at_end();
	brokers_end();
	controllers_end();
	while (heap_n)
		free(heap[--heap_n].p);
}

static int usage(void)
{
	fprintf(stderr, "usage: sim [-v] [--seed N] [--schedules N] [--bug 1..%d]\n", BUGS - 1);
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, n = 100, bad = 0, events = 0;
	long acks = 0, elections = 0, changes = 0;
	int bug = BUG_NONE;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-v") == 0)
			verbose = true;
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--schedules") == 0 && i + 1 < argc)
			n = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--bug") == 0 && i + 1 < argc)
			bug = atoi(argv[++i]);
		else
			return usage();
	}
	if (bug < 0 || bug >= BUGS)
		return usage();
	log_max = LOG_ERROR;
	w = mem_alloc(sizeof(*w));
	for (uint64_t i = 0; i < n; i++) {
		schedule(seed + i, (enum sim_bug)bug, verbose);
		events += w->orders;
		acks += w->acks;
		elections += w->elections;
		changes += w->changes;
		if (w->wrong[0] && ++bad <= 10)
			printf("seed %llu: %s\n", (unsigned long long)(seed + i), w->wrong);
		if (bad && bug)
			break;
	}
	printf("schedules %llu, events %llu, acknowledged %ld, elections %ld, changes of role %ld: broken promises in %llu\n",
	       (unsigned long long)n, (unsigned long long)events, acks, elections, changes, (unsigned long long)bad);
	free(w);
	free(heap);
	return bad ? 1 : 0;
}
