/* admin.h: what every command has at hand: its options, the cluster, the answers.
 *
 * Commands end the program on trouble (cli_die, cli_fail): a one-shot tool has nothing to undo. */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "command.h"
#include "show.h"
#include <jansson.h>
#include <mqclient.h>
#include <mqstore.h>

enum { ADMIN_OPTS_MAX = 24, ADMIN_BROKERS_MAX = 1024 };

struct admin {
	const struct command *command;
	const char *value[ADMIN_OPTS_MAX];      /* of command->opts[i]; "" for an option without argument; NULL = not given */
	enum show_format format;
	int32_t timeout_ms;
	const char *addr;
	struct mqclient *client;                /* NULL on store:DIR */
	struct mqstore *store;                  /* NULL on a cluster */
};

/* ---- Options */
const char *admin_opt(const struct admin *a, const char *name);           /* NULL = not given */
bool admin_flag(const struct admin *a, const char *name);                 /* given without argument */
bool admin_bool(const struct admin *a, const char *name, bool otherwise); /* "true" / "false" */
int64_t admin_int(const struct admin *a, const char *name, int64_t otherwise, int64_t min, int64_t max);
_Noreturn void admin_usage(const struct admin *a, const char *fmt, ...) MQ_PRINTF(2, 3);

/* ---- Asking.  `to` NULL = a name server.  Answers are good until the next ask. */
struct admin_fields {
	struct mqclient_field f[24];
	size_t n;
};
void admin_field(struct admin_fields *f, const char *name, const char *value);
void admin_field_int(struct admin_fields *f, const char *name, int64_t value, char scratch[24]);
/* Ends the program unless an answer came with code 0 or one of `also` (0-ended; NULL = none).  Returns the code. */
int admin_ask(struct admin *a, const char *to, int code, const struct admin_fields *f, struct mq_str body, const int *also,
              struct mqclient_answer *ans);
/* Body as JSON in strict form; never NULL (an absent body is {}). The caller frees it. */
json_t *admin_json(const struct mqclient_answer *ans);
const struct mqclient_field *admin_answer_field(const struct mqclient_answer *ans, const char *name);

/* ---- The cluster */
struct admin_broker {
	char *cluster, *name, *addr;
	int64_t id;             /* 0 = master */
};
struct admin_brokers {
	struct admin_broker b[ADMIN_BROKERS_MAX];
	size_t n;
};
/* All brokers (of one cluster if not NULL), sorted; free with admin_brokers_free(). Exit 1 if a named cluster is unknown. */
void admin_cluster(struct admin *a, const char *cluster, struct admin_brokers *out);
/* Where -b or -c says: that address, or the masters of the cluster. */
void admin_targets(struct admin *a, struct admin_brokers *out);
void admin_brokers_free(struct admin_brokers *b);
/* Route of a topic, or NULL if the name servers know none.  The caller frees it. */
json_t *admin_route(struct admin *a, const char *topic);
/* The master's address, else any, of BrokerData. */
const char *admin_broker_addr(const json_t *broker_data);
/* Names of all topics; the caller frees it. */
json_t *admin_topics(struct admin *a);

/* ---- JSON members with a default */
const char *admin_text(const json_t *o, const char *key, const char *otherwise);
int64_t admin_i64(const json_t *o, const char *key, int64_t otherwise);
/* A queue used as key of a map ({"brokerName":..,"queueId":..,"topic":..} as text).  The caller frees it; never NULL. */
json_t *admin_queue_key(const char *key);

/* ---- Offline (store.c): the same commands on store:DIR */
void store_open(struct admin *a);
void store_close(struct admin *a);
int store_topic_list(struct admin *a);
int store_topic_status(struct admin *a);
int store_consumer_progress(struct admin *a);
int store_query_by_id(struct admin *a);
int store_query_by_key(struct admin *a);
/* The files of store:DIR as they are; ends the program on failure. */
struct mqstore_files *store_files(struct admin *a);
/* The options of a store in the directory of store:DIR. */
struct mqstore_opt store_options(struct admin *a);
/* Bytes as JSON text, or NULL if they are none (binary). */
json_t *store_json_text(struct mq_str v);

/* ---- Messages (message.c), also for store.c */
void message_show(struct admin *a, const struct mq_message *m);
bool message_has_key(const struct mq_message *m, const char *key);

#endif
