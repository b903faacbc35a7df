/* trace.c: see trace.h.  For people: slow, allocates, changes nothing. */
#include "trace.h"
#include <stdio.h>

enum { TRACE_VALUE_MAX = 200 };

static const char *code_name(int32_t code, char *out, size_t cap)
{
	const struct request_row *row = request_find(code);

	if (row)
		return row->name;
	snprintf(out, cap, "REQUEST_%d", code);
	return out;
}

static void trace_fields(struct buf *b, const struct frame *f)
{
	char show[TRACE_VALUE_MAX + 8];

	for (uint32_t i = 0; i < f->nfields; i++) {
		buf_char(b, ' ');
		buf_cstr(b, str_show(f->field[i].key, show, sizeof show));
		buf_char(b, '=');
		buf_cstr(b, str_show(f->field[i].value, show, sizeof show));
	}
	if (f->remark.n)
		buf_printf(b, " remark=\"%s\"", str_show(f->remark, show, sizeof show));
	if (f->body.n)
		buf_printf(b, " body=%zu", f->body.n);
}

static void trace_print(struct buf *b)
{
	buf_char(b, '\n');
	fwrite(b->p, 1, b->n, stderr);
	buf_free(b);
}

void trace_out(struct link *l, const struct frame_out *o)
{
	struct buf copy = { 0 }, b = { 0 };
	struct frame *f = mem_alloc(sizeof *f);
	struct mq_error e;
	char name[32];

	/* Parsing changes the bytes, so on a copy. */
	buf_put(&copy, o->buf->p + o->start, o->buf->n - o->start);
	if (frame_parse(copy.p, copy.n, f, &e) == 0) {
		buf_printf(&b, "> %s %s #%d%s", l->addr, code_name(f->code, name, sizeof name), f->opaque,
		           f->flag & FRAME_ONEWAY ? " oneway" : "");
		trace_fields(&b, f);
		trace_print(&b);
	}
	buf_free(&copy);
	free(f);
}

void trace_in(struct link *l, const struct frame *f)
{
	struct buf b = { 0 };
	char name[32];

	buf_printf(&b, "< %s %s #%d%s", l->addr, code_name(f->code, name, sizeof name), f->opaque,
	           f->flag & FRAME_ONEWAY ? " oneway" : "");
	trace_fields(&b, f);
	trace_print(&b);
}

void trace_answered(struct link *l, int32_t code, const struct frame *request)
{
	char name[32];

	fprintf(stderr, "> %s answer to %s #%d: %s\n", l->addr, code_name(request->code, name, sizeof name),
	        request->opaque, response_name(code));
}

struct traced {
	struct link *l;
	int code;
	int64_t start_us;
	conn_answer_cb *cb;
	void *arg;
};

static void on_traced(void *arg, int rc, struct frame *f)
{
	struct traced *t = arg;
	struct buf b = { 0 };
	char name[32];

	if (f) {
		buf_printf(&b, "< %s answer to %s #%d: %s", t->l->addr, code_name(t->code, name, sizeof name),
		           f->opaque, response_name(f->code));
		trace_fields(&b, f);
	} else {
		buf_printf(&b, "< %s no answer to %s: %s", t->l->addr, code_name(t->code, name, sizeof name),
		           mq_strerror(rc));
	}
	buf_printf(&b, " after %lld us", (long long)(clock_mono_us() - t->start_us));
	trace_print(&b);
	t->cb(t->arg, rc, f);
	free(t);
}

conn_answer_cb *trace_answer(struct link *l, int code, conn_answer_cb *cb, void **arg)
{
	struct traced *t = mem_alloc(sizeof *t);

	*t = (struct traced){ l, code, clock_mono_us(), cb, *arg };
	*arg = t;
	return on_traced;
}
