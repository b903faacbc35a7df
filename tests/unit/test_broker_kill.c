/* test_broker_kill.c: kill -9 of a broker under load with SYNC_FLUSH: what was acknowledged is there, at its offset, once.
 *
 * The broker runs in a child; this process sends, pulls and looks over plain sockets.  MQ_KILL_ROUNDS: how often (12). */
#include "broker_child.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "tempdir.h"
#include "codec/message.h"
#include "codec/property.h"
#include "codec/request.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { QUEUES = 4, WINDOW = 64, MAX_QUEUE = 1000000 };

/* What was acknowledged, by queue and offset: the number of the message + 1, 0 = nothing. */
static struct {
	uint32_t *at[QUEUES];
	int64_t end[QUEUES];    /* highest acknowledged offset + 1 */
	uint32_t sent, acked;
} book;

static const char *const props[] = { "flushDiskType=SYNC_FLUSH", "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000",
				     "maxMessageSize=4096", NULL };

/* ---- Load ------------------------------------------------------------------------------------------------------------------ */

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
	int fd = broker_child_dial(port);
	bool killed = false;
	struct frame f;

	for (int i = 0; i < WINDOW; i++)
		put_send(&out, book.sent++);
	broker_child_put(fd, &out);
	while (broker_child_next(fd, &in, &used, &f)) { /* also what came before the end */
		acknowledge(&f);
		if (!killed && clock_mono_us() >= end) {
			kill(pid, SIGKILL);
			killed = true;
		}
		if (!killed) {
			put_send(&out, book.sent++);
			broker_child_put(fd, &out);
		}
	}
	broker_child_kill(pid);
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
	int fd = broker_child_dial(port);
	struct frame f;

	for (;;) {
		size_t at = 0;

		put_pull(&out, queue, off);
		assert_true(broker_child_put(fd, &out) && broker_child_next(fd, &in, &used, &f));
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
		pid = broker_child_start(*state, props, &port);
		for (int q = 0; q < QUEUES; q++) { /* what the last rounds wrote; all of it at the end */
			look_through(port, q, since[q] > 1000 ? since[q] - 1000 : 0);
			since[q] = book.end[q];
		}
		load_and_kill(pid, port, 5 + rand_r(&seed) % 120);
	}
	pid = broker_child_start(*state, props, &port);
	for (int q = 0; q < QUEUES; q++)
		look_through(port, q, 0);
	broker_child_kill(pid);
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
