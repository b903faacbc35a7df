/* seal.h: bodies that only one reader can open, and that say for certain who wrote them; between the two ends, whatever is between.
 *
 * Sealed: an anonymous box (X25519, XSalsa20-Poly1305: libsodium's crypto_box_seal) for the owner of a public key.  Signed: Ed25519ph
 * over the body as it is stored, sealed or not.  Properties MQ_SEALED and MQ_SIGNED carry what is needed; see mq(7).
 * A key has two parts, one for each purpose, made of two random seeds. */
#ifndef BIN_SEAL_H
#define BIN_SEAL_H

#include "bytes.h"

#define SEAL_PROP "MQ_SEALED"
#define SIGN_PROP "MQ_SIGNED"
enum { SEAL_KEY_BYTES = 32, SEAL_SECRET_BYTES = 64, SEAL_NAME_TEXT = 17, SEAL_VERIFY_MAX = 16 };

/* The part that others may have. */
struct seal_public {
	unsigned char box[SEAL_KEY_BYTES], sign[SEAL_KEY_BYTES];
	char name[SEAL_NAME_TEXT];      /* 16 hex digits of a hash of both */
};
struct seal_secret {
	unsigned char box_seed[SEAL_KEY_BYTES], sign_seed[SEAL_KEY_BYTES];
	unsigned char box[SEAL_KEY_BYTES], sign[SEAL_SECRET_BYTES];
	struct seal_public pub;
};

struct seal {
	struct seal_public *to;         /* seal for; NULL = do not */
	struct seal_secret *by;         /* sign with */
	struct seal_secret *mine;       /* open with */
	struct seal_public verify[SEAL_VERIFY_MAX];
	size_t nverify;                 /* signed by one of these */
	/* --- own matters below --- */
	struct bytes body, opened, props;
};

/* A new key.  Files are text: see FILES in mq-admin(1).  0 or a negative code with the reason; a secret file that others may read is
 * refused. */
int seal_secret_new(struct seal_secret *k, struct mq_error *err);
int seal_secret_read(struct seal_secret *k, const char *path, struct mq_error *err);
int seal_public_read(struct seal_public *k, const char *path, struct mq_error *err);
void seal_secret_text(const struct seal_secret *k, struct bytes *out);
void seal_public_text(const struct seal_public *k, struct bytes *out);

/* Options --seal, --sign, --open, --verify: read the file; what is wrong ends the program with exit 2. */
void seal_option(struct seal *s, const char *opt, const char *path);
/* Anything to do on the way out; on the way in? */
static inline bool seal_out(const struct seal *s) { return s->to || s->by; }
static inline bool seal_in(const struct seal *s) { return s->mine || s->nverify; }

/* Before sending: *body and *props become views of s, good until the next call. */
void seal_close(struct seal *s, struct mq_str *body, struct mq_str *props);
/* After receiving, likewise; the two properties are gone from *props when what they say was checked.  0, or MQ_EREFUSED with the reason:
 * not sealed, for another key, not signed, by another key, changed on the way. */
int seal_open(struct seal *s, struct mq_str *body, struct mq_str *props, struct mq_error *err);
void seal_free(struct seal *s);

#endif
