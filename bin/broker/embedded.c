/* embedded.c: registers the broker with a name server in the same process. */
#include "embedded.h"
#include "broker.h"
#include "topic_table.h"
#include "../namesrv/namesrv.h"
#include "../namesrv/route_table.h"
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

struct embedded *embedded_new(struct broker *b, struct mq_error *e)
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

void embedded_turn(struct embedded *x)
{
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

bool embedded_request(struct embedded *x, struct conn *c, struct frame *f)
{
	if (!namesrv_serves(f->code))
		return false;
	namesrv_request(x->ns, c, f);
	return true;
}

void embedded_closed(struct embedded *x, struct conn *c)
{
	namesrv_closed(x->ns, c);
}

static void on_stopped(void *arg)
{
	struct embedded *x = arg;

	conf_free(x->rows);
	free(x);
}

void embedded_free(struct embedded *x)
{
	if (x)
		namesrv_stop(x->ns, 0, on_stopped, x);
}
