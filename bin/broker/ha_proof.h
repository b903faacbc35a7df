/* ha_proof.h: how two brokers show one another that they have the same secret, before the first byte of replication: rules only, bytes
 * in and bytes out; no clock, no socket.
 *
 *	master	a challenge: HEAD, 1, 32 random bytes M
 *	slave	an answer: HEAD, 2, 32 random bytes S, keyed hash of "slave", M, S
 *	master	a welcome: HEAD, 3, keyed hash of "master", M, S
 *
 * The hash is BLAKE2b with the key of ha_secret.h.  The master speaks first, so that a slave with a secret never sends a byte to
 * a master that does not know of secrets, who would take it for a report.  HEAD is 12 bytes which are neither a report nor a block of
 * either protocol: read as a block of RocketMQ it begins at a negative offset and never ends.
 *
 * Promises:
 *   1. Nobody passes who has not hashed, with the key, what was drawn at random for this very connection: what was heard from other
 *      connections is worth nothing.
 *   2. What one side says is never what the other side has to say: nothing can be sent back.
 *   3. Who fails learns that, not how near it was; times do not tell either.
 *   4. No byte behind the proof is read here.
 *
 * Not promised: secrecy of what follows, nor that what follows comes from who has proved: who can change packets on the way can change
 * those, too. */
#ifndef BROKER_HA_PROOF_H
#define BROKER_HA_PROOF_H

#include "ha_secret.h"

enum {
	HA_PROOF_HEAD = 16,                     /* with the number of the message */
	HA_PROOF_RANDOM = 32, HA_PROOF_HASH = 32,
	HA_PROOF_CHALLENGE = HA_PROOF_HEAD + HA_PROOF_RANDOM,
	HA_PROOF_ANSWER = HA_PROOF_HEAD + HA_PROOF_RANDOM + HA_PROOF_HASH,
	HA_PROOF_WELCOME = HA_PROOF_HEAD + HA_PROOF_HASH,
};

enum ha_proof_side { HA_PROOF_MASTER, HA_PROOF_SLAVE };

struct ha_proof {
	enum ha_proof_side side;
	struct ha_secret secret;
	uint8_t mine[HA_PROOF_RANDOM], theirs[HA_PROOF_RANDOM];
	int wants;                              /* number of the message that is to come; 0 = none any more */
	uint8_t in[HA_PROOF_ANSWER];
	size_t in_n;
	uint8_t out[HA_PROOF_ANSWER];
	size_t out_n, out_done;                 /* bytes to be sent; that have been */
};

/* mine: HA_PROOF_RANDOM fresh random bytes. */
void ha_proof_begin(struct ha_proof *p, enum ha_proof_side side, const struct ha_secret *secret, const uint8_t *mine);
/* Bytes to be read into p->in + p->in_n at most; then ha_proof_took(). */
size_t ha_proof_room(const struct ha_proof *p);
/* n more bytes are in p->in.  0, or MQ_EPROTO with the reason: end the connection. */
int ha_proof_took(struct ha_proof *p, size_t n, struct mq_error *why);
/* The other side has proved itself, and all that was to be said to it has been sent. */
bool ha_proof_done(const struct ha_proof *p);
/* Why it has not got this far, for when the connection ends or time is over. */
const char *ha_proof_missing(const struct ha_proof *p);
void ha_proof_wipe(struct ha_proof *p);

/* Are these n bytes, the first of a connection, a master's challenge (as far as they go, 8 at least)?  For who has no secret. */
bool ha_proof_is_asked(const uint8_t *bytes, size_t n);
#define HA_PROOF_ASKED "the master wants a proof of a secret: haSecretFile has to name a file with the same one as the master's"

#endif
