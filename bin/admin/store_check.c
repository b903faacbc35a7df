/* store_check.c: is a store directory whole?  A row for each thing that is not, or that is worth knowing. */
#include "store_config.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

struct checking {
	struct show *s;
	json_t *topics;
	bool all;               /* notes too */
	int64_t damages;
};

static const char *const grades[] = { "note", "follows", "damage" };

static void row(struct checking *c, int grade, const char *kind, const char *where, int64_t from, int64_t to, int64_t count,
                const char *text)
{
	if (grade == MQSTORE_NOTE && !c->all)
		return;
	show_cstr(c->s, grades[grade]);
	show_cstr(c->s, kind);
	show_cstr(c->s, where);
	if (count) {
		show_i64(c->s, from);
		show_i64(c->s, to);
		show_i64(c->s, count);
	} else {
		show_cstr(c->s, NULL);
		show_cstr(c->s, NULL);
		show_cstr(c->s, NULL);
	}
	show_cstr(c->s, text);
}

static void on_finding(void *arg, const struct mqstore_finding *f)
{
	char where[400];
	if (f->topic.n)
		snprintf(where, sizeof where, MQ_STR_FMT "/%d", MQ_STR_ARG(f->topic), (int)f->queue_id);
	else
		snprintf(where, sizeof where, "%s", f->file[0] ? f->file : "commitlog");
	row(arg, (int)f->grade, f->kind, where, f->from, f->to, f->count, f->text);
}

static bool has_topic(void *arg, struct mq_str topic)
{
	struct checking *c = arg;
	return store_config_has_topic(c->topics, topic);
}

static void on_config(void *arg, const char *name, enum config_state state, const char *why)
{
	static const char *const then[] = { "", ": a start takes the copy (.bak)", ", and there is no good copy", " (the copy)" };
	struct checking *c = arg;
	char where[300], text[400];
	if (state == CONFIG_GOOD)
		return;
	snprintf(where, sizeof where, "config/%s%s", name, state == CONFIG_OLD ? ".bak" : "");
	snprintf(text, sizeof text, "%s%s", why, then[state]);
	c->damages += state != CONFIG_OLD;
	row(c, state == CONFIG_OLD ? MQSTORE_NOTE : MQSTORE_DAMAGE, "config", where, 0, 0, 0, text);
}

static int check(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Grade", "grade" }, { "#Kind", "kind" }, { "#Where", "where" }, { "#From", "from" }, { "#To", "to" },
		{ "#Count", "count" }, { "#What", "text" },
	};
	const char *dir = mqclient_addr_dir(a->addr);
	struct mqstore_checked sum;
	struct mq_error err;
	struct mqstore_files *f = store_files(a);
	struct checking c = { .topics = store_config_topics(dir), .all = admin_flag(a, "notes") };
	struct mqstore_check_opt opt = { .finding = on_finding, .topic_exists = has_topic, .arg = &c };
	c.s = show_rows(a->format, cols, 7);
	if (mqstore_files_check(f, &opt, &sum, &err) < 0)
		cli_fail(&err);
	store_config_each(dir, on_config, &c);
	c.damages += sum.damages + sum.follows;
	show_close(c.s);
	mqstore_files_close(f);
	json_decref(c.topics);
	cli_warn("check: %lld messages, %lld queue entries, %lld index entries: %s", (long long)sum.records, (long long)sum.queue_entries,
	         (long long)sum.index_entries, c.damages ? "damaged" : "whole");
	return c.damages ? CLI_NONE : CLI_OK;
}

static const struct command_opt check_opts[] = {
	{ 'a', "notes", NULL, false, "what is worth knowing and no damage, too" },
	{ 0 },
};

const struct command store_check_commands[] = {
	{ "check", check_opts, check, COMMAND_FILES, "is everything whole, and what would a start cut" },
	{ 0 },
};
