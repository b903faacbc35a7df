/* half.c: see half.h.
 *
 *      half sent -> (the local transaction) -> mqclient_end: commit or roll back
 *                          |
 *                          `-> nothing said -> the broker asks any client of the producer group -> mqclient_end
 *
 * A half is sent by produce.c; what names it is its place in the log and in the half topic, both at one broker. */
#include "half.h"
#include "done.h"
#include "heartbeat.h"
#include "link.h"
#include "route.h"
#include "../codec/message.h"
#include "../codec/property.h"

/* Who answers for a group. */
struct checker {
	char *group;
	mqclient_check_cb *cb;
	void *arg;
	struct mqclient *c;
	struct topic *topic;            /* whose brokers are told of us */
	struct route_wait wait;
	LIST_ENTRY(checker) entry;
};

/* ---- Ending ---------------------------------------------------------------------------------------------------------- */

int mqclient_half_of(const struct mqclient_sent *r, const char *group, struct mqclient_half *h, struct mq_error *e)
{
	struct mq_host host;

	*h = (struct mqclient_half){ .queue = r->queue, .half_off = r->queue_off };
	if (strlen(group) >= sizeof h->group || r->uniq_key.n >= sizeof h->id)
		return err_set(e, MQ_EINVAL, "transaction: group or id is too long");
	if (r->queue_off < 0 || mq_offset_id_parse(r->offset_id, &host, &h->log_off) < 0)
		return err_set(e, MQ_EPROTO, "transaction: the broker did not say where its half is");
	memcpy(h->group, group, strlen(group) + 1);
	memcpy(h->id, r->uniq_key.p, r->uniq_key.n);
	h->id[r->uniq_key.n] = 0;
	return 0;
}

int mqclient_end(struct mqclient *c, const struct mqclient_half *h, bool commit, mqclient_done_cb *cb, void *arg, struct mq_error *e)
{
	struct broker *b = broker_get(c, str_of(h->queue.broker));
	struct frame_out o;
	struct link *l;
	int rc = done_call(c, b, REQ_END_TRANSACTION, 0, &l, &o, cb, arg, e, "%s transaction %s at %s",
	                   commit ? "commit" : "roll back", h->id, b->name);

	if (rc < 0)
		return rc;
	frame_cstr(&o, "producerGroup", h->group);
	frame_i64(&o, "tranStateTableOffset", h->half_off);
	frame_i64(&o, "commitLogOffset", h->log_off);
	frame_i64(&o, "commitOrRollback", commit ? MQ_SYS_TRAN_COMMIT : MQ_SYS_TRAN_ROLLBACK);
	frame_bool(&o, "fromTransactionCheck", h->asked);
	frame_cstr(&o, "msgId", h->id);
	frame_cstr(&o, "transactionId", h->id);
	frame_cstr(&o, "bname", b->name);
	link_send(l, &o);
	return 0;
}

/* ---- Being asked ----------------------------------------------------------------------------------------------------- */

static void on_route(struct route_wait *w, int rc, const struct mq_error *e)
{
	/* The brokers are known now: they are told of the group. */
	if (rc == 0)
		heartbeat_changed(client_container(w, struct checker, wait)->c);
}

int mqclient_answer_checks(struct mqclient *c, const char *group, struct mq_str topic, mqclient_check_cb *cb, void *arg,
                           struct mq_error *e)
{
	int rc = mq_check_group(str_of(group), e);
	struct checker *k;

	if (rc == 0)
		rc = mq_check_topic(topic, e);
	if (rc < 0)
		return rc;
	LIST_FOREACH(k, &c->checkers, entry)
		if (strcmp(k->group, group) == 0)
			return err_set(e, MQ_EBUSY, "transactions of group '%s' are answered for by this client already", group);
	k = mem_alloc(sizeof *k);
	*k = (struct checker){ .group = mem_strdup(group), .cb = cb, .arg = arg, .c = c, .topic = route_topic(c, topic) };
	k->wait.cb = on_route;
	k->wait.for_write = true;
	k->topic->subscribed++;
	LIST_INSERT_HEAD(&c->checkers, k, entry);
	heartbeat_producer(c, group);
	route_wait(k->topic, &k->wait);
	return 0;
}

static bool read_half(const struct frame *f, const struct mq_message *m, struct mqclient *c, struct mqclient_half *h)
{
	struct mq_str broker = frame_get(f, "bname"), group = mq_prop_get(m->props, PROP_PGROUP), id = frame_get(f, "msgId");

	*h = (struct mqclient_half){ .asked = true };
	if (str_i64(frame_get(f, "tranStateTableOffset"), &h->half_off) < 0 ||
	    str_i64(frame_get(f, "commitLogOffset"), &h->log_off) < 0 || !group.n || group.n >= sizeof h->group || id.n >= sizeof h->id)
		return false;
	memcpy(h->group, group.p, group.n);
	if (id.n)
		memcpy(h->id, id.p, id.n);
	if (broker.n)
		h->queue.broker = broker_get(c, broker)->name;
	h->queue.id = m->queue_id;
	return true;
}

/* Brokers before 5.0 do not name themselves. */
static const char *broker_of(const struct link *l)
{
	struct broker *b, *tmp;

	HASH_ITER(hh, l->c->brokers, b, tmp)
		for (size_t i = 0; i < b->naddrs; i++)
			if (b->addr[i].link == l)
				return b->name;
	return NULL;
}

void half_asked(struct link *l, struct frame *f)
{
	struct mqclient *c = l->c;
	void *scratch = c->scratch.p;
	struct mqclient_half h;
	struct mq_message m;
	struct mq_str body;
	struct checker *k;

	if (mq_message_decode(f->body.p, f->body.n, false, &m) <= 0 || !read_half(f, &m, c, &h)) {
		client_log(c, 1, "%s: question about a transaction that cannot be read", l->addr);
		return;
	}
	if (!h.queue.broker)
		h.queue.broker = broker_of(l);
	LIST_FOREACH(k, &c->checkers, entry)
		if (strcmp(k->group, h.group) == 0)
			break;
	if (!k || !h.queue.broker) {
		client_log(c, 2, "%s: question about transaction %s of group '%s': nobody here knows", l->addr, h.id, h.group);
		return;
	}
	if (mq_message_body(&m, CLIENT_BODY_MAX, &scratch, &c->scratch.cap, &body) < 0)
		body = m.body;
	c->scratch.p = scratch;
	k->cb(k->arg, &h, &m, body);
}

void half_free(struct mqclient *c)
{
	struct checker *k;

	while ((k = LIST_FIRST(&c->checkers))) {
		LIST_REMOVE(k, entry);
		route_unwait(k->topic, &k->wait);
		free(k->group);
		free(k);
	}
}
