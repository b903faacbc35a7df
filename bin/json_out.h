/* json_out.h: a message as one line of JSON, the form of mq-recv -J and mq-send -J (mq-send(1), JSON LINES). */
#ifndef BIN_JSON_OUT_H
#define BIN_JSON_OUT_H

#include "bytes.h"

/* Append the message and a newline.  `body` is in plain form; `broker` the name of the broker of m->queue_id, or NULL if the message
 * is in no queue.  Left out: what is empty, offset < 0, times <= 0, hosts that are unset. */
void json_out_message(struct bytes *b, const struct mq_message *m, struct mq_str body, const char *broker);

/* The properties of the user as an object, {"name":"value",...}; a value that is no text as "name64":"base64". */
void json_out_props(struct bytes *b, struct mq_str props);

/* A JSON text in quotes.  `s` must be UTF-8 (bytes_is_text()). */
void json_out_text(struct bytes *b, struct mq_str s);

#endif
