/* kv_table.c: the settings and their file: {"configTable":{"NAMESPACE":{"key":"value"}}}. */
#include "kv_table.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#define LOG_MODULE "kv"

struct kv_item {
	UT_hash_handle hh;
	struct mq_str value;            /* malloc'd */
	size_t key_n;
	char key[];
};
struct kv_space {
	UT_hash_handle hh;
	struct kv_item *items;
	size_t name_n;
	char name[];
};
struct kv_table {
	char *path;                     /* NULL: in memory only */
	struct kv_space *spaces;
	size_t bytes;
};

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static struct kv_space *find_space(const struct kv_table *t, struct mq_str name)
{
	struct kv_space *s;

	HASH_FIND(hh, t->spaces, name.p, name.n, s);
	return s;
}

static struct kv_item *find_item(const struct kv_space *s, struct mq_str key)
{
	struct kv_item *i = NULL;

	if (s)
		HASH_FIND(hh, s->items, key.p, key.n, i);
	return i;
}

static struct mq_str copy(struct mq_str s)
{
	return (struct mq_str){ mem_strndup(s.p, s.n), s.n };
}

/* Takes the value. */
static void set(struct kv_table *t, struct mq_str namespace, struct mq_str key, struct mq_str value)
{
	struct kv_space *s = find_space(t, namespace);
	struct kv_item *i;

	if (!s) {
		s = mem_alloc(sizeof(*s) + namespace.n + 1);
		memcpy(s->name, namespace.p, namespace.n);
		s->name_n = namespace.n;
		HASH_ADD_KEYPTR(hh, t->spaces, s->name, s->name_n, s);
		t->bytes += s->name_n;
	}
	i = find_item(s, key);
	if (!i) {
		i = mem_alloc(sizeof(*i) + key.n + 1);
		memcpy(i->key, key.p, key.n);
		i->key_n = key.n;
		HASH_ADD_KEYPTR(hh, s->items, i->key, i->key_n, i);
		t->bytes += i->key_n;
	}
	t->bytes += value.n - i->value.n;
	free((char *)(uintptr_t)i->value.p);
	i->value = value;
}

static void drop_item(struct kv_table *t, struct kv_space *s, struct kv_item *i)
{
	HASH_DELETE(hh, s->items, i);
	t->bytes -= i->key_n + i->value.n;
	free((char *)(uintptr_t)i->value.p);
	free(i);
}

static void drop_space(struct kv_table *t, struct kv_space *s)
{
	struct kv_item *i, *next;

	HASH_ITER(hh, s->items, i, next)
		drop_item(t, s, i);
	HASH_DELETE(hh, t->spaces, s);
	t->bytes -= s->name_n;
	free(s);
}

/* ---- File -------------------------------------------------------------------------------------------------------- */

static int save(const struct kv_table *t, struct mq_error *e)
{
	struct buf text = { 0 };
	struct json_out o = json_to(&text);
	int rc;

	if (!t->path)
		return 0;
	json_open(&o, '{');
	json_key(&o, "configTable");
	json_open(&o, '{');
	for (const struct kv_space *s = t->spaces; s; s = s->hh.next) {
		json_key_str(&o, (struct mq_str){ s->name, s->name_n });
		json_open(&o, '{');
		for (const struct kv_item *i = s->items; i; i = i->hh.next) {
			json_key_str(&o, (struct mq_str){ i->key, i->key_n });
			json_put_str(&o, i->value);
		}
		json_close(&o, '}');
	}
	json_close(&o, '}');
	json_close(&o, '}');
	rc = sys_replace_file(t->path, text.p, text.n);
	if (rc == -ENOENT) {
		rc = sys_mkdir_parent(t->path);
		if (rc == 0)
			rc = sys_replace_file(t->path, text.p, text.n);
	}
	buf_free(&text);
	return rc < 0 ? err_sys(e, rc, "write '%s'", t->path) : 0;
}

static int load_file(struct kv_table *t, const char *path, struct mq_error *e)
{
	json_t *root, *table, *space, *value;
	const char *name, *key;
	char *text;
	size_t n;
	int rc = sys_read_file(path, 4 * (size_t)KV_BYTES_MAX, &text, &n);

	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	root = json_parse((struct mq_str){ text, n }, e);
	free(text);
	table = json_object_at(root, "configTable");
	if (!table) {
		if (root)
			err_set(e, MQ_ECORRUPT, "there is no object configTable");
		json_decref(root);
		err_wrap(e, "settings in '%s'", path);
		if (e)
			e->code = MQ_ECORRUPT;  /* a damaged file, not a wrong argument */
		return MQ_ECORRUPT;
	}
	json_object_foreach(table, name, space)
		json_object_foreach(space, key, value) {
			struct mq_str v = json_str(space, key);

			if (v.p)
				set(t, str_of(name), str_of(key), copy(v));
		}
	json_decref(root);
	return 0;
}

static int load(struct kv_table *t, struct mq_error *e)
{
	struct mq_error why = { 0 };
	char *bak;
	int rc = load_file(t, t->path, e);

	if (rc != MQ_ECORRUPT && rc != -ENOENT)
		return rc;
	bak = mem_printf("%s.bak", t->path);
	if (load_file(t, bak, &why) == 0) {
		log_warn("settings are taken from '%s' because: %s", bak, e->text);
		rc = 0;
	} else if (rc == -ENOENT && why.code == -ENOENT) {
		rc = 0;         /* the first start */
	}
	free(bak);
	return rc;
}

struct kv_table *kv_table_open(const char *path, struct mq_error *e)
{
	struct kv_table *t = mem_alloc(sizeof(*t));

	if (path && *path) {
		t->path = mem_strdup(path);
		if (load(t, e) < 0) {
			kv_table_free(t);
			return NULL;
		}
	}
	return t;
}

void kv_table_free(struct kv_table *t)
{
	struct kv_space *s, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->spaces, s, next)
		drop_space(t, s);
	free(t->path);
	free(t);
}

/* ---- Changes, answers -------------------------------------------------------------------------------------------- */

int kv_table_put(struct kv_table *t, struct mq_str namespace, struct mq_str key, struct mq_str value,
                 struct mq_error *e)
{
	struct kv_space *s = find_space(t, namespace);
	struct kv_item *i = find_item(s, key);
	struct mq_str before = i ? copy(i->value) : (struct mq_str){ NULL, 0 };
	int rc;

	if (t->bytes + namespace.n + key.n + value.n > KV_BYTES_MAX) {
		free((char *)(uintptr_t)before.p);
		return err_set(e, MQ_ETOOBIG, "settings would take more than %d bytes", KV_BYTES_MAX);
	}
	set(t, namespace, key, copy(value));
	rc = save(t, e);
	if (rc == 0) {
		free((char *)(uintptr_t)before.p);
		return 0;
	}
	if (before.p)
		set(t, namespace, key, before);
	else if (s)
		drop_item(t, s, find_item(s, key));
	else
		drop_space(t, find_space(t, namespace));
	return rc;
}

int kv_table_delete(struct kv_table *t, struct mq_str namespace, struct mq_str key, struct mq_error *e)
{
	struct kv_space *s = find_space(t, namespace);
	struct kv_item *i = find_item(s, key);
	struct mq_str before;
	int rc;

	if (!i)
		return 0;
	before = copy(i->value);
	drop_item(t, s, i);
	rc = save(t, e);
	if (rc == 0)
		free((char *)(uintptr_t)before.p);
	else
		set(t, namespace, key, before);
	return rc;
}

struct mq_str kv_table_get(const struct kv_table *t, struct mq_str namespace, struct mq_str key)
{
	const struct kv_item *i = find_item(find_space(t, namespace), key);

	return i ? i->value : (struct mq_str){ NULL, 0 };
}

bool kv_table_list(const struct kv_table *t, struct mq_str namespace, struct body_kv *out)
{
	const struct kv_space *s = find_space(t, namespace);

	*out = (struct body_kv){ 0 };
	if (!s)
		return false;
	out->pair = body_alloc(&out->keep, HASH_COUNT(s->items) * sizeof(*out->pair));
	for (const struct kv_item *i = s->items; i; i = i->hh.next)
		out->pair[out->n++] = (struct body_pair){ { i->key, i->key_n }, i->value };
	return true;
}

size_t kv_table_count(const struct kv_table *t)
{
	size_t n = 0;

	for (const struct kv_space *s = t->spaces; s; s = s->hh.next)
		n += HASH_COUNT(s->items);
	return n;
}
