/* cluster.c: the brokers of each cluster and how they do (GET_BROKER_RUNTIME_INFO). */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct mq_str no_body = { NULL, 0 };

/* The table of runtime info of a broker, or NULL if it does not answer: a dead broker is a row, not the end of the list. */
static json_t *runtime_info(struct admin *a, const char *addr)
{
	struct mqclient_answer ans;
	if (mqclient_ask_wait(a->client, addr, 28, NULL, 0, no_body, a->timeout_ms, &ans) < 0) {
		cli_warn("broker %s: %s", addr, ans.err.text);
		return NULL;
	}
	if (ans.code != 0) {
		cli_warn("broker %s refused (code %d): " MQ_STR_FMT, addr, ans.code, MQ_STR_ARG(ans.remark));
		return NULL;
	}
	json_t *o = admin_json(&ans), *table = json_incref(json_object_get(o, "table"));
	json_decref(o);
	return table;
}

/* "1.5 2.5 3.5" (10 s, 60 s, 600 s): the first. */
static double first_number(const json_t *t, const char *key) { return atof(admin_text(t, key, "0")); }

static void status_row(struct show *s, const struct admin_broker *b, const json_t *t)
{
	int64_t earliest = admin_i64(t, "earliestMessageTimeStamp", -1);
	show_cstr(s, b->cluster);
	show_cstr(s, b->name);
	show_i64(s, b->id);
	show_cstr(s, b->addr);
	show_cstr(s, admin_text(t, "brokerVersionDesc", NULL));
	if (!t) {
		for (int i = 0; i < 6; i++)
			show_cstr(s, NULL);
		show_bool(s, false);
		return;
	}
	show_double(s, first_number(t, "putTps"), 2);
	show_double(s, first_number(t, "getTransferredTps"), 2);
	show_i64(s, admin_i64(t, "sendThreadPoolQueueSize", 0));
	show_i64(s, admin_i64(t, "pageCacheLockTimeMills", 0));
	if (earliest > 0)
		show_double(s, ((double)time(NULL) * 1000 - (double)earliest) / 3600000, 2);
	else
		show_cstr(s, NULL);
	show_double(s, first_number(t, "commitLogDiskRatio"), 4);
	show_bool(s, strcmp(admin_text(t, "brokerActive", "true"), "true") == 0);
}

static void more_row(struct show *s, const struct admin_broker *b, const json_t *t)
{
	int64_t in_yest = admin_i64(t, "msgPutTotalYesterdayMorning", 0), in_today = admin_i64(t, "msgPutTotalTodayMorning", 0);
	int64_t out_yest = admin_i64(t, "msgGetTotalYesterdayMorning", 0), out_today = admin_i64(t, "msgGetTotalTodayMorning", 0);
	show_cstr(s, b->cluster);
	show_cstr(s, b->name);
	show_i64(s, in_today - in_yest);
	show_i64(s, out_today - out_yest);
	show_i64(s, admin_i64(t, "msgPutTotalTodayNow", 0) - in_today);
	show_i64(s, admin_i64(t, "msgGetTotalTodayNow", 0) - out_today);
}

static int cluster_list(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Cluster Name", "cluster" }, { "#Broker Name", "broker" }, { "#BID", "brokerId" }, { "#Addr", "addr" },
		{ "#Version", "version" },      { "#InTPS", "inTps" },        { "#OutTPS", "outTps" }, { "#SendQueue", "sendQueue" },
		{ "#PCWait(ms)", "pageCacheWaitMs" }, { "#Hour", "hours" },   { "#SPACE", "diskUsed" }, { "#ACTIVATED", "active" },
	};
	static const struct show_col more[] = {
		{ "#Cluster Name", "cluster" },    { "#Broker Name", "broker" },      { "#InTotalYest", "inYesterday" },
		{ "#OutTotalYest", "outYesterday" }, { "#InTotalToday", "inToday" }, { "#OutTotalToday", "outToday" },
	};
	static struct admin_brokers all;
	bool stats = admin_flag(a, "moreStats");
	int64_t every = admin_int(a, "interval", 0, 1, 86400);
	do {
		admin_cluster(a, admin_opt(a, "clusterName"), &all);
		struct show *s = stats ? show_rows(a->format, more, 6) : show_rows(a->format, cols, 12);
		for (size_t i = 0; i < all.n; i++) {
			json_t *t = runtime_info(a, all.b[i].addr);
			if (stats && t)
				more_row(s, &all.b[i], t);
			else if (!stats)
				status_row(s, &all.b[i], t);
			json_decref(t);
		}
		admin_brokers_free(&all);
		if (show_close(s) < 0)
			return CLI_SYSTEM;
		if (every)
			sleep((unsigned)every);
	} while (every);
	return CLI_OK;
}

static const struct command_opt list_opts[] = {
	{ 'm', "moreStats", NULL, false, "messages in and out, yesterday and today" },
	{ 'i', "interval", "SECONDS", false, "again and again" },
	{ 'c', "clusterName", "CLUSTER", false, "this cluster only" },
	{ 0 },
};

const struct command cluster_commands[] = {
	{ "clusterList", list_opts, cluster_list, COMMAND_CLUSTER, "all brokers of all clusters" },
	{ 0 },
};
