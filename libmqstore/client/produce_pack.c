/* produce_pack.c: see produce_pack.h.  Knows no queues and no connections. */
#include "produce_pack.h"
#include "../base/zip.h"
#include "../codec/batch.h"
#include "../codec/property.h"

enum { ZIP_LEVEL = 5 /* the peer's */ };

/* name 0x01 value 0x02 ...: each entry has a name and its separator; the last 0x02 may be missing. */
static int check_props(struct mq_str props, struct mq_error *e)
{
	size_t at = 0;

	if (props.n > MQ_PROPS_MAX)
		return err_set(e, MQ_ETOOBIG, "properties have %zu bytes; %d are allowed", props.n, MQ_PROPS_MAX);
	while (at < props.n) {
		const char *from = props.p + at;
		const char *end = memchr(from, 2, props.n - at);
		size_t len = end ? (size_t)(end - from) : props.n - at;
		const char *sep = memchr(from, 1, len);
		char show[100];
		if (!sep || sep == from)
			return err_set(e, MQ_EINVAL, "properties: entry '%s' is no name, byte 1, value",
			               str_show((struct mq_str){ from, len }, show, sizeof show));
		if (memchr(sep + 1, 1, len - (size_t)(sep + 1 - from)))
			return err_set(e, MQ_EINVAL, "properties: value of '%s' holds the byte 1",
			               str_show((struct mq_str){ from, (size_t)(sep - from) }, show, sizeof show));
		at += len + 1;
	}
	return 0;
}

static int check_message(const struct mq_message *m, struct mq_error *e)
{
	if (!m->body.n)
		return err_set(e, MQ_EINVAL, "body is empty; brokers take no such message");
	if (m->body.n > MQ_BODY_MAX)
		return err_set(e, MQ_ETOOBIG, "body has %zu bytes; %d are allowed", m->body.n, MQ_BODY_MAX);
	return m->props.n ? check_props(m->props, e) : 0;
}

static void put_property(struct buf *b, struct mq_str name, struct mq_str value)
{
	char *to = buf_room(b, name.n + value.n + 2);

	memcpy(to, name.p, name.n);
	to += name.n;
	*to++ = 1;
	memcpy(to, value.p, value.n);
	to[value.n] = 2;
	b->n += name.n + value.n + 2;
}

/* The properties that go out: the user's, UNIQ_KEY and WAIT.  The id is returned in id, at most MQ_ID_TEXT - 1 bytes of it. */
static void pack_props(struct send *s, const struct mq_message *m, struct buf *b, char id[MQ_ID_TEXT], size_t *id_n)
{
	struct mq_str have = { 0 };

	if (m->props.n) {
		buf_str(b, m->props);
		if (m->props.p[m->props.n - 1] != 2)
			buf_char(b, 2);
		have = mq_prop_get(m->props, PROP_UNIQ_KEY);
	}
	if (have.p) {
		*id_n = have.n < MQ_ID_TEXT ? have.n : MQ_ID_TEXT - 1;
		memcpy(id, have.p, *id_n);
		id[*id_n] = 0;
	} else {
		id_make(&s->c->ids, s->born_ms, id);
		*id_n = 32;
		put_property(b, MQ_STR(PROP_UNIQ_KEY), (struct mq_str){ id, 32 });
	}
	if (!m->props.n || !mq_prop_get(m->props, PROP_WAIT).p)
		put_property(b, MQ_STR(PROP_WAIT), MQ_STR("true"));
}

static void put_half(struct send *s, const char *group)
{
	put_property(&s->data, MQ_STR(PROP_TRAN_MSG), MQ_STR("true"));
	put_property(&s->data, MQ_STR(PROP_PGROUP), str_of(group));
	s->sys_flag = MQ_SYS_TRAN_PREPARED;
}

static int pack_one(struct send *s, const struct mq_message *m, const struct mqclient_send_opt *opt, struct mq_error *e)
{
	size_t before;
	int rc;

	s->flag = m->flag;
	s->sys_flag = 0;
	pack_props(s, m, &s->data, s->uniq, &s->uniq_n);
	if (opt->half)
		put_half(s, opt->group);
	if (s->data.n > MQ_PROPS_MAX)
		return err_set(e, MQ_ETOOBIG, "properties with the message id have %zu bytes; %d are allowed",
		               s->data.n, MQ_PROPS_MAX);
	s->props_n = before = s->data.n;
	if (opt->compress_over > 0 && m->body.n >= (size_t)opt->compress_over) {
		rc = zip_pack(opt->compress_type, opt->compress_level ? opt->compress_level : ZIP_LEVEL, m->body,
		              &s->data);
		if (rc < 0)
			return err_set(e, rc, "compression type %#x, level %d: not supported",
			               (unsigned)opt->compress_type, opt->compress_level);
		/* What does not shrink goes out as it is. */
		if (s->data.n - before < m->body.n) {
			s->sys_flag |= MQ_SYS_COMPRESSED | (opt->compress_type & MQ_SYS_COMPRESS_TYPE);
			return 0;
		}
		s->data.n = before;
	}
	buf_str(&s->data, m->body);
	return 0;
}

static int pack_batch(struct send *s, const struct mq_message *m, size_t n, struct mq_error *e)
{
	struct buf *props = &s->c->scratch;
	char id[MQ_ID_TEXT];
	size_t id_n;

	s->flag = 0;
	s->sys_flag = 0;
	/* Whether to wait for the disk is said once, for all. */
	if (m[0].props.n && !str_bool(mq_prop_get(m[0].props, PROP_WAIT)) && mq_prop_get(m[0].props, PROP_WAIT).p)
		put_property(&s->data, MQ_STR(PROP_WAIT), MQ_STR("false"));
	s->props_n = s->data.n;
	for (size_t i = 0; i < n; i++) {
		struct batch_item item = { .flag = m[i].flag, .body = m[i].body };
		if (i && !str_eq(m[i].topic, m[0].topic))
			return err_set(e, MQ_EINVAL, "message %zu of a batch has another topic than the first", i);
		props->n = 0;
		pack_props(s, &m[i], props, i ? id : s->uniq, i ? &id_n : &s->uniq_n);
		if (props->n > MQ_PROPS_MAX)
			return err_set(e, MQ_ETOOBIG, "message %zu of a batch: properties have %zu bytes; %d are allowed", i,
			               props->n, MQ_PROPS_MAX);
		item.props = buf_view(props);
		batch_put(&s->data, &item);
	}
	if (s->data.n - s->props_n > MQ_BODY_MAX)
		return err_set(e, MQ_ETOOBIG, "batch of %zu messages has %zu bytes; %d are allowed", n,
		               s->data.n - s->props_n, MQ_BODY_MAX);
	return 0;
}

int produce_pack(struct send *s, const struct mq_message *m, size_t n, const struct mqclient_send_opt *opt,
                 struct mq_error *e)
{
	const struct topic *last = s->c->last_topic;
	int rc;

	if (!n || n > UINT16_MAX)
		return err_set(e, MQ_EINVAL, "batch of %zu messages: 1 to %d are allowed", n, UINT16_MAX);
	/* The name that was good a moment ago is good now. */
	if (!last || last->name_n != m->topic.n || memcmp(last->name, m->topic.p, m->topic.n) != 0) {
		rc = mq_check_topic(m->topic, e);
		if (rc < 0)
			return rc;
	}
	if (opt->half && (n > 1 || opt->oneway || !opt->group))
		return err_set(e, MQ_EINVAL, "a half of a transaction is one message, not one-way, and of a group");
	if (opt->group) {
		rc = mq_check_group(str_of(opt->group), e);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < n; i++) {
		rc = check_message(&m[i], e);
		if (rc < 0)
			return n > 1 ? err_wrap(e, "message %zu of a batch", i) : rc;
	}
	s->data.n = 0;
	s->batch = n > 1;
	return n > 1 ? pack_batch(s, m, n, e) : pack_one(s, m, opt, e);
}
