/* frame_out.c: writing frames.
 *
 * Everything goes straight into the caller's buffer, in the order in which the peer writes it (keys sorted); the lengths are
 * patched at the end.  Room is asked for once per step, with the longest form of everything but strings. */
#include "frame.h"
#include "frame_json.h"
#include "../base/byte.h"

#define OUT_STRINGIFY_(x) #x
#define OUT_STRINGIFY(x) OUT_STRINGIFY_(x)

/* Text in pieces: what stands around code, fields, flag, opaque, remark.  Language: a name that all clients know. */
#define OUT_CODE "{\"code\":"
#define OUT_FIELDS ",\"extFields\":{"
#define OUT_FLAG ",\"flag\":"
#define OUT_OPAQUE ",\"language\":\"JAVA\",\"opaque\":"
#define OUT_REMARK ",\"remark\":"
#define OUT_TAIL ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":" OUT_STRINGIFY(MQ_PEER_VERSION) "}"
enum {
	OUT_LANGUAGE = 0,       /* JAVA */
	OUT_DIGITS = 20,        /* of an int64 with its sign */
	OUT_ENVELOPE = 8,
	OUT_BINARY_FIXED = 13,  /* before the remark */
};

#define put_text(p, literal) ((char *)memcpy((p), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

static const char digit_pairs[] =
	"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static inline char *put_i64(char *p, int64_t v)
{
	char digits[OUT_DIGITS], *d = digits + sizeof(digits);
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
	size_t n;

	if (u < 10 && v >= 0) {
		*p = (char)('0' + u);
		return p + 1;
	}
	for (; u >= 100; u /= 100)
		memcpy(d -= 2, digit_pairs + u % 100 * 2, 2);
	if (u >= 10)
		memcpy(d -= 2, digit_pairs + u * 2, 2);
	else
		*--d = (char)('0' + u);
	if (v < 0)
		*--d = '-';
	n = (size_t)(digits + sizeof(digits) - d);
	return frame_move(p, d, n);
}

/* s with quotes and what JSON asks to be escaped; b has no room yet. */
static void put_quoted(struct buf *b, struct mq_str s)
{
	const char *p = s.p, *end = s.p + s.n, *special;
	static const char hex[] = "0123456789ABCDEF";
	char *w = buf_room(b, s.n + 2);

	*w++ = '"';
	while (p < end) {
		special = frame_json_special(p, end);
		w = frame_move(w, p, (size_t)(special - p));
		p = special;
		if (p == end)
			break;
		/* Six bytes for one: make room for them, the rest of the text and the quote. */
		b->n = (size_t)(w - b->p);
		w = buf_room(b, (size_t)(end - p) + 7);
		*w++ = '\\';
		switch (*p) {
		case '"': case '\\': *w++ = *p; break;
		case '\b': *w++ = 'b'; break;
		case '\f': *w++ = 'f'; break;
		case '\n': *w++ = 'n'; break;
		case '\r': *w++ = 'r'; break;
		case '\t': *w++ = 't'; break;
		default:
			w = put_text(w, "u00");
			*w++ = hex[(unsigned char)*p >> 4];
			*w++ = hex[(unsigned char)*p & 15];
		}
		p++;
	}
	*w++ = '"';
	b->n = (size_t)(w - b->p);
}

static void begin(struct frame_out *o, struct buf *b, int type, int32_t code, int32_t opaque, int32_t flag,
                  struct mq_str remark)
{
	char *p;

	*o = (struct frame_out){
		.buf = b, .start = b->n, .type = (uint8_t)type, .opaque = opaque, .flag = flag, .remark = remark
	};
	if (type == FRAME_BINARY) {
		p = buf_room(b, OUT_ENVELOPE + OUT_BINARY_FIXED + 4 + remark.n + 4) + OUT_ENVELOPE;
		put_be16(p, (uint16_t)code);
		p[2] = OUT_LANGUAGE;
		put_be16(p + 3, MQ_PEER_VERSION);
		put_be32(p + 5, (uint32_t)opaque);
		put_be32(p + 9, (uint32_t)flag);
		put_be32(p + 13, (uint32_t)remark.n);
		if (remark.n)
			memcpy(p + 17, remark.p, remark.n);
		o->fields_at = (size_t)(p + 17 + remark.n - b->p);
		b->n = o->fields_at + 4;
	} else {
		p = buf_room(b, OUT_ENVELOPE + sizeof(OUT_CODE) + OUT_DIGITS) + OUT_ENVELOPE;
		p = put_i64(put_text(p, OUT_CODE), code);
		b->n = (size_t)(p - b->p);
	}
}

void frame_request(struct frame_out *o, struct buf *b, int type, int32_t code, int32_t opaque, int32_t flag)
{
	if (code < INT16_MIN || code > INT16_MAX)
		type = FRAME_JSON;
	begin(o, b, type, code, opaque, flag, (struct mq_str){ NULL, 0 });
}

void frame_answer(struct frame_out *o, struct buf *b, struct frame_id to, int32_t code, struct mq_str remark)
{
	begin(o, b, to.type, code, to.opaque, FRAME_RESPONSE, remark);
}

/* `{"key":` or `,"key":` at p, which has room for 14 + key_n + 4. */
static inline char *put_key(struct frame_out *o, char *p, const char *key, size_t key_n)
{
	if (o->comma) {
		*p++ = ',';
	} else {
		p = put_text(p, OUT_FIELDS);
		o->comma = true;
	}
	*p++ = '"';
	p = frame_move(p, key, key_n);
	*p++ = '"';
	*p++ = ':';
	return p;
}

void frame_put_str(struct frame_out *o, const char *key, size_t key_n, struct mq_str value)
{
	struct buf *b = o->buf;
	char *p;

	if (!value.p)
		return;
	if (o->type == FRAME_BINARY) {
		p = buf_room(b, 2 + key_n + 4 + value.n);
		put_be16(p, (uint16_t)key_n);
		memcpy(p + 2, key, key_n);
		put_be32(p + 2 + key_n, (uint32_t)value.n);
		memcpy(p + 6 + key_n, value.p, value.n);
		b->n += 6 + key_n + value.n;
		return;
	}
	p = put_key(o, buf_room(b, sizeof(OUT_FIELDS) + key_n + 4), key, key_n);
	b->n = (size_t)(p - b->p);
	put_quoted(b, value);
}

void frame_put_i64(struct frame_out *o, const char *key, size_t key_n, int64_t value)
{
	struct buf *b = o->buf;
	char *p, *end;

	if (o->type == FRAME_BINARY) {
		p = buf_room(b, 2 + key_n + 4 + OUT_DIGITS);
		put_be16(p, (uint16_t)key_n);
		memcpy(p + 2, key, key_n);
		p += 2 + key_n;
		end = put_i64(p + 4, value);
		put_be32(p, (uint32_t)(end - p - 4));
		b->n = (size_t)(end - b->p);
		return;
	}
	p = put_key(o, buf_room(b, sizeof(OUT_FIELDS) + key_n + 4 + OUT_DIGITS + 2), key, key_n);
	*p++ = '"';
	p = put_i64(p, value);
	*p++ = '"';
	b->n = (size_t)(p - b->p);
}

void frame_body(struct frame_out *o)
{
	struct buf *b = o->buf;
	char *p;

	if (o->header_done)
		return;
	o->header_done = true;
	if (o->type == FRAME_BINARY) {
		put_be32(b->p + o->fields_at, (uint32_t)(b->n - o->fields_at - 4));
	} else {
		p = buf_room(b, 1 + sizeof(OUT_FLAG) + OUT_DIGITS + sizeof(OUT_OPAQUE) + OUT_DIGITS +
		                        sizeof(OUT_REMARK) + sizeof(OUT_TAIL));
		if (o->comma)
			*p++ = '}';
		p = put_i64(put_text(p, OUT_FLAG), o->flag);
		p = put_i64(put_text(p, OUT_OPAQUE), o->opaque);
		if (o->remark.n) {
			p = put_text(p, OUT_REMARK);
			b->n = (size_t)(p - b->p);
			put_quoted(b, o->remark);
			p = buf_room(b, sizeof(OUT_TAIL));
		}
		p = put_text(p, OUT_TAIL);
		b->n = (size_t)(p - b->p);
	}
	put_be32(b->p + o->start + 4, (uint32_t)o->type << 24 | (uint32_t)(b->n - o->start - OUT_ENVELOPE));
}

void frame_end(struct frame_out *o)
{
	frame_body(o);
	put_be32(o->buf->p + o->start, (uint32_t)(o->buf->n - o->start - 4));
}
