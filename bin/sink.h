/* sink.h: standard output that tells which records it has accepted.
 *
 * Promises (mq-recv(1), WHAT IS COMMITTED):
 *   S1  A record is accepted when all of its bytes were taken over: by write(2) if stdout is a file, terminal or socket;
 *       by the reader, out of the pipe, if it is a pipe.  Records are accepted in order.
 *   S2  When the reader of a pipe goes away, what it took is known to the byte: records of which it left a part are not accepted.
 *   S3  A pipe is given one record at a time, the next when the reader has taken the last, for the first SINK_GENTLE records; so a
 *       reader that stops after n of them (head -n 3) has taken n.  Then, if the reader keeps pace, it may read blocks; one that
 *       is slow (SINK_SLOW_MS) gets one at a time again.  With `one_by_one` it stays so for ever.
 *   S4  No call blocks while a reader is slow (but for a regular file, where the disk is waited for). */
#ifndef BIN_SINK_H
#define BIN_SINK_H

#include "bytes.h"
#include "watch.h"

#define SINK_GENTLE 4096
#define SINK_SLOW_MS 200
#define SINK_FULL ((size_t)1 << 20)  /* bytes waiting: time to stop the flow */

struct sink_ops {
	void (*accepted)(void *arg, void *queue, int64_t off);
	/* Nothing can be written any more: -EPIPE if the reader is gone, else why.  Once; accepted() has been told all before. */
	void (*broken)(void *arg, int rc);
};

enum sink_kind { SINK_FILE, SINK_STREAM, SINK_PIPE };

struct sink_record {
	int64_t end;        /* position behind it in the stream */
	void *queue;
	int64_t off;
};

struct sink {
	bool one_by_one;
	/* --- own matters below --- */
	enum sink_kind kind;
	const struct sink_ops *ops;
	void *arg;
	int fd, out;        /* as given; the same opened again, not blocking (or fd itself) */
	bool may_block;     /* `out` blocks: write little, when poll() says so */
	bool is_socket, broken;
	struct bytes buf;   /* from position buf_at on */
	int64_t buf_at, written, accepted;
	int64_t whole;      /* end of the last record that is written whole */
	struct sink_record *ring; /* ring[head..head+n), indexes modulo cap: not accepted yet */
	size_t head, n, cap;
	size_t next;        /* records of the ring that are written whole */
	/* a pipe */
	bool gentle, one_slot, slowing;
	int pipe_size;      /* as found */
	int64_t gentle_records;
	uint64_t gentle_since, full_since;
	uint64_t look_ms;   /* until the next look at what the reader took */
	struct watch *watch;
	uv_timer_t timer;
};

/* Takes SIGPIPE out of the way.  0 or -errno. */
int sink_open(struct sink *s, int fd, uv_loop_t *loop, const struct sink_ops *ops, void *arg);

/* Add a record: append its bytes to *sink_bytes(), then say whose it is. */
struct bytes *sink_bytes(struct sink *s);
void sink_record(struct sink *s, void *queue, int64_t off);

/* Write what may be written now.  Call after adding; the loop does the rest. */
void sink_push(struct sink *s);

bool sink_full(const struct sink *s);
/* Everything was accepted. */
bool sink_idle(const struct sink *s);
/* Bytes not yet accepted. */
int64_t sink_backlog(const struct sink *s);

/* A last look at what the reader took, then stop.  The descriptor stays open; the loop must turn once more before *s goes. */
void sink_close(struct sink *s);

#endif
