/* check.c: is a store whole?  Walks the log, shows each record to queues and index, tells what is wrong with log, checkpoint and
 * files. */
#include "check.h"
#include "../base/crc.h"
#include "../base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The property with the checksum of the record before it: name 0x01 ten digits, least significant first, 0x02. */
enum { CRC_PROPERTY = 20, CRC_NAME = 9, CRC_DIGITS = 10 };

void check_tell(struct check *c, struct mqstore_finding f, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f.text = text;
	if (!f.file)
		f.file = "";
	if (f.topic.n == 0)
		f.queue_id = -1;
	c->sum->notes += f.grade == MQSTORE_NOTE;
	c->sum->follows += f.grade == MQSTORE_FOLLOWS;
	c->sum->damages += f.grade == MQSTORE_DAMAGE;
	if (c->opt && c->opt->finding)
		c->opt->finding(c->opt->arg, &f);
}

static bool property_crc_fits(struct mq_str record, struct mq_str props)
{
	const char *p = props.p + props.n - CRC_PROPERTY;
	uint64_t v = 0;

	if (props.n < CRC_PROPERTY || memcmp(p, "__CRC32#\x01", CRC_NAME) != 0)
		return true;
	for (int i = CRC_DIGITS; i-- > 0;)
		v = v * 10 + (uint64_t)(p[CRC_NAME + i] - '0');
	return v == crc32_peer(record.p, record.n - CRC_PROPERTY);
}

static void keep(struct check *c, const struct mqstore_piece *p)
{
	c->stretches = mem_realloc(c->stretches, (c->stretches_n + 1) * sizeof(*c->stretches));
	c->stretches[c->stretches_n++] = (struct stretch){ p->kind, p->from, p->to };
}

static int on_piece(void *arg, const struct mqstore_piece *p)
{
	struct check *c = arg;

	switch (p->kind) {
	case MQSTORE_RECORD:
		c->sum->records++;
		c->end = p->to;
		c->last_ms = p->m.store_ms;
		if (!property_crc_fits(p->record, p->m.props))
			check_tell(c, (struct mqstore_finding){ .grade = MQSTORE_DAMAGE, .kind = "checksum", .from = p->from, .to = p->to,
								.count = p->bytes },
				   "the message does not match its checksum (__CRC32#); readers that do not look at that get it");
		check_queue_record(c, &p->m);
		check_index_record(c, &p->m);
		break;
	case MQSTORE_BLANK:
		c->end = p->to;
		break;
	case MQSTORE_DAMAGED:
		c->any_damage = true;
		keep(c, p);
		check_tell(c, (struct mqstore_finding){ .grade = MQSTORE_DAMAGE, .kind = "damaged", .from = p->from, .to = p->to,
							.count = p->bytes },
			   "no whole message; readers go on behind it, but the Java broker ends its log here");
		break;
	case MQSTORE_HOLE:
		c->any_damage = true;
		keep(c, p);
		check_tell(c, (struct mqstore_finding){ .grade = MQSTORE_DAMAGE, .kind = "hole", .from = p->from, .to = p->to,
							.count = p->to - p->from },
			   "a segment or its end is missing; readers go on behind it");
		break;
	case MQSTORE_TORN:
		keep(c, p);
		break;
	case MQSTORE_FREE:
		break;
	}
	return 0;
}

bool check_on_damage(const struct check *c, int64_t off)
{
	for (size_t i = 0; i < c->stretches_n; i++)
		if (off >= c->stretches[i].from && off < c->stretches[i].to)
			return true;
	return false;
}

/* Bytes behind the end: what a writer was at when it died, or left from before an earlier end. */
static void tell_torn(struct check *c)
{
	bool died = c->f->abort || c->beyond > 0;

	for (size_t i = 0; i < c->stretches_n; i++) {
		const struct stretch *t = &c->stretches[i];
		struct mqstore_finding f = { .kind = "torn", .from = t->from, .to = t->to, .count = t->to - t->from };

		if (t->kind != MQSTORE_TORN)
			continue;
		f.mendable = true;
		if (c->f->in_use) {
			check_tell(c, f, "bytes behind the last whole message: being written");
		} else if (died) {
			f.grade = MQSTORE_DAMAGE;
			check_tell(c, f, "behind the last whole message stands what is none: a start cuts it");
		} else {
			check_tell(c, f, "old bytes behind the last message: a start leaves them out");
		}
	}
}

static void check_checkpoint(struct check *c)
{
	const struct checkpoint *k = &c->f->check;
	struct mqstore_finding f = {
		/* A broker makes it when it starts and fills it when it flushes for the first time. */
		.grade = c->f->in_use || c->sum->records == 0 ? MQSTORE_NOTE : MQSTORE_DAMAGE, .kind = "checkpoint", .file = "checkpoint",
		.mendable = true,
	};

	if (c->f->check_bytes < 0)
		check_tell(c, f, "missing: a start reads the whole log");
	else if (c->f->check_bytes >= 0 && c->f->check_bytes < CHECKPOINT_CONFIRM + 8)
		check_tell(c, f, "has %lld bytes instead of %d: a start reads the whole log", (long long)c->f->check_bytes,
			   CHECKPOINT_BYTES);
	else if (k->log_ms < 0 || k->queue_ms < 0 || k->index_ms < 0 || k->confirm_off < 0)
		check_tell(c, f, "holds negative numbers");
	if (k->confirm_off > c->end && k->confirm_off < INT64_MAX) {
		f.grade = c->f->in_use ? MQSTORE_NOTE : c->beyond || c->stretches_n ? MQSTORE_FOLLOWS : MQSTORE_DAMAGE;
		check_tell(c, f, "its last message, at %lld, lies behind the end of the log, %lld", (long long)k->confirm_off,
			   (long long)c->end);
	}
}

static void tell_files(struct check *c)
{
	if (c->f->abort && !c->f->in_use)
		check_tell(c, (struct mqstore_finding){ .kind = "unclean", .file = "abort" },
			   "the last stop was not clean: a start looks for the end of the log");
	if (c->f->in_use)
		check_tell(c, (struct mqstore_finding){ .kind = "in-use", .file = "lock" }, "a broker is at work here");
	for (size_t i = 0; i < c->f->misfits_n; i++) {
		const struct misfit *m = &c->f->misfits[i];

		struct mqstore_finding f = {
			.grade = m->harmless || c->f->in_use ? MQSTORE_NOTE : MQSTORE_DAMAGE, .kind = "file", .file = m->path,
		};
		bool index = strncmp(m->path, "index/", 6) == 0;

		f.mendable = !m->harmless && (m->grow || m->queue || index);
		check_tell(c, f, "%s", m->text);
		c->index_bad |= !m->harmless && index;
		if (m->queue && !m->harmless)
			m->queue->bad = 0;
	}
}

int check_run(struct check *c, struct mq_error *err)
{
	int rc;

	*c->sum = (struct mqstore_checked){ 0 };
	c->index.i = 1;
	tell_files(c);
	c->end = segments_min(&c->f->log.run);
	rc = mqstore_files_log(c->f, on_piece, c, err);
	if (rc == 0)
		rc = check_queue_end(c, err);
	if (rc < 0)
		return rc;
	tell_torn(c);
	check_index_end(c);
	check_checkpoint(c);
	return 0;
}

void check_done(struct check *c)
{
	free(c->stretches);
}

int mqstore_files_check(struct mqstore_files *f, const struct mqstore_check_opt *opt, struct mqstore_checked *sum,
			struct mq_error *err)
{
	struct check c = { .f = f, .opt = opt, .sum = sum };
	int rc = check_run(&c, err);

	check_done(&c);
	return rc;
}
