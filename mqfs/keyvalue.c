/* keyvalue.c: see keyvalue.h. */
#include "keyvalue.h"
#include "fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

void keyvalue_text(const json_t *o, struct bytes *out)
{
	const char *keys[512], *key;
	size_t n = 0;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
		if (n < sizeof(keys) / sizeof(keys[0]))
			keys[n++] = key;
	qsort(keys, n, sizeof(keys[0]), by_text);
	for (size_t i = 0; i < n; i++) {
		v = json_object_get(o, keys[i]);
		char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
		bytes_printf(out, "%s=", keys[i]);
		bytes_str(out, text ? text : json_string_value(v) ? json_string_value(v) : "");
		bytes_byte(out, '\n');
		free(text);
	}
}

static struct mq_str trimmed(struct mq_str s)
{
	while (s.n && strchr(" \t\r", s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && strchr(" \t\r", s.p[s.n - 1]))
		s.n--;
	return s;
}

int keyvalue_next(struct mq_str *rest, struct mq_str *key, struct mq_str *value, const char *what)
{
	while (rest->n) {
		const char *nl = memchr(rest->p, '\n', rest->n), *eq;
		struct mq_str line = { rest->p, nl ? (size_t)(nl - rest->p) : rest->n };
		rest->p += line.n + (nl ? 1 : 0);
		rest->n -= line.n + (nl ? 1 : 0);
		line = trimmed(line);
		if (!line.n || line.p[0] == '#')
			continue;
		eq = memchr(line.p, '=', line.n);
		if (!eq || eq == line.p)
			return fail(-EINVAL, "%s: '%.*s': key=value is wanted", what, (int)(line.n < 80 ? line.n : 80), line.p);
		*key = trimmed((struct mq_str){ line.p, (size_t)(eq - line.p) });
		*value = trimmed((struct mq_str){ eq + 1, line.n - (size_t)(eq + 1 - line.p) });
		return 1;
	}
	return 0;
}

/* The value as the type that `old` has; NULL if it is none. */
static json_t *value_of(const json_t *old, struct mq_str text)
{
	json_t *v;

	if (json_is_string(old) || json_is_null(old))
		return json_stringn(text.p, text.n);
	v = json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL);
	if (v && (json_typeof(v) == json_typeof(old) || (json_is_boolean(v) && json_is_boolean(old))))
		return v;
	json_decref(v);
	return NULL;
}

int keyvalue_apply(json_t *o, struct mq_str text, const char *what)
{
	struct mq_str key, value;
	int rc, changed = 0;

	while ((rc = keyvalue_next(&text, &key, &value, what)) > 0) {
		char name[256];
		snprintf(name, sizeof(name), MQ_STR_FMT, MQ_STR_ARG(key));
		json_t *old = json_object_get(o, name), *v;
		if (!old)
			return fail(-EINVAL, "%s: there is no setting '%s'", what, name);
		v = value_of(old, value);
		if (!v)
			return fail(-EINVAL, "%s: %s=" MQ_STR_FMT ": another type is wanted, as it is now", what, name, MQ_STR_ARG(value));
		changed += !json_equal(old, v);
		json_object_set_new(o, name, v);
	}
	return rc < 0 ? rc : changed;
}
