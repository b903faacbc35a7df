/* ha_allow.h: who may follow this broker: haAllowedAddresses, a list such as "10.1.2.3;10.2.0.0/16;fd00::/8". */
#ifndef BROKER_HA_ALLOW_H
#define BROKER_HA_ALLOW_H

#include <mq.h>

/* Is the text such a list?  0, or MQ_EINVAL with the piece that is wrong. */
int ha_allow_check(struct mq_str list, struct mq_error *e);
/* An empty list allows everybody; a wrong one nobody. */
bool ha_allow(struct mq_str list, const struct mq_host *h);

#endif
