/* frame.c: where a frame ends, what its binary header holds, names of languages.
 *
 * Knows the envelope and the binary header.  The JSON header is read by frame_json.c, frames are written by frame_out.c. */
#include "frame.h"
#include "frame_json.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/str.h"

enum { FRAME_AT_HEADER = 8 };

/* By number: the peer's LanguageCode. */
static const char *const languages[] = {
	"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
};
enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]) };

int64_t frame_length(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint32_t length;

	if (n < 4)
		return 0;
	length = be32(b);
	if (length < 4 || length > FRAME_MAX - 4)
		return MQ_EPROTO;
	/* Garbage shows here, before 16 MiB of it have been waited for. */
	if (n >= 8 && (b[4] > FRAME_BINARY || (be32(b + 4) & 0xffffff) > length - 4))
		return MQ_EPROTO;
	return (int64_t)length + 4;
}

/* i16 code, u8 language, i16 version, i32 opaque, i32 flag, i32 n + remark, i32 n + fields: (i16 n + key, i32 n + value)*
 * A length that is negative is huge when read as unsigned, so the cursor refuses it. */
static int binary_parse(const void *p, size_t n, struct frame *f, struct mq_error *e)
{
	struct cursor c = cursor_of(p, n), map;
	struct mq_str text;

	f->code = (int16_t)cursor_u16(&c);
	f->language = cursor_u8(&c);
	f->version = (int16_t)cursor_u16(&c);
	f->opaque = (int32_t)cursor_u32(&c);
	f->flag = (int32_t)cursor_u32(&c);
	text = cursor_str(&c, cursor_u32(&c));
	if (text.n)
		f->remark = text;
	text = cursor_str(&c, cursor_u32(&c));
	if (c.bad)
		return err_set(e, MQ_EPROTO, "binary header of %zu bytes is cut short or has a bad length", n);
	if (f->language >= LANGUAGES)
		f->language = 255;
	if (!text.n)
		return 0;
	f->has_fields = true;
	map = cursor_of(text.p, text.n);
	while (cursor_left(&map)) {
		struct mq_str key = cursor_str(&map, cursor_u16(&map)), value = cursor_str(&map, cursor_u32(&map));

		if (map.bad)
			return err_set(e, MQ_EPROTO, "binary header: field %u is cut short or has a bad length",
			               f->nfields);
		/* compat: the peer reads an empty key or value as null. */
		if (!key.n || !value.n)
			continue;
		if (f->nfields == FRAME_FIELDS_MAX)
			return err_set(e, MQ_EPROTO, "binary header: more than %d fields", FRAME_FIELDS_MAX);
		f->field[f->nfields++] = (struct frame_field){ key, value };
	}
	return 0;
}

int frame_parse(void *p, size_t n, struct frame *f, struct mq_error *e)
{
	char *b = p;
	size_t header;

	f->language = 255;
	f->has_fields = false;
	f->code = f->opaque = f->flag = f->version = 0;
	f->remark = f->body = (struct mq_str){ NULL, 0 };
	f->nfields = 0;
	if (n < FRAME_AT_HEADER)
		return err_set(e, MQ_EPROTO, "frame of %zu bytes; the shortest has %d", n, FRAME_AT_HEADER);
	f->type = (uint8_t)b[4];
	header = be32(b + 4) & 0xffffff;
	if (header > n - FRAME_AT_HEADER)
		return err_set(e, MQ_EPROTO, "header of %zu bytes in a frame of %zu", header, n);
	if (n > FRAME_AT_HEADER + header)
		f->body = (struct mq_str){ b + FRAME_AT_HEADER + header, n - FRAME_AT_HEADER - header };
	if (f->type == FRAME_JSON)
		return frame_json_parse(b + FRAME_AT_HEADER, header, f, e);
	if (f->type == FRAME_BINARY)
		return binary_parse(b + FRAME_AT_HEADER, header, f, e);
	return err_set(e, MQ_EPROTO, "header type %d; known are 0 (JSON) and 1 (binary)", f->type);
}

struct mq_str frame_get(const struct frame *f, const char *key)
{
	struct mq_str k = str_of(key);

	for (uint32_t i = f->nfields; i-- > 0;)
		if (str_eq(f->field[i].key, k))
			return f->field[i].value;
	return (struct mq_str){ NULL, 0 };
}

/* ---- Languages --------------------------------------------------------------------------------------------------- */

const char *frame_language_name(uint8_t code)
{
	return code < LANGUAGES ? languages[code] : "OTHER";
}

uint8_t frame_language_code(struct mq_str name)
{
	int32_t number;

	for (uint8_t i = 0; i < LANGUAGES; i++)
		if (str_is(name, languages[i]))
			return i;
	return str_i32(name, &number) == 0 && number >= 0 && number < LANGUAGES ? (uint8_t)number : 255;
}
