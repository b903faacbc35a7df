/* offset.c: where groups go on: set back or forward by time, skipped to the end, copied from another group. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

int64_t offset_ask(struct admin *a, const char *addr, int code, const char *topic, int64_t queue, int64_t ms)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char num[2][24];
	admin_field(&f, "topic", topic);
	admin_field_int(&f, "queueId", queue, num[0]);
	if (code == 29)
		admin_field_int(&f, "timestamp", ms, num[1]);
	admin_ask(a, addr, code, &f, no_body, NULL, &ans);
	const struct mqclient_field *v = admin_answer_field(&ans, "offset");
	char text[24];
	snprintf(text, sizeof text, MQ_STR_FMT, MQ_STR_ARG(v ? v->value : no_body));
	return atoll(text);
}

static void commit(struct admin *a, const char *addr, const char *group, const char *topic, int64_t queue, int64_t off)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char num[2][24];
	admin_field(&f, "consumerGroup", group);
	admin_field(&f, "topic", topic);
	admin_field_int(&f, "queueId", queue, num[0]);
	admin_field_int(&f, "commitOffset", off, num[1]);
	admin_ask(a, addr, 15, &f, no_body, NULL, &ans);
}

static void show_row(struct show *s, const char *broker, int64_t queue, int64_t off)
{
	show_cstr(s, broker);
	show_i64(s, queue);
	show_i64(s, off);
}

/* ---- resetOffsetByTime, skipAccumulatedMessage ----------------------------------------------------------------------- */

static const struct show_col reset_cols[] = { { "#brokerName", "broker" }, { "#queueId", "queue" }, { "#offset", "offset" } };

struct reset {
	const char *topic, *group;
	int64_t ms;             /* -1: to the end */
	bool force;             /* forward too */
};

int64_t offset_queues(const json_t *route, const char *broker)
{
	json_t *q;
	size_t i;
	json_array_foreach(json_object_get(route, "queueDatas"), i, q)
		if (strcmp(admin_text(q, "brokerName", ""), broker) == 0)
			return admin_i64(q, "readQueueNums", 0);
	return 0;
}

/* Where the group is in the queues of the topic: {"0":offset,...}.  It is asked of all its topics: of a topic where it has stored
 * nothing a broker that is asked would say 0. */
json_t *offset_where(struct admin *a, const char *addr, const char *group, const char *topic)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	json_t *out = json_object(), *v;
	const char *key;
	admin_field(&f, "consumerGroup", group);
	if (admin_ask(a, addr, 208, &f, no_body, (const int[]){ 17, 26, 0 }, &ans))
		return out;
	json_t *o = admin_json(&ans);
	json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
		json_t *q = admin_queue_key(key);
		if (strcmp(admin_text(q, "topic", ""), topic) == 0) {
			char id[24];
			snprintf(id, sizeof id, "%lld", (long long)admin_i64(q, "queueId", 0));
			json_object_set_new(out, id, json_integer(admin_i64(v, "consumerOffset", 0)));
		}
		json_decref(q);
	}
	json_decref(o);
	return out;
}

static int64_t offset_in(const json_t *where, int64_t queue)
{
	char id[24];
	snprintf(id, sizeof id, "%lld", (long long)queue);
	return admin_i64(where, id, -1);
}

/* Brokers that let the members do it leave it to us when none is there: what is stored is changed queue by queue. */
static void reset_offline(struct admin *a, const char *addr, const char *broker, int64_t queues, const struct reset *r, struct show *s)
{
	json_t *now = offset_where(a, addr, r->group, r->topic);
	for (int64_t q = 0; q < queues; q++) {
		int64_t old = offset_in(now, q);
		int64_t off = r->ms < 0 ? offset_ask(a, addr, 30, r->topic, q, 0) : offset_ask(a, addr, 29, r->topic, q, r->ms);
		if (r->force || old < 0 || off <= old)
			commit(a, addr, r->group, r->topic, q, off);
		else
			off = old;
		show_row(s, broker, q, off);
	}
	json_decref(now);
}

/* Code 222.  False: no member of the group is there, and the broker leaves it at that. */
static bool ask_reset(struct admin *a, const char *addr, const struct admin_fields *f, struct mqclient_answer *ans)
{
	int code = admin_ask(a, addr, 222, f, no_body, (const int[]){ 1, 206, 0 }, ans);
	/* What a broker says of a group of which no member has come since its start is code 1, as is everything else. */
	if (code == 1 && !(ans->remark.n && memmem(ans->remark.p, ans->remark.n, "not exist", 9)))
		cli_die(CLI_REFUSED, "%s: %s refused (code 1): " MQ_STR_FMT, a->command->name, addr, MQ_STR_ARG(ans->remark));
	return code == 0;
}

static void reset_broker(struct admin *a, const json_t *route, const json_t *broker_data, const struct reset *r, struct show *s)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	const char *broker = admin_text(broker_data, "brokerName", ""), *addr = admin_broker_addr(broker_data), *key;
	char num[2][24];
	json_t *v;
	if (!addr)
		return;
	admin_field(&f, "topic", r->topic);
	admin_field(&f, "group", r->group);
	admin_field_int(&f, "timestamp", r->ms, num[0]);
	admin_field(&f, "isForce", r->force ? "true" : "false");
	admin_field_int(&f, "offset", -1, num[1]);
	if (!ask_reset(a, addr, &f, &ans)) {
		reset_offline(a, addr, broker, offset_queues(route, broker), r, s);
		return;
	}
	json_t *o = admin_json(&ans);
	json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
		json_t *q = admin_queue_key(key);
		show_row(s, admin_text(q, "brokerName", ""), admin_i64(q, "queueId", 0), json_integer_value(v));
		json_decref(q);
	}
	json_decref(o);
}

static int reset_all(struct admin *a, const struct reset *r)
{
	json_t *route = admin_route_of(a, r->topic), *d;
	size_t i;
	struct show *s = show_rows(a->format, reset_cols, 3);
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d)
		reset_broker(a, route, d, r, s);
	json_decref(route);
	show_close(s);
	return CLI_OK;
}

void offset_put(struct admin *a, const char *addr, const char *group, const char *topic, int64_t queue, int64_t off)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char num[3][24];
	commit(a, addr, group, topic, queue, off);
	admin_field(&f, "topic", topic);
	admin_field(&f, "group", group);
	admin_field_int(&f, "timestamp", 0, num[0]);
	admin_field_int(&f, "queueId", queue, num[1]);
	admin_field_int(&f, "offset", off, num[2]);
	ask_reset(a, addr, &f, &ans); /* if there is nobody to tell: what is stored was changed before */
}

/* compat: mqadmin leaves the offset as it is when it is to become 0. */
static int reset_queue(struct admin *a, const struct reset *r, const char *addr, int64_t queue)
{
	int64_t off = admin_opt(a, "offset") ? admin_int(a, "offset", 0, 0, INT64_MAX) : offset_ask(a, addr, 29, r->topic, queue, r->ms);
	offset_put(a, addr, r->group, r->topic, queue, off);
	struct show *s = show_rows(a->format, reset_cols, 3);
	show_row(s, addr, queue, off);
	show_close(s);
	return CLI_OK;
}

static int reset_by_time(struct admin *a)
{
	struct reset r = { admin_opt(a, "topic"), admin_opt(a, "group"), admin_time(a, "timestamp", 0), admin_bool(a, "force", true) };
	const char *broker = admin_opt(a, "broker");
	int64_t queue = admin_int(a, "queue", -1, 0, 65535);
	if (!broker != (queue < 0))
		admin_usage(a, "-b BROKER-ADDRESS and -q QUEUE go together");
	if (admin_opt(a, "offset") && !broker)
		admin_usage(a, "-o OFFSET is for one queue: -b and -q are missing");
	return broker ? reset_queue(a, &r, broker, queue) : reset_all(a, &r);
}

static int skip(struct admin *a)
{
	struct reset r = { admin_opt(a, "topic"), admin_opt(a, "group"), -1, admin_bool(a, "force", true) };
	return reset_all(a, &r);
}

/* ---- cloneGroupOffset ------------------------------------------------------------------------------------------------ */

/* compat: mqadmin copies the offsets of all topics of the group, whatever -t says. */
static int clone_offset(struct admin *a)
{
	const char *topic = admin_opt(a, "topic"), *from = admin_opt(a, "srcGroup"), *to = admin_opt(a, "destGroup"), *queue;
	json_t *route = admin_route_of(a, topic), *d, *v;
	struct mq_error err;
	size_t i, copied = 0;
	if (mq_check_group((struct mq_str){ to, strlen(to) }, &err) < 0)
		admin_usage(a, "--destGroup: %s", err.text);
	admin_bool(a, "offline", false); /* mqadmin takes it and makes nothing of it; a value that is none is still wrong */
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		const char *addr = admin_broker_addr(d);
		if (!addr)
			continue;
		json_t *now = offset_where(a, addr, from, topic);
		json_object_foreach(now, queue, v) {
			commit(a, addr, to, topic, atoll(queue), json_integer_value(v));
			copied++;
		}
		json_decref(now);
	}
	json_decref(route);
	if (!copied)
		cli_die(CLI_NONE, "cloneGroupOffset: group '%s' has consumed nothing of topic '%s'", from, topic);
	printf("clone group offset success. srcGroup[%s], destGroup=[%s], topic[%s]\n", from, to, topic);
	return CLI_OK;
}

static const struct command_opt reset_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 's', "timestamp", "TIME", true, "now, ms, yyyy-MM-dd#HH:mm:ss:SSS, or as for mq-recv -o" },
	{ 'f', "force", "BOOL", false, "also forward, when no member is online (true)" },
	{ 'c', "cplus", NULL, false, "for members in C++; no longer of any use" },
	{ 'b', "broker", "ADDR", false, "with -q: at this broker only" },
	{ 'q', "queue", "N", false, "this queue only" },
	{ 'o', "offset", "N", false, "with -b -q: to this offset" },
	{ 0 },
};
static const struct command_opt skip_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'f', "force", "BOOL", false, "also forward, when no member is online (true)" },
	{ 0 },
};
static const struct command_opt clone_opts[] = {
	{ 's', "srcGroup", "GROUP", true, "the group whose offsets are copied" },
	{ 'd', "destGroup", "GROUP", true, "the group that gets them" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'o', "offline", "BOOL", false, "the group is offline" },
	{ 0 },
};

const struct command offset_commands[] = {
	{ "resetOffsetByTime", reset_opts, reset_by_time, COMMAND_CLUSTER, "set a group to what was stored at a time" },
	{ "skipAccumulatedMessage", skip_opts, skip, COMMAND_CLUSTER, "set a group to the end of a topic" },
	{ "cloneGroupOffset", clone_opts, clone_offset, COMMAND_CLUSTER, "give a group the offsets of another" },
	{ 0 },
};
