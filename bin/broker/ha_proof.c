/* ha_proof.c: the three messages of a mutual proof. */
#include "ha_proof.h"
#include <base/byte.h>
#include <base/err.h>
#include <sodium.h>
#include <string.h>

enum { CHALLENGE = 1, ANSWER, WELCOME, LABEL = 32 };

/* A negative number in whichever width it is read; then so many bytes of a block that it never ends, yet no number overflows. */
static const uint8_t head_of_all[12] = { 0xff, 'm', 'q', 's', 'e', 'c', 'r', 'e', 0x10, 0, 0, 0 };

static uint8_t *put_head(struct ha_proof *p, int number)
{
	memcpy(p->out, head_of_all, sizeof head_of_all);
	put_be32(p->out + sizeof head_of_all, (uint32_t)number);
	p->out_done = 0;
	return p->out + HA_PROOF_HEAD;
}

/* What `side` has to say. */
static void hash(const struct ha_proof *p, enum ha_proof_side side, uint8_t out[HA_PROOF_HASH])
{
	uint8_t text[LABEL + 2 * HA_PROOF_RANDOM] = { 0 };
	bool master = p->side == HA_PROOF_MASTER;

	strcpy((char *)text, side == HA_PROOF_MASTER ? "mq replication 1: master" : "mq replication 1: slave");
	memcpy(text + LABEL, master ? p->mine : p->theirs, HA_PROOF_RANDOM);
	memcpy(text + LABEL + HA_PROOF_RANDOM, master ? p->theirs : p->mine, HA_PROOF_RANDOM);
	crypto_generichash(out, HA_PROOF_HASH, text, sizeof text, p->secret.key, sizeof p->secret.key);
}

static bool is_right(const struct ha_proof *p, enum ha_proof_side side, const uint8_t *said)
{
	uint8_t right[HA_PROOF_HASH];
	bool same;

	hash(p, side, right);
	same = sodium_memcmp(right, said, HA_PROOF_HASH) == 0;
	sodium_memzero(right, sizeof right);
	return same;
}

static size_t size_of(int number)
{
	return number == CHALLENGE ? HA_PROOF_CHALLENGE : number == ANSWER ? HA_PROOF_ANSWER : number == WELCOME ? HA_PROOF_WELCOME : 0;
}

void ha_proof_begin(struct ha_proof *p, enum ha_proof_side side, const struct ha_secret *secret, const uint8_t *mine)
{
	*p = (struct ha_proof){ .side = side, .secret = *secret, .wants = side == HA_PROOF_MASTER ? ANSWER : CHALLENGE };
	memcpy(p->mine, mine, HA_PROOF_RANDOM);
	if (side == HA_PROOF_MASTER) {
		memcpy(put_head(p, CHALLENGE), p->mine, HA_PROOF_RANDOM);
		p->out_n = HA_PROOF_CHALLENGE;
	}
}

size_t ha_proof_room(const struct ha_proof *p)
{
	return size_of(p->wants) - p->in_n;
}

const char *ha_proof_missing(const struct ha_proof *p)
{
	if (p->wants == ANSWER)
		return "it has not proved the secret: haSecretFile is set here, so only a broker of ours with the same secret may "
		       "follow, and none of RocketMQ";
	if (p->wants == CHALLENGE)
		return "the master asks for no proof: haSecretFile is set here, so the master has to be a broker of ours with the same "
		       "secret, and none of RocketMQ";
	return "the master has not proved the secret: haSecretFile has to be the same there and here";
}

static int take(struct ha_proof *p, struct mq_error *why)
{
	const uint8_t *body = p->in + HA_PROOF_HEAD;

	switch (p->wants) {
	case CHALLENGE:
		memcpy(p->theirs, body, HA_PROOF_RANDOM);
		memcpy(put_head(p, ANSWER), p->mine, HA_PROOF_RANDOM);
		hash(p, HA_PROOF_SLAVE, p->out + HA_PROOF_HEAD + HA_PROOF_RANDOM);
		p->out_n = HA_PROOF_ANSWER;
		p->wants = WELCOME;
		break;
	case ANSWER:
		memcpy(p->theirs, body, HA_PROOF_RANDOM);
		if (!is_right(p, HA_PROOF_SLAVE, body + HA_PROOF_RANDOM))
			return err_set(why, MQ_EPROTO, "its proof of the secret is wrong: haSecretFile has to be the same there and here");
		hash(p, HA_PROOF_MASTER, put_head(p, WELCOME));
		p->out_n = HA_PROOF_WELCOME;
		p->wants = 0;
		break;
	case WELCOME:
		if (!is_right(p, HA_PROOF_MASTER, body))
			return err_set(why, MQ_EPROTO, "the master's proof of the secret is wrong: haSecretFile has to be the same there "
				       "and here");
		p->wants = 0;
		break;
	}
	p->in_n = 0;
	return 0;
}

int ha_proof_took(struct ha_proof *p, size_t n, struct mq_error *why)
{
	uint8_t right[HA_PROOF_HEAD];

	p->in_n += n;
	memcpy(right, head_of_all, sizeof head_of_all);
	put_be32(right + sizeof head_of_all, (uint32_t)p->wants);
	/* Who speaks of something else is not waited for. */
	if (memcmp(p->in, right, p->in_n < sizeof right ? p->in_n : sizeof right) != 0)
		return err_set(why, MQ_EPROTO, "%s", ha_proof_missing(p));
	return p->in_n == size_of(p->wants) ? take(p, why) : 0;
}

bool ha_proof_done(const struct ha_proof *p)
{
	return p->wants == 0 && p->out_done == p->out_n;
}

void ha_proof_wipe(struct ha_proof *p)
{
	sodium_memzero(p, sizeof *p);
}

bool ha_proof_is_asked(const uint8_t *bytes, size_t n)
{
	return n >= 8 && memcmp(bytes, head_of_all, n < sizeof head_of_all ? n : sizeof head_of_all) == 0;
}
