/* send_resume.c: the file of mq-send --resume. */
#include "send_resume.h"
#include "cli.h"
#include "state_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(struct mq_error *err, const char *path, const char *why)
{
	err->code = MQ_EINVAL;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "--resume: '%.200s': %s", path, why);
	return MQ_EINVAL;
}

static void add_run(struct send_resume *r, int file, int64_t first, int64_t last)
{
	struct resume_run *done = realloc(r->done, (r->ndone + 1) * sizeof(*done));

	if (!done)
		cli_die(CLI_SYSTEM, "out of memory");
	r->done = done;
	done[r->ndone++] = (struct resume_run){ file, first, last };
}

/* The lines behind the head. */
static int parse(struct send_resume *r, char *p, int nnames, struct mq_error *err)
{
	int64_t a, b;
	int file, n;

	if (sscanf(p, "at %d %" SCNd64 " %" SCNd64 "\n%n", &file, &a, &b, &n) != 3 || file < 0 || file >= nnames || a < 0 || b < 0)
		return wrong(err, r->path, "no line 'at FILE RECORDS BYTES'");
	r->at = (struct input_place){ file, a, b };
	for (p += n; *p; p += n) {
		if (sscanf(p, "done %d %" SCNd64 " %" SCNd64 "\n%n", &file, &a, &b, &n) != 3 || a < 1 || b < a)
			return wrong(err, r->path, "a line is not 'done FILE FIRST LAST'");
		add_run(r, file, a, b);
	}
	return 0;
}

int send_resume_open(struct send_resume *r, const char *path, const char *topic, const char *framing,
                     const char *const *names, int nnames, struct mq_error *err)
{
	static const char *const standard[] = { "-" };
	struct bytes text = { 0 };
	int rc;

	memset(r, 0, sizeof(*r));
	r->path = path;
	if (!path)
		return 0;
	if (nnames == 0) {
		names = standard;
		nnames = 1;
	}
	bytes_printf(&r->head, "mq-send 1\ntopic %s\nframing %s\n", topic, framing);
	for (int i = 0; i < nnames; i++) {
		if (strchr(names[i], '\n'))
			return wrong(err, path, "a name of a FILE with a newline cannot be kept");
		bytes_printf(&r->head, "file %s\n", names[i]);
	}
	rc = state_file_read(path, &text, err);
	if (rc == MQ_ENOTFOUND)
		rc = 0;
	else if (rc == 0 && strncmp(text.p, "mq-send 1\n", 10) != 0)
		rc = wrong(err, path, "not a file of mq-send --resume");
	else if (rc == 0 && (text.n < r->head.n || memcmp(text.p, r->head.p, r->head.n) != 0))
		rc = wrong(err, path, "belongs to another topic, framing or input; remove it to begin anew");
	else if (rc == 0)
		rc = parse(r, text.p + r->head.n, nnames, err);
	bytes_free(&text);
	return rc;
}

bool send_resume_done(struct send_resume *r, int file, int64_t number)
{
	while (r->next < r->ndone &&
	       (r->done[r->next].file < file || (r->done[r->next].file == file && r->done[r->next].last < number)))
		r->next++;
	return r->next < r->ndone && r->done[r->next].file == file && r->done[r->next].first <= number;
}

struct runs {
	struct resume_run *run;
	size_t n;
};

static void keep_run(void *arg, int file, int64_t first, int64_t last)
{
	struct runs *all = arg;

	all->run = realloc(all->run, (all->n + 1) * sizeof(*all->run));
	if (!all->run)
		cli_die(CLI_SYSTEM, "out of memory");
	all->run[all->n++] = (struct resume_run){ file, first, last };
}

static int in_order(const void *a, const void *b)
{
	const struct resume_run *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

int send_resume_save(struct send_resume *r, const struct flight *f, struct input_place reading, struct mq_error *err)
{
	struct input_place at = flight_settled(f, reading);
	struct bytes text = { 0 };
	struct runs beyond = { 0 };
	int rc;

	if (!r->path)
		return 0;
	bytes_add(&text, r->head.p, r->head.n);
	bytes_printf(&text, "at %d %" PRId64 " %" PRId64 "\n", at.file, at.record, at.offset);
	flight_beyond(f, keep_run, &beyond);
	/* Runs of the last time that lie beyond, too. */
	for (size_t i = 0; i < r->ndone; i++)
		if (r->done[i].file > at.file || (r->done[i].file == at.file && r->done[i].last > at.record))
			keep_run(&beyond, r->done[i].file, r->done[i].first, r->done[i].last);
	if (beyond.n)
		qsort(beyond.run, beyond.n, sizeof(*beyond.run), in_order);
	for (size_t i = 0; i < beyond.n; i++)
		bytes_printf(&text, "done %d %" PRId64 " %" PRId64 "\n", beyond.run[i].file, beyond.run[i].first, beyond.run[i].last);
	rc = state_file_write(r->path, bytes_view(&text), err);
	bytes_free(&text);
	free(beyond.run);
	return rc;
}

void send_resume_free(struct send_resume *r)
{
	bytes_free(&r->head);
	free(r->done);
}
