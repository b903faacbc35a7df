/* keyvalue.h: settings as text: key=value lines, sorted, as files called config have them. */
#ifndef MQFS_KEYVALUE_H
#define MQFS_KEYVALUE_H

#include "../bin/bytes.h"

#include <jansson.h>

/* Every member of an object; texts as they are, the rest as JSON. */
void keyvalue_text(const json_t *o, struct bytes *out);

/* Next line of *rest that sets something: blank lines and those that begin with # are passed over.  1, 0 at the end, or -EINVAL: a line
 * without '='; told, with `what` in front. */
int keyvalue_next(struct mq_str *rest, struct mq_str *key, struct mq_str *value, const char *what);

/* Members of o changed as the lines say, each by the type it has.  Returns how many differ from before, or -EINVAL: an unknown key, a
 * value that is none of its type; told. */
int keyvalue_apply(json_t *o, struct mq_str text, const char *what);

#endif
