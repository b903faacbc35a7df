/* ha_secret.c: the file of the secret, read once with the rights looked at through the same descriptor. */
#include "ha_secret.h"
#include <base/err.h>
#include <base/sys.h>
#include <fcntl.h>
#include <sodium.h>

#define RIGHT "it has to be a file of one line, made by: (umask 077; head -c 32 /dev/urandom | base64 >FILE)"

static int look_at(int fd, const char *path, struct mq_error *e)
{
	struct stat st;
	int rc = sys.fstat(fd, &st);

	if (rc < 0)
		return err_sys(e, rc, "haSecretFile '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, MQ_EINVAL, "haSecretFile '%s' is no file: " RIGHT, path);
	if (st.st_mode & 077)
		return err_set(e, MQ_EINVAL, "haSecretFile '%s' is open to others (mode %03o): chmod 600 '%s'", path, st.st_mode & 0777,
			       path);
	return 0;
}

/* Bytes without white space at the end, or a negative code. */
static ssize_t read_text(int fd, const char *path, uint8_t *text, size_t cap, struct mq_error *e)
{
	size_t n = 0;
	ssize_t got;

	while (n < cap && (got = sys.pread(fd, text + n, cap - n, (off_t)n)) != 0) {
		if (got < 0)
			return err_sys(e, (int)got, "read haSecretFile '%s'", path);
		n += (size_t)got;
	}
	if (n == cap)
		return err_set(e, MQ_EINVAL, "haSecretFile '%s' has more than %d bytes: " RIGHT, path, HA_SECRET_MOST);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	if (n < HA_SECRET_LEAST)
		return err_set(e, MQ_EINVAL, "haSecretFile '%s' has fewer than %d bytes, which can be guessed: " RIGHT, path,
			       HA_SECRET_LEAST);
	return (ssize_t)n;
}

int ha_secret_read(struct ha_secret **out, const char *path, struct mq_error *e)
{
	uint8_t text[HA_SECRET_MOST + 1];
	struct ha_secret *s = NULL;
	ssize_t n = 0;
	int fd, rc;

	*out = NULL;
	if (sodium_init() < 0)
		return err_set(e, MQ_EUNSUPPORTED, "haSecretFile: there is no source of random numbers");
	fd = sys.open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, fd, "open haSecretFile '%s'", path);
	rc = look_at(fd, path, e);
	if (rc == 0)
		n = read_text(fd, path, text, sizeof text, e);
	rc = n < 0 ? (int)n : rc;
	sys.close(fd);
	if (rc == 0 && !(s = sodium_malloc(sizeof *s)))
		rc = err_set(e, MQ_EUNSUPPORTED, "haSecretFile: no memory of its own for the key");
	if (rc == 0) {
		crypto_generichash(s->key, sizeof s->key, text, (size_t)n, NULL, 0);
		*out = s;
	}
	sodium_memzero(text, sizeof text);
	return rc;
}

void ha_secret_free(struct ha_secret *s)
{
	sodium_free(s); /* wipes it */
}
