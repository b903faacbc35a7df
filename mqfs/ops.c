/* ops.c: see ops.h. */
#include "ops.h"
#include "fail.h"
#include "feed.h"
#include "options.h"
#include "task.h"
#include "tree.h"
#include "../bin/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Seconds that the kernel may believe what it was told: of a directory, that it is there; of a message, everything. */
#define LASTING_S 1.0
#define MESSAGE_S 10.0

static TAILQ_HEAD(, req) reqs = TAILQ_HEAD_INITIALIZER(reqs);
static size_t nreqs;
static struct timespec born;

void ops_init(void) { clock_gettime(CLOCK_REALTIME, &born); }

/* ---- Life of a request ------------------------------------------------------------------------------------------- */

struct req *ops_req(fuse_req_t fuse, fuse_ino_t ino, struct file *file, const char *name, void (*run)(struct req *r))
{
	struct node *n = node_by_ino(ino);
	struct req *r;

	if (!n) {
		fuse_reply_err(fuse, ESTALE);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r || (name && !(r->name = strdup(name))))
		cli_die(CLI_SYSTEM, "out of memory");
	r->fuse = fuse;
	r->run = run;
	r->node = n;
	node_ref(n);
	r->file = file;
	if (file)
		file_ref(file);
	r->pid = fuse_req_ctx(fuse)->pid;
	TAILQ_INSERT_TAIL(&reqs, r, entry);
	nreqs++;
	return r;
}

static void on_interrupt(fuse_req_t fuse, void *arg)
{
	struct req *r = arg;

	if (r->fuse)
		ops_err(r, -EINTR);
}

static void run(void *arg)
{
	struct req *r = arg;

	r->run(r);
	if (r->fuse)
		ops_err(r, -EIO); /* no run function leaves a request without an answer */
	TAILQ_REMOVE(&reqs, r, entry);
	nreqs--;
	if (r->file)
		file_unref(r->file);
	node_unref(r->node);
	free(r->name);
	free(r->value);
	free(r);
}

void ops_start(struct req *r)
{
	if (!r)
		return;
	fuse_req_interrupt_func(r->fuse, on_interrupt, r);
	task_start(run, r, task_now_ms() + options.timeout_ms);
}

static fuse_req_t take(struct req *r)
{
	fuse_req_t fuse = r->fuse;

	r->fuse = NULL;
	return fuse;
}

bool ops_err(struct req *r, int rc)
{
	if (!r->fuse)
		return false;
	fuse_reply_err(take(r), -rc);
	return true;
}

bool ops_buf(struct req *r, const void *p, size_t n)
{
	if (!r->fuse)
		return false;
	fuse_reply_buf(take(r), p, n);
	return true;
}

void ops_end_all(void)
{
	struct req *r;

	TAILQ_FOREACH(r, &reqs, entry)
		ops_err(r, -ENOTCONN);
}

size_t ops_running(void) { return nreqs; }

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

void ops_stat(const struct node *n, int64_t size, int64_t ms, struct stat *st)
{
	const struct kind *k = n->kind;
	bool makes = S_ISDIR(k->mode) && options.admin && tree_made_in(n);
	mode_t bits = (k->mode & 07777) | (makes ? 0200 : 0);

	if (options.read_only)
		bits &= ~0222u;
	memset(st, 0, sizeof(*st));
	st->st_ino = n->ino;
	st->st_mode = (k->mode & S_IFMT) | (S_ISLNK(k->mode) ? 0777 : bits & ~options.umask);
	st->st_nlink = S_ISDIR(k->mode) ? 2 : 1;
	st->st_uid = options.uid;
	st->st_gid = options.gid;
	st->st_size = size;
	st->st_blocks = (size + 511) / 512;
	st->st_blksize = 131072;
	st->st_mtim = ms > 0 ? (struct timespec){ ms / 1000, ms % 1000 * 1000000 } : born;
	st->st_atim = st->st_ctim = st->st_mtim;
}

int ops_attr(struct node *n, struct stat *st)
{
	struct bytes text = { 0 };
	struct message *m;
	int64_t ms;
	int rc;

	if (S_ISDIR(n->kind->mode) || (n->kind->flags & TREE_POST)) {
		ops_stat(n, 0, 0, st);
		return 0;
	}
	if ((n->kind->flags & (TREE_STREAM | TREE_RECV)) && S_ISREG(n->kind->mode)) {
		int64_t size = feed_node_size(n, &ms);
		ops_stat(n, size, ms, st);
		return 0;
	}
	if (n->kind->flags & TREE_MESSAGE) {
		rc = tree_message(n, &m);
		if (rc)
			return rc;
		ms = m->m.store_ms;
		if (n->kind == &tree[K_MESSAGE])
			ops_stat(n, (int64_t)m->body.n, ms, st);
		message_unref(m);
		if (n->kind == &tree[K_MESSAGE])
			return 0;
	} else {
		ms = 0;
	}
	rc = tree_read(n, &text);
	if (rc == 0)
		ops_stat(n, (int64_t)text.n, ms, st);
	bytes_free(&text);
	return rc;
}

static double attr_seconds(const struct kind *k)
{
	return k->flags & TREE_MESSAGE ? MESSAGE_S : S_ISDIR(k->mode) || (k->flags & TREE_POST) ? LASTING_S : 0;
}

static double entry_seconds(const struct kind *k)
{
	return k->flags & TREE_MESSAGE ? MESSAGE_S : k->name || (k->flags & TREE_LASTING) ? LASTING_S : 0;
}

static void run_getattr(struct req *r)
{
	struct stat st;
	int64_t size = r->file ? file_stream_size(r->file) : -1;
	int rc;

	if (size >= 0) {
		ops_stat(r->node, size, 0, &st);
		rc = 0;
	} else {
		rc = ops_attr(r->node, &st);
	}
	if (rc)
		ops_err(r, rc);
	else if (r->fuse)
		fuse_reply_attr(take(r), &st, attr_seconds(r->node->kind));
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	ops_start(ops_req(req, ino, fi ? file_of(fi) : NULL, NULL, run_getattr));
}

/* Times, owner and mode are the mount's: to set them is what cp -p and editors do, and is no reason to fail; it changes nothing. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	int rc = 0;

	if (options.read_only)
		rc = -EROFS;
	else if (to_set & FUSE_SET_ATTR_SIZE && fi)
		rc = file_truncate(file_of(fi), (size_t)attr->st_size);
	if (rc)
		fuse_reply_err(req, -rc);
	else
		ops_start(ops_req(req, ino, NULL, NULL, run_getattr));
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void reply_entry(struct req *r, struct node *n)
{
	struct fuse_entry_param e = { .ino = n->ino, .attr_timeout = attr_seconds(n->kind), .entry_timeout = entry_seconds(n->kind) };
	int rc = 0;

	/* What may change is asked again in any case, before it counts. */
	if (n->kind->flags & TREE_MESSAGE)
		rc = ops_attr(n, &e.attr);
	else
		ops_stat(n, 0, 0, &e.attr);
	if (rc) {
		ops_err(r, rc);
	} else if (r->fuse) {
		node_looked_up(n);
		if (fuse_reply_entry(take(r), &e) != 0)
			node_forget(n, 1);
	}
	node_unref(n);
}

static void run_lookup(struct req *r)
{
	struct node *n;
	int rc = tree_lookup(r->node, r->name, &n);

	if (rc)
		ops_err(r, rc);
	else
		reply_entry(r, n);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	ops_start(ops_req(req, parent, NULL, name, run_lookup));
}

static void forget(fuse_ino_t ino, uint64_t n)
{
	struct node *node = node_by_ino(ino);

	if (node)
		node_forget(node, n);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	forget(ino, nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *f)
{
	for (size_t i = 0; i < count; i++)
		forget(f[i].ino, f[i].nlookup);
	fuse_reply_none(req);
}

static void run_readlink(struct req *r)
{
	struct bytes text = { 0 };
	int rc = tree_read(r->node, &text);

	bytes_byte(&text, '\0');
	if (rc)
		ops_err(r, rc);
	else if (r->fuse)
		fuse_reply_readlink(take(r), text.p);
	bytes_free(&text);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino) { ops_start(ops_req(req, ino, NULL, NULL, run_readlink)); }

/* ---- Directories: a listing is what was there at opendir --------------------------------------------------------- */

struct listing {
	TAILQ_ENTRY(listing) entry;
	struct tree_list l;
	uint64_t ino, parent;
	uint64_t *child;                /* numbers, made when first asked for */
};

static TAILQ_HEAD(, listing) listings = TAILQ_HEAD_INITIALIZER(listings);

static void free_listing(struct listing *d)
{
	TAILQ_REMOVE(&listings, d, entry);
	tree_list_free(&d->l);
	free(d->child);
	free(d);
}

static void run_opendir(struct req *r)
{
	struct fuse_file_info fi = { 0 };
	struct listing *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		cli_die(CLI_SYSTEM, "out of memory");
	TAILQ_INSERT_TAIL(&listings, d, entry);
	rc = tree_list(r->node, &d->l);
	d->ino = r->node->ino;
	d->parent = r->node->parent ? r->node->parent->ino : r->node->ino;
	d->child = calloc(d->l.n + 1, sizeof(*d->child));
	for (size_t i = 0; d->child && i < d->l.n; i++)
		d->child[i] = node_child_ino(r->node, d->l.v[i].name);
	fi.fh = (uint64_t)(uintptr_t)d;
	if (rc == 0 && r->fuse && fuse_reply_open(take(r), &fi) == 0)
		return;
	ops_err(r, rc);
	free_listing(d);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	ops_start(ops_req(req, ino, NULL, NULL, run_opendir));
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct listing *d = (struct listing *)(uintptr_t)fi->fh;
	char *buf = malloc(size);
	size_t n = 0;

	if (!buf)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = (size_t)off; i < d->l.n + 2; i++) {
		const struct tree_entry *e = i < 2 ? NULL : &d->l.v[i - 2];
		struct stat st = { .st_ino = e ? d->child[i - 2] : i ? d->parent : d->ino, .st_mode = e ? e->kind->mode : S_IFDIR };
		size_t one = fuse_add_direntry(req, buf + n, size - n, e ? e->name : i ? ".." : ".", &st, (off_t)(i + 1));
		if (one > size - n)
			break;
		n += one;
	}
	fuse_reply_buf(req, buf, n);
	free(buf);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	free_listing((struct listing *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

void ops_free_all(void)
{
	while (!TAILQ_EMPTY(&listings))
		free_listing(TAILQ_FIRST(&listings));
}

/* ---- Making and removing ----------------------------------------------------------------------------------------- */

/* The kind that can be made here, or NULL with why not. */
static const struct kind *may_make(struct req *r, int *rc)
{
	const struct kind *k = tree_made_in(r->node);

	*rc = options.read_only ? -EROFS : !k ? -EPERM : !options.admin ? -EPERM : 0;
	if (*rc == -EPERM && k)
		fail(*rc, "%s/%s: to make and remove this the mount needs -o admin", r->node->name, r->name);
	return *rc ? NULL : k;
}

static void run_mkdir(struct req *r)
{
	int rc;
	const struct kind *k = may_make(r, &rc);

	if (k)
		rc = k->make(r->node, r->name);
	if (rc)
		ops_err(r, rc);
	else
		reply_entry(r, node_child(r->node, k, r->name));
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	ops_start(ops_req(req, parent, NULL, name, run_mkdir));
}

static void run_rmdir(struct req *r)
{
	struct node *n;
	int rc;
	const struct kind *k = may_make(r, &rc);

	if (k)
		rc = tree_lookup(r->node, r->name, &n);
	if (rc == 0) {
		rc = n->kind == k ? k->remove(r->node, r->name) : -EPERM;
		node_unref(n);
	}
	ops_err(r, rc);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	ops_start(ops_req(req, parent, NULL, name, run_rmdir));
}

/* Names are the queue's: no file can be made, moved or removed. */
static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	fuse_reply_err(req, options.read_only ? EROFS : EPERM);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	fuse_reply_err(req, options.read_only ? EROFS : EPERM);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, options.read_only ? EROFS : EPERM);
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, options.read_only ? EROFS : EPERM);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name, unsigned flags)
{
	fuse_reply_err(req, options.read_only ? EROFS : EPERM);
}

/* df asks nobody: numbers that are always the same. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st = { .f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255, .f_files = node_count() };

	fuse_reply_statfs(req, &st);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	/* Replies are written from our buffers; requests are read into one. */
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	conn->max_background = 256;
	conn->congestion_threshold = 192;
}

const struct fuse_lowlevel_ops ops_table = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mkdir = op_mkdir,
	.rmdir = op_rmdir,
	.create = op_create,
	.mknod = op_mknod,
	.unlink = op_unlink,
	.symlink = op_symlink,
	.rename = op_rename,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.open = ops_open,
	.read = ops_read,
	.write = ops_write,
	.flush = ops_flush,
	.fsync = ops_fsync,
	.release = ops_release,
	.poll = ops_poll,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.setxattr = ops_setxattr,
	.removexattr = ops_removexattr,
};
