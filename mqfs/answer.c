/* answer.c: see answer.h. */
#include "answer.h"
#include "cluster.h"
#include "fail.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void question_str(struct question *q, const char *name, const char *value)
{
	if (value)
		q->field[q->n++] = (struct mqclient_field){ name, { value, strlen(value) } };
}

void question_int(struct question *q, const char *name, int64_t value)
{
	snprintf(q->number[q->n], sizeof(q->number[0]), "%lld", (long long)value);
	question_str(q, name, q->number[q->n]);
}

void question_bool(struct question *q, const char *name, bool value)
{
	question_str(q, name, value ? "true" : "false");
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

struct asking {
	struct task *task;
	size_t open;                    /* answers that have not come */
	bool parked;
};

struct one {
	struct asking *all;
	struct answer *a;
	const char *to;
	int code;
};

static int64_t number(struct mq_str s)
{
	char text[24];

	snprintf(text, sizeof(text), MQ_STR_FMT, MQ_STR_ARG(s));
	return strtoll(text, NULL, 10);
}

static void take(struct answer *a, const struct mqclient_answer *in)
{
	a->code = in->code;
	a->offset = a->min_off = a->max_off = -1;
	snprintf(a->remark, sizeof(a->remark), MQ_STR_FMT, MQ_STR_ARG(in->remark));
	for (size_t i = 0; i < in->nfields; i++) {
		const char *name = in->fields[i].name;
		if (strcmp(name, "offset") == 0 || strcmp(name, "nextBeginOffset") == 0)
			a->offset = number(in->fields[i].value);
		else if (strcmp(name, "minOffset") == 0)
			a->min_off = number(in->fields[i].value);
		else if (strcmp(name, "maxOffset") == 0)
			a->max_off = number(in->fields[i].value);
	}
	if (in->body.n) {
		char *p = malloc(in->body.n + 1);
		if (!p)
			cli_die(CLI_SYSTEM, "out of memory");
		memcpy(p, in->body.p, in->body.n);
		p[in->body.n] = '\0';
		a->body = (struct mq_str){ p, in->body.n };
	}
}

static void on_answer(void *arg, const struct mqclient_answer *in)
{
	struct one *o = arg;
	struct asking *all = o->all;

	if (in->rc == 0) {
		take(o->a, in);
	} else {
		char what[100];
		snprintf(what, sizeof(what), "ask %.60s", o->to ? o->to : "a name server");
		o->a->rc = fail_error(what, &in->err);
		/* Silence and a dead connection are one thing to who asks the name server: nobody is there. */
		if (o->a->rc == -ENOENT)
			o->a->rc = -EHOSTDOWN;
	}
	free(o);
	if (--all->open == 0 && all->parked)
		task_wake(all->task);
}

void answer_ask_all(const char *const *to, size_t n, const struct question *q, struct answer *a)
{
	struct asking all = { .task = task_self() };

	memset(a, 0, n * sizeof(*a));
	for (size_t i = 0; i < n; i++) {
		struct one *o = malloc(sizeof(*o));
		if (!o)
			cli_die(CLI_SYSTEM, "out of memory");
		*o = (struct one){ &all, &a[i], to[i], q->code };
		all.open++;
		int rc = mqclient_ask(cluster_client(), to[i], q->code, q->field, q->n, q->body,
		                      (int32_t)task_left_ms(), on_answer, o);
		if (rc < 0) {
			all.open--;
			a[i].rc = fail(rc == MQ_ETOOBIG ? -EMSGSIZE : -EHOSTDOWN, "ask %s: %s", to[i] ? to[i] : "a name server",
			               mq_strerror(rc));
			free(o);
		}
	}
	if (all.open) {
		all.parked = true;
		task_park();
	}
}

int answer_ask(const char *to, const struct question *q, struct answer *a)
{
	answer_ask_all(&to, 1, q, a);
	return a->rc;
}

void answer_free(struct answer *a)
{
	free((char *)a->body.p);
	a->body = (struct mq_str){ 0 };
}

int answer_rc(const struct answer *a, const char *what, const int *fine)
{
	int rc;

	if (a->rc || !a->code)
		return a->rc;
	for (; fine && *fine; fine++)
		if (*fine == a->code)
			return 0;
	rc = fail_response(a->code, (struct mq_str){ a->remark, strlen(a->remark) });
	return rc == -ENOENT ? rc : fail(rc, "%s: refused (code %d): %s", what, a->code, a->remark);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *answer_json(const struct answer *a)
{
	json_t *o;
	char *strict;

	if (!a->body.n)
		return json_object();
	o = json_loadb(a->body.p, a->body.n, JSON_DECODE_ANY, NULL);
	if (o)
		return o;
	strict = mqclient_strict_json(a->body, NULL);
	o = strict ? json_loads(strict, JSON_DECODE_ANY, NULL) : NULL;
	free(strict);
	if (!o)
		fail(-EPROTO, "an answer is no JSON: %.60s", a->body.p);
	return o;
}

const char *member_text(const json_t *o, const char *key, const char *otherwise)
{
	const char *v = json_string_value(json_object_get(o, key));

	return v ? v : otherwise;
}

int64_t member_i64(const json_t *o, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_string(v))
		return strtoll(json_string_value(v), NULL, 10);
	return json_is_integer(v) ? json_integer_value(v) : json_is_real(v) ? (int64_t)json_real_value(v) : otherwise;
}
