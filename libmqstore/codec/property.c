/* property.c: the properties of a message: name 0x01 value 0x02 name 0x01 value 0x02 ...
 *
 * Reads as the peer does: pieces end at 0x02 or at the end of the text; a piece is split at its first 0x01; a piece without
 * 0x01, with an empty name or with an empty value does not exist; of two with one name the last counts.
 *
 * All readers share one pass over the text that looks at 16 bytes at a time for the two separators. */
#include "property.h"
#include "../base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
enum { BLOCK = 16 };
/* Bit i of the results: byte i is 0x01; byte i is 0x02. */
static inline void block_separators(const char *p, uint32_t *ones, uint32_t *twos)
{
	__m128i v = _mm_loadu_si128((const __m128i *)p);
	*ones = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(0x01)));
	*twos = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(0x02)));
}
#else
enum { BLOCK = 16 };
static inline void block_separators(const char *p, uint32_t *ones, uint32_t *twos)
{
	*ones = *twos = 0;
	for (int i = 0; i < BLOCK; i++) {
		*ones |= (uint32_t)(p[i] == 0x01) << i;
		*twos |= (uint32_t)(p[i] == 0x02) << i;
	}
}
#endif

/* Where the pass stands: pieces that end inside the current block are handed out one by one. */
struct pass {
	struct mq_str text;
	size_t block;           /* offset of the block that ones and twos describe */
	uint32_t ones, twos;    /* separators of the block that were not looked at yet */
	size_t name;            /* start of the current piece */
	size_t sep;             /* its first 0x01, or NO_SEP */
};
#define NO_SEP ((size_t)-1)

static inline void pass_load(struct pass *s)
{
	size_t left = s->text.n - s->block;
	if (left >= BLOCK) {
		block_separators(s->text.p + s->block, &s->ones, &s->twos);
	} else {
		char tail[BLOCK] = { 0 };
		memcpy(tail, s->text.p + s->block, left);
		block_separators(tail, &s->ones, &s->twos);
	}
}

static inline void pass_start(struct pass *s, struct mq_str text)
{
	*s = (struct pass){ .text = text, .sep = NO_SEP };
	if (text.n)
		pass_load(s);
}

/* Next name and value that exist. */
static inline bool pass_next(struct pass *s, struct mq_str *name, struct mq_str *value)
{
	while (s->name < s->text.n) {
		size_t end;
		for (;;) {
			uint32_t any = s->ones | s->twos;
			if (any == 0) {
				s->block += BLOCK;
				if (s->block >= s->text.n) {
					end = s->text.n;
					break;
				}
				pass_load(s);
				continue;
			}
			uint32_t bit = any & -any;
			size_t at = s->block + (size_t)__builtin_ctz(any);
			if (s->twos & bit) {
				s->twos ^= bit;
				end = at;
				break;
			}
			s->ones ^= bit;
			if (s->sep == NO_SEP)
				s->sep = at;
		}
		size_t start = s->name, sep = s->sep;
		s->name = end + 1;
		s->sep = NO_SEP;
		if (sep == NO_SEP || sep == start || sep + 1 >= end)
			continue;
		*name = (struct mq_str){ s->text.p + start, sep - start };
		*value = (struct mq_str){ s->text.p + sep + 1, end - sep - 1 };
		return true;
	}
	return false;
}

struct mq_str mq_prop_get(struct mq_str props, const char *name)
{
	struct mq_str want = str_of(name), found = { NULL, 0 }, n, v;
	struct pass s;
	pass_start(&s, props);
	while (pass_next(&s, &n, &v))
		if (str_eq(n, want))
			found = v;
	return found;
}

bool mq_prop_next(struct mq_str props, size_t *pos, struct mq_str *name, struct mq_str *value)
{
	while (*pos < props.n) {
		const char *p = props.p + *pos, *sep;
		size_t left = props.n - *pos;
		const char *end = memchr(p, 0x02, left);
		size_t len = end ? (size_t)(end - p) : left;
		*pos += len + 1;
		sep = memchr(p, 0x01, len);
		if (sep == NULL || sep == p || sep + 1 == p + len)
			continue;
		*name = (struct mq_str){ p, (size_t)(sep - p) };
		*value = (struct mq_str){ sep + 1, len - name->n - 1 };
		return true;
	}
	return false;
}

static bool has_separator(struct mq_str s)
{
	return s.n && (memchr(s.p, 0x01, s.n) || memchr(s.p, 0x02, s.n));
}

int property_put(struct buf *b, struct mq_str name, struct mq_str value)
{
	if (name.n == 0 || has_separator(name) || has_separator(value))
		return MQ_EINVAL;
	char *p = buf_room(b, name.n + value.n + 2);
	memcpy(p, name.p, name.n);
	p[name.n] = 0x01;
	if (value.n)
		memcpy(p + name.n + 1, value.p, value.n);
	p[name.n + 1 + value.n] = 0x02;
	b->n += name.n + value.n + 2;
	return 0;
}

void property_copy_without(struct buf *b, struct mq_str props, const char *const *drop)
{
	struct mq_str name, value;
	struct pass s;
	pass_start(&s, props);
	while (pass_next(&s, &name, &value)) {
		const char *const *d = drop;
		while (*d && !str_is(name, *d))
			d++;
		if (*d)
			continue;
		/* Name, 0x01 and value lie side by side. */
		buf_put(b, name.p, name.n + 1 + value.n);
		buf_char(b, 0x02);
	}
}

#define IS(literal) (memcmp(n.p, literal, sizeof(literal) - 1) == 0)

void property_scan(struct mq_str props, struct property_scan *out)
{
	struct mq_str n, v;
	struct pass s;
	*out = (struct property_scan){ .wait = true, .ends_open = props.n && props.p[props.n - 1] != 0x02 };
	pass_start(&s, props);
	while (pass_next(&s, &n, &v)) {
		/* The case is the length of the name. */
		switch (n.n) {
		case 4:
			if (IS(PROP_TAGS))
				out->tags = v;
			else if (IS(PROP_KEYS))
				out->keys = v;
			else if (IS(PROP_WAIT))
				out->wait = !str_is_nocase(v, "false");
			break;
		case 5:
			if (IS(PROP_DELAY)) {
				out->delay_level = 0;
				if (str_i32(v, &out->delay_level) < 0 || out->delay_level < 0)
					out->delay_level = 0;
			}
			break;
		case 6:
			out->has_pop_ck |= IS(PROP_POP_CK);
			break;
		case 7:
			out->has_cluster |= IS(PROP_CLUSTER);
			break;
		case 8:
			if (IS(PROP_UNIQ_KEY))
				out->uniq_key = v;
			else if (IS(PROP_TRAN_MSG))
				out->tran_msg = str_bool(v);
			else if (IS(PROP_TRACE_ON))
				out->has_trace = true;
			break;
		case 10:
			out->has_region |= IS(PROP_MSG_REGION);
			break;
		case 14:
			out->timer |= IS("TIMER_DELAY_MS");
			break;
		case 15:
			out->timer |= IS("TIMER_DELAY_SEC");
			break;
		case 16:
			out->timer |= IS("TIMER_DELIVER_MS");
			break;
		}
	}
}

static inline uint32_t set_hash(struct mq_str name)
{
	return ((uint32_t)name.n + 5 * (uint8_t)name.p[0] + 11 * (uint8_t)name.p[name.n - 1]) % PROPERTY_SET_HASH;
}

static inline uint16_t set_look(const struct property_set *s, struct mq_str name, uint32_t hash)
{
	uint16_t i = s->first[hash];

	while (i && !str_eq(s->name[i - 1], name))
		i = s->next[i - 1];
	return i;
}

int property_set_add(struct property_set *s, struct mq_str name)
{
	uint32_t h = name.n ? set_hash(name) : 0; /* an empty name is never found */
	uint16_t i = set_look(s, name, h);

	if (i)
		return i - 1;
	if (s->n == PROPERTY_SET_MAX)
		return -1;
	s->name[s->n] = name;
	s->next[s->n] = s->first[h];
	s->first[h] = (uint16_t)++s->n;
	return (int)s->n - 1;
}

void property_set_find(const struct property_set *s, struct mq_str props, struct mq_str *value)
{
	struct mq_str n, v;
	struct pass pass;

	for (uint32_t i = 0; i < s->n; i++)
		value[i] = (struct mq_str){ NULL, 0 };
	pass_start(&pass, props);
	while (pass_next(&pass, &n, &v)) {
		uint16_t i = set_look(s, n, set_hash(n));

		if (i)
			value[i - 1] = v;
	}
}
