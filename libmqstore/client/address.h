/* address.h: lists of name servers.  The public functions of mqclient.h about addresses are defined in address.c. */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include "client.h"

enum { ADDRESS_MAX = 4096, ADDRESS_SERVERS_MAX = 64 };

/* "host:port;host:port" (`;` or `,` between, blanks ignored) -> NULL-ended array of strings, one malloc'd block: free().
 * MQ_EINVAL names the piece that is wrong. */
int address_list(struct mq_str text, char ***list, size_t *n, struct mq_error *e);

#endif
