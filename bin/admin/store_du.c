/* store_du.c: how large a store is, and who fills it. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

enum { BY_TOPIC = 1, BY_QUEUE = 2, BY_DAY = 4 };
enum { KEY_MAX = 400 };

struct row {
	char key[KEY_MAX];      /* what it is the sum of: topic NUL queue NUL day */
	size_t key_n;
	int kind;               /* enum mqstore_piece_kind */
	char *topic;
	int32_t queue;
	char day[16];
	int64_t messages, bytes;
	UT_hash_handle hh;
};

struct usage {
	int by;
	struct row *rows;
	int64_t day_from, day_to; /* ms for which `day` is right */
	char day[16];
};

/* Local day of ms; messages of one day come together, so the last answer is kept. */
static const char *day_of(struct usage *u, int64_t ms)
{
	if (ms >= u->day_from && ms < u->day_to)
		return u->day;
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	localtime_r(&t, &tm);
	strftime(u->day, sizeof u->day, "%Y-%m-%d", &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	u->day_from = (int64_t)mktime(&tm) * 1000;
	tm.tm_mday++;
	tm.tm_isdst = -1;
	u->day_to = (int64_t)mktime(&tm) * 1000;
	return u->day;
}

static struct row *row_of(struct usage *u, const struct mqstore_piece *p)
{
	bool message = p->kind == MQSTORE_RECORD;
	struct mq_str topic = message && u->by & (BY_TOPIC | BY_QUEUE) ? p->m.topic : (struct mq_str){ "", 0 };
	int32_t queue = message && u->by & BY_QUEUE ? p->m.queue_id : -1;
	const char *day = message && u->by & BY_DAY ? day_of(u, p->m.store_ms) : "";
	char key[KEY_MAX];
	size_t n = (size_t)snprintf(key, sizeof key, "%d " MQ_STR_FMT " %d %s", (int)p->kind, MQ_STR_ARG(topic), (int)queue, day);
	struct row *r;
	if (n >= sizeof key)
		n = sizeof key - 1;
	HASH_FIND(hh, u->rows, key, n, r);
	if (r)
		return r;
	r = calloc(1, sizeof *r);
	if (!r || !(r->topic = strndup(topic.p, topic.n)))
		cli_die(CLI_SYSTEM, "out of memory");
	memcpy(r->key, key, n);
	r->key_n = n;
	r->kind = (int)p->kind;
	r->queue = queue;
	snprintf(r->day, sizeof r->day, "%s", day);
	HASH_ADD_KEYPTR(hh, u->rows, r->key, n, r);
	return r;
}

static int on_piece(void *arg, const struct mqstore_piece *p)
{
	struct row *r = row_of(arg, p);
	r->messages += p->kind == MQSTORE_RECORD;
	r->bytes += p->bytes;
	return 0;
}

static int by_place(const struct row *a, const struct row *b)
{
	int c = a->kind - b->kind;
	if (c == 0)
		c = strcmp(a->topic, b->topic);
	if (c == 0)
		c = (a->queue > b->queue) - (a->queue < b->queue);
	return c ? c : strcmp(a->day, b->day);
}

static int grouping(struct admin *a, const char *by)
{
	static const struct { const char *name; int by; } names[] = { { "topic", BY_TOPIC }, { "queue", BY_QUEUE }, { "day", BY_DAY } };
	int sum = 0;
	while (*by) {
		size_t n = strcspn(by, ","), i = 0;
		while (i < 3 && (strlen(names[i].name) != n || memcmp(names[i].name, by, n) != 0))
			i++;
		if (i == 3)
			admin_usage(a, "--by: '%.*s' is none of topic, queue, day", (int)n, by);
		sum |= names[i].by;
		by += n + (by[n] == ',');
	}
	return sum;
}

static int du(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#What", "what" }, { "#Topic", "topic" }, { "#QID", "queueId" }, { "#Day", "day" }, { "#Messages", "messages" },
		{ "#Bytes", "bytes" },
	};
	static const char *const kinds[] = { "messages", "blank", "damaged", "hole", "torn", "free" };
	const char *by = admin_opt(a, "by");
	struct usage u = { .by = grouping(a, by ? by : "topic") };
	struct mq_error err;
	struct mqstore_files *f = store_files(a);
	if (mqstore_files_log(f, on_piece, &u, &err) < 0)
		cli_fail(&err);
	mqstore_files_close(f);
	HASH_SORT(u.rows, by_place);
	struct show *s = show_rows(a->format, cols, 6);
	struct row *r, *next;
	HASH_ITER(hh, u.rows, r, next) {
		show_cstr(s, kinds[r->kind]);
		show_cstr(s, r->topic[0] ? r->topic : NULL);
		if (r->queue >= 0)
			show_i64(s, r->queue);
		else
			show_cstr(s, NULL);
		show_cstr(s, r->day[0] ? r->day : NULL);
		show_i64(s, r->messages);
		show_i64(s, r->bytes);
		HASH_DEL(u.rows, r);
		free(r->topic);
		free(r);
	}
	show_close(s);
	return CLI_OK;
}

static void number(struct show *s, const char *key, int64_t v)
{
	show_key(s, key);
	show_i64(s, v);
}

static int statistics(struct admin *a)
{
	struct mqstore_stat st;
	struct mqstore_files_info info;
	struct mqstore_files *f = store_files(a);
	mqstore_files_info(f, &info);
	mqstore_files_close(f);
	mqstore_stat(a->store, &st);
	struct show *s = show_record(a->format);
	show_key(s, "directory");
	show_cstr(s, mqclient_addr_dir(a->addr));
	number(s, "logMinOffset", st.log_min);
	number(s, "logMaxOffset", st.log_max);
	number(s, "logBytes", st.log_bytes);
	number(s, "logFileBytes", info.log_bytes);
	number(s, "segments", info.segments);
	number(s, "queues", st.queues);
	number(s, "queueFiles", info.queue_files);
	number(s, "queueFileBytes", mqstore_queue_bytes(a->store));
	number(s, "indexFiles", info.index_files);
	number(s, "indexFileBytes", st.index_bytes);
	show_key(s, "firstStored");
	show_time(s, st.earliest_ms);
	show_key(s, "lastStored");
	show_time(s, st.latest_ms);
	show_key(s, "cleanStop");
	show_bool(s, !info.abort);
	show_key(s, "inUse");
	show_bool(s, info.in_use);
	show_close(s);
	return CLI_OK;
}

static const struct command_opt du_opts[] = {
	{ 'y', "by", "WHAT", false, "a row for each topic, queue, day: one or more with commas (topic)" },
	{ 0 },
};
static const struct command_opt no_opts[] = { { 0 } };

const struct command store_du_commands[] = {
	{ "stat", no_opts, statistics, COMMAND_FILES | COMMAND_STORE, "sizes, numbers and times" },
	{ "du", du_opts, du, COMMAND_FILES, "who fills the log" },
	{ 0 },
};
