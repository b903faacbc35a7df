/* sign.h: the signature by which a request says whose it is.  Source: AclClientRPCHook, AclUtils, AclSigner, PlainAccessResource.
 *
 * Signed are the values of all fields but "Signature", one after the other in the order of their names, then the body; code, flag and
 * opaque are not.  HMAC-SHA1 with the secret as key, in base64.  The name and the signature travel in the fields AccessKey and
 * Signature; SecurityToken, if there is one, is a field like others. */
#ifndef CODEC_SIGN_H
#define CODEC_SIGN_H

#include "frame.h"

enum { SIGN_TEXT = 28 };        /* base64 of the 20 bytes */

struct sign_key {
	struct mq_str access, secret, token;    /* token.p NULL: none */
};

/* The signature that the frame should have, not terminated.  SIGN_NO_TOKEN: without SecurityToken (Go's client sends it and does not
 * sign it); SIGN_NO_UNIQUE: without _UNIQUE_KEY_QUERY (clients up to 4.9.3). */
enum { SIGN_NO_TOKEN = 1, SIGN_NO_UNIQUE = 2 };
void sign_text(const struct frame *f, struct mq_str secret, int without, char text[SIGN_TEXT]);
/* Is its signature right, in any of the ways that clients make it?  In a time that says nothing of how wrong it is. */
bool sign_check(const struct frame *f, struct mq_str secret);
/* Sign the request that begins at `start` in b, which ends with it: written, not sent. */
void sign_request(struct buf *b, size_t start, const struct sign_key *key);

#endif
