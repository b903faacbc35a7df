/* broker.c: start, turn, stop, and what a change of the configuration means.  Where it is reached is in ports.c. */
#include "broker.h"
#include "acl.h"
#include "fence.h"
#include "client_table.h"
#include "cold.h"
#include "delay.h"
#include "filter_table.h"
#include "flush.h"
#include "group_table.h"
#include "ha_master.h"
#include "ha_replica.h"
#include "ha_secret.h"
#include "hold.h"
#include "lock_table.h"
#include "member.h"
#include "mode_table.h"
#include "offset_table.h"
#include "order_table.h"
#include "pop_hold.h"
#include "ports.h"
#include "rates.h"
#include "register.h"
#include "revive.h"
#include "route.h"
#include "settle.h"
#include "timer.h"
#include "topic_table.h"
#include "txn.h"
#include "upkeep.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <codec/property.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_MODULE "broker"

enum {
	UNREGISTER_MS = 300,    /* that name servers get to answer at the stop */
	CLOSE_MS = 200,         /* that clients get to read their last answers */
	HANDLES = 3,            /* of the broker itself */
	LEAVING_MS = 2000,      /* embedded: that another one gets to end */
};

/* ---- Turn ---------------------------------------------------------------------------------------------------------------- */

static void on_turn_now(uv_idle_t *idle)
{
}

static void on_turn(uv_check_t *check)
{
	struct broker *b = check->data;

	uv_check_stop(&b->turn);
	uv_idle_stop(&b->turn_now);
	b->turn_wanted = false;
	table_file_save(&b->topics->file);
	table_file_save(&b->groups->file);
	table_file_save(&b->filters->file);
	table_file_save(&b->orders->file);
	table_file_save(&b->modes->file);
	if (b->names)
		b->opt.names->topics(b->names);
	register_turn(b->reg);
	revive_run(b->revive);
	flush_turn(b->flush);
	hold_run(b->hold);
	pop_hold_run(b->pops);
}

/* Messages of many requests go to the log's file in one write, before the first of their answers leaves. */
static void on_before_send(void *arg)
{
	mqstore_write_out(((struct broker *)arg)->store);
}

void broker_want_turn(struct broker *b)
{
	if (b->turn_wanted)
		return;
	b->turn_wanted = true;
	uv_check_start(&b->turn, on_turn);
	uv_idle_start(&b->turn_now, on_turn_now);
}

/* ---- Connections --------------------------------------------------------------------------------------------------------- */

void broker_conn_opened(struct broker *b, struct conn *c)
{
	b->metrics.conns_opened++;
	client_table_opened(b->clients, c);
}

void broker_conn_closed(struct broker *b, struct conn *c, int why)
{
	b->metrics.conns_closed++;
	if (why == MQ_EPROTO)
		b->metrics.conns_protocol_closed++;
	else if (why == MQ_ETIMEOUT)
		b->metrics.conns_idle_closed++;
	else if (why == MQ_ETOOBIG)
		b->metrics.conns_slow_closed++;
	hold_conn_closed(b->hold, conn_public(c)->user);
	pop_hold_conn_closed(b->pops, conn_public(c)->user);
	client_table_closed(b->clients, c);
	if (b->names)
		b->opt.names->closed(b->names, c);
}

/* ---- The store's options ------------------------------------------------------------------------------------------------- */

static void retention(const struct broker_conf *c, struct mqstore_opt *o)
{
	o->max_total_bytes = c->maxStoreBytes;
	o->min_free_bytes = c->minFreeBytes;
	o->reserved_hours = c->fileReservedTime;
	snprintf(o->delete_when, sizeof o->delete_when, "%s", c->deleteWhen);
	o->disk_max_used = c->diskMaxUsedSpaceRatio;
	o->disk_clean_forcibly = c->diskSpaceCleanForciblyRatio;
	o->disk_warning = c->diskSpaceWarningLevelRatio;
	o->clean_forcibly = c->cleanFileForciblyEnable;
}

/* ---- Configuration ------------------------------------------------------------------------------------------------------- */

static void make_send_props(struct broker *b)
{
	b->send_props.n = 0;
	property_put(&b->send_props, MQ_STR(PROP_MSG_REGION), str_of(b->conf->regionId));
	property_put(&b->send_props, MQ_STR(PROP_TRACE_ON), b->conf->traceOn ? MQ_STR("true") : MQ_STR("false"));
	property_put(&b->send_props, MQ_STR(PROP_CLUSTER), str_of(b->conf->brokerClusterName));
}

void broker_conf_changed(struct broker *b, int32_t perm_before)
{
	struct mqstore_opt o;

	mqstore_defaults(&o);
	retention(b->conf, &o);
	mqstore_retention(b->store, &o);
	log_max = b->conf->logLevel;
	make_send_props(b);
	register_reload(b->reg);
	ha_master_reload(b->ha);
	if (b->conf->brokerPermission != perm_before)
		topic_table_touch(b->topics);
}

static int read_accounts(struct broker *b, struct mq_error *e)
{
	const struct broker_conf *c = b->conf;
	char *path;
	int rc;

	/* Who may look into an embedded broker's directory is its owner. */
	if (!c->aclEnable || b->opt.embedded_dir)
		return 0;
	path = broker_conf_acl_file(c);
	rc = acl_open(&b->acl, path, e);
	free(path);
	return rc;
}

/* Of replication, at the start and when the configuration is read again: connections that there are stay. */
static int read_secret(struct broker *b, struct mq_error *e)
{
	struct ha_secret *s;
	int rc;

	if (!*b->conf->haSecretFile || b->opt.embedded_dir)
		return 0;
	rc = ha_secret_read(&s, b->conf->haSecretFile, e);
	if (rc < 0)
		return rc;
	ha_secret_free(b->ha_secret);
	b->ha_secret = s;
	return 0;
}

void broker_reload(struct broker *b)
{
	struct broker_conf fresh;
	struct mq_error e;
	struct conf *rows = b->opt.load ? b->opt.load(b->opt.load_arg, &fresh, &e) : NULL;
	int32_t perm = b->conf->brokerPermission;
	int changed;

	if (!b->opt.load)
		return;
	if (!rows) {
		log_error("the configuration stays as it is: %s", e.text);
		return;
	}
	changed = broker_conf_take(b->conf_rows, rows);
	conf_free(rows);
	log_info("configuration read again keys=%d", changed);
	if (b->acl)
		acl_look(b->acl);
	if (read_secret(b, &e) < 0)
		log_error("the secret of replication stays as it is: %s", e.text);
	if (changed) {
		body_version_next(&b->conf_version, clock_wall_ms(), 0);
		broker_conf_changed(b, perm);
	}
}

const char *broker_why_not_writable(struct broker *b)
{
	static char why[300];

	mqstore_why_not_writable(b->store, why, sizeof why);
	return why;
}

/* ---- Start --------------------------------------------------------------------------------------------------------------- */

static int open_store(struct broker *b, struct mq_error *e)
{
	const struct broker_conf *c = b->conf;
	struct mqstore_opt o;
	int rc;

	mqstore_defaults(&o);
	o.dir = c->storePathRootDir;
	o.log_dir = c->storePathCommitLog;
	o.adopt_sizes = c->adoptSegmentSizes;
	o.log_segment_bytes = c->mappedFileSizeCommitLog;
	o.queue_segment_bytes = c->mappedFileSizeConsumeQueue;
	o.queue_ext = c->enableConsumeQueueExt;
	o.queue_ext_bytes = c->mappedFileSizeConsumeQueueExt;
	o.index_slots = c->maxHashSlotNum;
	o.index_entries = c->maxIndexNum;
	o.index_enable = c->messageIndexEnable;
	o.index_safe = c->messageIndexSafe;
	o.check_crc = c->checkCRCOnRecover;
	o.max_body_bytes = (int32_t)c->maxMessageSize;
	retention(c, &o);
	o.gather = true;
	o.delay_levels = c->messageDelayLevel;
	o.memory_ratio = c->accessMessageInMemoryMaxRatio;
	rc = mqstore_open(&b->store, &o, e);
	/* One that is just leaving, for want of clients, has a moment. */
	for (int ms = 0; rc == MQ_EBUSY && b->opt.embedded_dir && ms < LEAVING_MS; ms += 20) {
		usleep(20000);
		rc = mqstore_open(&b->store, &o, e);
	}
	if (rc == MQ_EBUSY)
		err_set(e, rc, "store '%s' is in use by another broker; stop that one, or give this one another storePathRootDir",
			c->storePathRootDir);
	/* Under SYNC_FLUSH nothing is shown that is not on the disk: what a crash left in memory goes there before anybody asks. */
	if (rc == 0 && c->flushDiskType == FLUSH_SYNC && mqstore_flushed(b->store) < mqstore_log_max(b->store))
		rc = mqstore_flush(b->store, e);
	if (b->store) {
		conn_before_send(b->loop, on_before_send, b);
		/* With one processor, whoever is waited for could not run meanwhile. */
		if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
			conn_spin(b->loop, c->spinMicros, true);
	}
	return rc;
}

/* An embedded broker lives in a directory that nobody else may look into. */
static int make_home(struct broker *b, struct mq_error *e)
{
	const char *dir = b->opt.embedded_dir;
	int rc;

	if (!dir)
		return 0;
	rc = sys.mkdir(dir, 0700);
	if (rc == -ENOENT)
		rc = sys_mkdir_all(dir);
	return rc < 0 && rc != -EEXIST ? err_sys(e, rc, "make directory '%s'", dir) : 0;
}

/* What a success means, where somebody may think that it means more. */
static void say_what_is_promised(const struct broker_conf *c)
{
	if (c->enableControllerMode) {
		if (c->brokerRole == ROLE_SLAVE)
			return;
		if (!c->allAckInSyncStateSet && !c->ackOnTwoMachines)
			log_warn("a success says that the message is on %d machines: an election can lose it; allAckInSyncStateSet=true: "
				 "none is lost; ackOnTwoMachines=true: and it is on two machines", c->inSyncReplicas);
		return;
	}
	if (c->ackOnTwoMachines)
		log_info("a send is answered with success when the message is on two machines (ackOnTwoMachines)");
	else if (c->brokerRole == ROLE_SYNC_MASTER && c->inSyncReplicas < 2 && !c->allAckInSyncStateSet)
		log_warn("SYNC_MASTER with inSyncReplicas=1 waits for no slave: a success says that the message is on this machine; set "
			 "ackOnTwoMachines=true for two");
	else if (c->brokerRole == ROLE_SYNC_MASTER)
		log_warn("a send that is on fewer than %d machines after %d ms is answered with code 12 or 11, which clients count as "
			 "sent; set ackOnTwoMachines=true to have it refused", c->inSyncReplicas, c->slaveTimeout);
}

/* Who may replicate. */
static void say_who_may(const struct broker *b)
{
	if (b->ha_secret)
		log_info("replication only with brokers of ours that prove the secret of haSecretFile: those of RocketMQ cannot");
	else if (b->ha && !*b->conf->haAllowedAddresses)
		log_info("replication port=%d is open to everybody: haAllowedAddresses and haSecretFile say who may follow",
			 ha_master_port(b->ha));
}

/* What has been made so far, in reverse.  Handles end with the next turns of the loop, the last of them takes b with it. */
static void on_closed_handle(uv_handle_t *handle)
{
	struct broker *b = handle->data;
	void (*stopped)(void *, int) = b->leaving ? b->opt.stopped : NULL;
	void *arg = b->opt.stopped_arg;
	int rc = b->rc;

	if (++b->closed < HANDLES)
		return;
	buf_free(&b->void_out);
	buf_free(&b->send_props);
	buf_free(&b->scratch);
	free(b);
	if (stopped)
		stopped(arg, rc);
}

static void tear_down(struct broker *b)
{
	struct mq_error why;
	int rc;

	ports_close(b); /* the start failed after it */
	register_free(b->reg);
	route_free(b->route);
	ha_replica_free(b->replica);
	ha_master_free(b->ha);
	ha_secret_free(b->ha_secret);
	acl_free(b->acl);
	if (b->names)
		b->opt.names->close(b->names);
	rates_free(b->rates);
	upkeep_free(b->upkeep);
	revive_free(b->revive);
	txn_free(b->txn);
	timer_free(b->timer);
	delay_free(b->delay);
	flush_free(b->flush);
	settle_free(b->settle);
	pop_hold_free(b->pops);
	hold_free(b->hold);
	cold_free(b->cold);
	client_table_free(b->clients);
	lock_table_free(b->locks);
	filter_table_free(b->filters);
	mode_table_free(b->modes);
	order_table_free(b->orders);
	offset_table_free(b->offsets);
	group_table_free(b->groups);
	topic_table_free(b->topics);
	if (b->store)
		conn_before_send(b->loop, NULL, NULL);
	rc = b->store ? mqstore_close(b->store, &why) : 0;
	if (rc < 0) {
		log_error("close the store: %s", why.text);
		b->rc = b->rc ? b->rc : rc;
	}
	uv_close((uv_handle_t *)&b->turn, on_closed_handle);
	uv_close((uv_handle_t *)&b->turn_now, on_closed_handle);
	uv_close((uv_handle_t *)&b->idle_timer, on_closed_handle);
}

static void topics_saved(struct broker *b)
{
	if (b->settle)
		settle_check(b->settle, NULL);
}

int broker_start(struct broker **out, uv_loop_t *loop, const struct broker_opt *opt, struct mq_error *e)
{
	struct broker *b = mem_alloc(sizeof *b);
	int rc;

	*out = NULL;
	clock_refresh();
	b->loop = loop;
	b->opt = *opt;
	b->conf = opt->conf;
	b->conf_rows = opt->rows;
	b->conf_path = opt->conf_path;
	b->boot_ms = clock_wall_ms();
	body_version_next(&b->conf_version, b->boot_ms, 0);
	uv_check_init(loop, &b->turn);
	uv_idle_init(loop, &b->turn_now);
	uv_timer_init(loop, &b->idle_timer);
	b->turn.data = b->turn_now.data = b->idle_timer.data = b;
	log_max = b->conf->logLevel;
	make_send_props(b);
	if ((rc = read_accounts(b, e)) < 0 || (rc = make_home(b, e)) < 0 || (rc = ports_find_host(b, e)) < 0 ||
	    (rc = open_store(b, e)) < 0 ||
	    (opt->member && (rc = member_opened(opt->member, b->store, e)) < 0) ||
	    (rc = topic_table_open(&b->topics, b, e)) < 0 || (rc = group_table_open(&b->groups, b, e)) < 0 ||
	    (rc = offset_table_open(&b->offsets, b, e)) < 0 || (rc = filter_table_open(&b->filters, b, e)) < 0 ||
	    (rc = order_table_open(&b->orders, b, e)) < 0 || (rc = mode_table_open(&b->modes, b, e)) < 0)
		goto failed;
	b->topics->file.saved_cb = topics_saved;
	b->clients = client_table_new(b);
	b->locks = lock_table_new();
	b->hold = hold_new(b);
	b->cold = cold_new(b);
	b->pops = pop_hold_new(b);
	b->route = route_new(b);
	b->settle = settle_new(b);
	b->flush = flush_new(b);
	if ((rc = delay_open(&b->delay, b, e)) < 0 || (rc = timer_open(&b->timer, b, e)) < 0 ||
	    (rc = txn_open(&b->txn, b, e)) < 0 || (rc = revive_open(&b->revive, b, e)) < 0)
		goto failed;
	b->upkeep = upkeep_new(b);
	b->rates = rates_new(b);
	if ((rc = read_secret(b, e)) < 0)
		goto failed;
	rc = ports_open(b, e);
	if (rc < 0)
		goto failed;
	if (b->conf->brokerRole == ROLE_SLAVE)
		b->replica = ha_replica_new(b);
	b->deposed = b->conf->masterFence && fence_applies(b) ? DEPOSED_UNKNOWN : DEPOSED_NOT;
	b->reg = register_new(b);
	ports_watch_idle(b);
	say_what_is_promised(b->conf);
	say_who_may(b);
	log_info("serving name=%s cluster=%s addr=%s store=%s", b->conf->brokerName, b->conf->brokerClusterName, b->addr,
		 b->conf->storePathRootDir);
	*out = b;
	return 0;
failed:
	tear_down(b);
	return rc;
}

int broker_port(const struct broker *b)
{
	return b->opt.embedded_dir ? 0 : server_port(b->main);
}

/* ---- Stop ---------------------------------------------------------------------------------------------------------------- */

static void stop_log(void *arg);
static void stop_conns(void *arg);
static void stop_tables(void *arg);

void broker_stop(struct broker *b)
{
	if (b->leaving)
		return;
	b->leaving = true;
	log_info("stopping");
	uv_timer_stop(&b->idle_timer);
	flush_last(b->flush); /* in a worker, while name servers answer: little is left for the end */
	register_stop(b->reg, UNREGISTER_MS, stop_log, b);
}

/* Nobody is sent here any more: end what waits, and what comes is turned away. */
static void stop_log(void *arg)
{
	struct broker *b = arg;

	b->stopping = true;
	ha_replica_stop(b->replica);
	hold_stop(b->hold);
	cold_stop(b->cold);
	pop_hold_stop(b->pops);
	revive_stop(b->revive);
	delay_stop(b->delay);
	timer_stop(b->timer);
	txn_stop(b->txn);
	flush_stop(b->flush, stop_conns, b);
}

static void conns_stopped(void *arg)
{
	struct broker *b = arg;

	if (--b->waits == 0)
		stop_tables(b);
}

static void stop_conns(void *arg)
{
	struct broker *b = arg;

	settle_stop(b->settle);
	ha_master_stop(b->ha);
	b->waits = b->vip ? 2 : 1;
	server_stop(b->main, CLOSE_MS, conns_stopped, b);
	if (b->vip)
		server_stop(b->vip, CLOSE_MS, conns_stopped, b);
	b->main = b->vip = NULL;
}

static void save_tables(struct broker *b)
{
	struct table_file *file[] = { &b->topics->file, &b->groups->file, &b->offsets->file, &b->filters->file,
				      &b->orders->file, &b->modes->file };
	struct mq_error e;
	int rc;

	txn_save(b->txn);
	offset_table_stop(b->offsets);
	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
		rc = table_file_flush(file[i], &e);
		if (rc < 0) {
			log_error("%s", e.text);
			b->rc = b->rc ? b->rc : rc;
		}
	}
	rc = delay_save(b->delay, &e);
	if (rc < 0) {
		log_error("%s", e.text);
		b->rc = b->rc ? b->rc : rc;
	}
	rc = timer_save(b->timer, &e);
	if (rc < 0) {
		log_error("%s", e.text);
		b->rc = b->rc ? b->rc : rc;
	}
}

static void on_tables_timer(uv_timer_t *timer)
{
	stop_tables(timer->data);
}

/* A save that a worker is busy with ends first. */
static void stop_tables(void *arg)
{
	struct broker *b = arg;

	if (!table_file_idle(&b->topics->file) || !table_file_idle(&b->groups->file) || !table_file_idle(&b->offsets->file) ||
	    !table_file_idle(&b->filters->file) || !table_file_idle(&b->orders->file) || !table_file_idle(&b->modes->file) ||
	    !delay_idle(b->delay) || !timer_idle(b->timer) || !txn_idle(b->txn)) {
		uv_timer_start(&b->idle_timer, on_tables_timer, 1, 0);
		return;
	}
	upkeep_stop(b->upkeep);
	client_table_stop(b->clients);
	rates_stop(b->rates);
	save_tables(b);
	tear_down(b);
}
