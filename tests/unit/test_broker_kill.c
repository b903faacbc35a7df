/* test_broker_kill.c: kill -9 of a broker under load with SYNC_FLUSH: what was acknowledged is there, at its offset, once.
 *
 * The broker runs in a child; this process sends, pulls and looks over plain sockets.  MQ_KILL_ROUNDS: how often (12). */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "codec/property.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { QUEUES = 4, WINDOW = 64, MAX_QUEUE = 1000000 };

/* What was acknowledged, by queue and offset: the number of the message + 1, 0 = nothing. */
static struct {
	uint32_t *at[QUEUES];
	int64_t end[QUEUES];    /* highest acknowledged offset + 1 */
	uint32_t sent, acked;
} book;

/* ---- The child ------------------------------------------------------------------------------------------------------------- */

static pid_t run_broker(const char *dir, int *port)
{
	static const char *const props[] = { "flushDiskType=SYNC_FLUSH", "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000",
					     "maxMessageSize=4096", NULL };
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct mq_error e = { 0 };
		struct broker_kit *k;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion leaves nobody behind */
		k = broker_kit_start_in(dir, props, &e);
		*port = k ? broker_port(broker_kit_broker(k)) : 0;
		if (!k)
			fprintf(stderr, "# the broker does not start: %s\n", e.text);
		if (write(p[1], port, sizeof *port) != sizeof *port || !k)
			_exit(1);
		for (;;)
			uv_run(broker_kit_loop(k), UV_RUN_ONCE);
	}
	close(p[1]);
	assert_int_equal(read(p[0], port, sizeof *port), sizeof *port);
	assert_true(*port > 0); /* it starts by itself, whatever the last kill left */
	close(p[0]);
	return pid;
}

/* ---- Plain sockets --------------------------------------------------------------------------------------------------------- */

static int dial(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static bool put_all(int fd, struct buf *b)
{
	size_t at = 0;

	while (at < b->n) {
		ssize_t n = send(fd, b->p + at, b->n - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	b->n = 0;
	return true;
}

/* The next frame; its views point into *in.  False: the connection has ended. */
static bool next_frame(int fd, struct buf *in, size_t *used, struct frame *f)
{
	int64_t n;

	buf_drop(in, *used);
	*used = 0;
	while ((n = frame_length(in->p, in->n)) == 0 || (size_t)n > in->n) {
		ssize_t got = recv(fd, buf_room(in, 1 << 16), 1 << 16, 0);

		assert_true(n >= 0);
		if (got <= 0)
			return false;
		in->n += (size_t)got;
	}
	*used = (size_t)n;
	assert_int_equal(frame_parse(in->p, (size_t)n, f, NULL), 0);
	return true;
}

static void put_send(struct buf *out, uint32_t number)
{
	struct frame_out o;
	char body[64];

	snprintf(body, sizeof body, "message %u%.*s", number, (int)(number % 40), "........................................");
	frame_request(&o, out, FRAME_JSON, REQ_SEND_MESSAGE_V2, (int32_t)number, 0);
	frame_cstr(&o, "a", "pg");
	frame_cstr(&o, "b", "T");
	frame_cstr(&o, "c", "TBW102");
	frame_cstr(&o, "d", "4");
	frame_i64(&o, "e", number % QUEUES);
	frame_cstr(&o, "f", "0");
	frame_cstr(&o, "g", "1700000000000");
	frame_cstr(&o, "h", "0");
	frame_cstr(&o, "i", "KEYS\001k\002WAIT\001true\002");
	frame_body(&o);
	buf_cstr(o.buf, body);
	frame_end(&o);
}

static void acknowledge(const struct frame *f)
{
	int64_t queue, off;

	assert_int_equal(f->code, RESP_SUCCESS);
	assert_int_equal(str_i64(frame_get(f, "queueId"), &queue), 0);
	assert_int_equal(str_i64(frame_get(f, "queueOffset"), &off), 0);
	assert_in_range(off, 0, MAX_QUEUE - 1);
	if (book.at[queue][off])
		fail_msg("queue %d offset %d was given to message %u and to message %u", (int)queue, (int)off, book.at[queue][off] - 1,
			 (unsigned)f->opaque);
	book.at[queue][off] = (uint32_t)f->opaque + 1;
	book.end[queue] = off + 1 > book.end[queue] ? off + 1 : book.end[queue];
	book.acked++;
}

/* Send with WINDOW on their way, and kill the broker after ms. */
static void load_and_kill(pid_t pid, int port, int ms)
{
	int64_t end = clock_mono_us() + ms * 1000;
	struct buf out = { 0 }, in = { 0 };
	size_t used = 0;
	int fd = dial(port);
	bool killed = false;
	struct frame f;

	for (int i = 0; i < WINDOW; i++)
		put_send(&out, book.sent++);
	put_all(fd, &out);
	while (next_frame(fd, &in, &used, &f)) { /* also what came before the end */
		acknowledge(&f);
		if (!killed && clock_mono_us() >= end) {
			kill(pid, SIGKILL);
			killed = true;
		}
		if (!killed) {
			put_send(&out, book.sent++);
			put_all(fd, &out);
		}
	}
	if (!killed)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	buf_free(&out);
	buf_free(&in);
}

/* ---- The look --------------------------------------------------------------------------------------------------------------- */

static void put_pull(struct buf *out, int queue, int64_t off)
{
	struct frame_out o;

	frame_request(&o, out, FRAME_JSON, REQ_PULL_MESSAGE, 1, 0);
	frame_cstr(&o, "consumerGroup", "look");
	frame_cstr(&o, "topic", "T");
	frame_i64(&o, "queueId", queue);
	frame_i64(&o, "queueOffset", off);
	frame_cstr(&o, "maxMsgNums", "512");
	frame_cstr(&o, "sysFlag", "4");
	frame_cstr(&o, "commitOffset", "0");
	frame_cstr(&o, "suspendTimeoutMillis", "0");
	frame_cstr(&o, "subVersion", "0");
	frame_cstr(&o, "subscription", "*");
	frame_end(&o);
}

/* One record: at the next offset of its queue, with the body that was acknowledged there. */
static void look_at(const struct mq_message *m, int queue, int64_t off)
{
	char body[32];

	assert_int_equal(m->queue_off, off);
	assert_int_equal(m->queue_id, queue);
	if (off >= MAX_QUEUE || !book.at[queue][off])
		return; /* stored, and the answer was lost with the broker */
	snprintf(body, sizeof body, "message %u", book.at[queue][off] - 1);
	assert_true(str_starts(m->body, body));
	assert_true(m->body.n == strlen(body) || m->body.p[strlen(body)] == '.');
}

/* A queue from an offset on: dense offsets, nothing acknowledged missing. */
static void look_through(int port, int queue, int64_t off)
{
	struct buf out = { 0 }, in = { 0 };
	size_t used = 0;
	int fd = dial(port);
	struct frame f;

	for (;;) {
		size_t at = 0;

		put_pull(&out, queue, off);
		assert_true(put_all(fd, &out) && next_frame(fd, &in, &used, &f));
		if (f.code != RESP_SUCCESS)
			break;
		while (at < f.body.n) {
			struct mq_message m;
			int32_t n = mq_message_decode(f.body.p + at, f.body.n - at, true, &m);

			assert_true(n > 0);
			look_at(&m, queue, off++);
			at += (size_t)n;
		}
	}
	if (off < book.end[queue])
		fail_msg("queue %d ends at %lld, acknowledged was up to %lld: code %d " MQ_STR_FMT, queue, (long long)off,
			 (long long)book.end[queue], f.code, MQ_STR_ARG(f.remark));
	close(fd);
	buf_free(&out);
	buf_free(&in);
}

static void nothing_acknowledged_is_lost(void **state)
{
	const char *env = getenv("MQ_KILL_ROUNDS");
	int rounds = env ? atoi(env) : 12, port;
	int64_t since[QUEUES] = { 0 };
	unsigned seed = (unsigned)getpid();
	pid_t pid;

	for (int q = 0; q < QUEUES; q++)
		book.at[q] = mem_alloc(MAX_QUEUE * sizeof *book.at[q]);
	for (int i = 0; i < rounds; i++) {
		pid = run_broker(*state, &port);
		for (int q = 0; q < QUEUES; q++) { /* what the last rounds wrote; all of it at the end */
			look_through(port, q, since[q] > 1000 ? since[q] - 1000 : 0);
			since[q] = book.end[q];
		}
		load_and_kill(pid, port, 5 + rand_r(&seed) % 120);
	}
	pid = run_broker(*state, &port);
	for (int q = 0; q < QUEUES; q++)
		look_through(port, q, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fprintf(stderr, "# %d kills, %u messages sent, %u acknowledged\n", rounds, book.sent, book.acked);
	assert_true(book.acked > (uint32_t)rounds);
	for (int q = 0; q < QUEUES; q++)
		free(book.at[q]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost, tempdir_make, tempdir_remove),
	};

	return cmocka_run_group_tests_name("broker_kill", tests, NULL, NULL);
}
