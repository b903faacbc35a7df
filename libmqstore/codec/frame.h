/* frame.h: one remoting frame, JSON or binary header.  Source: the peer's RemotingCommand, RocketMQSerializable.
 *
 *      0  i32   length of what follows
 *      4  u8    header type: 0 JSON, 1 binary        5  u24  header length
 *      8  ...   header, then body
 *
 * Reading: frame_length() says how many bytes the frame at the front of a buffer has, frame_parse() then gives views into
 * these bytes.  Escaped JSON strings are unescaped in place, so the bytes must be writable and may be parsed only once.
 * Writing: frame_request()/frame_answer(), then fields, then frame_body() or frame_end().  No allocation but the buf. */
#ifndef CODEC_FRAME_H
#define CODEC_FRAME_H

#include "../base/buf.h"

enum {
	FRAME_MAX = 16 * 1024 * 1024,   /* with the length itself */
	FRAME_FIELDS_MAX = 96,          /* extFields; more are a protocol error */
	FRAME_DEPTH_MAX = 32,           /* of values of unknown keys */
	FRAME_JSON = 0,
	FRAME_BINARY = 1,
	FRAME_RESPONSE = 1,             /* bits of flag */
	FRAME_ONEWAY = 2,
};

struct frame_field {
	struct mq_str key, value; /* value is text, also for JSON numbers and booleans; null fields are left out */
};

struct frame {
	uint8_t type;                   /* FRAME_JSON, FRAME_BINARY */
	uint8_t language;               /* code; 255 = unknown or absent */
	bool has_fields;                /* extFields was there */
	int32_t code, opaque, flag, version;
	struct mq_str remark, body;     /* p == NULL if absent */
	uint32_t nfields;
	struct frame_field field[FRAME_FIELDS_MAX];
};

/* Bytes of the frame at p (with the length field); 0 = length not there yet; MQ_EPROTO: not a frame (close, no answer). */
int64_t frame_length(const void *p, size_t n);
/* n is frame_length().  0 or MQ_EPROTO (close, no answer). */
int frame_parse(void *p, size_t n, struct frame *f, struct mq_error *e);
/* Value of a field; p == NULL if absent.  Last one wins. */
struct mq_str frame_get(const struct frame *f, const char *key);

const char *frame_language_name(uint8_t code);          /* "JAVA"; "OTHER" for unknown */
uint8_t frame_language_code(struct mq_str name);        /* 255 */

/* Whom an answer goes to: kept when the answer comes later. */
struct frame_id {
	int32_t opaque;
	uint8_t type;
	bool oneway;                    /* flag bit 2 was set: no answer is wanted */
};
static inline struct frame_id frame_id_of(const struct frame *f)
{
	return (struct frame_id){ f->opaque, f->type, (f->flag & FRAME_ONEWAY) != 0 };
}

struct frame_out {
	struct buf *buf;
	size_t start;                   /* of the frame in buf */
	size_t fields_at;               /* binary: where the fields' length goes */
	uint8_t type;
	bool comma;                     /* a field was written */
	bool header_done;
	int32_t opaque, flag;
	struct mq_str remark;           /* borrowed until frame_body()/frame_end() */
};
/* A code that does not fit in the binary header's 16 bits (those of pop) goes out as JSON. */
void frame_request(struct frame_out *o, struct buf *b, int type, int32_t code, int32_t opaque, int32_t flag);
/* An answer in the type of its request (ali-ons reads no other).  remark may be empty; borrowed until the header ends. */
void frame_answer(struct frame_out *o, struct buf *b, struct frame_id to, int32_t code, struct mq_str remark);
/* Fields.  Names are literals without characters that need escaping. */
void frame_put_str(struct frame_out *o, const char *key, size_t key_n, struct mq_str value);
void frame_put_i64(struct frame_out *o, const char *key, size_t key_n, int64_t value);
/* Nothing if value.p == NULL. */
static inline void frame_str(struct frame_out *o, const char *key, struct mq_str value)
{
	frame_put_str(o, key, __builtin_strlen(key), value);
}
static inline void frame_cstr(struct frame_out *o, const char *key, const char *value)
{
	frame_put_str(o, key, __builtin_strlen(key), (struct mq_str){ value, value ? __builtin_strlen(value) : 0 });
}
static inline void frame_i64(struct frame_out *o, const char *key, int64_t value)
{
	frame_put_i64(o, key, __builtin_strlen(key), value);
}
static inline void frame_bool(struct frame_out *o, const char *key, bool value)
{
	frame_put_str(o, key, __builtin_strlen(key), value ? MQ_STR("true") : MQ_STR("false"));
}
/* End the header; the caller then appends the body to o->buf and calls frame_end(). */
void frame_body(struct frame_out *o);
/* Ends the header if frame_body() was not called; patches the lengths. */
void frame_end(struct frame_out *o);

#endif
