/* log.h: one line per event: "LEVEL module message key=value".
 *
 * Goes to stderr (or a callback).  Words before numbers, the same keys everywhere; text from peers is passed through
 * str_show() by the caller.  errno survives the call.  Levels can change while the program runs. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

extern enum log_level log_max;          /* lines above it are not made; default LOG_INFO */

void log_line(enum log_level l, const char *module, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int log_level_parse(const char *name, enum log_level *l);

/* NULL = stderr.  The line has no newline. */
void log_to(void (*sink)(void *arg, enum log_level l, const char *line), void *arg);

/* Each .c that logs defines LOG_MODULE before its first use. */
#define log_at(l, ...) do { if ((l) <= log_max) log_line((l), LOG_MODULE, __VA_ARGS__); } while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
