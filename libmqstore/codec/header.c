/* header.c: between a frame's fields and the structs of header.h.
 *
 * The descriptions of all headers are made here from their lists.  Peers send the fields of one kind of request in the same
 * order again and again (Go: in any), so the row of the field that stood in this place last time is tried first. */
#include "header.h"
#include "../base/err.h"
#include "../base/str.h"

#define HEADER_NEED_REQUIRED 1
#define HEADER_NEED_OPTIONAL 0
#define HEADER_TEXT_N(text) _Generic((text), char *: sizeof(text) - 1, default: 0)
/* Aliases are letters (the search relies on it). */
#define HEADER_ROW(T, type, member, wire, alias, need, otherwise) \
	{ HEADER_##type, wire, alias, sizeof(wire) - 1, HEADER_TEXT_N(alias), offsetof(struct T, member), \
	  HEADER_NEED_##need, otherwise },
#define HEADER_ALIAS(T, type, member, wire, alias, need, otherwise) \
	_Static_assert(HEADER_TEXT_N(alias) <= 1 && sizeof(wire) > 2, "an alias is one letter, a name more than one");
#define HEADER_BIT(T, type, member, wire, alias, need, otherwise) \
	| (uint64_t)HEADER_NEED_##need << T##_at_##member
#define HEADER_DEFINE(LIST, NAME) \
	static const struct header_field NAME##_fields[] = { LIST(HEADER_ROW, NAME) }; \
	LIST(HEADER_ALIAS, NAME) \
	_Static_assert(sizeof(NAME##_fields) / sizeof(struct header_field) <= 64, "`present` has 64 bits"); \
	static uint8_t NAME##_guess[sizeof(NAME##_fields) / sizeof(struct header_field)]; \
	const struct header_desc NAME##_desc = { #NAME, NAME##_fields, sizeof(NAME##_fields) / sizeof(struct header_field), \
		sizeof(struct NAME), 0 LIST(HEADER_BIT, NAME), NAME##_guess };

HEADER_HOT_ALL(HEADER_DEFINE)
HEADER_CLIENT_ALL(HEADER_DEFINE)
HEADER_ADMIN_ALL(HEADER_DEFINE)
HEADER_NAMESRV_ALL(HEADER_DEFINE)
HEADER_CONTROLLER_ALL(HEADER_DEFINE)

const struct header_desc none_header_desc = { "none_header", NULL, 0, sizeof(struct none_header), 0, NULL };

static inline void store(const struct header_field *r, void *out, int64_t number, struct mq_str text)
{
	char *at = (char *)out + r->off;

	switch (r->type) {
	case HEADER_str: memcpy(at, &text, sizeof(text)); break;
	case HEADER_i32: memcpy(at, &(int32_t){ (int32_t)number }, 4); break;
	case HEADER_i64: memcpy(at, &number, 8); break;
	case HEADER_boolean: *(bool *)at = number != 0; break;
	}
}

/* Decimal digits with a sign, as the peer's Long.parseLong; no blanks. */
static inline bool parse_number(struct mq_str t, int64_t *v)
{
	uint64_t x = 0;
	size_t i = t.n && (t.p[0] == '-' || t.p[0] == '+');
	unsigned d;

	if (i == t.n || t.n - i > 18)
		return str_i64(t, v) == 0;      /* empty, or near the ends of the range */
	for (; i < t.n; i++) {
		d = (unsigned char)t.p[i] - '0';
		if (d > 9)
			return false;
		x = x * 10 + d;
	}
	*v = t.p[0] == '-' ? -(int64_t)x : (int64_t)x;
	return true;
}

/* compat: as the peer: the word true in any case, nothing else. */
static inline bool parse_boolean(struct mq_str t)
{
	uint32_t v, word;

	if (t.n != 4)
		return false;
	memcpy(&v, t.p, 4);
	memcpy(&word, "true", 4);
	return (v | 0x20202020) == word;
}

static int refuse(const struct header_field *r, struct mq_str value, struct mq_error *e)
{
	char shown[80];

	if (!value.p)
		return err_set(e, MQ_EINVAL, "field '%s' is missing", r->name);
	return err_set(e, MQ_EINVAL, "field '%s' is '%s'; a whole number of %d bits is right", r->name,
	               str_show(value, shown, sizeof(shown)), r->type == HEADER_i32 ? 32 : 64);
}

/* memcmp() without the call for what names are: 4 to 16 bytes. */
static inline bool same(const char *a, const char *b, size_t n)
{
	uint64_t a8, b8, c8, d8;
	uint32_t a4, b4, c4, d4;

	if (n >= 8 && n <= 16) {
		memcpy(&a8, a, 8);
		memcpy(&b8, b, 8);
		memcpy(&c8, a + n - 8, 8);
		memcpy(&d8, b + n - 8, 8);
		return a8 == b8 && c8 == d8;
	}
	if (n >= 4 && n < 8) {
		memcpy(&a4, a, 4);
		memcpy(&b4, b, 4);
		memcpy(&c4, a + n - 4, 4);
		memcpy(&d4, b + n - 4, 4);
		return a4 == b4 && c4 == d4;
	}
	return memcmp(a, b, n) == 0;
}

static inline bool named(const struct header_field *r, struct mq_str key)
{
	if (key.n == 1)
		return r->alias_n == 1 && key.p[0] == r->alias[0];
	return key.n == r->name_n && same(key.p, r->name, key.n);
}

/* Row of this name; n if there is none.  The search starts at row `from`. */
static uint32_t find_row(const struct header_desc *d, struct mq_str key, uint32_t from)
{
	for (uint32_t tries = d->n, at = from; tries; tries--, at++) {
		if (at == d->n)
			at = 0;
		if (named(&d->field[at], key))
			return at;
	}
	return d->n;
}

int header_decode(const struct header_desc *d, const struct frame *f, void *out, struct mq_error *e)
{
	uint64_t present = 0, missing;
	uint32_t at = 0, n = d->n;
	int64_t number;

	for (uint32_t i = 0; i < f->nfields; i++) {
		struct mq_str key = f->field[i].key, value = f->field[i].value;
		const struct header_field *r;

		/* Several threads may decode: a guess is one byte and is checked before it counts. */
		if (i < n) {
			at = __atomic_load_n(&d->guess[i], __ATOMIC_RELAXED);
			if (!named(&d->field[at], key)) {
				at = find_row(d, key, i);
				if (at == n)
					continue;
				__atomic_store_n(&d->guess[i], (uint8_t)at, __ATOMIC_RELAXED);
			}
		} else {
			at = find_row(d, key, 0);
			if (at == n)
				continue;
		}
		r = &d->field[at];
		number = 0;
		if (r->type == HEADER_boolean) {
			number = parse_boolean(value);
		} else if (r->type != HEADER_str) {
			if (!value.n && !r->required)
				continue;       /* compat: "" of an optional number is as good as nothing */
			if (!parse_number(value, &number) || (r->type == HEADER_i32 && number != (int32_t)number))
				return refuse(r, value, e);
		}
		store(r, out, number, value);
		present |= (uint64_t)1 << at;
	}
	missing = ~present & (n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1);
	if (missing & d->required)
		return refuse(&d->field[__builtin_ctzll(missing & d->required)], (struct mq_str){ NULL, 0 }, e);
	for (; missing; missing &= missing - 1) {
		const struct header_field *r = &d->field[__builtin_ctzll(missing)];

		store(r, out, r->otherwise, (struct mq_str){ NULL, 0 });
	}
	memcpy(out, &present, sizeof(present));
	return 0;
}

int header_check_texts(const struct header_desc *d, const void *h, struct mq_error *e)
{
	for (uint32_t i = 0; i < d->n; i++) {
		const struct header_field *r = &d->field[i];
		struct mq_str text;

		if (r->type != HEADER_str)
			continue;
		memcpy(&text, (const char *)h + r->off, sizeof(text));
		if (text.n && memchr(text.p, 0, text.n))
			return err_set(e, MQ_EINVAL, "field '%s' has a zero byte; a text is expected", r->name);
	}
	return 0;
}

void header_encode(const struct header_desc *d, const void *h, bool alias, struct frame_out *o)
{
	uint64_t present;

	memcpy(&present, h, sizeof(present));
	for (uint32_t i = 0; i < d->n; i++) {
		const struct header_field *r = &d->field[i];
		const char *at = (const char *)h + r->off, *name = alias && r->alias ? r->alias : r->name;
		size_t name_n = alias && r->alias ? r->alias_n : r->name_n;

		if (r->type == HEADER_str) {
			struct mq_str text;

			memcpy(&text, at, sizeof(text));
			frame_put_str(o, name, name_n, text);
			continue;
		}
		if (!r->required && !(present >> i & 1))
			continue;
		if (r->type == HEADER_boolean) {
			frame_put_str(o, name, name_n, *(const bool *)at ? MQ_STR("true") : MQ_STR("false"));
		} else if (r->type == HEADER_i32) {
			int32_t v;

			memcpy(&v, at, sizeof(v));
			frame_put_i64(o, name, name_n, v);
		} else {
			int64_t v;

			memcpy(&v, at, sizeof(v));
			frame_put_i64(o, name, name_n, v);
		}
	}
}
