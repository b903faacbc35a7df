/* acl_addr.h: patterns of addresses, as plain_acl.yml has them.  Source: RemoteAddressStrategyFactory.
 *
 *	(nothing)                       nobody
 *	*  *.*.*.*  *:*:*:*:*:*:*:*     everybody
 *	10.1.2.3    fd00::1             one
 *	10.1.2.3,fd00::1                these
 *	10.1.2.{3,4}    fd00::{1,2}     these
 *	10.1.*.*    10.1.2-9.*          parts that may be anything, or of a range; fd00::1-ff:* too
 *
 * Four parts or eight, also with a range: 10.1.* is wrong, as with the peer.  What follows a range counts here; the peer overlooks it. */
#ifndef BROKER_ACL_ADDR_H
#define BROKER_ACL_ADDR_H

#include <mq.h>

struct acl_addr;        /* one that was read */

/* *a is NULL for a pattern of nobody.  0, or MQ_EINVAL: the text says which piece is wrong and what would be right. */
int acl_addr_parse(struct acl_addr **a, struct mq_str text, struct mq_error *e);
/* NULL matches nobody; an address of IPv4 within IPv6 (::ffff:1.2.3.4) is that of IPv4. */
bool acl_addr_match(const struct acl_addr *a, const struct mq_host *h);
void acl_addr_free(struct acl_addr *a); /* NULL is allowed */

#endif
