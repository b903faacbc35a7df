/* test_controller.c: who may be master: every rule of a controller, and its promises under any order of events. */
#include "../../bin/namesrv/controller.h"
#include "../../bin/namesrv/controller_live.h"
#include "../../bin/namesrv/controller_raft.h"
#include "base/log.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { IDS = 5 };

/* Who lives, by id; what they last said. */
static struct controller_life life[IDS + 1];
static bool living[IDS + 1];

static const struct controller_life *look(void *arg, struct mq_str cluster, struct mq_str name, int64_t id)
{
	return id >= 1 && id <= IDS && living[id] ? &life[id] : NULL;
}
static const struct controller_eyes eyes = { look, NULL };

static struct controller *c;
static struct controller_verdict v;

static int begin(void **state)
{
	c = controller_new();
	memset(life, 0, sizeof(life));
	memset(living, 0, sizeof(living));
	return 0;
}

static int end(void **state)
{
	controller_free(c);
	return 0;
}

static void happens(void)
{
	assert_true(v.happens);
	controller_happened(c, &v.event);
}

static void apply(int64_t id, const char *check)
{
	struct apply_broker_id_header h = { .clusterName = MQ_STR("C"), .brokerName = MQ_STR("a"), .appliedBrokerId = id,
					    .registerCheckCode = str_of(check) };

	controller_apply_id(c, &h, &v);
}

static void elect(int64_t id, bool designate, bool unclean)
{
	struct elect_master_header h = { .clusterName = MQ_STR("C"), .brokerName = MQ_STR("a"), .brokerId = id, .designateElect = designate };

	controller_elect(c, &h, unclean, &eyes, &v);
}

static void alter(int64_t master, int32_t epoch, int32_t set_epoch, size_t n, const int64_t *ids)
{
	struct alter_sync_set_header h = { .brokerName = MQ_STR("a"), .masterBrokerId = master, .masterEpoch = epoch };
	struct body_sync_set set = { .n = n, .epoch = set_epoch };

	memcpy(set.id, ids, n * sizeof(ids[0]));
	controller_alter(c, &h, &set, &eyes, &v);
}
#define IDS_OF(...) sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }

static void clean(const char *ids, bool living_too)
{
	struct clean_broker_header h = { .brokerName = MQ_STR("a"), .brokerControllerIdsToClean = str_of(ids),
					 .isCleanLivingBroker = living_too };

	controller_clean(c, &h, &eyes, &v);
}

/* Three brokers, all alive, 1 master, epoch 1. */
static void three(void)
{
	for (int64_t id = 1; id <= 3; id++) {
		char check[32];

		snprintf(check, sizeof(check), "127.0.0.1:1%lld;7", (long long)id);
		apply(id, check);
		happens();
		living[id] = true;
	}
	elect(1, false, false);
	happens();
}

static const struct controller_group *group(void)
{
	return controller_group(c, MQ_STR("a"));
}

/* ---- Ids ------------------------------------------------------------------------------------------------------------- */

static void the_first_id_of_a_new_name_is_1_and_no_other(void **state)
{
	assert_int_equal(controller_next_id(c, MQ_STR("a")), 1);
	apply(2, "x:1;1");
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_ID_INVALID);
	assert_false(v.happens);
	apply(1, "x:1;1");
	assert_int_equal(v.code, 0);
	happens();
	assert_int_equal(controller_next_id(c, MQ_STR("a")), 2);
	assert_string_equal(controller_addr(group(), 1), "x:1");
	assert_string_equal(group()->cluster, "C");
}

static void an_id_goes_with_its_check_code(void **state)
{
	apply(1, "x:1;1");
	happens();
	apply(1, "y:1;1");
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_ID_INVALID);
	apply(1, "x:1;1");
	assert_int_equal(v.code, 0);
	happens();
	assert_int_equal(group()->n, 1);
	assert_int_equal(controller_next_id(c, MQ_STR("a")), 2);
}

static void names_that_fit_into_no_event_are_refused(void **state)
{
	static char bytes[CONTROLLER_TEXT_MAX + 1];
	const struct mq_str big = { memset(bytes, 'x', sizeof bytes), sizeof bytes };
	struct apply_broker_id_header h = { .clusterName = MQ_STR("C"), .brokerName = big, .appliedBrokerId = 1,
					    .registerCheckCode = MQ_STR("x:1;1") };
	struct controller_register_header r = { .brokerName = MQ_STR("a"), .brokerId = 1, .brokerAddress = big };

	for (int i = 0; i < 3; i++) {
		controller_apply_id(c, &h, &v);
		assert_int_equal(v.code, RESP_CONTROLLER_BROKER_ID_INVALID);
		assert_false(v.happens);
		h.brokerName = i == 0 ? MQ_STR("a") : h.brokerName;
		h.registerCheckCode = i == 0 ? big : MQ_STR("x:1;1");
		h.clusterName = i == 1 ? big : h.clusterName;
	}
	apply(1, "x:1;1");
	happens();
	controller_register(c, &r, &v);
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_ID_INVALID);
	assert_false(v.happens);
}

static void a_broker_registers_with_an_id_that_it_has(void **state)
{
	struct controller_register_header h = { .brokerName = MQ_STR("a"), .brokerId = 1, .brokerAddress = MQ_STR("new:2") };

	controller_register(c, &h, &v);
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED);
	apply(1, "x:1;1");
	happens();
	controller_register(c, &h, &v);
	assert_int_equal(v.code, 0);
	happens();
	assert_string_equal(controller_addr(group(), 1), "new:2");
	controller_register(c, &h, &v);
	assert_false(v.happens);
	h.brokerId = 2;
	controller_register(c, &h, &v);
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED);
}

/* ---- Elections ------------------------------------------------------------------------------------------------------- */

static void who_asks_first_is_the_first_master(void **state)
{
	three();
	assert_int_equal(group()->master, 1);
	assert_int_equal(group()->master_epoch, 1);
	assert_int_equal(group()->sync.n, 1);
	assert_int_equal(group()->sync.epoch, 1);
}

static void a_group_that_is_not_known_elects_nobody(void **state)
{
	elect(1, false, false);
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_NEED_TO_BE_REGISTERED);
	assert_false(v.happens);
}

static void a_living_master_stays(void **state)
{
	three();
	elect(2, false, false);
	assert_int_equal(v.code, RESP_CONTROLLER_MASTER_STILL_EXIST);
	assert_false(v.happens);
}

static void only_who_is_in_sync_follows_a_dead_master(void **state)
{
	three();
	living[1] = false;
	elect(2, false, false);
	assert_int_equal(v.code, RESP_CONTROLLER_ELECT_MASTER_FAILED);
	assert_false(v.happens);
	/* Unless that is asked for. */
	elect(2, false, true);
	happens();
	assert_true(group()->master == 2 || group()->master == 3);
	assert_int_equal(group()->master_epoch, 2);
}

static void the_best_in_sync_is_elected(void **state)
{
	three();
	alter(1, 1, 1, IDS_OF(1, 2, 3));
	happens();
	living[1] = false;
	life[2] = (struct controller_life){ 1, 100, 0 };
	life[3] = (struct controller_life){ 1, 100 + (1LL << 32), 0 };
	elect(CONTROLLER_NOBODY, false, false);
	happens();
	assert_int_equal(group()->master, 3);
	assert_int_equal(group()->sync.n, 1);
	assert_int_equal(group()->sync.id[0], 3);
	assert_int_equal(group()->sync.epoch, 3);
}

static void the_newer_epoch_beats_the_longer_log_and_the_lower_priority_the_rest(void **state)
{
	three();
	alter(1, 1, 1, IDS_OF(1, 2, 3));
	happens();
	living[1] = false;
	life[2] = (struct controller_life){ 2, 10, 9 };
	life[3] = (struct controller_life){ 1, 99, 0 };
	elect(CONTROLLER_NOBODY, false, false);
	assert_int_equal(v.event.id, 2);
	life[3] = (struct controller_life){ 2, 10, 1 };
	elect(CONTROLLER_NOBODY, false, false);
	assert_int_equal(v.event.id, 3);
}

static void a_designated_one_or_nobody(void **state)
{
	three();
	alter(1, 1, 1, IDS_OF(1, 2));
	happens();
	elect(3, true, false);
	assert_int_equal(v.code, RESP_CONTROLLER_ELECT_MASTER_FAILED);
	elect(2, true, false);
	happens();
	assert_int_equal(group()->master, 2);
	elect(2, true, false);
	assert_int_equal(v.code, RESP_CONTROLLER_MASTER_STILL_EXIST);
}

static void when_nobody_can_be_master_all_are_told_once(void **state)
{
	three();
	living[1] = false;
	elect(CONTROLLER_NOBODY, false, false);
	assert_int_equal(v.code, RESP_CONTROLLER_MASTER_NOT_AVAILABLE);
	happens();
	assert_int_equal(group()->master, CONTROLLER_NOBODY);
	assert_int_equal(group()->master_epoch, 2);
	assert_int_equal(group()->sync.n, 1);
	elect(CONTROLLER_NOBODY, false, false);
	assert_false(v.happens);
	/* It comes back: it was in sync. */
	living[1] = true;
	elect(1, false, false);
	happens();
	assert_int_equal(group()->master, 1);
	assert_int_equal(group()->master_epoch, 3);
}

static void a_group_is_headless_when_its_master_is_dead_and_somebody_lives(void **state)
{
	three();
	assert_false(controller_headless(group(), &eyes));
	living[1] = false;
	assert_true(controller_headless(group(), &eyes));
	living[2] = living[3] = false;
	assert_false(controller_headless(group(), &eyes));
}

/* ---- Sync sets ------------------------------------------------------------------------------------------------------- */

static void a_sync_set_changes_only_by_the_master_who_knows_the_newest(void **state)
{
	alter(1, 1, 1, IDS_OF(1));
	assert_int_equal(v.code, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED);
	three();
	alter(1, 1, 1, IDS_OF(1));
	assert_int_equal(v.code, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED);
	alter(2, 1, 1, IDS_OF(1, 2));
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_MASTER);
	alter(1, 2, 1, IDS_OF(1, 2));
	assert_int_equal(v.code, RESP_CONTROLLER_FENCED_MASTER_EPOCH);
	alter(1, 1, 2, IDS_OF(1, 2));
	assert_int_equal(v.code, RESP_CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH);
	alter(1, 1, 1, IDS_OF(1, 4));
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_REPLICAS);
	living[2] = false;
	alter(1, 1, 1, IDS_OF(1, 2));
	assert_int_equal(v.code, RESP_CONTROLLER_BROKER_NOT_ALIVE);
	alter(1, 1, 1, IDS_OF(3));
	assert_int_equal(v.code, RESP_CONTROLLER_ALTER_SYNC_STATE_SET_FAILED);
	assert_false(v.happens);
	alter(1, 1, 1, IDS_OF(1, 3));
	happens();
	assert_int_equal(group()->sync.n, 2);
	assert_int_equal(group()->sync.epoch, 2);
}

/* ---- Forgetting ------------------------------------------------------------------------------------------------------ */

static void who_lives_is_not_forgotten_unless_asked_for(void **state)
{
	clean("", false);
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA);
	three();
	clean("", false);
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA);
	clean("1;two", false);
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA);
	clean("2;3", false);
	assert_int_equal(v.code, RESP_CONTROLLER_INVALID_CLEAN_BROKER_METADATA);
	living[2] = living[3] = false;
	clean("2;3", false);
	happens();
	assert_int_equal(group()->n, 1);
	assert_int_equal(controller_next_id(c, MQ_STR("a")), 4);
	clean("", true);
	happens();
	assert_null(group());
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------------- */

static void the_state_is_the_same_after_save_and_load(void **state)
{
	struct controller *other = controller_new();
	struct buf a = { 0 }, b = { 0 };

	three();
	alter(1, 1, 1, IDS_OF(1, 2));
	happens();
	controller_save(c, &a);
	assert_int_equal(controller_load(other, buf_view(&a)), 0);
	controller_save(other, &b);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
	/* Cut anywhere, it is refused and nothing changes. */
	for (size_t n = 0; n < a.n; n++) {
		b.n = 0;
		assert_int_equal(controller_load(other, (struct mq_str){ a.p, n }), MQ_ECORRUPT);
	}
	controller_save(other, &b);
	assert_memory_equal(a.p, b.p, a.n);
	buf_free(&a);
	buf_free(&b);
	controller_free(other);
}

static void names_that_differ_behind_a_zero_byte_are_no_state(void **state)
{
	static const char *const names[] = { "a.x", "a.y" };
	struct controller *other = controller_new();
	struct controller_event e;
	struct buf a = { 0 };
	char *dot;

	for (int i = 0; i < 2; i++) {
		struct apply_broker_id_header h = { .clusterName = MQ_STR("C"), .brokerName = str_of(names[i]), .appliedBrokerId = 1,
						    .registerCheckCode = MQ_STR("h:1;1") };

		controller_apply_id(c, &h, &v);
		happens();
	}
	controller_save(c, &a);
	assert_int_equal(controller_load(other, buf_view(&a)), 0);
	while ((dot = memchr(a.p, '.', a.n)))
		*dot = '\0';
	assert_int_equal(controller_load(other, buf_view(&a)), MQ_ECORRUPT);
	assert_non_null(controller_group(other, MQ_STR("a.x")));
	buf_free(&a);

	controller_event_encode(&v.event, &a);
	assert_int_equal(controller_event_decode(buf_view(&a), &e), 0);
	*(char *)memchr(a.p, '.', a.n) = '\0';
	assert_int_equal(controller_event_decode(buf_view(&a), &e), MQ_ECORRUPT);
	buf_free(&a);
	controller_free(other);
}

static void an_event_that_is_cut_is_refused(void **state)
{
	struct controller_event e;
	struct buf b = { 0 };

	apply(1, "x:1;1");
	controller_event_encode(&v.event, &b);
	assert_int_equal(controller_event_decode(buf_view(&b), &e), 0);
	assert_int_equal(e.kind, CONTROLLER_APPLY_ID);
	assert_true(str_is(e.check, "x:1;1"));
	for (size_t n = 0; n < b.n; n++)
		assert_int_equal(controller_event_decode((struct mq_str){ b.p, n }, &e), MQ_ECORRUPT);
	b.p[1] = 77;
	assert_int_equal(controller_event_decode(buf_view(&b), &e), MQ_ECORRUPT);
	buf_free(&b);
}

/* ---- Bodies ---------------------------------------------------------------------------------------------------------- */

static void a_sync_set_is_read_as_it_is_written(void **state)
{
	struct body_sync_set s;
	struct buf b = { 0 };
	struct mq_error e;

	assert_int_equal(body_sync_set_decode(MQ_STR("{\"syncStateSet\":[2,1,2],\"syncStateSetEpoch\":3}"), &s, &e), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.epoch, 3);
	assert_true(body_sync_set_has(&s, 1));
	assert_false(body_sync_set_has(&s, 3));
	body_sync_set_encode(&s, &b);
	assert_true(str_is(buf_view(&b), "{\"syncStateSet\":[2,1],\"syncStateSetEpoch\":3}"));
	assert_int_equal(body_sync_set_decode(MQ_STR("{}"), &s, &e), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(body_sync_set_decode(MQ_STR("{\"syncStateSet\":[1,"), &s, &e), MQ_EINVAL);
	b.n = 0;
	buf_cstr(&b, "{\"syncStateSet\":[0");
	for (int i = 1; i <= SYNC_SET_MAX; i++)
		buf_printf(&b, ",%d", i);
	buf_cstr(&b, "]}");
	assert_int_equal(body_sync_set_decode(buf_view(&b), &s, &e), MQ_EINVAL);
	buf_free(&b);
}

static void what_was_elected_and_who_is_in_sync_are_written_as_the_peer_does(void **state)
{
	struct body_broker_addr addr[] = { { 1, MQ_STR("h:1") }, { 2, MQ_STR("h:2") } };
	struct body_broker members = { .name = MQ_STR("a"), .cluster = MQ_STR("C"), .naddrs = 2, .addr = addr };
	struct body_sync_set s = { .id = { 2 }, .n = 1, .epoch = 5 };
	struct body_replica r[] = { { 1, MQ_STR("h:1"), false, false }, { 2, MQ_STR("h:2"), true, true } };
	struct body_replicas all[] = { { MQ_STR("a"), 2, MQ_STR("h:2"), 4, 5, r, 2 }, { MQ_STR("b"), -1, MQ_STR(""), 0, 0, NULL, 0 } };
	struct buf b = { 0 };

	body_elected_encode(&members, &s, &b);
	assert_non_null(memmem(b.p, b.n, "\"brokerMemberGroup\":{", 21));
	assert_true(b.p[0] == '{' && b.p[b.n - 1] == '}');
	assert_memory_equal(b.p + b.n - 20, "},\"syncStateSet\":[2]}" + 1, 20);
	b.n = 0;
	body_elected_encode(NULL, &s, &b);
	assert_true(str_is(buf_view(&b), "{\"syncStateSet\":[2]}"));
	b.n = 0;
	body_replicas_encode(all, 2, &b);
	assert_true(str_is(buf_view(&b), "{\"replicasInfoTable\":{\"a\":{\"inSyncReplicas\":[{\"alive\":true,\"brokerAddress\":\"h:2\",\"brokerId\":2,"
		"\"brokerName\":\"a\"}],\"masterAddress\":\"h:2\",\"masterBrokerId\":2,\"masterEpoch\":4,\"notInSyncReplicas\":[{\"alive\":false,"
		"\"brokerAddress\":\"h:1\",\"brokerId\":1,\"brokerName\":\"a\"}],\"syncStateSetEpoch\":5},\"b\":{\"inSyncReplicas\":[],"
		"\"masterEpoch\":0,\"notInSyncReplicas\":[],\"syncStateSetEpoch\":0}}}"));
	buf_free(&b);
}

/* ---- Any order ------------------------------------------------------------------------------------------------------- */

/* Requests of every kind at random, and the promises of controller.h looked at after each; a second controller gets the events only
 * as bytes and must come to the same state. */
static void promises_hold_whatever_is_asked_in_whatever_order(void **state)
{
	struct controller *follower = controller_new();
	struct buf a = { 0 }, b = { 0 }, event = { 0 };

	srandom(7);
	for (int step = 0; step < 20000; step++) {
		const struct controller_group *g = group();
		int32_t epoch_before = g ? g->master_epoch : 0;
		int64_t master_before = g ? g->master : CONTROLLER_NOBODY, id = 1 + random() % IDS, ids[3];
		struct body_sync_set sync_before = g ? g->sync : (struct body_sync_set){ 0 };
		struct controller_event e;
		char check[32];

		living[1 + random() % IDS] = random() % 3 != 0;
		life[id] = (struct controller_life){ (int32_t)(random() % 4), random() % 100, (int32_t)(random() % 2) };
		switch (random() % 12) {
		case 0:
			snprintf(check, sizeof(check), "h:%lld;%ld", (long long)id, random() % 2);
			apply(id, check);
			break;
		case 1:
			clean(random() % 2 ? "1" : "2;3", random() % 4 == 0);
			break;
		case 2:
		case 3:
			elect(id, random() % 3 == 0, random() % 20 == 0);
			break;
		case 4:
			elect(CONTROLLER_NOBODY, false, false);
			break;
		default:
			for (int i = 0; i < 3; i++)
				ids[i] = 1 + random() % IDS;
			ids[random() % 3] = master_before;
			alter(random() % 8 ? master_before : id, epoch_before - (random() % 8 == 0),
			      sync_before.epoch - (random() % 8 == 0), 1 + (size_t)(random() % 3), ids);
			break;
		}
		if (!v.happens)
			continue;
		event.n = 0;
		controller_event_encode(&v.event, &event);
		happens();
		assert_int_equal(controller_event_decode(buf_view(&event), &e), 0);
		controller_happened(follower, &e);
		g = group();
		if (!g)
			continue;
		if (g->master != master_before && g->master != CONTROLLER_NOBODY && epoch_before > 0)
			assert_true(g->master_epoch > epoch_before);
		if (g->master != CONTROLLER_NOBODY)
			assert_true(body_sync_set_has(&g->sync, g->master));
		if (v.event.kind == CONTROLLER_ELECT && g->master != CONTROLLER_NOBODY && epoch_before > 0)
			assert_true(living[g->master]);
		for (size_t i = 0; i + 1 < g->n; i++)
			assert_true(g->v[i].id < g->v[i + 1].id);
	}
	controller_save(c, &a);
	controller_save(follower, &b);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
	buf_free(&a);
	buf_free(&b);
	buf_free(&event);
	controller_free(follower);
}

/* ---- Who lives, who takes part --------------------------------------------------------------------------------------- */

static void a_broker_lives_until_it_is_silent_or_its_connection_goes(void **state)
{
	struct controller_lives *l = controller_lives_new();
	struct broker_heartbeat_header h = { .clusterName = MQ_STR("C"), .brokerName = MQ_STR("a"), .brokerId = 1, .epoch = 3, .maxOffset = 50,
					     .heartbeatTimeoutMills = 100 };
	int conn, other;
	const struct controller_life *seen;

	HEADER_SET(broker_heartbeat_header, &h, epoch);
	HEADER_SET(broker_heartbeat_header, &h, maxOffset);
	controller_lives_beat(l, &h, &conn, 1000);
	seen = controller_lives_look(l, MQ_STR("C"), MQ_STR("a"), 1);
	assert_non_null(seen);
	assert_int_equal(seen->max_off, 50);
	h.maxOffset = 40;
	controller_lives_beat(l, &h, &conn, 1050);
	assert_int_equal(seen->max_off, 50);
	assert_int_equal(controller_lives_scan(l, 1150), 0);
	assert_int_equal(controller_lives_scan(l, 1151), 1);
	assert_null(controller_lives_look(l, MQ_STR("C"), MQ_STR("a"), 1));
	controller_lives_beat(l, &h, &conn, 2000);
	h.brokerId = 2;
	controller_lives_beat(l, &h, &other, 2000);
	assert_int_equal(controller_lives_lost(l, &conn), 1);
	assert_null(controller_lives_look(l, MQ_STR("C"), MQ_STR("a"), 1));
	assert_non_null(controller_lives_look(l, MQ_STR("C"), MQ_STR("a"), 2));
	controller_lives_free(l);
}

static void peers_are_ids_with_addresses_and_one_of_them_is_this(void **state)
{
	struct controller_peers p;
	struct mq_error e;

	assert_int_equal(controller_peers_parse("n0-127.0.0.1:9877;n1-host-b:9878;", "n1", 100, &p, &e), 0);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.self, 1);
	assert_string_equal(p.v[1].host, "host-b");
	assert_int_equal(p.v[1].port, 9878);
	assert_int_equal(p.v[1].raft_port, 9978);
	assert_int_equal(controller_peers_parse("n0-127.0.0.1:9877", "n1", 100, &p, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, "n1"));
	assert_int_equal(controller_peers_parse("127.0.0.1:9877", "n0", 100, &p, &e), MQ_EINVAL);
	assert_true(controller_peers_parse("n0-127.0.0.1", "n0", 100, &p, &e) < 0);
	assert_int_equal(controller_peers_parse("n0-h:65500", "n0", 100, &p, &e), MQ_EINVAL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		T(the_first_id_of_a_new_name_is_1_and_no_other), T(an_id_goes_with_its_check_code),
		T(names_that_fit_into_no_event_are_refused), T(a_broker_registers_with_an_id_that_it_has), T(who_asks_first_is_the_first_master),
		T(a_group_that_is_not_known_elects_nobody), T(a_living_master_stays), T(only_who_is_in_sync_follows_a_dead_master),
		T(the_best_in_sync_is_elected), T(the_newer_epoch_beats_the_longer_log_and_the_lower_priority_the_rest),
		T(a_designated_one_or_nobody), T(when_nobody_can_be_master_all_are_told_once),
		T(a_group_is_headless_when_its_master_is_dead_and_somebody_lives),
		T(a_sync_set_changes_only_by_the_master_who_knows_the_newest), T(who_lives_is_not_forgotten_unless_asked_for),
		T(the_state_is_the_same_after_save_and_load), T(names_that_differ_behind_a_zero_byte_are_no_state),
		T(the_state_is_the_same_after_save_and_load), T(an_event_that_is_cut_is_refused),
		T(a_sync_set_is_read_as_it_is_written), T(what_was_elected_and_who_is_in_sync_are_written_as_the_peer_does),
		T(promises_hold_whatever_is_asked_in_whatever_order), T(a_broker_lives_until_it_is_silent_or_its_connection_goes),
		T(peers_are_ids_with_addresses_and_one_of_them_is_this),
	};

	log_max = LOG_ERROR;
	return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
