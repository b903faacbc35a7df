/* batch.h: the body of SEND_BATCH_MESSAGE: per message i32 total, i32 magic 0, i32 crc 0, i32 flag, i32 bodyLen + body,
 * i16 propertiesLen + properties.  Source: the peer's MessageDecoder. */
#ifndef CODEC_BATCH_H
#define CODEC_BATCH_H

#include "../base/buf.h"

struct batch_item {
	int32_t flag;
	struct mq_str body, props;
};
/* Next message of the batch at *pos (start with 0).  1 = item filled, 0 = end, MQ_ECORRUPT. */
int batch_next(struct mq_str batch, size_t *pos, struct batch_item *item);
void batch_put(struct buf *b, const struct batch_item *item);

#endif
