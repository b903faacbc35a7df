/* embedded.c: registers the broker with a name server in the same process. */
#include "embedded.h"
#include "broker/topic_table.h"
#include "namesrv/namesrv.h"
#include "namesrv/route_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "embedded"

#define FOR_EVER_MS (100LL * 365 * 24 * 3600 * 1000)    /* it cannot go away: it is us */

struct embedded {
	struct broker *b;
	struct namesrv *ns;
	struct namesrv_conf conf;
	struct conf *rows;
	struct body_version known;      /* version of the topics that the routes have */
};

static void *embedded_open(struct broker *b, struct mq_error *e)
{
	struct embedded *x = mem_alloc(sizeof *x);
	struct namesrv_opt opt = { .conf = &x->conf };
	char *kv = mem_printf("%s/config/kvConfig.json", b->conf->storePathRootDir);

	x->b = b;
	x->rows = namesrv_conf_new(&x->conf);
	if (conf_set(x->rows, MQ_STR("kvConfigPath"), str_of(kv), e) == 0)
		x->ns = namesrv_new(b->loop, &opt, e);
	free(kv);
	if (x->ns)
		return x;
	conf_free(x->rows);
	free(x);
	return NULL;
}

static void embedded_topics(void *names)
{
	struct embedded *x = names;
	struct broker *b = x->b;
	struct body_register body = { 0 };
	struct route_registration r = {
		.cluster = str_of(b->conf->brokerClusterName), .name = str_of(b->conf->brokerName), .addr = str_of(b->addr),
		.ha_addr = str_of(b->ha_addr), .id = b->conf->brokerId, .timeout_ms = FOR_EVER_MS, .knows_acting_master = true,
		.full = true, .conn = x, .body = &body,
	};
	struct route_master master;
	struct mq_error e;

	if (body_version_eq(&x->known, &b->topics->version))
		return;
	topic_table_body(b->topics, topic_table_perm_mask(b->conf->brokerPermission), &body.topics);
	if (route_table_register(namesrv_routes(x->ns), &r, clock_mono_ms(), &master, &e) < 0)
		log_error("register: %s", e.text);
	else
		x->known = b->topics->version;
	free(body.topics.topic);
}

static bool embedded_request(void *names, struct conn *c, struct frame *f)
{
	struct embedded *x = names;

	if (!namesrv_serves(f->code))
		return false;
	namesrv_request(x->ns, c, f);
	return true;
}

static void embedded_closed(void *names, struct conn *c)
{
	struct embedded *x = names;

	namesrv_closed(x->ns, c);
}

static void on_stopped(void *arg)
{
	struct embedded *x = arg;

	conf_free(x->rows);
	free(x);
}

static void embedded_close(void *names)
{
	struct embedded *x = names;

	namesrv_stop(x->ns, 0, on_stopped, x);
}

const struct broker_names embedded_names = {
	.open = embedded_open,
	.topics = embedded_topics,
	.request = embedded_request,
	.closed = embedded_closed,
	.close = embedded_close,
};
