/* test_route_table.c: brokers register, change, fall silent, leave; what clients are then told. */
#include "../../bin/namesrv/route_table.h"
#include "base/log.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Fixture, helpers ------------------------------------------------------------------------------------------------------ */

static struct route_table *t;
static char conn_a, conn_b;             /* stand for connections */

static int start(void **state)
{
	t = route_table_new();
	return 0;
}

static int stop(void **state)
{
	route_table_free(t);
	return 0;
}

/* A registration of broker `name` with id and these topics ("A B C"); more is set by the caller through the returned struct. */
struct reg {
	struct route_registration r;
	struct body_register body;
	struct body_topic topic[16];
	struct route_master master;
};

static void reg_init(struct reg *g, const char *name, int64_t id, const char *addr, const char *topics)
{
	struct mq_str rest = str_of(topics), one;

	*g = (struct reg){ .r = { .cluster = MQ_STR("C"), .name = str_of(name), .addr = str_of(addr), .ha_addr = MQ_STR("ha:1"), .id = id,
	                          .conn = &conn_a } };
	g->body.topics.version = (struct body_version){ 0, 1000, 1 };
	g->body.topics.topic = g->topic;
	while (rest.n && str_split(&rest, ' ', &one))
		g->topic[g->body.topics.n++] = (struct body_topic){ .name = one, .read = 4, .write = 4, .perm = 6 };
}

static int reg_send(struct reg *g, int64_t now)
{
	struct mq_error e = { 0 };
	int rc;

	g->r.body = &g->body;
	rc = route_table_register(t, &g->r, now, &g->master, &e);
	if (rc < 0)
		assert_true(e.text[0] != 0);
	return rc;
}

static void add(const char *name, int64_t id, const char *addr, const char *topics)
{
	struct reg g;

	reg_init(&g, name, id, addr, topics);
	assert_int_equal(reg_send(&g, 0), 0);
}

/* "broker=perm id:addr id:addr;..." of a topic; "-" if it has no route. */
static const char *route(const char *topic, bool acting)
{
	static char text[2000];
	struct body_route r;
	size_t n = 0;

	if (route_table_pick(t, str_of(topic), acting, &r) < 0)
		return "-";
	text[0] = 0;
	for (size_t i = 0; i < r.nbrokers; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s" MQ_STR_FMT "=%d", i ? ";" : "", MQ_STR_ARG(r.broker[i].name), r.queue[i].perm);
		for (size_t k = 0; k < r.broker[i].naddrs; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %lld:" MQ_STR_FMT, (long long)r.broker[i].addr[k].id,
			                      MQ_STR_ARG(r.broker[i].addr[k].addr));
	}
	body_route_free(&r);
	return text;
}
#define assert_route(topic, want) assert_string_equal(route((topic), false), (want))

/* ---- Registration ---------------------------------------------------------------------------------------------------------- */

static void a_topic_on_two_brokers_has_both(void **state)
{
	assert_route("A", "-");
	add("x", 0, "x:1", "A B");
	add("y", 0, "y:1", "B C");
	assert_route("A", "x=6 0:x:1");
	assert_route("B", "x=6 0:x:1;y=6 0:y:1");
	assert_route("C", "y=6 0:y:1");
	assert_int_equal(route_table_ntopics(t), 3);
	assert_int_equal(route_table_nbrokers(t), 2);
}

static void a_slave_is_listed_and_told_its_master(void **state)
{
	struct reg g;

	reg_init(&g, "x", 1, "x:2", "A B");
	assert_int_equal(reg_send(&g, 0), 0);
	assert_null(g.master.addr.p);
	/* A slave of an old broker brings no topics. */
	assert_route("A", "-");
	add("x", 0, "x:1", "A B");
	assert_int_equal(reg_send(&g, 0), 0);
	assert_true(str_is(g.master.addr, "x:1"));
	assert_true(str_is(g.master.ha_addr, "ha:1"));
	assert_route("A", "x=6 0:x:1 1:x:2");
}

static void a_few_topics_before_the_whole_are_refused(void **state)
{
	struct reg g;
	struct body_cluster c;

	reg_init(&g, "x", 0, "x:1", "A");
	assert_int_equal(reg_send(&g, 0), MQ_EREFUSED);
	/* Nothing of it stays. */
	route_table_clusters(t, &c);
	assert_int_equal(c.nbrokers + c.nclusters, 0);
	body_cluster_free(&c);
	/* From a broker that says that this is all, one topic is enough. */
	g.r.full = true;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:1");
}

static void unchanged_versions_change_nothing_and_new_topics_come_in(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B");
	/* The same version with other numbers: believed only for topics that are not known. */
	reg_init(&g, "x", 0, "x:1", "A B C");
	g.topic[0].perm = 4;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:1");
	assert_route("C", "x=6 0:x:1");
	g.body.topics.version.counter++;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=4 0:x:1");
}

/* A broker that began in the year 2050 and whose clock was then put right. */
static void a_version_of_an_earlier_time_counts_too(void **state)
{
	struct reg g;

	reg_init(&g, "x", 0, "x:1", "A B");
	g.body.topics.version.timestamp = 2524608000000;
	assert_int_equal(reg_send(&g, 0), 0);
	reg_init(&g, "x", 0, "x:1", "A B");
	g.topic[0].perm = 4;
	g.body.topics.version.timestamp = 1796057368586;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=4 0:x:1");
}

static void topics_that_are_left_out_stay_unless_all_were_sent(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B C");
	add("y", 0, "y:1", "B D");
	reg_init(&g, "x", 0, "x:1", "A D");
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("C", "x=6 0:x:1");
	g.r.full = true;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:1");
	assert_route("B", "y=6 0:y:1");
	assert_route("C", "-");
	assert_route("D", "y=6 0:y:1;x=6 0:x:1");
	/* Also when the version is a new one. */
	reg_init(&g, "x", 0, "x:1", "A");
	g.r.full = true;
	g.body.topics.version.counter = 9;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("D", "y=6 0:y:1");
}

/* The same registration again is known by its digest, as long as nothing went that it would bring back. */
static void the_same_registration_need_not_be_read(void **state)
{
	struct reg g, other;

	reg_init(&g, "x", 0, "x:1", "A B");
	g.r.digest = 77;
	assert_false(route_table_again(t, &g.r, 0, &g.master));
	assert_int_equal(reg_send(&g, 0), 0);
	assert_true(route_table_again(t, &g.r, 5, &g.master));
	/* It lives from then on, over the newest connection. */
	g.r.conn = &conn_b;
	assert_true(route_table_again(t, &g.r, 1000, &g.master));
	route_table_scan(t, ROUTE_TIMEOUT_MS + 500, NULL, NULL);
	route_table_lost(t, &conn_a);
	assert_route("A", "x=6 0:x:1");
	/* Anything else is read. */
	other = g;
	other.r.digest = 78;
	assert_false(route_table_again(t, &other.r, 0, &other.master));
	other = g;
	other.r.zone = MQ_STR("east");
	assert_false(route_table_again(t, &other.r, 0, &other.master));
	other = g;
	other.r.id = 1;
	assert_false(route_table_again(t, &other.r, 0, &other.master));
	other = g;
	other.r.ha_addr = MQ_STR("ha:2");
	assert_false(route_table_again(t, &other.r, 0, &other.master));
	other = g;
	other.r.acting_master = other.r.knows_acting_master = true;
	assert_false(route_table_again(t, &other.r, 0, &other.master));
	/* A topic that was deleted here comes back with the broker that still has it. */
	route_table_delete_topic(t, MQ_STR("A"), MQ_STR(""));
	assert_false(route_table_again(t, &g.r, 0, &g.master));
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:1");
	assert_true(route_table_again(t, &g.r, 0, &g.master));
	/* A slave becomes the first: what it says counts now. */
	add("x", 1, "x:2", "A B");
	assert_false(route_table_again(t, &g.r, 0, &g.master));
	assert_int_equal(reg_send(&g, 0), 0);
	assert_true(route_table_again(t, &g.r, 0, &g.master));
}

static void a_slave_that_becomes_master_is_known_once(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B");
	add("x", 1, "x:2", "A B");
	assert_route("A", "x=6 0:x:1 1:x:2");
	reg_init(&g, "x", 0, "x:2", "A B");
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:2");
}

static void an_old_master_behind_in_its_state_version_is_ignored(void **state)
{
	struct reg g;

	reg_init(&g, "x", 0, "x:2", "A B");
	g.body.topics.version.state = 5;
	assert_int_equal(reg_send(&g, 0), 0);
	reg_init(&g, "x", 0, "x:1", "A B Z");
	g.body.topics.version.state = 4;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("A", "x=6 0:x:2");
	assert_route("Z", "-");
	g.body.topics.version.state = 6;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("Z", "x=6 0:x:1");
}

static void write_permission_comes_back_with_the_next_change(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B");
	add("y", 0, "y:1", "B C");
	assert_int_equal(route_table_wipe_write(t, MQ_STR("x")), 2);
	assert_int_equal(route_table_wipe_write(t, MQ_STR("nobody")), 0);
	assert_route("B", "x=4 0:x:1;y=6 0:y:1");
	add("x", 0, "x:1", "A B");
	assert_route("B", "x=4 0:x:1;y=6 0:y:1");
	assert_int_equal(route_table_add_write(t, MQ_STR("x")), 2);
	assert_route("B", "x=6 0:x:1;y=6 0:y:1");
	route_table_wipe_write(t, MQ_STR("x"));
	reg_init(&g, "x", 0, "x:1", "A B");
	g.body.topics.version.counter = 2;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_route("B", "x=6 0:x:1;y=6 0:y:1");
}

/* ---- Leaving --------------------------------------------------------------------------------------------------------------- */

static void the_last_address_takes_topics_and_cluster_along(void **state)
{
	struct body_cluster c;

	add("x", 0, "x:1", "A B");
	add("x", 1, "x:2", "A B");
	add("y", 0, "y:1", "B C");
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:1"), 0, &conn_a));
	assert_route("A", "x=6 1:x:2");
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:2"), 1, &conn_a));
	assert_route("A", "-");
	assert_route("B", "y=6 0:y:1");
	route_table_clusters(t, &c);
	assert_int_equal(c.nbrokers, 1);
	assert_int_equal(c.nclusters, 1);
	assert_int_equal(c.cluster[0].n, 1);
	body_cluster_free(&c);
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("y"), MQ_STR("y:1"), 0, &conn_a));
	assert_int_equal(route_table_ntopics(t), 0);
	assert_int_equal(route_table_nbrokers(t), 0);
	route_table_clusters(t, &c);
	assert_int_equal(c.nbrokers + c.nclusters, 0);
	body_cluster_free(&c);
	/* Who was never there can leave. */
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("z"), MQ_STR("z:1"), 0, &conn_a));
}

/* A farewell that was held up arrives when the next process of the same broker has registered already. */
static void a_late_farewell_does_not_take_the_new_process_away(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B");
	reg_init(&g, "x", 0, "x:1", "A B");
	g.r.conn = &conn_b;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_false(route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:1"), 0, &conn_a));
	route_table_lost(t, &conn_a);
	assert_route("A", "x=6 0:x:1");
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:1"), 0, &conn_b));
	assert_route("A", "-");
}

/* It has connected anew, but its topics are known, so it only asks for their version: it must not fall with the old connection. */
static void a_broker_lives_on_its_newest_connection(void **state)
{
	add("x", 0, "x:1", "A B");
	route_table_touch(t, MQ_STR("C"), MQ_STR("x:1"), &conn_b, 5);
	route_table_lost(t, &conn_a);
	assert_route("A", "x=6 0:x:1");
	route_table_lost(t, &conn_b);
	assert_route("A", "-");
}

static void all_brokers_of_a_lost_connection_leave(void **state)
{
	struct reg g;

	add("x", 0, "x:1", "A B");
	add("x", 1, "x:2", "A B");
	reg_init(&g, "y", 0, "y:1", "B C");
	g.r.conn = &conn_b;
	assert_int_equal(reg_send(&g, 0), 0);
	route_table_lost(t, &conn_a);
	assert_route("A", "-");
	assert_route("B", "y=6 0:y:1");
	assert_int_equal(route_table_nbrokers(t), 1);
}

static void count_expired(void *arg, const void *conn)
{
	assert_ptr_equal(conn, &conn_a);
	++*(int *)arg;
}

static void silent_brokers_leave_when_their_time_is_up(void **state)
{
	struct reg g;
	int expired = 0;

	add("x", 0, "x:1", "A B");
	reg_init(&g, "y", 0, "y:1", "B C");
	g.r.timeout_ms = 1000;
	assert_int_equal(reg_send(&g, 0), 0);
	route_table_scan(t, 1000, count_expired, &expired);
	assert_int_equal(expired, 0);
	route_table_touch(t, MQ_STR("C"), MQ_STR("y:1"), &conn_a, 900);
	route_table_scan(t, 1900, count_expired, &expired);
	assert_int_equal(expired, 0);
	route_table_scan(t, 1901, count_expired, &expired);
	assert_int_equal(expired, 1);
	assert_route("C", "-");
	assert_route("B", "x=6 0:x:1");
	route_table_scan(t, ROUTE_TIMEOUT_MS, count_expired, &expired);
	assert_int_equal(expired, 1);
	route_table_scan(t, ROUTE_TIMEOUT_MS + 1, count_expired, &expired);
	assert_int_equal(expired, 2);
	assert_int_equal(route_table_ntopics(t), 0);
}

/* Its address was taken over by another: the entry of the old one must not stay for good. */
static void the_trace_of_a_replaced_address_goes_too(void **state)
{
	int expired = 0;
	struct reg g;

	add("x", 0, "x:1", "A B");
	reg_init(&g, "x", 0, "x:9", "A B");
	assert_int_equal(reg_send(&g, 100000), 0);
	assert_int_equal(route_table_nbrokers(t), 2);
	route_table_scan(t, ROUTE_TIMEOUT_MS + 1, count_expired, &expired);
	assert_int_equal(expired, 1);
	assert_int_equal(route_table_nbrokers(t), 1);
	assert_route("A", "x=6 0:x:9");
}

/* ---- Acting master --------------------------------------------------------------------------------------------------------- */

static void add_acting(const char *name, int64_t id, const char *addr, const char *topics)
{
	struct reg g;

	reg_init(&g, name, id, addr, topics);
	g.r.knows_acting_master = g.r.acting_master = true;
	assert_int_equal(reg_send(&g, 0), 0);
}

static void a_slave_stands_in_for_a_master_that_is_gone(void **state)
{
	add_acting("x", 0, "x:1", "A rmq_sys_SYNC_BROKER_MEMBER_x");
	add_acting("x", 1, "x:2", "A rmq_sys_SYNC_BROKER_MEMBER_x");
	add_acting("x", 2, "x:3", "A rmq_sys_SYNC_BROKER_MEMBER_x");
	assert_string_equal(route("A", true), "x=6 0:x:1 1:x:2 2:x:3");
	assert_true(route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:1"), 0, &conn_a));
	/* Reading only, and under the master's number for those who are shown it. */
	assert_string_equal(route("A", true), "x=4 0:x:2 2:x:3");
	assert_string_equal(route("A", false), "x=4 1:x:2 2:x:3");
	assert_string_equal(route("rmq_sys_SYNC_BROKER_MEMBER_x", true), "x=4 1:x:2 2:x:3");
	add_acting("x", 0, "x:1", "A B");
	assert_string_equal(route("A", true), "x=6 0:x:1 1:x:2 2:x:3");
}

static void a_slave_alone_brings_topics_that_can_be_read(void **state)
{
	add_acting("x", 3, "x:4", "A B");
	assert_string_equal(route("A", false), "x=4 3:x:4");
	assert_string_equal(route("A", true), "x=4 0:x:4");
}

static struct {
	int calls, told;
	int64_t id;
	char addr[20], offline[20], ha[20];
} first;

static void on_first(void *arg, const struct route_first *f)
{
	first.calls++;
	first.told = (int)f->n;
	first.id = f->id;
	snprintf(first.addr, sizeof(first.addr), MQ_STR_FMT, MQ_STR_ARG(f->addr));
	snprintf(first.offline, sizeof(first.offline), MQ_STR_FMT, MQ_STR_ARG(f->offline));
	snprintf(first.ha, sizeof(first.ha), MQ_STR_FMT, MQ_STR_ARG(f->ha));
}

static void replicas_are_told_who_is_first(void **state)
{
	memset(&first, 0, sizeof(first));
	route_table_on_first(t, on_first, NULL);
	add_acting("x", 2, "x:3", "A B");
	add_acting("x", 1, "x:2", "A B");
	assert_int_equal(first.calls, 1);
	add_acting("x", 0, "x:1", "A B");
	assert_int_equal(first.calls, 2);
	assert_int_equal(first.told, 2);
	assert_string_equal(first.addr, "x:1");
	assert_string_equal(first.ha, "ha:1");
	assert_string_equal(first.offline, "");
	route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:3"), 2, &conn_a);
	assert_int_equal(first.calls, 2);
	route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:1"), 0, &conn_a);
	assert_int_equal(first.calls, 3);
	assert_int_equal(first.id, 1);
	assert_int_equal(first.told, 1);
	assert_string_equal(first.offline, "x:1");
	route_table_unregister(t, MQ_STR("C"), MQ_STR("x"), MQ_STR("x:2"), 1, &conn_a);
	assert_int_equal(first.calls, 3);
}

/* ---- Topics by request, lists ---------------------------------------------------------------------------------------------- */

static void topics_are_added_and_deleted_by_request(void **state)
{
	struct body_queues_of q[] = { { MQ_STR("x"), 1, 2, 6, 0 }, { MQ_STR("nobody"), 1, 1, 6, 0 } };

	add("x", 0, "x:1", "A B");
	route_table_add_topic(t, MQ_STR("N"), q, 2);
	assert_route("N", "-");
	route_table_add_topic(t, MQ_STR("N"), q, 1);
	assert_route("N", "x=6 0:x:1");
	route_table_delete_topic(t, MQ_STR("N"), MQ_STR("other"));
	assert_route("N", "x=6 0:x:1");
	route_table_delete_topic(t, MQ_STR("N"), MQ_STR("C"));
	assert_route("N", "-");
	add("y", 0, "y:1", "A C");
	route_table_delete_topic(t, MQ_STR("A"), MQ_STR(""));
	assert_route("A", "-");
	route_table_delete_topic(t, MQ_STR("A"), MQ_STR(""));
}

static const char *list_text(struct body_topic_list *l)
{
	static char text[1000];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < l->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s" MQ_STR_FMT, i ? " " : "", MQ_STR_ARG(l->topic[i]));
	if (l->broker_addr.p)
		snprintf(text + n, sizeof(text) - n, " @" MQ_STR_FMT, MQ_STR_ARG(l->broker_addr));
	body_topic_list_free(l);
	return text;
}

static void lists_of_topics(void **state)
{
	struct body_topic_list l;
	struct reg g;

	reg_init(&g, "x", 0, "x:1", "A B D");
	g.topic[1].sys_flag = TOPIC_UNIT;
	g.topic[2].sys_flag = TOPIC_UNIT | TOPIC_UNIT_SUB;
	assert_int_equal(reg_send(&g, 0), 0);
	reg_init(&g, "y", 0, "y:1", "B E");
	g.topic[1].sys_flag = TOPIC_UNIT_SUB;
	g.r.cluster = MQ_STR("K");
	assert_int_equal(reg_send(&g, 0), 0);
	route_table_topics(t, ROUTE_ALL, &l);
	assert_string_equal(list_text(&l), "A B D E");
	route_table_topics(t, ROUTE_UNIT, &l);
	assert_string_equal(list_text(&l), "B D");
	route_table_topics(t, ROUTE_UNIT_SUB, &l);
	assert_string_equal(list_text(&l), "D E");
	route_table_topics(t, ROUTE_UNIT_SUB_NO_UNIT, &l);
	assert_string_equal(list_text(&l), "E");
	route_table_cluster_topics(t, MQ_STR("K"), &l);
	assert_string_equal(list_text(&l), "B E");
	route_table_cluster_topics(t, MQ_STR("none"), &l);
	assert_string_equal(list_text(&l), "");
	route_table_system_topics(t, &l);
	assert_string_equal(list_text(&l), "C x K y @x:1");
}

static void members_of_a_broker(void **state)
{
	struct body_members m;
	struct buf out = { 0 };

	add("x", 0, "x:1", "A B");
	add("x", 2, "x:2", "A B");
	route_table_members(t, MQ_STR("C"), MQ_STR("x"), &m);
	body_members_encode(&m, &out);
	assert_true(str_is(buf_view(&out), "{\"brokerMemberGroup\":{\"brokerAddrs\":{0:\"x:1\",2:\"x:2\"},\"brokerName\":\"x\",\"cluster\":\"C\"}}"));
	body_members_free(&m);
	out.n = 0;
	route_table_members(t, MQ_STR("C"), MQ_STR("none"), &m);
	body_members_encode(&m, &out);
	assert_true(str_is(buf_view(&out), "{\"brokerMemberGroup\":{\"brokerAddrs\":{},\"brokerName\":\"none\",\"cluster\":\"C\"}}"));
	body_members_free(&m);
	buf_free(&out);
}

static void filter_servers_are_passed_on(void **state)
{
	struct mq_str filters[] = { MQ_STR("f:1"), MQ_STR("f:2") };
	struct body_route r;
	struct reg g;

	reg_init(&g, "x", 0, "x:1", "A B");
	g.body.nfilters = 2;
	g.body.filter = filters;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_int_equal(route_table_pick(t, MQ_STR("A"), false, &r), 0);
	assert_int_equal(r.nfilters, 1);
	assert_true(str_is(r.filter[0].broker_addr, "x:1"));
	assert_int_equal(r.filter[0].n, 2);
	body_route_free(&r);
	g.body.nfilters = 0;
	assert_int_equal(reg_send(&g, 0), 0);
	assert_int_equal(route_table_pick(t, MQ_STR("A"), false, &r), 0);
	assert_int_equal(r.nfilters, 0);
	body_route_free(&r);
}

static void there_is_a_bound_to_replicas(void **state)
{
	struct reg g;

	for (int i = 0; i < ROUTE_REPLICAS_MAX; i++) {
		char addr[20];

		snprintf(addr, sizeof(addr), "x:%d", i);
		add("x", i, addr, "A B");
	}
	reg_init(&g, "x", ROUTE_REPLICAS_MAX, "x:more", "A B");
	assert_int_equal(reg_send(&g, 0), MQ_EREFUSED);
	/* Who is known may go on. */
	add("x", 0, "x:0", "A B");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(a_topic_on_two_brokers_has_both),
		TEST(a_slave_is_listed_and_told_its_master),
		TEST(a_few_topics_before_the_whole_are_refused),
		TEST(unchanged_versions_change_nothing_and_new_topics_come_in),
		TEST(a_version_of_an_earlier_time_counts_too),
		TEST(topics_that_are_left_out_stay_unless_all_were_sent),
		TEST(the_same_registration_need_not_be_read),
		TEST(a_slave_that_becomes_master_is_known_once),
		TEST(an_old_master_behind_in_its_state_version_is_ignored),
		TEST(write_permission_comes_back_with_the_next_change),
		TEST(the_last_address_takes_topics_and_cluster_along),
		TEST(a_late_farewell_does_not_take_the_new_process_away),
		TEST(a_broker_lives_on_its_newest_connection),
		TEST(all_brokers_of_a_lost_connection_leave),
		TEST(silent_brokers_leave_when_their_time_is_up),
		TEST(the_trace_of_a_replaced_address_goes_too),
		TEST(a_slave_stands_in_for_a_master_that_is_gone),
		TEST(a_slave_alone_brings_topics_that_can_be_read),
		TEST(replicas_are_told_who_is_first),
		TEST(topics_are_added_and_deleted_by_request),
		TEST(lists_of_topics),
		TEST(members_of_a_broker),
		TEST(filter_servers_are_passed_on),
		TEST(there_is_a_bound_to_replicas),
	};

	log_max = LOG_ERROR;
	return cmocka_run_group_tests_name("route_table", tests, NULL, NULL);
}
