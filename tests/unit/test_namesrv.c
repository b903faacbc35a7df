/* test_namesrv.c: the name server over the wire: what brokers, clients and administrators send, and what they are answered. */
#include "../../bin/namesrv/namesrv.h"
#include "base/byte.h"
#include "base/crc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/body_register.h"
#include "codec/body_route.h"
#include "codec/request.h"
#include "golden.h"
#include "tempdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- Fixture: a name server and clients of it on one loop ------------------------------------------------------------------ */

static struct {
	uv_loop_t loop;
	struct namesrv_conf conf;
	struct conf *rows;
	struct namesrv *ns;
	int open;                       /* client connections */
	int requests;                   /* that came to us */
	bool stopped, failed;
} lab;

/* The last answer. */
static struct {
	bool here;
	int rc, code;
	char remark[600];
	struct frame f;
	struct buf bytes, body;
} got;

static void turn_until(const bool *flag)
{
	for (int i = 0; i < 5000 && !*flag; i++) {
		uv_run(&lab.loop, UV_RUN_NOWAIT);
		if (!*flag)
			usleep(1000);
	}
	assert_true(*flag);
}

static void turn_for(int ms)
{
	for (int i = 0; i < ms; i++) {
		uv_run(&lab.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
}

static struct conf *load(void *arg, struct namesrv_conf *c, struct mq_error *e)
{
	struct conf *rows = namesrv_conf_new(c);

	if (conf_file(rows, tempdir_path(arg, "namesrv.conf"), e) < 0) {
		conf_free(rows);
		return NULL;
	}
	return rows;
}

static void start_with(void *dir, const char *const *settings)
{
	struct mq_error e = { 0 };
	struct namesrv_opt opt = { .conf = &lab.conf, .load = load, .load_arg = dir };

	memset(&lab, 0, sizeof(lab));
	uv_loop_init(&lab.loop);
	opt.rows = lab.rows = namesrv_conf_new(&lab.conf);
	conf_set(lab.rows, MQ_STR("listenPort"), MQ_STR("0"), &e);
	conf_set(lab.rows, MQ_STR("bindAddress"), MQ_STR("127.0.0.1"), &e);
	conf_set(lab.rows, MQ_STR("kvConfigPath"), str_of(tempdir_path(dir, "kv.json")), &e);
	conf_set(lab.rows, MQ_STR("configStorePath"), str_of(tempdir_path(dir, "namesrv.conf")), &e);
	conf_set(lab.rows, MQ_STR("logLevel"), MQ_STR("error"), &e);
	for (; settings && *settings; settings += 2)
		if (conf_set(lab.rows, str_of(settings[0]), str_of(settings[1]), &e) < 0)
			fail_msg("%s", e.text);
	lab.ns = namesrv_new(&lab.loop, &opt, &e);
	if (!lab.ns || namesrv_listen(lab.ns, &e) < 0)
		fail_msg("%s", e.text);
}
#define START(state, ...) start_with(*(state), (const char *const[]){ __VA_ARGS__ __VA_OPT__(,) NULL })

static void on_stopped(void *arg)
{
	*(bool *)arg = true;
}

static void stop(void)
{
	namesrv_stop(lab.ns, 0, on_stopped, &lab.stopped);
	turn_until(&lab.stopped);
	turn_for(5);
	conf_free(lab.rows);
	assert_int_equal(uv_loop_close(&lab.loop), 0);
	buf_free(&got.bytes);
	buf_free(&got.body);
}

static void on_client_closed(struct conn *c, int why)
{
	lab.open--;
}

static int on_client_request(struct conn *c, struct frame *f)
{
	lab.requests++;
	return 0;
}

static const struct conn_ops client_ops = { .request = on_client_request, .closed = on_client_closed };

static struct conn *client(void)
{
	struct mq_error e;
	char addr[40];
	struct conn *c;

	snprintf(addr, sizeof(addr), "127.0.0.1:%d", namesrv_port(lab.ns));
	c = conn_dial(&lab.loop, addr, 1000, &client_ops, NULL, &e);
	assert_non_null(c);
	lab.open++;
	return c;
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	got.here = true;
	got.rc = rc;
	got.code = f ? f->code : -1;
	got.bytes.n = got.body.n = 0;
	got.remark[0] = 0;
	if (!f)
		return;
	got.f = *f;
	snprintf(got.remark, sizeof(got.remark), MQ_STR_FMT, MQ_STR_ARG(f->remark));
	/* Fields and body are views: keep them. */
	buf_room(&got.bytes, 4096);
	for (uint32_t i = 0; i < f->nfields; i++) {
		size_t at = got.bytes.n;

		buf_str(&got.bytes, f->field[i].key);
		buf_str(&got.bytes, f->field[i].value);
		assert_true(got.bytes.n <= 4096);
		got.f.field[i].key.p = got.bytes.p + at;
		got.f.field[i].value.p = got.bytes.p + at + f->field[i].key.n;
	}
	buf_str(&got.body, f->body);
}

/* Ask and wait: fields as name, value, ..., NULL.  version: what the client says it is; 0 = ours. */
static int ask_as(struct conn *c, int version, int code, struct mq_str body, const char *const *fields)
{
	struct frame_out o;

	got.here = false;
	conn_call(c, &o, code, FRAME_JSON, 2000, on_answer, NULL);
	for (; *fields; fields += 2)
		frame_cstr(&o, fields[0], fields[1]);
	frame_body(&o);
	if (version) {
		char number[8];

		snprintf(number, sizeof(number), "%03d", version);
		memcpy(o.buf->p + o.buf->n - 4, number, 3);     /* "version":453} */
	}
	buf_str(o.buf, body);
	frame_end(&o);
	conn_kick(c);
	turn_until(&got.here);
	assert_int_equal(got.rc, 0);
	return got.code;
}
#define ASK(c, code, ...) ask_as((c), 0, (code), MQ_STR(""), (const char *const[]){ __VA_ARGS__ __VA_OPT__(,) NULL })
#define ASK_BODY(c, code, body, ...) ask_as((c), 0, (code), (body), (const char *const[]){ __VA_ARGS__ __VA_OPT__(,) NULL })

static const char *field(const char *name)
{
	static char text[500];
	struct mq_str v = frame_get(&got.f, name);

	snprintf(text, sizeof(text), MQ_STR_FMT, MQ_STR_ARG(v));
	return v.p ? text : "(none)";
}

static void assert_body(const char *want)
{
	if (!str_is(buf_view(&got.body), want))
		fail_msg("body is '%.*s', want '%s'", (int)got.body.n, got.body.p, want);
}

/* A registration body with these topics ("A B"). */
static void registration(struct buf *out, const char *topics, int64_t counter, bool compressed)
{
	struct body_topic topic[8];
	struct body_register r = { .topics = { .version = { 0, 1, counter }, .topic = topic } };
	struct mq_str rest = str_of(topics), one;

	while (str_split(&rest, ' ', &one))
		topic[r.topics.n++] = (struct body_topic){ .name = one, .read = 4, .write = 4, .perm = 6 };
	out->n = 0;
	if (compressed)
		assert_int_equal(body_register_encode_compressed(&r, out), 0);
	else
		body_register_encode(&r, out);
}

static int reg(struct conn *c, const char *broker, const char *id, const char *addr, const char *topics, bool compressed)
{
	struct buf body = { 0 };
	char crc[16];
	int code;

	registration(&body, topics, 1, compressed);
	snprintf(crc, sizeof(crc), "%u", crc32_peer(body.p, body.n));
	code = ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", broker, "brokerAddr", addr, "clusterName", "K",
	                "haServerAddr", "h:1", "brokerId", id, "bodyCrc32", crc, "compressed", compressed ? "true" : "false",
	                "enableActingMaster", "false");
	buf_free(&body);
	return code;
}

/* ---- Brokers --------------------------------------------------------------------------------------------------------------- */

static void a_broker_registers_and_clients_find_it(void **state)
{
	struct conn *b, *c;

	START(state);
	b = client();
	c = client();
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_TOPIC_NOT_EXIST);
	assert_string_equal(got.remark, "No topic route info in name server for the topic: A" RESPONSE_FAQ);
	assert_int_equal(reg(b, "x", "0", "10.0.0.1:10911", "A B", false), 0);
	assert_string_equal(field("masterAddr"), "(none)");
	assert_body("");
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	assert_body("{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"10.0.0.1:10911\"},\"brokerName\":\"x\",\"cluster\":\"K\",\"enableActingMaster\":false}],"
	            "\"filterServerTable\":{},\"queueDatas\":[{\"brokerName\":\"x\",\"perm\":6,\"readQueueNums\":4,\"topicSysFlag\":0,"
	            "\"writeQueueNums\":4}]}");
	assert_int_equal(reg(b, "x", "1", "10.0.0.2:10911", "A B", true), 0);
	assert_string_equal(field("masterAddr"), "10.0.0.1:10911");
	assert_string_equal(field("haServerAddr"), "h:1");
	assert_int_equal(ASK(c, REQ_GET_BROKER_CLUSTER_INFO), 0);
	assert_body("{\"brokerAddrTable\":{\"x\":{\"brokerAddrs\":{0:\"10.0.0.1:10911\",1:\"10.0.0.2:10911\"},\"brokerName\":\"x\",\"cluster\":\"K\","
	            "\"enableActingMaster\":false}},\"clusterAddrTable\":{\"K\":[\"x\"]}}");
	assert_int_equal(ASK(c, REQ_GET_BROKER_MEMBER_GROUP, "clusterName", "K", "brokerName", "x"), 0);
	assert_body("{\"brokerMemberGroup\":{\"brokerAddrs\":{0:\"10.0.0.1:10911\",1:\"10.0.0.2:10911\"},\"brokerName\":\"x\",\"cluster\":\"K\"}}");
	stop();
}

/* Old clients are sent the dialect of fastjson, unless they say that they can read JSON only. */
static void dialects_by_version(void **state)
{
	static const char *const topic[] = { "topic", "A", NULL }, *const strict[] = { "topic", "A", "acceptStandardJsonOnly", "true", NULL };
	struct conn *c;

	START(state);
	c = client();
	assert_int_equal(reg(c, "x", "0", "h:1", "A B", true), 0);
	ask_as(c, 317, REQ_GET_ROUTEINFO_BY_TOPIC, MQ_STR(""), topic);
	assert_non_null(memmem(got.body.p, got.body.n, "{0:\"h:1\"}", 9));
	ask_as(c, 400, REQ_GET_ROUTEINFO_BY_TOPIC, MQ_STR(""), topic);
	assert_non_null(memmem(got.body.p, got.body.n, "{0:\"h:1\"}", 9));
	ask_as(c, 401, REQ_GET_ROUTEINFO_BY_TOPIC, MQ_STR(""), topic);
	assert_non_null(memmem(got.body.p, got.body.n, "{\"0\":\"h:1\"}", 11));
	ask_as(c, 317, REQ_GET_ROUTEINFO_BY_TOPIC, MQ_STR(""), strict);
	assert_non_null(memmem(got.body.p, got.body.n, "{\"0\":\"h:1\"}", 11));
	stop();
}

/* Send a recorded frame as it is, but for its opaque. */
static int replay(struct conn *c, const char *file)
{
	size_t n;
	char *bytes = golden_read(file, &n);
	struct frame f;
	struct mq_error e;
	struct frame_out o;

	assert_int_equal(frame_parse(bytes, n, &f, &e), 0);
	got.here = false;
	conn_call(c, &o, f.code, f.type, 2000, on_answer, NULL);
	for (uint32_t k = 0; k < f.nfields; k++)
		frame_put_str(&o, f.field[k].key.p, f.field[k].key.n, f.field[k].value);
	frame_body(&o);
	buf_str(o.buf, f.body);
	frame_end(&o);
	conn_kick(c);
	turn_until(&got.here);
	assert_int_equal(got.f.type, f.type);
	free(bytes);
	return got.code;
}

/* As the real broker sent them, in both kinds of headers: one topic that is new, and all of them. */
static void registrations_of_the_java_broker(void **state)
{
	struct conn *c;

	START(state);
	c = client();
	assert_int_equal(replay(c, "wire/java/REGISTER_BROKER.req.bin"), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "register broker failed");
	assert_int_equal(replay(c, "wire/java/REGISTER_BROKER_ALL-binary.req.bin"), 0);
	assert_int_equal(replay(c, "wire/java/REGISTER_BROKER-binary.req.bin"), 0);
	assert_int_equal(replay(c, "wire/java/REGISTER_BROKER_ALL.req.bin"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "TBW102"), 0);
	assert_non_null(memmem(got.body.p, got.body.n, "\"127.0.0.1:28911\"", 17));
	assert_int_equal(replay(c, "wire/java/UNREGISTER_BROKER-binary.req.bin"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "TBW102"), RESP_TOPIC_NOT_EXIST);
	stop();
}

/* A registration under a name that a kept name would be cut from. */
static void name_with_zero(struct conn *c)
{
	struct frame_out o;

	got.here = false;
	conn_call(c, &o, REQ_REGISTER_BROKER, FRAME_JSON, 2000, on_answer, NULL);
	frame_str(&o, "brokerName", (struct mq_str){ "x\0y", 3 });
	frame_cstr(&o, "brokerAddr", "a");
	frame_cstr(&o, "clusterName", "K");
	frame_cstr(&o, "brokerId", "0");
	frame_end(&o);
	conn_kick(c);
	turn_until(&got.here);
	assert_int_equal(got.rc, 0);
}

static void registrations_that_cannot_be_right(void **state)
{
	struct conn *c;

	START(state);
	c = client();
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, MQ_STR("{}"), "brokerName", "x", "brokerAddr", "a", "clusterName", "K", "brokerId", "0",
	                          "bodyCrc32", "5"), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "crc32 not match");
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, MQ_STR("{\"a"), "brokerName", "x", "brokerAddr", "a", "clusterName", "K", "brokerId", "0"),
	                 RESP_SYSTEM_ERROR);
	assert_non_null(strstr(got.remark, "registration"));
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, MQ_STR("x"), "brokerName", "x", "brokerAddr", "a", "clusterName", "K", "brokerId", "0",
	                          "compressed", "true"), RESP_SYSTEM_ERROR);
	assert_int_equal(ASK(c, REQ_REGISTER_BROKER, "brokerName", "x", "clusterName", "K", "brokerId", "0"), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "field 'brokerAddr' is missing");
	assert_int_equal(ASK(c, REQ_REGISTER_BROKER, "brokerName", "x", "brokerAddr", "a", "clusterName", "K", "brokerId", "none"), RESP_SYSTEM_ERROR);
	assert_non_null(strstr(got.remark, "brokerId"));
	assert_int_equal(ASK(c, REQ_REGISTER_BROKER, "brokerName", "", "brokerAddr", "a", "clusterName", "K", "brokerId", "0"), RESP_SYSTEM_ERROR);
	assert_int_equal(reg(c, "x", "0", "h:1", "A", false), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "register broker failed");
	name_with_zero(c);
	assert_int_equal(got.code, RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "field 'brokerName' has a zero byte; a text is expected");
	assert_int_equal(ASK(c, REQ_GET_BROKER_CLUSTER_INFO), 0);
	assert_body("{\"brokerAddrTable\":{},\"clusterAddrTable\":{}}");
	/* Without a body it is a broker without topics. */
	assert_int_equal(ASK(c, REQ_REGISTER_BROKER, "brokerName", "x", "brokerAddr", "a", "clusterName", "K", "brokerId", "0"), 0);
	stop();
}

static void versions_heartbeats_and_leaving(void **state)
{
	struct conn *b, *c;

	START(state);
	b = client();
	c = client();
	assert_int_equal(ASK_BODY(b, REQ_QUERY_DATA_VERSION, MQ_STR("{\"counter\":1,\"stateVersion\":0,\"timestamp\":1}"), "brokerName", "x",
	                          "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0"), 0);
	assert_string_equal(field("changed"), "true");
	assert_body("");
	assert_int_equal(reg(b, "x", "0", "h:1", "A B", false), 0);
	assert_int_equal(ASK_BODY(b, REQ_QUERY_DATA_VERSION, MQ_STR("{\"counter\":1,\"stateVersion\":0,\"timestamp\":1}"), "brokerName", "x",
	                          "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0"), 0);
	assert_string_equal(field("changed"), "false");
	assert_body("{\"counter\":1,\"stateVersion\":0,\"timestamp\":1}");
	assert_int_equal(ASK_BODY(b, REQ_QUERY_DATA_VERSION, MQ_STR("{\"counter\":2,\"stateVersion\":0,\"timestamp\":1}"), "brokerName", "x",
	                          "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0"), 0);
	assert_string_equal(field("changed"), "true");
	assert_int_equal(ASK(b, REQ_QUERY_DATA_VERSION, "brokerName", "x", "brokerAddr", "h:1", "clusterName", "K"), RESP_SYSTEM_ERROR);
	assert_int_equal(ASK(b, REQ_BROKER_HEARTBEAT, "brokerName", "x", "brokerAddr", "h:1", "clusterName", "K"), 0);
	assert_int_equal(ASK(b, REQ_UNREGISTER_BROKER, "brokerName", "x", "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_TOPIC_NOT_EXIST);
	assert_int_equal(reg(b, "x", "0", "h:1", "A B", false), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	/* It dies without a word. */
	conn_close(b);
	turn_for(50);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_TOPIC_NOT_EXIST);
	stop();
}

static void a_silent_broker_is_cut_off(void **state)
{
	struct conn *b, *c;
	struct buf body = { 0 };

	START(state, "scanNotActiveBrokerInterval", "20");
	b = client();
	c = client();
	registration(&body, "A B", 1, false);
	assert_int_equal(ASK_BODY(b, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "x", "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0",
	                          "heartbeatTimeoutMillis", "150"), 0);
	buf_free(&body);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	turn_for(400);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_TOPIC_NOT_EXIST);
	assert_int_equal(lab.open, 1);
	stop();
}

/* ---- Topics ---------------------------------------------------------------------------------------------------------------- */

static void lists_permissions_and_deletion(void **state)
{
	struct conn *c;

	START(state);
	c = client();
	assert_int_equal(reg(c, "x", "0", "h:1", "A B", false), 0);
	assert_int_equal(ASK(c, REQ_GET_ALL_TOPIC_LIST_FROM_NAMESERVER), 0);
	assert_body("{\"topicList\":[\"A\",\"B\"]}");
	assert_int_equal(ASK(c, REQ_GET_TOPICS_BY_CLUSTER, "cluster", "K"), 0);
	assert_body("{\"topicList\":[\"A\",\"B\"]}");
	assert_int_equal(ASK(c, REQ_GET_TOPICS_BY_CLUSTER, "cluster", "none"), 0);
	assert_body("{\"topicList\":[]}");
	assert_int_equal(ASK(c, REQ_GET_SYSTEM_TOPIC_LIST_FROM_NS), 0);
	assert_body("{\"brokerAddr\":\"h:1\",\"topicList\":[\"K\",\"x\"]}");
	for (int code = REQ_GET_UNIT_TOPIC_LIST; code <= REQ_GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST; code++) {
		assert_int_equal(ASK(c, code), 0);
		assert_body("{\"topicList\":[]}");
	}
	assert_int_equal(ASK(c, REQ_WIPE_WRITE_PERM_OF_BROKER, "brokerName", "x"), 0);
	assert_string_equal(field("wipeTopicCount"), "2");
	ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A");
	assert_non_null(memmem(got.body.p, got.body.n, "\"perm\":4", 8));
	assert_int_equal(ASK(c, REQ_ADD_WRITE_PERM_OF_BROKER, "brokerName", "x"), 0);
	assert_string_equal(field("addTopicCount"), "2");
	assert_int_equal(ASK(c, REQ_DELETE_TOPIC_IN_NAMESRV, "topic", "A", "clusterName", "K"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_TOPIC_NOT_EXIST);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_TOPIC_IN_NAMESRV, MQ_STR("{\"queueDatas\":[{\"brokerName\":\"x\",\"perm\":6,\"readQueueNums\":1,"
	                          "\"writeQueueNums\":1}]}"), "topic", "N"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "N"), 0);
	assert_int_equal(ASK(c, REQ_REGISTER_TOPIC_IN_NAMESRV, "topic", "M"), 0);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_TOPIC_IN_NAMESRV, MQ_STR("{"), "topic", "M"), RESP_SYSTEM_ERROR);
	stop();
}

static void a_full_registration_takes_deleted_topics_out(void **state)
{
	struct buf body = { 0 };
	struct conn *c;

	START(state);
	c = client();
	assert_int_equal(reg(c, "x", "0", "h:1", "A B C", false), 0);
	registration(&body, "A", 2, false);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "x", "brokerAddr", "h:1", "clusterName", "K", "brokerId", "0",
	                          "fullTable", "true"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "B"), RESP_TOPIC_NOT_EXIST);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	buf_free(&body);
	stop();
}

static void lists_can_be_switched_off(void **state)
{
	struct conn *c;

	START(state, "enableAllTopicList", "false", "enableTopicList", "false");
	c = client();
	static const int codes[] = { REQ_GET_ALL_TOPIC_LIST_FROM_NAMESERVER, REQ_GET_UNIT_TOPIC_LIST, REQ_GET_HAS_UNIT_SUB_TOPIC_LIST };
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ASK(c, codes[i]), RESP_SYSTEM_ERROR);
		assert_string_equal(got.remark, "disable");
	}
	assert_int_equal(ASK(c, REQ_GET_TOPICS_BY_CLUSTER, "cluster", "K"), RESP_SYSTEM_ERROR);
	stop();
}

static void routes_wait_for_brokers_to_come_back(void **state)
{
	struct conn *c;

	START(state, "needWaitForService", "true", "waitSecondsForService", "1");
	c = client();
	assert_int_equal(reg(c, "x", "0", "h:1", "A B", false), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "name server not ready");
	turn_for(1100);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	stop();
}

static void clients_that_keep_to_their_zone(void **state)
{
	struct buf body = { 0 };
	struct conn *c;

	START(state);
	c = client();
	registration(&body, "A B", 1, false);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "x", "brokerAddr", "x:1", "clusterName", "K", "brokerId", "0",
	                          "__ZONE_NAME", "east"), 0);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "y", "brokerAddr", "y:1", "clusterName", "K", "brokerId", "0",
	                          "__ZONE_NAME", "West"), 0);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A", "__ZONE_NAME", "west", "__ZONE_MODE", "true"), 0);
	assert_body("{\"brokerDatas\":[{\"brokerAddrs\":{0:\"y:1\"},\"brokerName\":\"y\",\"cluster\":\"K\",\"enableActingMaster\":false,"
	            "\"zoneName\":\"West\"}],\"filterServerTable\":{},\"queueDatas\":[{\"brokerName\":\"y\",\"perm\":6,\"readQueueNums\":4,"
	            "\"topicSysFlag\":0,\"writeQueueNums\":4}]}");
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A", "__ZONE_NAME", "west"), 0);
	assert_non_null(memmem(got.body.p, got.body.n, "x:1", 3));
	buf_free(&body);
	stop();
}

/* ---- Settings -------------------------------------------------------------------------------------------------------------- */

static void settings_and_ordered_topics(void **state)
{
	struct conn *c;

	START(state, "orderMessageEnable", "true");
	c = client();
	assert_int_equal(ASK(c, REQ_GET_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A"), RESP_QUERY_NOT_FOUND);
	assert_string_equal(got.remark, "No config item, Namespace: ORDER_TOPIC_CONFIG Key: A");
	assert_int_equal(ASK(c, REQ_GET_KVLIST_BY_NAMESPACE, "namespace", "ORDER_TOPIC_CONFIG"), RESP_QUERY_NOT_FOUND);
	assert_int_equal(ASK(c, REQ_PUT_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A", "value", "x:4"), 0);
	assert_int_equal(ASK(c, REQ_GET_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A"), 0);
	assert_string_equal(field("value"), "x:4");
	assert_int_equal(ASK(c, REQ_GET_KVLIST_BY_NAMESPACE, "namespace", "ORDER_TOPIC_CONFIG"), 0);
	assert_body("{\"table\":{\"A\":\"x:4\"}}");
	assert_int_equal(reg(c, "x", "0", "h:1", "A B", false), 0);
	assert_body("{\"table\":{\"A\":\"x:4\"}}");
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "A"), 0);
	assert_non_null(memmem(got.body.p, got.body.n, "\"orderTopicConf\":\"x:4\"", 22));
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC, "topic", "B"), 0);
	assert_null(memmem(got.body.p, got.body.n, "orderTopicConf", 14));
	assert_int_equal(ASK(c, REQ_PUT_KV_CONFIG, "namespace", "N", "key", "k"), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "field 'value' is missing");
	stop();
	/* They outlive the process. */
	START(state);
	c = client();
	assert_int_equal(ASK(c, REQ_GET_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A"), 0);
	assert_int_equal(ASK(c, REQ_DELETE_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A"), 0);
	assert_int_equal(ASK(c, REQ_GET_KV_CONFIG, "namespace", "ORDER_TOPIC_CONFIG", "key", "A"), RESP_QUERY_NOT_FOUND);
	stop();
}

/* ---- Configuration --------------------------------------------------------------------------------------------------------- */

static void configuration_over_the_wire(void **state)
{
	static const char *const locked[] = { "kvConfigPath=/etc/x", "configStorePath=/etc/x", "rocketmqHome=-c $(id)", "configBlackList=", "listenPort=1",
		"enableTopicList=false\nkvConfigPath=/x\n" };
	struct conn *c;
	char *text;

	START(state);
	c = client();
	assert_int_equal(ASK(c, REQ_GET_NAMESRV_CONFIG), 0);
	assert_non_null(memmem(got.body.p, got.body.n, "scanNotActiveBrokerInterval=5000\n", 33));
	assert_non_null(memmem(got.body.p, got.body.n, "productEnvName=center\n", 22));
	for (size_t i = 0; i < sizeof(locked) / sizeof(locked[0]); i++) {
		assert_int_equal(ASK_BODY(c, REQ_UPDATE_NAMESRV_CONFIG, str_of(locked[i])), RESP_NO_PERMISSION);
		assert_string_equal(got.remark, "Can not update config in black list.");
	}
	assert_true(lab.conf.enableTopicList);
	assert_int_equal(ASK_BODY(c, REQ_UPDATE_NAMESRV_CONFIG, MQ_STR("enableTopicList=maybe")), RESP_SYSTEM_ERROR);
	assert_non_null(strstr(got.remark, "enableTopicList"));
	assert_int_equal(ASK_BODY(c, REQ_UPDATE_NAMESRV_CONFIG, MQ_STR("enableTopicList=false\nunknown=1\n")), 0);
	assert_false(lab.conf.enableTopicList);
	assert_int_equal(ASK(c, REQ_UPDATE_NAMESRV_CONFIG), 0);
	text = tempdir_read(tempdir_path(*state, "namesrv.conf"));
	assert_string_equal(text, "enableTopicList=false\n");
	free(text);
	stop();
}

static char last_line[500];

static void keep_line(void *arg, enum log_level l, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void the_file_read_again(void **state)
{
	tempdir_write(tempdir_path(*state, "namesrv.conf"), "orderMessageEnable=true\nlistenPort=1\n");
	START(state);
	assert_false(lab.conf.orderMessageEnable);
	namesrv_reload(lab.ns);
	assert_true(lab.conf.orderMessageEnable);
	assert_int_equal(lab.conf.listenPort, 0);
	tempdir_write(tempdir_path(*state, "namesrv.conf"), "orderMessageEnable=neither\n");
	log_to(keep_line, NULL);
	namesrv_reload(lab.ns);
	log_to(NULL, NULL);
	assert_non_null(strstr(last_line, "orderMessageEnable: 'neither'"));
	assert_true(lab.conf.orderMessageEnable);
	stop();
}

/* ---- What is not served ---------------------------------------------------------------------------------------------------- */

static void unknown_codes_and_oneway_requests(void **state)
{
	struct conn *c;
	struct frame_out o;

	START(state);
	c = client();
	assert_int_equal(ASK(c, REQ_SEND_MESSAGE_V2), RESP_REQUEST_CODE_NOT_SUPPORTED);
	assert_string_equal(got.remark, " request type 310 not supported");
	assert_int_equal(ASK(c, 31999), RESP_REQUEST_CODE_NOT_SUPPORTED);
	assert_int_equal(ASK(c, REQ_GET_ROUTEINFO_BY_TOPIC), RESP_SYSTEM_ERROR);
	assert_string_equal(got.remark, "field 'topic' is missing");
	/* A oneway request is done and not answered. */
	conn_call(c, &o, REQ_PUT_KV_CONFIG, FRAME_JSON, 0, NULL, NULL);
	frame_cstr(&o, "namespace", "N");
	frame_cstr(&o, "key", "k");
	frame_cstr(&o, "value", "v");
	frame_end(&o);
	conn_kick(c);
	assert_int_equal(ASK(c, REQ_GET_KV_CONFIG, "namespace", "N", "key", "k"), 0);
	assert_string_equal(field("value"), "v");
	assert_true(namesrv_serves(REQ_GET_ROUTEINFO_BY_TOPIC));
	assert_false(namesrv_serves(REQ_PULL_MESSAGE));
	stop();
}

/* ---- Replicas -------------------------------------------------------------------------------------------------------------- */

static struct {
	int notices;
	char min_addr[40], offline[40];
} replica;

static int on_replica_request(struct conn *c, struct frame *f)
{
	struct min_broker_change_header h;
	struct mq_error e;

	assert_int_equal(f->code, REQ_NOTIFY_MIN_BROKER_ID_CHANGE);
	assert_int_equal(f->flag, FRAME_ONEWAY);
	assert_int_equal(header_decode(&min_broker_change_header_desc, f, &h, &e), 0);
	snprintf(replica.min_addr, sizeof(replica.min_addr), MQ_STR_FMT, MQ_STR_ARG(h.minBrokerAddr));
	snprintf(replica.offline, sizeof(replica.offline), MQ_STR_FMT, MQ_STR_ARG(h.offlineBrokerAddr));
	replica.notices++;
	return 0;
}

static void replicas_hear_who_is_first(void **state)
{
	static const struct conn_ops replica_ops = { .request = on_replica_request };
	struct server_opt opt = { .bind = "127.0.0.1" };
	struct buf body = { 0 };
	bool stopped = false;
	struct server *s;
	struct mq_error e;
	char addr[40];
	struct conn *c;

	START(state, "notifyMinBrokerIdChanged", "true");
	memset(&replica, 0, sizeof(replica));
	s = server_listen(&lab.loop, &opt, &replica_ops, NULL, &e);
	assert_non_null(s);
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", server_port(s));
	c = client();
	registration(&body, "A B", 1, false);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "x", "brokerAddr", addr, "clusterName", "K", "brokerId", "1",
	                          "enableActingMaster", "true"), 0);
	assert_int_equal(ASK_BODY(c, REQ_REGISTER_BROKER, buf_view(&body), "brokerName", "x", "brokerAddr", "127.0.0.1:1", "clusterName", "K",
	                          "brokerId", "0", "enableActingMaster", "true"), 0);
	turn_for(100);
	assert_int_equal(replica.notices, 1);
	assert_string_equal(replica.min_addr, "127.0.0.1:1");
	assert_int_equal(ASK(c, REQ_UNREGISTER_BROKER, "brokerName", "x", "brokerAddr", "127.0.0.1:1", "clusterName", "K", "brokerId", "0"), 0);
	turn_for(100);
	assert_int_equal(replica.notices, 2);
	assert_string_equal(replica.min_addr, addr);
	assert_string_equal(replica.offline, "127.0.0.1:1");
	buf_free(&body);
	server_stop(s, 0, on_stopped, &stopped);
	turn_until(&stopped);
	stop();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_broker_registers_and_clients_find_it),
		TEST(dialects_by_version),
		TEST(registrations_of_the_java_broker),
		TEST(registrations_that_cannot_be_right),
		TEST(versions_heartbeats_and_leaving),
		TEST(a_silent_broker_is_cut_off),
		TEST(lists_permissions_and_deletion),
		TEST(a_full_registration_takes_deleted_topics_out),
		TEST(lists_can_be_switched_off),
		TEST(routes_wait_for_brokers_to_come_back),
		TEST(clients_that_keep_to_their_zone),
		TEST(settings_and_ordered_topics),
		TEST(configuration_over_the_wire),
		TEST(the_file_read_again),
		TEST(unknown_codes_and_oneway_requests),
		TEST(replicas_hear_who_is_first),
	};

	return cmocka_run_group_tests_name("namesrv", tests, NULL, NULL);
}
