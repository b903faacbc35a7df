/* ops.h: every request of the kernel: find the node, ask, reply once.
 *
 *   ops.c        life of a request; names, attributes, directories, links
 *   ops_file.c   open, read, write, flush, fsync, release, poll
 *   ops_xattr.c  extended attributes
 *
 * A request that has to wait runs as a task (task.h).  A signal to the caller ends it at once with EINTR, whatever the task still waits
 * for; the task goes on to its end and its reply is dropped. */
#ifndef MQFS_OPS_H
#define MQFS_OPS_H

#include "fuse.h"
#include "node.h"

#include <stdbool.h>
#include <sys/queue.h>

/* A request in a task. */
struct req {
	TAILQ_ENTRY(req) entry;
	fuse_req_t fuse;                /* NULL: answered */
	void (*run)(struct req *r);
	struct node *node;              /* referenced */
	struct file *file;              /* referenced; may be NULL */
	char *name;                     /* of a child, an xattr */
	char *value;                    /* of an xattr */
	size_t size, value_n;
	int flags;
	pid_t pid;
	bool fh;                        /* getattr of an open file */
};

/* Run it as a task: run(r), then everything is freed.  file may be NULL; name, value are copied. */
struct req *ops_req(fuse_req_t fuse, fuse_ino_t ino, struct file *file, const char *name, void (*run)(struct req *r));
void ops_start(struct req *r);
/* Answer; nothing if it was answered by a signal.  Returns false then. */
bool ops_err(struct req *r, int rc);      /* 0 or a negative errno */
bool ops_buf(struct req *r, const void *p, size_t n);

struct stat;
void ops_stat(const struct node *n, int64_t size, int64_t ms, struct stat *st);
/* Attributes of a node as they are now.  In a task. */
int ops_attr(struct node *n, struct stat *st);

/* ops_file.c; arguments as libfuse has them. */
struct file;
void file_ref(struct file *f);
void file_unref(struct file *f);
struct file *file_of(struct fuse_file_info *fi);
/* The size that an open stream has for who asks by the open file; -1: it is none. */
int64_t file_stream_size(struct file *f);
/* An open file that is written is cut or filled up to this size. */
int file_truncate(struct file *f, size_t size);
/* At the end, when the kernel says no more: those that it has not released. */
void file_close_all(void);
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi);
void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph);

/* ops_xattr.c */
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

extern const struct fuse_lowlevel_ops ops_table;
/* At the end: every request that waits is answered with ENOTCONN. */
void ops_end_all(void);
/* Listings that the kernel has not released; after ops_end_all(). */
void ops_free_all(void);
/* Requests in tasks; 0: all have ended. */
size_t ops_running(void);
/* Times of what has none of its own: when the mount began. */
void ops_init(void);

#endif
