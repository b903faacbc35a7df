/* timers.c: messages for a given time that wait: which they are, one of them, and taking one back.
 *
 * They are asked for by a request of our own broker (900370, mq-wire(7)); on store:DIR they are read from the timer files.  One is
 * taken back by a cancellation of the same step of time, which any broker understands. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

enum { LIST_TIMERS = 900370 };

struct timer {
	int64_t due_ms;
	char *key, *topic, *cancels;    /* cancels: "" for a message */
	char *broker, *addr;
	int64_t queue, size;
	bool cancelled;
	char *record;                   /* for show */
	size_t n;
};
struct timer_list {
	struct timer *v;
	size_t n, cap;
	int64_t max;
	const char *topic, *key;
	bool keep_records;
};

static char *copy(struct mq_str s)
{
	char *p = malloc(s.n + 1);
	if (!p)
		cli_die(CLI_SYSTEM, "out of memory");
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return p;
}

static bool is(struct mq_str s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* UNIQ_KEY, or TOPIC+UNIQ_KEY as clients of 5.3 have it. */
static bool cancels_key(const char *cancels, const char *topic, const char *key)
{
	size_t n = strlen(topic);
	return strcmp(cancels, key) == 0 ||
	       (strncmp(cancels, topic, n) == 0 && cancels[n] == '+' && strcmp(cancels + n + 1, key) == 0);
}

static void add(struct timer_list *l, const struct mq_message *m, struct mq_str record, const char *broker, const char *addr)
{
	struct mq_str key = mq_prop_get(m->props, "UNIQ_KEY"), topic = mq_prop_get(m->props, "REAL_TOPIC");
	struct mq_str cancels = mq_prop_get(m->props, "TIMER_DEL_UNIQKEY");
	if (l->topic && !is(topic, l->topic))
		return;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 256;
		l->v = realloc(l->v, l->cap * sizeof *l->v);
		if (!l->v)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	struct timer *t = &l->v[l->n++];
	char *due = copy(mq_prop_get(m->props, "TIMER_OUT_MS")), *queue = copy(mq_prop_get(m->props, "REAL_QID"));
	*t = (struct timer){
		.due_ms = atoll(due), .key = copy(key), .topic = copy(topic), .cancels = copy(cancels), .queue = atoll(queue),
		.size = (int64_t)m->body.n, .broker = copy((struct mq_str){ broker, strlen(broker) }),
		.addr = copy((struct mq_str){ addr, strlen(addr) }),
	};
	if (l->keep_records) {
		t->record = copy(record);
		t->n = record.n;
	}
	free(due);
	free(queue);
}

static void list_free(struct timer_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].topic);
		free(l->v[i].cancels);
		free(l->v[i].broker);
		free(l->v[i].addr);
		free(l->v[i].record);
	}
	free(l->v);
}

static void take_body(struct timer_list *l, struct mq_str body, const struct admin_broker *b)
{
	struct mq_message m;
	for (size_t at = 0; at < body.n;) {
		int32_t n = mq_message_decode(body.p + at, body.n - at, false, &m);
		if (n <= 0)
			cli_die(CLI_SYSTEM, "%s sent a message that cannot be read", b->addr);
		add(l, &m, (struct mq_str){ body.p + at, (size_t)n }, b->name, b->addr);
		at += (size_t)n;
	}
}

static int64_t number(const struct mqclient_answer *ans, const char *name)
{
	const struct mqclient_field *f = admin_answer_field(ans, name);
	char text[24] = "-1";
	if (f)
		snprintf(text, sizeof text, MQ_STR_FMT, MQ_STR_ARG(f->value));
	return atoll(text);
}

static void ask_broker(struct admin *a, struct timer_list *l, const struct admin_broker *b)
{
	int64_t from = 0, before = 0;
	while (from >= 0 && (int64_t)l->n < l->max) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		char num[3][24];
		admin_field_int(&f, "fromMs", from, num[0]);
		admin_field_int(&f, "before", before, num[1]);
		admin_field_int(&f, "maxMsgNums", l->max - (int64_t)l->n < 1024 ? l->max - (int64_t)l->n : 1024, num[2]);
		if (l->topic)
			admin_field(&f, "topic", l->topic);
		if (l->key)
			admin_field(&f, "key", l->key);
		if (admin_ask(a, b->addr, LIST_TIMERS, &f, (struct mq_str){ 0 }, (const int[]){ 3, 0 }, &ans) == 3)
			cli_die(CLI_REFUSED, "%s: %s cannot list its timers: it is a Java broker; its directory can be read as store:DIR",
			        a->command->name, b->addr);
		take_body(l, ans.body, b);
		from = number(&ans, "nextMs");
		before = number(&ans, "nextBefore");
	}
}

static int take_offline(void *arg, const struct mqstore_timer *t)
{
	struct timer_list *l = arg;
	struct mq_message m;
	if (mq_message_decode(t->record.p, t->record.n, false, &m) <= 0)
		return 0;
	if (l->key && !is(mq_prop_get(m.props, "UNIQ_KEY"), l->key)) {
		char *cancels = copy(mq_prop_get(m.props, "TIMER_DEL_UNIQKEY")), *topic = copy(mq_prop_get(m.props, "REAL_TOPIC"));
		bool wanted = cancels_key(cancels, topic, l->key);
		free(cancels);
		free(topic);
		if (!wanted)
			return 0;
	}
	add(l, &m, t->record, "-", "-");
	return (int64_t)l->n >= l->max;
}

static int by_time(const void *x, const void *y)
{
	const struct timer *a = x, *b = y;
	if (a->due_ms != b->due_ms)
		return a->due_ms < b->due_ms ? -1 : 1;
	return strcmp(a->key, b->key);
}

/* -b gives an address alone. */
static void name_brokers(struct admin *a, struct admin_brokers *brokers)
{
	static struct admin_brokers all;
	if (!admin_opt(a, "brokerAddr"))
		return;
	admin_cluster(a, NULL, &all);
	for (size_t i = 0; i < brokers->n; i++)
		for (size_t j = 0; j < all.n; j++)
			if (strcmp(brokers->b[i].addr, all.b[j].addr) == 0) {
				free(brokers->b[i].name);
				brokers->b[i].name = copy((struct mq_str){ all.b[j].name, strlen(all.b[j].name) });
			}
	admin_brokers_free(&all);
}

/* Those that wait, by time; the ones with a cancellation are marked. */
static void gather(struct admin *a, struct timer_list *l)
{
	struct mq_error err;
	if (a->store) {
		if (mqstore_each_timer(a->store, take_offline, l, &err) < 0)
			cli_fail(&err);
	} else {
		static struct admin_brokers brokers;
		admin_targets_or_all(a, &brokers);
		name_brokers(a, &brokers);
		for (size_t i = 0; i < brokers.n; i++)
			ask_broker(a, l, &brokers.b[i]);
		admin_brokers_free(&brokers);
	}
	qsort(l->v, l->n, sizeof *l->v, by_time);
	for (size_t i = 0; i < l->n; i++) {
		if (!*l->v[i].cancels)
			continue;
		for (size_t j = i + 1; j-- > 0 && l->v[j].due_ms == l->v[i].due_ms;)
			if (cancels_key(l->v[i].cancels, l->v[j].topic, l->v[j].key) && !*l->v[j].cancels)
				l->v[j].cancelled = true;
		for (size_t j = i + 1; j < l->n && l->v[j].due_ms == l->v[i].due_ms; j++)
			if (cancels_key(l->v[i].cancels, l->v[j].topic, l->v[j].key) && !*l->v[j].cancels)
				l->v[j].cancelled = true;
	}
}

static struct timer_list wanted(struct admin *a)
{
	return (struct timer_list){ .topic = admin_opt(a, "topic"), .key = admin_opt(a, "key"), .max = INT64_MAX };
}

static int timers_list(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Due", "due" }, { "#State", "state" }, { "#Topic", "topic" }, { "#QID", "queue" }, { "#Key", "key" },
		{ "#Bytes", "bytes" }, { "#Broker", "broker" },
	};
	struct timer_list l = wanted(a);
	l.max = admin_int(a, "max", INT64_MAX, 1, INT64_MAX);
	gather(a, &l);
	struct show *s = show_rows(a->format, cols, 7);
	for (size_t i = 0; i < l.n; i++) {
		const struct timer *t = &l.v[i];
		if (*t->cancels)
			continue;
		show_time(s, t->due_ms);
		show_cstr(s, t->cancelled ? "cancelled" : "waits");
		show_cstr(s, t->topic);
		show_i64(s, t->queue);
		show_cstr(s, *t->key ? t->key : NULL);
		show_i64(s, t->size);
		show_cstr(s, t->broker);
	}
	show_close(s);
	list_free(&l);
	return CLI_OK;
}

static int timers_show(struct admin *a)
{
	struct timer_list l = wanted(a);
	size_t shown = 0;
	l.keep_records = true;
	gather(a, &l);
	for (size_t i = 0; i < l.n; i++) {
		struct mq_message m;
		if (*l.v[i].cancels || mq_message_decode(l.v[i].record, l.v[i].n, false, &m) <= 0)
			continue;
		if (shown++ && a->format != SHOW_JSON)
			putchar('\n');
		message_show(a, &m, NULL);
	}
	list_free(&l);
	if (!shown)
		cli_die(CLI_NONE, "timers show: no message '%s' waits for its time", admin_opt(a, "key"));
	return CLI_OK;
}

/* ---- Taking back ---------------------------------------------------------------------------------------------------------- */

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct mqclient_sent *out = arg;
	*out = *r;
}

static void cancel(struct admin *a, const char *broker, const char *topic, const char *key, int64_t deliver_ms)
{
	struct mqclient_send_opt opt = { .group = "mq-admin", .queue = { broker, 0 } };
	struct mqclient_sent sent = { .rc = 1 };
	struct mq_error err;
	char props[512];
	int n = snprintf(props, sizeof props, "TIMER_DEL_UNIQKEY\001%s\002TIMER_DELIVER_MS\001%lld\002TAGS\001_RECALL_TAG_\002", key,
	                 (long long)deliver_ms);
	if (n < 0 || (size_t)n >= sizeof props || strpbrk(key, "\001\002"))
		cli_usage_error("-k: '%s' is no message id", key);
	struct mq_message m = { .topic = { topic, strlen(topic) }, .body = { "0", 1 }, .props = { props, (size_t)n } };
	if (mqclient_send(a->client, &m, 1, &opt, on_sent, &sent, &err) < 0)
		cli_fail(&err);
	while (sent.rc == 1)
		mqclient_run(a->client, -1);
	if (sent.rc < 0)
		cli_fail(&sent.err);
}

static void say(struct show *s, const char *topic, const char *key, int64_t due_ms, const char *broker)
{
	show_cstr(s, key);
	show_cstr(s, topic);
	show_time(s, due_ms);
	show_cstr(s, broker);
}

static int timers_cancel(struct admin *a)
{
	static const struct show_col cols[] = { { "#Key", "key" }, { "#Topic", "topic" }, { "#Due", "due" }, { "#Broker", "broker" } };
	struct timer_list l = wanted(a);
	bool dry = admin_flag(a, "dry-run");
	size_t n = 0, before = 0;
	gather(a, &l);
	struct show *s = show_rows(a->format, cols, 4);
	for (size_t i = 0; i < l.n; i++) {
		const struct timer *t = &l.v[i];
		if (*t->cancels)
			continue;
		before += t->cancelled;
		if (t->cancelled)
			continue;
		if (!dry)
			cancel(a, t->broker, t->topic, t->key, t->due_ms + 1);
		say(s, t->topic, t->key, t->due_ms, t->broker);
		n++;
	}
	show_close(s);
	list_free(&l);
	if (!n && before)
		cli_die(CLI_NONE, "timers cancel: message '%s' has been cancelled before", admin_opt(a, "key"));
	if (!n)
		cli_die(CLI_NONE, "timers cancel: no message '%s' waits for its time", admin_opt(a, "key"));
	return CLI_OK;
}

static const struct command_opt list_opts[] = {
	{ 't', "topic", "TOPIC", false, "only those for this topic" },
	{ 'k', "key", "ID", false, "only this unique id" },
	{ 'm', "max", "N", false, "at most so many, the earliest first (all)" },
	{ 'b', "brokerAddr", "ADDR", false, "of this broker (all)" },
	{ 'c', "clusterName", "NAME", false, "of the masters of this cluster" },
	{ 0 },
};
static const struct command_opt show_opts[] = {
	{ 'k', "key", "ID", true, "the unique id of the message" },
	{ 't', "topic", "TOPIC", false, "the topic that it goes to" },
	{ 'b', "brokerAddr", "ADDR", false, "of this broker (all)" },
	{ 'c', "clusterName", "NAME", false, "of the masters of this cluster" },
	{ 0 },
};
static const struct command_opt cancel_opts[] = {
	{ 'k', "key", "ID", true, "the unique id of the message" },
	{ 't', "topic", "TOPIC", false, "the topic that it goes to" },
	{ 'b', "brokerAddr", "ADDR", false, "of this broker (all)" },
	{ 'c', "clusterName", "NAME", false, "of the masters of this cluster" },
	{ 0, "dry-run", NULL, false, "say only what would be cancelled" },
	{ 0 },
};

const struct command timers_commands[] = {
	{ "timers list", list_opts, timers_list, COMMAND_CLUSTER | COMMAND_STORE, "messages for a given time that wait" },
	{ "timers show", show_opts, timers_show, COMMAND_CLUSTER | COMMAND_STORE, "one of them in full" },
	{ "timers cancel", cancel_opts, timers_cancel, COMMAND_CLUSTER, "take one back" },
	{ 0 },
};
