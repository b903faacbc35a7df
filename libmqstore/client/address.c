/* address.c: which address is meant, and of which kind it is.  Connects nowhere. */
#include "address.h"
#include "../base/conf.h"
#include "../net/server.h"
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum mqclient_addr_kind mqclient_addr_kind(const char *addr)
{
	struct mq_str a = str_of(addr);

	if (str_starts(a, "http://") || str_starts(a, "https://"))
		return MQCLIENT_HTTP;
	if (str_starts(a, "file:"))
		return MQCLIENT_FILE;
	if (str_starts(a, "store:"))
		return MQCLIENT_STORE;
	return MQCLIENT_CLUSTER;
}

const char *mqclient_addr_dir(const char *addr)
{
	return strchr(addr, ':') + 1;
}

int address_list(struct mq_str text, char ***list, size_t *n, struct mq_error *e)
{
	struct mq_str rest = text, piece;
	char host[ADDR_HOST_MAX], show[200];
	char **v, *to;
	int port, rc;

	*list = NULL;
	*n = 0;
	if (text.n > ADDRESS_MAX)
		return err_set(e, MQ_EINVAL, "list of name servers has %zu bytes; %d are allowed", text.n, ADDRESS_MAX);
	/* One block: the array, then the strings. */
	v = mem_alloc((ADDRESS_SERVERS_MAX + 1) * sizeof *v + text.n + ADDRESS_SERVERS_MAX + 1);
	to = (char *)(v + ADDRESS_SERVERS_MAX + 1);
	while (rest.n) {
		size_t end = 0;
		while (end < rest.n && rest.p[end] != ';' && rest.p[end] != ',')
			end++;
		piece = str_trim((struct mq_str){ rest.p, end });
		end += end < rest.n;
		rest.p += end;
		rest.n -= end;
		if (!piece.n)
			continue;
		if (*n == ADDRESS_SERVERS_MAX) {
			rc = err_set(e, MQ_EINVAL, "more than %d name servers", ADDRESS_SERVERS_MAX);
			goto fail;
		}
		memcpy(to, piece.p, piece.n);
		to[piece.n] = 0;
		if (strlen(to) != piece.n) {
			rc = err_set(e, MQ_EINVAL, "name server '%s': NUL byte", str_show(piece, show, sizeof show));
			goto fail;
		}
		rc = addr_split(to, host, &port, e);
		if (rc < 0)
			goto fail;
		v[(*n)++] = to;
		to += piece.n + 1;
	}
	if (!*n) {
		rc = err_set(e, MQ_EINVAL, "no name server in '%s'; host:port is wanted",
		             str_show(text, show, sizeof show));
		goto fail;
	}
	*list = v;
	return 0;
fail:
	free(v);
	*n = 0;
	return rc;
}

/* Fill out and check it; `from` says where it came from. */
static int address_take(const char *from, const char *addr, char *out, size_t cap, struct mq_error *e)
{
	struct mq_error why;
	char **list;
	size_t n;
	int rc = 0;

	if (strlen(addr) >= cap)
		return err_set(e, MQ_EINVAL, "%s: address has %zu bytes; %zu are allowed", from, strlen(addr), cap - 1);
	switch (mqclient_addr_kind(addr)) {
	case MQCLIENT_CLUSTER:
		rc = address_list(str_of(addr), &list, &n, &why);
		if (rc < 0)
			return err_set(e, rc, "%s: %s", from, why.text);
		free(list);
		break;
	case MQCLIENT_FILE:
	case MQCLIENT_STORE:
		if (!*mqclient_addr_dir(addr))
			return err_set(e, MQ_EINVAL, "%s: '%s' names no directory", from, addr);
		break;
	case MQCLIENT_HTTP:
		if (!strstr(addr, "://") || !strstr(addr, "://")[3])
			return err_set(e, MQ_EINVAL, "%s: '%s' names no host", from, addr);
		break;
	}
	memmove(out, addr, strlen(addr) + 1);
	return 0;
}

/* file:$XDG_DATA_HOME/mq, that is file:$HOME/.local/share/mq. */
static int address_default(char *out, size_t cap, struct mq_error *e)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	char text[ADDRESS_MAX];
	int n;

	if (data && *data == '/') {
		n = snprintf(text, sizeof text, "file:%s/mq", data);
	} else {
		if (!home || !*home) {
			struct passwd *pw = getpwuid(getuid());
			home = pw ? pw->pw_dir : NULL;
		}
		if (!home || !*home)
			return err_set(e, MQ_EINVAL,
			               "no address given and no home directory for the usual one; give one with -n");
		n = snprintf(text, sizeof text, "file:%s/.local/share/mq", home);
	}
	if ((size_t)n >= sizeof text)
		return err_set(e, MQ_EINVAL, "path of the home directory is too long");
	return address_take("usual address", text, out, cap, e);
}

int mqclient_address(const char *arg, char *out, size_t cap, struct mq_error *e)
{
	char text[ADDRESS_MAX];
	const char *env;
	int rc;

	if (arg)
		return address_take("address", arg, out, cap, e);
	env = getenv("NAMESRV_ADDR");
	if (env && *env)
		return address_take("$NAMESRV_ADDR", env, out, cap, e);
	rc = conf_user_key("nameserver", text, sizeof text, e);
	if (rc == 0)
		return address_take("nameserver in mq/config", text, out, cap, e);
	if (rc != MQ_ENOTFOUND)
		return rc;
	return address_default(out, cap, e);
}
