/* fuzz_input: covers bin/frame_in.c, compose.c, compose_json.c, userprop.c, bytes.c: what mq-send reads.  The first byte: the
 * framing (-l -0 -w -B -J), times 5 how it comes in pieces; the second the longest record.  A stream cut otherwise gives the same
 * records.  Seeds: seeds/input. */
#include "lab.h"
#include "../../bin/compose.h"
#include "codec/property.h"

#include <stdlib.h>
#include <string.h>

struct got {
	uint64_t hash;
	int64_t records, torn, too_long;
};

static void note(struct got *g, enum frame_got what, struct mq_str rec)
{
	g->hash = g->hash * 1000003 + (uint64_t)what;
	if (what == FRAME_RECORD) {
		g->records++;
		for (size_t i = 0; i < rec.n; i++)
			g->hash = g->hash * 31 + (uint8_t)rec.p[i];
		g->hash = g->hash * 1000003 + rec.n;
	}
}

static void composed(struct compose *c, enum frame_mode mode, struct mq_str rec)
{
	struct mq_error e = { 0 };
	struct composed out;
	struct mq_str name, value;
	size_t pos = 0;
	int rc = compose_record(c, mode, rec, "0123456789ABCDEF0123456789ABCDEF", &out, &e);

	if (rc == COMPOSE_EMPTY)
		return;
	if (rc < 0) {
		LAB_CHECK(e.text[0] && (rc == MQ_EINVAL || rc == MQ_ETOOBIG));
		return;
	}
	LAB_CHECK(out.m.body.n > 0 && out.m.body.n <= c->max_body);
	LAB_CHECK(strlen(out.broker) < sizeof(out.broker) && out.m.queue_id >= -1);
	/* No property that nobody gave. */
	while (mq_prop_next(out.m.props, &pos, &name, &value))
		LAB_CHECK(!memchr(value.p, 1, value.n) && name.n > 0);
}

static void read_all(enum frame_mode mode, size_t max, size_t piece, const uint8_t *p, size_t n, struct compose *c, struct got *g)
{
	struct frame_in f;
	struct mq_str rec;
	size_t room, at = 0;
	char *to;

	memset(g, 0, sizeof(*g));
	frame_in_init(&f, mode, max);
	for (;;) {
		enum frame_got what = frame_in_next(&f, &rec);

		LAB_CHECK(f.number >= 0 && f.offset >= 0 && (uint64_t)f.offset <= n);
		if (what == FRAME_MORE) {
			to = frame_in_room(&f, &room);
			LAB_CHECK(room > 0);
			if (room > piece)
				room = piece;
			if (room > n - at)
				room = n - at;
			if (room) {
				memcpy(to, p + at, room);
				frame_in_fed(&f, room);
				at += room;
			} else {
				frame_in_eof(&f);
			}
			continue;
		}
		note(g, what, rec);
		if (what == FRAME_END)
			break;
		if (what == FRAME_RECORD) {
			LAB_CHECK(rec.n <= max);
			if (c)
				composed(c, mode, rec);
		}
	}
	LAB_CHECK(at == n || mode == FRAME_LENGTH);
	frame_in_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const size_t longest[] = { 4 << 20, 0, 1, 16, 100 };
	struct compose c;
	struct got whole, pieces;
	enum frame_mode mode;
	struct mq_error e;
	size_t max;

	if (n < 2)
		return 0;
	mode = (enum frame_mode)(p[0] % 5);
	max = longest[p[1] % 5];
	compose_init(&c);
	c.max_body = max ? max : 1;
	if (p[1] & 64)
		c.topic = MQ_STR("T");
	if (p[1] & 128) {
		c.key_delim = MQ_STR("::");
		compose_key(&c, "key", &e);
		compose_tag(&c, "tag", &e);
		compose_property(&c, "a=b", &e);
	}
	read_all(mode, max, n, p + 2, n - 2, &c, &whole);
	read_all(mode, max, 1 + p[0] / 5u, p + 2, n - 2, NULL, &pieces);
	LAB_CHECK(whole.records == pieces.records && (mode == FRAME_WHOLE || whole.hash == pieces.hash));
	compose_free(&c);
	return 0;
}
