/* record_out.c: one message as bytes on standard output.  The format of -f is read once and kept as a list of steps. */
#include "record_out.h"
#include "cli.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct format_op {
	char what;          /* the letter behind %, '{' for a property, 0 for the text itself */
	size_t at, n;       /* in record_out.text */
};

static int wrong(struct mq_error *err, const char *why, const char *at)
{
	err->code = MQ_EINVAL;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "%s at '%.60s'", why, at);
	return MQ_EINVAL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The escape at *p (behind the backslash) as a byte; *p moves behind it. */
static int unescape(const char **p, char *out)
{
	static const char from[] = "ntr0\\", to[] = "\n\t\r\0\\";
	const char *q = **p ? strchr(from, **p) : NULL;

	if (q) {
		*out = to[q - from];
		(*p)++;
		return 0;
	}
	if (**p == 'x' && hex_digit((*p)[1]) >= 0 && hex_digit((*p)[2]) >= 0) {
		*out = (char)(hex_digit((*p)[1]) << 4 | hex_digit((*p)[2]));
		*p += 3;
		return 0;
	}
	return -1;
}

int record_out_unescape(struct bytes *b, const char *text, struct mq_error *err)
{
	const char *p = text;
	char c;

	while (*p) {
		if (*p != '\\') {
			bytes_byte(b, *p++);
			continue;
		}
		p++;
		if (unescape(&p, &c) != 0)
			return wrong(err, "unknown escape (known: \\n \\t \\r \\0 \\\\ \\xHH)", p - 1);
		bytes_byte(b, c);
	}
	return 0;
}

static struct format_op *add_op(struct record_out *r, char what)
{
	struct format_op *ops = realloc(r->ops, (r->nops + 1) * sizeof(*ops));

	if (!ops)
		cli_die(CLI_SYSTEM, "out of memory");
	r->ops = ops;
	ops[r->nops] = (struct format_op){ .what = what, .at = r->text.n };
	return &ops[r->nops++];
}

/* A byte of plain text. */
static void add_plain(struct record_out *r, char c)
{
	struct format_op *op = r->nops && r->ops[r->nops - 1].what == 0 ? &r->ops[r->nops - 1] : add_op(r, 0);

	bytes_byte(&r->text, c);
	op->n++;
}

int record_out_format(struct record_out *r, const char *format, struct mq_error *err)
{
	const char *p = format, *end;
	struct format_op *op;
	char c;

	r->mode = RECORD_FORMAT;
	while (*p) {
		if (*p == '\\') {
			p++;
			if (unescape(&p, &c) != 0)
				return wrong(err, "unknown escape (known: \\n \\t \\r \\0 \\\\ \\xHH)", p - 1);
			add_plain(r, c);
			continue;
		}
		if (*p != '%') {
			add_plain(r, *p++);
			continue;
		}
		p++;
		if (*p == '%') {
			add_plain(r, *p++);
		} else if (*p == '{') {
			end = strchr(p, '}');
			if (!end || end == p + 1)
				return wrong(err, "%{NAME} is right", p - 1);
			op = add_op(r, '{');
			op->n = (size_t)(end - p - 1);
			bytes_add(&r->text, p + 1, op->n);
			bytes_byte(&r->text, '\0');
			p = end + 1;
		} else if (*p && strchr("skThtqoiSdDxb", *p)) {
			add_op(r, *p++);
		} else {
			return wrong(err, "unknown field (known: %s %k %T %h %t %q %o %i %S %d %D %x %b %{NAME} %%)", p - 1);
		}
	}
	return 0;
}

void record_out_free(struct record_out *r)
{
	free(r->ops);
	bytes_free(&r->text);
	*r = (struct record_out){ 0 };
}

/* 2026-11-30T12:00:00.123Z; the number if it is no time that a calendar has. */
static void iso_time(struct bytes *b, int64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[64];

	if (ms < 0 || !gmtime_r(&t, &tm)) {
		bytes_int(b, ms);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	bytes_str(b, text);
	bytes_printf(b, ".%03dZ", (int)(ms % 1000));
}

void record_out_id(struct bytes *b, const struct mq_message *m)
{
	struct mq_str id = mq_prop_get(m->props, "UNIQ_KEY");
	char offset_id[MQ_ID_TEXT];

	if (id.n)
		bytes_add(b, id.p, id.n);
	else
		bytes_add(b, offset_id, mq_offset_id(&m->store_host, m->log_off, offset_id));
}

static void property(struct bytes *b, const struct mq_message *m, const char *name)
{
	struct mq_str v = mq_prop_get(m->props, name);

	bytes_add(b, v.p, v.n);
}

static void format_field(struct bytes *b, char what, const struct shown *s)
{
	const struct mq_message *m = s->m;

	switch (what) {
	case 's':
		bytes_add(b, s->body.p, s->body.n);
		break;
	case 'k':
		property(b, m, "KEYS");
		break;
	case 'T':
		property(b, m, "TAGS");
		break;
	case 'h':
		json_out_props(b, m->props);
		break;
	case 't':
		bytes_add(b, m->topic.p, m->topic.n);
		break;
	case 'q':
		bytes_str(b, s->broker ? s->broker : "");
		bytes_byte(b, ':');
		bytes_int(b, m->queue_id);
		break;
	case 'o':
		bytes_int(b, m->queue_off);
		break;
	case 'i':
		record_out_id(b, m);
		break;
	case 'S':
		bytes_int(b, (int64_t)s->body.n);
		break;
	case 'd':
		iso_time(b, m->store_ms);
		break;
	case 'D':
		bytes_int(b, m->store_ms);
		break;
	case 'x':
		bytes_hex(b, s->body);
		break;
	case 'b':
		bytes_base64(b, s->body);
		break;
	}
}

static void write_length(struct bytes *b, struct mq_str body)
{
	uint32_t n = (uint32_t)body.n;
	const char be[4] = { (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n };

	bytes_add(b, be, 4);
	bytes_add(b, body.p, body.n);
}

void record_out_write(const struct record_out *r, struct bytes *b, const struct shown *s)
{
	switch (r->mode) {
	case RECORD_LINE:
	case RECORD_NUL:
		bytes_room(b, s->body.n + 1);
		bytes_add(b, s->body.p, s->body.n);
		bytes_byte(b, r->mode == RECORD_LINE ? '\n' : '\0');
		break;
	case RECORD_RAW:
		bytes_add(b, s->body.p, s->body.n);
		break;
	case RECORD_LENGTH:
		write_length(b, s->body);
		break;
	case RECORD_JSON:
		json_out_message(b, s->m, s->body, s->broker);
		break;
	case RECORD_FORMAT:
		for (size_t i = 0; i < r->nops; i++) {
			const struct format_op *op = &r->ops[i];

			if (op->what == 0)
				bytes_add(b, r->text.p + op->at, op->n);
			else if (op->what == '{')
				property(b, s->m, r->text.p + op->at);
			else
				format_field(b, op->what, s);
		}
		break;
	}
}
