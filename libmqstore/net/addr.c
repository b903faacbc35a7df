/* addr.c: texts of addresses, addresses of sockets. */
#include "conn_private.h"
#include "server.h"
#include "../base/err.h"
#include "../base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int addr_split(const char *addr, char host[ADDR_HOST_MAX], int *port, struct mq_error *e)
{
	struct mq_str name = str_of(addr), digits;
	char shown[80];
	int32_t number;
	const char *colon;

	str_show(name, shown, sizeof(shown));
	if (*addr == '[') {
		colon = strstr(addr, "]:");
		if (!colon)
			return err_set(e, MQ_EINVAL, "address '%s' is not [IPv6]:port", shown);
		name = (struct mq_str){ addr + 1, (size_t)(colon - addr - 1) };
		colon++;
	} else {
		colon = strrchr(addr, ':');
		if (!colon)
			return err_set(e, MQ_EINVAL, "address '%s' is not host:port", shown);
		name.n = (size_t)(colon - addr);
		if (memchr(addr, ':', name.n))
			return err_set(e, MQ_EINVAL, "address '%s': an IPv6 address with a port is written [IPv6]:port", shown);
	}
	if (name.n == 0 || name.n >= ADDR_HOST_MAX || strpbrk(addr, " \t\r\n/"))
		return err_set(e, MQ_EINVAL, "address '%s' is not host:port", shown);
	digits = str_of(colon + 1);
	if (str_i32(digits, &number) || digits.p[0] == '+' || number < 1 || number > 65535)
		return err_set(e, MQ_EINVAL, "address '%s': the port is not a number from 1 to 65535", shown);
	memcpy(host, name.p, name.n);
	host[name.n] = '\0';
	*port = number;
	return 0;
}

void addr_host(const struct sockaddr *a, struct mq_host *h)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	*h = (struct mq_host){ .len = 0 };
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;

		memcpy(h->ip, &v4->sin_addr, 4);
		h->len = 4;
		h->port = ntohs(v4->sin_port);
	} else if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
		const uint8_t *ip = v6->sin6_addr.s6_addr;

		/* An IPv4 peer of a socket that listens on "::". */
		h->len = memcmp(ip, mapped, 12) == 0 ? 4 : 16;
		memcpy(h->ip, h->len == 4 ? ip + 12 : ip, h->len);
		h->port = ntohs(v6->sin6_port);
	}
}

int addr_unix(const char *path, struct sockaddr_un *a, int *dir)
{
	size_t n = strlen(path);
	const char *slash = strrchr(path, '/');
	char parent[4096];

	*dir = -1;
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (n == 0)
		return -ENOENT;
	if (n < sizeof(a->sun_path)) {
		memcpy(a->sun_path, path, n);
		return (int)sizeof(*a);
	}
	/* Linux: a directory that is open has a short name of its own. */
	if (!slash || (size_t)(slash - path) >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	*dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return -errno;
	n = (size_t)snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", *dir, slash + 1);
	if (n >= sizeof(a->sun_path)) {
		close(*dir);
		*dir = -1;
		return -ENAMETOOLONG;
	}
	return (int)sizeof(*a);
}

/* compat: as the reference chooses: IPv4 before IPv6, 192.168.* and container bridges last. */
void addr_local(char *out, size_t cap)
{
	struct ifaddrs *all, *i;
	int best = 0;

	snprintf(out, cap, "127.0.0.1");
	if (getifaddrs(&all) < 0)
		return;
	for (i = all; i; i = i->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		int rank = 0;

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (i->ifa_addr->sa_family == AF_INET) {
			inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof(text));
			rank = strncmp(i->ifa_name, "docker", 6) == 0 ? 2 : strncmp(text, "192.168.", 8) == 0 ? 3 : 4;
			if (strncmp(text, "127.", 4) == 0 || strncmp(text, "169.254.", 8) == 0)
				rank = 0;
		} else if (i->ifa_addr->sa_family == AF_INET6) {
			const struct in6_addr *v6 = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;

			inet_ntop(AF_INET6, v6, text, sizeof(text));
			rank = IN6_IS_ADDR_LINKLOCAL(v6) ? 0 : 1;
		}
		if (rank > best && strlen(text) < cap) {
			best = rank;
			strcpy(out, text);
		}
	}
	freeifaddrs(all);
}
