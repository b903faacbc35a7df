/* message.c: see message.h. */
#include "message.h"
#include "../bin/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_BYTES = 16 * 1024 * 1024, PLAIN_MAX = 64 * 1024 * 1024 };

static struct message *table;
static TAILQ_HEAD(, message) lru = TAILQ_HEAD_INITIALIZER(lru);
static size_t kept_bytes;

static size_t make_key(char key[600], const char *topic, const char *broker, int32_t id, int64_t off)
{
	return (size_t)snprintf(key, 600, "%s%c%s:%d%c%lld", topic, 0, broker, id, 0, (long long)off);
}

static void drop(struct message *m)
{
	HASH_DEL(table, m);
	TAILQ_REMOVE(&lru, m, lru);
	kept_bytes -= m->bytes;
	m->kept = false;
	message_unref(m);
}

static void keep(struct message *m)
{
	m->kept = true;
	m->refs++;
	HASH_ADD_KEYPTR(hh, table, m->key, m->key_n, m);
	TAILQ_INSERT_TAIL(&lru, m, lru);
	kept_bytes += m->bytes;
	while (kept_bytes > CACHE_BYTES)
		drop(TAILQ_FIRST(&lru));
}

struct message *message_find(const char *topic, const char *broker, int32_t id, int64_t off)
{
	char key[600];
	size_t n = make_key(key, topic, broker, id, off);
	struct message *m;

	HASH_FIND(hh, table, key, n, m);
	if (!m)
		return NULL;
	TAILQ_REMOVE(&lru, m, lru);
	TAILQ_INSERT_TAIL(&lru, m, lru);
	m->refs++;
	return m;
}

struct message *message_take(const char *topic, const char *broker, struct mq_str record)
{
	struct mq_message in;
	struct message *m;
	char key[600];
	size_t n, cap = 0;

	if (mq_message_decode(record.p, record.n, false, &in) <= 0)
		return NULL;
	m = message_find(topic, broker, in.queue_id, in.queue_off);
	if (m)
		return m;
	n = make_key(key, topic, broker, in.queue_id, in.queue_off);
	m = calloc(1, sizeof(*m) + n);
	if (!m || !(m->record = malloc((size_t)in.size)))
		cli_die(CLI_SYSTEM, "out of memory");
	memcpy(m->key, key, n);
	m->key_n = n;
	memcpy(m->record, record.p, (size_t)in.size);
	mq_message_decode(m->record, (size_t)in.size, false, &m->m);
	snprintf(m->broker, sizeof(m->broker), "%s", broker);
	if (mq_message_body(&m->m, PLAIN_MAX, &m->plain, &cap, &m->body) < 0)
		m->body = m->m.body;
	m->bytes = sizeof(*m) + n + (size_t)in.size + (m->plain ? m->body.n : 0);
	m->refs = 1;
	keep(m);
	return m;
}

void message_unref(struct message *m)
{
	if (--m->refs > 0)
		return;
	free(m->record);
	free(m->plain);
	free(m);
}

void message_drop_all(void)
{
	struct message *m;

	while ((m = TAILQ_FIRST(&lru)))
		drop(m);
}
