/* fuzz_ha: covers what a replicating broker and a controller take from others: bin/broker/ha_role.c (reports of a slave, heads of a
 * master's blocks), bin/broker/ha_switch_role.c (the same under a controller), bin/broker/epoch.c (the file of epochs),
 * bin/namesrv/controller_event.c (events and states in the log that controllers share), codec/body_controller.c and
 * bin/broker/ha_proof.c (the proof of a secret).  The first byte chooses one of these; the promises of ha_role.h are looked at after
 * each step. */
#include "lab.h"
#include "../../bin/broker/ha_proof.h"
#include "../../bin/broker/ha_switch_role.h"
#include "../../bin/namesrv/controller.h"
#include <base/byte.h>

#include <stdlib.h>
#include <string.h>

static const struct ha_limits limits = { .heartbeat_ms = 5000, .silence_ms = 20000, .block_bytes = 32768, .gap_bytes = 1 << 20 };

/* A log of which 0 <= min <= end holds, as a store promises. */
static struct ha_log log_of(struct cursor *c)
{
	struct ha_log log = { .segment = 1024 + cursor_u16(c) };

	log.min = (int64_t)cursor_u16(c) * log.segment;
	log.end = log.min + cursor_u32(c);
	return log;
}

/* Steps: 0 = a report follows, 1 = the log grows, 2 = send what is next, others = time goes on. */
static void try_slave(struct cursor *c)
{
	struct ha_log log = log_of(c);
	int64_t now = 1000000, sent = -1;
	struct ha_slave s;

	ha_slave_begin(&s, now);
	while (!c->bad) {
		uint8_t step = cursor_u8(c);

		if (step == 0) {
			int64_t off = (int64_t)cursor_u64(c);
			bool known = s.known;
			struct mq_error why = { 0 };

			if (c->bad)
				break;
			if (ha_slave_report(&s, &log, off, now, &why) < 0) {
				LAB_CHECK(why.text[0]);
				break;
			}
			LAB_CHECK(off >= 0 && off <= log.end);
			LAB_CHECK(!known || off <= sent);
			if (!known)
				sent = off ? off : log.min;
			LAB_CHECK(s.acked <= log.end);
		} else if (step == 1) {
			log.end += cursor_u16(c);
		} else if (step == 2) {
			struct ha_send next = ha_slave_next(&s, &log, &limits, now);

			if (next.what == HA_SEND_BLOCK) {
				LAB_CHECK(s.known && next.off == sent && next.n > 0 && next.n <= limits.block_bytes);
				LAB_CHECK(next.off >= log.min && next.off + next.n <= log.end);
				LAB_CHECK(next.off / log.segment == (next.off + next.n - 1) / log.segment);
				sent += next.n;
			} else {
				LAB_CHECK(next.n == 0);
			}
			if (next.what != HA_SEND_NOTHING)
				ha_slave_sent(&s, &next, now);
		} else {
			now += step * 100;
			ha_slave_is_gone(&s, &limits, now);
		}
		LAB_CHECK(!ha_slave_in_sync(&s, &log, &limits) || log.end - s.acked < limits.gap_bytes);
	}
}

/* Steps: 0 = the head of a block follows, 1 = the master is known or not, 2 = connected and agreed, 3 = lost, 4 = must cut. */
static void try_follower(struct cursor *c)
{
	int64_t end = cursor_u32(c), now = 1000000;
	struct ha_follower f;

	ha_follower_begin(&f);
	while (!c->bad) {
		uint8_t step = cursor_u8(c);

		if (step == 0) {
			int64_t off = (int64_t)cursor_u64(c), n = (int32_t)cursor_u32(c);
			struct mq_error why = { 0 };

			if (c->bad)
				break;
			if (ha_follower_head(&f, off, n, end, now, &why) == 0) {
				LAB_CHECK(f.phase == HA_FOLLOWING && off == end && n >= 0);
				end += n;
			} else {
				LAB_CHECK(why.text[0]);
				ha_follower_lost(&f, now, HA_REST_MS);
				LAB_CHECK(f.phase != HA_FOLLOWING);
			}
		} else if (step == 1) {
			ha_follower_master(&f, cursor_u8(c) & 1, now);
		} else if (step == 2 && f.phase == HA_DIALLING) {
			ha_follower_connected(&f, now);
			ha_follower_agreed(&f, now);
		} else if (step == 3) {
			ha_follower_lost(&f, now, HA_REST_MS);
		} else if (step == 4 && f.phase == HA_AGREEING) {
			ha_follower_must_cut(&f);
			ha_follower_cut(&f, now);
		} else {
			now += step * 100;
		}
		switch (ha_follower_next(&f, end, &limits, now)) {
		case HA_DO_DIAL:
			LAB_CHECK(f.phase == HA_RESTING);
			f.phase = HA_DIALLING;
			break;
		case HA_DO_REPORT:
			LAB_CHECK(f.phase == HA_FOLLOWING);
			ha_follower_reported(&f, end, now);
			break;
		case HA_DO_HANG_UP:
			ha_follower_lost(&f, now, HA_REST_MS);
			break;
		case HA_DO_NOTHING:
			break;
		}
	}
}

static void try_event(struct mq_str bytes)
{
	struct controller_event e, back;
	struct buf out = { 0 }, again = { 0 };

	if (controller_event_decode(bytes, &e) != 0)
		return;
	controller_event_encode(&e, &out);
	LAB_CHECK(controller_event_decode(buf_view(&out), &back) == 0);
	controller_event_encode(&back, &again);
	LAB_CHECK(out.n == again.n && memcmp(out.p, again.p, out.n) == 0);
	LAB_CHECK(e.set.n <= SYNC_SET_MAX);
	buf_free(&out);
	buf_free(&again);
}

static void try_state(struct mq_str bytes)
{
	struct controller *c = controller_new(), *d = controller_new();
	struct buf out = { 0 }, again = { 0 };

	if (controller_load(c, bytes) == 0) {
		controller_save(c, &out);
		LAB_CHECK(controller_load(d, buf_view(&out)) == 0);
		controller_save(d, &again);
		LAB_CHECK(out.n == again.n && memcmp(out.p, again.p, out.n) == 0);
	} else {
		LAB_CHECK(!controller_group_at(c, 0));
	}
	buf_free(&out);
	buf_free(&again);
	controller_free(c);
	controller_free(d);
}

static void try_sync_set(struct mq_str body)
{
	struct body_sync_set s, back;
	struct buf out = { 0 };
	struct mq_error e = { 0 };

	if (body_sync_set_decode(body, &s, &e) == 0) {
		LAB_CHECK(s.n <= SYNC_SET_MAX);
		body_sync_set_encode(&s, &out);
		LAB_CHECK(body_sync_set_decode(buf_view(&out), &back, &e) == 0);
		LAB_CHECK(back.n == s.n && back.epoch == s.epoch && memcmp(back.id, s.id, s.n * sizeof s.id[0]) == 0);
	} else {
		LAB_CHECK(e.text[0]);
	}
	buf_free(&out);
}

static void check_list(const struct epoch_list *l)
{
	LAB_CHECK(l->n <= EPOCH_MAX);
	for (size_t i = 1; i < l->n; i++)
		LAB_CHECK(l->v[i].number > l->v[i - 1].number && l->v[i].start >= l->v[i - 1].start);
}

static void try_epochs(struct mq_str text)
{
	struct epoch_list l, back;
	struct buf out = { 0 };
	struct mq_error why = { 0 };

	if (epoch_decode(text, &l, &why) == 0) {
		check_list(&l);
		epoch_encode(&l, &out);
		LAB_CHECK(epoch_decode(buf_view(&out), &back, &why) == 0);
		LAB_CHECK(back.n == l.n && memcmp(back.v, l.v, l.n * sizeof(l.v[0])) == 0);
	} else {
		LAB_CHECK(why.text[0] && l.n == 0);
	}
	buf_free(&out);
}

/* A list as it may be: numbers and places that grow. */
static void list_of(struct cursor *c, struct epoch_list *l)
{
	int32_t number = 0;
	int64_t start = 0;

	l->n = 0;
	for (size_t n = cursor_u8(c) % 8; n > 0 && !c->bad; n--) {
		number += 1 + cursor_u8(c) % 3;
		start += cursor_u16(c);
		epoch_append(l, number, start, NULL);
	}
	check_list(l);
}

/* Steps: 0 = it says hello, 1 = a report, 2 = send what is next, others = the log grows and time goes on. */
static void try_switch_slave(struct cursor *c)
{
	struct ha_log log = { .segment = 1024, .end = cursor_u16(c) };
	struct epoch_list l;
	int64_t now = 1000000, sent = -1;
	struct ha_switch_slave s;
	struct mq_error why = { 0 };

	list_of(c, &l);
	ha_switch_begin(&s, now);
	while (!c->bad) {
		uint8_t step = cursor_u8(c);
		int rc = 0;

		if (step == 0) {
			struct ha_switch_hello h = { (int64_t)cursor_u64(c), cursor_u8(c) & 1, cursor_u8(c) & 1 };

			rc = c->bad ? 0 : ha_switch_greet(&s, &h, now, &why);
		} else if (step == 1) {
			int64_t off = (int64_t)cursor_u64(c);

			rc = c->bad ? 0 : ha_switch_report(&s, &log, off, now, &why);
			LAB_CHECK(c->bad || rc < 0 || (off >= 0 && off <= log.end && s.greeted));
		} else if (step == 2) {
			struct ha_switch_send next = ha_switch_next(&s, &log, &l, &limits, now);

			LAB_CHECK(next.what == HA_SWITCH_NOTHING || s.greeted);
			if (next.what == HA_SWITCH_BLOCK) {
				const struct epoch *first = epoch_at(&l, next.off), *last = epoch_at(&l, next.off + next.n - 1);

				LAB_CHECK(next.n > 0 && next.off + next.n <= log.end && (sent < 0 || next.off == sent));
				LAB_CHECK(first == last && first && first->number == next.epoch.number);
				sent = next.off + next.n;
			}
			if (next.what != HA_SWITCH_NOTHING)
				ha_switch_sent(&s, &log, &next, now);
		} else {
			log.end += step;
			now += step * 100;
		}
		if (rc < 0) {
			LAB_CHECK(why.text[0]);
			return;
		}
		ha_switch_caught_up(&s);
	}
}

static void try_switch_follower(struct cursor *c)
{
	struct epoch_list mine, theirs;
	struct ha_log log = { .segment = 1024, .end = cursor_u16(c) };
	struct ha_follower f;
	int64_t now = 1000000;
	struct mq_error why = { 0 };
	struct ha_switch_decision d;

	list_of(c, &mine);
	list_of(c, &theirs);
	epoch_cut(&mine, log.end);
	d = ha_switch_decide(&mine, &log, &theirs, cursor_u16(c), &why);
	LAB_CHECK(d.what != HA_SWITCH_CUT || (d.at >= 0 && d.at <= log.end));
	LAB_CHECK(d.what != HA_SWITCH_REFUSE || why.text[0]);
	ha_follower_begin(&f);
	ha_follower_master(&f, true, now);
	f.phase = HA_DIALLING;
	ha_follower_connected(&f, now);
	ha_follower_agreed(&f, now);
	while (!c->bad) {
		struct ha_switch_head h = { .off = (int64_t)cursor_u64(c), .n = (int32_t)cursor_u32(c),
					    .epoch = { (int32_t)cursor_u32(c), (int64_t)cursor_u64(c) }, .confirm = (int64_t)cursor_u64(c) };
		bool grew, empty = log.end == 0 && !mine.n; /* which takes any beginning */

		if (c->bad)
			break;
		if (ha_switch_take(&f, &mine, &h, log.end, now, &grew, &why) < 0) {
			LAB_CHECK(why.text[0]);
			return;
		}
		check_list(&mine);
		LAB_CHECK(h.n >= 0 && (h.n == 0 || ((empty || h.off == log.end) && epoch_last(&mine) == h.epoch.number)));
		log.end = h.n == 0 ? log.end : h.off + h.n;
	}
}

/* The first byte: which side hears it (bit 0); whether a real peer without the right secret has spoken before (bit 1), as it does when
 * somebody changes bytes on the way.  Nothing that comes gets through, for it was not made with the secret. */
static void try_proof(struct cursor *c)
{
	static const struct ha_secret secret = { "a key of thirty-two bytes: right" }, other = { "a key of thirty-two bytes: wrong" };
	uint8_t draw[HA_PROOF_RANDOM] = { 0 }, kind = cursor_u8(c);
	enum ha_proof_side side = kind & 1 ? HA_PROOF_SLAVE : HA_PROOF_MASTER;
	struct ha_proof p, peer;
	struct mq_error why = { 0 };

	ha_proof_begin(&p, side, &secret, draw);
	draw[0] = 1;
	ha_proof_begin(&peer, side == HA_PROOF_MASTER ? HA_PROOF_SLAVE : HA_PROOF_MASTER, &other, draw);
	if ((kind & 2) && side == HA_PROOF_SLAVE) {
		memcpy(p.in, peer.out, peer.out_n);
		LAB_CHECK(ha_proof_took(&p, peer.out_n, &why) == 0 && p.out_n == HA_PROOF_ANSWER);
	}
	while (!c->bad) {
		size_t n = 1 + cursor_u8(c) % 32, room = ha_proof_room(&p);

		n = n < room ? n : room;
		LAB_CHECK(p.in_n + n <= sizeof p.in);
		for (size_t i = 0; i < n; i++)
			p.in[p.in_n + i] = cursor_u8(c);
		if (ha_proof_took(&p, n, &why) < 0) {
			LAB_CHECK(why.text[0]);
			return;
		}
		LAB_CHECK(!ha_proof_done(&p) && ha_proof_room(&p) > 0 && p.out_n <= sizeof p.out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy;

	if (n < 1)
		return 0;
	copy = lab_copy(p + 1, n - 1);
	struct cursor c = cursor_of(copy, n - 1);
	struct mq_str bytes = { copy, n - 1 };

	switch (p[0] % 9) {
	case 0: try_slave(&c); break;
	case 1: try_follower(&c); break;
	case 2: try_event(bytes); break;
	case 3: try_state(bytes); break;
	case 4: try_sync_set(bytes); break;
	case 5: try_epochs(bytes); break;
	case 6: try_switch_slave(&c); break;
	case 7: try_switch_follower(&c); break;
	case 8: try_proof(&c); break;
	}
	free(copy);
	return 0;
}
