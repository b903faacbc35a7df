/* acl_edit.c: changes of accounts by request: a document is read, changed, looked at as if it were read anew, written. */
#include "acl_private.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/json.h>
#include <base/str.h>
#include <base/sys.h>
#include <base/yaml.h>
#include <sodium.h>

static struct acl_file *main_file(const struct acl *a)
{
	return &a->rules->file[a->rules->file_n - 1];
}

static struct acl_file *file_of(const struct acl *a, struct mq_str access)
{
	const struct acl_account *o;

	HASH_FIND(hh, a->rules->accounts, access.p, access.n, o);
	return o ? &a->rules->file[o->file] : NULL;
}

static json_t *text_of(struct mq_str s)
{
	return json_stringn(s.p, s.n);
}

/* "a=PUB,b=SUB" as a list; without blanks around. */
static json_t *list_of(struct mq_str s)
{
	json_t *list = json_array();
	struct mq_str piece;

	while (str_split(&s, ',', &piece))
		if (str_trim(piece).n)
			json_array_append_new(list, text_of(str_trim(piece)));
	return list;
}

static json_t *list_at(json_t *doc, const char *key)
{
	json_t *list = json_object_get(doc, key);

	if (!json_is_array(list)) {
		list = json_array();
		json_object_set_new(doc, key, list);
	}
	return list;
}

/* Write what doc has become, if it is right, and read all anew.  Takes doc; path, which is of the rules, is gone with them afterwards. */
static int save(struct acl *a, const char *path, json_t *doc, struct mq_error *e)
{
	json_t *version = json_array_get(json_object_get(doc, "dataVersion"), 0), *list = json_array(), *next = json_object();
	struct buf text = { 0 };
	int rc;

	json_object_set_new(next, "counter", json_integer(version ? json_i64(version, "counter", 0) + 1 : 1));
	json_object_set_new(next, "timestamp", json_integer(clock_wall_ms()));
	json_array_append_new(list, next);
	json_object_set_new(doc, "dataVersion", list);
	rc = acl_rules_check(doc, path, e);
	if (rc == 0)
		yaml_write(doc, &text);
	json_decref(doc);
	if (rc < 0)
		return rc;
	rc = sys_replace_file(path, text.p, text.n);
	sodium_memzero(text.p, text.n);
	buf_free(&text);
	return rc < 0 ? err_sys(e, rc, "write '%s'", path) : acl_read(a, e);
}

/* The account in the list, or -1. */
static int find(const json_t *list, struct mq_str access)
{
	json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
		if (str_eq(json_str(o, "accessKey"), access))
			return (int)i;
	return -1;
}

static void set(json_t *o, const char *key, struct mq_str v)
{
	if (v.n)
		json_object_set_new(o, key, text_of(v));
}

int acl_account_set(struct acl *a, const struct acl_config_header *h, struct mq_error *e)
{
	const struct acl_file *f = file_of(a, h->accessKey);
	const char *path = f ? f->path : main_file(a)->path;
	json_t *doc, *list, *o;
	int at, rc;

	if (h->accessKey.n < ACL_KEY_LEAST || h->secretKey.n < ACL_KEY_LEAST)
		return err_set(e, MQ_EINVAL, "The accessKey=" MQ_STR_FMT " and its secretKey cannot be null and length should longer "
			       "than %d", MQ_STR_ARG(h->accessKey), ACL_KEY_LEAST - 1);
	rc = acl_document(path, &doc, e);
	if (rc < 0)
		return rc;
	list = list_at(doc, "accounts");
	at = find(list, h->accessKey);
	if (at < 0) {
		o = json_object();
		json_array_append_new(list, o);
	} else {
		o = json_array_get(list, (size_t)at);
	}
	/* compat: what is not said stays as it was, but for the rights of an admin, which go. */
	set(o, "accessKey", h->accessKey);
	set(o, "secretKey", h->secretKey);
	if (h->whiteRemoteAddress.p)
		json_object_set_new(o, "whiteRemoteAddress", text_of(h->whiteRemoteAddress));
	json_object_set_new(o, "admin", json_boolean(h->admin));
	set(o, "defaultTopicPerm", h->defaultTopicPerm);
	set(o, "defaultGroupPerm", h->defaultGroupPerm);
	if (h->topicPerms.p)
		json_object_set_new(o, "topicPerms", list_of(h->topicPerms));
	if (h->groupPerms.p)
		json_object_set_new(o, "groupPerms", list_of(h->groupPerms));
	return save(a, path, doc, e);
}

int acl_account_delete(struct acl *a, struct mq_str access, struct mq_error *e)
{
	const struct acl_file *f = file_of(a, access);
	json_t *doc, *list;
	int at, rc;

	if (!f)
		return err_set(e, MQ_ENOTFOUND, "there is no such account");
	rc = acl_document(f->path, &doc, e);
	if (rc < 0)
		return rc;
	list = list_at(doc, "accounts");
	at = find(list, access);
	if (at < 0) {
		json_decref(doc);
		return err_set(e, MQ_ENOTFOUND, "it is not in '%s' any more", f->path);
	}
	json_array_remove(list, (size_t)at);
	return save(a, f->path, doc, e);
}

int acl_white_set(struct acl *a, struct mq_str list, struct mq_str file, struct mq_error *e)
{
	const struct acl_file *f = file.n ? NULL : main_file(a);
	json_t *doc;
	int rc;

	for (size_t i = 0; i < a->rules->file_n; i++)
		if (str_is(file, a->rules->file[i].path))
			f = &a->rules->file[i];
	if (!f)
		return err_set(e, MQ_ENOTFOUND, "'" MQ_STR_FMT "' is none of the files of accounts", MQ_STR_ARG(file));
	rc = acl_document(f->path, &doc, e);
	if (rc < 0)
		return rc;
	json_object_set_new(doc, "globalWhiteRemoteAddresses", list_of(list));
	return save(a, f->path, doc, e);
}

static void put_version(struct json_out *o, const struct acl_file *f)
{
	json_open(o, '{');
	json_member_i64(o, "counter", f->counter);
	json_member_i64(o, "stateVersion", 0);
	json_member_i64(o, "timestamp", f->timestamp);
	json_close(o, '}');
}

void acl_versions(const struct acl *a, struct buf *main_version, struct buf *all)
{
	struct json_out one = json_to(main_version), each = json_to(all);

	put_version(&one, main_file(a));
	json_open(&each, '{');
	for (size_t i = 0; i < a->rules->file_n; i++) {
		json_key(&each, a->rules->file[i].path);
		put_version(&each, &a->rules->file[i]);
	}
	json_close(&each, '}');
}
