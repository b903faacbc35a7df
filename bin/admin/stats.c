/* stats.c: how much goes into each topic, and out to each group. */
#include "admin.h"
#include "../cli.h"
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

struct traffic {
	double tps;             /* of the last minute */
	int64_t day;            /* messages in 24 hours, or in as much of them as the broker has run */
};

/* Of one counter, over all brokers of the topic; those without it add nothing. */
static struct traffic traffic(struct admin *a, const json_t *route, const char *name, const char *key)
{
	struct traffic t = { 0, 0 };
	json_t *d;
	size_t i;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		static const char *const span[] = { "statsDay", "statsHour", "statsMinute" };
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "statsName", name);
		admin_field(&f, "statsKey", key);
		if (!admin_broker_addr(d) || admin_ask(a, admin_broker_addr(d), 315, &f, no_body, (const int[]){ 1, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans);
		int64_t sum = 0;
		for (size_t k = 0; k < 3 && sum == 0; k++)
			sum = admin_i64(json_object_get(o, span[k]), "sum", 0);
		t.day += sum;
		t.tps += json_number_value(json_object_get(json_object_get(o, "statsMinute"), "tps"));
		json_decref(o);
	}
	return t;
}

static json_t *groups_of(struct admin *a, const json_t *route, const char *topic)
{
	json_t *first = json_array_get(json_object_get(route, "brokerDatas"), 0), *list = NULL;
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "topic", topic);
	if (first && admin_broker_addr(first) &&
	    admin_ask(a, admin_broker_addr(first), 300, &f, no_body, (const int[]){ 17, 0 }, &ans) == 0) {
		json_t *o = admin_json(&ans);
		list = json_incref(json_object_get(o, "groupList"));
		json_decref(o);
	}
	return list ? list : json_array();
}

/* Messages that the group has not consumed yet. */
static int64_t behind(struct admin *a, const json_t *route, const char *topic, const char *group)
{
	int64_t diff = 0;
	const char *key;
	json_t *d, *v;
	size_t i;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "consumerGroup", group);
		admin_field(&f, "topic", topic);
		if (!admin_broker_addr(d) || admin_ask(a, admin_broker_addr(d), 208, &f, no_body, (const int[]){ 1, 17, 26, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans);
		json_object_foreach(json_object_get(o, "offsetTable"), key, v)
			diff += admin_i64(v, "brokerOffset", 0) - admin_i64(v, "consumerOffset", 0);
		json_decref(o);
	}
	return diff > 0 ? diff : 0;
}

static void topic_rows(struct admin *a, struct show *s, const char *topic, bool active)
{
	json_t *route = admin_route(a, topic), *groups, *g;
	size_t i;
	if (!route)
		return;
	struct traffic in = traffic(a, route, "TOPIC_PUT_NUMS", topic);
	groups = groups_of(a, route, topic);
	json_array_foreach(groups, i, g) {
		char key[600];
		const char *group = json_string_value(g);
		if (!group)
			continue;
		snprintf(key, sizeof key, "%s@%s", topic, group);
		struct traffic out = traffic(a, route, "GROUP_GET_NUMS", key);
		if (active && in.day <= 0 && out.day <= 0)
			continue;
		show_cstr(s, topic);
		show_cstr(s, group);
		show_i64(s, behind(a, route, topic, group));
		show_double(s, in.tps, 2);
		show_double(s, out.tps, 2);
		show_i64(s, in.day);
		show_i64(s, out.day);
	}
	if (json_array_size(groups) == 0 && (!active || in.day > 0)) {
		show_cstr(s, topic);
		show_cstr(s, NULL);
		show_i64(s, 0);
		show_double(s, in.tps, 2);
		show_cstr(s, NULL);
		show_i64(s, in.day);
		show_cstr(s, NULL);
	}
	json_decref(groups);
	json_decref(route);
}

static int stats_all(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Consumer Group", "group" }, { "#Accumulation", "diff" },
		{ "#InTPS", "inTps" }, { "#OutTPS", "outTps" },
		{ "#InMsg24Hour", "inDay" }, { "#OutMsg24Hour", "outDay" },
	};
	const char *only = admin_opt(a, "topic");
	bool active = admin_flag(a, "activeTopic");
	json_t *topics = admin_topics(a), *t;
	size_t i, seen = 0;
	struct show *s = show_rows(a->format, cols, 7);
	json_array_foreach(topics, i, t) {
		const char *name = json_string_value(t);
		if (!name || strncmp(name, "%RETRY%", 7) == 0 || strncmp(name, "%DLQ%", 5) == 0 || (only && strcmp(name, only) != 0))
			continue;
		seen++;
		topic_rows(a, s, name, active);
	}
	json_decref(topics);
	show_close(s);
	if (only && !seen)
		cli_die(CLI_NONE, "statsAll: no topic '%s'", only);
	return CLI_OK;
}

static const struct command_opt all_opts[] = {
	{ 'a', "activeTopic", NULL, false, "only topics with traffic in the last day" },
	{ 't', "topic", "TOPIC", false, "this topic only" },
	{ 0 },
};

const struct command stats_commands[] = {
	{ "statsAll", all_opts, stats_all, COMMAND_CLUSTER, "traffic of topics and groups" },
	{ 0 },
};
