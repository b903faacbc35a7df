/* check_index.c: does the index name the keys of the log, and nothing else, and do its chains hold together?
 *
 * Entries come in the order of the log, so the two are read side by side.  A record may be entered twice (compat: the peer does
 * that after a crash). */
#include "check.h"
#include "../base/byte.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../codec/property.h"
#include "index.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEYS_MAX = 256 };

struct entry {
	int32_t hash, seconds, previous;
	int64_t log_off;
};

static const uint8_t *entry_at(const struct index_file *x, int32_t i)
{
	return x->map + INDEX_HEADER + (size_t)x->slots * INDEX_SLOT + (size_t)i * INDEX_ENTRY;
}

static void read_entry(const struct index_file *x, int32_t i, struct entry *e)
{
	const uint8_t *p = entry_at(x, i);

	e->hash = (int32_t)be32(p);
	e->log_off = (int64_t)be64(p + 4);
	e->seconds = (int32_t)be32(p + 12);
	e->previous = (int32_t)be32(p + 16);
}

/* The file of the next entry, or NULL behind the last. */
static struct index_file *here(struct check *c)
{
	while (c->index.file < c->f->index.n) {
		struct index_file *x = c->f->index.v[c->index.file];

		if (c->index.i < x->count)
			return x;
		c->index.file++;
		c->index.i = 1;
	}
	return NULL;
}

static void note_wrong(struct check *c, int64_t off)
{
	if (check_on_damage(c, off)) {
		c->index.lost++;
		return;
	}
	if (c->index.wrong++ == 0)
		c->index.wrong_from = off;
	c->index.wrong_to = off + 1;
}

/* ---- Beside the log -------------------------------------------------------------------------------------------------------- */

static int32_t hash_of(struct check *c, struct mq_str topic, struct mq_str key)
{
	int32_t h;

	if (!str_eq(topic, c->index.topic)) {
		c->index.topic_hash = index_topic_hash(topic);
		c->index.topic = (struct mq_str){ c->index.topic_copy, topic.n < 256 ? topic.n : 0 };
		memcpy(c->index.topic_copy, topic.p, c->index.topic.n);
	}
	h = str_java_hash_more(c->index.topic_hash, key);
	return h == INT32_MIN ? 0 : h < 0 ? -h : h;
}

static int keys_of(struct check *c, const struct mq_message *m, int32_t *hash)
{
	struct property_scan props;
	struct mq_str word;
	int n = 0;

	if ((m->sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_ROLLBACK)
		return 0;
	property_scan(m->props, &props);
	if (props.uniq_key.n)
		hash[n++] = hash_of(c, m->topic, props.uniq_key);
	while (props.keys.n && n < KEYS_MAX && str_split(&props.keys, ' ', &word))
		if (word.n)
			hash[n++] = hash_of(c, m->topic, word);
	return n;
}

static bool seconds_fit(const struct index_file *x, int32_t i, int32_t seconds, int64_t ms)
{
	int64_t want = (ms - x->begin_ms) / 1000;

	/* compat: the first one counts from the file before. */
	return i == 1 ? seconds >= 0 : ms < x->begin_ms ? seconds == 0 : seconds == (want > INT32_MAX ? INT32_MAX : want);
}

/* Record without its entries: part of the run of such, which is told when one comes that has them. */
static void note_lack(struct check *c, const struct mq_message *m)
{
	if (c->index.lacks++ == 0)
		c->index.lacks_from = m->log_off;
	c->index.lacks_to = m->log_off + m->size;
}

static void tell_lack(struct check *c, bool at_end)
{
	struct mqstore_finding f = {
		.grade = at_end && c->f->in_use ? MQSTORE_NOTE : MQSTORE_DAMAGE, .kind = "index-missing", .from = c->index.lacks_from,
		.to = c->index.lacks_to, .count = c->index.lacks, .mendable = true,
	};

	if (c->index.lacks == 0)
		return;
	c->index.lacks = 0;
	c->index_bad |= f.grade == MQSTORE_DAMAGE;
	check_tell(c, f, at_end && c->f->in_use ? "messages that are not in the index yet" :
		   "messages are not in the index: they are not found by key");
}

void check_index_record(struct check *c, const struct mq_message *m)
{
	int32_t hash[KEYS_MAX + 1];
	bool have[KEYS_MAX + 1] = { false };
	struct index_file *x;
	struct entry e;
	int n, found = 0;

	if (c->f->index.n == 0)
		return;
	n = keys_of(c, m, hash);
	while ((x = here(c))) {
		int k = 0;

		read_entry(x, c->index.i, &e);
		if (e.log_off > m->log_off)
			break;
		if (e.log_off == m->log_off) {
			while (k < n && hash[k] != e.hash)
				k++;
			if (k < n) {
				found += !have[k];
				have[k] = true;
				/* One word twice is entered twice. */
				for (int j = k + 1; j < n; j++)
					if (hash[j] == e.hash && !have[j]) {
						found++;
						have[j] = true;
					}
				c->index.seen++;
				c->index.seconds += !seconds_fit(x, c->index.i, e.seconds, m->store_ms);
			}
		}
		if ((e.log_off < m->log_off && e.log_off >= segments_min(&c->f->log.run)) || (e.log_off == m->log_off && k == n))
			note_wrong(c, e.log_off);
		c->index.i++;
		c->sum->index_entries++;
	}
	if (found < n)
		note_lack(c, m);
	else if (n > 0)
		tell_lack(c, false);
}

/* ---- Each file by itself ------------------------------------------------------------------------------------------------ */

static void check_chains(struct check *c, const struct index_file *x)
{
	int32_t *newest = mem_alloc((size_t)x->slots * sizeof(*newest)), used = 0;
	const uint8_t *slots = x->map + INDEX_HEADER;
	int64_t links = 0, wrong_slots = 0;
	char file[64];
	struct mqstore_finding f = {
		.grade = c->f->in_use ? MQSTORE_NOTE : MQSTORE_DAMAGE, .kind = "index-links", .file = file, .from = 1, .to = x->count,
		.mendable = true,
	};
	struct entry e;

	snprintf(file, sizeof(file), "index/%s", strrchr(x->path, '/') + 1);
	for (int32_t i = 1; i < x->count; i++) {
		int32_t s;

		read_entry(x, i, &e);
		if (e.hash < 0) {
			links++;
			continue;
		}
		s = e.hash % x->slots;
		links += e.previous != newest[s];
		used += newest[s] == 0;
		newest[s] = i;
	}
	for (int32_t s = 0; s < x->slots; s++)
		wrong_slots += (int32_t)be32(slots + (size_t)s * INDEX_SLOT) != newest[s];
	free(newest);
	f.count = links + wrong_slots;
	if (f.count) {
		c->index_bad |= f.grade == MQSTORE_DAMAGE;
		check_tell(c, f, "%lld links between entries and %lld slots are wrong: keys are not found", (long long)links,
			   (long long)wrong_slots);
	}
	f.kind = "index-head";
	f.count = 0;
	if (x->count > 1) {
		read_entry(x, 1, &e);
		f.count += e.log_off != x->begin_off;
		read_entry(x, x->count - 1, &e);
		f.count += e.log_off != x->end_off;
	}
	if (f.count) {
		c->index_bad |= f.grade == MQSTORE_DAMAGE;
		check_tell(c, f, "the head does not name the first and the last entry");
	}
	if (used != x->used_slots) {
		f.grade = MQSTORE_NOTE;
		check_tell(c, f, "the head counts %d used slots, there are %d", (int)x->used_slots, (int)used);
	}
}

void check_index_end(struct check *c)
{
	struct mqstore_finding f = { .mendable = true };
	int64_t beyond = 0, first = 0;
	struct index_file *x;
	struct entry e;

	if (c->f->index.n == 0) {
		if (c->sum->records)
			check_tell(c, (struct mqstore_finding){ .kind = "no-index" }, "there is no index: nothing is found by key");
		return;
	}
	for (; (x = here(c)); c->index.i++) {
		read_entry(x, c->index.i, &e);
		c->sum->index_entries++;
		if (e.log_off >= c->end && beyond++ == 0)
			first = e.log_off;
		if (e.log_off < c->end && e.log_off >= segments_min(&c->f->log.run))
			note_wrong(c, e.log_off);
	}
	tell_lack(c, true);
	f.grade = c->f->in_use ? MQSTORE_NOTE : c->beyond || c->stretches_n ? MQSTORE_FOLLOWS : MQSTORE_DAMAGE;
	if (beyond) {
		f.kind = "index-beyond";
		f.from = f.to = first;
		f.count = beyond;
		check_tell(c, f, "entries point at or beyond the end of the log: a start takes them back");
	}
	if (c->index.wrong) {
		f.kind = "index-wrong";
		f.from = c->index.wrong_from;
		f.to = c->index.wrong_to;
		f.count = c->index.wrong;
		check_tell(c, f, "entries point at no message with such a key");
		c->index_bad |= !c->f->in_use;
	}
	if (c->index.lost) {
		f = (struct mqstore_finding){ .kind = "index-lost", .count = c->index.lost };
		check_tell(c, f, "entries of damaged messages: they are passed over");
	}
	if (c->index.seconds) {
		check_tell(c, (struct mqstore_finding){ .grade = MQSTORE_DAMAGE, .kind = "index-time", .count = c->index.seconds,
							.mendable = true },
			   "entries have another time than their message: a search by time misses them");
		c->index_bad = true;
	}
	for (size_t i = 0; i < c->f->index.n; i++)
		check_chains(c, c->f->index.v[i]);
}
