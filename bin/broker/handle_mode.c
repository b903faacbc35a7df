/* handle_mode.c: SET_MESSAGE_REQUEST_MODE, GET_ALL_MESSAGE_REQUEST_MODE, QUERY_ASSIGNMENT: whether a group pulls or pops a topic, and
 * which queues of the whole cluster a member of it reads.
 *
 * Strategies are those of the peer's broker, AVG and AVG_BY_CIRCLE; for any other the answer has no list, and the client stays with
 * what it has. */
#include "broker.h"
#include "client_table.h"
#include "handle.h"
#include "mode_table.h"
#include "route.h"
#include "topic_table.h"
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_pop.h>
#include <stdlib.h>

/* ---- 401, 402 -------------------------------------------------------------------------------------------------------------- */

struct setting {
	struct broker *b;
	struct later to;
};

static void on_saved(void *arg, int rc)
{
	struct setting *s = arg;
	struct req q = later_req(s->b, &s->to);

	if (rc < 0)
		reply(&q, RESP_SYSTEM_ERROR, "config/messageRequestMode.json cannot be written: %s", mq_strerror(rc));
	else
		reply(&q, RESP_SUCCESS, NULL);
	later_drop(&s->to);
	free(s);
}

void handle_set_mode(struct req *q)
{
	struct body_keep keep = { 0 };
	struct body_mode m;
	struct mq_error e;
	struct setting *s;
	int rc = body_mode_decode(&keep, q->f->body, &m, &e);

	if (rc == 0 && str_starts(m.topic, TOPIC_RETRY_PREFIX)) {
		reply(q, RESP_NO_PERMISSION, "retry topic is not allowed to set mode");
		body_free(&keep);
		return;
	}
	if (rc == 0)
		rc = mode_table_set(q->b->modes, &m, &e);
	body_free(&keep);
	if (rc < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	s = mem_alloc(sizeof *s);
	s->b = q->b;
	later_take(&s->to, q);
	table_file_when_saved(&q->b->modes->file, on_saved, s);
}

void handle_request_modes(struct req *q)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	mode_table_write(q->b->modes, o.buf);
	reply_end(q, &o);
}

/* ---- 400 ------------------------------------------------------------------------------------------------------------------- */

struct members {
	size_t n, at;                   /* at: of who asks; n: not among them */
	const char **id;
};

static int by_id(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Client ids of the group, sorted, each once. */
static void find_members(struct broker *b, struct mq_str group, struct mq_str client_id, struct members *m)
{
	struct client_group *g = client_table_consumers(b->clients, group);
	size_t n = 0;

	m->id = mem_alloc(((g ? (size_t)g->nmembers : 0) + 1) * sizeof *m->id);
	for (struct member *x = g ? g->members : NULL; x; x = x->next)
		m->id[n++] = x->client_id;
	qsort(m->id, n, sizeof *m->id, by_id);
	for (size_t i = 0; i < n; i++)
		if (m->n == 0 || strcmp(m->id[m->n - 1], m->id[i]))
			m->id[m->n++] = m->id[i];
	for (m->at = 0; m->at < m->n && !str_is(client_id, m->id[m->at]);)
		m->at++;
}

static int by_queue(const void *a, const void *b)
{
	const struct body_queue *x = a, *y = b;
	int by_broker = str_cmp(x->broker, y->broker);

	return by_broker ? by_broker : (x->id > y->id) - (x->id < y->id);
}

/* All queues of the topic that can be read, sorted; NULL: there is no such topic. */
static struct body_queue *find_queues(struct broker *b, struct mq_str topic, const struct body_route *route, size_t *n)
{
	struct topic *own = route ? NULL : topic_table_find(b->topics, topic);
	struct body_queues_of self = { .broker = str_of(b->conf->brokerName) };
	const struct body_queues_of *of = route ? route->queue : &self;
	size_t brokers = route ? route->nqueues : own ? 1 : 0, all = 0;
	struct body_queue *v;

	if (own) {
		self.read = own->conf.read;
		self.perm = own->conf.perm;
	}
	for (size_t i = 0; i < brokers; i++)
		if (of[i].read > 0 && of[i].read <= TOPIC_QUEUES_MAX)
			all += (size_t)of[i].read;
	*n = 0;
	if (!brokers)
		return NULL;
	v = mem_alloc((all + 1) * sizeof *v);
	for (size_t i = 0; i < brokers; i++)
		for (int32_t id = 0; (of[i].perm & PERM_READ) && id < of[i].read && of[i].read <= TOPIC_QUEUES_MAX; id++)
			v[(*n)++] = (struct body_queue){ topic, of[i].broker, id };
	qsort(v, *n, sizeof *v, by_queue);
	return v;
}

static void put(struct body_assignment *a, struct body_queue queue)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->queue[i].id == queue.id && str_eq(a->queue[i].broker, queue.broker))
			return;
	a->queue[a->n++] = queue;
}

enum strategy { AVG, AVG_BY_CIRCLE, NO_STRATEGY };

/* The share of the member at `at`. */
static void allocate(struct body_assignment *a, enum strategy how, const struct body_queue *v, size_t n, size_t members, size_t at)
{
	size_t extra = n % members, each = n / members;

	for (size_t i = at; how == AVG_BY_CIRCLE && i < n; i += members)
		put(a, v[i]);
	if (how == AVG) {
		size_t first = at < extra ? at * (each + 1) : at * each + extra;

		for (size_t i = first; i < first + each + (at < extra) && i < n; i++)
			put(a, v[i]);
	}
}

/* compat: with few members in the share, or none set, each may pop every queue of each broker. */
static void allocate_pop(struct body_assignment *a, enum strategy how, const struct body_queue *v, size_t n, const struct members *m,
                         int32_t share)
{
	if (share <= 0 || (size_t)share + 1 >= m->n) {
		for (size_t i = 0; i < n; i++)
			put(a, (struct body_queue){ v[i].topic, v[i].broker, -1 });
		return;
	}
	if (m->n > n) { /* each gets something */
		if (m->at < m->n && n)
			put(a, v[m->at % n]);
		return;
	}
	for (int32_t i = 0; m->at < m->n && i <= share; i++)
		allocate(a, how, v, n, m->n, (m->at + (size_t)i) % m->n);
}

struct query {
	struct broker *b;
	struct later to;
	struct body_keep keep;
	struct body_assignment_query body;
};

static enum strategy strategy_of(struct mq_str name)
{
	return str_is(name, "AVG") ? AVG : str_is(name, "AVG_BY_CIRCLE") ? AVG_BY_CIRCLE : NO_STRATEGY;
}

static void assign(struct broker *b, const struct body_assignment_query *q, const struct body_route *route, struct body_assignment *a)
{
	struct body_mode mode = mode_table_get(b->modes, q->topic, q->group);
	enum strategy how = strategy_of(q->strategy);
	struct members m = { 0 };
	size_t n;
	struct body_queue *v = find_queues(b, q->topic, route, &n);

	a->pop = mode.pop;
	a->queue = mem_alloc((n + 1) * sizeof *a->queue);
	find_members(b, q->group, q->client_id, &m);
	if (q->broadcasting || !b->conf->serverLoadBalancerEnable) {
		a->known = v != NULL;
		for (size_t i = 0; i < n; i++)
			a->queue[a->n++] = v[i];
	} else if (v && m.n && how != NO_STRATEGY) {
		a->known = true;
		if (mode.pop)
			allocate_pop(a, how, v, n, &m, mode.share);
		else if (m.at < m.n)
			allocate(a, how, v, n, m.n, m.at);
	}
	free(m.id);
	free(v);
}

static void on_route(void *arg, const struct body_route *route)
{
	struct query *query = arg;
	struct req q = later_req(query->b, &query->to);
	struct body_assignment a = { 0 };
	struct frame_out o;

	if (conn_alive(q.c)) {
		assign(query->b, &query->body, route, &a);
		reply_begin(&q, &o, RESP_SUCCESS, NULL);
		frame_body(&o);
		body_assignment_encode(&a, o.buf);
		reply_end(&q, &o);
		free(a.queue);
	}
	later_drop(&query->to);
	body_free(&query->keep);
	free(query);
}

void handle_query_assignment(struct req *q)
{
	struct query *query = mem_alloc(sizeof *query);
	struct mq_error e;

	if (body_assignment_query_decode(&query->keep, q->f->body, &query->body, &e) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		free(query);
		return;
	}
	query->b = q->b;
	later_take(&query->to, q);
	route_ask(q->b->route, query->body.topic, on_route, query);
}
