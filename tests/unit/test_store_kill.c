/* test_store_kill.c: a process that appends and flushes is killed at a random moment, again and again.
 *
 * What it had been told to be on the disk it writes to a pipe.  After each kill: every acknowledged message is there under its
 * number, no number was given twice, queues and log agree.  MQ_KILL_ROUNDS says how often (20). */
#include "store_kit.h"
#include "tempdir.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { ROUNDS = 20, QUEUES = 3, BATCH = 3, SEEN_MAX = 1 << 20 };

/* What was acknowledged: sum of body per queue and number; 0 = nothing. */
static uint32_t *acked[QUEUES];
static int64_t acked_n;
/* Numbers below these had been given before the last start, acknowledged or not. */
static int64_t given[QUEUES];
static int64_t acked_end[QUEUES]; /* behind the highest that was acknowledged */

struct ack {
	int32_t queue;
	uint32_t seed;
	int64_t queue_off;
};

static size_t make_body(uint32_t seed, char *p)
{
	size_t n = 1 + seed % 1500;
	uint32_t x = seed;

	for (size_t i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		p[i] = (char)(x >> 16);
	}
	return n;
}

/* The child: appends singles and batches, flushes, acknowledges, tends; for ever. */
static void work(const char *dir, int out, uint32_t seed)
{
	static char body[BATCH][1600];
	struct mqstore *s = kit_open(dir);

	for (;;) {
		struct mqstore_record r[BATCH];
		struct mqstore_place place[BATCH];
		struct ack ack[BATCH];
		int n = 1 + (int)(seed / 7 % BATCH);

		for (int i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			r[i] = kit_record(kit_queue(s, "Kill", (int)(seed >> 8) % QUEUES), "");
			r[i].body = (struct mq_str){ body[i], make_body(seed, body[i]) };
			r[i].props[0] = MQ_STR("KEYS\1some key\2TAGS\1t\2");
			ack[i] = (struct ack){ mqstore_queue_id(r[i].queue), seed, 0 };
		}
		if (mqstore_append(s, r, (size_t)n, place, NULL) < 0 || mqstore_flush(s, NULL) < 0)
			_exit(3);
		for (int i = 0; i < n; i++)
			ack[i].queue_off = place[i].queue_off;
		if (write(out, ack, sizeof(*ack) * (size_t)n) < 0)
			_exit(3);
		if (seed % 5 == 0)
			mqstore_tend(s);
	}
}

static void note(const struct ack *a)
{
	assert_true(a->queue_off >= 0 && a->queue_off < SEEN_MAX);
	if (a->queue_off < given[a->queue] || acked[a->queue][a->queue_off] != 0)
		fail_msg("queue %d: number %lld was given twice", a->queue, (long long)a->queue_off);
	acked[a->queue][a->queue_off] = a->seed;
	if (a->queue_off >= acked_end[a->queue])
		acked_end[a->queue] = a->queue_off + 1;
	acked_n++;
}

/* Read what the child acknowledges until it has been killed. */
static void collect(int in, pid_t child, int64_t kill_after_us)
{
	int64_t begin = clock_mono_us();
	bool killed = false;
	struct ack a;
	ssize_t n;

	while ((n = read(in, &a, sizeof(a))) == (ssize_t)sizeof(a)) {
		note(&a);
		if (!killed && clock_mono_us() - begin > kill_after_us) {
			kill(child, SIGKILL);
			killed = true;
		}
	}
	assert_int_equal(n, 0);
}

static int64_t verify(struct mqstore *s)
{
	static char want[1600];
	int64_t total = 0;

	kit_check(s);
	for (int q = 0; q < QUEUES; q++) {
		int64_t max = kit_max(s, "Kill", q);

		if (acked_end[q] > 0 && max < acked_end[q])
			fail_msg("queue %d: max %lld, acknowledged up to %lld", q, (long long)max, (long long)acked_end[q]);
		for (int64_t off = 0; off < acked_end[q]; off++) {
			struct mqstore_entry e;
			struct mq_str record;
			struct mq_message m;
			size_t n;

			if (!acked[q][off])
				continue;
			if (mqstore_entry(kit_queue(s, "Kill", q), off, &e) < 0)
				fail_msg("queue %d: acknowledged number %lld is gone, max %lld", q, (long long)off, (long long)max);
			assert_int_equal(mqstore_at(s, e.log_off, &record), 0);
			assert_true(mq_message_decode(record.p, record.n, true, &m) > 0);
			n = make_body(acked[q][off], want);
			assert_int_equal(m.body.n, n);
			assert_memory_equal(m.body.p, want, n);
		}
		given[q] = max > 0 ? max : 0;
		total += given[q];
	}
	return total;
}

static void nothing_acknowledged_is_lost(void **state)
{
	const char *rounds_text = getenv("MQ_KILL_ROUNDS"), *dir = *state;
	int rounds = rounds_text ? atoi(rounds_text) : ROUNDS;
	int64_t before = 0;

	for (int q = 0; q < QUEUES; q++)
		acked[q] = mem_alloc(SEEN_MAX * sizeof(**acked));
	srandom((unsigned)clock_wall_ms());
	for (int round = 0; round < rounds; round++) {
		uint32_t seed = (uint32_t)random() | 1;
		struct mqstore *s;
		int64_t total;
		pid_t child;
		int fd[2], status;

		assert_int_equal(pipe(fd), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			close(fd[0]);
			work(dir, fd[1], seed);
		}
		close(fd[1]);
		collect(fd[0], child, random() % 60000);
		close(fd[0]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		s = kit_open(dir);
		total = verify(s);
		assert_true(total >= before);
		before = total;
		/* Sometimes the next one finds a clean store, sometimes another crash. */
		if (random() % 2)
			kit_close(s);
		else
			kit_die(s);
	}
	assert_true(acked_n > rounds);
	for (int q = 0; q < QUEUES; q++)
		free(acked[q]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost, tempdir_make, tempdir_remove),
	};

	kit_log_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
