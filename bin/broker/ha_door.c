/* ha_door.c: connections to the replication port, before they are slaves. */
#include "ha_door.h"
#include "broker.h"
#include "ha_allow.h"
#include "ha_prove.h"
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>
#include <utlist.h>

enum { BACKLOG = 64 };

struct visitor {
	struct visitor *prev, *next;
	struct ha_door *d;
	struct stream *s;
	struct ha_prove *prove;
};

struct ha_door {
	struct broker *b;
	struct stream_server *server;
	const struct ha_door_ops *ops;
	void *owner;
	struct visitor *visitors;       /* the oldest first */
	int n;
};

/* Off the list; the connection stays. */
static void forget(struct visitor *v)
{
	DL_DELETE(v->d->visitors, v);
	v->d->n--;
	free(v);
}

static void turn_away(struct ha_door *d, struct stream *s, const char *why)
{
	struct mq_host peer = *stream_peer(s);

	stream_close(s);
	d->ops->refused(d->owner, &peer, why);
}

static void on_proved(void *arg, int rc, const char *why)
{
	struct visitor *v = arg;
	struct ha_door *d = v->d;
	struct stream *s = v->s;

	forget(v);
	if (rc < 0)
		turn_away(d, s, why);
	else
		d->ops->entered(d->owner, s);
}

static void ask_for_proof(struct ha_door *d, struct stream *s)
{
	struct visitor *v;

	if (d->n == HA_DOOR_MAX) {
		v = d->visitors;
		ha_prove_cancel(v->prove);
		turn_away(d, v->s, "others came while it had not proved the secret (haSecretFile)");
		forget(v);
	}
	v = mem_alloc(sizeof *v);
	v->d = d;
	v->s = s;
	DL_APPEND(d->visitors, v);
	d->n++;
	v->prove = ha_prove_start(d->b->loop, s, HA_PROOF_MASTER, d->b->ha_secret, on_proved, v);
}

static void on_accepted(void *owner, struct stream *s)
{
	struct ha_door *d = owner;

	if (!ha_allow(str_of(d->b->conf->haAllowedAddresses), stream_peer(s)))
		turn_away(d, s, "haAllowedAddresses does not have its address");
	else if (d->b->ha_secret)
		ask_for_proof(d, s);
	else
		d->ops->entered(d->owner, s);
}

/* Between being accepted and being somebody's. */
static void on_readable(struct stream *s)
{
}

static const struct stream_ops nobodys = { .readable = on_readable };

struct ha_door *ha_door_open(struct broker *b, int port, const struct ha_door_ops *ops, void *owner, struct mq_error *e)
{
	struct ha_door *d = mem_alloc(sizeof *d);

	d->b = b;
	d->ops = ops;
	d->owner = owner;
	d->server = stream_listen(b->loop, b->conf->bindAddress, port, BACKLOG, &nobodys, on_accepted, d, e);
	if (d->server)
		return d;
	free(d);
	return NULL;
}

int ha_door_port(const struct ha_door *d)
{
	return stream_server_port(d->server);
}

void ha_door_close(struct ha_door *d)
{
	struct visitor *v, *next;

	stream_server_close(d->server);
	DL_FOREACH_SAFE(d->visitors, v, next) {
		ha_prove_cancel(v->prove);
		stream_close(v->s);
		forget(v);
	}
	free(d);
}
