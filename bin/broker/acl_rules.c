/* acl_rules.c: YAML to accounts. */
#include "acl_rules.h"
#include "topic.h"
#include <base/err.h>
#include <base/json.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <base/yaml.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#define LOG_MODULE "acl"
enum { DEPTH_MAX = 8, FILES_MAX = 1024 };

/* ---- Which files ------------------------------------------------------------------------------------------------------------ */

struct paths {
	char **v;
	size_t n;
};

static void paths_free(struct paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i]);
	free(p->v);
	*p = (struct paths){ 0 };
}

static void paths_add(struct paths *p, char *path)
{
	p->v = mem_realloc(p->v, (p->n + 1) * sizeof *p->v);
	p->v[p->n++] = path;
}

static bool has_ending(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);

	return n > m && strcmp(name + n - m, ending) == 0;
}

static int paths_below(struct paths *p, const char *dir, int depth, struct mq_error *e)
{
	char **names;
	size_t n;
	int rc = sys_list(dir, &names, &n);

	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc < 0)
		return err_sys(e, rc, "read directory '%s'", dir);
	for (size_t i = 0; i < n && rc == 0; i++) {
		char *path = mem_printf("%s/%s", dir, names[i]);
		struct stat st;

		if (p->n == FILES_MAX)
			rc = err_set(e, MQ_ETOOBIG, "more than %d files in '%s'", FILES_MAX, dir);
		else if (has_ending(path, ".yml") || has_ending(path, ".yaml"))
			paths_add(p, mem_strdup(path));
		else if (depth < DEPTH_MAX && sys.stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			rc = paths_below(p, path, depth + 1, e);
		free(path);
	}
	free(names);
	return rc;
}

static int paths_of(struct paths *p, const char *path, const char *dir, struct mq_error *e)
{
	int rc = paths_below(p, dir, 0, e);

	paths_add(p, mem_strdup(path));
	if (rc < 0)
		paths_free(p);
	return rc;
}

/* ---- What is in one --------------------------------------------------------------------------------------------------------- */

int acl_document(const char *path, json_t **doc, struct mq_error *e)
{
	int rc = yaml_read(path, doc, e);

	if (rc != -ENOENT)
		return rc;
	*doc = json_object();
	return 0;
}

static int perm_parse(struct mq_str s, int *perm, struct mq_error *e)
{
	s = str_trim(s);
	*perm = !s.p || str_is(s, "DENY") ? ACL_DENY : str_is(s, "PUB") ? ACL_PUB : str_is(s, "SUB") ? ACL_SUB :
		str_is(s, "PUB|SUB") || str_is(s, "SUB|PUB") ? ACL_PUB | ACL_SUB : 0;
	return *perm ? 0 : err_set(e, MQ_EINVAL, "'" MQ_STR_FMT "' is no right: DENY, PUB, SUB or PUB|SUB", MQ_STR_ARG(s));
}

static void perm_set(struct acl_account *a, const char *prefix, struct mq_str name, int perm)
{
	size_t n = strlen(prefix) + name.n;
	struct acl_perm *p = mem_alloc(sizeof *p + n + 1), *old;

	memcpy(p->name, prefix, n - name.n);
	memcpy(p->name + n - name.n, name.p, name.n);
	p->perm = perm;
	HASH_FIND(hh, a->perms, p->name, n, old);
	if (old) {
		HASH_DEL(a->perms, old);
		free(old);
	}
	HASH_ADD_KEYPTR(hh, a->perms, p->name, n, p);
}

/* The list at key, NULL if there is none; what: how it is called when something else is there. */
static int list_at(const json_t *o, const char *key, const char *what, json_t **list, struct mq_error *e)
{
	*list = json_object_get(o, key);
	if (!*list || json_is_null(*list) || json_is_array(*list))
		return 0;
	return err_set(e, MQ_EINVAL, "%s: %s is wanted", key, what);
}

/* topicPerms or groupPerms: a list of NAME=RIGHT. */
static int take_perms(struct acl_account *a, const json_t *o, const char *key, const char *prefix, struct mq_error *e)
{
	json_t *list, *v;
	size_t i;
	int rc = list_at(o, key, "a list of NAME=RIGHT", &list, e);

	if (rc < 0)
		return rc;
	json_array_foreach(list, i, v) {
		struct mq_str right = json_text(v), name;
		int perm = 0;

		rc = MQ_EINVAL;
		if (right.p && str_split(&right, '=', &name) && right.p && str_trim(name).n && !memchr(right.p, '=', right.n))
			rc = perm_parse(right, &perm, e);
		else
			err_set(e, MQ_EINVAL, "'" MQ_STR_FMT "' is not NAME=RIGHT", MQ_STR_ARG(json_text(v)));
		if (rc < 0)
			return err_wrap(e, "%s", key);
		perm_set(a, prefix, str_trim(name), perm);
	}
	return 0;
}

static void account_free(struct acl_account *a)
{
	struct acl_perm *p, *next;

	HASH_ITER(hh, a->perms, p, next) {
		HASH_DEL(a->perms, p);
		free(p);
	}
	if (a->secret)
		sodium_memzero(a->secret, strlen(a->secret));
	acl_addr_free(a->white);
	free(a->access);
	free(a->secret);
	free(a);
}

/* Takes the account, or says why not. */
static int take_account(struct acl_account *a, const json_t *o, struct mq_error *e)
{
	struct mq_str access = json_str(o, "accessKey"), secret = json_str(o, "secretKey"), white = json_str(o, "whiteRemoteAddress");
	int rc;

	if (access.n < ACL_KEY_LEAST || secret.n < ACL_KEY_LEAST)
		return err_set(e, MQ_EINVAL, "accessKey and secretKey must be there, with more than %d characters each",
			       ACL_KEY_LEAST - 1);
	a->access = str_dup(access);
	a->secret = str_dup(secret);
	if (strlen(a->access) != access.n || strlen(a->secret) != secret.n)
		return err_set(e, MQ_EINVAL, "accessKey or secretKey with a zero byte");
	a->admin = json_bool(o, "admin", false);
	if ((rc = perm_parse(json_str(o, "defaultTopicPerm"), &a->topic_perm, e)) < 0)
		return err_wrap(e, "defaultTopicPerm");
	if ((rc = perm_parse(json_str(o, "defaultGroupPerm"), &a->group_perm, e)) < 0)
		return err_wrap(e, "defaultGroupPerm");
	if ((rc = acl_addr_parse(&a->white, white, e)) < 0)
		return err_wrap(e, "whiteRemoteAddress");
	if ((rc = take_perms(a, o, "topicPerms", "", e)) < 0)
		return rc;
	return take_perms(a, o, "groupPerms", TOPIC_RETRY_PREFIX, e);
}

static int take_accounts(struct acl_rules *r, const json_t *doc, size_t file, struct mq_error *e)
{
	json_t *list, *o;
	size_t i;
	int rc = list_at(doc, "accounts", "a list", &list, e);

	if (rc < 0)
		return rc;
	json_array_foreach(list, i, o) {
		struct acl_account *a = mem_alloc(sizeof *a), *other;

		rc = json_is_object(o) ? take_account(a, o, e) : err_set(e, MQ_EINVAL, "it is no map (key: value)");

		if (rc < 0) {
			err_wrap(e, "account %zu (%s)", i + 1, a->access ? a->access : "no accessKey");
			account_free(a);
			return rc;
		}
		HASH_FIND_STR(r->accounts, a->access, other);
		if (other) {
			log_warn("accessKey=%s is there twice: what the first one says counts", a->access);
			account_free(a);
			continue;
		}
		a->file = file;
		HASH_ADD_KEYPTR(hh, r->accounts, a->access, strlen(a->access), a);
	}
	return 0;
}

static int take_white(struct acl_rules *r, const json_t *doc, struct mq_error *e)
{
	json_t *list, *v;
	size_t i;
	int rc = list_at(doc, "globalWhiteRemoteAddresses", "a list", &list, e);

	if (rc < 0)
		return rc;
	json_array_foreach(list, i, v) {
		struct acl_addr *a;

		rc = acl_addr_parse(&a, json_text(v), e);
		if (rc < 0)
			return err_wrap(e, "globalWhiteRemoteAddresses");
		r->white = mem_realloc(r->white, (r->white_n + 1) * sizeof *r->white);
		r->white[r->white_n++] = a;
	}
	return 0;
}

static int take_document(struct acl_rules *r, const json_t *doc, size_t file, struct mq_error *e)
{
	json_t *version = json_array_get(json_object_get(doc, "dataVersion"), 0);
	int rc = take_white(r, doc, e);

	if (version && file < r->file_n) {
		r->file[file].counter = json_i64(version, "counter", 0);
		r->file[file].timestamp = json_i64(version, "timestamp", 0);
	}
	return rc < 0 ? rc : take_accounts(r, doc, file, e);
}

/* ---- All of them ------------------------------------------------------------------------------------------------------------ */

static int take_file(struct acl_rules *r, size_t i, struct mq_error *e)
{
	struct acl_file *f = &r->file[i];
	json_t *doc;
	int rc;

	if (sys.stat(f->path, &f->st) < 0)
		memset(&f->st, 0, sizeof f->st);
	if (f->st.st_mode & S_IROTH)
		log_warn("everybody on this machine may read the secrets of accounts: chmod o= file=%s", f->path);
	rc = acl_document(f->path, &doc, e);
	if (rc < 0)
		return rc;
	rc = take_document(r, doc, i, e);
	json_decref(doc);
	return rc < 0 ? err_wrap(e, "'%s'", f->path) : 0;
}

int acl_rules_read(struct acl_rules **out, const char *path, const char *dir, struct mq_error *e)
{
	struct acl_rules *r = mem_alloc(sizeof *r);
	struct paths p = { 0 };
	int rc = paths_of(&p, path, dir, e);

	if (rc == 0) {
		r->file_n = p.n;
		r->file = mem_alloc(p.n * sizeof *r->file);
		for (size_t i = 0; i < p.n; i++)
			r->file[i].path = p.v[i];
		free(p.v);
	}
	for (size_t i = 0; i < r->file_n && rc == 0; i++)
		rc = take_file(r, i, e);
	if (rc < 0) {
		acl_rules_free(r);
		r = NULL;
	}
	*out = r;
	return rc;
}

int acl_rules_check(const json_t *doc, const char *path, struct mq_error *e)
{
	struct acl_rules *r = mem_alloc(sizeof *r);
	int rc = take_document(r, doc, 0, e);

	if (rc < 0)
		err_wrap(e, "'%s'", path);
	acl_rules_free(r);
	return rc;
}

bool acl_rules_are_fresh(const struct acl_rules *r, const char *path, const char *dir)
{
	struct paths p = { 0 };
	bool same = paths_of(&p, path, dir, NULL) == 0 && p.n == r->file_n;

	for (size_t i = 0; same && i < p.n; i++) {
		const struct acl_file *f = &r->file[i];
		struct stat st;

		if (sys.stat(p.v[i], &st) < 0)
			memset(&st, 0, sizeof st);
		same = strcmp(f->path, p.v[i]) == 0 && st.st_ino == f->st.st_ino && st.st_size == f->st.st_size &&
		       st.st_mtim.tv_sec == f->st.st_mtim.tv_sec && st.st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
	}
	paths_free(&p);
	return same;
}

void acl_rules_free(struct acl_rules *r)
{
	struct acl_account *a, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->accounts, a, next) {
		HASH_DEL(r->accounts, a);
		account_free(a);
	}
	for (size_t i = 0; i < r->white_n; i++)
		acl_addr_free(r->white[i]);
	for (size_t i = 0; i < r->file_n; i++)
		free(r->file[i].path);
	free(r->white);
	free(r->file);
	free(r);
}
