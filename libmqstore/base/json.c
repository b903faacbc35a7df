/* json.c: members of the peer's JSON, and the writer.  The reader of the dialect is json_read.c. */
#include "json.h"
#include "str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Members --------------------------------------------------------------------------------------------------------- */

struct mq_str json_text(const json_t *v)
{
	if (!json_is_string(v))
		return (struct mq_str){ NULL, 0 };
	return (struct mq_str){ json_string_value(v), json_string_length(v) };
}

struct mq_str json_str(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);
	struct buf text = { 0 };

	if (!v || json_is_string(v))
		return json_text(v);
	if (json_is_integer(v))
		buf_i64(&text, json_integer_value(v));
	else if (json_is_real(v))
		json_put_double(&(struct json_out){ &text, false }, json_real_value(v));
	else if (json_is_boolean(v))
		buf_cstr(&text, json_is_true(v) ? "true" : "false");
	else
		return (struct mq_str){ NULL, 0 };
	/* The text takes the number's place in the object, so that the view lives as long as others do. */
	json_object_set_new((json_t *)(uintptr_t)o, key, json_stringn(text.p, text.n));
	buf_free(&text);
	return json_text(json_object_get(o, key));
}

int64_t json_i64(const json_t *o, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_integer(v))
		return json_integer_value(v);
	if (json_is_real(v)) {
		double d = json_real_value(v);

		return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : otherwise;
	}
	if (json_is_string(v))
		str_i64(str_trim(json_text(v)), &otherwise);
	return otherwise;
}

bool json_bool(const json_t *o, const char *key, bool otherwise)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_boolean(v))
		return json_is_true(v);
	if (json_is_integer(v))
		return json_integer_value(v) == 1;
	if (json_is_string(v))
		return str_bool(json_text(v)) || str_is(json_text(v), "1");
	return otherwise;
}

double json_double(const json_t *o, const char *key, double otherwise)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_number(v))
		return json_number_value(v);
	if (json_is_string(v))
		str_double(str_trim(json_text(v)), &otherwise);
	return otherwise;
}

json_t *json_array_at(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_array(v) ? v : NULL;
}

json_t *json_object_at(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_object(v) ? v : NULL;
}

/* ---- Writer ---------------------------------------------------------------------------------------------------------- */

/* compat: fastjson escapes DEL..U+00A0 and the two line separators too, in upper-case hex. */
void json_quote(struct buf *b, struct mq_str s, bool ascii)
{
	buf_char(b, '"');
	for (size_t i = 0, len; i < s.n; i += len) {
		size_t plain = i;
		uint32_t u, low;
		char c;

		while (i < s.n && s.p[i] >= ' ' && s.p[i] < 0x7f && s.p[i] != '"' && s.p[i] != '\\')
			i++;
		buf_put(b, s.p + plain, i - plain);
		if (i == s.n)
			break;
		c = s.p[i];
		len = str_utf8(s.p + i, s.n - i, &u);
		if (len == 0) {
			len = 1;
			u = 0xfffd; /* what Java would make of it */
		}
		if (c == '"' || c == '\\') {
			buf_char(b, '\\');
			buf_char(b, c);
		} else if (c >= '\b' && c <= '\r' && c != '\v') {
			buf_char(b, '\\');
			buf_char(b, "btn_fr"[c - '\b']);
		} else if (u >= 0x10000 && ascii) {
			low = u - 0x10000;
			buf_printf(b, "\\u%04X\\u%04X", 0xd800 | low >> 10, 0xdc00 | (low & 0x3ff));
		} else if (ascii || u <= 0xa0 || u == 0x2028 || u == 0x2029) {
			buf_printf(b, "\\u%04X", u);
		} else if (u == 0xfffd) {
			buf_cstr(b, "\xef\xbf\xbd");
		} else {
			buf_put(b, s.p + i, len);
		}
	}
	buf_char(b, '"');
}

static void before(struct json_out *o)
{
	if (o->comma)
		buf_char(o->b, ',');
	o->comma = true;
}

void json_open(struct json_out *o, char c)
{
	before(o);
	buf_char(o->b, c);
	o->comma = false;
}

void json_close(struct json_out *o, char c)
{
	buf_char(o->b, c);
	o->comma = true;
}

void json_key_raw(struct json_out *o, const char *text, size_t n)
{
	before(o);
	buf_put(o->b, text, n);
	buf_char(o->b, ':');
	o->comma = false;
}

void json_key_str(struct json_out *o, struct mq_str key)
{
	before(o);
	json_quote(o->b, key, false);
	buf_char(o->b, ':');
	o->comma = false;
}

void json_key(struct json_out *o, const char *key)
{
	json_key_str(o, str_of(key));
}

void json_put_raw(struct json_out *o, struct mq_str json)
{
	before(o);
	buf_str(o->b, json);
}

void json_put_str(struct json_out *o, struct mq_str s)
{
	before(o);
	if (s.p)
		json_quote(o->b, s, false);
	else
		buf_cstr(o->b, "null");
}

void json_put_i64(struct json_out *o, int64_t v)
{
	before(o);
	buf_i64(o->b, v);
}

void json_put_bool(struct json_out *o, bool v)
{
	before(o);
	buf_cstr(o->b, v ? "true" : "false");
}

/* Java's Double.toString: the shortest digits that read back the same, at least one behind the point, and an exponent below
 * 10^-3 and from 10^7 on. */
void json_put_double(struct json_out *o, double v)
{
	char digits[32], sci[40];
	int exp, n;

	before(o);
	if (isnan(v) || isinf(v)) {
		buf_cstr(o->b, "null");
		return;
	}
	if (signbit(v))
		buf_char(o->b, '-');
	v = fabs(v);
	if (v == 0) {
		buf_cstr(o->b, "0.0");
		return;
	}
	for (int precision = 0; precision < 17; precision++) {
		snprintf(sci, sizeof(sci), "%.*e", precision, v);
		if (strtod(sci, NULL) == v)
			break;
	}
	exp = atoi(strchr(sci, 'e') + 1);
	digits[0] = sci[0];
	n = 1;
	for (const char *p = sci + 1; *p != 'e'; p++)
		if (*p >= '0' && *p <= '9') /* whatever the locale's point is */
			digits[n++] = *p;
	if (exp >= -3 && exp < 7) {
		if (exp < 0) {
			buf_cstr(o->b, "0.");
			for (int i = -1; i > exp; i--)
				buf_char(o->b, '0');
			buf_put(o->b, digits, (size_t)n);
			return;
		}
		for (int i = 0; i <= exp; i++)
			buf_char(o->b, i < n ? digits[i] : '0');
		buf_char(o->b, '.');
		if (n > exp + 1)
			buf_put(o->b, digits + exp + 1, (size_t)(n - exp - 1));
		else
			buf_char(o->b, '0');
		return;
	}
	buf_char(o->b, digits[0]);
	buf_char(o->b, '.');
	if (n > 1)
		buf_put(o->b, digits + 1, (size_t)(n - 1));
	else
		buf_char(o->b, '0');
	buf_printf(o->b, "E%d", exp);
}

void json_member_str(struct json_out *o, const char *key, struct mq_str v)
{
	json_key(o, key);
	json_put_str(o, v);
}

void json_member_cstr(struct json_out *o, const char *key, const char *v)
{
	json_key(o, key);
	json_put_str(o, str_of(v));
}

void json_member_i64(struct json_out *o, const char *key, int64_t v)
{
	json_key(o, key);
	json_put_i64(o, v);
}

void json_member_bool(struct json_out *o, const char *key, bool v)
{
	json_key(o, key);
	json_put_bool(o, v);
}

void json_member_double(struct json_out *o, const char *key, double v)
{
	json_key(o, key);
	json_put_double(o, v);
}
