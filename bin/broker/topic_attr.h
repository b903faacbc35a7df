/* topic_attr.h: the attributes of a topic ("+message.type=FIFO"): which there are, which values they take, which ask for a kind of
 * storage that is not here. */
#ifndef BROKER_TOPIC_ATTR_H
#define BROKER_TOPIC_ATTR_H

#include "topic.h"

enum { TOPIC_ATTRS = 3 };       /* that 5.2.0 has */

/* These in the place of those it has, whatever they are; copied. */
void topic_attr_set(struct topic *t, const struct body_pair *attr, size_t n);
/* Has it just these, in any order? */
bool topic_attr_same(const struct topic *t, const struct body_pair *attr, size_t n);
/* What `have` (NULL: a new topic) would have after `change`, "+k=v,-k": n of them into attr, views into `change` and the attributes
 * of `have`.  mixed: may message.type be MIXED?  0, or MQ_EINVAL or MQ_EUNSUPPORTED with the reason. */
int topic_attr_change(const struct topic *have, struct mq_str change, bool mixed, struct body_pair attr[TOPIC_ATTRS], size_t *n,
                      struct mq_error *e);

#endif
