/* test_broker_txn.c: transactional messages of a whole broker: what is seen when, what ends them, who is asked and how often, over
 * restarts and kills, and with what the peer left pending. */
#include "broker_life.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/batch.h"
#include "codec/property.h"
#include "golden_store.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/txn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })
#define HALF "RMQ_SYS_TRANS_HALF_TOPIC"
#define OP "RMQ_SYS_TRANS_OP_HALF_TOPIC"
#define GIVEN_UP "TRANS_CHECK_MAX_TIME_TOPIC"
#define TRAN "TRAN_MSG\001true\002PGROUP\001pg\002"

/* Nobody is asked while the test runs; asked at once, often. */
static const char *const quiet[] = { "transactionCheckInterval=3600000", NULL };
static const char *const eager[] = { "transactionTimeOut=0", "transactionCheckInterval=30", "transactionCheckMax=3", NULL };

struct fixture {
	struct life l;
	struct conn *producer;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	return life_make(&f->l);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	life_end(&f->l);
	free(f);
	return 0;
}

/* A producer of the group that is there to be asked. */
static void join(struct fixture *f, const char *group)
{
	char body[256];

	f->producer = broker_kit_dial(f->l.k, false);
	snprintf(body, sizeof body, "{\"clientID\":\"p@1\",\"consumerDataSet\":[],\"producerDataSet\":[{\"groupName\":\"%s\"}]}", group);
	assert_int_equal(ask(f->l.k, f->producer, REQ_HEART_BEAT, str_of(body), NULL)->code, RESP_SUCCESS);
}

static struct asked *send_props(struct fixture *f, const char *topic, const char *body, const char *props, const char *sys_flag)
{
	char born[24];

	snprintf(born, sizeof born, "%lld", (long long)clock_wall_ms());
	return ask(f->l.k, f->l.c, REQ_SEND_MESSAGE_V2, str_of(body), "a", "pg", "b", topic, "c", "TBW102", "d", "4", "e", "2", "f", sys_flag, "g",
		   born, "h", "7", "i", props, NULL);
}

struct place { int64_t log_off, queue_off; };

static struct place half_of(const struct asked *a)
{
	struct mq_host host;
	struct place p = { .queue_off = asked_i64(a, "queueOffset") };

	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(mq_offset_id_parse(str_of(asked_get(a, "msgId")), &host, &p.log_off), 0);
	return p;
}

static struct place send_half(struct fixture *f, const char *body, const char *more)
{
	char props[512];

	snprintf(props, sizeof props, TRAN "UNIQ_KEY\001key-%s\002%s", body, more);
	return half_of(send_props(f, "T", body, props, "4"));
}

static struct asked *end_later(struct fixture *f, struct place p, const char *group, int how, bool from_check)
{
	char log[24], queue[24], code[8];

	snprintf(log, sizeof log, "%lld", (long long)p.log_off);
	snprintf(queue, sizeof queue, "%lld", (long long)p.queue_off);
	snprintf(code, sizeof code, "%d", how);
	return ask_later(f->l.k, f->l.c, REQ_END_TRANSACTION, NONE, "producerGroup", group, "tranStateTableOffset", queue, "commitLogOffset", log,
			 "commitOrRollback", code, "fromTransactionCheck", from_check ? "true" : "false", "msgId", "ignored", NULL);
}

static int end(struct fixture *f, struct place p, int how)
{
	struct asked *a = end_later(f, p, "pg", how, false);
	int code;

	asked_wait(f->l.k, a);
	code = a->code;
	asked_free(a);
	return code;
}

enum { COMMIT = 8, ROLLBACK = 12, UNKNOWN = 0 };

/* Until a counter has got so far. */
static void await(struct fixture *f, const uint64_t *counter, uint64_t n)
{
	for (int64_t end = clock_mono_us() + 10000000; *counter < n; broker_kit_run(f->l.k, 5))
		assert_true(clock_mono_us() < end);
}

/* Where the half that the broker asks about lies. */
static struct place asked_about(struct fixture *f)
{
	struct asked *a = broker_kit_last(f->l.k);

	assert_non_null(a);
	assert_int_equal(a->code, REQ_CHECK_TRANSACTION_STATE);
	return (struct place){ asked_i64(a, "commitLogOffset"), asked_i64(a, "tranStateTableOffset") };
}

/* ---- The two ends ---------------------------------------------------------------------------------------------------------- */

static void a_half_is_seen_when_it_is_committed(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	struct mq_message m;
	struct place p;

	life_start(&f->l, quiet);
	send_props(f, "T", "warm", "", "0");
	a = send_props(f, "T", "hello", TRAN "UNIQ_KEY\001U1\002KEYS\001k\002TAGS\001tag\002mine\001yes\002", "4");
	assert_int_equal(asked_i64(a, "queueId"), 2);
	assert_int_equal(asked_i64(a, "queueOffset"), 0); /* that of the half */
	assert_string_equal(asked_get(a, "transactionId"), "U1");
	p = half_of(a);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	m = kit_look(f->l.k, HALF, 0, 0);
	assert_int_equal(m.log_off, p.log_off);
	assert_int_equal(m.sys_flag & MQ_SYS_TRAN_MASK, 0);
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "REAL_QID", "2");
	assert_prop(m.props, "__transactionId__", "U1");
	assert_prop(m.props, "TRAN_MSG", "true");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	assert_int_equal(txn_count(life_broker(&f->l)->txn, MQ_STR("T")), 1);

	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 2);
	m = kit_look(f->l.k, "T", 2, 1);
	assert_true(str_is(m.body, "hello"));
	assert_int_equal(m.sys_flag & MQ_SYS_TRAN_MASK, MQ_SYS_TRAN_COMMIT);
	assert_int_equal(m.prepared_off, p.log_off);
	assert_int_equal(m.flag, 7);
	assert_prop(m.props, "TRAN_MSG", "true");
	assert_prop(m.props, "PGROUP", "pg");
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_prop(m.props, "UNIQ_KEY", "U1");
	assert_prop(m.props, "mine", "yes");
	m = kit_look(f->l.k, OP, 0, 0);
	assert_true(str_is(m.body, "0,"));
	assert_prop(m.props, "TAGS", "d");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
	assert_int_equal(txn_count(life_broker(&f->l)->txn, MQ_STR("T")), 0);
}

static void a_half_that_is_rolled_back_is_never_seen(void **state)
{
	struct fixture *f = *state;
	struct place p;

	life_start(&f->l, quiet);
	p = send_half(f, "x", "");
	assert_int_equal(end(f, p, ROLLBACK), RESP_SUCCESS);
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS); /* too late: it is over */
	assert_int_equal(kit_stored(f->l.k, "T", 2), 0);
	assert_int_equal(kit_stored(f->l.k, OP, 0), 1);
}

/* A producer that was asked and then goes on by itself says it twice, or its answer is lost and it says it again. */
static void a_commit_that_comes_twice_delivers_once(void **state)
{
	struct fixture *f = *state;
	struct place p;

	life_start(&f->l, quiet);
	p = send_half(f, "x", "");
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(life_broker(&f->l)->metrics.ends_again, 1);
}

static void halves_wait_through_steps_of_the_clock(void **state)
{
	struct fixture *f = *state;
	struct place before, between, after;

	life_start(&f->l, quiet);
	before = send_half(f, "before", "");
	life_shift(&f->l, -10000);
	between = send_half(f, "between", "");
	life_shift(&f->l, 600000);
	after = send_half(f, "after", "");
	broker_kit_run(f->l.k, 50);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 3);
	assert_int_equal(end(f, between, COMMIT), RESP_SUCCESS);
	life_shift(&f->l, -600000);
	assert_int_equal(end(f, after, COMMIT), RESP_SUCCESS);
	assert_int_equal(end(f, before, ROLLBACK), RESP_SUCCESS);
	life_stop(&f->l);
	life_start(&f->l, quiet);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 2);
}

static void who_does_not_know_gets_no_answer(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	life_start(&f->l, quiet);
	a = end_later(f, send_half(f, "x", ""), "pg", UNKNOWN, false);
	broker_kit_run(f->l.k, 100);
	assert_false(a->done);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	life_stop(&f->l);
	asked_free(a);
}

static void a_delay_begins_with_the_commit(void **state)
{
	static const char *const props[] = { "transactionCheckInterval=3600000", "messageDelayLevel=50ms", NULL };
	struct fixture *f = *state;
	struct place p;
	struct mq_message m;

	life_start(&f->l, props);
	p = send_half(f, "x", "DELAY\0011\002");
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 0), 0);
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 0), 1);
	await(f, &life_broker(&f->l)->metrics.delayed_out, 1);
	m = kit_look(f->l.k, "T", 2, 0);
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_int_equal(m.sys_flag & MQ_SYS_TRAN_MASK, MQ_SYS_TRAN_COMMIT);
}

/* ---- Refused --------------------------------------------------------------------------------------------------------------- */

static void refused(struct asked *a, int code, const char *words)
{
	if (!a->done)
		fail_msg("no answer");
	if (a->code != code || !strstr(a->remark.p, words))
		fail_msg("code %d '%s', not %d '...%s...'", a->code, a->remark.p, code, words);
}

static void a_time_begins_with_the_commit_too(void **state)
{
	struct fixture *f = *state;
	struct place p;
	char *text;

	life_start(&f->l, quiet);
	p = send_half(f, "x", "TIMER_DELAY_SEC\0013600\002");
	assert_int_equal(kit_stored(f->l.k, "rmq_sys_wheel_timer", 0), 0);
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "rmq_sys_wheel_timer", 0), 1);
	assert_prop(kit_look(f->l.k, "rmq_sys_wheel_timer", 0, 0).props, "REAL_TOPIC", "T");
	p = send_half(f, "y", "TIMER_DELAY_SEC\00136000000\002");
	assert_int_equal(end(f, p, COMMIT), RESP_MESSAGE_ILLEGAL); /* it can never come: it stays a half */
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	assert_int_equal(txn_count(life_broker(&f->l)->txn, MQ_STR("T")), 1);
	life_stop(&f->l);
	text = tempdir_read(tempdir_path(f->l.dir, "store/config/transactionMetrics"));
	assert_non_null(text);
	assert_non_null(strstr(text, "\"transactionCount\":{\"T\":{\"count\":1,\"timeStamp\":"));
	free(text);
	life_start(&f->l, quiet);
	assert_int_equal(txn_count(life_broker(&f->l)->txn, MQ_STR("T")), 1);
}

static void ends_that_fit_no_half_are_refused(void **state)
{
	struct fixture *f = *state;
	struct place p, q, plain;
	struct asked *a[5];

	life_start(&f->l, quiet);
	plain = half_of(send_props(f, "T", "plain", "PGROUP\001pg\002", "0"));
	p = send_half(f, "x", "");
	q = send_half(f, "y", "");
	a[0] = end_later(f, (struct place){ p.log_off + 1, p.queue_off }, "pg", COMMIT, false);
	a[1] = end_later(f, plain, "pg", COMMIT, false); /* a message is no half */
	a[2] = end_later(f, p, "other", COMMIT, false);
	a[3] = end_later(f, (struct place){ p.log_off, q.queue_off }, "pg", COMMIT, false);
	a[4] = end_later(f, (struct place){ INT64_MAX, 0 }, "pg", ROLLBACK, false);
	for (int i = 0; i < 5; i++)
		asked_wait(f->l.k, a[i]);
	refused(a[0], RESP_SYSTEM_ERROR, "Find prepared transaction message failed");
	refused(a[1], RESP_SYSTEM_ERROR, "Find prepared transaction message failed");
	refused(a[2], RESP_SYSTEM_ERROR, "The producer group wrong");
	refused(a[3], RESP_SYSTEM_ERROR, "The transaction state table offset wrong");
	refused(a[4], RESP_SYSTEM_ERROR, "Find prepared transaction message failed");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 2);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	for (int i = 0; i < 5; i++)
		asked_free(a[i]);
}

static void what_cannot_be_a_half_is_refused(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };

	life_start(&f->l, quiet);
	refused(send_props(f, "T", "x", "", "4"), RESP_MESSAGE_ILLEGAL, "TRAN_MSG");
	batch_put(&b, &(struct batch_item){ .body = MQ_STR("one") });
	refused(ask(f->l.k, f->l.c, REQ_SEND_BATCH_MESSAGE, buf_view(&b), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1",
		    "h", "0", "i", TRAN, "m", "true", NULL), RESP_MESSAGE_ILLEGAL, "TRAN_MSG");
	buf_free(&b);
	life_broker(&f->l)->conf->rejectTransactionMessage = true;
	refused(send_props(f, "T", "x", TRAN, "4"), RESP_NO_PERMISSION, "sending transaction message is forbidden");
	assert_int_equal(kit_stored(f->l.k, HALF, 0), 0);
}

/* A committed message that failed and is sent to the retry topic by its consumer still says TRAN_MSG. */
static void a_retry_of_a_committed_message_is_no_half(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, quiet);
	assert_int_equal(ask(f->l.k, f->l.c, REQ_SEND_MESSAGE_V2, MQ_STR("again"), "a", "pg", "b", "%RETRY%g", "c", "TBW102", "d", "4", "e", "0", "f", "8",
			     "g", "1", "h", "0", "i", TRAN "DELAY\0013\002", "j", "1", NULL)->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, HALF, 0), 0);
	assert_int_equal(kit_stored(f->l.k, "SCHEDULE_TOPIC_XXXX", 2), 1);
}

/* ---- Questions ------------------------------------------------------------------------------------------------------------- */

static void the_producer_is_asked_and_its_answer_counts(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	struct mq_message m;
	struct place first, now;

	life_start(&f->l, eager);
	join(f, "pg");
	first = send_half(f, "x", "KEYS\001k\002");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	broker_kit_run(f->l.k, 10);
	a = broker_kit_last(f->l.k);
	now = asked_about(f);
	assert_string_equal(asked_get(a, "msgId"), "key-x");
	assert_string_equal(asked_get(a, "transactionId"), "key-x");
	assert_true(now.queue_off > first.queue_off && now.log_off > first.log_off);
	assert_true(mq_message_decode(a->body.p, a->body.n, true, &m) == (int32_t)a->body.n);
	assert_true(str_is(m.topic, "T"));
	assert_int_equal(m.queue_id, 2);
	assert_int_equal(m.log_off, now.log_off);
	assert_int_equal(m.queue_off, now.queue_off);
	assert_true(str_is(m.body, "x"));
	assert_prop(m.props, "PGROUP", "pg");
	assert_prop(m.props, "KEYS", "k");
	m = kit_look(f->l.k, HALF, 0, 1);
	assert_prop(m.props, "TRANSACTION_CHECK_TIMES", "1");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	a = end_later(f, now, "pg", COMMIT, true);
	asked_wait(f->l.k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	asked_free(a);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(end(f, first, COMMIT), RESP_SUCCESS); /* and then it says so by itself too */
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
}

/* The producer ends it where it put it, while the broker has asked, and so moved it, once or more. */
static void an_end_by_the_first_place_counts_after_a_question(void **state)
{
	struct fixture *f = *state;
	struct place first, old;

	life_start(&f->l, eager);
	life_broker(&f->l)->conf->transactionCheckMax = 1000;
	join(f, "pg");
	first = send_half(f, "x", "");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	broker_kit_run(f->l.k, 10);
	old = asked_about(f);
	await(f, &life_broker(&f->l)->metrics.checks_sent, 3);
	assert_int_equal(end(f, first, COMMIT), RESP_SUCCESS);
	assert_int_equal(end(f, old, COMMIT), RESP_SUCCESS); /* its answer to an earlier question */
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
}

static void nobody_is_asked_about_what_has_ended(void **state)
{
	struct fixture *f = *state;

	life_start(&f->l, eager);
	life_broker(&f->l)->conf->transactionTimeOut = 400;
	join(f, "pg");
	for (int i = 0; i < 100; i++) {
		char body[16];

		snprintf(body, sizeof body, "%d", i);
		assert_int_equal(end(f, send_half(f, body, ""), i % 2 ? COMMIT : ROLLBACK), RESP_SUCCESS);
	}
	broker_kit_run(f->l.k, 700);
	assert_int_equal(life_broker(&f->l)->metrics.checks_sent, 0);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 50);
	assert_int_equal(life_broker(&f->l)->metrics.halves_given_up, 0);
}

/* One whose producers are gone does not hold up the others, and is given up in the end; a late word of its producer still counts. */
static void who_is_never_heard_of_is_given_up(void **state)
{
	struct fixture *f = *state;
	struct place a, b;
	struct mq_message m;
	struct mq_str again;

	life_start(&f->l, eager);
	a = half_of(send_props(f, "T", "a", "TRAN_MSG\001true\002PGROUP\001gone\002UNIQ_KEY\001key-a\002", "4"));
	join(f, "pg");
	b = send_half(f, "b", "");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	assert_int_equal(end(f, b, COMMIT), RESP_SUCCESS);
	await(f, &life_broker(&f->l)->metrics.halves_given_up, 1);
	assert_true(life_broker(&f->l)->metrics.checks_unheard >= 3);
	m = kit_look(f->l.k, GIVEN_UP, 0, 0);
	assert_true(str_is(m.body, "a"));
	assert_prop(m.props, "TRANSACTION_CHECK_TIMES", "3");
	assert_prop(m.props, "REAL_TOPIC", "T");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
	for (int i = 0; i < 2; i++) {
		struct asked *late = end_later(f, a, "gone", COMMIT, false);

		asked_wait(f->l.k, late);
		assert_int_equal(late->code, RESP_SUCCESS);
		asked_free(late);
	}
	assert_int_equal(kit_stored(f->l.k, "T", 2), 2);
	again = kit_look(f->l.k, "T", 2, 1).body;
	assert_true(str_is(again, "a"));
}

static void a_time_of_grace_is_kept_and_no_question_counts_in_it(void **state)
{
	struct fixture *f = *state;
	struct asked *late;
	struct place p;

	life_start(&f->l, eager);
	join(f, "pg");
	p = send_half(f, "x", "CHECK_IMMUNITY_TIME_IN_SECONDS\0011\002");
	broker_kit_run(f->l.k, 400); /* many rounds */
	assert_int_equal(life_broker(&f->l)->metrics.checks_sent, 0);
	assert_int_equal(kit_stored(f->l.k, HALF, 0), 1);
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	broker_kit_run(f->l.k, 10);
	late = end_later(f, p, "pg", COMMIT, false);
	asked_wait(f->l.k, late);
	refused(late, RESP_ILLEGAL_OPERATION, "CHECK_IMMUNITY_TIME_IN_SECONDS");
	asked_free(late);
	late = end_later(f, asked_about(f), "pg", COMMIT, true);
	asked_wait(f->l.k, late);
	assert_int_equal(late->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	asked_free(late);
}

/* What was compressed stays so in each copy. */
static void questions_do_not_touch_the_body(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;

	life_start(&f->l, eager);
	join(f, "pg");
	send_props(f, "T", "\x78\x9c not really zlib", TRAN, "5");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 3);
	broker_kit_run(f->l.k, 10);
	assert_int_equal(end(f, asked_about(f), COMMIT), RESP_SUCCESS);
	m = kit_look(f->l.k, "T", 2, 0);
	assert_true(str_is(m.body, "\x78\x9c not really zlib"));
	assert_int_equal(m.sys_flag & (MQ_SYS_COMPRESSED | MQ_SYS_COMPRESS_TYPE), MQ_SYS_COMPRESSED);
	assert_int_equal(m.flag, 7);
}

static void a_full_disk_holds_up_questions_and_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct mq_error e;
	struct place p;

	life_start(&f->l, eager);
	join(f, "pg");
	p = send_half(f, "x", "CHECK_IMMUNITY_TIME_IN_SECONDS\0011\002");
	assert_int_equal(ask(f->l.k, f->l.c, REQ_UPDATE_BROKER_CONFIG, MQ_STR("minFreeBytes=1000000000000000\n"), NULL)->code, RESP_SUCCESS);
	mqstore_trim(life_broker(&f->l)->store, clock_wall_ms(), false, &e);
	broker_kit_run(f->l.k, 1300);
	assert_int_equal(life_broker(&f->l)->metrics.checks_sent, 0);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	ask(f->l.k, f->l.c, REQ_UPDATE_BROKER_CONFIG, MQ_STR("minFreeBytes=0\n"), NULL);
	mqstore_trim(life_broker(&f->l)->store, clock_wall_ms(), false, &e);
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	(void)p;
}

/* ---- Restarts -------------------------------------------------------------------------------------------------------------- */

static int64_t kept(struct fixture *f, const char *topic)
{
	return offset_table_get(life_broker(&f->l)->offsets, str_of(topic), MQ_STR("CID_RMQ_SYS_TRANS"), 0);
}

static void after_a_stop_what_was_pending_is_pending(void **state)
{
	struct fixture *f = *state;
	struct place p[4];

	life_start(&f->l, quiet);
	for (int i = 0; i < 4; i++)
		p[i] = send_half(f, i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", "");
	end(f, p[0], COMMIT);
	end(f, p[2], ROLLBACK);
	life_stop(&f->l);
	life_start(&f->l, quiet);
	assert_int_equal(kept(f, HALF), 1);
	assert_int_equal(kept(f, OP), 1); /* that of "a" speaks of nothing that is left */
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 2);
	end(f, p[2], COMMIT); /* it was rolled back */
	end(f, p[1], COMMIT);
	end(f, p[3], COMMIT);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 3);
	life_stop(&f->l);
	life_start(&f->l, eager);
	assert_int_equal(kept(f, HALF), 4);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
	broker_kit_run(f->l.k, 100);
	assert_int_equal(life_broker(&f->l)->metrics.checks_unheard, 0);
}

static void after_a_stop_the_questions_go_on_where_they_were(void **state)
{
	static const char *const slow[] = { "transactionTimeOut=0", "transactionCheckInterval=300", "transactionCheckMax=1000", NULL };
	struct fixture *f = *state;
	struct place first;

	life_start(&f->l, slow);
	join(f, "pg");
	first = send_half(f, "x", "");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 2);
	life_stop(&f->l);
	life_start(&f->l, slow);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	join(f, "pg");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	broker_kit_run(f->l.k, 10);
	assert_prop(kit_look(f->l.k, HALF, 0, asked_about(f).queue_off).props, "TRANSACTION_CHECK_TIMES", "3");
	assert_int_equal(end(f, first, COMMIT), RESP_SUCCESS); /* where it was before the stop */
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
}

static char *killed(struct fixture *f)
{
	char *dir = strdup(tempdir_path(f->l.dir, "killed"));
	char *cmd = mem_printf("mkdir -p '%s' && cp -r '%s/store' '%s/'", dir, (char *)f->l.dir, dir);

	assert_int_equal(system(cmd), 0);
	free(cmd);
	return dir;
}

/* The directory as it is while the broker runs is what a kill leaves. */
static void after_a_kill_nothing_is_lost_and_nothing_is_asked_in_vain(void **state)
{
	struct fixture *f = *state;
	struct place p[20];
	char *dir;

	life_start(&f->l, quiet);
	for (int i = 0; i < 20; i++) {
		char body[8];

		snprintf(body, sizeof body, "%d", i);
		p[i] = send_half(f, body, "");
	}
	for (int i = 0; i < 10; i++)
		end(f, p[i], i % 2 ? COMMIT : ROLLBACK);
	dir = killed(f);
	life_stop(&f->l);
	life_start_in(&f->l, dir, quiet);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 10);
	for (int i = 0; i < 20; i++)
		end(f, p[i], COMMIT);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 15);
	free(dir);
}

/* A power cut takes back what is not on the disk: then the half must count as pending. */
static void the_offsets_say_only_what_is_on_the_disk(void **state)
{
	static const char *const props[] = { "transactionCheckInterval=3600000", "flushIntervalCommitLog=600000", NULL };
	struct fixture *f = *state;
	struct mq_error e;

	life_start(&f->l, props);
	end(f, send_half(f, "x", ""), COMMIT);
	broker_kit_run(f->l.k, 2500);
	assert_int_equal(kept(f, HALF), -1);
	assert_int_equal(mqstore_flush(life_broker(&f->l)->store, &e), 0);
	for (int64_t end = clock_mono_us() + 10000000; kept(f, HALF) != 1; broker_kit_run(f->l.k, 20))
		assert_true(clock_mono_us() < end);
	assert_int_equal(kept(f, OP), 1);
}

/* A long time of grace among many that end at once: it is moved out of their way, and found again by its first place. */
static void one_that_waits_long_does_not_hold_the_others(void **state)
{
	static const char *const props[] = { "transactionCheckInterval=50", "mappedFileSizeCommitLog=67108864", "mappedFileSizeConsumeQueue=2000000",
					     NULL };
	enum { MANY = 70000 };
	struct fixture *f = *state;
	struct place p;

	life_start(&f->l, props);
	p = send_half(f, "x", "CHECK_IMMUNITY_TIME_IN_SECONDS\0013600\002");
	for (int i = 0; i < MANY; i++) {
		struct mqstore_record r = { .queue = txn_queue(life_broker(&f->l)->txn), .body = MQ_STR("y"), .parsed = true,
					    .props = { MQ_STR("REAL_TOPIC\001T\002REAL_QID\0010\002") }, .born_ms = clock_wall_ms() };
		struct mqstore_place place;
		struct mq_message m;
		struct mq_error e;
		struct mq_str record;

		assert_int_equal(mqstore_append(life_broker(&f->l)->store, &r, 1, &place, &e), 0);
		txn_stored(life_broker(&f->l)->txn, MQ_STR("T"), &place, r.born_ms, -1);
		assert_int_equal(mqstore_at(life_broker(&f->l)->store, place.log_off, &record), 0);
		assert_true(mq_message_decode(record.p, record.n, false, &m) > 0);
		assert_int_equal(txn_end(life_broker(&f->l)->txn, &m, false, &place, &e), 0);
	}
	for (int64_t end = clock_mono_us() + 10000000; kept(f, HALF) < MANY; broker_kit_run(f->l.k, 50))
		assert_true(clock_mono_us() < end);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	assert_int_equal(life_broker(&f->l)->metrics.checks_unheard, 0);
	life_stop(&f->l);
	life_start(&f->l, props);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	assert_int_equal(end(f, p, COMMIT), RESP_SUCCESS);
	assert_int_equal(kit_stored(f->l.k, "T", 2), 1);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
}

/* ---- The peer's store ------------------------------------------------------------------------------------------------------ */

static void what_the_peer_left_pending_is_asked_about(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", "mappedFileSizeConsumeQueue=2000", "maxHashSlotNum=500",
					     "maxIndexNum=400", "fileReservedTime=876000", "brokerClusterName=FxCluster",
					     "transactionCheckInterval=100", NULL };
	struct fixture *f = *state;
	struct asked *a;
	struct place now;
	int64_t before;

	free(golden_store(f->l.dir, "clean"));
	life_start(&f->l, props);
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 1);
	before = kit_stored(f->l.k, "FxTran", 0);
	join(f, "FxTranProducer");
	await(f, &life_broker(&f->l)->metrics.checks_sent, 1);
	broker_kit_run(f->l.k, 10);
	now = asked_about(f);
	assert_string_equal(asked_get(broker_kit_last(f->l.k), "msgId"), "C00002026EA25FFD2B2798F4B509003F");
	assert_prop(kit_look(f->l.k, HALF, 0, now.queue_off).props, "TRANSACTION_CHECK_TIMES", "7");
	a = end_later(f, now, "FxTranProducer", COMMIT, true);
	asked_wait(f->l.k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	asked_free(a);
	assert_int_equal(kit_stored(f->l.k, "FxTran", 0), before + 1);
	assert_prop(kit_look(f->l.k, "FxTran", 0, before).props, "KEYS", "tx-pending");
	assert_int_equal(txn_pending(life_broker(&f->l)->txn), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_half_is_seen_when_it_is_committed),
		T(a_half_that_is_rolled_back_is_never_seen),
		T(a_commit_that_comes_twice_delivers_once),
		T(halves_wait_through_steps_of_the_clock), T(who_does_not_know_gets_no_answer),
		T(a_delay_begins_with_the_commit),
		T(a_time_begins_with_the_commit_too),
		T(ends_that_fit_no_half_are_refused),
		T(what_cannot_be_a_half_is_refused),
		T(a_retry_of_a_committed_message_is_no_half),
		T(the_producer_is_asked_and_its_answer_counts),
		T(an_end_by_the_first_place_counts_after_a_question),
		T(nobody_is_asked_about_what_has_ended),
		T(who_is_never_heard_of_is_given_up),
		T(a_time_of_grace_is_kept_and_no_question_counts_in_it),
		T(questions_do_not_touch_the_body),
		T(a_full_disk_holds_up_questions_and_loses_nothing),
		T(after_a_stop_what_was_pending_is_pending),
		T(after_a_stop_the_questions_go_on_where_they_were),
		T(after_a_kill_nothing_is_lost_and_nothing_is_asked_in_vain),
		T(the_offsets_say_only_what_is_on_the_disk),
		T(one_that_waits_long_does_not_hold_the_others),
		T(what_the_peer_left_pending_is_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
