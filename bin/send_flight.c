/* send_flight.c: hands batches to the client and keeps count of what became of them. */
#include "send_flight.h"
#include "cli.h"
#include "json_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((size_t)32 << 20) /* under way, all together */

void flight_init(struct flight *f)
{
	memset(f, 0, sizeof(*f));
	f->failed_fd = -1;
}

static struct flight_send *at(const struct flight *f, size_t i)
{
	return f->ring[(f->head + i) & (f->cap - 1)];
}

static void send_free(struct flight_send *s)
{
	bytes_free(&s->again);
	bytes_free(&s->reply);
	free(s->ids);
	free(s);
}

void flight_free(struct flight *f)
{
	for (size_t i = 0; i < f->n; i++)
		send_free(at(f, i));
	free(f->ring);
	bytes_free(&f->out);
}

static void push(struct flight *f, struct flight_send *s)
{
	size_t cap = f->cap ? 2 * f->cap : 64;
	struct flight_send **ring;

	if (f->n == f->cap) {
		ring = malloc(cap * sizeof(*ring));
		if (!ring)
			cli_die(CLI_SYSTEM, "out of memory");
		for (size_t i = 0; i < f->n; i++)
			ring[i] = at(f, i);
		free(f->ring);
		f->ring = ring;
		f->cap = cap;
		f->head = 0;
	}
	f->ring[(f->head + f->n++) & (f->cap - 1)] = s;
}

bool flight_room(const struct flight *f)
{
	/* One that hangs must not let those behind it pile up without end. */
	return f->under_way < f->max_sends && f->n < 4 * (size_t)f->max_sends && (f->bytes < BYTES_MAX || f->under_way == 0);
}

void flight_status(struct flight *f, int status)
{
	static const int rank[] = { [CLI_OK] = 0, [CLI_NONE] = 1, [CLI_USAGE] = 2, [CLI_SYSTEM] = 4, [CLI_REFUSED] = 3 };

	if (rank[status] > rank[f->status])
		f->status = status;
}

/* ---- What became of it ------------------------------------------------------------------------------------------------ */

static void write_all(int fd, const char *what, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			cli_die(CLI_SYSTEM, "%s: %s", what, strerror(errno));
		p += k;
		n -= (size_t)k;
	}
}

/* id, queue, offset: a line per message. */
static void print(struct flight *f, const struct flight_send *s)
{
	for (size_t i = 0; i < s->n; i++) {
		bytes_str(&f->out, s->ids[i]);
		if (s->queue_off < 0) {
			bytes_str(&f->out, "\t-\t-\n");
			continue;
		}
		bytes_byte(&f->out, '\t');
		bytes_str(&f->out, s->broker);
		bytes_byte(&f->out, ':');
		bytes_int(&f->out, s->queue_id);
		bytes_byte(&f->out, '\t');
		bytes_int(&f->out, s->queue_off + (int64_t)i);
		bytes_byte(&f->out, '\n');
	}
}

/* Those in front whose fate is known leave the ring. */
static void retire(struct flight *f, bool all)
{
	while (f->n > 0 && at(f, 0)->state != FLIGHT_UNDER_WAY && (all || at(f, 0)->state != FLIGHT_LOST)) {
		struct flight_send *s = at(f, 0);

		if (f->verbose && s->state == FLIGHT_ACCEPTED)
			print(f, s);
		bytes_add(&f->out, s->reply.p, s->reply.n);
		f->head = (f->head + 1) & (f->cap - 1);
		f->n--;
		send_free(s);
	}
	if (f->out.n) {
		write_all(STDOUT_FILENO, "standard output", f->out.p, f->out.n);
		f->out.n = 0;
	}
}

static void place_name(const struct flight *f, int file, int64_t first, int64_t last, char *out, size_t cap)
{
	size_t n;

	send_input_name(f->input, file, first, out, cap);
	n = strlen(out);
	if (last > first)
		snprintf(out + n, cap - n, "-%" PRId64, last);
}

void flight_refuse(struct flight *f, int file, int64_t number, const struct mq_error *err)
{
	char where[300];

	place_name(f, file, number, number, where, sizeof(where));
	cli_warn("%s: %s", where, err->text);
	f->refused++;
	flight_status(f, CLI_REFUSED);
}

/* The message itself is to blame, not the servers' state: the next one may do better. */
static bool is_about_message(const struct flight *f, const struct mq_error *e)
{
	if (e->code == MQ_EINVAL || e->code == MQ_ETOOBIG)
		return true;
	if (e->code == MQ_EREFUSED && e->response == 13) /* MESSAGE_ILLEGAL */
		return true;
	return f->topic_per_record &&
	       (e->code == MQ_ENOROUTE || (e->code == MQ_EREFUSED && (e->response == 16 || e->response == 17)));
}

/* Not accepted.  With a file for such it goes there and the program goes on; without one it stops, unless only this message is
 * to blame. */
static void not_accepted(struct flight *f, struct flight_send *s, const struct mq_error *e)
{
	bool about_message = is_about_message(f, e);
	char where[300];

	/* When a broker goes all that is under way fails for one reason; the sum is told at the end. */
	if (about_message || strcmp(f->last_why, e->text) != 0) {
		place_name(f, s->start.file, s->start.record + 1, s->last, where, sizeof(where));
		cli_warn("%s: %s", where, e->text);
	}
	snprintf(f->last_why, sizeof(f->last_why), "%s", about_message ? "" : e->text);
	flight_status(f, about_message ? CLI_REFUSED : cli_exit_code(e->code));
	s->state = FLIGHT_REPORTED;
	if (f->failed_fd >= 0)
		write_all(f->failed_fd, "--failed", s->again.p, s->again.n);
	if (about_message) {
		f->refused += (int64_t)s->n;
		return;
	}
	f->lost += (int64_t)s->n;
	if (f->failed_fd < 0) {
		s->state = FLIGHT_LOST;
		f->stop = true;
	}
}

/* Stored, but not as safely as the broker was told to. */
static void note_late(struct flight *f, int status, int64_t n)
{
	static const char *const what[] = { "not on the disk in time (FLUSH_DISK_TIMEOUT)", "no slave is there (SLAVE_NOT_AVAILABLE)",
	                                    "not at a slave in time (FLUSH_SLAVE_TIMEOUT)" };

	if (status < 10 || status > 12)
		return;
	if (f->late[status - 10] == 0)
		cli_warn("stored, but %s", what[status - 10]);
	f->late[status - 10] += n;
	flight_status(f, CLI_SYSTEM);
}

static void landed(struct flight_send *s)
{
	s->f->under_way--;
	s->f->bytes -= s->bytes;
}

static void on_reply(void *arg, int rc, const struct mq_error *err, const struct mq_message *m, struct mq_str body)
{
	struct flight_send *s = arg;
	struct flight *f = s->f;

	landed(s);
	if (rc == 0) {
		struct shown shown = { .m = m, .body = body };

		s->state = FLIGHT_ACCEPTED;
		f->accepted++;
		record_out_write(&f->replies, &s->reply, &shown);
	} else {
		not_accepted(f, s, err);
	}
	retire(f, false);
}

/* A transaction has ended, or nobody knows how. */
static void on_decided(void *arg, enum send_txn_end end, const char *why)
{
	struct flight_send *s = arg;
	struct flight *f = s->f;
	char where[300];

	landed(s);
	if (end == SEND_TXN_COMMITTED) {
		s->state = FLIGHT_ACCEPTED;
		f->accepted++;
	} else {
		place_name(f, s->start.file, s->start.record + 1, s->last, where, sizeof(where));
		cli_warn("%s: %s: %s", where, why, end == SEND_TXN_ROLLED_BACK ? "rolled back" : "neither committed nor rolled back");
		s->state = FLIGHT_REPORTED;
		*(end == SEND_TXN_ROLLED_BACK ? &f->rolled_back : &f->undecided) += 1;
		flight_status(f, end == SEND_TXN_ROLLED_BACK ? CLI_NONE : CLI_SYSTEM);
	}
	retire(f, false);
}

static void on_half(void *arg, const struct mqclient_sent *r)
{
	struct flight_send *s = arg;
	struct flight *f = s->f;
	struct send_txn_job *job = s->job;

	s->job = NULL;
	if (r->rc == 0) {
		s->broker = r->queue.broker;
		s->queue_id = r->queue.id;
		note_late(f, r->status, 1);
		send_txn_run(job, r, on_decided, s);
		return;
	}
	send_txn_drop(job);
	landed(s);
	not_accepted(f, s, &r->err);
	retire(f, false);
}

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct flight_send *s = arg;
	struct flight *f = s->f;

	landed(s);
	if (r->rc == 0) {
		s->state = FLIGHT_ACCEPTED;
		s->broker = r->queue.broker;
		s->queue_id = r->queue.id;
		s->queue_off = f->opt.oneway ? -1 : r->queue_off;
		f->accepted += (int64_t)s->n;
		note_late(f, r->status, (int64_t)s->n);
	} else {
		not_accepted(f, s, &r->err);
	}
	retire(f, false);
}

/* ---- On its way ------------------------------------------------------------------------------------------------------- */

static struct mq_message message(const struct flight_batch *b, size_t i)
{
	return (struct mq_message){
		.topic = { b->topic, strlen(b->topic) },
		.body = { b->bytes.p + b->part[i].body, b->part[i].body_n },
		.props = { b->bytes.p + b->part[i].props, b->part[i].props_n },
		.queue_id = b->queue_id,
		.queue_off = -1,
		.flag = b->part[i].flag,
	};
}

static struct flight_send *new_send(struct flight *f, const struct flight_batch *b, size_t from, size_t n)
{
	struct flight_send *s = calloc(1, sizeof(*s));

	if (!s)
		cli_die(CLI_SYSTEM, "out of memory");
	s->f = f;
	s->start = b->part[from].start;
	s->last = b->part[from + n - 1].start.record + 1;
	s->n = n;
	s->bytes = b->bytes.n;
	s->queue_off = -1;
	if (f->failed_fd >= 0)
		for (size_t i = from; i < from + n; i++) {
			struct mq_message m = message(b, i);

			json_out_message(&s->again, &m, m.body, b->queue_id >= 0 ? b->broker : NULL);
		}
	if (f->verbose) {
		s->ids = malloc(n * sizeof(*s->ids));
		if (!s->ids)
			cli_die(CLI_SYSTEM, "out of memory");
		memcpy(s->ids, b->ids + from, n * sizeof(*s->ids));
	}
	return s;
}

/* Hand messages [from, from + n) of the batch to the client.  0, or why it does not take them. */
static int hand_over(struct flight *f, const struct flight_batch *b, size_t from, size_t n, struct mq_error *err)
{
	static struct mq_message m[FLIGHT_BATCH_MAX];
	struct mqclient_send_opt opt = f->opt;
	struct flight_send *s = new_send(f, b, from, n);
	int rc;

	for (size_t i = 0; i < n; i++)
		m[i] = message(b, from + i);
	if (f->txn)
		s->job = send_txn_prepare(f->txn, &m[0]);
	if (f->seal)
		seal_close(f->seal, &m[0].body, &m[0].props); /* it is alone */
	if (b->queue_id >= 0)
		opt.queue = (struct mqclient_queue){ b->broker, b->queue_id };
	if (b->has_sharding)
		opt.sharding_key = (struct mq_str){ b->sharding.p ? b->sharding.p : "", b->sharding.n };
	push(f, s);
	f->under_way++;
	f->bytes += s->bytes;
	if (f->request)
		rc = mqclient_request(f->client, m, &opt, on_reply, s, err);
	else
		rc = mqclient_send(f->client, m, n, &opt, f->txn ? on_half : on_sent, s, err);
	if (rc == 0)
		return 0;
	if (s->job)
		send_txn_drop(s->job);
	f->under_way--;
	f->bytes -= s->bytes;
	f->n--;
	send_free(s);
	return rc;
}

void flight_send(struct flight *f, struct flight_batch *b)
{
	struct mq_error err = { 0 };
	struct flight_send *s;
	int rc = hand_over(f, b, 0, b->n, &err);

	/* One of them is wrong: find out which. */
	for (size_t i = 0; rc != 0 && i < b->n; i++) {
		if (b->n > 1 && hand_over(f, b, i, 1, &err) == 0)
			continue;
		s = new_send(f, b, i, 1);
		push(f, s);
		not_accepted(f, s, &err);
	}
	if (rc != 0)
		retire(f, false);
	b->n = 0;
	b->bytes.n = 0;
	b->body_bytes = 0;
}

/* ---- Places ----------------------------------------------------------------------------------------------------------- */

struct input_place flight_settled(const struct flight *f, struct input_place reading)
{
	return f->n > 0 ? at(f, 0)->start : reading;
}

void flight_beyond(const struct flight *f, void (*cb)(void *arg, int file, int64_t first, int64_t last), void *arg)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct flight_send *s = at(f, i);

		if (s->state == FLIGHT_ACCEPTED || s->state == FLIGHT_REPORTED)
			cb(arg, s->start.file, s->start.record + 1, s->last);
	}
}

void flight_finish(struct flight *f)
{
	retire(f, true);
}
