/* key.c: keys for sealing and signing bodies. */
#include "admin.h"
#include "../cli.h"
#include "../seal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_new(const char *name, const char *ending, mode_t mode, struct mq_str text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s%s", name, ending);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		cli_die(errno == EEXIST ? CLI_REFUSED : CLI_SYSTEM, "key new: '%s': %s", path,
			errno == EEXIST ? "it is there; a key is never overwritten" : strerror(errno));
	if (write(fd, text.p, text.n) != (ssize_t)text.n || fsync(fd) != 0 || close(fd) != 0)
		cli_die(CLI_SYSTEM, "key new: '%s': %s", path, strerror(errno));
}

static void show_public(struct admin *a, const struct seal_public *k, const char *kind)
{
	struct bytes text = { 0 };
	seal_public_text(k, &text);
	struct show *s = show_record(a->format);
	show_key(s, "key");
	show_cstr(s, k->name);
	show_key(s, "kind");
	show_cstr(s, kind);
	show_key(s, "public");
	show_str(s, (struct mq_str){ text.p, text.n - 1 });
	show_close(s);
	bytes_free(&text);
}

static int key_new(struct admin *a)
{
	const char *name = admin_opt(a, "file");
	struct seal_secret k;
	struct bytes text = { 0 };
	struct mq_error err;
	struct stat st;
	char path[4096];
	snprintf(path, sizeof path, "%s.pub", name);
	if (stat(path, &st) == 0)
		cli_die(CLI_REFUSED, "key new: '%s': it is there; a key is never overwritten", path);
	if (seal_secret_new(&k, &err) != 0)
		cli_fail(&err);
	seal_secret_text(&k, &text);
	write_new(name, ".key", 0600, bytes_view(&text));
	text.n = 0;
	seal_public_text(&k.pub, &text);
	write_new(name, ".pub", 0644, bytes_view(&text));
	bytes_free(&text);
	show_public(a, &k.pub, "new");
	memset(&k, 0, sizeof k);
	return CLI_OK;
}

static int key_show(struct admin *a)
{
	const char *path = admin_opt(a, "file");
	struct seal_public pub;
	struct seal_secret k;
	struct mq_error err;
	if (seal_public_read(&pub, path, &err) == 0) {
		show_public(a, &pub, "public");
		return CLI_OK;
	}
	if (seal_secret_read(&k, path, &err) != 0)
		cli_die(CLI_USAGE, "key show: %s", err.text);
	show_public(a, &k.pub, "secret");
	memset(&k, 0, sizeof k);
	return CLI_OK;
}

static const struct command_opt new_opts[] = {
	{ 'f', "file", "NAME", true, "NAME.key gets the secret, NAME.pub what others may have" },
	{ 0 },
};
static const struct command_opt show_opts[] = {
	{ 'f', "file", "FILE", true, "a file with either" },
	{ 0 },
};

const struct command key_commands[] = {
	{ "key new", new_opts, key_new, COMMAND_ALONE, "make a key to seal and sign with" },
	{ "key show", show_opts, key_show, COMMAND_ALONE, "name and public part of a key" },
	{ 0 },
};
