/* handle_admin_broker.c: the broker itself: its configuration and its counters. */
#include "broker.h"
#include "client_table.h"
#include "delay.h"
#include "ha_master.h"
#include "ha_replica.h"
#include "handle.h"
#include "rates.h"
#include "register.h"
#include "timer.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/conf.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_stats.h>

#define LOG_MODULE "admin"

/* ---- 26 GET_BROKER_CONFIG, 25 UPDATE_BROKER_CONFIG --------------------------------------------------------------------- */

void handle_get_config(struct req *q)
{
	struct buf version = { 0 };
	struct frame_out o;

	body_version_encode(&q->b->conf_version, &version);
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_str(&o, "version", buf_view(&version));
	frame_body(&o);
	conf_print(q->b->conf_rows, o.buf);
	reply_end(q, &o);
	buf_free(&version);
}

void handle_update_config(struct req *q)
{
	struct broker *b = q->b;
	int32_t perm = b->conf->brokerPermission;
	struct mq_error err;
	int changed = 0, rc;

	rc = conf_update(b->conf_rows, q->f->body, &changed, &err);
	if (rc == MQ_EREFUSED) {
		reply(q, RESP_NO_PERMISSION, "Can not update config in black list: %s", err.text);
		return;
	}
	if (rc == 0 && changed && b->conf_path)
		rc = conf_save(b->conf_rows, b->conf_path, &err);
	if (rc < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", err.text);
		return;
	}
	log_info("configuration changed by=%s keys=%d", conn_name(q->c), changed);
	if (changed) {
		body_version_next(&b->conf_version, clock_now_ms(), 0);
		broker_conf_changed(b, perm);
	}
	reply(q, RESP_SUCCESS, NULL);
}

/* ---- 28 GET_BROKER_RUNTIME_INFO ---------------------------------------------------------------------------------------- */

/* Pairs with their texts in one buffer; offsets while it grows, views at the end. */
struct info {
	struct buf text;
	struct body_pair *pair;
	size_t n, cap;
};

static void info_add(struct info *i, const char *key, const char *fmt, ...) MQ_PRINTF(3, 4);
static void info_add(struct info *i, const char *key, const char *fmt, ...)
{
	char value[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	if (i->n == i->cap) {
		i->cap = i->cap ? i->cap * 2 : 128;
		i->pair = mem_realloc(i->pair, i->cap * sizeof *i->pair);
	}
	i->pair[i->n].key = (struct mq_str){ mem_strdup(key), strlen(key) };
	i->pair[i->n++].value = (struct mq_str){ mem_strdup(value), strlen(value) };
}

static void info_free(struct info *i)
{
	for (size_t k = 0; k < i->n; k++) {
		free((char *)i->pair[k].key.p);
		free((char *)i->pair[k].value.p);
	}
	free(i->pair);
	buf_free(&i->text);
}

static void add_rate(struct info *i, struct broker *b, const char *key, enum rate which)
{
	i->text.n = 0;
	rates_text(b->rates, which, &i->text);
	info_add(i, key, MQ_STR_FMT, (int)i->text.n, i->text.p);
}

static void add_store(struct info *i, struct broker *b, const struct mqstore_stat *s)
{
	int64_t up = (clock_now_ms() - b->boot_ms) / 1000;
	double gib = 1024.0 * 1024 * 1024;
	char path[1024];

	info_add(i, "bootTimestamp", "%lld", (long long)b->boot_ms);
	info_add(i, "runtime", "[ %lld days, %lld hours, %lld minutes, %lld seconds ]", (long long)(up / 86400),
		(long long)(up / 3600 % 24),
	         (long long)(up / 60 % 60), (long long)(up % 60));
	info_add(i, "putMessageTimesTotal", "%llu", (unsigned long long)b->metrics.messages_in);
	info_add(i, "putMessageEntireTimeMax", "%lld", (long long)rates_longest_turn_ms(b->rates));
	info_add(i, "getMessageEntireTimeMax", "%lld", (long long)rates_longest_turn_ms(b->rates));
	info_add(i, "putMessageFailedTimes", "%llu", (unsigned long long)b->metrics.sends_refused);
	info_add(i, "putMessageSizeTotal", "%llu", (unsigned long long)b->metrics.bytes_in);
	info_add(i, "putMessageAverageSize", "%g",
		b->metrics.messages_in ? (double)b->metrics.bytes_in / (double)b->metrics.messages_in : 0.0);
	info_add(i, "commitLogMinOffset", "%lld", (long long)s->log_min);
	info_add(i, "commitLogMaxOffset", "%lld", (long long)s->log_max);
	info_add(i, "commitLogDiskRatio", "%.4f", s->log_disk_used);
	snprintf(path, sizeof path, "commitLogDiskRatio_%s", b->conf->storePathCommitLog);
	info_add(i, path, "%.4f", s->log_disk_used);
	info_add(i, "consumeQueueDiskRatio", "%.4f", s->queue_disk_used);
	info_add(i, "earliestMessageTimeStamp", "%lld", (long long)s->earliest_ms);
	info_add(i, "remainHowManyDataToFlush", "%lld B", (long long)(s->log_max - s->log_flushed));
	info_add(i, "commitLogDirCapacity", "Total : %.1f GiB, Free : %.1f GiB.", (double)s->disk_total / gib, (double)s->disk_free / gib);
	info_add(i, "consumeQueues", "%lld", (long long)s->queues);
	info_add(i, "whyNotWritable", "%s", s->why_not_writable);
}

static void add_replication(struct info *i, struct broker *b)
{
	static const char *const roles[] = { "ASYNC_MASTER", "SYNC_MASTER", "SLAVE" };

	info_add(i, "haRole", "%s", roles[b->conf->brokerRole]);
	if (b->replica) {
		info_add(i, "haState", "%s", ha_phase_name(ha_replica_phase(b->replica)));
		info_add(i, "haMaster", "%s", ha_replica_master_addr(b->replica));
	} else {
		info_add(i, "haSlaves", "%d", ha_master_slaves(b->ha));
		info_add(i, "haMachinesPerMessage", "%d", (int)ha_master_need(b->ha));
	}
}

static void add_days(struct info *i, struct broker *b)
{
	struct rates_day put, get;

	rates_puts(b->rates, &put);
	rates_gets(b->rates, &get);
	info_add(i, "msgPutTotalYesterdayMorning", "%lld", (long long)put.yesterday_morning);
	info_add(i, "msgPutTotalTodayMorning", "%lld", (long long)put.today_morning);
	info_add(i, "msgPutTotalTodayNow", "%lld", (long long)put.now);
	info_add(i, "msgGetTotalYesterdayMorning", "%lld", (long long)get.yesterday_morning);
	info_add(i, "msgGetTotalTodayMorning", "%lld", (long long)get.today_morning);
	info_add(i, "msgGetTotalTodayNow", "%lld", (long long)get.now);
}

/* What the peer has and this broker cannot have: one loop serves every request at once, so nothing queues or waits for a lock;
 * there is no pool of buffers.  mqadmin's clusterList reads these numbers and fails without them. */
static void add_absent(struct info *i, const struct broker_conf *c)
{
	static const char *const zero[] = {
		"dispatchBehindBytes", "pageCacheLockTimeMills",
		"sendThreadPoolQueueSize", "pullThreadPoolQueueSize", "litePullThreadPoolQueueSize", "queryThreadPoolQueueSize",
		"EndTransactionQueueSize", "sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueHeadWaitTimeMills",
		"queryThreadPoolQueueHeadWaitTimeMills", "litePullThreadPoolQueueHeadWaitTimeMills", "dispatchMaxBuffer",
	};

	for (size_t k = 0; k < sizeof zero / sizeof zero[0]; k++)
		info_add(i, zero[k], "0");
	info_add(i, "sendThreadPoolQueueCapacity", "%s", c->sendThreadPoolQueueCapacity);
	info_add(i, "pullThreadPoolQueueCapacity", "%s", c->pullThreadPoolQueueCapacity);
	info_add(i, "litePullThreadPoolQueueCapacity", "%s", c->litePullThreadPoolQueueCapacity);
	info_add(i, "queryThreadPoolQueueCapacity", "%s", c->queryThreadPoolQueueCapacity);
	info_add(i, "EndTransactionThreadPoolQueueCapacity", "%s", c->endTransactionPoolQueueCapacity);
	info_add(i, "remainTransientStoreBufferNumbs", "%d", INT32_MAX);
}

/* compat: the peer's Tps are of its last second. */
static void add_timers(struct info *i, struct broker *b)
{
	struct timer_stat st;

	timer_stat(b->timer, &st);
	info_add(i, "timerReadBehind", "%lld", (long long)(st.read_ms && st.pending ? (clock_now_ms() - st.read_ms) / 1000 : 0));
	info_add(i, "timerOffsetBehind", "%lld", (long long)st.behind);
	info_add(i, "timerCongestNum", "%lld", (long long)(st.pending > 0 ? st.pending : 0));
	info_add(i, "timerEnqueueTps", "%.1f", rates_now(b->rates, RATE_TIMERS_IN));
	info_add(i, "timerDequeueTps", "%.1f", rates_now(b->rates, RATE_TIMERS_OUT));
}

static void add_level(void *arg, int32_t level, int64_t off, int64_t max)
{
	char key[40];

	snprintf(key, sizeof key, "scheduleMessageOffset_%d", (int)level);
	info_add(arg, key, "%lld,%lld", (long long)off, (long long)max);
}

static void add_counter(void *arg, const char *name, const char *help, uint64_t v)
{
	char key[100];

	snprintf(key, sizeof key, "mq.%s", name);
	info_add(arg, key, "%llu", (unsigned long long)v);
}

void handle_runtime_info(struct req *q)
{
	struct broker *b = q->b;
	struct info i = { 0 };
	struct mqstore_stat s;
	struct body_kv body = { .n = 0 };
	struct buf out = { 0 };

	mqstore_stat(b->store, &s);
	add_store(&i, b, &s);
	add_rate(&i, b, "putTps", RATE_PUT);
	add_rate(&i, b, "getFoundTps", RATE_GET_FOUND);
	add_rate(&i, b, "getMissTps", RATE_GET_MISS);
	add_rate(&i, b, "getTotalTps", RATE_GET_TOTAL);
	add_rate(&i, b, "getTransferredTps", RATE_TRANSFERRED);
	add_days(&i, b);
	add_replication(&i, b);
	info_add(&i, "brokerActive", "true");
	info_add(&i, "brokerVersionDesc", "%s", MQ_PEER_VERSION_NAME);
	info_add(&i, "brokerVersion", "%d", MQ_PEER_VERSION);
	info_add(&i, "mqVersion", "%s", MQ_VERSION);
	info_add(&i, "startAcceptSendRequestTimeStamp", "%lld", (long long)b->conf->startAcceptSendRequestTimeStamp);
	add_absent(&i, b->conf);
	add_timers(&i, b);
	delay_each(b->delay, add_level, &i);
	metrics_each(&b->metrics, add_counter, &i);
	body.n = i.n;
	body.pair = i.pair;
	body_kv_encode(&body, &out);
	reply_buf(q, &out);
	info_free(&i);
}
