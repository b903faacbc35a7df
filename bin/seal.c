/* seal.c: see seal.h. */
#include "seal.h"
#include "cli.h"
#include "state_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PUBLIC_WORD "mq-public-key-1"
#define SECRET_WORD "mq-secret-key-1"
#define SIGN_WORD "mq-signed-1"

static int wrong(struct mq_error *err, int code, const char *fmt, const char *what)
{
	err->code = code;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), fmt, what);
	return code;
}

/* ---- Keys ------------------------------------------------------------------------------------------------------------- */

static void name_of(struct seal_public *k)
{
	unsigned char both[2 * SEAL_KEY_BYTES], hash[crypto_generichash_BYTES];

	memcpy(both, k->box, SEAL_KEY_BYTES);
	memcpy(both + SEAL_KEY_BYTES, k->sign, SEAL_KEY_BYTES);
	crypto_generichash(hash, sizeof(hash), both, sizeof(both), NULL, 0);
	sodium_bin2hex(k->name, sizeof(k->name), hash, (SEAL_NAME_TEXT - 1) / 2);
}

static void derive(struct seal_secret *k)
{
	crypto_box_seed_keypair(k->pub.box, k->box, k->box_seed);
	crypto_sign_seed_keypair(k->pub.sign, k->sign, k->sign_seed);
	name_of(&k->pub);
}

int seal_secret_new(struct seal_secret *k, struct mq_error *err)
{
	if (sodium_init() < 0)
		return wrong(err, MQ_EUNSUPPORTED, "%s", "no source of random numbers");
	randombytes_buf(k->box_seed, sizeof(k->box_seed));
	randombytes_buf(k->sign_seed, sizeof(k->sign_seed));
	derive(k);
	return 0;
}

/* WORD BASE64 BASE64, the first line that is no comment. */
static int read_two(const char *path, const char *word, unsigned char a[SEAL_KEY_BYTES], unsigned char b[SEAL_KEY_BYTES],
                    struct mq_error *err)
{
	struct bytes text = { 0 }, one = { 0 }, two = { 0 };
	char w[40], x[100], y[100], *line;
	int rc = state_file_read(path, &text, err), n;
	bool good = false;

	if (rc != 0 && rc != MQ_ENOTFOUND)
		goto out;
	rc = rc == MQ_ENOTFOUND ? wrong(err, MQ_EINVAL, "'%s': there is no such file", path) : 0;
	for (line = text.p; rc == 0 && line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (*line == '#' || *line == '\n')
			continue;
		n = sscanf(line, "%39s %99s %99s", w, x, y);
		good = n == 3 && strcmp(w, word) == 0 && bytes_unbase64(&one, (struct mq_str){ x, strlen(x) }) &&
		       bytes_unbase64(&two, (struct mq_str){ y, strlen(y) }) && one.n == SEAL_KEY_BYTES && two.n == SEAL_KEY_BYTES;
		if (n >= 1 && strcmp(w, word) != 0 && (strcmp(w, PUBLIC_WORD) == 0 || strcmp(w, SECRET_WORD) == 0))
			rc = wrong(err, MQ_EINVAL, strcmp(word, PUBLIC_WORD) == 0 ? "'%s' is a secret key; the public one is wanted" :
			           "'%s' is a public key; the secret one is wanted", path);
		break;
	}
	if (rc == 0 && !good)
		rc = wrong(err, MQ_EINVAL, "'%s' is no key: mq-admin key new makes one", path);
	if (rc == 0) {
		memcpy(a, one.p, SEAL_KEY_BYTES);
		memcpy(b, two.p, SEAL_KEY_BYTES);
	}
out:
	if (text.p)
		sodium_memzero(text.p, text.n);
	bytes_free(&text);
	bytes_free(&one);
	bytes_free(&two);
	return rc;
}

int seal_public_read(struct seal_public *k, const char *path, struct mq_error *err)
{
	int rc = sodium_init() < 0 ? wrong(err, MQ_EUNSUPPORTED, "%s", "no source of random numbers") :
	         read_two(path, PUBLIC_WORD, k->box, k->sign, err);

	if (rc == 0)
		name_of(k);
	return rc;
}

int seal_secret_read(struct seal_secret *k, const char *path, struct mq_error *err)
{
	struct stat st;
	int rc = sodium_init() < 0 ? wrong(err, MQ_EUNSUPPORTED, "%s", "no source of random numbers") :
	         read_two(path, SECRET_WORD, k->box_seed, k->sign_seed, err);

	if (rc == 0 && stat(path, &st) == 0 && (st.st_mode & 077))
		rc = wrong(err, MQ_EINVAL, "'%s' is a secret that others may read: chmod 600", path);
	if (rc == 0)
		derive(k);
	return rc;
}

static void text_of(struct bytes *out, const char *word, const unsigned char *a, const unsigned char *b)
{
	bytes_str(out, word);
	bytes_byte(out, ' ');
	bytes_base64(out, (struct mq_str){ (const char *)a, SEAL_KEY_BYTES });
	bytes_byte(out, ' ');
	bytes_base64(out, (struct mq_str){ (const char *)b, SEAL_KEY_BYTES });
	bytes_byte(out, '\n');
}

void seal_secret_text(const struct seal_secret *k, struct bytes *out)
{
	text_of(out, SECRET_WORD, k->box_seed, k->sign_seed);
}

void seal_public_text(const struct seal_public *k, struct bytes *out)
{
	text_of(out, PUBLIC_WORD, k->box, k->sign);
}

static void check(const char *opt, int rc, const struct mq_error *err)
{
	if (rc != 0)
		cli_usage_error("%s: %s", opt, err->text);
}

static void *room(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		cli_die(CLI_SYSTEM, "out of memory");
	return p;
}

void seal_option(struct seal *s, const char *opt, const char *path)
{
	struct mq_error err = { 0 };

	if (strcmp(opt, "--seal") == 0) {
		s->to = s->to ? s->to : room(sizeof(*s->to));
		check(opt, seal_public_read(s->to, path, &err), &err);
	} else if (strcmp(opt, "--sign") == 0) {
		s->by = s->by ? s->by : room(sizeof(*s->by));
		check(opt, seal_secret_read(s->by, path, &err), &err);
	} else if (strcmp(opt, "--open") == 0) {
		s->mine = s->mine ? s->mine : room(sizeof(*s->mine));
		check(opt, seal_secret_read(s->mine, path, &err), &err);
	} else {
		if (s->nverify == SEAL_VERIFY_MAX)
			cli_usage_error("--verify: at most %d keys", SEAL_VERIFY_MAX);
		check(opt, seal_public_read(&s->verify[s->nverify++], path, &err), &err);
	}
}

/* ---- Out -------------------------------------------------------------------------------------------------------------- */

static void digest(crypto_sign_state *st, struct mq_str body)
{
	crypto_sign_init(st);
	crypto_sign_update(st, (const unsigned char *)SIGN_WORD, sizeof(SIGN_WORD));
	crypto_sign_update(st, (const unsigned char *)body.p, body.n);
}

static void put_prop(struct bytes *b, const char *name, const char *key, struct mq_str value)
{
	bytes_printf(b, "%s\001%s", name, key);
	if (value.n)
		bytes_byte(b, ' ');
	bytes_base64(b, value);
	bytes_byte(b, 2);
}

void seal_close(struct seal *s, struct mq_str *body, struct mq_str *props)
{
	unsigned char sig[crypto_sign_BYTES];
	crypto_sign_state st;

	s->props.n = 0;
	bytes_add(&s->props, props->p, props->n);
	if (s->to) {
		s->body.n = 0;
		crypto_box_seal((unsigned char *)bytes_room(&s->body, body->n + crypto_box_SEALBYTES),
		                (const unsigned char *)body->p, body->n, s->to->box);
		s->body.n = body->n + crypto_box_SEALBYTES;
		*body = bytes_view(&s->body);
		put_prop(&s->props, SEAL_PROP, s->to->name, (struct mq_str){ "", 0 });
	}
	if (s->by) {
		digest(&st, *body);
		crypto_sign_final_create(&st, sig, NULL, s->by->sign);
		put_prop(&s->props, SIGN_PROP, s->by->pub.name, (struct mq_str){ (const char *)sig, sizeof(sig) });
	}
	*props = bytes_view(&s->props);
}

/* ---- In --------------------------------------------------------------------------------------------------------------- */

static int verify(struct seal *s, struct mq_str body, struct mq_str prop, struct mq_error *err)
{
	const size_t name_n = SEAL_NAME_TEXT - 1;
	struct bytes sig = { 0 };
	crypto_sign_state st;
	int rc = 0;

	if (!prop.n)
		return wrong(err, MQ_EREFUSED, "%s", "not signed");
	if (prop.n < name_n + 2 || prop.p[name_n] != ' ' ||
	    !bytes_unbase64(&sig, (struct mq_str){ prop.p + name_n + 1, prop.n - name_n - 1 }) || sig.n != crypto_sign_BYTES) {
		bytes_free(&sig);
		return wrong(err, MQ_EREFUSED, "%s", "the signature is damaged");
	}
	for (size_t i = 0; i < s->nverify; i++) {
		if (memcmp(prop.p, s->verify[i].name, name_n) != 0)
			continue;
		digest(&st, body);
		if (crypto_sign_final_verify(&st, (const unsigned char *)sig.p, s->verify[i].sign) == 0)
			goto out;
		rc = wrong(err, MQ_EREFUSED, "the signature of key %s does not fit: the message was changed", s->verify[i].name);
		goto out;
	}
	err->code = rc = MQ_EREFUSED;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "signed by another key: %.*s", (int)name_n, prop.p);
out:
	bytes_free(&sig);
	return rc;
}

static int open_box(struct seal *s, struct mq_str *body, struct mq_str prop, struct mq_error *err)
{
	const struct seal_secret *k = s->mine;

	if (!prop.n)
		return wrong(err, MQ_EREFUSED, "%s", "not sealed");
	if (prop.n != SEAL_NAME_TEXT - 1 || memcmp(prop.p, k->pub.name, prop.n) != 0) {
		err->code = MQ_EREFUSED;
		err->response = 0;
		snprintf(err->text, sizeof(err->text), "sealed for another key: %.*s, not %s", prop.n > 64 ? 64 : (int)prop.n, prop.p,
		         k->pub.name);
		return MQ_EREFUSED;
	}
	s->opened.n = 0;
	if (body->n < crypto_box_SEALBYTES ||
	    crypto_box_seal_open((unsigned char *)bytes_room(&s->opened, body->n), (const unsigned char *)body->p, body->n, k->pub.box,
	                         k->box) != 0)
		return wrong(err, MQ_EREFUSED, "%s", "the seal is broken: the body was changed or is damaged");
	s->opened.n = body->n - crypto_box_SEALBYTES;
	*body = bytes_view(&s->opened);
	return 0;
}

static bool is(struct mq_str s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static void keep(struct bytes *b, struct mq_str name, struct mq_str value)
{
	bytes_add(b, name.p, name.n);
	bytes_byte(b, 1);
	bytes_add(b, value.p, value.n);
	bytes_byte(b, 2);
}

int seal_open(struct seal *s, struct mq_str *body, struct mq_str *props, struct mq_error *err)
{
	struct mq_str n, v;
	size_t pos = 0;
	int rc = s->nverify ? verify(s, *body, mq_prop_get(*props, SIGN_PROP), err) : 0;

	if (rc == 0 && s->mine)
		rc = open_box(s, body, mq_prop_get(*props, SEAL_PROP), err);
	if (rc != 0)
		return rc;
	s->props.n = 0;
	while (mq_prop_next(*props, &pos, &n, &v))
		/* A signature is over what was stored: it says nothing about a body that was opened. */
		if (!(is(n, SEAL_PROP) && s->mine) && !(is(n, SIGN_PROP) && (s->nverify || s->mine)))
			keep(&s->props, n, v);
	*props = bytes_view(&s->props);
	return 0;
}

void seal_free(struct seal *s)
{
	if (s->by)
		sodium_memzero(s->by, sizeof(*s->by));
	if (s->mine)
		sodium_memzero(s->mine, sizeof(*s->mine));
	free(s->to);
	free(s->by);
	free(s->mine);
	bytes_free(&s->body);
	bytes_free(&s->opened);
	bytes_free(&s->props);
}
