/* ops_xattr.c: extended attributes, all below user.mq.: of a message what is known of it, of send, lines and json what became of what
 * was sent; on an open send they are set as properties of its message. */
#include "fail.h"
#include "ops.h"
#include "options.h"
#include "post.h"
#include "tree.h"
#include "when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "user.mq."

/* ---- What a node has: cb for each -------------------------------------------------------------------------------- */

typedef void each_cb(void *arg, const char *name, struct mq_str value);

static void number(each_cb *cb, void *arg, const char *name, int64_t v)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)v);

	cb(arg, name, (struct mq_str){ text, (size_t)n });
}

static void some(each_cb *cb, void *arg, const char *name, struct mq_str v)
{
	if (v.p && v.n)
		cb(arg, name, v);
}

static void host(each_cb *cb, void *arg, const char *name, const struct mq_host *h)
{
	char text[MQ_HOST_TEXT];

	if (!h->len)
		return;
	mq_host_text(h, text);
	cb(arg, name, (struct mq_str){ text, strlen(text) });
}

static void each_of_message(const struct message *m, each_cb *cb, void *arg)
{
	struct mq_str id = mq_prop_get(m->m.props, "UNIQ_KEY"), name, value;
	char offset_id[MQ_ID_TEXT], prop[300];
	size_t n = mq_offset_id(&m->m.store_host, m->m.log_off, offset_id);

	cb(arg, "id", id.n ? id : (struct mq_str){ offset_id, n });
	cb(arg, "offset-id", (struct mq_str){ offset_id, n });
	some(cb, arg, "keys", mq_prop_get(m->m.props, "KEYS"));
	some(cb, arg, "tags", mq_prop_get(m->m.props, "TAGS"));
	cb(arg, "topic", m->m.topic);
	number(cb, arg, "offset", m->m.queue_off);
	number(cb, arg, "born", m->m.born_ms);
	number(cb, arg, "stored", m->m.store_ms);
	host(cb, arg, "born-host", &m->m.born_host);
	number(cb, arg, "retries", m->m.reconsume_times);
	number(cb, arg, "flag", m->m.flag);
	/* Of two with one name the last counts, and is told. */
	for (size_t pos = 0; mq_prop_next(m->m.props, &pos, &name, &value);) {
		if (name.n > 200 || !name.n || memchr(name.p, 0, name.n))
			continue;
		snprintf(prop, sizeof(prop), "prop." MQ_STR_FMT, MQ_STR_ARG(name));
		if (mq_prop_get(m->m.props, prop + 5).p == value.p)
			cb(arg, prop, value);
	}
}

static void text(each_cb *cb, void *arg, const char *name, const char *v) { some(cb, arg, name, (struct mq_str){ v, strlen(v) }); }

static int each(struct node *n, pid_t pid, each_cb *cb, void *arg)
{
	const struct post_result *r;
	struct message *m;
	int rc;

	if (n->kind->flags & TREE_MESSAGE) {
		rc = tree_message(n, &m);
		if (rc)
			return rc;
		each_of_message(m, cb, arg);
		message_unref(m);
	}
	if ((n->kind->flags & TREE_POST) && (r = post_result(n->ino, pid))) {
		text(cb, arg, "id", r->id);
		text(cb, arg, "queue", r->queue);
		text(cb, arg, "offset", r->offset);
		text(cb, arg, "error", r->error);
	}
	return 0;
}

/* ---- Get and list ------------------------------------------------------------------------------------------------ */

struct wanted {
	const char *name;
	struct bytes value;
	bool found;
};

static void take(void *arg, const char *name, struct mq_str value)
{
	struct wanted *w = arg;

	if (w->found || strcmp(name, w->name) != 0)
		return;
	w->found = true;
	bytes_add(&w->value, value.p, value.n);
}

static void answer(struct req *r, const struct bytes *b)
{
	if (r->size && b->n > r->size) {
		ops_err(r, -ERANGE);
	} else if (r->size) {
		ops_buf(r, b->p, b->n);
	} else if (r->fuse) {
		fuse_req_t fuse = r->fuse;
		r->fuse = NULL;
		fuse_reply_xattr(fuse, b->n);
	}
}

static void run_get(struct req *r)
{
	struct wanted w = { .name = r->name + sizeof(PREFIX) - 1 };
	int rc = each(r->node, r->pid, take, &w);

	if (rc == 0 && !w.found)
		rc = -ENODATA;
	if (rc)
		ops_err(r, rc);
	else
		answer(r, &w.value);
	bytes_free(&w.value);
}

void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct node *n = node_by_ino(ino);
	struct req *r;

	/* ls asks for security.* of every file. */
	if (!n || strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || !(n->kind->flags & (TREE_MESSAGE | TREE_POST))) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	r = ops_req(req, ino, NULL, name, run_get);
	r->size = size;
	ops_start(r);
}

static void list_one(void *arg, const char *name, struct mq_str value)
{
	bytes_str(arg, PREFIX);
	bytes_str(arg, name);
	bytes_byte(arg, '\0');
}

static void run_list(struct req *r)
{
	struct bytes names = { 0 };
	int rc = each(r->node, r->pid, list_one, &names);

	if (rc)
		ops_err(r, rc);
	else
		answer(r, &names);
	bytes_free(&names);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct req *r = ops_req(req, ino, NULL, NULL, run_list);

	if (r)
		r->size = size;
	ops_start(r);
}

/* ---- Set --------------------------------------------------------------------------------------------------------- */

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	struct node *n = node_by_ino(ino);
	struct post *p;
	int rc;

	if (!n || options.read_only || strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || !(n->kind->flags & TREE_POST)) {
		fuse_reply_err(req, options.read_only ? EROFS : EOPNOTSUPP);
		return;
	}
	p = post_of(ino, fuse_req_ctx(req)->pid);
	if (p)
		rc = post_property(p, name + sizeof(PREFIX) - 1, (struct mq_str){ value, size });
	else
		rc = fail(-EBUSY, "%s: a property belongs to a file that is open for writing: none, or more than one, is", name);
	fuse_reply_err(req, -rc);
}

void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name) { fuse_reply_err(req, options.read_only ? EROFS : EPERM); }
