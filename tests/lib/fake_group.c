/* fake_group.c: what a fake broker keeps of groups: offsets, members, locks of queues: see fake.h. */
#include "fake_private.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/body_heartbeat.h"
#include "codec/body_offset.h"
#include "codec/request.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Offsets --------------------------------------------------------------------------------------------------------- */

static struct fake_offset *find_offset(struct fake *f, const char *group, const char *topic, int queue, bool make)
{
	char key[600];

	snprintf(key, sizeof key, "%s@%s@%d", group, topic, queue);
	for (int i = 0; i < f->noffsets; i++)
		if (strcmp(f->offset[i].key, key) == 0)
			return &f->offset[i];
	if (!make)
		return NULL;
	assert(f->noffsets < FAKE_OFFSETS);
	strcpy(f->offset[f->noffsets].key, key);
	f->offset[f->noffsets].off = -1;
	return &f->offset[f->noffsets++];
}

int64_t fake_offset(struct fake *f, const char *group, const char *topic, int queue)
{
	struct fake_offset *o = find_offset(f, group, topic, queue, false);

	return o ? o->off : -1;
}

void fake_set_offset(struct fake *f, const char *group, const char *topic, int queue, int64_t off)
{
	find_offset(f, group, topic, queue, true)->off = off;
}

int fake_commits(struct fake *f, const char *group, const char *topic, int queue)
{
	struct fake_offset *o = find_offset(f, group, topic, queue, false);

	return o ? o->commits : 0;
}

static void answer_offset(struct conn *c, struct frame_id id, int64_t off)
{
	struct frame_out o;

	frame_answer(&o, conn_out(c), id, 0, (struct mq_str){ 0 });
	frame_i64(&o, "offset", off);
	frame_end(&o);
}

void fake_on_offset(struct fake *f, struct conn *c, struct frame *in)
{
	struct fake_topic *t = fake_find_topic(f, frame_get(in, "topic"));
	char group[256], topic[256];
	struct fake_offset *o;
	int32_t queue = 0;
	int64_t off;

	snprintf(group, sizeof group, MQ_STR_FMT, MQ_STR_ARG(frame_get(in, "consumerGroup")));
	snprintf(topic, sizeof topic, MQ_STR_FMT, MQ_STR_ARG(frame_get(in, "topic")));
	str_i32(frame_get(in, "queueId"), &queue);
	if (!t || queue < 0 || queue >= t->nqueues) {
		fake_answer(c, frame_id_of(in), RESP_TOPIC_NOT_EXIST, "topic not exist");
		return;
	}
	switch (in->code) {
	case REQ_GET_MAX_OFFSET:
		answer_offset(c, frame_id_of(in), t->queue[queue].max);
		return;
	case REQ_GET_MIN_OFFSET:
		answer_offset(c, frame_id_of(in), t->queue[queue].min);
		return;
	case REQ_SEARCH_OFFSET_BY_TIMESTAMP:
		answer_offset(c, frame_id_of(in), (t->queue[queue].min + t->queue[queue].max) / 2);
		return;
	case REQ_QUERY_CONSUMER_OFFSET:
		o = find_offset(f, group, topic, queue, false);
		if (o && o->off >= 0)
			answer_offset(c, frame_id_of(in), o->off);
		else
			fake_answer(c, frame_id_of(in), RESP_QUERY_NOT_FOUND, "Not found");
		return;
	default:
		o = find_offset(f, group, topic, queue, true);
		if (str_i64(frame_get(in, "commitOffset"), &off) == 0)
			o->off = off;
		o->commits++;
		fake_answer(c, frame_id_of(in), 0, NULL);
	}
}

/* ---- Members --------------------------------------------------------------------------------------------------------- */

void fake_on_heartbeat(struct fake *f, struct conn *c, struct frame *in)
{
	struct body_heartbeat h;
	struct mq_error e;
	int i;

	if (body_heartbeat_decode(in->body, &h, &e) == 0) {
		for (i = 0; i < f->nknown && f->known_conn[i] != c; i++)
			;
		if (i < FAKE_MEMBERS && h.nconsumers) {
			f->known_conn[i] = c;
			snprintf(f->known[i], sizeof f->known[i], MQ_STR_FMT, MQ_STR_ARG(h.client_id));
			if (i == f->nknown)
				f->nknown++;
		}
		body_heartbeat_free(&h);
	}
	fake_answer(c, frame_id_of(in), 0, NULL);
}

void fake_forget(struct fake *f, struct conn *c)
{
	for (int i = 0; i < f->nknown; i++)
		if (f->known_conn[i] == c) {
			f->nknown--;
			f->known_conn[i] = f->known_conn[f->nknown];
			memmove(f->known[i], f->known[f->nknown], sizeof f->known[i]);
			return;
		}
}

void fake_on_members(struct fake *f, struct conn *c, struct frame *in)
{
	struct mq_str id[2 * FAKE_MEMBERS];
	struct body_consumer_list l = { .id = id };
	struct frame_out o;

	for (int i = 0; i < f->nmembers; i++)
		id[l.n++] = str_of(f->member[i]);
	for (int i = 0; i < f->nknown; i++)
		id[l.n++] = str_of(f->known[i]);
	if (!f->nknown) {
		fake_answer(c, frame_id_of(in), RESP_SYSTEM_ERROR, "no consumer for this group");
		return;
	}
	frame_answer(&o, conn_out(c), frame_id_of(in), 0, (struct mq_str){ 0 });
	frame_body(&o);
	body_consumer_list_encode(&l, o.buf);
	frame_end(&o);
}

/* ---- Locks of queues ------------------------------------------------------------------------------------------------- */

static char *lock_entry(struct fake *f, const char *topic, int queue, bool make)
{
	char tail[300];

	snprintf(tail, sizeof tail, "@%s@%d", topic, queue);
	for (int i = 0; i < f->nlocks; i++) {
		size_t n = strlen(f->lock_of[i]), t = strlen(tail);
		if (n >= t && strcmp(f->lock_of[i] + n - t, tail) == 0)
			return f->lock_of[i];
	}
	if (!make)
		return NULL;
	assert(f->nlocks < FAKE_OFFSETS);
	snprintf(f->lock_of[f->nlocks], sizeof f->lock_of[0], "%s", tail);
	return f->lock_of[f->nlocks++];
}

void fake_set_lock(struct fake *f, const char *topic, int queue, const char *client)
{
	char *e = lock_entry(f, topic, queue, true);

	assert(strlen(client) + strlen(topic) + 16 < sizeof f->lock_of[0]);
	sprintf(e, "%s@%s@%d", client, topic, queue);
}

/* A client id has an @ of its own: up to the last but one. */
const char *fake_lock(struct fake *f, const char *topic, int queue)
{
	static char client[400];
	char *e = lock_entry(f, topic, queue, false), *at;

	snprintf(client, sizeof client, "%s", e ? e : "");
	for (int i = 0; i < 2 && (at = strrchr(client, '@')); i++)
		*at = 0;
	return client;
}

void fake_on_lock(struct fake *f, struct conn *c, struct frame *in)
{
	struct body_locked got = { 0 };
	struct body_lock l;
	struct frame_out o;
	struct mq_error e;
	char topic[200], client[200];

	assert(body_lock_decode(in->body, &l, &e) == 0);
	snprintf(client, sizeof client, MQ_STR_FMT, MQ_STR_ARG(l.client_id));
	got.queue = body_alloc(&got.keep, (l.n + 1) * sizeof *got.queue);
	for (size_t i = 0; i < l.n; i++) {
		const char *has;
		snprintf(topic, sizeof topic, MQ_STR_FMT, MQ_STR_ARG(l.queue[i].topic));
		has = fake_lock(f, topic, l.queue[i].id);
		if (*has && strcmp(has, client) != 0)
			continue;
		fake_set_lock(f, topic, l.queue[i].id, in->code == REQ_LOCK_BATCH_MQ ? client : "");
		got.queue[got.n++] = l.queue[i];
	}
	if (!(in->flag & FRAME_ONEWAY)) {
		frame_answer(&o, conn_out(c), frame_id_of(in), RESP_SUCCESS, (struct mq_str){ 0 });
		frame_body(&o);
		body_locked_encode(&got, o.buf);
		frame_end(&o);
		conn_kick(c);
	}
	body_free(&got.keep);
	body_lock_free(&l);
}
