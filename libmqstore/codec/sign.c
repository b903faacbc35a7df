/* sign.c: fields in order, a hash over them, and a frame written once more with the outcome. */
#include "sign.h"
#include "../base/mem.h"
#include "../base/str.h"
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <sodium.h>
#include <stdlib.h>

#define ACCESS_KEY "AccessKey"
#define SIGNATURE "Signature"
#define SECURITY_TOKEN "SecurityToken"
enum { UNIQUE_SIGNED = 400 };   /* version from which on _UNIQUE_KEY_QUERY is signed: behind V4_9_3 */

static bool is_left_out(struct mq_str key, int without)
{
	return str_is(key, SIGNATURE) || ((without & SIGN_NO_TOKEN) && str_is(key, SECURITY_TOKEN)) ||
	       ((without & SIGN_NO_UNIQUE) && str_is(key, "_UNIQUE_KEY_QUERY"));
}

/* Places of the fields that count, by name; of a name that is there twice the last one, as in the peer's map. */
static uint32_t in_order(const struct frame *f, int without, uint8_t at[FRAME_FIELDS_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->nfields; i++) {
		uint32_t to = n;

		if (is_left_out(f->field[i].key, without))
			continue;
		while (to > 0 && str_cmp(f->field[at[to - 1]].key, f->field[i].key) > 0)
			to--;
		if (to > 0 && str_eq(f->field[at[to - 1]].key, f->field[i].key)) {
			at[to - 1] = (uint8_t)i;
			continue;
		}
		memmove(at + to + 1, at + to, n - to);
		at[to] = (uint8_t)i;
		n++;
	}
	return n;
}

void sign_text(const struct frame *f, struct mq_str secret, int without, char text[SIGN_TEXT])
{
	uint8_t at[FRAME_FIELDS_MAX + 1], sum[SHA1_DIGEST_SIZE];
	uint32_t n = in_order(f, without, at);
	struct hmac_sha1_ctx hash;

	hmac_sha1_set_key(&hash, secret.n, (const uint8_t *)secret.p);
	for (uint32_t i = 0; i < n; i++)
		hmac_sha1_update(&hash, f->field[at[i]].value.n, (const uint8_t *)f->field[at[i]].value.p);
	hmac_sha1_update(&hash, f->body.n, (const uint8_t *)f->body.p);
	hmac_sha1_digest(&hash, sizeof sum, sum);
	_Static_assert(BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) == SIGN_TEXT, "length of a signature");
	base64_encode_raw(text, sizeof sum, sum);
}

bool sign_check(const struct frame *f, struct mq_str secret)
{
	struct mq_str given = frame_get(f, SIGNATURE);
	int without = f->version < UNIQUE_SIGNED ? SIGN_NO_UNIQUE : 0;
	char text[SIGN_TEXT];

	if (given.n != SIGN_TEXT)
		return false;
	sign_text(f, secret, without, text);
	if (sodium_memcmp(text, given.p, SIGN_TEXT) == 0)
		return true;
	if (!frame_get(f, SECURITY_TOKEN).p)
		return false;
	sign_text(f, secret, without | SIGN_NO_TOKEN, text);
	return sodium_memcmp(text, given.p, SIGN_TEXT) == 0;
}

void sign_request(struct buf *b, size_t start, const struct sign_key *key)
{
	size_t n = b->n - start;
	char *copy = mem_alloc(n), text[SIGN_TEXT];
	struct frame *f = mem_alloc(sizeof *f);
	struct frame_out o;

	/* What was just written can be read.  Too many fields cannot: then it stays without a signature, and is refused. */
	memcpy(copy, b->p + start, n);
	if (frame_parse(copy, n, f, NULL) == 0 && f->nfields + 3 <= FRAME_FIELDS_MAX) {
		f->field[f->nfields++] = (struct frame_field){ MQ_STR(ACCESS_KEY), key->access };
		if (key->token.p)
			f->field[f->nfields++] = (struct frame_field){ MQ_STR(SECURITY_TOKEN), key->token };
		sign_text(f, key->secret, 0, text);
		f->field[f->nfields++] = (struct frame_field){ MQ_STR(SIGNATURE), { text, sizeof text } };
		b->n = start;
		frame_request(&o, b, f->type, f->code, f->opaque, f->flag);
		for (uint32_t i = 0; i < f->nfields; i++)
			frame_put_str(&o, f->field[i].key.p, f->field[i].key.n, f->field[i].value);
		frame_body(&o);
		buf_str(b, f->body);
		frame_end(&o);
	}
	free(f);
	free(copy);
}
