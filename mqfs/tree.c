/* tree.c: see tree.h. */
#include "tree.h"
#include "options.h"
#include "task.h"
#include "tree_nodes.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEPT_MS = 1000 };

#define DIR_MODE (S_IFDIR | 0555)
#define FILE_MODE (S_IFREG | 0444)
#define RW_MODE (S_IFREG | 0644)
#define LINK_MODE (S_IFLNK | 0777)
#define LIVE (TREE_CLUSTER)

/* Where all nodes below are is told by `parent`; the order is that of a listing. */
const struct kind tree[K_COUNT] = {
	[K_ROOT] = { K_COUNT, "", DIR_MODE },
	[K_README] = { K_ROOT, "README", FILE_MODE, .read = top_readme },
	[K_STATUS] = { K_ROOT, "status", FILE_MODE, TREE_KEPT, .read = top_status },

	[K_CLUSTERS] = { K_ROOT, "cluster", DIR_MODE, LIVE },
	[K_CLUSTER] = { K_CLUSTERS, NULL, DIR_MODE, TREE_LASTING, broker_find_cluster, broker_clusters },
	[K_CLUSTER_BROKERS] = { K_CLUSTER, "brokers", FILE_MODE, TREE_KEPT, .read = broker_cluster_text },
	[K_BROKERS] = { K_ROOT, "brokers", DIR_MODE, LIVE },
	[K_BROKER] = { K_BROKERS, NULL, DIR_MODE, TREE_LASTING, broker_find, broker_names },
	[K_BROKER_ID] = { K_BROKER, NULL, DIR_MODE, TREE_LASTING, broker_find_id, broker_ids },
	[K_BROKER_STATUS] = { K_BROKER_ID, "status", FILE_MODE, TREE_KEPT, .read = broker_status },
	[K_BROKER_METRICS] = { K_BROKER_ID, "metrics", FILE_MODE, TREE_KEPT, .read = broker_metrics },
	[K_BROKER_CONFIG] = { K_BROKER_ID, "config", RW_MODE, TREE_KEPT, .read = broker_config, .write = broker_set_config },

	[K_TOPICS] = { K_ROOT, "topics", DIR_MODE },
	[K_TOPIC] = { K_TOPICS, NULL, DIR_MODE, TREE_LASTING, topic_find, topic_names, .make = topic_make, .remove = topic_remove },
	[K_TOPIC_CONFIG] = { K_TOPIC, "config", RW_MODE, LIVE | TREE_KEPT, .read = topic_config, .write = topic_set_config },
	[K_TOPIC_ROUTE] = { K_TOPIC, "route", FILE_MODE, LIVE | TREE_KEPT, .read = topic_route },
	[K_TOPIC_STATS] = { K_TOPIC, "stats", FILE_MODE, .read = topic_stats },
	[K_SEND] = { K_TOPIC, "send", RW_MODE, LIVE | TREE_POST },
	[K_LINES] = { K_TOPIC, "lines", RW_MODE, LIVE | TREE_POST },
	[K_JSON] = { K_TOPIC, "json", RW_MODE, LIVE | TREE_POST },
	[K_TOPIC_TAIL] = { K_TOPIC, "tail", LINK_MODE, TREE_STREAM, .read = topic_tail },
	[K_TOPIC_FROM] = { K_TOPIC, NULL, FILE_MODE, TREE_STREAM | TREE_HIDDEN, queue_find_from },
	[K_QUEUES] = { K_TOPIC, "queues", DIR_MODE },
	[K_QUEUE] = { K_QUEUES, NULL, DIR_MODE, TREE_LASTING, queue_find, queue_names },
	[K_MIN] = { K_QUEUE, "min", FILE_MODE, .read = queue_min },
	[K_MAX] = { K_QUEUE, "max", FILE_MODE, .read = queue_max },
	[K_QUEUE_TAIL] = { K_QUEUE, "tail", LINK_MODE, TREE_STREAM, .read = queue_tail },
	[K_QUEUE_FROM] = { K_QUEUE, NULL, FILE_MODE, TREE_STREAM | TREE_HIDDEN, queue_find_from },
	[K_MESSAGES] = { K_QUEUE, "messages", DIR_MODE },
	[K_MESSAGE] = { K_MESSAGES, NULL, FILE_MODE, TREE_MESSAGE, queue_find_message, queue_messages, .read = queue_body },
	[K_METAS] = { K_QUEUE, "meta", DIR_MODE },
	[K_META] = { K_METAS, NULL, FILE_MODE, TREE_MESSAGE, queue_find_meta, queue_metas, .read = queue_meta },
	[K_KEYS] = { K_TOPIC, "by-key", DIR_MODE },
	[K_KEY] = { K_KEYS, NULL, DIR_MODE, TREE_HIDDEN, find_key },
	[K_KEY_MESSAGE] = { K_KEY, NULL, LINK_MODE, 0, find_key_message, find_key_names, .read = find_key_link },
	[K_TIMES] = { K_TOPIC, "by-time", DIR_MODE },
	[K_TIME] = { K_TIMES, NULL, DIR_MODE, TREE_HIDDEN, find_time },
	[K_TIME_MESSAGE] = { K_TIME, NULL, LINK_MODE, 0, find_time_message, find_time_names, .read = find_time_link },

	[K_IDS] = { K_ROOT, "by-id", DIR_MODE },
	[K_ID] = { K_IDS, NULL, LINK_MODE, TREE_HIDDEN, find_id, .read = find_id_link },

	[K_GROUPS] = { K_ROOT, "groups", DIR_MODE, LIVE },
	[K_GROUP] = { K_GROUPS, NULL, DIR_MODE, TREE_LASTING, group_find, group_names, .make = group_make, .remove = group_remove },
	[K_GROUP_CONFIG] = { K_GROUP, "config", RW_MODE, TREE_KEPT, .read = group_config, .write = group_set_config },
	[K_CLIENTS] = { K_GROUP, "clients", FILE_MODE, TREE_KEPT, .read = group_clients },
	[K_LAG] = { K_GROUP, "lag", FILE_MODE, .read = group_lag },
	[K_OFFSETS] = { K_GROUP, "offsets", DIR_MODE },
	[K_OFFSET_TOPIC] = { K_OFFSETS, NULL, DIR_MODE, TREE_LASTING, group_find_offset_topic, group_offset_topics },
	[K_OFFSET] = { K_OFFSET_TOPIC, NULL, RW_MODE, TREE_LASTING, group_find_offset, group_offsets, group_offset, group_set_offset },
	[K_RECVS] = { K_GROUP, "recv", DIR_MODE, TREE_STREAM },
	[K_RECV] = { K_RECVS, NULL, LINK_MODE, TREE_STREAM, group_find_recv, group_offset_topics, group_recv },

	[K_DLQS] = { K_ROOT, "dlq", DIR_MODE },
	[K_DLQ] = { K_DLQS, NULL, LINK_MODE, 0, group_find_dlq, group_dlqs, group_dlq },
	[K_DELAYED] = { K_ROOT, "delayed", DIR_MODE, LIVE },
	[K_DELAYED_MESSAGE] = { K_DELAYED, NULL, LINK_MODE, 0, waiting_find_delayed, waiting_delayed, waiting_delayed_link },
	[K_TIMER] = { K_DELAYED, NULL, FILE_MODE, TREE_KEPT, waiting_find_timer, waiting_timers, .read = waiting_timer_body },
	[K_TRANSACTIONS] = { K_ROOT, "transactions", DIR_MODE, LIVE },
	[K_TRANSACTION] = { K_TRANSACTIONS, NULL, LINK_MODE, 0, waiting_find_transaction, waiting_transactions, waiting_transaction_link },

	/* What the links called tail and recv/T lead to: a crawler that does not follow links never opens a stream. */
	[K_STREAMS] = { K_ROOT, ".streams", DIR_MODE, TREE_STREAM | TREE_HIDDEN },
	[K_STREAM_TAILS] = { K_STREAMS, "tail", DIR_MODE, TREE_STREAM },
	[K_STREAM_TAIL] = { K_STREAM_TAILS, NULL, FILE_MODE, TREE_STREAM | TREE_HIDDEN, stream_find_tail },
	[K_STREAM_RECVS] = { K_STREAMS, "recv", DIR_MODE, TREE_STREAM | TREE_CLUSTER },
	[K_STREAM_RECV] = { K_STREAM_RECVS, NULL, FILE_MODE, TREE_RECV | TREE_STREAM | TREE_HIDDEN | TREE_CLUSTER, stream_find_recv },
};

bool tree_visible(const struct kind *k)
{
	return !((k->flags & TREE_CLUSTER) && !source->cluster) && !((k->flags & TREE_STREAM) && options.no_streams) &&
	       !((k->flags & (TREE_POST | TREE_RECV)) && options.read_only) && !(k == &tree[K_RECVS] && options.read_only);
}

const struct kind *tree_made_in(const struct node *dir)
{
	for (size_t i = 0; i < K_COUNT; i++)
		if (tree[i].make && &tree[tree[i].parent] == dir->kind)
			return &tree[i];
	return NULL;
}

int tree_lookup(struct node *dir, const char *name, struct node **out)
{
	int rc;

	if (!S_ISDIR(dir->kind->mode))
		return -ENOTDIR;
	for (size_t i = 0; i < K_COUNT; i++) {
		const struct kind *k = &tree[i];
		if (k->parent == K_COUNT || &tree[k->parent] != dir->kind || !tree_visible(k))
			continue;
		if (k->name && strcmp(k->name, name) != 0)
			continue;
		rc = k->find ? k->find(dir, name) : 0;
		if (rc == -ENOENT && !k->name)
			continue;
		if (rc)
			return rc;
		*out = node_child(dir, k, name);
		return 0;
	}
	return -ENOENT;
}

static void add(struct tree_list *l, const struct kind *k, const char *name)
{
	if ((l->n & (l->n - 1)) == 0) {
		l->v = realloc(l->v, (l->n ? l->n * 2 : 1) * sizeof(*l->v));
		if (!l->v)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	l->v[l->n].kind = k;
	l->v[l->n].name = strdup(name);
	if (!l->v[l->n++].name)
		cli_die(CLI_SYSTEM, "out of memory");
}

int tree_list(struct node *dir, struct tree_list *out)
{
	int rc = 0;

	*out = (struct tree_list){ 0 };
	for (size_t i = 0; i < K_COUNT && rc == 0; i++) {
		const struct kind *k = &tree[i];
		struct names names = { 0 };
		if (k->parent == K_COUNT || &tree[k->parent] != dir->kind || (k->flags & TREE_HIDDEN) || !tree_visible(k))
			continue;
		if (k->name) {
			add(out, k, k->name);
			continue;
		}
		rc = k->list(dir, &names);
		for (size_t n = 0; rc == 0 && n < names.n; n++)
			add(out, k, names.v[n]);
		names_free(&names);
	}
	if (rc)
		tree_list_free(out);
	return rc;
}

void tree_list_free(struct tree_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
	*l = (struct tree_list){ 0 };
}

int tree_read(struct node *n, struct bytes *out)
{
	bool kept = n->kind->flags & TREE_KEPT;
	int rc;

	if (kept && n->text && task_now_ms() < n->text_ms) {
		bytes_add(out, n->text, n->text_n);
		return 0;
	}
	rc = n->kind->read ? n->kind->read(n, out) : 0;
	if (rc == 0 && kept) {
		node_drop_text(n);
		n->text = malloc(out->n + 1);
		if (!n->text)
			cli_die(CLI_SYSTEM, "out of memory");
		if (out->n)
			memcpy(n->text, out->p, out->n);
		n->text_n = out->n;
		n->text_ms = task_now_ms() + KEPT_MS;
	}
	return rc;
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

const char *tree_name(const struct node *n, enum tree_kind kind)
{
	n = node_up(n, &tree[kind]);
	return n ? n->name : "";
}

bool tree_offset(const char *text, int64_t *off)
{
	size_t n = strspn(text, "0123456789");

	if (!n || text[n] || n > 18 || (n > 1 && text[0] == '0'))
		return false;
	*off = strtoll(text, NULL, 10);
	return true;
}

bool tree_queue_name(const char *text, struct queue_name *q)
{
	const char *colon = strrchr(text, ':');
	int64_t id;

	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(q->broker) || !tree_offset(colon + 1, &id) || id > INT32_MAX)
		return false;
	memcpy(q->broker, text, (size_t)(colon - text));
	q->broker[colon - text] = '\0';
	q->id = (int32_t)id;
	return true;
}

bool tree_queue(const struct node *n, struct queue_name *q)
{
	return tree_queue_name(tree_name(n, K_QUEUE), q);
}
