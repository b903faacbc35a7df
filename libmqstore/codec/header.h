/* header.h: the fields of every request and answer header, each written once as a list.
 *
 * From a list come the struct (struct NAME, members called as on the wire), and its description NAME_desc, with which
 * header_decode() fills the struct from a frame's fields and header_encode() writes it.  Strings are views into the frame.
 *
 *      F(T, type, member, wire name, alias, need, default)         T is passed through: the name of the struct
 *   type: str i32 i64 boolean;  alias: second accepted wire name or NULL (the one-letter names of V2 sends);
 *   need: REQUIRED OPTIONAL;  default: of an absent optional (0 for str = NULL view). */
#ifndef CODEC_HEADER_H
#define CODEC_HEADER_H

#include "frame.h"

enum header_type { HEADER_str, HEADER_i32, HEADER_i64, HEADER_boolean };
typedef struct mq_str header_str;
typedef int32_t header_i32;
typedef int64_t header_i64;
typedef bool header_boolean;

struct header_field {
	enum header_type type;
	const char *name, *alias;
	uint32_t name_n, alias_n;
	uint32_t off;               /* in the struct */
	bool required;
	int64_t otherwise;
};
struct header_desc {
	const char *name;
	const struct header_field *field;
	uint32_t n;
	uint32_t size;              /* of the struct */
	uint64_t required;          /* bit i: field i is required */
	uint8_t *guess;             /* row of a frame's i-th field, as it was last time; only ever a guess */
};

/* Fill *out.  Returns 0, or MQ_EINVAL with a text that names the field, what it held and what would be right.  Unknown fields are
 * ignored.  The first member of each struct, `present`, has bit i set when field i was there. */
int header_decode(const struct header_desc *d, const struct frame *f, void *out, struct mq_error *e);
/* For who keeps texts of a decoded header as names: 0, or MQ_EINVAL when one has a zero byte, where names would end. */
int header_check_texts(const struct header_desc *d, const void *h, struct mq_error *e);
/* Write the fields that are present (strings: p != NULL; numbers: always if required, else if their bit is set). `alias` = use
 * the second names where there are some (V2 sends). */
void header_encode(const struct header_desc *d, const void *h, bool alias, struct frame_out *o);

#define SEND_HEADER(F, T) \
	F(T, str, producerGroup, "producerGroup", "a", REQUIRED, 0) \
	F(T, str, topic, "topic", "b", REQUIRED, 0) \
	F(T, str, defaultTopic, "defaultTopic", "c", REQUIRED, 0) \
	F(T, i32, defaultTopicQueueNums, "defaultTopicQueueNums", "d", REQUIRED, 0) \
	F(T, i32, queueId, "queueId", "e", REQUIRED, 0) \
	F(T, i32, sysFlag, "sysFlag", "f", REQUIRED, 0) \
	F(T, i64, bornTimestamp, "bornTimestamp", "g", REQUIRED, 0) \
	F(T, i32, flag, "flag", "h", REQUIRED, 0) \
	F(T, str, properties, "properties", "i", OPTIONAL, 0) \
	F(T, i32, reconsumeTimes, "reconsumeTimes", "j", OPTIONAL, 0) \
	F(T, boolean, unitMode, "unitMode", "k", OPTIONAL, 0) \
	F(T, i32, maxReconsumeTimes, "maxReconsumeTimes", "l", OPTIONAL, 0) \
	F(T, boolean, batch, "batch", "m", OPTIONAL, 0) \
	F(T, str, bname, "bname", "n", OPTIONAL, 0)

#define SEND_ANSWER(F, T) \
	F(T, str, msgId, "msgId", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i64, queueOffset, "queueOffset", NULL, REQUIRED, 0) \
	F(T, str, transactionId, "transactionId", NULL, OPTIONAL, 0) \
	F(T, str, batchUniqId, "batchUniqId", NULL, OPTIONAL, 0) \
	F(T, str, recallHandle, "recallHandle", NULL, OPTIONAL, 0) \
	F(T, str, region, "MSG_REGION", NULL, OPTIONAL, 0) \
	F(T, str, trace, "TRACE_ON", NULL, OPTIONAL, 0)

#define PULL_HEADER(F, T) \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i64, queueOffset, "queueOffset", NULL, REQUIRED, 0) \
	F(T, i32, maxMsgNums, "maxMsgNums", NULL, REQUIRED, 0) \
	F(T, i32, sysFlag, "sysFlag", NULL, REQUIRED, 0) \
	F(T, i64, commitOffset, "commitOffset", NULL, REQUIRED, 0) \
	F(T, i64, suspendTimeoutMillis, "suspendTimeoutMillis", NULL, REQUIRED, 0) \
	F(T, str, subscription, "subscription", NULL, OPTIONAL, 0) \
	F(T, i64, subVersion, "subVersion", NULL, OPTIONAL, 0) \
	F(T, str, expressionType, "expressionType", NULL, OPTIONAL, 0) \
	F(T, i32, maxMsgBytes, "maxMsgBytes", NULL, OPTIONAL, 0) \
	F(T, i32, requestSource, "requestSource", NULL, OPTIONAL, -1) \
	F(T, str, proxyFrowardClientId, "proxyFrowardClientId", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define PULL_ANSWER(F, T) \
	F(T, i64, suggestWhichBrokerId, "suggestWhichBrokerId", NULL, REQUIRED, 0) \
	F(T, i64, nextBeginOffset, "nextBeginOffset", NULL, REQUIRED, 0) \
	F(T, i64, minOffset, "minOffset", NULL, REQUIRED, 0) \
	F(T, i64, maxOffset, "maxOffset", NULL, REQUIRED, 0) \
	F(T, i32, topicSysFlag, "topicSysFlag", NULL, OPTIONAL, 0) \
	F(T, i32, groupSysFlag, "groupSysFlag", NULL, OPTIONAL, 0) \
	F(T, i32, forbiddenType, "forbiddenType", NULL, OPTIONAL, 0)

#define HEADER_STRUCT_FIELD(T, type, member, wire, alias, need, otherwise) header_##type member;
#define HEADER_STRUCT_AT(T, type, member, wire, alias, need, otherwise) T##_at_##member,
#define HEADER_DECLARE(LIST, NAME) \
	struct NAME { uint64_t present; LIST(HEADER_STRUCT_FIELD, NAME) }; \
	enum { LIST(HEADER_STRUCT_AT, NAME) }; \
	extern const struct header_desc NAME##_desc;
/* Was the field there?  HEADER_HAS(send_header, &h, batch) */
#define HEADER_HAS(NAME, h, member) ((h)->present >> NAME##_at_##member & 1)
#define HEADER_SET(NAME, h, member) ((h)->present |= (uint64_t)1 << NAME##_at_##member)

#define HEADER_HOT_ALL(H) \
	H(SEND_HEADER, send_header) H(SEND_ANSWER, send_answer) H(PULL_HEADER, pull_header) H(PULL_ANSWER, pull_answer)
HEADER_HOT_ALL(HEADER_DECLARE)

/* The headers of all other requests are declared in the same way, by noun. */
#include "header_client.h"
#include "header_admin.h"
#include "header_namesrv.h"
#include "header_controller.h"

#endif
