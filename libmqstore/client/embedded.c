/* embedded.c: see embedded.h.  Plain blocking system calls: it runs on a worker. */
#include "embedded.h"
#include "link.h"
#include "nameserver.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int embedded_address(const char *dir, char *out, size_t cap, struct mq_error *e)
{
	size_t max = sizeof ((struct sockaddr_un *)0)->sun_path - 1;
	int n = snprintf(out, cap, "unix:%s/mq.sock", dir);

	if (n < 0 || (size_t)n >= cap || (size_t)n - 5 > max)
		return err_set(e, MQ_EINVAL, "file:%s: path of its socket has %d bytes; %zu are allowed", dir, n - 5,
		               max);
	return 0;
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------- */

/* 0 if somebody listens, else -errno. */
static int try_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Path of mq-broker: beside our own program, else the first in $PATH. */
static int find_broker(char *out, size_t cap, struct mq_error *e)
{
	const char *path = getenv("PATH");
	ssize_t n = readlink("/proc/self/exe", out, cap - 1);
	char *slash;

	if (n > 0) {
		out[n] = 0;
		slash = strrchr(out, '/');
		if (slash && (size_t)(slash - out) + sizeof "/mq-broker" <= cap) {
			memcpy(slash, "/mq-broker", sizeof "/mq-broker");
			if (access(out, X_OK) == 0)
				return 0;
		}
	}
	for (struct mq_str rest = str_of(path), dir; str_split(&rest, ':', &dir);) {
		if (!dir.n || (size_t)snprintf(out, cap, "%.*s/mq-broker", (int)dir.n, dir.p) >= cap)
			continue;
		if (access(out, X_OK) == 0)
			return 0;
	}
	return err_set(e, MQ_ENOTFOUND, "program mq-broker is neither beside this one nor in $PATH");
}

static int make_dirs(const char *dir)
{
	char *p = mem_strdup(dir);
	int rc = 0;

	for (char *s = p + 1; rc == 0; s++) {
		char was = *s;
		if (was != '/' && was != 0)
			continue;
		*s = 0;
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			rc = -errno;
		*s = was;
		if (!was)
			break;
	}
	free(p);
	return rc;
}

/* In the child: only calls that are safe after fork() in a program with threads.  Writes {pid, 0} or {0, errno} to `report`. */
static void run_detached(const char *broker, const char *dir, int log_fd, int report)
{
	char *const argv[] = { "mq-broker", "--embedded", (char *)dir, NULL };
	int out[2] = { 0, 0 };
	sigset_t none;
	pid_t pid;
	int null_fd;

	setsid();
	pid = fork();
	if (pid != 0)
		_exit(0);
	out[0] = (int)getpid();
	if (write(report, out, sizeof out) < 0)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	null_fd = open("/dev/null", O_RDWR);
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	dup2(log_fd, 2);
	/* Not a descriptor of ours may live on in the broker: a pipe that it holds open would never end for its reader. */
	for (int fd = 3; fd < 1024; fd++)
		if (fd != report)
			close(fd);
	execv(broker, argv);
	out[0] = 0;
	out[1] = errno;
	if (write(report, out, sizeof out) < 0)
		_exit(127);
	_exit(127);
}

/* Start it; *pid is its process.  0 or the error of fork, log or exec. */
static int spawn(const char *broker, const char *dir, pid_t *pid, struct mq_error *e)
{
	char log[PATH_MAX];
	int report[2], out[2], log_fd, rc = 0;
	pid_t child;
	ssize_t n;

	if ((size_t)snprintf(log, sizeof log, "%s/mq-broker.log", dir) >= sizeof log)
		return err_set(e, -ENAMETOOLONG, "file:%s: path is too long", dir);
	log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_fd < 0) {
		rc = -errno;
		return err_sys(e, rc, "open '%s'", log);
	}
	if (pipe2(report, O_CLOEXEC) < 0) {
		rc = -errno;
		close(log_fd);
		return err_sys(e, rc, "start %s", broker);
	}
	child = fork();
	if (child == 0)
		run_detached(broker, dir, log_fd, report[1]);
	close(log_fd);
	close(report[1]);
	if (child < 0) {
		rc = err_sys(e, -errno, "start %s", broker);
	} else {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		/* The pipe ends when the new program runs; a second report is the error of exec. */
		*pid = 0;
		while ((n = read(report[0], out, sizeof out)) == sizeof out || (n < 0 && errno == EINTR)) {
			if (n < 0)
				continue;
			if (out[0])
				*pid = out[0];
			else
				rc = err_sys(e, -out[1], "start %s", broker);
		}
		if (rc == 0 && *pid == 0)
			rc = err_set(e, MQ_ECLOSED, "start %s: its process ended at once", broker);
	}
	close(report[0]);
	return rc;
}

/* The last line of the log says best what went wrong. */
static void last_line(const char *dir, char *out, size_t cap)
{
	char path[PATH_MAX], tail[512];
	ssize_t n = 0;
	off_t size;
	int fd;

	out[0] = 0;
	snprintf(path, sizeof path, "%s/mq-broker.log", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	n = pread(fd, tail, sizeof tail, size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0);
	close(fd);
	while (n > 0 && tail[n - 1] == '\n')
		n--;
	if (n > 0) {
		const char *nl = memrchr(tail, '\n', (size_t)n);
		const char *from = nl ? nl + 1 : tail;
		str_show((struct mq_str){ from, (size_t)(tail + n - from) }, out, cap);
	}
}

static int wait_ready(const char *sock, const char *dir, pid_t pid, int64_t until, const volatile bool *stop,
                      struct mq_error *e)
{
	char line[300];

	for (;;) {
		bool gone = kill(pid, 0) < 0 && errno == ESRCH;
		if (try_connect(sock) == 0)
			return 0;
		if (*stop)
			return err_set(e, MQ_ECANCELLED, "file:%s: given up", dir);
		if (gone || client_now() >= until)
			break;
		poll(NULL, 0, 3);
	}
	last_line(dir, line, sizeof line);
	if (client_now() >= until)
		return err_set(e, MQ_ETIMEOUT, "file:%s: its broker does not answer within %d ms%s%s", dir,
		               EMBEDDED_WAIT_MS, *line ? ": " : "", line);
	return err_set(e, MQ_ECLOSED, "file:%s: its broker ended at once%s%s", dir, *line ? ": " : "", line);
}

/* Wait for the lock: who holds it is starting the broker. */
static int take_lock(const char *dir, int64_t until, const volatile bool *stop, struct mq_error *e)
{
	char path[PATH_MAX];
	int fd, rc;

	if ((size_t)snprintf(path, sizeof path, "%s/mq-start.lock", dir) >= sizeof path)
		return err_set(e, -ENAMETOOLONG, "file:%s: path is too long", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = -errno;
		return err_sys(e, rc, "open '%s'", path);
	}
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			rc = -errno;
			close(fd);
			return err_sys(e, rc, "lock '%s'", path);
		}
		if (*stop || client_now() >= until) {
			close(fd);
			return err_set(e, MQ_ETIMEOUT, "lock '%s': another program is starting the broker", path);
		}
		poll(NULL, 0, 3);
	}
	return fd;
}

int embedded_ensure(const char *dir, const volatile bool *stop, struct mq_error *e)
{
	int64_t until = client_now() + EMBEDDED_WAIT_MS;
	char sock[256], broker[PATH_MAX];
	pid_t pid;
	int rc, lock;

	rc = embedded_address(dir, sock, sizeof sock, e);
	if (rc < 0)
		return rc;
	rc = try_connect(sock + 5);
	if (rc == 0)
		return 0;
	if (rc != -ENOENT && rc != -ECONNREFUSED)
		return err_sys(e, rc, "connect to '%s'", sock + 5);
	rc = make_dirs(dir);
	if (rc < 0)
		return err_sys(e, rc, "make directory '%s'", dir);
	lock = take_lock(dir, until, stop, e);
	if (lock < 0)
		return lock;
	rc = try_connect(sock + 5);
	if (rc < 0) {
		rc = find_broker(broker, sizeof broker, e);
		if (rc == 0)
			rc = spawn(broker, dir, &pid, e);
		if (rc == 0)
			rc = wait_ready(sock + 5, dir, pid, until, stop, e);
	}
	close(lock);
	return rc;
}

/* ---- On a worker ----------------------------------------------------------------------------------------------------- */

struct embedded {
	uv_work_t work;
	struct mqclient *c;
	char *dir;
	volatile bool stop;
	int rc;
	struct mq_error e;
};

static void on_work(uv_work_t *w)
{
	struct embedded *m = w->data;

	m->rc = embedded_ensure(m->dir, &m->stop, &m->e);
}

static void on_done(uv_work_t *w, int status)
{
	struct embedded *m = w->data;
	struct mqclient *c = m->c;
	struct mq_error e = m->e;
	int rc = status < 0 ? err_sys(&e, status, "file:%s", m->dir) : m->rc;

	c->embedded = NULL;
	c->open_handles--;
	if (rc < 0)
		client_log(c, 0, "%s", e.text);
	free(m->dir);
	free(m);
	if (rc == 0)
		for (size_t i = 0; i < c->nns; i++)
			link_retry_now(c->ns[i]);
	nameserver_ready(c, rc < 0 ? &e : NULL);
}

void embedded_start(struct mqclient *c)
{
	struct embedded *m;

	if (c->embedded || c->closing)
		return;
	m = mem_alloc(sizeof *m);
	m->c = c;
	m->dir = mem_strdup(mqclient_addr_dir(c->addr));
	m->work.data = m;
	c->embedded = m;
	c->ns_wait = true;
	c->open_handles++;
	uv_queue_work(c->loop, &m->work, on_work, on_done);
}

void embedded_stop(struct mqclient *c)
{
	if (!c->embedded)
		return;
	c->embedded->stop = true;
	uv_cancel((uv_req_t *)&c->embedded->work);
}
