/* message.c: one stored message as bytes: the commit log record.
 *
 * Knows the layout (reference: mqstore(5)) and both versions of it; leaves properties to property.c, blanks between segments
 * and what follows a record to the store.
 *
 *   off  size  field                           off  size  field
 *     0     4  whole size                       48   8/20 born host: address, i32 port
 *     4     4  magic (version)                   …     8  store time, ms
 *     8     4  CRC of the body, top bit clear    …   8/20 store host
 *    12     4  queue id                          …     4  reconsume times
 *    16     4  application flag                  …     8  prepared transaction offset
 *    20     8  queue offset                      …     4  body length, body
 *    28     8  log offset                        …   1/2  topic length (v1/v2), topic
 *    36     4  sys flag                          …     2  properties length, properties
 *    40     8  born time, ms
 *
 * A host takes 20 bytes instead of 8 if its bit in the sys flag says IPv6, and moves what follows. */
#include "message.h"
#include "layout.h"
#include "../base/buf.h"
#include "../base/crc.h"
#include "../base/zip.h"

enum { TOPIC_MAX_V1 = 127, TOPIC_MAX_V2 = 255, V6_EXTRA = 12 };

static inline bool host_v6(const struct mq_host *h) { return h->len == 16; }

/* Bytes of the properties as message_encode() joins them: a piece that another one follows is closed with 0x02. */
static inline size_t props_size(const struct mq_str props[3])
{
	size_t n = 0;
	bool open = false;
	for (int i = 0; i < 3; i++) {
		if (props[i].n == 0)
			continue;
		n += open + props[i].n;
		open = props[i].p[props[i].n - 1] != 0x02;
	}
	return n;
}

int64_t message_size(const struct message_parts *m)
{
	size_t props = props_size(m->props);
	if (props > MQ_PROPS_MAX || m->topic.n > TOPIC_MAX_V2 || m->body.n > INT32_MAX)
		return MQ_ETOOBIG;
	int64_t n = (int64_t)(RECORD_MIN + m->body.n + m->topic.n + props) + (m->topic.n > TOPIC_MAX_V1) +
		    V6_EXTRA * host_v6(&m->born_host) + V6_EXTRA * host_v6(&m->store_host);
	return n > INT32_MAX ? MQ_ETOOBIG : n;
}

static inline uint8_t *put_host(uint8_t *p, const struct mq_host *h)
{
	if (host_v6(h)) {
		memcpy(p, h->ip, 16);
		p += 16;
	} else {
		memcpy(p, h->ip, 4); /* unset: zeros */
		p += 4;
	}
	put_be32(p, (uint32_t)h->port);
	return p + 4;
}

static inline uint8_t *put_bytes(uint8_t *p, struct mq_str s)
{
	if (s.n)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

void message_encode(const struct message_parts *m, void *record)
{
	uint8_t *start = record, *p = start, *props_len;
	int32_t sys_flag = m->sys_flag & ~(MQ_SYS_BORN_V6 | MQ_SYS_STORE_V6);
	bool v2 = m->topic.n > TOPIC_MAX_V1, open = false;
	if (host_v6(&m->born_host))
		sys_flag |= MQ_SYS_BORN_V6;
	if (host_v6(&m->store_host))
		sys_flag |= MQ_SYS_STORE_V6;
	put_be32(p + RECORD_AT_MAGIC, v2 ? RECORD_MAGIC_V2 : RECORD_MAGIC_V1);
	put_be32(p + RECORD_AT_CRC, crc32_peer(m->body.p, m->body.n));
	put_be32(p + RECORD_AT_QUEUE_ID, (uint32_t)m->queue_id);
	put_be32(p + RECORD_AT_FLAG, (uint32_t)m->flag);
	put_be64(p + RECORD_AT_QUEUE_OFF, (uint64_t)m->queue_off);
	put_be64(p + RECORD_AT_LOG_OFF, (uint64_t)m->log_off);
	put_be32(p + RECORD_AT_SYS_FLAG, (uint32_t)sys_flag);
	put_be64(p + RECORD_AT_BORN, (uint64_t)m->born_ms);
	p = put_host(p + RECORD_AT_BORN_HOST, &m->born_host);
	put_be64(p, (uint64_t)m->store_ms);
	p = put_host(p + 8, &m->store_host);
	put_be32(p, (uint32_t)m->reconsume_times);
	put_be64(p + 4, (uint64_t)m->prepared_off);
	put_be32(p + 12, (uint32_t)m->body.n);
	p = put_bytes(p + 16, m->body);
	if (v2) {
		put_be16(p, (uint16_t)m->topic.n);
		p += 2;
	} else {
		*p++ = (uint8_t)m->topic.n;
	}
	p = put_bytes(p, m->topic);
	props_len = p;
	p += 2;
	for (int i = 0; i < 3; i++) {
		if (m->props[i].n == 0)
			continue;
		if (open)
			*p++ = 0x02;
		p = put_bytes(p, m->props[i]);
		open = p[-1] != 0x02;
	}
	put_be16(props_len, (uint16_t)(p - props_len - 2));
	put_be32(start, (uint32_t)(p - start));
}

static inline const uint8_t *get_host(const uint8_t *p, bool v6, struct mq_host *h)
{
	h->len = v6 ? 16 : 4;
	if (v6)
		memcpy(h->ip, p, 16);
	else
		memset(h->ip, 0, sizeof(h->ip)), memcpy(h->ip, p, 4);
	h->port = (int32_t)be32(p + h->len);
	return p + h->len + 4;
}

int32_t mq_message_decode(const void *record, size_t n, bool check_crc, struct mq_message *m)
{
	const uint8_t *start = record, *p = start;
	if (n < 8)
		return n >= 4 && be32(p) < RECORD_MIN ? MQ_ECORRUPT : 0;
	uint32_t size = be32(p), magic = be32(p + RECORD_AT_MAGIC);
	if ((magic != RECORD_MAGIC_V1 && magic != RECORD_MAGIC_V2) || size < RECORD_MIN || size > INT32_MAX)
		return MQ_ECORRUPT;
	if (size > n)
		return 0;
	m->size = (int32_t)size;
	m->body_crc = be32(p + RECORD_AT_CRC);
	m->queue_id = (int32_t)be32(p + RECORD_AT_QUEUE_ID);
	m->flag = (int32_t)be32(p + RECORD_AT_FLAG);
	m->queue_off = (int64_t)be64(p + RECORD_AT_QUEUE_OFF);
	m->log_off = (int64_t)be64(p + RECORD_AT_LOG_OFF);
	m->sys_flag = (int32_t)be32(p + RECORD_AT_SYS_FLAG);
	m->born_ms = (int64_t)be64(p + RECORD_AT_BORN);

	/* What is left after all that has a fixed size: body, topic and properties must fill it to the last byte. */
	bool v2 = magic == RECORD_MAGIC_V2, born_v6 = m->sys_flag & MQ_SYS_BORN_V6, store_v6 = m->sys_flag & MQ_SYS_STORE_V6;
	int64_t left = (int64_t)size - RECORD_MIN - v2 - V6_EXTRA * born_v6 - V6_EXTRA * store_v6;
	if (left < 0)
		return MQ_ECORRUPT;
	p = get_host(p + RECORD_AT_BORN_HOST, born_v6, &m->born_host);
	m->store_ms = (int64_t)be64(p);
	p = get_host(p + 8, store_v6, &m->store_host);
	m->reconsume_times = (int32_t)be32(p);
	m->prepared_off = (int64_t)be64(p + 4);

	uint32_t body = be32(p + 12);
	p += 16;
	if (body > left)
		return MQ_ECORRUPT;
	left -= body;
	m->body = (struct mq_str){ (const char *)p, body };
	p += body;

	uint32_t topic = v2 ? be16(p) : *p;
	p += 1 + v2;
	if (topic > left || topic > (v2 ? INT16_MAX : TOPIC_MAX_V1))
		return MQ_ECORRUPT;
	left -= topic;
	m->topic = (struct mq_str){ (const char *)p, topic };
	p += topic;

	uint32_t props = be16(p);
	if (props != left || props > MQ_PROPS_MAX)
		return MQ_ECORRUPT;
	m->props = (struct mq_str){ (const char *)p + 2, props };

	/* An empty body has no checksum. */
	if (check_crc && body && crc32_peer(m->body.p, body) != m->body_crc)
		return MQ_ECORRUPT;
	return m->size;
}

int32_t message_peek(const void *p, size_t n, struct mq_message *m, bool *blank)
{
	*blank = n >= BLANK_BYTES && be32((const uint8_t *)p + RECORD_AT_MAGIC) == RECORD_MAGIC_BLANK;
	if (*blank) {
		/* compat: the peer does not look at the length either, it goes to the next segment. */
		uint32_t left = be32(p);
		return left >= BLANK_BYTES && left <= INT32_MAX ? (int32_t)left : BLANK_BYTES;
	}
	return mq_message_decode(p, n, false, m);
}

int64_t message_store_ms(const void *record)
{
	const uint8_t *p = record;
	bool v6 = be32(p + RECORD_AT_SYS_FLAG) & MQ_SYS_BORN_V6;
	return (int64_t)be64(p + RECORD_AT_BORN_HOST + 8 + V6_EXTRA * v6);
}

int64_t message_queue_off(const void *record)
{
	return (int64_t)be64((const uint8_t *)record + RECORD_AT_QUEUE_OFF);
}

int mq_message_body(const struct mq_message *m, size_t max, void **scratch, size_t *scratch_cap, struct mq_str *body)
{
	if (!(m->sys_flag & MQ_SYS_COMPRESSED)) {
		if (m->body.n > max)
			return MQ_ETOOBIG;
		*body = m->body;
		return 0;
	}
	struct buf b = { *scratch, 0, *scratch_cap };
	int rc = zip_unpack(m->sys_flag & MQ_SYS_COMPRESS_TYPE, m->body, max, &b);
	*scratch = b.p;
	*scratch_cap = b.cap;
	*body = rc < 0 ? (struct mq_str){ NULL, 0 } : buf_view(&b);
	return rc;
}
