/* broker_child.c: see broker_child.h. */
#include "broker_child.h"
#include "broker_kit.h"
#include "../../bin/broker/broker.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

pid_t broker_child_start(const char *dir, const char *const *props, int *port)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct mq_error e = { 0 };
		struct broker_kit *k;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion leaves nobody behind */
		k = broker_kit_start_in(dir, props, &e);
		*port = k ? broker_port(broker_kit_broker(k)) : 0;
		if (!k)
			fprintf(stderr, "# the broker does not start: %s\n", e.text);
		if (write(p[1], port, sizeof *port) != sizeof *port || !k)
			_exit(1);
		for (;;)
			uv_run(broker_kit_loop(k), UV_RUN_ONCE);
	}
	close(p[1]);
	assert_int_equal(read(p[0], port, sizeof *port), sizeof *port);
	assert_true(*port > 0); /* it starts by itself, whatever the last kill left */
	close(p[0]);
	return pid;
}

void broker_child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int broker_child_dial(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

bool broker_child_put(int fd, struct buf *b)
{
	size_t at = 0;

	while (at < b->n) {
		ssize_t n = send(fd, b->p + at, b->n - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	b->n = 0;
	return true;
}

bool broker_child_next(int fd, struct buf *in, size_t *used, struct frame *f)
{
	int64_t n;

	buf_drop(in, *used);
	*used = 0;
	while ((n = frame_length(in->p, in->n)) == 0 || (size_t)n > in->n) {
		ssize_t got = recv(fd, buf_room(in, 1 << 16), 1 << 16, 0);

		assert_true(n >= 0);
		if (got <= 0)
			return false;
		in->n += (size_t)got;
	}
	*used = (size_t)n;
	assert_int_equal(frame_parse(in->p, (size_t)n, f, NULL), 0);
	return true;
}
