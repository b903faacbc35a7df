/* controller_event.c: events and the whole state as bytes, for the log that controllers share. */
#include "controller.h"
#include <base/byte.h>
#include <base/str.h>

enum { FORMAT = 1 };

static void put_u8(struct buf *b, uint8_t v)
{
	buf_char(b, (char)v);
}

static void put_u32(struct buf *b, uint32_t v)
{
	put_be32(buf_room(b, 4), v);
	b->n += 4;
}

static void put_u64(struct buf *b, uint64_t v)
{
	put_be64(buf_room(b, 8), v);
	b->n += 8;
}

static void put_text(struct buf *b, struct mq_str s)
{
	size_t n = s.n < CONTROLLER_TEXT_MAX ? s.n : CONTROLLER_TEXT_MAX;

	put_be16(buf_room(b, 2), (uint16_t)n);
	b->n += 2;
	buf_put(b, s.p, n);
}

static struct mq_str get_text(struct cursor *c)
{
	struct mq_str s = cursor_str(c, cursor_u16(c));

	c->bad |= s.n && memchr(s.p, '\0', s.n);
	return s;
}

static void put_set(struct buf *b, const struct body_sync_set *s)
{
	put_u32(b, (uint32_t)s->epoch);
	put_u8(b, (uint8_t)s->n);
	for (size_t i = 0; i < s->n; i++)
		put_u64(b, (uint64_t)s->id[i]);
}

static void get_set(struct cursor *c, struct body_sync_set *s)
{
	size_t n;

	s->epoch = (int32_t)cursor_u32(c);
	n = cursor_u8(c);
	c->bad |= n > SYNC_SET_MAX;
	for (s->n = 0; s->n < n && !c->bad; s->n++)
		s->id[s->n] = (int64_t)cursor_u64(c);
}

void controller_event_encode(const struct controller_event *e, struct buf *out)
{
	put_u8(out, FORMAT);
	put_u8(out, (uint8_t)e->kind);
	put_text(out, e->cluster);
	put_text(out, e->name);
	put_text(out, e->addr);
	put_text(out, e->check);
	put_u64(out, (uint64_t)e->id);
	put_set(out, &e->set);
}

int controller_event_decode(struct mq_str bytes, struct controller_event *e)
{
	struct cursor c = cursor_of(bytes.p, bytes.n);
	uint8_t format = cursor_u8(&c), kind = cursor_u8(&c);

	*e = (struct controller_event){ .kind = (enum controller_kind)kind };
	e->cluster = get_text(&c);
	e->name = get_text(&c);
	e->addr = get_text(&c);
	e->check = get_text(&c);
	e->id = (int64_t)cursor_u64(&c);
	get_set(&c, &e->set);
	/* The log may pad what it keeps. */
	return c.bad || format != FORMAT || kind < CONTROLLER_APPLY_ID || kind > CONTROLLER_CLEAN ? MQ_ECORRUPT : 0;
}

void controller_save(const struct controller *c, struct buf *out)
{
	const struct controller_group *g;
	uint32_t n = 0;

	while (controller_group_at(c, n))
		n++;
	put_u8(out, FORMAT);
	put_u32(out, n);
	for (uint32_t i = 0; (g = controller_group_at(c, i)); i++) {
		put_text(out, str_of(g->cluster));
		put_text(out, str_of(g->name));
		put_u64(out, (uint64_t)g->next_id);
		put_u64(out, (uint64_t)g->master);
		put_u32(out, (uint32_t)g->master_epoch);
		put_set(out, &g->sync);
		put_u32(out, (uint32_t)g->n);
		for (size_t k = 0; k < g->n; k++) {
			put_u64(out, (uint64_t)g->v[k].id);
			put_text(out, str_of(g->v[k].addr));
			put_text(out, str_of(g->v[k].check));
		}
	}
}

int controller_load(struct controller *c, struct mq_str bytes)
{
	struct cursor at = cursor_of(bytes.p, bytes.n);
	struct controller *fresh = controller_new();
	uint8_t format = cursor_u8(&at);
	uint32_t n = cursor_u32(&at);
	int rc;

	for (uint32_t i = 0; i < n && !at.bad; i++) {
		struct mq_str cluster = get_text(&at), name = get_text(&at);
		struct controller_group *g;
		uint32_t replicas;

		if (at.bad || controller_group(fresh, name)) {
			at.bad = true;
			break;
		}
		g = controller_add_group(fresh, cluster, name);
		g->next_id = (int64_t)cursor_u64(&at);
		g->master = (int64_t)cursor_u64(&at);
		g->master_epoch = (int32_t)cursor_u32(&at);
		get_set(&at, &g->sync);
		replicas = cursor_u32(&at);
		at.bad |= replicas > SYNC_SET_MAX;
		for (uint32_t k = 0; k < replicas && !at.bad; k++) {
			int64_t id = (int64_t)cursor_u64(&at);
			struct mq_str addr = get_text(&at), check = get_text(&at);

			at.bad |= controller_addr(g, id) != NULL;
			if (!at.bad)
				controller_add_replica(g, id, addr, check);
		}
	}
	rc = at.bad || format != FORMAT ? MQ_ECORRUPT : 0;
	if (rc == 0)
		controller_swap(c, fresh);
	controller_free(fresh);
	return rc;
}
