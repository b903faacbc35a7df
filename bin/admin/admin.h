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
/* ms since 1970: a bare number is that, as with mqadmin; else as cli_time_ms() has it. */
int64_t admin_time(const struct admin *a, const char *name, int64_t otherwise);
/* --dry-run: say what would be deleted, and delete nothing. */
bool admin_dry_run(const struct admin *a);
#define ADMIN_DRY_RUN { 0, "dry-run", NULL, false, "say what would be done, and do nothing" }
/* The JSON list of --filename (- is standard input) of objects with a name, each checked; the caller frees it.  A list with anything
 * wrong in it ends the program. */
json_t *admin_list_file(struct admin *a, const char *name_key, int (*check)(struct mq_str name, struct mq_error *why));
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
/* Addresses of all name servers, NULL at the end.  Good until the next call. */
const char *const *admin_nameservers(struct admin *a);
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
/* The same with the slaves of the cluster; and: all masters of all clusters if neither -b nor -c is given. */
void admin_targets_and_slaves(struct admin *a, struct admin_brokers *out);
void admin_targets_or_all(struct admin *a, struct admin_brokers *out);
void admin_brokers_free(struct admin_brokers *b);
/* Route of a topic, or NULL if the name servers know none.  The caller frees it. */
json_t *admin_route(struct admin *a, const char *topic);
/* The master's address, else any, of BrokerData. */
const char *admin_broker_addr(const json_t *broker_data);
/* That of the broker of this name in a route, or NULL. */
const char *admin_route_addr(const json_t *route, const char *broker);
/* The route of a topic that must be there: exit 1 if it is not. */
json_t *admin_route_of(struct admin *a, const char *topic);
/* Names of all topics; the caller frees it. */
json_t *admin_topics(struct admin *a);

/* ---- JSON members with a default */
const char *admin_text(const json_t *o, const char *key, const char *otherwise);
int64_t admin_i64(const json_t *o, const char *key, int64_t otherwise);
/* A queue used as key of a map ({"brokerName":..,"queueId":..,"topic":..} as text).  The caller frees it; never NULL. */
json_t *admin_queue_key(const char *key);
/* The whole of an answer, for -o json: on one line. */
void admin_dump(const json_t *o);
/* "V5_2_0" of the number that a client tells; the number where the peer has no name of that form. */
const char *admin_version(int64_t version, char out[32]);

/* ---- Clients (client.c) */
/* Live members of a consumer group (ConsumerConnection) as `broker` knows them, NULL = any broker of its retry topic; NULL if nobody
 * is online.  The address that was asked goes to addr.  The caller frees it. */
json_t *client_connections(struct admin *a, const char *group, const char *broker, char *addr, size_t cap);

/* ---- Configurations (broker.c) */
/* The lines key=value as members of a record, each key headed by `head` unless that is "". */
void admin_show_config(struct show *s, const char *head, struct mq_str text);
/* -k and -v as such a line; static. */
char *admin_config_line(struct admin *a);

/* ---- Topics (topic_change.c) */
/* From all masters of the cluster and from the name servers, as deleteTopic does it; with --dry-run it is only said. */
void topic_delete(struct admin *a, const char *topic, const char *cluster);

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

/* ---- Messages (message.c) */
/* All about a message; charset NULL: UTF-8. */
void message_show(struct admin *a, const struct mq_message *m, const char *charset);
/* Its body in UTF-8, or in hexadecimal where it is no text; malloc'd, NUL-terminated.  size: bytes of the body itself. */
char *message_body_text(const struct mq_message *m, const char *charset, size_t *size, bool *hex);
/* Ask a broker for messages of a topic by key; --beginTimestamp, --endTimestamp, --maxNum of the command count.  False: none. */
bool message_ask_key(struct admin *a, const char *addr, const char *topic, const char *key, struct mqclient_answer *ans);
bool message_has_key(const struct mq_message *m, const char *key);
/* Which groups have consumed the message at this place; nothing if no group reads the topic. */
void message_track(struct admin *a, const char *addr, const char *topic, int64_t queue, int64_t off);
/* -g and -d: hand the message to that member of a group.  Exit status. */
bool message_wants_push(struct admin *a);
int message_push(struct admin *a, const char *addr, const char *topic, const char *id);

/* ---- Offsets of queues (offset.c): 29 search by time, 30 the end, 31 the beginning */
int64_t offset_ask(struct admin *a, const char *addr, int code, const char *topic, int64_t queue, int64_t ms);
/* Where a group stands at this broker in the queues of a topic: {"0":offset,...}.  The caller frees it. */
json_t *offset_where(struct admin *a, const char *addr, const char *group, const char *topic);
/* Queues that can be read at a broker, by a route. */
int64_t offset_queues(const json_t *route, const char *broker);
/* Store an offset, and tell the members of the group that are online. */
void offset_put(struct admin *a, const char *addr, const char *group, const char *topic, int64_t queue, int64_t off);

/* ---- Reading queues (message_print.c) */
/* Up to n messages of a queue from *off on, into ans; *off moves to where to go on.  0: there are some (the body of the answer),
 * 1: none wanted here, go on; -1: nothing more. */
int message_pull(struct admin *a, const char *addr, const char *topic, int64_t queue, const char *expression, int64_t *off, int64_t n,
                 struct mqclient_answer *ans);

#endif
