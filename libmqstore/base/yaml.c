/* yaml.c: libyaml's events become values, and values events. */
#include "yaml.h"
#include "err.h"
#include "mem.h"
#include "str.h"
#include "sys.h"
#include <stdlib.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	yaml_event_t event;
	struct mq_error *e;
};

static bool refuse(struct reader *r, const char *why)
{
	err_set(r->e, MQ_EINVAL, "line %zu: %s", r->event.start_mark.line + 1, why);
	return false;
}

/* The next event; the one before is let go of. */
static bool next(struct reader *r)
{
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return true;
	err_set(r->e, MQ_EINVAL, "line %zu: %s", r->parser.problem_mark.line + 1,
		r->parser.problem ? r->parser.problem : "this is no YAML");
	memset(&r->event, 0, sizeof r->event);
	return false;
}

static bool is_null(struct mq_str s)
{
	return !s.n || str_is(s, "~") || str_is(s, "null") || str_is(s, "Null") || str_is(s, "NULL");
}

static bool value(struct reader *r, int depth, json_t **out);

static bool scalar(struct reader *r, json_t **out)
{
	struct mq_str s = { (char *)r->event.data.scalar.value, r->event.data.scalar.length };

	if (r->event.data.scalar.anchor || r->event.data.scalar.tag)
		return refuse(r, "anchors (&) and tags (!) are not read here");
	*out = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && is_null(s) ? json_null() : json_stringn(s.p, s.n);
	return *out || refuse(r, "a text that is not UTF-8");
}

static bool list(struct reader *r, int depth, json_t *out)
{
	json_t *v;

	while (next(r)) {
		if (r->event.type == YAML_SEQUENCE_END_EVENT)
			return true;
		if (!value(r, depth, &v))
			return false;
		json_array_append_new(out, v);
	}
	return false;
}

static bool map(struct reader *r, int depth, json_t *out)
{
	while (next(r)) {
		char *key;
		json_t *v;
		bool good;

		if (r->event.type == YAML_MAPPING_END_EVENT)
			return true;
		if (r->event.type != YAML_SCALAR_EVENT)
			return refuse(r, "a key has to be a text");
		key = mem_strndup((char *)r->event.data.scalar.value, r->event.data.scalar.length);
		if (json_object_get(out, key))
			good = refuse(r, "this key was there before");
		else
			good = next(r) && value(r, depth, &v) &&
			       (json_object_set_new(out, key, v) == 0 || refuse(r, "a key that is not UTF-8"));
		free(key);
		if (!good)
			return false;
	}
	return false;
}

/* What begins with the present event.  False: nothing was made. */
static bool value(struct reader *r, int depth, json_t **out)
{
	bool good;

	if (depth == YAML_DEPTH_MAX)
		return refuse(r, "values are nested too deeply");
	switch (r->event.type) {
	case YAML_SCALAR_EVENT:
		return scalar(r, out);
	case YAML_SEQUENCE_START_EVENT:
		*out = json_array();
		good = list(r, depth + 1, *out);
		break;
	case YAML_MAPPING_START_EVENT:
		*out = json_object();
		good = map(r, depth + 1, *out);
		break;
	default:
		return refuse(r, "aliases (*) are not read here");
	}
	if (!good)
		json_decref(*out);
	return good;
}

static json_t *document(struct reader *r)
{
	json_t *doc = NULL;

	if (!next(r) || !next(r)) /* the stream's beginning, then the document's */
		return NULL;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return json_object();
	if (!next(r) || !value(r, 0, &doc))
		return NULL;
	if (json_is_null(doc)) {
		json_decref(doc);
		doc = json_object();
	}
	if (!json_is_object(doc))
		refuse(r, "a map (key: value) was expected");
	else if (next(r) && next(r) && (r->event.type == YAML_STREAM_END_EVENT || refuse(r, "there is a second document")))
		return doc;
	json_decref(doc);
	return NULL;
}

json_t *yaml_parse(struct mq_str text, struct mq_error *e)
{
	struct reader r = { .e = e };
	json_t *doc;

	if (text.n > YAML_TEXT_MAX) {
		err_set(e, MQ_ETOOBIG, "%zu bytes; %d are allowed", text.n, YAML_TEXT_MAX);
		return NULL;
	}
	if (!yaml_parser_initialize(&r.parser)) {
		err_set(e, MQ_EUNSUPPORTED, "libyaml has no memory");
		return NULL;
	}
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
	doc = document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return doc;
}

int yaml_read(const char *path, json_t **doc, struct mq_error *e)
{
	struct mq_error why = { 0 };
	char *text;
	size_t n;
	int rc = sys_read_file(path, YAML_TEXT_MAX, &text, &n);

	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	*doc = yaml_parse((struct mq_str){ text, n }, &why);
	explicit_bzero(text, n); /* it may hold secrets */
	free(text);
	return *doc ? 0 : err_set(e, why.code, "'%s': %s", path, why.text);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------- */

static int append(void *arg, unsigned char *p, size_t n)
{
	buf_put(arg, p, n);
	return 1;
}

static void emit_text(yaml_emitter_t *to, const char *p, size_t n, bool quoted)
{
	yaml_event_t e;

	yaml_scalar_event_initialize(&e, NULL, NULL, (const yaml_char_t *)p, (int)n, !quoted, 1,
				     quoted ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
	yaml_emitter_emit(to, &e);
}

static void emit(yaml_emitter_t *to, const json_t *v)
{
	yaml_event_t e;
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_object(v)) {
		yaml_mapping_start_event_initialize(&e, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
		yaml_emitter_emit(to, &e);
		json_object_foreach((json_t *)v, key, member) {
			if (json_is_null(member))
				continue;
			emit_text(to, key, strlen(key), false);
			emit(to, member);
		}
		yaml_mapping_end_event_initialize(&e);
		yaml_emitter_emit(to, &e);
	} else if (json_is_array(v)) {
		yaml_sequence_start_event_initialize(&e, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
		yaml_emitter_emit(to, &e);
		json_array_foreach(v, i, member)
			emit(to, member);
		yaml_sequence_end_event_initialize(&e);
		yaml_emitter_emit(to, &e);
	} else if (json_is_string(v)) {
		struct mq_str s = { json_string_value(v), json_string_length(v) };

		emit_text(to, s.p, s.n, is_null(s));
	} else {
		char text[24];

		if (json_is_integer(v))
			snprintf(text, sizeof text, "%lld", (long long)json_integer_value(v));
		else
			snprintf(text, sizeof text, "%s", json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null");
		emit_text(to, text, strlen(text), false);
	}
}

void yaml_write(const json_t *object, struct buf *out)
{
	yaml_emitter_t to;
	yaml_event_t e;

	if (!yaml_emitter_initialize(&to))
		abort();
	yaml_emitter_set_output(&to, append, out);
	yaml_emitter_set_unicode(&to, 1);
	yaml_emitter_set_width(&to, -1);
	yaml_stream_start_event_initialize(&e, YAML_UTF8_ENCODING);
	yaml_emitter_emit(&to, &e);
	yaml_document_start_event_initialize(&e, NULL, NULL, NULL, 1);
	yaml_emitter_emit(&to, &e);
	emit(&to, object);
	yaml_document_end_event_initialize(&e, 1);
	yaml_emitter_emit(&to, &e);
	yaml_stream_end_event_initialize(&e);
	yaml_emitter_emit(&to, &e);
	yaml_emitter_delete(&to);
}
