/* body.h: what all JSON bodies share: memory, pairs, queues, versions.  Source: the peer's RemotingSerializable, DataVersion.
 *
 * Each body_NOUN.h declares plain structs with a decoder, an encoder and a free function.
 * Decoding: everything that the struct points to (arrays and texts) is owned by its `keep` and is good until the free function;
 * the text that was decoded is not needed any more.  A decoder that fails leaves nothing to free.  Members that are absent get
 * the peer's defaults; unknown members are ignored; a member of a wrong kind counts as absent, as with the peer.
 * Encoding: the caller fills the struct with whatever pointers it has and leaves `keep` zero.  Keys come in the peer's order. */
#ifndef CODEC_BODY_H
#define CODEC_BODY_H

#include "../base/json.h"

/* Memory of one decoded body. */
struct body_chunk;
struct body_keep {
	struct body_chunk *chunks;
	json_t *json;
};
void *body_alloc(struct body_keep *k, size_t n);                        /* zeroed, aligned for all types */
struct mq_str body_copy(struct body_keep *k, struct mq_str s);
void body_free(struct body_keep *k);

struct body_pair {
	struct mq_str key, value;
};

struct body_queue {
	struct mq_str topic, broker;
	int32_t id;
};

/* DataVersion.  Two are the same only if all three numbers are. */
struct body_version {
	int64_t state, timestamp, counter;
};
static inline bool body_version_eq(const struct body_version *a, const struct body_version *b)
{
	return a->state == b->state && a->timestamp == b->timestamp && a->counter == b->counter;
}
/* A change was made: time now, one more; state is the broker's (state machine) version. */
void body_version_next(struct body_version *v, int64_t now_ms, int64_t state);
int body_version_decode(struct mq_str body, struct body_version *v, struct mq_error *e);
void body_version_encode(const struct body_version *v, struct buf *out);

/* Parts, for the other body_*.c and for files of the same shape. */
void body_version_get(const json_t *o, struct body_version *v);                 /* NULL: zeros */
void body_version_put(struct json_out *o, const char *key, const struct body_version *v);
void body_queue_get(const json_t *o, struct body_queue *q);
void body_queue_put(struct json_out *o, const struct body_queue *q);            /* as a value */
void body_queue_put_key(struct json_out *o, const struct body_queue *q);        /* as a key: {{...}:  */
void body_queue_get_key(struct body_keep *k, const char *key, struct body_queue *q);
size_t body_strings_get(struct body_keep *k, const json_t *array, struct mq_str **v);   /* returns how many */
void body_strings_put(struct json_out *o, const char *key, const struct mq_str *v, size_t n);
size_t body_pairs_get(struct body_keep *k, const json_t *object, struct body_pair **v);
void body_pairs_put(struct json_out *o, const char *key, const struct body_pair *v, size_t n);
/* A number of 32 bits; `otherwise` also if it does not fit. */
static inline int32_t body_i32(const json_t *o, const char *key, int32_t otherwise)
{
	int64_t v = json_i64(o, key, otherwise);

	return v == (int32_t)v ? (int32_t)v : otherwise;
}
/* An enum: one of the n names, or its number; `otherwise` if neither. */
int body_enum(const json_t *o, const char *key, const char *const *names, int n, int otherwise);
/* How many members or elements; 0 for NULL. */
size_t body_size(const json_t *v);
/* The document as an object: 0, or MQ_EINVAL with the reason; k->json is set. */
int body_parse(struct body_keep *k, struct mq_str body, const char *what, struct mq_error *e);

#endif
