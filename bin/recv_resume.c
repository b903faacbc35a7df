/* recv_resume.c: the file of mq-recv --resume. */
#include "recv_resume.h"
#include "cli.h"
#include "state_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "mq-recv 1\n"

static int add(struct recv_resume *r, const char *queue, size_t n, int64_t next)
{
	struct resume_entry *entry = realloc(r->entry, (r->n + 1) * sizeof(*entry));

	if (entry)
		r->entry = entry;
	if (!entry || !(entry[r->n].queue = strndup(queue, n)))
		cli_die(CLI_SYSTEM, "out of memory");
	entry[r->n].next = next;
	return (int)r->n++;
}

static int wrong(struct mq_error *err, const char *path, const char *why)
{
	err->code = MQ_EINVAL;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "--resume: '%.200s': %s", path, why);
	return MQ_EINVAL;
}

int recv_resume_open(struct recv_resume *r, const char *path, struct mq_error *err)
{
	struct bytes text = { 0 };
	int rc;

	*r = (struct recv_resume){ .path = path };
	if (!path)
		return 0;
	rc = state_file_read(path, &text, err);
	if (rc == MQ_ENOTFOUND) {
		rc = 0;
	} else if (rc == 0 && strncmp(text.p, HEAD, sizeof(HEAD) - 1) != 0) {
		rc = wrong(err, path, "not a file of mq-recv --resume");
	} else if (rc == 0) {
		for (char *p = text.p + sizeof(HEAD) - 1, *end; *p; p = end + 1) {
			int64_t next;
			int n = 0;

			end = strchr(p, '\n');
			if (!end || sscanf(p, "%" SCNd64 " %n", &next, &n) != 1 || next < 0 || n == 0 || p + n >= end) {
				rc = wrong(err, path, "a line is not 'OFFSET TOPIC BROKER:ID'");
				break;
			}
			add(r, p + n, (size_t)(end - p - n), next);
		}
	}
	bytes_free(&text);
	return rc;
}

int recv_resume_find(struct recv_resume *r, const char *topic, const struct mqclient_queue *q, bool make)
{
	char *queue;
	int found = -1;

	if (!r->path)
		return -1;
	if (asprintf(&queue, "%s %s:%d", topic, q->broker, q->id) < 0)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < r->n && found < 0; i++)
		if (strcmp(r->entry[i].queue, queue) == 0)
			found = (int)i;
	if (found < 0 && make)
		found = add(r, queue, strlen(queue), -1);
	free(queue);
	return found;
}

void recv_resume_set(struct recv_resume *r, int entry, int64_t next)
{
	r->entry[entry].next = next;
	r->changed = true;
}

int recv_resume_save(struct recv_resume *r, struct mq_error *err)
{
	struct bytes text = { 0 };
	int rc;

	if (!r->path || !r->changed)
		return 0;
	bytes_str(&text, HEAD);
	for (size_t i = 0; i < r->n; i++)
		if (r->entry[i].next >= 0)
			bytes_printf(&text, "%" PRId64 " %s\n", r->entry[i].next, r->entry[i].queue);
	rc = state_file_write(r->path, bytes_view(&text), err);
	bytes_free(&text);
	if (rc == 0)
		r->changed = false;
	return rc;
}

void recv_resume_free(struct recv_resume *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->entry[i].queue);
	free(r->entry);
}
