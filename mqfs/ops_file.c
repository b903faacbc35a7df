/* ops_file.c: open files.  What an open file is, is settled at open: a text as it was then (and the new one, if it is written), a
 * message, a stream, a share of a group, or a post. */
#include "fail.h"
#include "feed.h"
#include "ops.h"
#include "options.h"
#include "post.h"
#include "proc.h"
#include "share.h"
#include "task.h"
#include "tree.h"
#include "tree_nodes.h"
#include "../bin/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MAX = 1024 * 1024 };

struct file {
	TAILQ_ENTRY(file) entry;
	int refs;                       /* the kernel's, and of tasks */
	struct node *node;
	struct bytes text;
	bool written;                   /* and not yet given on */
	pid_t pid;                      /* who opened it */
	struct message *message;
	struct feed *feed;
	struct taker *taker;
	struct post *post;
};

static TAILQ_HEAD(, file) files = TAILQ_HEAD_INITIALIZER(files);

struct file *file_of(struct fuse_file_info *fi) { return (struct file *)(uintptr_t)fi->fh; }

void file_ref(struct file *f) { f->refs++; }

void file_unref(struct file *f)
{
	if (--f->refs > 0)
		return;
	TAILQ_REMOVE(&files, f, entry);
	if (f->message)
		message_unref(f->message);
	bytes_free(&f->text);
	node_unref(f->node);
	free(f);
}

static void close_streams(struct file *f)
{
	if (f->feed)
		feed_close(f->feed);
	if (f->taker)
		share_close(f->taker);
	if (f->post)
		post_close(f->post);
	f->feed = NULL;
	f->taker = NULL;
	f->post = NULL;
}

int64_t file_stream_size(struct file *f) { return f->feed ? feed_size(f->feed, true) : f->taker || f->post ? 0 : -1; }

/* ---- Open -------------------------------------------------------------------------------------------------------- */

static int open_tail(struct file *f)
{
	struct stream_want want = { .start = MQCLIENT_END };
	const char *at = strchr(f->node->name, '@');
	struct queue_name q;
	char topic[256];

	snprintf(topic, sizeof(topic), "%.*s", (int)(at ? at - f->node->name : 255), f->node->name);
	want.topic = topic;
	if (at && tree_queue_name(at + 1, &q))
		want.queue = &q;
	return feed_open(&f->feed, f->node, &want);
}

static int open_from(struct file *f)
{
	struct stream_want want;
	struct queue_name q;
	int rc = tree_from(f->node, &want, &q);

	return rc ? rc : feed_open(&f->feed, f->node, &want);
}

static int open_recv(struct file *f)
{
	char group[256], topic[256];

	return stream_recv_names(f->node->name, group, topic) ? share_open(&f->taker, group, topic) : -ENOENT;
}

static enum post_mode post_mode(const struct kind *k)
{
	return k == &tree[K_SEND] ? POST_SEND : k == &tree[K_LINES] ? POST_LINES : POST_JSON;
}

/* What this open makes of the file. */
static int open_kind(struct req *r, struct file *f)
{
	const struct kind *k = f->node->kind;
	bool writes = (r->flags & O_ACCMODE) != O_RDONLY;

	if (writes && options.read_only)
		return -EROFS;
	if (writes && !k->write && !(k->flags & TREE_POST))
		return -EACCES;
	if (k->flags & TREE_POST) {
		if (writes)
			f->post = post_open(post_mode(k), tree_name(f->node, K_TOPIC), f->node->ino, r->pid);
		return 0;
	}
	if (k == &tree[K_STREAM_TAIL])
		return open_tail(f);
	if (k->flags & TREE_RECV)
		return open_recv(f);
	if (k->flags & TREE_STREAM)
		return open_from(f);
	if (k == &tree[K_MESSAGE])
		return tree_message(f->node, &f->message);
	/* A new text begins empty; else with what is there, for who changes a part or adds to it. */
	return r->flags & O_TRUNC ? 0 : tree_read(f->node, &f->text);
}

static void run_open(struct req *r)
{
	struct fuse_file_info fi = { .flags = r->flags };
	struct file *f = calloc(1, sizeof(*f));
	fuse_req_t fuse;
	int rc;

	if (!f)
		cli_die(CLI_SYSTEM, "out of memory");
	TAILQ_INSERT_TAIL(&files, f, entry);
	f->refs = 1;
	f->node = r->node;
	node_ref(f->node);
	f->pid = proc_of_thread(r->pid);
	rc = open_kind(r, f);
	fi.fh = (uint64_t)(uintptr_t)f;
	/* A message is as it is: the kernel may keep it.  Of all else each read comes to us. */
	fi.direct_io = !f->message;
	fi.keep_cache = f->message != NULL;
	fuse = r->fuse;
	r->fuse = rc == 0 ? NULL : fuse;
	if (rc == 0 && fuse && fuse_reply_open(fuse, &fi) == 0)
		return;
	ops_err(r, rc);
	close_streams(f);
	file_unref(f);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct req *r = ops_req(req, ino, NULL, NULL, run_open);

	if (r)
		r->flags = fi->flags;
	ops_start(r);
}


/* ---- Read and poll ----------------------------------------------------------------------------------------------- */

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct file *f = file_of(fi);
	struct mq_str all = f->message ? f->message->body : bytes_view(&f->text);
	bool nonblock = fi->flags & O_NONBLOCK;

	if (f->feed) {
		feed_read(f->feed, req, size, off, nonblock);
	} else if (f->taker) {
		share_read(f->taker, req, size, off, nonblock);
	} else if (off < 0 || (uint64_t)off >= all.n) {
		fuse_reply_buf(req, NULL, 0);
	} else {
		size_t left = all.n - (size_t)off;
		fuse_reply_buf(req, all.p + off, left < size ? left : size);
	}
}

void ops_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
	struct file *f = file_of(fi);

	if (f->feed) {
		feed_poll(f->feed, req, ph);
		return;
	}
	if (f->taker) {
		share_poll(f->taker, req, ph);
		return;
	}
	if (ph)
		fuse_pollhandle_destroy(ph);
	fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
}

/* ---- Write ------------------------------------------------------------------------------------------------------- */

int file_truncate(struct file *f, size_t size)
{
	if (f->post)
		return 0;
	if (!f->node->kind->write)
		return -EACCES;
	if (size > TEXT_MAX)
		return -EFBIG;
	if (size > f->text.n) {
		size_t more = size - f->text.n;
		memset(bytes_room(&f->text, more), 0, more);
	}
	f->text.n = size;
	return 0;
}

/* The new text of a setting, or what a post holds, goes to the broker. */
static int give_on(struct file *f)
{
	int rc;

	if (f->post)
		return post_sync(f->post);
	if (!f->written)
		return 0;
	f->written = false;
	rc = f->node->kind->write(f->node, bytes_view(&f->text));
	node_drop_text(f->node);
	return rc;
}

static void run_write(struct req *r)
{
	int rc = give_on(r->file);

	if (rc)
		ops_err(r, rc);
	else if (r->fuse) {
		fuse_req_t fuse = r->fuse;
		r->fuse = NULL;
		fuse_reply_write(fuse, r->size);
	}
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct file *f = file_of(fi);
	struct req *r;
	size_t at = fi->flags & O_APPEND ? f->text.n : (size_t)off;

	if (f->post) {
		post_write(f->post, req, buf, size);
		return;
	}
	if (off < 0 || at + size > TEXT_MAX) {
		fuse_reply_err(req, EFBIG);
		return;
	}
	if (at + size > f->text.n)
		file_truncate(f, at + size);
	memcpy(f->text.p + at, buf, size);
	f->written = true;
	if (f->text.p[f->text.n - 1] != '\n') {
		fuse_reply_write(req, size);
		return;
	}
	/* Whole lines are given on at once: a shell's echo looks at what write says, not at close. */
	r = ops_req(req, ino, f, NULL, run_write);
	if (r)
		r->size = size;
	ops_start(r);
}

static void run_flush(struct req *r)
{
	struct file *f = r->file;

	if (f->post) {
		ops_err(r, post_flush(f->post, r->pid));
		return;
	}
	/* Half a text of who was killed is none; that of a child that ends is not whole. */
	if (f->written && proc_ending(r->pid) == PROC_KILLED)
		f->written = false;
	ops_err(r, f->written && proc_of_thread(r->pid) == f->pid ? give_on(f) : 0);
}

void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct file *f = file_of(fi);

	if (f->taker)
		share_flush(f->taker, fuse_req_ctx(req)->pid);
	if (f->post || f->written)
		ops_start(ops_req(req, ino, f, NULL, run_flush));
	else
		fuse_reply_err(req, 0);
}

static void run_fsync(struct req *r) { ops_err(r, give_on(r->file)); }

void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	ops_start(ops_req(req, ino, file_of(fi), NULL, run_fsync));
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* A text that no close of the one who opened it gave on: nobody is left who could hear of a failure but the log. */
static void run_release(struct req *r)
{
	give_on(r->file);
	ops_err(r, 0);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct file *f = file_of(fi);

	close_streams(f);
	if (f->written)
		ops_start(ops_req(req, ino, f, NULL, run_release));
	else
		fuse_reply_err(req, 0);
	file_unref(f);
}

void file_close_all(void)
{
	struct file *f, *next;

	for (f = TAILQ_FIRST(&files); f; f = next) {
		next = TAILQ_NEXT(f, entry);
		close_streams(f);
		file_unref(f);
	}
}
