/* id.h: the two kinds of message id.  mq_offset_id() and mq_offset_id_parse() (mq.h) are defined here.
 *
 * UNIQ_KEY: hex of ip (4) | pid (i16) | random of this process (i32) | ms since the start of the month, local time (i32) |
 * counter (i16).  The Java tools decode address and time from it.  The random part is drawn per process, so that
 * containers with one address and pid 1 do not meet; when the counter wraps within one ms the time moves on. */
#ifndef CODEC_ID_H
#define CODEC_ID_H

#include <mq.h>

struct id_maker {
	uint8_t prefix[10];
	int64_t month_start_ms, month_end_ms, last_ms;
	uint32_t counter;
};
void id_maker_init(struct id_maker *m, const uint8_t ip4[4]);
void id_make(struct id_maker *m, int64_t now_ms, char out[33]);

#endif
