/* bench_store.c: what an append and a read cost in the store alone.
 *
 *	make tests/bench/bench_store.b
 *	tests/bench/bench_store.b [-d DIR] [-n MESSAGES] [-q QUEUES] [-s BODY] [-b BATCH] [-f] [-k]
 *
 * -f flushes from a second thread all the time, -k gives every message a key.  Times are wall and CPU of this thread. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <mqstore.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BATCH_MAX = 1024, TEND_EVERY = 1024 };

static struct mqstore_flush job;
static atomic_int job_state;   /* 0 idle, 1 to run, 2 done */
static atomic_bool stop;

static void *flusher(void *arg)
{
	while (!atomic_load(&stop)) {
		if (atomic_load(&job_state) == 1) {
			mqstore_flush_run(&job);
			atomic_store(&job_state, 2);
		} else {
			usleep(200);
		}
	}
	return NULL;
}

static void flush_step(struct mqstore *s)
{
	if (atomic_load(&job_state) == 2) {
		mqstore_flush_end(s, &job, NULL);
		atomic_store(&job_state, 0);
	}
	if (atomic_load(&job_state) == 0 && mqstore_flush_begin(s, true, &job) == 0)
		atomic_store(&job_state, 1);
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void report(const char *what, int64_t n, int64_t us, int64_t ns)
{
	printf("%s\t%lld\t%.0f/s\t%.0f ns\t%.0f ns cpu\n", what, (long long)n, (double)n * 1e6 / (double)us, (double)us * 1000 / (double)n,
	       (double)ns / (double)n);
}

static void die(const char *what, int rc, const struct mq_error *err)
{
	fprintf(stderr, "bench_store: %s: %d %s\n", what, rc, err->text);
	exit(3);
}

int main(int argc, char **argv)
{
	const char *dir = "/tmp/mq-bench-store";
	int64_t n = 5000000, queues = 8, size = 128, batch = 1, begin, cpu, got = 0, bytes = 0;
	struct mqstore_place place[BATCH_MAX];
	struct mqstore_record r[BATCH_MAX] = { 0 };
	struct mqstore_result *res = mem_alloc(sizeof(*res));
	struct mqstore_get_opt get = { .max_messages = 1024, .max_bytes = 1 << 20 };
	bool flush = false, keys = false;
	struct mqstore_queue **q;
	struct mqstore_opt o;
	struct mq_error err;
	struct mqstore *s;
	pthread_t thread;
	char *body, (*key)[64];
	int c, rc;

	while ((c = getopt(argc, argv, "d:n:q:s:b:fk")) != -1)
		switch (c) {
		case 'd': dir = optarg; break;
		case 'n': n = atoll(optarg); break;
		case 'q': queues = atoll(optarg); break;
		case 's': size = atoll(optarg); break;
		case 'b': batch = atoll(optarg); break;
		case 'f': flush = true; break;
		case 'k': keys = true; break;
		default: return 2;
		}
	mqstore_defaults(&o);
	o.dir = dir;
	o.index_enable = keys;
	o.min_free_bytes = 1;
	begin = clock_mono_us();
	rc = mqstore_open(&s, &o, &err);
	if (rc < 0)
		die("open", rc, &err);
	printf("open\t%lld us\n", (long long)(clock_mono_us() - begin));
	body = mem_alloc((size_t)size);
	memset(body, 'x', (size_t)size);
	key = mem_alloc(sizeof(*key) * BATCH_MAX);
	q = mem_alloc((size_t)queues * sizeof(*q));
	begin = clock_mono_us();
	for (int64_t i = 0; i < queues; i++) {
		char topic[32];

		snprintf(topic, sizeof(topic), "bench-%lld", (long long)(i / 8));
		q[i] = mqstore_queue(s, str_of(topic), (int32_t)(i % 8), true);
	}
	if (flush)
		pthread_create(&thread, NULL, flusher, NULL);
	for (int i = 0; i < BATCH_MAX; i++) {
		r[i].body = (struct mq_str){ body, (size_t)size };
		r[i].born_host = r[i].store_host = (struct mq_host){ { 127, 0, 0, 1 }, 4, 10911 };
		r[i].props[0] = MQ_STR("TAGS\1TagA\2WAIT\1true\2UNIQ_KEY\1C0000202179D5FFD2B2798EC36A0003F\2");
		r[i].props[1] = MQ_STR("MSG_REGION\1DefaultRegion\2TRACE_ON\1true\2CLUSTER\1DefaultCluster\2");
		r[i].parsed = true;
		r[i].tags = MQ_STR("TagA");
	}
	cpu = cpu_ns();
	for (int64_t i = 0; i < n;) {
		for (int k = 0; k < batch; k++) {
			r[k].queue = q[(i / batch) % queues];
			if (keys) {
				int len = snprintf(key[k], sizeof(key[k]), "C0000202179D5FFD2B27%012llX", (long long)(i + k));

				r[k].uniq_key = (struct mq_str){ key[k], (size_t)len };
			}
		}
		rc = mqstore_append(s, r, (size_t)batch, place, &err);
		if (rc < 0)
			die("append", rc, &err);
		i += batch;
		if (i % TEND_EVERY < batch) {
			mqstore_tend(s);
			if (flush)
				flush_step(s);
		}
	}
	report("append", n, clock_mono_us() - begin, cpu_ns() - cpu);
	if (flush) {
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
		if (atomic_load(&job_state) == 1)
			mqstore_flush_run(&job);
		if (atomic_load(&job_state) != 0)
			mqstore_flush_end(s, &job, NULL);
	}
	begin = clock_mono_us();
	cpu = cpu_ns();
	for (int64_t i = 0; i < queues; i++)
		for (int64_t off = mqstore_queue_min(q[i]), max = mqstore_queue_max(q[i]); off < max; off = res->next_off) {
			mqstore_get(s, q[i], off, &get, res);
			got += res->n;
			bytes += res->bytes;
		}
	report("get", got, clock_mono_us() - begin, cpu_ns() - cpu);
	begin = clock_mono_us();
	rc = mqstore_close(s, &err);
	if (rc < 0)
		die("close", rc, &err);
	printf("close\t%lld us\n", (long long)(clock_mono_us() - begin));
	free(res);
	free(body);
	free(key);
	free(q);
	return bytes < 0;
}
