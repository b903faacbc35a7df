/* tree_find.c: messages by key, by time and by id, as links to where they are. */
#include "options.h"
#include "task.h"
#include "tree_nodes.h"
#include "when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 1024 };

/* ---- by-key/KEY/BROKER:ID:OFFSET --------------------------------------------------------------------------------- */

/* Messages with the key that the directory is named after; cb for each. */
static int each(struct node *dir, const char *key, struct names *out)
{
	struct message *found[KEY_MAX];
	size_t n, max = options.list < KEY_MAX ? (size_t)options.list : KEY_MAX;
	int rc = source->by_key(tree_name(dir, K_TOPIC), key, found, max, &n);

	for (size_t i = 0; i < n; i++) {
		if (out)
			names_printf(out, "%s:%d:%lld", found[i]->broker, found[i]->m.queue_id, (long long)found[i]->m.queue_off);
		message_unref(found[i]);
	}
	return rc ? rc : n ? 0 : -ENOENT;
}

int find_key(struct node *dir, const char *name) { return each(dir, name, NULL); }

int find_key_names(struct node *dir, struct names *out)
{
	int rc = each(dir, dir->name, out);

	names_sort(out);
	return rc;
}

/* "BROKER:ID:OFFSET" */
static bool place(const char *name, char queue[300], int64_t *off)
{
	const char *colon = strrchr(name, ':');
	struct queue_name q;

	if (!colon || (size_t)(colon - name) >= 300 || !tree_offset(colon + 1, off))
		return false;
	memcpy(queue, name, (size_t)(colon - name));
	queue[colon - name] = '\0';
	return tree_queue_name(queue, &q);
}

int find_key_message(struct node *dir, const char *name)
{
	struct names all = { 0 };
	char queue[300];
	int64_t off;
	int rc = place(name, queue, &off) ? find_key_names(dir, &all) : -ENOENT;

	if (rc == 0 && !names_has(&all, name))
		rc = -ENOENT;
	names_free(&all);
	return rc;
}

int find_key_link(struct node *n, struct bytes *out)
{
	char queue[300];
	int64_t off;

	if (!place(n->name, queue, &off))
		return -ENOENT;
	bytes_printf(out, "../../queues/%s/messages/%lld", queue, (long long)off);
	return 0;
}

/* ---- by-time/TIME/BROKER:ID -------------------------------------------------------------------------------------- */

int find_time(struct node *dir, const char *name)
{
	int64_t ms;

	return when_parse(name, &ms) ? 0 : -ENOENT;
}

/* The first message of a queue that was stored at that time or later. */
static int first_at(struct node *n, const char *queue, int64_t *off)
{
	struct queue_name q;
	struct message *m;
	int64_t ms;
	int rc;

	if (!when_parse(tree_name(n, K_TIME), &ms) || !tree_queue_name(queue, &q))
		return -ENOENT;
	rc = source->at_time(tree_name(n, K_TOPIC), &q, ms, off);
	if (rc == 0)
		rc = source->message(tree_name(n, K_TOPIC), &q, *off, &m);
	if (rc)
		return rc;
	/* Of a time behind the last message some brokers tell the last message. */
	rc = m->m.store_ms < ms ? -ENOENT : 0;
	message_unref(m);
	return rc;
}

int find_time_names(struct node *dir, struct names *out)
{
	struct queue_states s;
	char name[300];
	int64_t off;
	int rc = source->queues(tree_name(dir, K_TOPIC), &s);

	for (size_t i = 0; rc == 0 && i < s.n; i++) {
		if (s.v[i].max <= s.v[i].min)
			continue;
		snprintf(name, sizeof(name), "%s:%d", s.v[i].q.broker, s.v[i].q.id);
		rc = first_at(dir, name, &off);
		if (rc == 0)
			names_add(out, name);
		else if (rc == -ENOENT || rc == -ESTALE)
			rc = 0;
	}
	queue_states_free(&s);
	return rc;
}

int find_time_message(struct node *dir, const char *name)
{
	int64_t off;

	return first_at(dir, name, &off);
}

int find_time_link(struct node *n, struct bytes *out)
{
	int64_t off;
	int rc = first_at(n, n->name, &off);

	if (rc == 0)
		bytes_printf(out, "../../queues/%s/messages/%lld", n->name, (long long)off);
	return rc;
}

/* ---- by-id/ID ---------------------------------------------------------------------------------------------------- */

/* A unique id tells nothing of where its message is: each topic is asked. */
static int by_unique_id(const char *id, struct message **out)
{
	struct names topics;
	size_t n = 0;
	int rc = source->topics(&topics);

	for (size_t i = 0; rc == 0 && !n && i < topics.n && task_left_ms() > 1; i++)
		if (source->by_key(topics.v[i], id, out, 1, &n))
			n = 0;
	names_free(&topics);
	return rc ? rc : n ? 0 : -ENOENT;
}

static int find(const char *id, struct message **out)
{
	size_t n = strlen(id);
	int rc;

	if (n < 24 || n > 56 || strspn(id, "0123456789ABCDEFabcdef") != n)
		return -ENOENT;
	rc = source->by_id(id, out);
	return rc == -ENOENT ? by_unique_id(id, out) : rc;
}

int find_id(struct node *dir, const char *name)
{
	struct message *m;
	int rc = find(name, &m);

	if (rc == 0)
		message_unref(m);
	return rc;
}

int find_id_link(struct node *n, struct bytes *out)
{
	struct message *m;
	int rc = find(n->name, &m);

	if (rc)
		return rc;
	bytes_printf(out, "../topics/" MQ_STR_FMT "/queues/%s:%d/messages/%lld", MQ_STR_ARG(m->m.topic), m->broker, m->m.queue_id,
	             (long long)m->m.queue_off);
	message_unref(m);
	return 0;
}
