/* ha_secret.h: what brokers that replicate to one another have in common: the key that is made of the file haSecretFile.
 *
 * The file belongs to the administrator: any text or bytes, HA_SECRET_LEAST to HA_SECRET_MOST of them without white space at the end,
 * the same at all brokers of a group.  Nobody but its owner may have any right to it.  The text itself is not kept; the key is in memory
 * of its own that is not swapped nor dumped where the system allows that, and is wiped when it is let go of. */
#ifndef BROKER_HA_SECRET_H
#define BROKER_HA_SECRET_H

#include <mq.h>

enum {
	HA_SECRET_LEAST = 32,   /* bytes: what peers hear could be tried out against guesses of fewer */
	HA_SECRET_MOST = 4096,
	HA_SECRET_KEY = 32,     /* bytes of the key: crypto_generichash_KEYBYTES */
};

struct ha_secret {
	uint8_t key[HA_SECRET_KEY];
};

/* *s NULL on failure: the text names the file, what is wrong with it and what would be right, never what is in it. */
int ha_secret_read(struct ha_secret **s, const char *path, struct mq_error *e);
void ha_secret_free(struct ha_secret *s);       /* NULL is allowed */

#endif
