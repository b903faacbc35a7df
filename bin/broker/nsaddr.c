/* nsaddr.c: the list of name servers.
 *
 * An address server is asked when fetchNamesrvAddrByAddressServer=true and namesrvAddr is empty, or when namesrvAddr is itself an
 * http:// address.  When it does not answer, or with nothing, the old list stays.  Source: the peer's DefaultTopAddressing. */
#include "nsaddr.h"
#include "broker.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <net/fetch.h>
#include <stdlib.h>

#define LOG_MODULE "nsaddr"

enum { FETCH_MS = 3000, FETCH_MAX = 4096, RETRY_MS = 1000 };

struct nsaddr {
	struct broker *b;
	void (*changed)(void *arg, char *const *addr, size_t n);
	void *arg;
	char *text;             /* list that was given out last */
	uv_timer_t timer;
	struct fetch *fetch;    /* NULL: none runs */
	bool again;             /* the configuration changed during a fetch */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* Give the list out if it is not the last one.  False if there is no address in it. */
static bool use(struct nsaddr *a, struct mq_str text)
{
	struct mq_str rest = text, piece;
	char **v = NULL;
	size_t n = 0;

	while (str_split(&rest, ';', &piece)) {
		piece = str_trim(piece);
		if (!piece.n)
			continue;
		v = mem_realloc(v, (n + 1) * sizeof *v);
		v[n++] = str_dup(piece);
	}
	if (n && !(a->text && str_is(text, a->text))) {
		free(a->text);
		a->text = str_dup(text);
		a->changed(a->arg, v, n);
	}
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
	return n > 0;
}

/* URL of the address server, or NULL: none is to be asked. */
static char *url_of(const struct broker_conf *c)
{
	if (strncmp(c->namesrvAddr, "http://", 7) == 0)
		return mem_strdup(c->namesrvAddr);
	if (*c->namesrvAddr || !c->fetchNamesrvAddrByAddressServer)
		return NULL;
	return mem_printf("http://%s%s/rocketmq/%s", c->rmqAddressServerDomain, strchr(c->rmqAddressServerDomain, ':') ? "" : ":8080",
			  c->rmqAddressServerSubGroup);
}

static void ask(struct nsaddr *a);

static void on_timer(uv_timer_t *timer)
{
	ask(timer->data);
}

static void on_list(void *arg, int rc, const struct mq_error *e, struct mq_str body)
{
	struct nsaddr *a = arg;
	struct mq_str line = str_trim(body);
	bool again = a->again;

	a->fetch = NULL;
	a->again = false;
	if (a->stopped) {
		a->stopped(a->stopped_arg);
		return;
	}
	if (again) {
		ask(a);
		return;
	}
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] == '\r' || line.p[i] == '\n')
			line.n = i;
	if (rc < 0)
		log_warn("name servers: %s%s", e->text, a->text ? "; the old list stays" : "");
	else if (!use(a, line))
		log_warn("name servers: the address server's answer holds none%s", a->text ? "; the old list stays" : "");
	uv_timer_start(&a->timer, on_timer, a->text ? a->b->conf->fetchNamesrvAddrInterval : RETRY_MS, 0);
}

static void ask(struct nsaddr *a)
{
	char *url = url_of(a->b->conf);
	struct mq_error e;

	if (url) {
		a->fetch = fetch_start(a->b->loop, url, FETCH_MS, FETCH_MAX, on_list, a, &e);
		if (!a->fetch)
			log_error("name servers: %s", e.text);
	} else if (!use(a, str_of(a->b->conf->namesrvAddr)) && a->text) {
		free(a->text);
		a->text = NULL;
		a->changed(a->arg, NULL, 0);
	}
	free(url);
}

void nsaddr_reload(struct nsaddr *a)
{
	uv_timer_stop(&a->timer);
	if (a->fetch)
		a->again = true;
	else
		ask(a);
}

struct nsaddr *nsaddr_new(struct broker *b, void (*changed)(void *arg, char *const *addr, size_t n), void *arg)
{
	struct nsaddr *a = mem_alloc(sizeof *a);

	a->b = b;
	a->changed = changed;
	a->arg = arg;
	uv_timer_init(b->loop, &a->timer);
	a->timer.data = a;
	ask(a);
	return a;
}

void nsaddr_stop(struct nsaddr *a, void (*done)(void *arg), void *arg)
{
	uv_timer_stop(&a->timer);
	a->stopped = done;
	a->stopped_arg = arg;
	if (a->fetch)
		fetch_stop(a->fetch);
	else
		done(arg);
}

static void on_closed(uv_handle_t *handle)
{
	struct nsaddr *a = handle->data;

	free(a->text);
	free(a);
}

void nsaddr_free(struct nsaddr *a)
{
	if (a)
		uv_close((uv_handle_t *)&a->timer, on_closed);
}
