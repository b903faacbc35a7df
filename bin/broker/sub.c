/* sub.c: subscriptions: expression to tag set, and to and from the peer's SubscriptionData. */
#include "sub.h"
#include <base/err.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

bool sub_is_tag(struct mq_str type)
{
	return type.n == 0 || str_is(type, "TAG");
}

static void compile(struct sub *s, struct mq_str expr, struct mq_str type)
{
	struct mq_error e = { 0 };

	s->tags.all = true;
	if (!str_is(type, "SQL92"))
		err_set(&e, MQ_EINVAL, "expressionType '" MQ_STR_FMT "': TAG or SQL92 would be right", MQ_STR_ARG(type));
	else if (sql_compile(&s->program, expr, &e) == 0)
		return;
	s->why = mem_strdup(e.text);
}

int sub_new(struct sub **out, struct mq_str topic, struct mq_str expr, struct mq_str type, int64_t version, struct mq_error *e)
{
	struct sub *s = mem_alloc(sizeof *s);
	int rc = 0;

	*out = NULL;
	s->refs = 1;
	s->version = version;
	s->sql = !sub_is_tag(type);
	if (s->sql)
		compile(s, expr, type);
	else
		rc = tag_parse(expr, &s->tags, e);
	if (rc < 0) {
		free(s);
		return rc;
	}
	s->topic = str_dup(topic);
	s->expr = expr.n || s->sql ? str_dup(expr) : mem_strdup("*");
	*out = s;
	return 0;
}

int sub_from_body(struct sub **out, const struct body_sub *d, struct mq_error *e)
{
	struct buf expr = { 0 };
	int rc;

	if (d->expression.n == 0 && sub_is_tag(d->type))
		for (size_t i = 0; i < d->ntags; i++) {
			if (i)
				buf_cstr(&expr, "||");
			buf_str(&expr, d->tag[i]);
		}
	rc = sub_new(out, d->topic, expr.n ? buf_view(&expr) : d->expression, d->type, d->version, e);
	if (rc == 0)
		(*out)->class_filter = d->class_filter;
	buf_free(&expr);
	return rc;
}

void sub_body(const struct sub *s, struct body_keep *keep, struct body_sub *out)
{
	*out = (struct body_sub){ .topic = str_of(s->topic), .expression = str_of(s->expr), .version = s->version,
				  .type = s->sql ? MQ_STR("SQL92") : MQ_STR("TAG"), .class_filter = s->class_filter };
	if (s->tags.all || !s->tags.n)
		return;
	out->ntags = out->ncodes = s->tags.n;
	out->tag = body_alloc(keep, s->tags.n * sizeof *out->tag);
	out->code = body_alloc(keep, s->tags.n * sizeof *out->code);
	for (size_t i = 0; i < s->tags.n; i++) {
		out->tag[i] = s->tags.tag[i];
		out->code[i] = (int32_t)s->tags.code[i];
	}
}

struct sub *sub_get(struct sub *s)
{
	s->refs++;
	return s;
}

void sub_put(struct sub *s)
{
	if (!s || --s->refs > 0)
		return;
	tag_free(&s->tags);
	sql_free(s->program);
	free(s->why);
	free(s->topic);
	free(s->expr);
	free(s);
}
