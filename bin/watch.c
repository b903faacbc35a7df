/* watch.c: one descriptor, waited for without changing it. */
#include "watch.h"
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct watch {
	uv_poll_t poll;
	int set, fd;
	uint32_t events;
	void (*cb)(void *arg, uint32_t events);
	void *arg;
};

static void on_set_ready(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	struct epoll_event e;

	if (epoll_wait(w->set, &e, 1, 0) == 1)
		w->cb(w->arg, e.events);
}

int watch_open(struct watch **out, uv_loop_t *loop, int fd, void (*cb)(void *arg, uint32_t events), void *arg)
{
	struct watch *w = calloc(1, sizeof(*w));
	struct epoll_event e = { .events = 0 };
	int rc;

	*out = NULL;
	if (!w)
		cli_die(CLI_SYSTEM, "out of memory");
	w->fd = fd;
	w->cb = cb;
	w->arg = arg;
	w->poll.data = w;
	w->set = epoll_create1(EPOLL_CLOEXEC);
	if (w->set < 0) {
		rc = -errno;
		goto free_watch;
	}
	if (epoll_ctl(w->set, EPOLL_CTL_ADD, fd, &e) != 0) {
		rc = errno == EPERM ? 1 : -errno;
		goto close_set;
	}
	rc = uv_poll_init(loop, &w->poll, w->set);
	if (rc != 0)
		goto close_set;
	uv_poll_start(&w->poll, UV_READABLE, on_set_ready);
	*out = w;
	return 0;
close_set:
	close(w->set);
free_watch:
	free(w);
	return rc;
}

void watch_for(struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events };

	if (!w || w->events == events)
		return;
	if (events == WATCH_OFF)
		epoll_ctl(w->set, EPOLL_CTL_DEL, w->fd, NULL);
	else
		epoll_ctl(w->set, w->events == WATCH_OFF ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, w->fd, &e);
	w->events = events;
}

static void on_closed(uv_handle_t *h)
{
	struct watch *w = h->data;

	close(w->set);
	free(w);
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	uv_poll_stop(&w->poll);
	uv_close((uv_handle_t *)&w->poll, on_closed);
}
