/* controller_live.c: a short list: a controller has some dozens of brokers. */
#include "controller_live.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <stdlib.h>
#include <sys/queue.h>

#define LOG_MODULE "controller"

struct living {
	TAILQ_ENTRY(living) all;
	char *cluster, *name;
	int64_t id;
	const void *conn;
	int64_t last_ms, silent_ms;
	struct controller_life life;
};

struct controller_lives {
	TAILQ_HEAD(, living) all;
};

struct controller_lives *controller_lives_new(void)
{
	struct controller_lives *l = mem_alloc(sizeof(*l));

	TAILQ_INIT(&l->all);
	return l;
}

static void dies(struct controller_lives *l, struct living *b, const char *why)
{
	if (why)
		log_warn("broker does not live any more cluster=%s broker=%s id=%lld why=%s", b->cluster, b->name, (long long)b->id, why);
	TAILQ_REMOVE(&l->all, b, all);
	free(b->cluster);
	free(b->name);
	free(b);
}

void controller_lives_free(struct controller_lives *l)
{
	struct living *b;

	if (!l)
		return;
	while ((b = TAILQ_FIRST(&l->all)))
		dies(l, b, NULL);
	free(l);
}

static struct living *find(struct controller_lives *l, struct mq_str cluster, struct mq_str name, int64_t id)
{
	struct living *b;

	TAILQ_FOREACH(b, &l->all, all)
		if (b->id == id && str_eq(str_of(b->name), name) && str_eq(str_of(b->cluster), cluster))
			return b;
	return NULL;
}

void controller_lives_beat(struct controller_lives *l, const struct broker_heartbeat_header *h, const void *conn, int64_t now_ms)
{
	struct living *b = find(l, h->clusterName, h->brokerName, h->brokerId);
	bool has_epoch = HEADER_HAS(broker_heartbeat_header, h, epoch), has_max = HEADER_HAS(broker_heartbeat_header, h, maxOffset);
	int32_t epoch = has_epoch ? h->epoch : -1;
	int64_t max_off = has_max ? h->maxOffset : -1;

	if (!b) {
		b = mem_alloc(sizeof(*b));
		b->cluster = str_dup(h->clusterName);
		b->name = str_dup(h->brokerName);
		b->id = h->brokerId;
		b->life = (struct controller_life){ epoch, max_off, 0 };
		TAILQ_INSERT_TAIL(&l->all, b, all);
		log_info("broker lives cluster=%s broker=%s id=%lld", b->cluster, b->name, (long long)b->id);
	}
	b->conn = conn;
	b->last_ms = now_ms;
	b->silent_ms = h->heartbeatTimeoutMills > 0 ? h->heartbeatTimeoutMills : CONTROLLER_SILENT_MS;
	b->life.priority = HEADER_HAS(broker_heartbeat_header, h, electionPriority) ? h->electionPriority : INT32_MAX;
	if (epoch > b->life.epoch || (epoch == b->life.epoch && max_off > b->life.max_off)) {
		b->life.epoch = epoch;
		b->life.max_off = max_off;
	}
}

int controller_lives_lost(struct controller_lives *l, const void *conn)
{
	struct living *b, *next;
	int n = 0;

	for (b = TAILQ_FIRST(&l->all); b; b = next) {
		next = TAILQ_NEXT(b, all);
		if (b->conn == conn) {
			dies(l, b, "connection closed");
			n++;
		}
	}
	return n;
}

int controller_lives_scan(struct controller_lives *l, int64_t now_ms)
{
	struct living *b, *next;
	int n = 0;

	for (b = TAILQ_FIRST(&l->all); b; b = next) {
		next = TAILQ_NEXT(b, all);
		if (now_ms - b->last_ms > b->silent_ms) {
			dies(l, b, "silent");
			n++;
		}
	}
	return n;
}

const struct controller_life *controller_lives_look(void *lives, struct mq_str cluster, struct mq_str name, int64_t id)
{
	struct living *b = find(lives, cluster, name, id);

	return b ? &b->life : NULL;
}
