/* mqclient.h: join a cluster of name servers and brokers (ours or Apache RocketMQ): send, receive, ask.
 *
 * PUBLIC.  Everything runs on one libuv loop; no call blocks unless its name ends in _wait.  Callbacks run on the loop and
 * may call any function here but _wait and _free ones.  Views passed to a callback are good until it returns.
 * A handle belongs to the thread of its loop. */
#ifndef MQCLIENT_H
#define MQCLIENT_H

#include <mq.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;
struct mqclient;

/* ---- Addresses (mq(7)) ------------------------------------------------------------------------------------------------ */

enum mqclient_addr_kind {
	MQCLIENT_CLUSTER,  /* host:port[;host:port...] */
	MQCLIENT_HTTP,     /* http://host/path: an address server */
	MQCLIENT_FILE,     /* file:DIR: embedded, a broker is started when nobody serves DIR */
	MQCLIENT_STORE,    /* store:DIR: read-only, offline; open it with mqstore_open() */
};

/* The address to use: `arg` (from -n) if not NULL, else $NAMESRV_ADDR, else nameserver= in $XDG_CONFIG_HOME/mq/config, then in
 * /etc/mq/config, else file:$XDG_DATA_HOME/mq.  The text goes to out (cap bytes).  0 or MQ_EINVAL with the reason. */
MQ_API int mqclient_address(const char *arg, char *out, size_t cap, struct mq_error *err);
MQ_API enum mqclient_addr_kind mqclient_addr_kind(const char *addr);
/* DIR of file:DIR or store:DIR. */
MQ_API const char *mqclient_addr_dir(const char *addr);

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

struct mqclient_opt {
	const char *addr;             /* as from mqclient_address(); copied */
	const char *instance;         /* last part of the client id; NULL = pid#time */
	struct uv_loop_s *loop;       /* NULL = the client makes and owns one */
	int32_t timeout_ms;           /* of a request; 0 = 3000 */
	bool binary_header;           /* ROCKETMQ headers rather than JSON */
	bool trace;                   /* every frame as a line on stderr */
	/* As who, where clusters check rights; copied.  NULL: as $MQ_ACCESS_KEY, $MQ_SECRET_KEY and $MQ_SECURITY_TOKEN say, else
	 * accessKey=, secretKey= and securityToken= of the configuration (mqclient_address()), else conf/tools.yml in $ROCKETMQ_HOME;
	 * else as nobody. */
	const char *access_key, *secret_key, *security_token;
	void (*log)(void *arg, int level, const char *line); /* NULL = silent; level 0 error .. 3 debug */
	void *log_arg;
};

MQ_API int mqclient_open(struct mqclient **c, const struct mqclient_opt *opt, struct mq_error *err);

/* Turn the loop until at least one event was handled or timeout_ms passed (-1 = no limit).  Returns the number of requests in
 * flight, or a negative code. */
MQ_API int mqclient_run(struct mqclient *c, int timeout_ms);
MQ_API struct uv_loop_s *mqclient_loop(struct mqclient *c);
MQ_API const char *mqclient_id(const struct mqclient *c);

/* Commit, unlock, unregister, close every connection, free.  Waits for the answers, at most timeout_ms. */
MQ_API void mqclient_free(struct mqclient *c, int timeout_ms);

/* ---- Routes ----------------------------------------------------------------------------------------------------------- */

struct mqclient_queue {
	const char *broker;           /* name; lives as long as the client */
	int32_t id;
};

/* Route of a topic, fresh from a name server.  Text is the JSON of TopicRouteData in strict form.
 * rc: 0, MQ_ENOROUTE (topic unknown), or why it failed. */
typedef void mqclient_text_cb(void *arg, int rc, const struct mq_error *err, struct mq_str text);
MQ_API int mqclient_route(struct mqclient *c, struct mq_str topic, mqclient_text_cb *cb, void *arg);

/* The queues that can be read / written now; out has room for cap.  Returns how many there are, or a negative code. */
MQ_API int mqclient_queues_wait(struct mqclient *c, struct mq_str topic, bool for_write, struct mqclient_queue *out, int cap,
                                struct mq_error *err);

/* ---- Sending ---------------------------------------------------------------------------------------------------------- */

struct mqclient_send_opt {
	const char *group;            /* producer group; NULL = "mq-send" */
	struct mqclient_queue queue;  /* broker NULL = choose: round robin over writable queues, avoiding brokers that fail */
	struct mq_str sharding_key;   /* p != NULL: the queue by the Java hash of the key */
	bool oneway;                  /* cb comes when the bytes have left */
	int32_t retries;              /* further tries on other queues; -1 = 2 */
	int32_t compress_over;        /* bodies of at least this many bytes are compressed; 0 = never */
	int32_t compress_type;        /* MQ_SYS_COMPRESS_ZLIB, _LZ4, _ZSTD */
	int32_t compress_level;       /* 0 = 5 */
	int32_t timeout_ms;           /* 0 = the client's */
	bool half;                    /* of a transaction, see below: one message, not oneway, group given */
	bool introduce;               /* the broker hears who we are before the message: so that it can come back to us */
};

struct mqclient_sent {
	int rc;                       /* 0 stored; MQ_EREFUSED etc: see err */
	int status;                   /* response code: 0, or stored with less than asked: 10 flush, 11 no slave, 12 slave */
	struct mq_error err;
	struct mqclient_queue queue;
	int64_t queue_off;
	struct mq_str offset_id;      /* a batch: comma-separated */
	struct mq_str uniq_key;       /* the client's message id; of the first in a batch */
	size_t n;                     /* messages in this send */
};
typedef void mqclient_sent_cb(void *arg, const struct mqclient_sent *r);

/* Send n messages to one topic (n > 1: as one batch to one queue, never compressed).  Everything is copied; opt chooses the queue,
 * m->queue_id does not count.  UNIQ_KEY and WAIT are added where absent.  The callback comes exactly once, never before this
 * returns.  Returns 0, or a negative code with nothing queued (MQ_EINVAL: name, empty body, properties; MQ_ETOOBIG).
 *
 * Tried again until the time-out: when a connection breaks and on codes 17 14 1 16 204 205, on other queues and brokers, `retries`
 * times (both may store a message twice, with one UNIQ_KEY); when no connection can be made and on code 1500, without count;
 * on code 2 (busy) after 50, 100, 200 ... ms, without count.  Silence until the time-out is MQ_ETIMEOUT: whether the message was
 * stored is not known. */
MQ_API int mqclient_send(struct mqclient *c, const struct mq_message *m, size_t n, const struct mqclient_send_opt *opt,
                         mqclient_sent_cb *cb, void *arg, struct mq_error *err);

/* How a request ended that is answered with yes or no.  rc: 0, MQ_EREFUSED with err->response, or why there was no answer. */
typedef void mqclient_done_cb(void *arg, int rc, const struct mq_error *err);

/* ---- Transactions: a half is stored when it is sent, and delivered when it is committed ------------------------------------ */

/* What names a half. */
struct mqclient_half {
	struct mqclient_queue queue;  /* the broker that has it, the queue it is for */
	int64_t half_off, log_off;    /* its offset in the topic of halves; in the log */
	char id[MQ_ID_TEXT];          /* unique id of the message */
	char group[256];              /* of the producer */
	bool asked;                   /* the broker has asked for it */
};

/* The half of a send with opt.half that ended well.  0, or MQ_EPROTO if the answer did not say what is needed. */
MQ_API int mqclient_half_of(const struct mqclient_sent *r, const char *group, struct mqclient_half *h, struct mq_error *err);

/* Commit it, or roll it back.  Who does not know yet says nothing: the broker asks the clients of the group some time later, again and
 * again.  cb comes exactly once, never before this returns.  0, or a negative code with nothing begun. */
MQ_API int mqclient_end(struct mqclient *c, const struct mqclient_half *h, bool commit, mqclient_done_cb *cb, void *arg,
                        struct mq_error *err);

/* Answer for the transactions of a producer group, also for those of other processes that are gone: the brokers of `topic` hear of the
 * group, and cb comes with each question; mqclient_end(h) is the answer, now or later.  m and body are those of the half, good
 * until cb returns.  Ends with the client. */
typedef void mqclient_check_cb(void *arg, const struct mqclient_half *h, const struct mq_message *m, struct mq_str body);
MQ_API int mqclient_answer_checks(struct mqclient *c, const char *group, struct mq_str topic, mqclient_check_cb *cb, void *arg,
                                  struct mq_error *err);

/* ---- Requests and replies --------------------------------------------------------------------------------------------- */

/* rc 0: the reply, its body in plain form; m and body are good until the callback returns.  MQ_ETIMEOUT: nobody replied in time. */
typedef void mqclient_reply_cb(void *arg, int rc, const struct mq_error *err, const struct mq_message *m, struct mq_str body);

/* Send a message that asks for a reply.  opt->timeout_ms (0 = the client's) is for both.  cb comes exactly once, never before this
 * returns.  0, or a negative code with nothing queued, as mqclient_send(). */
MQ_API int mqclient_request(struct mqclient *c, const struct mq_message *m, const struct mqclient_send_opt *opt, mqclient_reply_cb *cb,
                            void *arg, struct mq_error *err);

/* Does a message that was received ask for one? */
MQ_API bool mqclient_wants_reply(const struct mq_message *m);

/* Reply to it (only its properties are read); `broker` is the name of the one it came from, group names who replies.  cb: whether the
 * asker got it; MQ_EREFUSED if it is no longer there. */
MQ_API int mqclient_reply(struct mqclient *c, const struct mq_message *request, const char *broker, const char *group,
                          struct mq_str body, mqclient_done_cb *cb, void *arg, struct mq_error *err);

/* A new unique message id, 32 upper-case hex characters and NUL. */
MQ_API void mqclient_new_id(struct mqclient *c, char out[MQ_ID_TEXT]);

/* ---- Receiving -------------------------------------------------------------------------------------------------------- */

struct mqclient_consumer;
struct mqclient_direct;

enum mqclient_start { MQCLIENT_END, MQCLIENT_BEGIN, MQCLIENT_STORED, MQCLIENT_AT_OFFSET, MQCLIENT_AT_TIME, MQCLIENT_LAST_N };

struct mqclient_consume_opt {
	const char *group;            /* NULL = look only: no heartbeat, every queue, nothing committed */
	bool broadcast;               /* every member gets all; nothing is committed, where to start is the caller's affair (start_at) */
	bool orderly;                 /* a queue is read under a lock that one member of the group has at a time: given up only when
	                               * all that was handed out of it is settled.  Needs a group */
	bool pop;                     /* messages are lent by the brokers one by one, to any member: settled with commit they are acked,
	                               * else they come again, at once or when pop_ms is over; while they are out it is renewed.
	                               * Needs a group; `orderly` then is the brokers' affair; start BEGIN or END; window: of all queues */
	int64_t pop_ms;               /* for how long they are lent: 1,000 to 259,200,000; 0 = 60,000 */
	const struct mq_str *topics;
	size_t ntopics;
	const char *filter;           /* "*", "A||B", or SQL92 with sql = true */
	bool sql;
	enum mqclient_start start;    /* with a group: where it starts in queues in which it stands nowhere yet.
	                               * STORED: as the peer: at the end, or at 0 on a young topic.  Without a group STORED is END */
	int64_t start_value;          /* offset, ms, or N */
	struct mqclient_queue queue;  /* broker != NULL: this queue only */
	bool stop_at_end;             /* tell `ended` when each queue reached what was its end at the start */
	int32_t window;               /* with a group: messages handed out and not settled, per queue; 0 = 1000 */
	int32_t batch;                /* messages per pull; 0 = 32 */
};

/* Callbacks of a consumer. */
struct mqclient_consume_ops {
	/* A message.  `body` is in plain form.  Messages of a queue come in order.  It counts as handed out until
	 * mqclient_settle() says what became of it (without a group nothing needs to be settled; mqclient_pause() slows it down).
	 * m and body are good until the callback returns.  Members of a group also get what was sent back to it: m->topic is then
	 * %RETRY%GROUP (popped: %RETRY%GROUP_TOPIC), the name for mqclient_settle(), and the first topic is in the property
	 * RETRY_TOPIC. */
	void (*message)(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q);
	/* Queues came or went (group members changed); what is unsettled in a lost queue will be delivered to another member. */
	void (*assigned)(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n);
	/* stop_at_end: everything that was there has been handed out. */
	void (*ended)(void *arg);
	/* May be NULL.  Where to start in a queue that is taken up: its offset, or -1 for what opt->start says. */
	int64_t (*start_at)(void *arg, struct mq_str topic, const struct mqclient_queue *q);
	/* Trouble that goes on (broker away, offset moved): for a line on stderr.  fatal: nothing more will come (no such topic,
	 * refused; who only looks is told at the first failure to find a route, a group keeps looking). */
	void (*trouble)(void *arg, const struct mq_error *err, bool fatal);
	/* May be NULL.  An administrator wants to know what this member makes of a message, whoever else has consumed it: nothing needs
	 * to be settled; mqclient_direct_end(d) is the answer, now or later, once. */
	void (*direct)(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q,
	               struct mqclient_direct *d);
};

MQ_API int mqclient_consume(struct mqclient *c, struct mqclient_consumer **k, const struct mqclient_consume_opt *opt,
                            const struct mqclient_consume_ops *ops, void *arg, struct mq_error *err);

/* Say that the message at (topic, queue, offset) is done: with commit the group's offset may move past it, as soon as all before
 * it in its queue are settled too.  Without commit it is handed back: the group's offset stays before it. */
MQ_API void mqclient_settle(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t queue_off,
                            bool commit);

/* Send a message back to the broker: it comes again, to any member of the group, after delay_level; or it goes to the dead letters
 * (%DLQ%GROUP), if delay_level is negative or it came back max_times before.  When cb says 0 it is as safe as a sent one: settle it
 * with commit. */
struct mqclient_back {
	const char *broker;           /* name of the one it came from */
	struct mq_str topic;          /* of the message */
	int64_t log_off;
	const char *id;               /* unique id, for the broker's log; "" = none */
	int32_t delay_level;          /* 1...; 0 = the broker chooses, later with each time; -1 = to the dead letters */
	int32_t max_times;            /* -1 = as the group is configured */
};
MQ_API int mqclient_send_back(struct mqclient_consumer *k, const struct mqclient_back *b, mqclient_done_cb *cb, void *arg,
                              struct mq_error *err);

/* What became of a message that was handed over by `direct`; remark may be NULL. */
MQ_API void mqclient_direct_end(struct mqclient_direct *d, bool consumed, const char *remark);

/* Send offsets that moved now.  They are sent every 5 s and at free anyhow. */
MQ_API void mqclient_commit(struct mqclient_consumer *k);

/* Stop and start the flow of messages (a slow reader of stdout). */
MQ_API void mqclient_pause(struct mqclient_consumer *k, bool on);

/* Queues, where they stand and their ends: `cb` for each.  lag = max - next. */
struct mqclient_progress {
	struct mq_str topic;
	struct mqclient_queue queue;
	int64_t min_off, max_off, next_off, committed_off;
};
MQ_API void mqclient_progress(struct mqclient_consumer *k, void (*cb)(void *arg, const struct mqclient_progress *p), void *arg);

/* Commit what is settled, wait for the answers at most timeout_ms, leave the group, free. Not from a callback.
 * Returns 0, or why an offset could not be stored. */
MQ_API int mqclient_consumer_free(struct mqclient_consumer *k, int timeout_ms, struct mq_error *err);

/* The same without waiting: no callback of its ops comes any more.  When the offsets are stored, or timeout_ms passed, it is freed
 * and cb (may be NULL) is told, from the loop: 0, or why an offset could not be stored.  May be called from any callback but those
 * of its own ops.  mqclient_free() meanwhile ends it. */
MQ_API void mqclient_consumer_leave(struct mqclient_consumer *k, int timeout_ms, void (*cb)(void *arg, int rc, const struct mq_error *err),
                                    void *arg);

/* ---- Asking ------------------------------------------------------------------------------------------------------------ */

/* A header field.  Values travel as text. */
struct mqclient_field {
	const char *name;
	struct mq_str value;
};

struct mqclient_answer {
	int rc;                       /* 0: an answer came, whatever its code */
	int code;                     /* response code */
	struct mq_str remark, body;
	const struct mqclient_field *fields;
	size_t nfields;
	struct mq_error err;
};
typedef void mqclient_answer_cb(void *arg, const struct mqclient_answer *a);

/* Send request `code` to `to`: "host:port", or NULL for a name server (the next one on failure). */
MQ_API int mqclient_ask(struct mqclient *c, const char *to, int code, const struct mqclient_field *fields, size_t nfields,
                        struct mq_str body, int32_t timeout_ms, mqclient_answer_cb *cb, void *arg);

/* The same, waiting.  *a and its views are good until the next _wait call on this client.  Returns a->rc. */
MQ_API int mqclient_ask_wait(struct mqclient *c, const char *to, int code, const struct mqclient_field *fields, size_t nfields,
                             struct mq_str body, int32_t timeout_ms, struct mqclient_answer *a);

/* The JSON of the peer (fastjson: bare numeric keys, objects as keys) in strict form; an object used as key becomes the string of
 * its text.  NUL-terminated, the caller frees it; NULL if it is no JSON at all. */
MQ_API char *mqclient_strict_json(struct mq_str text, struct mq_error *err);

/* The name servers known, "host:port" each; NULL at the end.  Lives until the next turn of the loop. */
MQ_API const char *const *mqclient_nameservers(struct mqclient *c);

#ifdef __cplusplus
}
#endif
#endif
