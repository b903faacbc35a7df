/* The key index: the peer's files are read and written byte for byte; crashes, full disks and clocks do not spoil it. */
#include "store/index.h"
#include "store/index_file.h"
#include "base/byte.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/layout.h"
#include "codec/property.h"
#include "fault.h"
#include "golden_store.h"
#include "tempdir.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- A log to index: records in memory ------------------------------------------------------------------------------- */

struct record {
	int64_t off, ms;
	char topic[140], uniq[64], keys[64];
};
struct log {
	struct record *r;
	size_t n, cap;
	int64_t end;
	int asked;
};

static void add(struct log *l, const char *topic, const char *uniq, const char *keys, int64_t ms)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->r = mem_realloc(l->r, l->cap * sizeof(*l->r));
	}
	struct record *r = &l->r[l->n++];
	memset(r, 0, sizeof(*r));
	r->off = l->end;
	r->ms = ms;
	snprintf(r->topic, sizeof(r->topic), "%s", topic);
	snprintf(r->uniq, sizeof(r->uniq), "%s", uniq);
	snprintf(r->keys, sizeof(r->keys), "%s", keys);
	l->end += 100;
}

static struct index_record as_record(const struct log *l, size_t i)
{
	const struct record *r = &l->r[i];
	return (struct index_record){
		.topic_hash = index_topic_hash(str_of(r->topic)), .uniq_key = str_of(r->uniq), .keys = str_of(r->keys),
		.log_off = r->off, .store_ms = r->ms, .next_off = i + 1 < l->n ? l->r[i + 1].off : l->end,
	};
}

static int source(void *arg, int64_t log_off, struct index_record *r)
{
	struct log *l = arg;
	l->asked++;
	for (size_t i = 0; i < l->n; i++)
		if (l->r[i].off >= log_off) {
			*r = as_record(l, i);
			return 1;
		}
	return 0;
}

static void put_all(struct index *ix, const struct log *l, size_t from)
{
	for (size_t i = from; i < l->n; i++) {
		struct index_record r = as_record(l, i);
		index_put(ix, &r);
	}
}

/* ---- An index to write ------------------------------------------------------------------------------------------------ */

static struct index_opt small(const char *dir, struct log *l)
{
	return (struct index_opt){ .dir = dir, .slots = 50, .entries = 40, .source = l ? source : NULL, .source_arg = l };
}

static struct index *open_ok(const struct index_opt *o, const struct log *l)
{
	struct index *ix;
	struct mq_error e = { 0 };
	if (index_open(&ix, o, &e) < 0)
		fail_msg("open: %s", e.text);
	if (l)
		assert_int_equal(index_log(ix, l->n ? l->r[0].off : 0, l->end, NULL), 0);
	return ix;
}

static void tend_until_whole(struct index *ix)
{
	for (int i = 0; i < 300 && index_behind(ix) >= 0; i++) {
		clock_cached_mono_ms += 50;
		index_tend(ix);
	}
	assert_int_equal(index_behind(ix), -1);
}

struct hits {
	int64_t off[1000];
	size_t n, max;
};
static int hit(void *arg, int64_t off)
{
	struct hits *h = arg;
	if (h->n < 1000)
		h->off[h->n++] = off;
	return h->max && h->n == h->max;
}

static struct hits query(struct index *ix, const char *topic, const char *key)
{
	struct hits h = { .n = 0 };
	index_query(ix, str_of(topic), str_of(key), 0, INT64_MAX, hit, &h);
	return h;
}

/* Every key of every record leads to that record. */
static void assert_whole(struct index *ix, const struct log *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct record *r = &l->r[i];
		struct mq_str rest = str_of(r->keys), word;
		char text[64];
		struct hits h;
		bool found = r->uniq[0] == 0;
		if (!found) {
			h = query(ix, r->topic, r->uniq);
			for (size_t k = 0; k < h.n; k++)
				found |= h.off[k] == r->off;
			if (!found)
				fail_msg("record %zu not found by id", i);
		}
		while (r->keys[0] && str_split(&rest, ' ', &word)) {
			if (word.n == 0)
				continue;
			snprintf(text, sizeof(text), MQ_STR_FMT, MQ_STR_ARG(word));
			h = query(ix, r->topic, text);
			int times = 0;
			for (size_t k = 0; k < h.n; k++)
				times += h.off[k] == r->off;
			if (times != 1)
				fail_msg("record %zu found %d times by key '%s'", i, times, text);
		}
	}
}

static void fill(struct log *l, int n)
{
	char uniq[64], keys[64];
	for (int i = 0; i < n; i++) {
		snprintf(uniq, sizeof(uniq), "id-%zu", l->n);
		snprintf(keys, sizeof(keys), "k%zu all%s", l->n, i % 3 ? "" : "  third");
		add(l, i % 2 ? "T" : "U", uniq, keys, 1800000000000 + (int64_t)l->n * 700);
	}
}

static int lines;
static char last_line[1000];
static void count_lines(void *arg, enum log_level level, const char *line)
{
	lines += level <= LOG_ERROR;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

/* ---- The peer's files -------------------------------------------------------------------------------------------------- */

static void check_manifest_queries(struct index *ix, const char *name, int *checked)
{
	json_t *m = golden_manifest(name), *q;
	size_t i;
	json_array_foreach(json_object_get(m, "queryByKey"), i, q) {
		const char *topic = json_string_value(json_object_get(q, "topic")), *key = json_string_value(json_object_get(q, "key"));
		json_t *want = json_object_get(q, "commitLogOffsets");
		if (json_object_get(q, "error"))
			continue; /* the Java client could not read what was found */
		struct hits h = query(ix, topic, key);
		for (size_t k = 0; k < json_array_size(want); k++) {
			int64_t off = json_integer_value(json_array_get(want, k));
			bool found = false;
			for (size_t j = 0; j < h.n; j++)
				found |= h.off[j] == off;
			if (!found)
				fail_msg("%s: topic %s key %s: offset %lld not found", name, topic, key, (long long)off);
		}
		if (h.n != json_array_size(want))
			fail_msg("%s: topic %s key %s: %zu found, not %zu", name, topic, key, h.n, json_array_size(want));
		++*checked;
	}
	json_decref(m);
}

static void queries_of_the_peers_files_give_what_the_peer_gave(void **state)
{
	const char *const names[] = { "clean", "trimmed", "features", "features-nocrc", "ipv6", "v4.9.7", "v5.3.2" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *dir = mem_printf("%s/%s", (char *)*state, names[i]);
		sys.mkdir(dir, 0755);
		char *store = golden_store(dir, names[i]), *index = mem_printf("%s/index", store);
		uint64_t before = golden_fingerprint(store);
		struct index_opt o = { .dir = index, .slots = GOLDEN_SLOTS, .entries = GOLDEN_ENTRIES, .read_only = true };
		struct index *ix = open_ok(&o, NULL);
		int checked = 0;
		check_manifest_queries(ix, names[i], &checked);
		assert_true(checked >= 3);
		assert_int_equal(index_close(ix, NULL), 0);

		/* Without knowing slots and entries: they are found. */
		o.slots = 5000000, o.entries = 20000000, o.adopt_sizes = true;
		ix = open_ok(&o, NULL);
		check_manifest_queries(ix, names[i], &checked);
		assert_int_equal(index_close(ix, NULL), 0);
		assert_true(golden_fingerprint(store) == before);
		free(index);
		free(store);
		free(dir);
	}
}

/* An index that indexes a golden log, as the store does it. */
static int64_t put_from;
static void put_message(void *arg, const struct mq_message *m, const char *record)
{
	struct property_scan s;
	property_scan(m->props, &s);
	struct index_record r = {
		.topic_hash = index_topic_hash(m->topic), .uniq_key = s.uniq_key, .keys = s.keys, .log_off = m->log_off,
		.store_ms = m->store_ms, .skip = (m->sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_ROLLBACK,
	};
	if (m->log_off >= put_from)
		index_put(arg, &r);
}

static void the_same_puts_make_the_same_bytes(void **state)
{
	const char *const names[] = { "clean", "features", "features-nocrc", "ipv6", "v5.3.2" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *dir = mem_printf("%s/%s", (char *)*state, names[i]);
		sys.mkdir(dir, 0755);
		char *store = golden_store(dir, names[i]), *theirs = mem_printf("%s/index", store), *ours = mem_printf("%s/ours", dir);
		struct index_opt o = { .dir = ours, .slots = GOLDEN_SLOTS, .entries = GOLDEN_ENTRIES };
		struct index *ix = open_ok(&o, NULL);
		put_from = 0;
		golden_log(store, put_message, ix);
		assert_int_equal(index_close(ix, NULL), 0);

		char **a, **b;
		size_t na, nb;
		assert_int_equal(sys_list(theirs, &a, &na), 0);
		assert_int_equal(sys_list(ours, &b, &nb), 0);
		assert_int_equal(na, nb);
		for (size_t k = 0; k < na; k++) {
			char *pa = mem_printf("%s/%s", theirs, a[k]), *pb = mem_printf("%s/%s", ours, b[k]), *ta, *tb;
			size_t la, lb;
			assert_int_equal(sys_read_file(pa, 1 << 20, &ta, &la), 0);
			assert_int_equal(sys_read_file(pb, 1 << 20, &tb, &lb), 0);
			assert_int_equal(la, lb);
			for (size_t at = 0; at < la; at++)
				if (ta[at] != tb[at])
					fail_msg("%s file %zu differs at byte %zu: %02x, peer %02x", names[i], k, at,
						 (unsigned char)tb[at], (unsigned char)ta[at]);
			free(ta), free(tb), free(pa), free(pb);
		}
		free(a), free(b), free(store), free(theirs), free(ours), free(dir);
	}
}


/* ---- Putting and finding ------------------------------------------------------------------------------------------------ */

static char *path_of(void **state, const char *name) { return mem_printf("%s/%s", (char *)*state, name); }

static size_t files_in(const char *dir)
{
	char **names;
	size_t n = 0;
	if (sys_list(dir, &names, &n) == 0)
		free(names);
	return n;
}

static void what_was_put_is_found_at_once(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	int64_t ms, off;
	index_last(ix, &ms, &off);
	assert_int_equal(ms + off, 0);
	fill(&l, 7);
	put_all(ix, &l, 0);
	assert_whole(ix, &l);
	index_last(ix, &ms, &off);
	assert_int_equal(off, 600);
	assert_int_equal(ms, l.r[6].ms);
	assert_int_equal(query(ix, "T", "nobody").n, 0);
	assert_int_equal(query(ix, "X", "k1").n, 0);
	index_close(ix, NULL);
	free(l.r);
}

static void hits_come_newest_first_until_enough(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 100; i++)
		add(&l, "T", "", "same", 1800000000000 + i);
	put_all(ix, &l, 0);
	struct hits h = query(ix, "T", "same");
	assert_int_equal(h.n, 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(h.off[i], (99 - (int)i) * 100);
	h = (struct hits){ .max = 10 };
	assert_int_equal(index_query(ix, MQ_STR("T"), MQ_STR("same"), 0, INT64_MAX, hit, &h), 1);
	assert_int_equal(h.n, 10);
	assert_int_equal(h.off[9], 9000);
	index_close(ix, NULL);
	free(l.r);
}

static void keys_with_one_hash_are_all_candidates(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	add(&l, "T", "", "Aa", 1000);
	add(&l, "T", "", "BB", 1000);
	put_all(ix, &l, 0);
	assert_int_equal(query(ix, "T", "Aa").n, 2);
	index_close(ix, NULL);
	free(l.r);
}

static void the_smallest_hash_goes_to_slot_0(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	char **names, *raw, *path;
	size_t n;
	assert_int_equal(str_java_hash(MQ_STR("T#ajvakuzm")), INT32_MIN);
	add(&l, "T", "", "ajvakuzm", 1000);
	put_all(ix, &l, 0);
	assert_int_equal(query(ix, "T", "ajvakuzm").n, 1);
	index_close(ix, NULL);
	assert_int_equal(sys_list(*state, &names, &n), 0);
	assert_int_equal(n, 1);
	path = path_of(state, names[0]);
	assert_int_equal(sys_read_file(path, 1 << 20, &raw, &n), 0);
	assert_int_equal(be32(raw + INDEX_HEADER), 1);
	assert_int_equal(be32(raw + INDEX_HEADER + 50 * 4 + 20), 0);
	free(raw), free(path), free(names), free(l.r);
}

static size_t between(struct index *ix, int64_t begin, int64_t end)
{
	struct hits h = { .n = 0 };
	index_query(ix, MQ_STR("T"), MQ_STR("k"), begin, end, hit, &h);
	return h.n;
}

/* Entries know whole seconds only; what was stored at x.999 must not be lost to a query that begins there. */
static void times_are_found_to_the_millisecond_though_entries_know_seconds(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	add(&l, "T", "", "k", 1800000000500);
	add(&l, "T", "", "k", 1800000010499);
	add(&l, "T", "", "k", 1800000020000);
	put_all(ix, &l, 0);
	assert_int_equal(between(ix, 1800000000500, 1800000000500), 1);
	assert_int_equal(between(ix, 1800000010499, 1800000010499), 1);
	assert_int_equal(between(ix, 1800000010499, INT64_MAX), 2);
	assert_int_equal(between(ix, 0, 1800000010498), 2); /* a candidate: the caller compares the record's time */
	assert_int_equal(between(ix, 1800000012000, 1800000013000), 0);
	assert_int_equal(between(ix, 1800000030000, INT64_MAX), 0);
	assert_int_equal(between(ix, 0, 1700000000000), 0);
	index_close(ix, NULL);
	free(l.r);
}

/* The first entry of a file counts its seconds from the file before: an hour between them must not move it. */
static void a_pause_before_a_new_file_does_not_move_its_first_entry(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 39; i++)
		add(&l, "T", "", "x", 1800000000000);
	add(&l, "T", "", "k", 1800003600000);
	put_all(ix, &l, 0);
	assert_int_equal(between(ix, 1800003600000, 1800003600000), 1);
	assert_int_equal(files_in(*state), 2);
	index_close(ix, NULL);
	free(l.r);
}

/* ---- Files come and go --------------------------------------------------------------------------------------------------- */

static void an_orderly_stop_and_start_loses_and_doubles_nothing(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	for (int round = 0; round < 12; round++) {
		size_t was = l.n;
		l.asked = 0;
		struct index *ix = open_ok(&o, &l);
		assert_int_equal(index_behind(ix), -1);
		assert_true(l.asked <= 2); /* the last record, to find the next; not the whole log */
		fill(&l, round * 3);
		put_all(ix, &l, was);
		index_tend(ix);
		assert_whole(ix, &l);
		assert_int_equal(index_close(ix, NULL), 0);
	}
	size_t keys = 0;
	for (size_t i = 0; i < l.n; i++)
		keys += strstr(l.r[i].keys, "third") ? 4 : 3;
	assert_int_equal(files_in(*state), (keys + 38) / 39);
	free(l.r);
}

static void a_store_with_few_messages_stays_small(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct stat st;
	char **names;
	size_t n;
	o.slots = 5000000;
	o.entries = 20000000;
	struct index *ix = open_ok(&o, &l);
	fill(&l, 1);
	put_all(ix, &l, 0);
	index_tend(ix);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	assert_int_equal(sys_list(*state, &names, &n), 0);
	assert_int_equal(sys.stat(tempdir_path(*state, names[0]), &st), 0);
	assert_int_equal(st.st_size, 420000040);
	assert_true((int64_t)st.st_blocks * 512 < 2 << 20);
	free(names), free(l.r);
}

static void a_file_made_ahead_is_removed_if_it_was_not_used(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 38; i++)
		add(&l, "T", "", "x", 1800000000000);
	put_all(ix, &l, 0);
	index_tend(ix);
	assert_int_equal(files_in(*state), 2);
	assert_int_equal(index_bytes(ix), 2 * index_file_bytes(50, 40));
	index_close(ix, NULL);
	assert_int_equal(files_in(*state), 1);
	free(l.r);
}

static void files_keep_their_order_when_the_clock_is_set_back(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 20; i++) {
		size_t was = l.n;
		fill(&l, 20);
		put_all(ix, &l, was);
		index_tend(ix);
		clock_shift_wall(-3600 * 1000);
	}
	index_close(ix, NULL);
	clock_shift_wall(20 * 3600 * 1000);
	ix = open_ok(&o, &l);
	tend_until_whole(ix);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	free(l.r);
}

static void trim_removes_what_lies_before_the_log(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	fill(&l, 200);
	put_all(ix, &l, 0);
	index_query(ix, MQ_STR(""), MQ_STR(""), 0, 0, hit, NULL);
	size_t before = files_in(*state);
	index_trim(ix, 100 * 100);
	assert_true(files_in(*state) < before && files_in(*state) > 1);
	for (size_t i = 100; i < 200; i++)
		assert_true(query(ix, l.r[i].topic, l.r[i].uniq).n > 0);
	index_trim(ix, INT64_MAX);
	assert_int_equal(files_in(*state), 1);
	index_close(ix, NULL);
	free(l.r);
}

static void half_made_and_foreign_files_do_not_disturb(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	char *half = path_of(state, "20260101000000000"), *other = path_of(state, "README");
	tempdir_write(half, "");
	tempdir_write(other, "hello");
	o.read_only = true;
	struct index *ix = open_ok(&o, NULL);
	index_close(ix, NULL);
	assert_int_equal(access(half, F_OK), 0);
	o.read_only = false;
	ix = open_ok(&o, &l);
	assert_int_equal(access(half, F_OK), -1);
	assert_int_equal(access(other, F_OK), 0);
	fill(&l, 5);
	put_all(ix, &l, 0);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	free(half), free(other), free(l.r);
}

static void other_sizes_are_refused_with_what_to_do(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	struct mq_error e;
	fill(&l, 5);
	put_all(ix, &l, 0);
	index_close(ix, NULL);
	o.slots = 51;
	assert_int_equal(index_open(&ix, &o, &e), MQ_EMISMATCH);
	assert_null(ix);
	assert_non_null(strstr(e.text, "maxHashSlotNum=51"));
	o.slots = 55, o.entries = 39; /* the same number of bytes */
	assert_int_equal(index_open(&ix, &o, &e), MQ_EMISMATCH);
	o.adopt_sizes = true;
	ix = open_ok(&o, &l);
	tend_until_whole(ix);
	fill(&l, 5);
	put_all(ix, &l, 5);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	o.slots = 0;
	assert_int_equal(index_open(&ix, &o, &e), MQ_EINVAL);
	o.slots = 600000000;
	assert_int_equal(index_open(&ix, &o, &e), MQ_EINVAL);
	free(l.r);
}

static void a_reader_sees_what_the_writer_does_and_changes_nothing(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l), r = o;
	struct index *ix = open_ok(&o, &l), *ro;
	r.read_only = true;
	fill(&l, 3);
	put_all(ix, &l, 0);
	index_tend(ix);
	ro = open_ok(&r, NULL);
	assert_whole(ro, &l);
	fill(&l, 3);
	put_all(ix, &l, 3);
	index_tend(ix);
	assert_whole(ro, &l); /* the same file: no refresh needed */
	fill(&l, 100);
	put_all(ix, &l, 6);
	index_tend(ix);
	assert_int_equal(index_refresh(ro), 0);
	assert_whole(ro, &l);
	index_trim(ix, 5000);
	assert_int_equal(index_refresh(ro), 0);
	assert_true(query(ro, "T", "k105").n == 1);
	uint64_t before = golden_fingerprint(*state);
	index_close(ro, NULL);
	assert_true(golden_fingerprint(*state) == before);
	index_close(ix, NULL);
	free(l.r);
}

/* ---- Crashes ------------------------------------------------------------------------------------------------------------- */

static void copy_dir(const char *from, const char *to)
{
	char **names, *p;
	size_t n, bytes;
	sys_remove_tree(to);
	sys.mkdir(to, 0755);
	if (sys_list(from, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		char *a = mem_printf("%s/%s", from, names[i]), *b = mem_printf("%s/%s", to, names[i]);
		if (sys_read_file(a, 1 << 20, &p, &bytes) < 0)
			fail_msg("cannot read '%s'", a);
		int fd = sys.open(b, O_WRONLY | O_CREAT, 0644);
		assert_int_equal(sys_write_all(fd, p, bytes, 0), 0);
		sys.close(fd);
		free(p), free(a), free(b);
	}
	free(names);
}

static struct index_opt after_crash(const char *dir, struct log *l)
{
	struct index_opt o = small(dir, l);
	o.abnormal = true;
	return o;
}

/* What a killed process leaves is what its pages hold: a copy of the files, taken at any moment. */
static void a_killed_process_leaves_nothing_unindexed(void **state)
{
	struct log l = { 0 };
	char *live = path_of(state, "live"), *dead = path_of(state, "dead");
	struct index_opt o = small(live, &l), d = after_crash(dead, &l);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 60; i++) {
		size_t was = l.n;
		fill(&l, 1 + i % 5);
		put_all(ix, &l, was);
		if (i % 3 == 0)
			index_tend(ix);
		copy_dir(live, dead);
		struct index *again = open_ok(&d, &l);
		tend_until_whole(again);
		assert_whole(again, &l);
		index_close(again, NULL);
	}
	index_close(ix, NULL);
	free(live), free(dead), free(l.r);
}

static void write_at(const char *path, size_t at, const void *p, size_t n)
{
	FILE *f = fopen(path, "r+");
	if (f == NULL || fseek(f, (long)at, SEEK_SET) || fwrite(p, 1, n, f) != n || fclose(f))
		fail_msg("cannot damage '%s'", path);
}

/* A power cut leaves any mixture of old and new blocks: here blocks of 64 bytes of any file are old (that is, zero). */
static void a_power_cut_leaves_nothing_unindexed(void **state)
{
	struct log l = { 0 };
	char *whole = path_of(state, "whole"), *torn = path_of(state, "torn"), **names;
	struct index_opt o = small(whole, &l), d = after_crash(torn, &l);
	struct index *ix = open_ok(&o, &l);
	static const char zero[64];
	unsigned seed = 11;
	size_t n;
	fill(&l, 40);
	put_all(ix, &l, 0);
	index_close(ix, NULL);
	assert_int_equal(sys_list(whole, &names, &n), 0);
	assert_true(n >= 3);
	for (int round = 0; round < 150; round++) {
		copy_dir(whole, torn);
		for (int k = 0; k < 1 + round % 4; k++) {
			char *path = mem_printf("%s/%s", torn, names[(size_t)rand_r(&seed) % n]);
			size_t bytes = (size_t)index_file_bytes(50, 40), at = (size_t)rand_r(&seed) % (bytes / 64) * 64;
			if (k == 0 && round % 3 == 0)
				at = 0; /* the header */
			write_at(path, at, zero, 64);
			free(path);
		}
		ix = open_ok(&d, &l);
		tend_until_whole(ix);
		assert_whole(ix, &l);
		index_close(ix, NULL);
	}
	free(names), free(whole), free(torn), free(l.r);
}

static void damage_never_leads_out_of_the_file(void **state)
{
	struct log l = { 0 };
	char *whole = path_of(state, "whole"), *torn = path_of(state, "torn"), **names;
	struct index_opt o = small(whole, &l), d = after_crash(torn, &l);
	struct index *ix = open_ok(&o, &l);
	unsigned seed = 5;
	size_t n;
	fill(&l, 40);
	put_all(ix, &l, 0);
	index_close(ix, NULL);
	assert_int_equal(sys_list(whole, &names, &n), 0);
	for (int round = 0; round < 600; round++) {
		copy_dir(whole, torn);
		for (int k = 0; k < 20; k++) {
			char *path = mem_printf("%s/%s", torn, names[(size_t)rand_r(&seed) % n]);
			size_t bytes = (size_t)index_file_bytes(50, 40);
			uint8_t junk[4] = { (uint8_t)(rand_r(&seed) % 3 ? 0xff : rand_r(&seed)), (uint8_t)rand_r(&seed), 0, (uint8_t)rand_r(&seed) };
			write_at(path, (size_t)rand_r(&seed) % (round % 2 ? 40 : bytes - 4), junk, 4);
			free(path);
		}
		d.read_only = round % 3 == 0;
		d.abnormal = round % 3 == 1;
		if (index_open(&ix, &d, NULL) < 0)
			continue; /* a layout that cannot be true */
		if (!d.read_only)
			index_log(ix, 0, l.end, NULL);
		index_tend(ix);
		for (size_t i = 0; i < l.n; i++)
			assert_true(query(ix, l.r[i].topic, l.r[i].uniq).n <= 1000);
		index_close(ix, NULL);
	}
	free(names), free(whole), free(torn), free(l.r);
}

static void what_points_beyond_the_end_of_the_log_is_taken_back(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	for (size_t keep = 0; keep <= 60; keep += 3) {
		l.n = 0, l.end = 0;
		sys_remove_tree(*state);
		struct index *ix = open_ok(&o, &l);
		fill(&l, 60);
		put_all(ix, &l, 0);
		index_close(ix, NULL);

		l.n = keep;
		l.end = (int64_t)keep * 100;
		o.abnormal = true;
		ix = open_ok(&o, &l);
		tend_until_whole(ix);
		o.abnormal = false;
		for (size_t i = 0; i < 20; i++) /* other messages at the same offsets */
			add(&l, "New", "", "new", 1900000000000);
		put_all(ix, &l, keep);
		assert_whole(ix, &l);
		assert_int_equal(query(ix, "New", "new").n, 20);
		assert_int_equal(query(ix, "T", "all").n + query(ix, "U", "all").n, keep);
		assert_int_equal(index_close(ix, NULL), 0);
	}
	free(l.r);
}

static void a_store_that_was_run_without_index_gets_one(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	fill(&l, 9000);
	struct index *ix = open_ok(&o, &l);
	assert_true(index_behind(ix) >= 0 && index_behind(ix) < 9000 * 100);
	/* Puts go on meanwhile, and help. */
	size_t was = l.n;
	fill(&l, 100);
	put_all(ix, &l, was);
	assert_true(index_behind(ix) > 0);
	tend_until_whole(ix);
	assert_true(query(ix, l.r[0].topic, "id-0").n == 1);
	assert_true(query(ix, l.r[9099].topic, "id-9099").n == 1);
	assert_int_equal(query(ix, "T", "all").n + query(ix, "U", "all").n, 2000); /* capped by the test */
	index_close(ix, NULL);
	free(l.r);
}

static void puts_alone_catch_up_though_nobody_tends(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	fill(&l, 500);
	struct index *ix = open_ok(&o, &l);
	for (int i = 0; i < 600 && index_behind(ix) >= 0; i++) {
		fill(&l, 1);
		put_all(ix, &l, l.n - 1);
	}
	assert_int_equal(index_behind(ix), -1);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	free(l.r);
}

/* ---- Disks that are full or refuse ----------------------------------------------------------------------------------------- */

static int refuse;          /* -errno for every reservation; 0 = works */
static int allow;           /* so many reservations work before that */
static int refuse_open;     /* -errno for every file that would be made */
static int limited_fallocate(int fd, off_t off, off_t n) 
{
	return refuse && allow-- <= 0 ? refuse : sys_real.fallocate(fd, off, n);
}
static int limited_open(const char *path, int flags, mode_t mode)
{
	return refuse_open && (flags & O_CREAT) ? refuse_open : sys_real.open(path, flags, mode);
}

static void a_full_disk_leaves_the_index_behind_and_sends_go_on(void **state)
{
	for (size_t first = 0; first < 130; first += 3) {
		struct log l = { 0 };
		struct index_opt o = small(*state, &l);
		sys_remove_tree(*state);
		struct index *ix = open_ok(&o, &l);
		fill(&l, (int)first);
		put_all(ix, &l, 0);
		sys.fallocate = limited_fallocate;
		refuse = -ENOSPC;
		lines = 0;
		size_t files = files_in(*state);
		for (int i = 0; i < 200; i++) {
			fill(&l, 1);
			put_all(ix, &l, l.n - 1);
			index_tend(ix);
		}
		assert_true(index_behind(ix) >= 0);
		assert_int_equal(lines, 1);
		assert_non_null(strstr(last_line, mq_strerror(-ENOSPC)));
		assert_true(files_in(*state) <= files + 1);
		/* Nothing of a record that is not wholly in: behind is exact. */
		assert_true(index_behind(ix) <= l.end && index_behind(ix) % 100 == 0);
		refuse = 0;
		tend_until_whole(ix);
		sys.fallocate = sys_real.fallocate, sys.open = sys_real.open;
		assert_whole(ix, &l);
		index_close(ix, NULL);
		free(l.r);
	}
}

/* Slots get their blocks 128 KiB at a time: the disk may be full at any of them, or at the entries. */
static void a_disk_may_be_full_at_any_reservation(void **state)
{
	int behind = 0;
	for (int n = 0; n < 40; n++) {
		struct log l = { 0 };
		struct index_opt o = small(*state, &l);
		o.slots = 200000;
		o.entries = 300;
		sys_remove_tree(*state);
		sys.fallocate = limited_fallocate;
		refuse = -ENOSPC;
		allow = n;
		struct index *ix = open_ok(&o, &l);
		for (int i = 0; i < 30; i++) {
			fill(&l, 10);
			put_all(ix, &l, l.n - 10);
			index_tend(ix);
		}
		behind += index_behind(ix) >= 0;
		refuse = 0;
		tend_until_whole(ix);
		assert_whole(ix, &l);
		index_close(ix, NULL);
		sys.fallocate = sys_real.fallocate;
		free(l.r);
	}
	assert_true(behind > 20);
}

static void a_directory_that_refuses_files_is_tried_again(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	fill(&l, 10);
	put_all(ix, &l, 0);
	index_tend(ix);
	sys.open = limited_open;
	refuse_open = -EACCES;
	lines = 0;
	fill(&l, 300);
	put_all(ix, &l, 10);
	index_tend(ix);
	assert_true(index_behind(ix) > 0);
	assert_int_equal(lines, 1);
	assert_int_equal(query(ix, l.r[3].topic, "id-3").n, 1); /* what is in is found */
	refuse_open = 0;
	tend_until_whole(ix);
	sys.fallocate = sys_real.fallocate, sys.open = sys_real.open;
	assert_whole(ix, &l);
	index_close(ix, NULL);
	free(l.r);
}

static void a_file_system_that_cannot_reserve_is_written_ahead(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	sys.fallocate = limited_fallocate;
	refuse = -EOPNOTSUPP;
	struct index *ix = open_ok(&o, &l);
	fill(&l, 50);
	put_all(ix, &l, 0);
	index_close(ix, NULL);
	ix = open_ok(&o, &l); /* reserving in a file that has content keeps the content */
	tend_until_whole(ix);
	fill(&l, 50);
	put_all(ix, &l, 50);
	assert_whole(ix, &l);
	index_close(ix, NULL);
	refuse = 0;
	sys.fallocate = sys_real.fallocate, sys.open = sys_real.open;
	free(l.r);
}

static void run_once(const char *dir, struct log *l, bool abnormal)
{
	struct index_opt o = small(dir, l);
	struct index *ix;
	struct index_flush job;
	o.abnormal = abnormal;
	if (index_open(&ix, &o, NULL) < 0)
		return;
	index_log(ix, 0, l->end, NULL);
	index_tend(ix);
	size_t was = l->n;
	fill(l, 30);
	put_all(ix, l, was);
	index_tend(ix);
	if (index_flush_begin(ix, true, &job) > 0) {
		index_flush_run(&job);
		index_flush_end(ix, &job, NULL);
	}
	index_close(ix, NULL);
}

/* Each call of the system fails once, or is the last one before a crash: afterwards the index mends itself. */
static void any_call_may_fail(void **state)
{
	static const struct { enum fault_kind kind; int error; } ways[] = {
		{ FAULT_ONCE, EIO }, { FAULT_ONCE, ENOSPC }, { FAULT_CRASH, EIO }, { FAULT_CRASH, ENOSPC }, { FAULT_TORN, EIO }, { FAULT_SHORT, 0 },
	};
	int tried = 0;
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		bool fired = true;
		for (int n = 1; fired; n++) {
			struct log l = { 0 };
			sys_remove_tree(*state);
			run_once(*state, &l, false);
			fault_set(n, ways[w].error, ways[w].kind);
			run_once(*state, &l, false);
			fired = fault_fired();
			fault_off();
			struct index_opt o = after_crash(*state, &l);
			struct index *ix = open_ok(&o, &l);
			tend_until_whole(ix);
			assert_whole(ix, &l);
			index_close(ix, NULL);
			free(l.r);
			tried++;
		}
	}
	assert_true(tried > 60);
}

static void a_failed_sync_is_told(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	struct index_flush job;
	struct mq_error e;
	assert_int_equal(index_flush_begin(ix, true, &job), 0);
	fill(&l, 5);
	put_all(ix, &l, 0);
	assert_int_equal(index_flush_begin(ix, true, &job), 1);
	fault_set(1, EIO, FAULT_ONCE);
	index_flush_run(&job);
	fault_off();
	assert_int_equal(index_flush_end(ix, &job, &e), -EIO);
	assert_non_null(strstr(e.text, "sync index files"));
	index_close(ix, NULL);
	free(l.r);
}

static void full_files_are_flushed_and_the_checkpoint_time_follows(void **state)
{
	struct log l = { 0 };
	struct index_opt o = small(*state, &l);
	struct index *ix = open_ok(&o, &l);
	struct index_flush job;
	for (int i = 0; i < 100; i++)
		add(&l, "T", "", "k", 1800000000000 + i);
	put_all(ix, &l, 0);
	index_tend(ix);
	assert_int_equal(index_flush_begin(ix, false, &job), 2);
	assert_int_equal(index_flushed_ms(ix), 0);
	index_trim(ix, 3950); /* not while its descriptor is with the job */
	assert_int_equal(files_in(*state), 3);
	index_flush_run(&job);
	assert_int_equal(index_flush_end(ix, &job, NULL), 0);
	assert_int_equal(index_flushed_ms(ix), 1800000000077);
	assert_int_equal(index_flush_begin(ix, false, &job), 0);
	index_trim(ix, 3950);
	assert_int_equal(files_in(*state), 2);
	index_close(ix, NULL);

	/* After a crash the file that the checkpoint covers is not read through. */
	o.abnormal = true;
	o.checkpoint_ms = 1800000000077;
	ix = open_ok(&o, &l);
	assert_int_equal(index_flushed_ms(ix), 1800000000077);
	index_close(ix, NULL);
	free(l.r);
}

#define IN_A_DIRECTORY(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)

static int no_sync(int fd) { return 0; }

int main(void)
{
	/* What a power cut leaves is made by hand here; syncing would only take time. */
	sys.fdatasync = no_sync;
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	clock_cached_mono_ms = 1000;
	log_to(count_lines, NULL);
	const struct CMUnitTest tests[] = {
		IN_A_DIRECTORY(queries_of_the_peers_files_give_what_the_peer_gave),
		IN_A_DIRECTORY(the_same_puts_make_the_same_bytes),
		IN_A_DIRECTORY(what_was_put_is_found_at_once),
		IN_A_DIRECTORY(hits_come_newest_first_until_enough),
		IN_A_DIRECTORY(keys_with_one_hash_are_all_candidates),
		IN_A_DIRECTORY(the_smallest_hash_goes_to_slot_0),
		IN_A_DIRECTORY(times_are_found_to_the_millisecond_though_entries_know_seconds),
		IN_A_DIRECTORY(a_pause_before_a_new_file_does_not_move_its_first_entry),
		IN_A_DIRECTORY(an_orderly_stop_and_start_loses_and_doubles_nothing),
		IN_A_DIRECTORY(a_store_with_few_messages_stays_small),
		IN_A_DIRECTORY(a_file_made_ahead_is_removed_if_it_was_not_used),
		IN_A_DIRECTORY(files_keep_their_order_when_the_clock_is_set_back),
		IN_A_DIRECTORY(trim_removes_what_lies_before_the_log),
		IN_A_DIRECTORY(half_made_and_foreign_files_do_not_disturb),
		IN_A_DIRECTORY(other_sizes_are_refused_with_what_to_do),
		IN_A_DIRECTORY(a_reader_sees_what_the_writer_does_and_changes_nothing),
		IN_A_DIRECTORY(a_killed_process_leaves_nothing_unindexed),
		IN_A_DIRECTORY(a_power_cut_leaves_nothing_unindexed),
		IN_A_DIRECTORY(damage_never_leads_out_of_the_file),
		IN_A_DIRECTORY(what_points_beyond_the_end_of_the_log_is_taken_back),
		IN_A_DIRECTORY(a_store_that_was_run_without_index_gets_one),
		IN_A_DIRECTORY(puts_alone_catch_up_though_nobody_tends),
		IN_A_DIRECTORY(a_full_disk_leaves_the_index_behind_and_sends_go_on),
		IN_A_DIRECTORY(a_disk_may_be_full_at_any_reservation),
		IN_A_DIRECTORY(a_directory_that_refuses_files_is_tried_again),
		IN_A_DIRECTORY(a_file_system_that_cannot_reserve_is_written_ahead),
		IN_A_DIRECTORY(any_call_may_fail),
		IN_A_DIRECTORY(a_failed_sync_is_told),
		IN_A_DIRECTORY(full_files_are_flushed_and_the_checkpoint_time_follows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
