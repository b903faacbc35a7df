/* show.c: rows to columns, TSV or JSON.  Knows nothing of what the rows mean. */
#include "show.h"
#include "../cli.h"
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER, CELL_WORD /* true, false */ };

struct cell {
	enum cell_kind kind;
	char *text;     /* as printed in a table */
	char *machine;  /* in TSV and JSON where it differs; else NULL */
};

struct show {
	enum show_format format;
	bool record;
	const struct show_col *cols;
	size_t ncols, ncells, cap;
	struct cell *cells;     /* row by row */
	size_t left;            /* rows that have been printed */
	size_t *width;          /* of the columns so far */
	char **keys;            /* of a record, one a cell */
};

static void *must(void *p)
{
	if (!p)
		cli_die(CLI_SYSTEM, "out of memory");
	return p;
}

struct show *show_rows(enum show_format f, const struct show_col *cols, size_t n)
{
	struct show *s = must(calloc(1, sizeof *s));
	s->format = f;
	s->cols = cols;
	s->ncols = n;
	return s;
}

struct show *show_record(enum show_format f)
{
	struct show *s = show_rows(f, NULL, 1);
	s->record = true;
	return s;
}

void show_key(struct show *s, const char *key)
{
	s->keys = must(realloc(s->keys, (s->ncells + 1) * sizeof *s->keys));
	s->keys[s->ncells] = must(strdup(key));
}

static void add(struct show *s, enum cell_kind kind, char *text, char *machine)
{
	if (s->ncells == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		s->cells = must(realloc(s->cells, s->cap * sizeof *s->cells));
	}
	s->cells[s->ncells++] = (struct cell){ kind, text, machine };
}

static char *printed(const char *fmt, ...) MQ_PRINTF(1, 2);
static char *printed(const char *fmt, ...)
{
	char *p = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&p, fmt, ap);
	va_end(ap);
	if (n < 0)
		cli_die(CLI_SYSTEM, "out of memory");
	return p;
}

void show_str(struct show *s, struct mq_str v)
{
	if (!v.p)
		add(s, CELL_NONE, NULL, NULL);
	else
		add(s, CELL_TEXT, printed(MQ_STR_FMT, MQ_STR_ARG(v)), NULL);
}

void show_cstr(struct show *s, const char *v) { show_str(s, (struct mq_str){ v, v ? strlen(v) : 0 }); }
void show_i64(struct show *s, int64_t v) { add(s, CELL_NUMBER, printed("%lld", (long long)v), NULL); }
void show_double(struct show *s, double v, int decimals) { add(s, CELL_NUMBER, printed("%.*f", decimals, v), NULL); }
void show_bool(struct show *s, bool v) { add(s, CELL_WORD, printed("%s", v ? "true" : "false"), NULL); }

char *show_time_text(int64_t ms, char out[32])
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	localtime_r(&t, &tm);
	size_t n = strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03d", (int)(ms % 1000));
	return out;
}

void show_time(struct show *s, int64_t ms)
{
	char t[32];
	if (ms <= 0)
		add(s, CELL_NONE, NULL, NULL);
	else
		add(s, CELL_NUMBER, printed("%s", show_time_text(ms, t)), printed("%lld", (long long)ms));
}

static size_t rows_here(const struct show *s) { return s->ncells / s->ncols; }
size_t show_count(const struct show *s) { return s->left + rows_here(s); }

/* Columns that a terminal gives the text; bytes where it is not valid in this locale. */
static size_t width(const char *t)
{
	size_t n = mbstowcs(NULL, t, 0), w = 0;
	if (n == (size_t)-1)
		return strlen(t);
	wchar_t *wide = must(malloc((n + 1) * sizeof *wide));
	mbstowcs(wide, t, n + 1);
	for (size_t i = 0; i < n; i++) {
		int c = wcwidth(wide[i]);
		w += c > 0 ? (size_t)c : 0;
	}
	free(wide);
	return w;
}

static const char *cell_text(const struct cell *c) { return c->kind == CELL_NONE ? "-" : c->text; }

/* Control characters would let stored text move the cursor: shown as \xNN. */
static void put_safe(const char *t)
{
	for (; *t; t++) {
		unsigned char c = (unsigned char)*t;
		if (c < 0x20 || c == 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
}

static void put_cell(const struct cell *c, size_t w, bool last)
{
	const char *t = cell_text(c);
	size_t have = width(t), pad = have < w ? w - have : 0;
	if (c->kind == CELL_NUMBER && !c->machine)
		printf("%*s", (int)pad, "");
	put_safe(t);
	if (!last && !(c->kind == CELL_NUMBER && !c->machine))
		printf("%*s", (int)pad, "");
	fputs(last ? "\n" : "  ", stdout);
}

static void table(struct show *s)
{
	size_t rows = rows_here(s);
	bool first = !s->width;
	if (first)
		s->width = must(calloc(s->ncols, sizeof *s->width));
	size_t *w = s->width;
	for (size_t c = 0; c < s->ncols; c++) {
		size_t title = width(s->cols[c].title);
		w[c] = title > w[c] ? title : w[c];
		for (size_t r = 0; r < rows; r++) {
			size_t n = width(cell_text(&s->cells[r * s->ncols + c]));
			w[c] = n > w[c] ? n : w[c];
		}
	}
	for (size_t c = 0; first && c < s->ncols; c++)
		put_cell(&(struct cell){ CELL_TEXT, (char *)s->cols[c].title, NULL }, w[c], c + 1 == s->ncols);
	for (size_t i = 0; i < rows * s->ncols; i++)
		put_cell(&s->cells[i], w[i % s->ncols], (i + 1) % s->ncols == 0);
}

static void tsv_text(const char *t)
{
	for (; *t; t++) {
		switch (*t) {
		case '\t': fputs("\\t", stdout); break;
		case '\n': fputs("\\n", stdout); break;
		case '\\': fputs("\\\\", stdout); break;
		default: putchar(*t);
		}
	}
}

static void tsv(struct show *s)
{
	for (size_t i = 0; i < rows_here(s) * s->ncols; i++) {
		const struct cell *c = &s->cells[i];
		if (s->record) {
			tsv_text(s->keys[i]);
			putchar('\t');
		}
		tsv_text(c->kind == CELL_NONE ? "-" : c->machine ? c->machine : c->text);
		putchar((i + 1) % s->ncols == 0 ? '\n' : '\t');
	}
}

static void json_quoted(const char *t)
{
	json_t *ok = json_stringn(t, strlen(t)); /* NULL if not UTF-8 */
	char *text = ok ? json_dumps(ok, JSON_ENCODE_ANY) : NULL;
	if (text) {
		fputs(text, stdout);
	} else {
		/* Bytes that are no UTF-8 stand for the characters of the same number, as nothing else is valid JSON. */
		putchar('"');
		for (; *t; t++)
			printf((unsigned char)*t < 0x20 || (unsigned char)*t >= 0x7f || *t == '"' || *t == '\\' ? "\\u%04x" : "%c",
			       (unsigned char)*t);
		putchar('"');
	}
	free(text);
	json_decref(ok);
}

static void json_cell(const char *key, const struct cell *c)
{
	json_quoted(key);
	putchar(':');
	if (c->kind == CELL_NONE)
		fputs("null", stdout);
	else if (c->kind == CELL_TEXT)
		json_quoted(c->text);
	else
		fputs(c->machine ? c->machine : c->text, stdout);
}

/* The comma stands before each row but the first: whether another comes is not known. */
static void json(struct show *s)
{
	size_t rows = rows_here(s);
	for (size_t r = 0; r < (s->record ? 1 : rows); r++) {
		size_t n = s->record ? s->ncells : s->ncols;
		if (!s->record)
			fputs(s->left + r ? ",\n" : "[\n", stdout);
		putchar('{');
		for (size_t c = 0; c < n; c++) {
			json_cell(s->record ? s->keys[c] : s->cols[c].key, &s->cells[r * n + c]);
			if (c + 1 < n)
				putchar(',');
		}
		putchar('}');
	}
}

static void json_end(struct show *s)
{
	if (s->record)
		putchar('\n');
	else
		fputs(s->left ? "\n]\n" : "[\n]\n", stdout);
}

static void record_lines(struct show *s)
{
	size_t w = 0;
	for (size_t i = 0; i < s->ncells; i++)
		w = strlen(s->keys[i]) > w ? strlen(s->keys[i]) : w;
	for (size_t i = 0; i < s->ncells; i++) {
		printf("%-*s: ", (int)w, s->keys[i]);
		put_safe(cell_text(&s->cells[i]));
		putchar('\n');
	}
}

static void print(struct show *s)
{
	if (s->format == SHOW_JSON)
		json(s);
	else if (s->format == SHOW_TSV)
		tsv(s);
	else if (s->record)
		record_lines(s);
	else
		table(s);
	s->left += rows_here(s);
	for (size_t i = 0; i < s->ncells; i++) {
		free(s->cells[i].text);
		free(s->cells[i].machine);
		if (s->keys)
			free(s->keys[i]);
	}
	s->ncells = 0;
}

void show_flush(struct show *s)
{
	if (!s->record && s->ncells)
		print(s);
	cli_flush();
}

int show_close(struct show *s)
{
	if (s->ncells || s->record || (s->format == SHOW_TABLE && !s->width))
		print(s);
	if (s->format == SHOW_JSON)
		json_end(s);
	free(s->keys);
	free(s->cells);
	free(s->width);
	free(s);
	return cli_flush();
}
