/* host.c: the text of an address. */
#include <mq.h>

#include <arpa/inet.h>
#include <stdio.h>

char *mq_host_text(const struct mq_host *h, char *out)
{
	char ip[INET6_ADDRSTRLEN] = "0.0.0.0";

	if (h->len == 16) {
		inet_ntop(AF_INET6, h->ip, ip, sizeof(ip));
		snprintf(out, MQ_HOST_TEXT, "[%s]:%d", ip, (int)h->port);
	} else {
		if (h->len == 4)
			inet_ntop(AF_INET, h->ip, ip, sizeof(ip));
		snprintf(out, MQ_HOST_TEXT, "%s:%d", ip, (int)h->port);
	}
	return out;
}
