/* body_register.c: the body of REGISTER_BROKER, as JSON or as one zlib stream of counted pieces:
 *
 *      i32 n + DataVersion | i32 count, per topic i32 n + "name read write perm SINGLE_TAG {attributes}" |
 *      i32 n + filter servers | from 413: i32 count, per static topic i32 n + mapping */
#include "body_register.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/str.h"
#include "../base/zip.h"

enum { REGISTER_HAS_MAPPINGS = 413, REGISTER_LEVEL = 9 };

static int plain_decode(struct mq_str body, struct body_register *r, struct mq_error *e)
{
	struct body_keep *k = &r->topics.keep;
	int rc = body_parse(k, body, "registration", e);

	if (rc)
		return rc;
	body_topic_table_get(k, json_object_at(k->json, "topicConfigSerializeWrapper"), &r->topics);
	r->nfilters = body_strings_get(k, json_array_at(k->json, "filterServerList"), &r->filter);
	return 0;
}

/* The texts of a parsed piece are copied, since the piece's tree does not outlive this function. */
static void copy_pairs(struct body_keep *k, struct body_pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = (struct body_pair){ body_copy(k, v[i].key), body_copy(k, v[i].value) };
}

static bool topic_line(struct body_keep *k, struct mq_str line, struct body_topic *t)
{
	struct mq_str name, read, write, perm, type;

	*t = (struct body_topic){ 0 };
	if (!str_split(&line, ' ', &name) || !str_split(&line, ' ', &read) || !str_split(&line, ' ', &write) ||
	    !str_split(&line, ' ', &perm) || !str_split(&line, ' ', &type))
		return false;
	if (!name.n || str_i32(read, &t->read) || str_i32(write, &t->write) || str_i32(perm, &t->perm))
		return false;
	t->name = body_copy(k, name);
	t->multi_tag = str_is(type, "MULTI_TAG");
	if (line.n) {
		/* compat: attributes with a blank in them cannot be read by the peer either, and are then left out. */
		json_t *o = json_parse(line, NULL);

		t->nattrs = body_pairs_get(k, o, &t->attr);
		copy_pairs(k, t->attr, t->nattrs);
		if (o)
			json_decref(o);
	}
	return true;
}

static int pieces_decode(struct mq_str text, int32_t peer_version, struct body_register *r, struct mq_error *e)
{
	struct cursor c = cursor_of(text.p, text.n);
	struct body_topic_table *t = &r->topics;
	struct mq_str piece = cursor_str(&c, cursor_u32(&c));
	uint32_t count = cursor_u32(&c);
	int rc;

	if (c.bad)
		return err_set(e, MQ_EINVAL, "registration: cut short before the topics");
	rc = body_version_decode(piece, &t->version, e);
	if (rc)
		return err_wrap(e, "registration"), rc;
	/* A topic takes at least its length and "t 1 1 6 SINGLE_TAG", so the count cannot ask for memory that the text does not back. */
	if (count > cursor_left(&c) / (4 + 18))
		return err_set(e, MQ_EINVAL, "registration: %u topics in %zu bytes", count, cursor_left(&c));
	t->topic = body_alloc(&t->keep, count * sizeof(*t->topic));
	for (uint32_t i = 0; i < count; i++) {
		piece = cursor_str(&c, cursor_u32(&c));
		if (c.bad)
			return err_set(e, MQ_EINVAL, "registration: cut short in topic %u of %u", i + 1, count);
		if (!topic_line(&t->keep, piece, &t->topic[t->n++]))
			return err_set(e, MQ_EINVAL,
			               "registration: topic %u of %u is not 'name read write perm type attributes'",
			               i + 1, count);
	}
	piece = cursor_str(&c, cursor_u32(&c));
	if (c.bad)
		return err_set(e, MQ_EINVAL, "registration: cut short before the filter servers");
	if (piece.n) {
		json_t *list = json_parse(piece, NULL);

		r->nfilters = body_strings_get(&t->keep, list, &r->filter);
		for (size_t i = 0; i < r->nfilters; i++)
			r->filter[i] = body_copy(&t->keep, r->filter[i]);
		if (list)
			json_decref(list);
	}
	if (peer_version < REGISTER_HAS_MAPPINGS)
		return 0;
	count = cursor_u32(&c);
	for (uint32_t i = 0; i < count && !c.bad; i++)
		cursor_str(&c, cursor_u32(&c));
	return c.bad ? err_set(e, MQ_EINVAL, "registration: cut short in the mappings of static topics") : 0;
}

int body_register_decode(struct mq_str body, bool compressed, int32_t peer_version, struct body_register *r,
                         struct mq_error *e)
{
	struct buf text = { 0 };
	int rc;

	*r = (struct body_register){ 0 };
	if (!compressed)
		return plain_decode(body, r, e);
	rc = zip_unpack(MQ_SYS_COMPRESS_ZLIB, body, BODY_REGISTER_MAX, &text);
	if (rc)
		err_set(e, MQ_EINVAL, "registration of %zu bytes is no zlib stream: %s", body.n, mq_strerror(rc));
	else
		rc = pieces_decode(buf_view(&text), peer_version, r, e);
	buf_free(&text);
	if (rc) {
		body_register_free(r);
		return MQ_EINVAL;
	}
	return 0;
}

void body_register_encode(const struct body_register *r, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_strings_put(&o, "filterServerList", r->filter, r->nfilters);
	json_key(&o, "topicConfigSerializeWrapper");
	body_topic_table_put(&o, &r->topics);
	json_close(&o, '}');
}

/* An i32 to be filled with the length of what follows. */
static size_t piece_begin(struct buf *b)
{
	buf_room(b, 4);
	b->n += 4;
	return b->n;
}

static void piece_end(struct buf *b, size_t start)
{
	put_be32(b->p + start - 4, (uint32_t)(b->n - start));
}

int body_register_encode_compressed(const struct body_register *r, struct buf *out)
{
	struct buf text = { 0 };
	struct json_out o = json_to(&text);
	size_t at = piece_begin(&text);
	int rc;

	body_version_encode(&r->topics.version, &text);
	piece_end(&text, at);
	at = piece_begin(&text);
	put_be32(text.p + at - 4, (uint32_t)r->topics.n);
	for (size_t i = 0; i < r->topics.n; i++) {
		const struct body_topic *t = &r->topics.topic[i];

		at = piece_begin(&text);
		buf_str(&text, t->name);
		buf_printf(&text, " %d %d %d %s ", t->read, t->write, t->perm,
		           t->multi_tag ? "MULTI_TAG" : "SINGLE_TAG");
		o = json_to(&text);
		json_open(&o, '{');
		for (size_t k = 0; k < t->nattrs; k++) {
			json_key_str(&o, t->attr[k].key);
			json_put_str(&o, t->attr[k].value);
		}
		json_close(&o, '}');
		piece_end(&text, at);
	}
	at = piece_begin(&text);
	o = json_to(&text);
	json_open(&o, '[');
	for (size_t i = 0; i < r->nfilters; i++)
		json_put_str(&o, r->filter[i]);
	json_close(&o, ']');
	piece_end(&text, at);
	at = piece_begin(&text);
	put_be32(text.p + at - 4, 0);
	rc = zip_pack(MQ_SYS_COMPRESS_ZLIB, REGISTER_LEVEL, buf_view(&text), out);
	buf_free(&text);
	return rc;
}

void body_register_free(struct body_register *r)
{
	body_free(&r->topics.keep);
}
