/* send_input.c: opens and reads the input of mq-send, a file at a time, as it comes.  What a record means is not known here. */
#include "send_input.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read without turning the loop: some milliseconds. */
enum { READ_AT_ONCE = 4 << 20 };

void send_input_init(struct send_input *in, uv_loop_t *loop, const char *const *names, int n, enum frame_mode mode,
                     size_t max_record)
{
	static const char *const standard[] = { "-" };

	memset(in, 0, sizeof(*in));
	frame_in_init(&in->frames, mode, max_record);
	in->loop = loop;
	in->names = n ? names : standard;
	in->nnames = n ? n : 1;
	in->fd = -1;
	uv_timer_init(loop, &in->turn);
	in->turn.data = in;
}

void send_input_seek(struct send_input *in, const struct input_place *at)
{
	in->file = at->file;
	in->to_skip = at->offset;
	frame_in_restart(&in->frames, at->record, at->offset);
}

struct input_place send_input_place(const struct send_input *in)
{
	return (struct input_place){ in->file, in->frames.number, in->frames.offset };
}

static bool is_stdin(const struct send_input *in, int file)
{
	return strcmp(in->names[file], "-") == 0;
}

void send_input_name(const struct send_input *in, int file, int64_t number, char *out, size_t cap)
{
	bool lines = in->frames.mode == FRAME_LINE || in->frames.mode == FRAME_JSON;
	int n = 0;

	if (!is_stdin(in, file))
		n = snprintf(out, cap, "%.200s", in->names[file]);
	else if (in->frames.mode == FRAME_WHOLE)
		n = snprintf(out, cap, "standard input");
	if (in->frames.mode != FRAME_WHOLE)
		snprintf(out + n, cap - (size_t)n, "%s%s %" PRId64, n ? ": " : "", lines ? "line" : "record", number);
}

static enum input_got failed(struct send_input *in, const char *doing, struct mq_error *err)
{
	err->code = -errno;
	err->response = 0;
	if (is_stdin(in, in->file))
		snprintf(err->text, sizeof(err->text), "%s standard input: %s", doing, strerror(errno));
	else
		snprintf(err->text, sizeof(err->text), "%s '%.300s': %s", doing, in->names[in->file], strerror(errno));
	return INPUT_FAILED;
}

static void close_file(struct send_input *in)
{
	watch_close(in->watch);
	in->watch = NULL;
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
	in->opened = false;
}

void send_input_drain(struct send_input *in)
{
	in->draining = true;
	if (in->regular || !in->opened)
		in->ended = true;
}

size_t send_input_left(const struct send_input *in)
{
	return in->draining && !in->regular ? in->frames.end - in->frames.start + (size_t)in->frames.dropped : 0;
}

void send_input_close(struct send_input *in)
{
	close_file(in);
	uv_close((uv_handle_t *)&in->turn, NULL);
	in->ended = true;
	frame_in_free(&in->frames);
}

/* Something is there: the next turn of the loop finds it.  Until more is wanted nobody needs to be told again. */
static void on_ready(void *arg, uint32_t events)
{
	struct send_input *in = arg;

	watch_for(in->watch, WATCH_OFF);
}

/* What a rerun of mq-send has sent before is passed over: by moving if the file can do that, else by reading. */
static int skip(struct send_input *in)
{
	off_t here;

	if (in->to_skip == 0 || !in->regular)
		return 0;
	here = lseek(in->fd, 0, SEEK_CUR);
	if (here < 0 || in->size < 0 || here + in->to_skip > in->size)
		return 0;
	if (lseek(in->fd, in->to_skip, SEEK_CUR) < 0)
		return -1;
	in->to_skip = 0;
	return 0;
}

static enum input_got open_file(struct send_input *in, struct mq_error *err)
{
	const char *name = in->names[in->file];
	struct stat st;
	int rc;

	if (is_stdin(in, in->file)) {
		in->fd = STDIN_FILENO;
	} else {
		/* A named pipe without a writer must not hold us; what is opened here is ours alone. */
		in->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY |
		                    (stat(name, &st) == 0 && S_ISFIFO(st.st_mode) ? O_NONBLOCK : 0));
		if (in->fd < 0)
			return failed(in, "open", err);
	}
	in->opened = true;
	if (fstat(in->fd, &st) != 0)
		return failed(in, "read", err);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return failed(in, "read", err);
	}
	in->regular = S_ISREG(st.st_mode);
	in->size = in->regular ? st.st_size : -1;
	if (!in->regular) {
		rc = watch_open(&in->watch, in->loop, in->fd, on_ready, in);
		if (rc < 0) {
			errno = -rc;
			return failed(in, "read", err);
		}
		watch_for(in->watch, WATCH_OFF);
	}
	return skip(in) == 0 ? INPUT_RECORD : failed(in, "seek in", err);
}

static void on_turn(uv_timer_t *t)
{
	struct send_input *in = t->data;

	in->read = 0;
}

/* Bytes that are there go into the frames.  INPUT_RECORD: some came, or the end. */
static enum input_got fill(struct send_input *in, struct mq_error *err)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };
	size_t room;
	char *to;
	ssize_t n;

	if (in->draining) {
		in->ended = true;
		return INPUT_END;
	}
	if (in->read >= READ_AT_ONCE) {
		uv_timer_start(&in->turn, on_turn, 0, 0);
		return INPUT_WAIT;
	}
	to = frame_in_room(&in->frames, &room);
	if (in->watch && poll(&p, 1, 0) == 0) {
		watch_for(in->watch, EPOLLIN);
		return INPUT_WAIT;
	}
	if (in->to_skip > 0 && (int64_t)room > in->to_skip)
		room = (size_t)in->to_skip;
	n = read(in->fd, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		watch_for(in->watch, EPOLLIN);
		return in->watch ? INPUT_WAIT : INPUT_RECORD;
	}
	if (n < 0)
		return failed(in, "read", err);
	in->read += (size_t)n;
	if (n == 0 && in->to_skip > 0) {
		err->code = MQ_EINVAL;
		err->response = 0;
		snprintf(err->text, sizeof(err->text), "%.300s ends before the place where the last run stopped: %" PRId64
		         " bytes are missing", is_stdin(in, in->file) ? "standard input" : in->names[in->file], in->to_skip);
		return INPUT_FAILED;
	}
	if (n == 0)
		frame_in_eof(&in->frames);
	else if (in->to_skip > 0)
		in->to_skip -= n;
	else
		frame_in_fed(&in->frames, (size_t)n);
	return INPUT_RECORD;
}

static enum input_got too_long(struct send_input *in, size_t n, struct mq_error *err)
{
	bool open_end = in->frames.mode == FRAME_WHOLE && in->size < 0;

	if (in->frames.mode == FRAME_WHOLE) { /* the rest is not read */
		if (in->size > (int64_t)n)
			n = (size_t)in->size;
		frame_in_eof(&in->frames);
	}
	err->code = MQ_ETOOBIG;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "%s%zu bytes are over the limit of %zu", open_end ? "at least " : "", n,
	         in->frames.max);
	return INPUT_BAD;
}

static enum input_got torn(struct send_input *in, size_t came, struct mq_error *err)
{
	uint32_t promised = in->frames.promised;

	err->code = MQ_EINVAL;
	err->response = 0;
	if (promised == 0)
		snprintf(err->text, sizeof(err->text), "the input ends inside of its length: %zu of 4 bytes came", came);
	else
		snprintf(err->text, sizeof(err->text), "the input ends inside of it: %zu of %" PRIu32 " bytes came", came, promised);
	return INPUT_BAD;
}

enum input_got send_input_next(struct send_input *in, struct mq_str *rec, struct mq_error *err)
{
	enum input_got got;

	while (!in->ended) {
		if (!in->opened) {
			got = open_file(in, err);
			if (got != INPUT_RECORD)
				return got;
		}
		switch (frame_in_next(&in->frames, rec)) {
		case FRAME_RECORD:
			return INPUT_RECORD;
		case FRAME_TOO_LONG:
			return too_long(in, rec->n, err);
		case FRAME_TORN:
			return torn(in, rec->n, err);
		case FRAME_MORE:
			got = fill(in, err);
			if (got != INPUT_RECORD)
				return got;
			break;
		case FRAME_END:
			/* A FILE that is empty is a message without a body; an empty stdin is no message. */
			if (in->frames.mode == FRAME_WHOLE && in->frames.number == 0 && !is_stdin(in, in->file)) {
				in->frames.number++;
				*rec = (struct mq_str){ NULL, 0 };
				return INPUT_RECORD;
			}
			close_file(in);
			if (in->file + 1 == in->nnames) {
				in->ended = true;
				break;
			}
			in->file++;
			frame_in_restart(&in->frames, 0, 0);
		}
	}
	return INPUT_END;
}
