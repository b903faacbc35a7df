/* json.h: the JSON of the peer (fastjson 1.x), quirks included.
 *
 * Reading: json_parse() first brings the dialect into strict form (bare numeric keys {0:"a"}, objects as keys {{...}:5},
 * unquoted identifiers, single quotes), then jansson reads it.  An object used as key becomes the string of its text:
 * json_parse() that text again to look inside.  Depth and size are bounded.
 * Writing: straight into a buf, in the order of the calls, no white space, UTF-8 as it is, control characters escaped. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "buf.h"
#include <jansson.h>

enum { JSON_DEPTH_MAX = 64, JSON_TEXT_MAX = 64 * 1024 * 1024 };

/* New reference, or NULL with the position in e. */
json_t *json_parse(struct mq_str text, struct mq_error *e);

/* Members with a default where absent, null, or of another kind.  Numbers as strings and strings as numbers are accepted, as
 * fastjson does.  Returned views live as long as o. */
struct mq_str json_str(const json_t *o, const char *key);               /* p == NULL if absent */
int64_t json_i64(const json_t *o, const char *key, int64_t otherwise);
bool json_bool(const json_t *o, const char *key, bool otherwise);       /* true, "true", 1, "1" */
double json_double(const json_t *o, const char *key, double otherwise);
json_t *json_array_at(const json_t *o, const char *key);                   /* borrowed; NULL if absent or no array */
json_t *json_object_at(const json_t *o, const char *key);               /* borrowed; NULL if absent or no object */
struct mq_str json_text(const json_t *string);                          /* of a string value; p == NULL otherwise */

/* Writer.  `comma` state is kept so that calls can be made in a loop. */
struct json_out {
	struct buf *b;
	bool comma;         /* a comma is due before the next member */
};
static inline struct json_out json_to(struct buf *b) { return (struct json_out){ b, false }; }
void json_open(struct json_out *o, char c);                             /* '{' or '[' */
void json_close(struct json_out *o, char c);                            /* '}' or ']' */
void json_key(struct json_out *o, const char *key);                     /* then one value call */
void json_key_str(struct json_out *o, struct mq_str key);
void json_key_raw(struct json_out *o, const char *text, size_t n);      /* 0 or {"brokerName":...} as key: {0:1} */
void json_put_str(struct json_out *o, struct mq_str s);                 /* p == NULL: null */
void json_put_i64(struct json_out *o, int64_t v);
void json_put_bool(struct json_out *o, bool v);
void json_put_double(struct json_out *o, double v);                     /* as Java: 0.0 */
void json_put_raw(struct json_out *o, struct mq_str json);
/* Key and value. */
void json_member_str(struct json_out *o, const char *key, struct mq_str v);
void json_member_cstr(struct json_out *o, const char *key, const char *v);
void json_member_i64(struct json_out *o, const char *key, int64_t v);
void json_member_bool(struct json_out *o, const char *key, bool v);
void json_member_double(struct json_out *o, const char *key, double v);
/* s as a JSON string with quotes; ascii: beyond ASCII as \uXXXX (the strict form of routes). */
void json_quote(struct buf *b, struct mq_str s, bool ascii);

#endif
