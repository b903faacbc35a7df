/* show.h: what a command prints, three ways from the same rows: columns for people, TSV and JSON for programs.
 *
 * Table (a terminal, or -o table): a header, columns as wide as their widest cell; names are never cut.
 * TSV (no terminal, or -o tsv): one row a line, no header; tab, newline, backslash in a cell become \t \n \\ ; "-" = none.
 * JSON (-o json): an array of objects, one a line; the keys are those of the columns.
 * A `record` is one thing with named values: "key: value" lines, key TAB value, one object. */
#ifndef ADMIN_SHOW_H
#define ADMIN_SHOW_H

#include <mq.h>

enum show_format { SHOW_TABLE, SHOW_TSV, SHOW_JSON };

struct show_col {
	const char *title;  /* in a table */
	const char *key;    /* in JSON, as documented in mq-admin(1) */
};

struct show;

/* cols lives until show_close(). */
struct show *show_rows(enum show_format f, const struct show_col *cols, size_t n);
struct show *show_record(enum show_format f);

/* Cells of a row, left to right; a row ends when its last cell was given. */
void show_str(struct show *s, struct mq_str v);         /* p == NULL: none */
void show_cstr(struct show *s, const char *v);          /* NULL: none */
void show_i64(struct show *s, int64_t v);
void show_double(struct show *s, double v, int decimals);
void show_bool(struct show *s, bool v);
void show_time(struct show *s, int64_t ms);             /* local time for people, ms for programs; <= 0: none */

/* The key of the next value of a record. */
void show_key(struct show *s, const char *key);

size_t show_count(const struct show *s);                /* rows so far, also those that left */
/* Print the rows so far now: for many rows, and for those that come slowly.  A table's columns stay as wide as they have been. */
void show_flush(struct show *s);
/* Print what is gathered and free.  Returns 0 or -errno of stdout. */
int show_close(struct show *s);

/* "2026-11-30 18:04:05.123" in local time. */
char *show_time_text(int64_t ms, char out[32]);

#endif
