/* tag.c: what a consumer wants by tag: "*", or names joined by "||".
 *
 * The queue entry holds the hash of a message's tag; a hash that matches is not yet a tag that matches. */
#include "tag.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include <stdlib.h>

int64_t tag_code(struct mq_str tags)
{
	return tags.n ? str_java_hash(tags) : 0;
}

static int by_code(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Blanks as the peer trims them: every byte up to and including ' '. */
static struct mq_str trim(struct mq_str s)
{
	while (s.n && (unsigned char)s.p[0] <= ' ')
		s.p++, s.n--;
	while (s.n && (unsigned char)s.p[s.n - 1] <= ' ')
		s.n--;
	return s;
}

/* The piece of *rest before "||". */
static bool next_tag(struct mq_str *rest, struct mq_str *tag)
{
	if (rest->p == NULL)
		return false;
	const char *sep = rest->n ? memmem(rest->p, rest->n, "||", 2) : NULL;
	if (sep == NULL) {
		*tag = *rest;
		*rest = (struct mq_str){ NULL, 0 };
		return true;
	}
	*tag = (struct mq_str){ rest->p, (size_t)(sep - rest->p) };
	*rest = (struct mq_str){ sep + 2, rest->n - tag->n - 2 };
	return true;
}

int tag_parse(struct mq_str expr, struct tag_set *t, struct mq_error *e)
{
	*t = (struct tag_set){ 0 };
	if (expr.n == 0 || str_is(expr, "*")) {
		t->all = true;
		return 0;
	}
	char show[128];
	struct mq_str rest = expr, tag;
	t->code = mem_alloc(TAG_MAX * sizeof(*t->code));
	t->tag = mem_alloc(TAG_MAX * sizeof(*t->tag));
	while (next_tag(&rest, &tag)) {
		tag = trim(tag);
		if (tag.n == 0 || tag_match_name(t, tag))
			continue;
		if (t->n == TAG_MAX) {
			tag_free(t);
			return err_set(e, MQ_EINVAL, "tag expression: more than %d tags", TAG_MAX);
		}
		t->code[t->n] = tag_code(tag);
		t->tag[t->n++] = (struct mq_str){ mem_strndup(tag.p, tag.n), tag.n };
	}
	if (t->n == 0) {
		tag_free(t);
		return err_set(e, MQ_EINVAL, "tag expression '%s': no tag in it, want 'A', 'A||B' or '*'",
			       str_show(expr, show, sizeof(show)));
	}
	qsort(t->code, t->n, sizeof(*t->code), by_code);
	return 0;
}

void tag_free(struct tag_set *t)
{
	for (size_t i = 0; i < t->n; i++)
		free((char *)(uintptr_t)t->tag[i].p);
	free(t->tag);
	free(t->code);
	*t = (struct tag_set){ 0 };
}

bool tag_match_code(const struct tag_set *t, int64_t code)
{
	if (t->all)
		return true;
	if (t->n <= 8) {
		for (size_t i = 0; i < t->n; i++)
			if (t->code[i] == code)
				return true;
		return false;
	}
	return bsearch(&code, t->code, t->n, sizeof(*t->code), by_code) != NULL;
}

bool tag_match_name(const struct tag_set *t, struct mq_str tag)
{
	if (t->all)
		return true;
	for (size_t i = 0; i < t->n; i++)
		if (str_eq(tag, t->tag[i]))
			return true;
	return false;
}
