/* sub.h: what a group, or a single pull, wants of a topic.
 *
 * A TAG expression is compiled from its own text ("A||B"), or from the list of tags where there is no text; the hashes that
 * clients send along are not looked at: Go takes them over UTF-8 bytes, C++ and Rust send other numbers altogether.
 * An SQL92 expression that is wrong makes a subscription too, one that says why: its group is a member like any other. */
#ifndef BROKER_SUB_H
#define BROKER_SUB_H

#include <codec/body_heartbeat.h>
#include <codec/sql.h>
#include <codec/tag.h>

/* Counted, so that a held pull keeps the one it came with; never changed once made. */
struct sub {
	int refs;
	bool sql, class_filter;
	int64_t version;                /* ms (Go: ns), for "newer than" only */
	struct tag_set tags;            /* of a TAG expression; of SQL: all */
	struct sql *program;            /* of an SQL expression that is right; else NULL */
	char *why;                      /* what is wrong with an SQL expression; else NULL */
	char *topic, *expr;             /* expr: "*", "A||B", SQL text; owned */
};

/* type: "TAG", "SQL92", or empty (TAG).  0, or MQ_EINVAL with the reason when a TAG expression is wrong. */
int sub_new(struct sub **s, struct mq_str topic, struct mq_str expr, struct mq_str type, int64_t version, struct mq_error *e);
/* As a client describes it in a heartbeat. */
int sub_from_body(struct sub **s, const struct body_sub *data, struct mq_error *e);
/* And back; views into s and *keep. */
void sub_body(const struct sub *s, struct body_keep *keep, struct body_sub *out);
struct sub *sub_get(struct sub *s);
void sub_put(struct sub *s);        /* NULL is fine */
/* By the entry in the queue, and then by the message. */
static inline bool sub_match(const struct sub *s, int64_t code)
{
	return s->tags.all || tag_match_code(&s->tags, code);
}
static inline bool sub_match_props(const struct sub *s, struct mq_str props)
{
	return !s->program || sql_match(s->program, props);
}
bool sub_is_tag(struct mq_str type);    /* absent, empty or TAG */

#endif
