/* held.c: see held.h. */
#include "held.h"
#include "options.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdlib.h>

void held_init(struct held_list *l)
{
	TAILQ_INIT(&l->reads);
	l->poll = NULL;
}

static void on_interrupt(fuse_req_t req, void *arg)
{
	fuse_reply_err(held_take(arg), EINTR);
}

void held_add(struct held_list *l, fuse_req_t req, size_t size, off_t off)
{
	struct held *h = malloc(sizeof(*h));

	if (!h)
		cli_die(CLI_SYSTEM, "out of memory");
	*h = (struct held){ .list = l, .req = req, .size = size, .off = off, .since_ms = task_now_ms() };
	TAILQ_INSERT_TAIL(&l->reads, h, entry);
	/* This calls back at once if the signal was faster. */
	fuse_req_interrupt_func(req, on_interrupt, h);
}

fuse_req_t held_take(struct held *h)
{
	fuse_req_t req = h->req;

	TAILQ_REMOVE(&h->list->reads, h, entry);
	free(h);
	return req;
}

void held_end(struct held_list *l, int rc, int64_t since_ms)
{
	struct held *h, *next;

	for (h = TAILQ_FIRST(&l->reads); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->since_ms > since_ms)
			continue;
		if (rc)
			fuse_reply_err(held_take(h), -rc);
		else
			fuse_reply_buf(held_take(h), NULL, 0);
	}
}

void held_poll(struct held_list *l, struct fuse_pollhandle *ph)
{
	if (l->poll)
		fuse_pollhandle_destroy(l->poll);
	l->poll = ph;
}

void held_wake_poll(struct held_list *l)
{
	struct fuse_pollhandle *ph = l->poll;

	if (!ph)
		return;
	l->poll = NULL;
	fuse_lowlevel_notify_poll(ph);
	fuse_pollhandle_destroy(ph);
}

bool held_gives_up(int64_t *away_ms, int rc, int64_t asked_ms)
{
	if (rc == 0) {
		*away_ms = 0;
		return false;
	}
	if (!*away_ms)
		*away_ms = asked_ms;
	/* Name servers forget the routes of a broker that is gone. */
	return (rc != -EHOSTDOWN && rc != -ENOENT) || task_now_ms() - *away_ms >= options.timeout_ms;
}

void held_close(struct held_list *l)
{
	held_end(l, -ENOTCONN, INT64_MAX);
	held_poll(l, NULL);
}
