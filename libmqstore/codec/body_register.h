/* body_register.h: what a broker tells the name server about itself (103), plain or compressed.
 * Source: the peer's RegisterBrokerBody. */
#ifndef CODEC_BODY_REGISTER_H
#define CODEC_BODY_REGISTER_H

#include "body_topic.h"

enum { BODY_REGISTER_MAX = 64 * 1024 * 1024 };          /* of the inflated body */

struct body_register {
	struct body_topic_table topics; /* owns all memory */
	size_t nfilters;
	struct mq_str *filter;          /* filter server addresses: a thing of the past */
};
/* peer_version: of the request: from 413 on the compressed form ends with the mappings of static topics. */
int body_register_decode(struct mq_str body, bool compressed, int32_t peer_version, struct body_register *r,
                         struct mq_error *e);
void body_register_encode(const struct body_register *r, struct buf *out);
/* The zlib form, as a peer of version 413 or later reads it. */
int body_register_encode_compressed(const struct body_register *r, struct buf *out);
void body_register_free(struct body_register *r);

#endif
