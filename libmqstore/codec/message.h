/* message.h: one stored message: the same bytes in the commit log, in a pull answer, in a replica's stream.
 * Source: mqstore(5).  mq_message_decode() (mq.h) is defined here. */
#ifndef CODEC_MESSAGE_H
#define CODEC_MESSAGE_H

#include <mq.h>

/* Fixed places of a record with an IPv4 born host (decoders use the cursor; the store patches these at append). */
enum { RECORD_AT_SIZE = 0, RECORD_AT_MAGIC = 4, RECORD_AT_CRC = 8, RECORD_AT_QUEUE_ID = 12, RECORD_AT_FLAG = 16,
       RECORD_AT_QUEUE_OFF = 20, RECORD_AT_LOG_OFF = 28, RECORD_AT_SYS_FLAG = 36, RECORD_AT_BORN = 40, RECORD_AT_BORN_HOST = 48 };

/* What to encode; props in pieces as in mqstore.h.  sys_flag's v6 bits are set by the encoder from the hosts. */
struct message_parts {
	struct mq_str topic, body, props[3];
	int32_t queue_id, flag, sys_flag, reconsume_times;
	int64_t queue_off, log_off, born_ms, store_ms, prepared_off;
	struct mq_host born_host, store_host;
};
/* Bytes that message_encode() will write, or MQ_ETOOBIG when properties exceed MQ_PROPS_MAX or the topic 255 bytes. */
int64_t message_size(const struct message_parts *m);
/* Write the record at p, which has room for message_size(m). Body CRC is computed here. */
void message_encode(const struct message_parts *m, void *p);

/* The few fields that recovery and dispatch need, without touching the body: 0 / size / MQ_ECORRUPT as mq_message_decode().
 * Also tells a blank: *blank = true and the return value is the bytes left in the segment. */
int32_t message_peek(const void *p, size_t n, struct mq_message *m, bool *blank);
/* Store time and queue offset of a whole record at p. */
int64_t message_store_ms(const void *p);
int64_t message_queue_off(const void *p);

#endif
