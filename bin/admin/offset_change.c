/* offset_change.c: offsets of groups looked at, set exactly, moved, copied, written to a file and read from one.
 *
 * A change is made in three steps: work out a row for each queue, write down how it was (--undo), tell the broker.  The broker that has
 * members of the group online tells them, too; so a change holds whether or not somebody consumes. */
#include "admin.h"
#include "../cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A queue and where a group stands in it. */
struct row {
	char *group, *topic, *broker, *addr;
	int64_t queue, min, max;
	int64_t old, to;        /* -1 = nothing is stored; is not changed */
};
struct rows {
	struct row *v;
	size_t n;
};

static struct row *add(struct rows *r, const char *group, const char *topic, const char *broker, const char *addr, int64_t queue)
{
	r->v = realloc(r->v, (r->n + 1) * sizeof *r->v);
	if (!r->v)
		cli_die(CLI_SYSTEM, "out of memory");
	r->v[r->n] = (struct row){ .group = strdup(group), .topic = strdup(topic), .broker = strdup(broker), .addr = strdup(addr),
				   .queue = queue, .old = -1, .to = -1 };
	return &r->v[r->n++];
}

static void rows_free(struct rows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->v[i].group);
		free(r->v[i].topic);
		free(r->v[i].broker);
		free(r->v[i].addr);
	}
	free(r->v);
}

static int by_place(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	int c = strcmp(a->topic, b->topic);
	if (c == 0)
		c = strcmp(a->broker, b->broker);
	return c ? c : (a->queue > b->queue) - (a->queue < b->queue);
}

/* ---- Where it stands -------------------------------------------------------------------------------------------------- */

/* The queues of a topic, or the one of -q, with their ends and where the group is. */
static void queues(struct admin *a, const char *group, const char *topic, const char *only, struct rows *out)
{
	json_t *route = admin_route_of(a, topic), *d;
	const char *only_broker = NULL;
	int32_t only_id = -1;
	size_t i;
	if (only)
		cli_queue("-q", only, &only_broker, &only_id);
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		const char *broker = admin_text(d, "brokerName", ""), *addr = admin_broker_addr(d);
		if (!addr || (only && strcmp(only_broker, broker) != 0))
			continue;
		json_t *at = offset_where(a, addr, group, topic);
		int64_t n = offset_queues(route, broker);
		for (int64_t q = 0; q < n; q++) {
			if (only && q != only_id)
				continue;
			char id[24];
			snprintf(id, sizeof id, "%lld", (long long)q);
			struct row *r = add(out, group, topic, broker, addr, q);
			r->min = offset_ask(a, addr, 31, topic, q, 0);
			r->max = offset_ask(a, addr, 30, topic, q, 0);
			r->old = admin_i64(at, id, -1);
		}
		json_decref(at);
	}
	json_decref(route);
	if (!out->n)
		cli_die(CLI_NONE, "%s: topic '%s' has no queue %s", a->command->name, topic, only ? only : "to read");
	qsort(out->v, out->n, sizeof *out->v, by_place);
}

/* All topics of a group: those that a broker has offsets of. */
static void all_topics(struct admin *a, const char *group, struct rows *out)
{
	static struct admin_brokers all;
	admin_cluster(a, NULL, &all);
	json_t *topics = json_object();
	for (size_t i = 0; i < all.n; i++) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		const char *key;
		json_t *v;
		admin_field(&f, "consumerGroup", group);
		if (all.b[i].id != 0 || admin_ask(a, all.b[i].addr, 208, &f, (struct mq_str){ 0 }, (const int[]){ 17, 26, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans);
		json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
			json_t *q = admin_queue_key(key);
			json_object_set_new(topics, admin_text(q, "topic", ""), json_true());
			json_decref(q);
		}
		json_decref(o);
	}
	admin_brokers_free(&all);
	const char *topic;
	json_t *v;
	json_object_foreach(topics, topic, v)
		queues(a, group, topic, NULL, out);
	json_decref(topics);
	if (!out->n)
		cli_die(CLI_NONE, "%s: group '%s' has consumed nothing here", a->command->name, group);
	qsort(out->v, out->n, sizeof *out->v, by_place);
}

static void collect(struct admin *a, struct rows *out)
{
	const char *topic = admin_opt(a, "topic");
	if (topic)
		queues(a, admin_opt(a, "group"), topic, NULL, out);
	else
		all_topics(a, admin_opt(a, "group"), out);
}

static int offset_get(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Min", "min" }, { "#Max", "max" },
		{ "#Offset", "offset" }, { "#Lag", "lag" },
	};
	struct rows r = { 0 };
	collect(a, &r);
	struct show *s = show_rows(a->format, cols, 7);
	for (size_t i = 0; i < r.n; i++) {
		show_cstr(s, r.v[i].topic);
		show_cstr(s, r.v[i].broker);
		show_i64(s, r.v[i].queue);
		show_i64(s, r.v[i].min);
		show_i64(s, r.v[i].max);
		if (r.v[i].old >= 0)
			show_i64(s, r.v[i].old);
		else
			show_cstr(s, NULL);
		show_i64(s, r.v[i].max - (r.v[i].old > 0 ? r.v[i].old : 0));
	}
	show_close(s);
	rows_free(&r);
	return CLI_OK;
}

/* ---- Files: OFFSET TAB GROUP TAB TOPIC TAB BROKER:ID --------------------------------------------------------------------- */

static bool write_rows(FILE *f, const struct rows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct row *v = &r->v[i];
		if (v->old >= 0)
			fprintf(f, "%lld\t%s\t%s\t%s:%lld\n", (long long)v->old, v->group, v->topic, v->broker, (long long)v->queue);
		else
			fprintf(f, "# nothing stored\t%s\t%s\t%s:%lld\n", v->group, v->topic, v->broker, (long long)v->queue);
	}
	return fflush(f) == 0 && !ferror(f);
}

static int offset_export(struct admin *a)
{
	struct rows r = { 0 };
	collect(a, &r);
	write_rows(stdout, &r);
	rows_free(&r);
	return CLI_OK;
}

/* ---- Changing --------------------------------------------------------------------------------------------------------- */

static void save_undo(struct admin *a, const struct rows *r)
{
	const char *path = admin_opt(a, "undo");
	if (!path)
		return;
	FILE *f = fopen(path, "wxe");
	if (!f)
		cli_die(errno == EEXIST ? CLI_REFUSED : CLI_SYSTEM, "%s: --undo: '%s': %s", a->command->name, path,
			errno == EEXIST ? "it is there, perhaps to undo something else" : strerror(errno));
	if (!write_rows(f, r) || fclose(f) != 0)
		cli_die(CLI_SYSTEM, "%s: --undo: '%s': %s", a->command->name, path, strerror(errno));
}

static int change(struct admin *a, struct rows *r)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Was", "was" }, { "#Now", "now" },
	};
	bool dry = admin_dry_run(a);
	if (!dry)
		save_undo(a, r);
	struct show *s = show_rows(a->format, cols, 5);
	for (size_t i = 0; i < r->n; i++) {
		struct row *v = &r->v[i];
		if (v->to < 0)
			continue;
		if (!dry)
			offset_put(a, v->addr, v->group, v->topic, v->queue, v->to);
		show_cstr(s, v->topic);
		show_cstr(s, v->broker);
		show_i64(s, v->queue);
		if (v->old >= 0)
			show_i64(s, v->old);
		else
			show_cstr(s, NULL);
		show_i64(s, v->to);
	}
	show_close(s);
	if (dry)
		cli_warn("%s: nothing was changed (--dry-run)", a->command->name);
	rows_free(r);
	return CLI_OK;
}

static int offset_set(struct admin *a)
{
	const char *to = admin_opt(a, "offset");
	struct rows r = { 0 };
	queues(a, admin_opt(a, "group"), admin_opt(a, "topic"), admin_opt(a, "queue"), &r);
	for (size_t i = 0; i < r.n; i++) {
		struct row *v = &r.v[i];
		if (strcmp(to, "begin") == 0) {
			v->to = v->min;
		} else if (strcmp(to, "end") == 0) {
			v->to = v->max;
		} else if (to[0] == '@') {
			v->to = offset_ask(a, v->addr, 29, v->topic, v->queue, cli_time_ms("-o", to));
		} else {
			v->to = cli_int("-o", to, 0, INT64_MAX);
			if (v->to < v->min || v->to > v->max)
				admin_usage(a, "-o: queue %s:%lld has offsets %lld to %lld", v->broker, (long long)v->queue,
					(long long)v->min, (long long)v->max);
		}
	}
	return change(a, &r);
}

static int offset_shift(struct admin *a)
{
	int64_t by = admin_int(a, "by", 0, INT64_MIN / 2, INT64_MAX / 2);
	struct rows r = { 0 };
	queues(a, admin_opt(a, "group"), admin_opt(a, "topic"), admin_opt(a, "queue"), &r);
	for (size_t i = 0; i < r.n; i++) {
		struct row *v = &r.v[i];
		if (v->old < 0)
			continue; /* it stands nowhere */
		v->to = v->old + by < v->min ? v->min : v->old + by > v->max ? v->max : v->old + by;
	}
	return change(a, &r);
}

static int offset_copy(struct admin *a)
{
	const char *from = admin_opt(a, "srcGroup"), *to = admin_opt(a, "destGroup"), *topic = admin_opt(a, "topic");
	struct rows source = { 0 }, dest = { 0 };
	struct mq_error err;
	if (mq_check_group((struct mq_str){ to, strlen(to) }, &err) < 0)
		admin_usage(a, "-d: %s", err.text);
	queues(a, from, topic, NULL, &source);
	queues(a, to, topic, NULL, &dest);
	for (size_t i = 0; i < dest.n && i < source.n; i++)
		if (by_place(&source.v[i], &dest.v[i]) == 0)
			dest.v[i].to = source.v[i].old;
	rows_free(&source);
	return change(a, &dest);
}

/* A line of a file -> the row of its queue. */
static void read_line(struct admin *a, char *line, size_t number, struct rows *out)
{
	char *word[4], *save = NULL, *end;
	int n = 0;
	for (char *w = strtok_r(line, "\t\n", &save); w && n < 4; w = strtok_r(NULL, "\t\n", &save))
		word[n++] = w;
	long long off = n == 4 ? strtoll(word[0], &end, 10) : -1;
	if (n < 4 || *end || off < 0)
		admin_usage(a, "-f: line %zu: OFFSET, GROUP, TOPIC, BROKER:ID with tabs between are right", number);
	struct rows one = { 0 };
	queues(a, word[1], word[2], word[3], &one);
	struct row *r = add(out, one.v->group, one.v->topic, one.v->broker, one.v->addr, one.v->queue);
	r->old = one.v->old;
	r->to = off;
	rows_free(&one);
}

static int offset_import(struct admin *a)
{
	const char *path = admin_opt(a, "filename");
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	struct rows r = { 0 };
	char *line = NULL;
	size_t cap = 0, number = 0;
	if (!f)
		cli_die(CLI_SYSTEM, "offset import: '%s': %s", path, strerror(errno));
	while (getline(&line, &cap, f) >= 0) {
		number++;
		if (line[0] != '#' && line[0] != '\n')
			read_line(a, line, number, &r);
	}
	free(line);
	if (f != stdin)
		fclose(f);
	return change(a, &r);
}

static const struct command_opt get_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", false, "of this topic; else all of which it has any" },
	{ 0 },
};
#define CHANGE_OPTS { 0, "undo", "FILE", false, "write there how it was: offset import takes it" }, ADMIN_DRY_RUN
static const struct command_opt set_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'o', "offset", "WHERE", true, "an offset, begin, end, or @TIME" },
	{ 'q', "queue", "BROKER:ID", false, "of this queue only" },
	CHANGE_OPTS,
	{ 0 },
};
static const struct command_opt shift_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'i', "by", "N", true, "so many messages on, or back (-N)" },
	{ 'q', "queue", "BROKER:ID", false, "in this queue only" },
	CHANGE_OPTS,
	{ 0 },
};
static const struct command_opt copy_opts[] = {
	{ 's', "srcGroup", "GROUP", true, "the group whose offsets are copied" },
	{ 'd', "destGroup", "GROUP", true, "the group that gets them" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	CHANGE_OPTS,
	{ 0 },
};
static const struct command_opt import_opts[] = {
	{ 'f', "filename", "FILE", true, "as offset export has written it; - is standard input" },
	CHANGE_OPTS,
	{ 0 },
};

const struct command offset_change_commands[] = {
	{ "offset get", get_opts, offset_get, COMMAND_CLUSTER, "where a group stands in each queue" },
	{ "offset set", set_opts, offset_set, COMMAND_CLUSTER, "let a group go on at an offset or a time" },
	{ "offset shift", shift_opts, offset_shift, COMMAND_CLUSTER, "let a group go on N messages later or earlier" },
	{ "offset copy", copy_opts, offset_copy, COMMAND_CLUSTER, "give a group the offsets of another" },
	{ "offset export", get_opts, offset_export, COMMAND_CLUSTER, "write the offsets of a group as lines" },
	{ "offset import", import_opts, offset_import, COMMAND_CLUSTER, "set offsets as such lines say" },
	{ 0 },
};
