/* receipt.c: handles of popped messages, names of their retry topics. */
#include "receipt.h"
#include "../base/err.h"
#include "../base/str.h"

#define RETRY_PREFIX "%RETRY%"

enum { FIELDS_MIN = 6, FIELDS_MAX = 9 };

int receipt_parse(struct mq_str text, struct receipt *r, struct mq_error *e)
{
	struct mq_str rest = text, f[FIELDS_MAX];
	int64_t log_off;
	int32_t retry = 0;
	size_t n = 0;
	char show[160];
	bool ok;

	while (n < FIELDS_MAX && str_split(&rest, ' ', &f[n]))
		n++;
	*r = (struct receipt){ .queue_id = -1, .off = -1 };
	ok = n >= FIELDS_MIN && !rest.n && str_i64(f[0], &r->start) == 0 && str_i64(f[1], &r->pop_ms) == 0 &&
	     str_i64(f[2], &r->invisible_ms) == 0 && str_i32(f[3], &r->revive_queue) == 0 && str_i32(f[4], &retry) == 0 &&
	     retry >= RECEIPT_NORMAL && retry <= RECEIPT_RETRY_V2 && (n < 7 || str_i32(f[6], &r->queue_id) == 0) &&
	     (n < 8 || str_i64(f[7], &r->off) == 0) && (n < 9 || str_i64(f[8], &log_off) == 0);
	if (!ok)
		return err_set(e, MQ_EINVAL, "handle '%s': not 'start popTime invisibleTime reviveQueue retry broker queue offset'",
			       str_show(text, show, sizeof show));
	r->retry = (enum receipt_retry)retry;
	r->broker = f[5];
	return 0;
}

void receipt_write(const struct receipt *r, struct buf *out)
{
	buf_printf(out, "%lld %lld %lld %d %d ", (long long)r->start, (long long)r->pop_ms, (long long)r->invisible_ms,
		   (int)r->revive_queue, (int)r->retry);
	buf_str(out, r->broker); /* whatever bytes it has */
	buf_printf(out, " %d", (int)r->queue_id);
	if (r->off >= 0)
		buf_printf(out, " %lld", (long long)r->off);
}

enum receipt_retry receipt_retry_of(struct mq_str topic)
{
	if (!str_starts(topic, RETRY_PREFIX))
		return RECEIPT_NORMAL;
	return memchr(topic.p, '+', topic.n) ? RECEIPT_RETRY_V2 : RECEIPT_RETRY_V1;
}

struct mq_str receipt_topic(char out[RECEIPT_TOPIC_MAX + 1], enum receipt_retry retry, struct mq_str topic, struct mq_str group)
{
	const size_t prefix = retry == RECEIPT_NORMAL ? 0 : sizeof RETRY_PREFIX - 1 + group.n + 1;
	char *p = out;

	if (prefix + topic.n > RECEIPT_TOPIC_MAX)
		return (struct mq_str){ 0 };
	if (prefix) {
		memcpy(p, RETRY_PREFIX, sizeof RETRY_PREFIX - 1);
		p += sizeof RETRY_PREFIX - 1;
		if (group.n)
			memcpy(p, group.p, group.n);
		p += group.n;
		*p++ = retry == RECEIPT_RETRY_V1 ? '_' : '+';
	}
	if (topic.n)
		memcpy(p, topic.p, topic.n);
	p[topic.n] = 0;
	return (struct mq_str){ out, prefix + topic.n };
}

struct mq_str receipt_normal_topic(struct mq_str topic, struct mq_str group)
{
	const size_t prefix = sizeof RETRY_PREFIX - 1;

	if (!str_starts(topic, RETRY_PREFIX))
		return topic;
	if (topic.n < prefix + group.n + 1 || !str_eq((struct mq_str){ topic.p + prefix, group.n }, group) ||
	    (topic.p[prefix + group.n] != '_' && topic.p[prefix + group.n] != '+'))
		return (struct mq_str){ 0 };
	return (struct mq_str){ topic.p + prefix + group.n + 1, topic.n - prefix - group.n - 1 };
}
