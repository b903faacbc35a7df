/* tree_queue.c: queues, and the messages in them. */
#include "options.h"
#include "task.h"
#include "tree_nodes.h"
#include "when.h"
#include "../bin/json_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int queue_names(struct node *dir, struct names *out)
{
	struct queue_states s;
	int rc = source->queues(tree_name(dir, K_TOPIC), &s);

	if (rc)
		return rc;
	for (size_t i = 0; i < s.n; i++)
		names_printf(out, "%s:%d", s.v[i].q.broker, s.v[i].q.id);
	queue_states_free(&s);
	return 0;
}

int queue_find(struct node *dir, const char *name)
{
	struct queue_name q;

	return tree_queue_name(name, &q) ? source->has_queue(tree_name(dir, K_TOPIC), &q) : -ENOENT;
}

static int range(struct node *n, int64_t *min, int64_t *max)
{
	struct queue_name q;

	return tree_queue(n, &q) ? source->range(tree_name(n, K_TOPIC), &q, min, max) : -ENOENT;
}

int queue_min(struct node *n, struct bytes *out)
{
	int64_t min, max;
	int rc = range(n, &min, &max);

	if (rc == 0)
		bytes_printf(out, "%lld\n", (long long)min);
	return rc;
}

int queue_max(struct node *n, struct bytes *out)
{
	int64_t min, max;
	int rc = range(n, &min, &max);

	if (rc == 0)
		bytes_printf(out, "%lld\n", (long long)max);
	return rc;
}

int queue_tail(struct node *n, struct bytes *out)
{
	bytes_printf(out, "../../../../.streams/tail/%s@%s", tree_name(n, K_TOPIC), tree_name(n, K_QUEUE));
	return 0;
}

/* ---- from@WHERE -------------------------------------------------------------------------------------------------- */

int tree_from(struct node *n, struct stream_want *want, struct queue_name *q)
{
	const char *where = n->name + strlen("from@");

	*want = (struct stream_want){ .topic = tree_name(n, K_TOPIC) };
	if (node_up(n, &tree[K_QUEUE])) {
		if (!tree_queue(n, q))
			return -ENOENT;
		want->queue = q;
	}
	if (tree_offset(where, &want->value))
		want->start = MQCLIENT_AT_OFFSET;
	else if (where[0] == '-' && tree_offset(where + 1, &want->value))
		want->start = MQCLIENT_LAST_N;
	else if (when_parse(where, &want->value))
		want->start = MQCLIENT_AT_TIME;
	else
		return -ENOENT;
	return 0;
}

int queue_find_from(struct node *dir, const char *name)
{
	int64_t v;

	if (strncmp(name, "from@", 5) != 0)
		return -ENOENT;
	name += 5;
	return tree_offset(name, &v) || (name[0] == '-' && tree_offset(name + 1, &v)) || when_parse(name, &v) ? 0 : -ENOENT;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static int list(struct node *dir, struct names *out, const char *suffix)
{
	int64_t min, max;
	int rc = range(dir, &min, &max);

	if (rc)
		return rc;
	if (max - min > options.list)
		min = max - options.list;
	for (int64_t off = min; off < max; off++)
		names_printf(out, "%lld%s", (long long)off, suffix);
	return 0;
}

int queue_messages(struct node *dir, struct names *out) { return list(dir, out, ""); }
int queue_metas(struct node *dir, struct names *out) { return list(dir, out, ".json"); }

static int message_at(const struct node *n, int64_t off, struct message **out)
{
	struct queue_name q;

	return tree_queue(n, &q) ? source->message(tree_name(n, K_TOPIC), &q, off, out) : -ENOENT;
}

static int find(struct node *dir, int64_t off)
{
	struct message *m;
	int rc = message_at(dir, off, &m);

	if (rc == 0)
		message_unref(m);
	return rc;
}

int queue_find_message(struct node *dir, const char *name)
{
	int64_t off;

	return tree_offset(name, &off) ? find(dir, off) : -ENOENT;
}

static bool meta_offset(const char *name, int64_t *off)
{
	char text[32];
	size_t n = strlen(name);

	if (n < 6 || n > sizeof(text) || strcmp(name + n - 5, ".json") != 0)
		return false;
	memcpy(text, name, n - 5);
	text[n - 5] = '\0';
	return tree_offset(text, off);
}

int queue_find_meta(struct node *dir, const char *name)
{
	int64_t off;

	return meta_offset(name, &off) ? find(dir, off) : -ENOENT;
}

int tree_message(struct node *n, struct message **out)
{
	int64_t off;

	if (n->kind == &tree[K_META] ? !meta_offset(n->name, &off) : !tree_offset(n->name, &off))
		return -ENOENT;
	return message_at(n, off, out);
}

int queue_body(struct node *n, struct bytes *out)
{
	struct message *m;
	int rc = tree_message(n, &m);

	if (rc == 0) {
		bytes_add(out, m->body.p, m->body.n);
		message_unref(m);
	}
	return rc;
}

/* A line as mq-recv -J prints it, without the body. */
int queue_meta(struct node *n, struct bytes *out)
{
	struct message *m;
	int rc = tree_message(n, &m);

	if (rc == 0) {
		json_out_message(out, &m->m, (struct mq_str){ NULL, 0 }, m->broker);
		message_unref(m);
	}
	return rc;
}
