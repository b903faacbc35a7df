/* conf.c: options of a program: a table of rows, the values' texts, and where each value goes.
 *
 * Knows types, ranges and names; the syntax of files is in javaprops.c, what a key does is the program's. */
#include "conf.h"
#include "err.h"
#include "log.h"
#include "mem.h"
#include "javaprops.h"
#include "str.h"
#include "sys.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define LOG_MODULE "conf"

enum { CONF_FILE_MAX = 4 * 1024 * 1024, CONF_KEY_MAX = 255 };

struct extra {
	char *key, *value;
};
struct conf {
	const struct conf_row *rows;
	size_t n;
	char *into;
	char **text;            /* value of each row in its canonical form */
	char **held;            /* strings that `into` points to: text[i], or an older one until the next start */
	bool *dirty;            /* changed by an update, not saved yet */
	struct extra *extra;    /* unknown keys */
	size_t extras;
};

/* ---- Values ---------------------------------------------------------------------------------------------------------- */

struct parsed {
	int64_t i;
	char *text;     /* canonical; taken by apply() */
};

/* Position of `v` in "A|B|C", or -1. */
static int64_t enum_position(const char *names, struct mq_str v, struct mq_str *name)
{
	struct mq_str rest = str_of(names);

	for (int64_t i = 0; str_split(&rest, '|', name); i++)
		if (name->n == v.n && strncasecmp(name->p, v.p, v.n) == 0)
			return i;
	return -1;
}

static int wrong(const struct conf_row *row, struct mq_str v, struct mq_error *e, const char *right)
{
	char shown[80];

	return err_set(e, MQ_EINVAL, "%s: '%s' is not %s", row->key, str_show(v, shown, sizeof(shown)), right);
}

static int parse(const struct conf_row *row, struct mq_str v, struct parsed *out, struct mq_error *e)
{
	bool bounded = row->min != 0 || row->max != 0;
	struct mq_str name;
	char right[200];

	v = str_trim(v);
	switch (row->type) {
	case CONF_STR:
		if (v.n && memchr(v.p, '\0', v.n))
			return wrong(row, v, e, "a text (it holds a zero byte)");
		out->text = str_dup(v);
		return 0;
	case CONF_BOOL:
		if (!str_is_nocase(v, "true") && !str_is_nocase(v, "false"))
			return wrong(row, v, e, "true or false");
		out->i = str_bool(v);
		out->text = mem_strdup(out->i ? "true" : "false");
		return 0;
	case CONF_ENUM:
		out->i = enum_position(row->names, v, &name);
		if (out->i < 0) {
			snprintf(right, sizeof(right), "one of %s", row->names);
			return wrong(row, v, e, right);
		}
		out->text = str_dup(name);
		return 0;
	case CONF_I32:
	case CONF_I64:
	case CONF_SIZE:
		break;
	}
	if ((str_i64(v, &out->i) && (row->type != CONF_SIZE || str_size(v, &out->i))) ||
	    (bounded && (out->i < row->min || out->i > row->max)) ||
	    (row->type == CONF_I32 && (out->i < INT32_MIN || out->i > INT32_MAX))) {
		int n = snprintf(right, sizeof(right), row->type == CONF_SIZE ? "a size like 4096, 64K or 1G" : "a whole number");

		if (bounded)
			snprintf(right + n, sizeof(right) - (size_t)n, " from %lld to %lld", (long long)row->min, (long long)row->max);
		else if (row->type == CONF_I32)
			snprintf(right + n, sizeof(right) - (size_t)n, " of 32 bits");
		return wrong(row, v, e, right);
	}
	out->text = mem_printf("%lld", (long long)out->i);
	return 0;
}

/* The value into the program's struct.  A string there is the conf's text. */
static void store(struct conf *c, size_t i, int64_t v)
{
	char *field = c->into + c->rows[i].off;

	switch (c->rows[i].type) {
	case CONF_STR:
		*(char **)field = c->held[i] = c->text[i];
		break;
	case CONF_BOOL:
		*(bool *)field = v != 0;
		break;
	case CONF_I32:
	case CONF_ENUM:
		*(int32_t *)field = (int32_t)v;
		break;
	case CONF_I64:
	case CONF_SIZE:
		*(int64_t *)field = v;
		break;
	}
}

static void drop_text(struct conf *c, size_t i)
{
	if (c->text[i] != c->held[i])
		free(c->text[i]);
}

static void take(struct conf *c, size_t i, struct parsed *v)
{
	drop_text(c, i);
	free(c->held[i]);
	c->held[i] = NULL;
	c->text[i] = v->text;
	store(c, i, v->i);
}

/* ---- Keys ------------------------------------------------------------------------------------------------------------ */

static size_t find(const struct conf *c, struct mq_str key)
{
	size_t i = 0;

	while (i < c->n && !str_is(key, c->rows[i].key))
		i++;
	return i;
}

const struct conf_row *conf_find(const struct conf *c, struct mq_str key)
{
	size_t i = find(c, key);

	return i < c->n ? &c->rows[i] : NULL;
}

static bool same_letter(char a, char b)
{
	return strncasecmp(&a, &b, 1) == 0;
}

/* Levenshtein's distance of two keys, upper and lower case alike. */
static size_t distance(struct mq_str a, const char *b)
{
	size_t row[CONF_KEY_MAX + 1], nb = strlen(b);

	if (a.n > CONF_KEY_MAX || nb > CONF_KEY_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = diagonal + !same_letter(a.p[i - 1], b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

static int unknown(const struct conf *c, struct mq_str key, struct mq_error *e)
{
	size_t best = key.n / 3 + 2;    /* farther away it is no typing error */
	const char *nearest = NULL;
	char shown[80];

	for (size_t i = 0; i < c->n; i++) {
		size_t d = distance(key, c->rows[i].key);

		if (d < best) {
			best = d;
			nearest = c->rows[i].key;
		}
	}
	return err_set(e, MQ_ENOTFOUND, "unknown key '%s'%s%s%s", str_show(key, shown, sizeof(shown)),
		       nearest ? ", nearest known: '" : "", nearest ? nearest : "", nearest ? "'" : "");
}

static void keep_unknown(struct conf *c, struct mq_str key, struct mq_str value)
{
	size_t i = 0;

	while (i < c->extras && !str_is(key, c->extra[i].key))
		i++;
	if (i == c->extras) {
		c->extra = mem_realloc(c->extra, ++c->extras * sizeof(*c->extra));
		c->extra[i] = (struct extra){ .key = str_dup(key) };
	}
	free(c->extra[i].value);
	c->extra[i].value = str_dup(value);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

struct conf *conf_new(const struct conf_row *rows, size_t n, void *into)
{
	struct conf *c = mem_alloc(sizeof(*c));
	struct mq_error e;

	*c = (struct conf){ .rows = rows, .n = n, .into = into };
	c->text = mem_alloc(n * sizeof(*c->text));
	c->held = mem_alloc(n * sizeof(*c->held));
	c->dirty = mem_alloc(n * sizeof(*c->dirty));
	for (size_t i = 0; i < n; i++) {
		struct parsed v = { 0 };

		if (parse(&rows[i], str_of(rows[i].otherwise ? rows[i].otherwise : ""), &v, &e)) {
			/* A default that its own row refuses is a mistake in the program. */
			log_error("default of a key is wrong: %s", e.text);
			abort();
		}
		take(c, i, &v);
	}
	return c;
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++) {
		drop_text(c, i);
		free(c->held[i]);
	}
	for (size_t i = 0; i < c->extras; i++) {
		free(c->extra[i].key);
		free(c->extra[i].value);
	}
	free(c->text);
	free(c->held);
	free(c->dirty);
	free(c->extra);
	free(c);
}

/* ---- Setting --------------------------------------------------------------------------------------------------------- */

int conf_set(struct conf *c, struct mq_str key, struct mq_str value, struct mq_error *e)
{
	size_t i = find(c, key);
	struct parsed v = { 0 };
	int rc;

	if (i == c->n) {
		keep_unknown(c, key, value);
		return unknown(c, key, e);
	}
	rc = parse(&c->rows[i], value, &v, e);
	if (rc == 0)
		take(c, i, &v);
	return rc;
}

int conf_arg(struct conf *c, const char *arg, struct mq_error *e)
{
	struct mq_str rest = str_of(arg), key;

	if (!strchr(arg, '=')) {
		char shown[80];

		return err_set(e, MQ_EINVAL, "'%s' is not key=value", str_show(rest, shown, sizeof(shown)));
	}
	str_split(&rest, '=', &key);
	return conf_set(c, str_trim(key), rest, e);
}

int conf_file(struct conf *c, const char *path, struct mq_error *e)
{
	struct mq_error why;
	struct javaprops p;
	size_t n;
	char *text;
	int rc = sys_read_file(path, CONF_FILE_MAX, &text, &n);

	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	p = javaprops_of((struct mq_str){ text, n });
	while (rc == 0 && javaprops_next(&p)) {
		rc = conf_set(c, buf_view(&p.key), buf_view(&p.value), &why);
		if (rc == MQ_ENOTFOUND) {
			log_warn("%s:%d: %s", path, p.line, why.text);
			rc = 0;
		} else if (rc < 0) {
			err_set(e, rc, "%s:%d: %s", path, p.line, why.text);
		}
	}
	javaprops_free(&p);
	free(text);
	return rc;
}

/* First all of it is read and judged, then all of it applied. */
int conf_update(struct conf *c, struct mq_str text, int *changed, struct mq_error *e)
{
	struct parsed *new = mem_alloc(c->n * sizeof(*new));
	struct javaprops p = javaprops_of(text);
	int rc = 0, count = 0;

	while (rc == 0 && javaprops_next(&p)) {
		struct parsed v = { 0 };
		size_t i = find(c, buf_view(&p.key));

		if (i == c->n)
			continue;
		if (c->rows[i].flags & CONF_FIXED) {
			rc = err_set(e, MQ_EREFUSED, "%s cannot be changed while the program runs", c->rows[i].key);
			break;
		}
		rc = parse(&c->rows[i], buf_view(&p.value), &v, e);
		if (rc == 0) {
			free(new[i].text);
			new[i] = v;
		}
	}
	javaprops_free(&p);
	for (size_t i = 0; i < c->n; i++) {
		if (rc < 0 || !new[i].text || strcmp(new[i].text, c->text[i]) == 0) {
			free(new[i].text);
			continue;
		}
		c->dirty[i] = true;
		count++;
		if (c->rows[i].flags & CONF_RUNTIME) {
			take(c, i, &new[i]);
			continue;
		}
		log_info("a change takes effect at the next start key=%s", c->rows[i].key);
		drop_text(c, i);
		c->text[i] = new[i].text;
	}
	free(new);
	if (changed)
		*changed = count;
	return rc;
}

/* ---- Out again ------------------------------------------------------------------------------------------------------- */

/* The last entry of `key` in the text: the one that counts. */
static bool last_entry(struct mq_str text, const char *key, size_t *start, size_t *end)
{
	struct javaprops p = javaprops_of(text);
	bool found = false;

	while (javaprops_next(&p))
		if (str_is(buf_view(&p.key), key)) {
			*start = p.start;
			*end = p.end;
			found = true;
		}
	javaprops_free(&p);
	return found;
}

int conf_save(struct conf *c, const char *path, struct mq_error *e)
{
	struct buf now = { 0 }, next = { 0 };
	char *old = NULL;
	size_t n = 0, start, end;
	bool any = false;
	int rc = sys_read_file(path, CONF_FILE_MAX, &old, &n);

	if (rc < 0 && rc != -ENOENT)
		return err_sys(e, rc, "read '%s'", path);
	buf_put(&now, old, n);
	free(old);
	for (size_t i = 0; i < c->n; i++) {
		struct mq_str key = str_of(c->rows[i].key), value = str_of(c->text[i]);

		if (!c->dirty[i])
			continue;
		any = true;
		next.n = 0;
		if (last_entry(buf_view(&now), c->rows[i].key, &start, &end)) {
			buf_put(&next, now.p, start);
			javaprops_put(&next, key, value);
			buf_put(&next, now.p + end, now.n - end);
		} else {
			buf_put(&next, now.p, now.n);
			if (now.n && now.p[now.n - 1] != '\n')
				buf_char(&next, '\n');
			javaprops_put(&next, key, value);
		}
		now.n = 0;
		buf_put(&now, next.p, next.n);
	}
	rc = any ? sys_replace_file(path, now.p, now.n) : 0;
	if (rc < 0)
		err_sys(e, rc, "write '%s'", path);
	else
		memset(c->dirty, 0, c->n * sizeof(*c->dirty));
	buf_free(&now);
	buf_free(&next);
	return rc;
}

void conf_print(const struct conf *c, struct buf *out)
{
	for (size_t i = 0; i < c->n; i++)
		buf_printf(out, "%s=%s\n", c->rows[i].key, c->text[i]);
}

struct mq_str conf_get(const struct conf *c, struct mq_str key)
{
	size_t i = find(c, key);

	if (i < c->n)
		return str_of(c->text[i]);
	for (i = 0; i < c->extras; i++)
		if (str_is(key, c->extra[i].key))
			return str_of(c->extra[i].value);
	return (struct mq_str){ NULL, 0 };
}

/* ---- The user's own file --------------------------------------------------------------------------------------------- */

struct wanted {
	const char *key;
	char *value;
};

static int on_ini(void *arg, const char *section, const char *name, const char *value)
{
	struct wanted *w = arg;

	if (*section == '\0' && !w->value && strcmp(name, w->key) == 0)
		w->value = mem_strdup(value);
	return 1;
}

static int user_file(const char *path, const char *key, char *out, size_t cap, struct mq_error *e)
{
	struct wanted w = { .key = key };
	char *text;
	size_t n;
	int line, rc = sys_read_file(path, CONF_FILE_MAX, &text, &n);

	if (rc == -ENOENT || rc == -ENOTDIR)
		return MQ_ENOTFOUND;
	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	line = ini_parse_string(text, on_ini, &w);
	free(text);
	if (line)
		rc = err_set(e, MQ_EINVAL, "%s:%d: not key=value, or longer than %d bytes", path, line, INI_MAX_LINE - 2);
	else if (!w.value)
		rc = MQ_ENOTFOUND;
	else if (strlen(w.value) >= cap)
		rc = err_set(e, MQ_ETOOBIG, "%s: %s is longer than %zu bytes", path, key, cap - 1);
	else
		strcpy(out, w.value);
	free(w.value);
	return rc;
}

int conf_user_key(const char *key, char *out, size_t cap, struct mq_error *e)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path = base && *base ? mem_printf("%s/mq/config", base) : home ? mem_printf("%s/.config/mq/config", home) : NULL;
	int rc = path ? user_file(path, key, out, cap, e) : MQ_ENOTFOUND;

	free(path);
	if (rc == MQ_ENOTFOUND)
		rc = user_file("/etc/mq/config", key, out, cap, e);
	if (rc == MQ_ENOTFOUND)
		err_set(e, rc, "no %s= in the configuration of mq", key);
	return rc;
}
