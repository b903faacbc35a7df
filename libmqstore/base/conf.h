/* conf.h: options of a program as a table: one row makes key, type, default, range, help, and where the value goes.
 *
 * Files are Java properties as the peer reads them (javaprops.h); `-p key=value` uses the same rows.  Unknown keys are kept (a
 * peer's key that has no meaning here is no error) and reported with the nearest known key.  A value that does not parse is an
 * error, not silently ignored as by the peer. */
#ifndef BASE_CONF_H
#define BASE_CONF_H

#include "buf.h"

enum conf_type { CONF_STR, CONF_I32, CONF_I64, CONF_BOOL, CONF_SIZE /* i64, "64M" too */, CONF_ENUM };

enum {
	CONF_RUNTIME = 1,   /* may change while running (updateBrokerConfig, SIGHUP) */
	CONF_FIXED = 2,     /* never over the wire: paths, secrets */
	CONF_IGNORED = 4,   /* the peer's; accepted, shown, without effect here */
};

struct conf_row {
	const char *key;
	enum conf_type type;
	size_t off;                 /* of the field in the program's struct: char *, int32_t, int64_t, bool; ENUM: int32_t */
	const char *otherwise;      /* default, as text */
	int64_t min, max;           /* of numbers */
	const char *names;          /* ENUM: "ASYNC_FLUSH|SYNC_FLUSH", value = position */
	int flags;
	const char *help;
};

struct conf;
/* `into` is the program's struct; defaults are set at once.  Strings in it belong to the conf and live until their key changes. */
struct conf *conf_new(const struct conf_row *rows, size_t n, void *into);
void conf_free(struct conf *c);
int conf_set(struct conf *c, struct mq_str key, struct mq_str value, struct mq_error *e);   /* MQ_ENOTFOUND: unknown key */
int conf_file(struct conf *c, const char *path, struct mq_error *e);   /* unknown keys: a warning in the log */
int conf_arg(struct conf *c, const char *key_equals_value, struct mq_error *e);
/* Apply the text of an update (many lines, as a file).  Nothing is applied unless all of it is right: unknown keys are skipped, as by the
 * peer; FIXED keys give MQ_EREFUSED.  *changed counts.  Keys that are not RUNTIME change in what conf_get(), conf_print() and
 * conf_save() give, and in `into` at the next start. */
int conf_update(struct conf *c, struct mq_str text, int *changed, struct mq_error *e);
/* Write the changed keys into the file they came from: one changed key changes one line; comments stay. */
int conf_save(struct conf *c, const char *path, struct mq_error *e);
void conf_print(const struct conf *c, struct buf *out);                /* key=value lines, all keys */
const struct conf_row *conf_find(const struct conf *c, struct mq_str key);
struct mq_str conf_get(const struct conf *c, struct mq_str key);      /* as text, also unknown keys; p == NULL: not set */

/* nameserver= and other keys of $XDG_CONFIG_HOME/mq/config, then /etc/mq/config (INI, read with inih): first hit into out;
 * MQ_ENOTFOUND. */
int conf_user_key(const char *key, char *out, size_t cap, struct mq_error *e);

#endif
