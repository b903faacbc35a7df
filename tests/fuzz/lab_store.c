/* lab_store.c: see lab_store.h. */
#include "lab_store.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"
#include "codec/property.h"
#include "lab.h"

#include <errno.h>
#include <mqstore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 64, STEPS_MAX = 20000 };

/* The files of the store that was made first. */
static struct {
	char *path;     /* below the store */
	char *p;
	size_t n;
} kept[FILES_MAX];
static size_t kept_n;

static struct mqstore_opt options(void)
{
	static char dir[1024];
	struct mqstore_opt o;

	snprintf(dir, sizeof(dir), "%s", lab_path("store"));
	mqstore_defaults(&o);
	o.dir = dir;
	o.log_segment_bytes = LAB_SEGMENT;
	o.queue_segment_bytes = LAB_QUEUE_FILE;
	o.index_slots = LAB_SLOTS;
	o.index_entries = LAB_ENTRIES;
	o.max_body_bytes = 4096;
	o.min_free_bytes = 1;
	return o;
}

char *lab_store_path(const char *name)
{
	return lab_path("store/%s", name);
}

const char *lab_store_first(const char *dir)
{
	static char first[512];
	char **names;
	size_t n;

	first[0] = '\0';
	if (sys_list(lab_store_path(dir), &names, &n) == 0) {
		if (n)
			snprintf(first, sizeof(first), "%s/%s", dir, names[0]);
		free(names);
	}
	return first;
}

static void keep(const char *below)
{
	char **names, *dir = mem_strdup(lab_store_path(below));
	size_t n;

	LAB_CHECK(sys_list(dir, &names, &n) == 0);
	for (size_t i = 0; i < n; i++) {
		char *path = mem_printf("%s%s%s", below, *below ? "/" : "", names[i]);
		struct stat st;

		LAB_CHECK(sys.stat(lab_store_path(path), &st) == 0);
		if (S_ISDIR(st.st_mode)) {
			keep(path);
			free(path);
			continue;
		}
		LAB_CHECK(kept_n < FILES_MAX);
		kept[kept_n].path = path;
		LAB_CHECK(sys_read_file(lab_store_path(path), 1 << 20, &kept[kept_n].p, &kept[kept_n].n) == 0);
		kept_n++;
	}
	free(names);
	free(dir);
}

static void append(struct mqstore *s, const char *topic, int32_t id, const char *props, const char *body, int32_t level)
{
	static const struct mq_host host = { { 127, 0, 0, 1 }, 4, 10911 };
	struct mqstore_record r = {
		.queue = mqstore_queue(s, (struct mq_str){ topic, strlen(topic) }, id, true), .body = { body, strlen(body) },
		.props = { { props, strlen(props) } }, .born_ms = 1, .born_host = host, .store_host = host, .delay_level = level,
	};
	struct mqstore_place place;

	LAB_CHECK(mqstore_append(s, &r, 1, &place, NULL) == 0);
}

static void make_first(void)
{
	struct mqstore_opt o = options();
	struct mqstore *s;
	char props[200];

	sys_remove_tree(o.dir);
	LAB_CHECK(mqstore_open(&s, &o, NULL) == 0);
	for (int i = 0; i < 40; i++) {
		snprintf(props, sizeof(props), "KEYS\1key%d all\2UNIQ_KEY\1u%d\2TAGS\1tag%d\2", i, i, i % 3);
		append(s, "T", i % 2, props, "A body of some length, so that the log rolls............................................", 0);
	}
	append(s, "SCHEDULE_TOPIC_XXXX", 2, "DELAY\0013\2REAL_TOPIC\1T\2REAL_QID\0010\2", "late", 3);
	append(s, "%LMQ%light", 0, "", "light", 0);
	LAB_CHECK(mqstore_close(s, NULL) == 0);
	keep("");
}

void lab_store_make(bool log_only, bool abort)
{
	struct mqstore_opt o = options();

	lab_quiet();
	if (!kept_n)
		make_first();
	sys_remove_tree(o.dir);
	LAB_CHECK(sys_mkdir_all(lab_store_path("commitlog")) == 0);
	for (size_t i = 0; i < kept_n && !log_only; i++) {
		char *path = lab_store_path(kept[i].path), *slash = strrchr(path, '/');

		*slash = '\0';
		LAB_CHECK(sys_mkdir_all(path) == 0);
		*slash = '/';
		lab_write(path, kept[i].p, kept[i].n, 0);
	}
	if (abort)
		lab_write(lab_store_path("abort"), "", 0, 0);
	else
		sys.unlink(lab_store_path("abort"));
}

/* ---- Looking at all of it ------------------------------------------------------------------------------------------------ */

static int read_queue(void *arg, struct mqstore_queue *q)
{
	static struct mqstore_result res;
	static const struct mqstore_get_opt all = { .max_messages = 32, .max_bytes = 65536 };
	struct mqstore *s = arg;
	int64_t min = mqstore_queue_min(q), max = mqstore_queue_max(q), off = min;
	struct mqstore_entry e;

	LAB_CHECK(min >= 0 && min <= max);
	for (int steps = 0; off < max && steps < STEPS_MAX; steps++) {
		if (mqstore_get(s, q, off, &all, &res) < 0)
			break;
		LAB_CHECK(res.n >= 0 && res.n <= 32 && (res.status == MQSTORE_FOUND) == (res.n > 0));
		for (int i = 0; i < res.n; i++) {
			struct mq_message m;

			LAB_CHECK(mq_message_decode(res.record[i].p, res.record[i].n, false, &m) == (int32_t)res.record[i].n);
		}
		LAB_CHECK(res.next_off > off); /* a reader gets on */
		off = res.next_off;
	}
	mqstore_entry(q, min, &e);
	mqstore_entry(q, max - 1, &e);
	LAB_CHECK(mqstore_entry(q, max, &e) < 0);
	off = mqstore_search_time(s, q, 1, false);
	LAB_CHECK(off >= min && off <= max);
	mqstore_search_time(s, q, INT64_MAX, true);
	mqstore_time_at(s, q, min);
	return 0;
}

static int see(void *arg, int64_t off, struct mq_str record)
{
	int64_t *last = arg;
	struct mq_message m;

	LAB_CHECK(off > *last && mq_message_decode(record.p, record.n, false, &m) > 0);
	*last = off;
	return 0;
}

static void look(struct mqstore *s)
{
	struct mqstore_stat st;
	int64_t off[8], last = -1, ms;
	struct mq_str record;

	mqstore_each_queue(s, read_queue, s);
	mqstore_walk(s, 0, see, &last, NULL);
	LAB_CHECK(last < mqstore_log_max(s));
	for (int i = 0; i < 2; i++) {
		int n = mqstore_query(s, MQ_STR("T"), i ? MQ_STR("all") : MQ_STR("u1"), 8, 0, INT64_MAX, off, &ms, &last);

		LAB_CHECK(n >= 0 && n <= 8);
		for (int k = 0; k < n; k++)
			LAB_CHECK(mqstore_at(s, off[k], &record) == 0);
	}
	mqstore_stat(s, &st);
	LAB_CHECK(st.log_min <= st.log_max);
}

static int piece(void *arg, const struct mqstore_piece *p)
{
	int64_t *end = arg;

	LAB_CHECK(p->from <= p->to && p->from >= *end);
	*end = p->to;
	return 0;
}

static int entry(void *arg, const struct mqstore_file_entry *e)
{
	return 0;
}

static int index_entry(void *arg, const struct mqstore_file_index *i)
{
	return 0;
}

static void finding(void *arg, const struct mqstore_finding *f)
{
	LAB_CHECK(f->text[0] && f->kind[0]);
	if (getenv("LAB_TELL"))
		fprintf(stderr, "%s %s " MQ_STR_FMT "/%d %lld-%lld %lld%s: %s\n", f->kind, f->file, MQ_STR_ARG(f->topic), (int)f->queue_id,
			(long long)f->from, (long long)f->to, (long long)f->count, f->mendable ? " mendable" : "", f->text);
	*(int *)arg += f->mendable && f->grade != MQSTORE_NOTE;
}

/* How much there is to mend. */
static int look_at_files(void)
{
	struct mqstore_opt o = options();
	struct mqstore_checked sum;
	struct mqstore_files *f;
	int64_t end = 0;
	int mendable = 0;
	struct mqstore_check_opt how = { .finding = finding, .arg = &mendable };
	struct mqstore_files_info info;

	if (mqstore_files_open(&f, &o, NULL) < 0)
		return 0;
	mqstore_files_info(f, &info);
	mqstore_files_log(f, piece, &end, NULL);
	mqstore_files_queues(f, entry, NULL, NULL);
	mqstore_files_index(f, index_entry, NULL, NULL);
	mqstore_files_check(f, &how, &sum, NULL);
	mqstore_files_close(f);
	return mendable;
}

static void step(void *arg, const char *text)
{
	if (getenv("LAB_TELL"))
		fprintf(stderr, "mended: %s\n", text);
}

static void mend(void)
{
	struct mqstore_opt o = options();
	char *save = mem_strdup(lab_path("save"));
	struct mqstore_repair_opt how = { .save_dir = save, .step = step };
	struct mq_error e = { 0 };
	int rc;

	sys_remove_tree(save);
	rc = mqstore_repair(&o, &how, &e);
	LAB_CHECK(rc >= 0 || e.text[0]);
	if (rc >= 0)
		LAB_CHECK(look_at_files() == 0);
	free(save);
}

void lab_store_try(bool repair)
{
	struct mqstore_opt o = options();
	struct mq_error e = { 0 };
	struct mqstore *s;
	int64_t max;

	o.read_only = true;
	if (mqstore_open(&s, &o, &e) == 0) {
		look(s);
		mqstore_refresh(s);
		mqstore_close(s, NULL);
	} else {
		LAB_CHECK(!s && e.text[0]);
	}
	look_at_files();
	if (repair)
		mend();
	o.read_only = false;
	if (mqstore_open(&s, &o, &e) < 0) {
		LAB_CHECK(!s && e.text[0]);
		return;
	}
	look(s);
	max = mqstore_queue_max(mqstore_queue(s, MQ_STR("After"), 0, true));
	append(s, "After", 0, "KEYS\1after\2", "after", 0);
	mqstore_tend(s);
	LAB_CHECK(mqstore_close(s, NULL) == 0);
	LAB_CHECK(mqstore_open(&s, &o, &e) == 0);
	LAB_CHECK(mqstore_queue_max(mqstore_queue(s, MQ_STR("After"), 0, true)) == max + 1);
	look(s);
	LAB_CHECK(mqstore_close(s, NULL) == 0);
}
