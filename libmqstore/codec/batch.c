/* batch.c: many messages in one body, as SEND_BATCH_MESSAGE carries them.
 *
 * Knows where one message ends and the next begins; leaves what a batch may contain to the broker. */
#include "batch.h"
#include "../base/byte.h"

enum { BATCH_ITEM_MIN = 22 };

int batch_next(struct mq_str batch, size_t *pos, struct batch_item *item)
{
	if (*pos >= batch.n)
		return 0;
	struct cursor c = cursor_of(batch.p + *pos, batch.n - *pos);
	/* compat: total size, magic and checksum are not looked at; the lengths inside decide. */
	cursor_take(&c, 12);
	item->flag = (int32_t)cursor_u32(&c);
	item->body = cursor_str(&c, cursor_u32(&c));
	uint32_t props = cursor_u16(&c);
	if (props > MQ_PROPS_MAX)
		return MQ_ECORRUPT;
	item->props = cursor_str(&c, props);
	if (c.bad)
		return MQ_ECORRUPT;
	*pos = batch.n - cursor_left(&c);
	return 1;
}

void batch_put(struct buf *b, const struct batch_item *item)
{
	size_t n = BATCH_ITEM_MIN + item->body.n + item->props.n;
	char *p = buf_room(b, n);
	put_be32(p, (uint32_t)n);
	memset(p + 4, 0, 8);
	put_be32(p + 12, (uint32_t)item->flag);
	put_be32(p + 16, (uint32_t)item->body.n);
	if (item->body.n)
		memcpy(p + 20, item->body.p, item->body.n);
	p += 20 + item->body.n;
	put_be16(p, (uint16_t)item->props.n);
	if (item->props.n)
		memcpy(p + 2, item->props.p, item->props.n);
	b->n += n;
}
