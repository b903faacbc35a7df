/* session.c: see session.h.
 *
 * The descriptor is read while there is something, some requests a turn.  What it does not tell is that the mount was taken away lazily
 * while files are open: the list of mounts does. */
#include "session.h"
#include "mount.h"
#include "ops.h"
#include "options.h"
#include "../bin/bytes.h"
#include "../bin/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURN = 64 };

static struct {
	struct fuse_session *se;
	struct fuse_buf buf;
	uv_poll_t poll, mounts;
	int mounts_fd;
	int64_t mount;
	bool said_hello;
	void (*ready)(void);
	void (*gone)(void);
} s;

/* The session keeps its own table: what is called first tells that the kernel is there. */
static struct fuse_lowlevel_ops table;
static void (*first_init)(void *userdata, struct fuse_conn_info *conn);

static void on_init(void *userdata, struct fuse_conn_info *conn)
{
	first_init(userdata, conn);
	s.said_hello = true;
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	for (int i = 0; i < TURN && s.se; i++) {
		int n = fuse_session_receive_buf(s.se, &s.buf);
		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return;
		if (n <= 0 || fuse_session_exited(s.se)) {
			uv_poll_stop(h);
			s.gone();
			return;
		}
		fuse_session_process_buf(s.se, &s.buf);
		if (s.said_hello && s.ready) {
			void (*ready)(void) = s.ready;
			s.ready = NULL;
			ready();
		}
	}
}

static void on_mounts(uv_poll_t *h, int status, int events)
{
	if (s.mount >= 0 && !mount_is_there(s.mount)) {
		uv_poll_stop(h);
		s.gone();
	}
}

static void watch_mounts(uv_loop_t *loop)
{
	s.mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	s.mount = mount_id(options.mountpoint);
	if (s.mounts_fd < 0 || uv_poll_init(loop, &s.mounts, s.mounts_fd) < 0)
		return;
	uv_poll_start(&s.mounts, UV_PRIORITIZED, on_mounts);
}

/* Commas and backslashes would end an option. */
static void add_escaped(struct bytes *b, const char *v)
{
	for (; *v; v++) {
		if (*v == ',' || *v == '\\')
			bytes_byte(b, '\\');
		bytes_byte(b, *v);
	}
}

static int set(struct mq_error *err, int code, const char *text)
{
	err->code = code;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "%.300s: %s", options.mountpoint, text);
	return code;
}

int session_open(uv_loop_t *loop, void (*ready)(void), void (*gone)(void), struct mq_error *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct bytes opts = { 0 };
	int fd, rc = mount_prepare(options.mountpoint, err);

	if (rc)
		return rc;
	s.ready = ready;
	s.gone = gone;
	table = ops_table;
	first_init = table.init;
	table.init = on_init;
	/* The kernel compares owner and mode, for everybody. */
	bytes_str(&opts, "default_permissions,subtype=mqfs,fsname=");
	add_escaped(&opts, options.addr);
	bytes_printf(&opts, "%s%s%s%s", options.read_only ? ",ro" : "", options.allow_other ? ",allow_other" : "",
	             options.kernel[0] ? "," : "", options.kernel);
	bytes_byte(&opts, '\0');
	fuse_opt_add_arg(&args, "mqfs");
	fuse_opt_add_arg(&args, "-o");
	fuse_opt_add_arg(&args, opts.p);
	s.se = fuse_session_new(&args, &table, sizeof(table), NULL);
	fuse_opt_free_args(&args);
	bytes_free(&opts);
	if (!s.se)
		return set(err, MQ_EINVAL, "an option is wrong (see above)");
	if (fuse_session_mount(s.se, options.mountpoint) != 0) {
		fuse_session_destroy(s.se);
		s.se = NULL;
		return set(err, -EIO, access("/dev/fuse", R_OK | W_OK) == 0 ? "cannot be mounted (see above)"
		                                                           : "cannot be mounted: /dev/fuse is not usable");
	}
	fd = fuse_session_fd(s.se);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	uv_poll_init(loop, &s.poll, fd);
	uv_poll_start(&s.poll, UV_READABLE, on_readable);
	watch_mounts(loop);
	return 0;
}

void session_close(void)
{
	if (!s.se)
		return;
	uv_poll_stop(&s.poll);
	uv_close((uv_handle_t *)&s.poll, NULL);
	if (s.mounts_fd >= 0) {
		uv_poll_stop(&s.mounts);
		uv_close((uv_handle_t *)&s.mounts, NULL);
		close(s.mounts_fd);
	}
	fuse_session_unmount(s.se);
	fuse_session_destroy(s.se);
	free(s.buf.mem);
	s.buf.mem = NULL;
	s.se = NULL;
}
