/* topic.c: see topic.h. */
#include "topic.h"
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>
#include <string.h>

static const char *const system_names[] = {
	TOPIC_DEFAULT, TOPIC_SCHEDULE, "BenchmarkTest", TOPIC_HALF, "RMQ_SYS_TRACE_TOPIC",
	TOPIC_OP_HALF, TOPIC_GIVEN_UP, "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC",
};
static const char *const no_send_names[] = {
	TOPIC_SCHEDULE, TOPIC_HALF, TOPIC_OP_HALF, TOPIC_GIVEN_UP,
	"SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
};

static bool is_one_of(struct mq_str name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, list[i]))
			return true;
	return false;
}

bool topic_is_system(struct mq_str name)
{
	return str_starts(name, "rmq_sys_") ||
	       is_one_of(name, system_names, sizeof system_names / sizeof system_names[0]);
}

struct topic *topic_new(struct mq_str name)
{
	struct topic *t = mem_alloc(sizeof *t + name.n + 1);

	memcpy(t->name, name.p, name.n);
	t->conf.name = (struct mq_str){ t->name, name.n };
	t->refs = 1;
	t->system = topic_is_system(name);
	t->no_send = is_one_of(name, no_send_names, sizeof no_send_names / sizeof no_send_names[0]);
	t->retry = str_starts(name, TOPIC_RETRY_PREFIX);
	return t;
}

struct topic *topic_get(struct topic *t)
{
	t->refs++;
	return t;
}

void topic_put(struct topic *t)
{
	if (--t->refs > 0)
		return;
	tally_end(&t->put);
	body_free(&t->keep);
	free(t->queue);
	free(t);
}
