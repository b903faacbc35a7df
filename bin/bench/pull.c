/* pull.c: asking for messages, and counting what comes. */
#include "bench.h"
#include <base/byte.h>
#include <base/str.h>
#include <codec/layout.h>
#include <codec/message.h>
#include <codec/request.h>

void bench_pull(struct bench *b, struct conn *c, int opaque, int queue, int64_t off, int64_t wait_ms)
{
	struct pull_header h = {
		.consumerGroup = str_of(b->o.group),
		.topic = str_of(b->o.topic),
		.queueId = queue,
		.queueOffset = off,
		.maxMsgNums = b->o.pull_max,
		.sysFlag = PULL_SUBSCRIPTION | (wait_ms ? PULL_SUSPEND : 0),
		.suspendTimeoutMillis = wait_ms,
		.subscription = MQ_STR("*"),
		.expressionType = MQ_STR("TAG"),
		.maxMsgBytes = BENCH_PULL_BYTES,
		.bname = str_of(b->broker_name),
	};
	struct frame_out o;

	HEADER_SET(pull_header, &h, maxMsgBytes);
	HEADER_SET(pull_header, &h, subVersion);
	frame_request(&o, conn_out(c), FRAME_JSON, REQ_PULL_MESSAGE, opaque, 0);
	header_encode(&pull_header_desc, &h, false, &o);
	frame_end(&o);
}

/* The size of a record stands in its first four bytes, that of the body behind the hosts. */
void bench_count_records(struct mq_str body, int64_t *messages, int64_t *bytes)
{
	size_t at = 0;

	*messages = *bytes = 0;
	while (body.n - at >= RECORD_MIN) {
		const uint8_t *p = (const uint8_t *)body.p + at;
		uint32_t size = be32(p), flag = be32(p + RECORD_AT_SYS_FLAG), n;
		size_t body_at = RECORD_AT_BORN_HOST + (flag & MQ_SYS_BORN_V6 ? 20 : 8) + 8 + (flag & MQ_SYS_STORE_V6 ? 20 : 8) + 4 + 8;

		if (size < RECORD_MIN || size > body.n - at || body_at + 4 > size)
			break;
		n = be32(p + body_at);
		*bytes += n;
		++*messages;
		at += size;
	}
	if (at != body.n)
		cli_die(CLI_SYSTEM, "an answer to a pull holds what is no message");
}
