/* userprop.h: which property names are the system's, and what a property may hold.
 *
 * The peer's clients refuse system names as properties of the user; so do ours.  They are copied neither: whether a message was
 * delayed or retried is its fate at one place, not a part of it. */
#ifndef BIN_USERPROP_H
#define BIN_USERPROP_H

#include "bytes.h"

bool userprop_is_system(struct mq_str name);

/* Append a property.  Returns 0, or MQ_EINVAL with the reason: an empty name or value, a system name (unless `system`),
 * a separator byte.
 * `what` names the thing in the text: "property 'x'", "key", "tag". */
int userprop_put(struct bytes *b, struct mq_str name, struct mq_str value, bool system, const char *what, struct mq_error *err);

#endif
