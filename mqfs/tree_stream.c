/* tree_stream.c: the names below .streams. */
#include "tree_nodes.h"

#include <errno.h>
#include <string.h>

/* TOPIC or TOPIC@BROKER:ID: no topic has an @. */
int stream_find_tail(struct node *dir, const char *name)
{
	const char *at = strchr(name, '@');
	struct queue_name q;
	char topic[256];

	if (!at)
		return source->has_topic(name);
	if ((size_t)(at - name) >= sizeof(topic) || !tree_queue_name(at + 1, &q))
		return -ENOENT;
	memcpy(topic, name, (size_t)(at - name));
	topic[at - name] = '\0';
	return source->has_queue(topic, &q);
}

bool stream_recv_names(const char *name, char group[256], char topic[256])
{
	const char *at = strchr(name, '@');

	if (!at || at - name >= 256 || strlen(at + 1) >= 256)
		return false;
	memcpy(group, name, (size_t)(at - name));
	group[at - name] = '\0';
	strcpy(topic, at + 1);
	return mq_check_group((struct mq_str){ group, strlen(group) }, NULL) == 0;
}

int stream_find_recv(struct node *dir, const char *name)
{
	char group[256], topic[256];

	return stream_recv_names(name, group, topic) ? source->has_topic(topic) : -ENOENT;
}
