/* answer.h: ask brokers and name servers from a task, and wait for what they say. */
#ifndef MQFS_ANSWER_H
#define MQFS_ANSWER_H

#include <mqclient.h>
#include <jansson.h>

#define ANSWER_FIELDS_MAX 12

struct question {
	int code;
	struct mqclient_field field[ANSWER_FIELDS_MAX];
	size_t n;
	char number[ANSWER_FIELDS_MAX][24];
	struct mq_str body;
};

void question_str(struct question *q, const char *name, const char *value);      /* NULL: left out */
void question_int(struct question *q, const char *name, int64_t value);
void question_bool(struct question *q, const char *name, bool value);

struct answer {
	int rc;                         /* 0: an answer came, whatever its code; else -errno, told (fail.h) */
	int code;
	char remark[300];
	struct mq_str body;             /* ours */
	int64_t offset;                 /* the field "offset", or "nextBeginOffset"; -1 = none */
	int64_t min_off, max_off;       /* of a pull */
};

/* Ask `to` ("host:port", or NULL: a name server) and wait.  Returns a->rc.  answer_free() in any case. */
int answer_ask(const char *to, const struct question *q, struct answer *a);
/* Ask several at once; each has its answer. */
void answer_ask_all(const char *const *to, size_t n, const struct question *q, struct answer *a);
void answer_free(struct answer *a);
/* The rc, else what the code means (0 for 0 and for the codes in `fine`, a list that ends with 0).  Refusals are told. */
int answer_rc(const struct answer *a, const char *what, const int *fine);
/* The body as JSON; NULL if it is none.  An empty body is {}. */
json_t *answer_json(const struct answer *a);

/* What stands in JSON. */
const char *member_text(const json_t *o, const char *key, const char *otherwise);
int64_t member_i64(const json_t *o, const char *key, int64_t otherwise);

#endif
