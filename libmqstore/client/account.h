/* account.h: as who a client asks, where clusters check rights: an access key and the secret that signs each request. */
#ifndef CLIENT_ACCOUNT_H
#define CLIENT_ACCOUNT_H

#include "../codec/sign.h"
#include "../mqclient.h"

/* What opt names, else what is set up for this user (mqclient_opt).  *key: one block, account_free() it; NULL: none, nothing is signed.
 * 0, or MQ_EINVAL: half of it is there, or a file cannot be read. */
int account_find(struct sign_key **key, const struct mqclient_opt *opt, struct mq_error *e);
void account_free(struct sign_key *key);        /* wipes it; NULL is allowed */

#endif
