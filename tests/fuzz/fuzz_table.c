/* fuzz_table: covers bin/broker/table_file.c with topic_table.c, group_table.c, offset_table.c, delay.c, filter_table.c,
 * mode_table.c, order_table.c, and
 * bin/namesrv/kv_table.c: the input is a file of config/.  The first byte chooses it; with 128 it stands as .bak beside a broken
 * one.  What was read is written, read, and written as the same.  Seeds: configurations of tests/golden/store. */
#include "lab_store.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/delay.h"
#include "../../bin/broker/filter_table.h"
#include "../../bin/broker/group_table.h"
#include "../../bin/broker/mode_table.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/order_table.h"
#include "../../bin/broker/topic_table.h"
#include "../../bin/namesrv/kv_table.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum { TOPICS, GROUPS, OFFSETS, DELAY, FILTERS, MODES, ORDERS, KINDS };
static const char *const file_name[KINDS] = { "topics", "subscriptionGroup", "consumerOffset", "delayOffset", "consumerFilter",
					       "messageRequestMode", "consumerOrderInfo" };

static uv_loop_t loop;
static struct broker_conf conf;
static struct broker broker;

/* As much of a broker as its tables want. */
static void start(void)
{
	struct mqstore_opt o;
	static char dir[1024];

	lab_store_make(false, false);
	strcpy(dir, lab_path("store"));
	uv_loop_init(&loop);
	broker.loop = &loop;
	broker.conf = &conf;
	broker.conf_rows = broker_conf_new(&conf);
	conf_set(broker.conf_rows, MQ_STR("storePathRootDir"), (struct mq_str){ dir, strlen(dir) }, NULL);
	LAB_CHECK(broker_conf_check(broker.conf_rows, &conf, NULL) == 0);
	uv_check_init(&loop, &broker.turn);
	uv_idle_init(&loop, &broker.turn_now);
	mqstore_defaults(&o);
	o.dir = dir;
	o.adopt_sizes = true;
	o.read_only = true;
	LAB_CHECK(mqstore_open(&broker.store, &o, NULL) == 0);
}

/* Nothing is saved here: only handles that were closed have their turn. */
static void turn(void)
{
	uv_check_stop(&broker.turn);
	uv_idle_stop(&broker.turn_now);
	broker.turn_wanted = false;
	uv_run(&loop, UV_RUN_NOWAIT);
}

/* Open, write what came into *text, close.  False: refused with words. */
static bool pass(int kind, struct buf *text)
{
	struct mq_error e = { 0 };
	struct filter_table *filters = NULL;
	struct offset_table *offsets = NULL;
	struct topic_table *topics = NULL;
	struct group_table *groups = NULL;
	struct order_table *orders = NULL;
	struct mode_table *modes = NULL;
	struct delay *delay = NULL;
	int rc = 0;

	switch (kind) {
	case TOPICS:
		rc = topic_table_open(&topics, &broker, &e);
		if (rc == 0)
			topics->file.kind.write(topics, text);
		topic_table_free(topics);
		break;
	case GROUPS:
		rc = group_table_open(&groups, &broker, &e);
		if (rc == 0)
			groups->file.kind.write(groups, text);
		group_table_free(groups);
		break;
	case OFFSETS:
		rc = offset_table_open(&offsets, &broker, &e);
		if (rc == 0)
			offsets->file.kind.write(offsets, text);
		offset_table_free(offsets);
		break;
	case DELAY:
		rc = delay_open(&delay, &broker, &e);
		if (rc == 0)
			delay_stop(delay);
		delay_free(delay);
		break;
	case FILTERS:
		rc = filter_table_open(&filters, &broker, &e);
		if (rc == 0)
			filters->file.kind.write(filters, text);
		filter_table_free(filters);
		break;
	case MODES:
		rc = mode_table_open(&modes, &broker, &e);
		if (rc == 0)
			modes->file.kind.write(modes, text);
		mode_table_free(modes);
		break;
	case ORDERS:
		rc = offset_table_open(&broker.offsets, &broker, &e);
		if (rc == 0)
			rc = topic_table_open(&broker.topics, &broker, &e);
		if (rc == 0)
			rc = order_table_open(&orders, &broker, &e);
		if (rc == 0)
			orders->file.kind.write(orders, text);
		order_table_free(orders);
		topic_table_free(broker.topics);
		offset_table_free(broker.offsets);
		broker.topics = NULL;
		broker.offsets = NULL;
		break;
	}
	turn();
	LAB_CHECK(rc == 0 || e.text[0]);
	return rc == 0;
}

/* Behind the version, which each start of a broker changes. */
static struct mq_str content(const struct buf *text)
{
	const char *end = text->n ? memchr(text->p, '}', text->n) : NULL;
	size_t skip = end && strncmp(text->p, "{\"dataVersion\"", 14) == 0 ? (size_t)(end - text->p) : 0;

	return (struct mq_str){ text->p + skip, text->n - skip };
}

static void table(int kind, bool as_copy, const uint8_t *p, size_t n)
{
	char *path = lab_path("store/config/%s.json", file_name[kind]), *bak = lab_path("store/config/%s.json.bak", file_name[kind]);
	struct buf text[3] = { 0 };
	int passes = 0;

	sys_remove_tree(lab_path("store/config"));
	LAB_CHECK(sys_mkdir_all(lab_path("store/config")) == 0);
	lab_write(as_copy ? bak : path, p, n, 0);
	if (as_copy)
		lab_write(path, "{", 1, 0);
	while (passes < 3 && pass(kind, &text[passes]) && text[passes].n) {
		lab_write(path, text[passes].p, text[passes].n, 0);
		passes++;
	}
	LAB_CHECK(passes == 0 || passes == 3 || kind == DELAY);
	if (passes == 3) {
		struct mq_str a = content(&text[1]), b = content(&text[2]);

		LAB_CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
	}
	for (int i = 0; i < 3; i++)
		buf_free(&text[i]);
}

static void kv(const uint8_t *p, size_t n)
{
	char *path = lab_path("kvConfig.json");
	struct mq_error e = { 0 };
	struct kv_table *t;
	size_t count;

	lab_write(path, p, n, 0);
	sys.unlink(lab_path("kvConfig.json.bak"));
	t = kv_table_open(path, &e);
	if (!t) {
		LAB_CHECK(e.text[0]);
		return;
	}
	LAB_CHECK(kv_table_put(t, MQ_STR("space"), MQ_STR("key"), MQ_STR("value"), &e) == 0 || e.code == MQ_ETOOBIG);
	count = kv_table_count(t);
	kv_table_free(t);
	t = kv_table_open(path, &e);
	LAB_CHECK(t && kv_table_count(t) == count);
	kv_table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 1)
		return 0;
	if (!broker.store)
		start();
	if ((p[0] & 127) % (KINDS + 1) == KINDS)
		kv(p + 1, n - 1);
	else
		table((p[0] & 127) % (KINDS + 1), p[0] & 128, p + 1, n - 1);
	return 0;
}
