/* tag.h: tag expressions ("*", "A||B") and their hashes. */
#ifndef CODEC_TAG_H
#define CODEC_TAG_H

#include <mq.h>

/* Code of a message's TAGS property in the consume queue: Java hash, sign-extended; 0 if none. */
int64_t tag_code(struct mq_str tags);

enum { TAG_MAX = 256 };
struct tag_set {
	bool all;               /* "*", empty */
	size_t n;
	int64_t *code;          /* n codes, sorted */
	struct mq_str *tag;     /* n names, owned */
};
int tag_parse(struct mq_str expr, struct tag_set *t, struct mq_error *e);   /* MQ_EINVAL */
void tag_free(struct tag_set *t);
bool tag_match_code(const struct tag_set *t, int64_t code);
bool tag_match_name(const struct tag_set *t, struct mq_str tag);

#endif
