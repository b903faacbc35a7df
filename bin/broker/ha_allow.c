/* ha_allow.c: addresses and networks in a list. */
#include "ha_allow.h"
#include <arpa/inet.h>
#include <base/err.h>
#include <base/str.h>

struct net_of {
	uint8_t ip[16];
	int len;        /* 4 or 16 */
	int32_t bits;
};

static int parse(struct mq_str piece, struct net_of *n, struct mq_error *e)
{
	const char *slash = memchr(piece.p, '/', piece.n);
	size_t at = slash ? (size_t)(slash - piece.p) : piece.n;
	char text[64];

	if (at == 0 || at >= sizeof text)
		return err_set(e, MQ_EINVAL, "haAllowedAddresses: '" MQ_STR_FMT "' is no address", MQ_STR_ARG(piece));
	memcpy(text, piece.p, at);
	text[at] = 0;
	n->len = inet_pton(AF_INET, text, n->ip) == 1 ? 4 : inet_pton(AF_INET6, text, n->ip) == 1 ? 16 : 0;
	n->bits = n->len * 8;
	if (!n->len || (slash && (str_i32((struct mq_str){ slash + 1, piece.n - at - 1 }, &n->bits) < 0 || n->bits < 0 ||
				  n->bits > n->len * 8)))
		return err_set(e, MQ_EINVAL, "haAllowedAddresses: '" MQ_STR_FMT "' is no address such as 10.1.2.3, 10.2.0.0/16, fd00::/8",
			       MQ_STR_ARG(piece));
	return 0;
}

static bool within(const struct net_of *n, const struct mq_host *h)
{
	int whole = n->bits / 8, rest = n->bits % 8;

	if (h->len != n->len || memcmp(h->ip, n->ip, (size_t)whole) != 0)
		return false;
	return !rest || (h->ip[whole] ^ n->ip[whole]) >> (8 - rest) == 0;
}

/* 0 all right and h is not in it, 1 h is in it, MQ_EINVAL. */
static int look(struct mq_str list, const struct mq_host *h, struct mq_error *e)
{
	struct mq_str piece;
	struct net_of n;
	int rc = 0;

	while (rc == 0 && str_split(&list, ';', &piece)) {
		piece = str_trim(piece);
		if (!piece.n)
			continue;
		rc = parse(piece, &n, e);
		if (rc == 0 && h && within(&n, h))
			rc = 1;
	}
	return rc;
}

int ha_allow_check(struct mq_str list, struct mq_error *e)
{
	return look(list, NULL, e);
}

bool ha_allow(struct mq_str list, const struct mq_host *h)
{
	return str_trim(list).n == 0 || look(list, h, NULL) == 1;
}
