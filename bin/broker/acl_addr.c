/* acl_addr.c: a pattern is a list of boxes: for each part of an address, from where to where it may be. */
#include "acl_addr.h"
#include <arpa/inet.h>
#include <base/err.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>
#include <string.h>

enum { BOXES_MAX = 256, PARTS_MAX = 8, PIECE_MAX = 64 };

struct box {
	int parts;                      /* 4 of a byte, 8 of 16 bits */
	uint16_t low[PARTS_MAX], high[PARTS_MAX];
};

struct acl_addr {
	bool all;
	size_t n;
	struct box box[];
};

static int wrong(struct mq_str piece, struct mq_error *e)
{
	char show[PIECE_MAX * 2];

	return err_set(e, MQ_EINVAL, "'%s' is no address such as 10.1.2.3, 10.1.2.{3,4}, 10.1.2-9.*, fd00::1, fd00::1-ff:*",
		       str_show(piece, show, sizeof show));
}

/* "7", "*" or "2-9". */
static bool part(struct mq_str s, int base, uint16_t *low, uint16_t *high)
{
	unsigned long most = base == 16 ? 0xffff : 255, v[2];
	char text[PIECE_MAX], *at = text, *end;
	int n = 0;

	if (str_is(s, "*")) {
		*low = 0;
		*high = (uint16_t)most;
		return true;
	}
	if (!s.n || s.n >= sizeof text)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	do {
		bool digit = (*at >= '0' && *at <= '9') || (base == 16 && ((*at | 32) >= 'a' && (*at | 32) <= 'f'));

		if (!digit)
			return false;
		v[n++] = strtoul(at, &end, base);
		at = end + 1;
	} while (n < 2 && *end == '-');
	if (*end || v[0] > most || v[n - 1] > most || v[0] > v[n - 1])
		return false;
	*low = (uint16_t)v[0];
	*high = (uint16_t)v[n - 1];
	return true;
}

/* The parts of s into the box from `at` on: how many, or -1. */
static int parts(struct mq_str s, char sep, int base, struct box *b, int at)
{
	struct mq_str piece;
	int n = 0;

	while (str_split(&s, sep, &piece)) {
		if (at + n == PARTS_MAX || !part(str_trim(piece), base, &b->low[at + n], &b->high[at + n]))
			return -1;
		n++;
	}
	return n;
}

static bool one_v6(struct mq_str s, struct box *b)
{
	const char *gap = memmem(s.p, s.n, "::", 2);
	struct mq_str left = { s.p, gap ? (size_t)(gap - s.p) : s.n }, right = { NULL, 0 };
	int n, more = 0;

	memset(b, 0, sizeof *b);
	b->parts = 8;
	n = left.n ? parts(left, ':', 16, b, 0) : 0;
	if (gap) {
		right = (struct mq_str){ gap + 2, s.n - left.n - 2 };
		more = right.n ? parts(right, ':', 16, b, n < 0 ? 0 : n) : 0;
	}
	if (n < 0 || more < 0 || (gap ? n + more > 7 : n != 8))
		return false;
	for (int i = 1; i <= more && gap; i++) { /* what stands behind the gap moves to the end */
		b->low[8 - i] = b->low[n + more - i];
		b->high[8 - i] = b->high[n + more - i];
	}
	for (int i = n; i < 8 - more; i++)
		b->low[i] = b->high[i] = 0;
	return true;
}

static bool one(struct mq_str s, struct box *b)
{
	if (!s.n || s.n >= PIECE_MAX)
		return false;
	if (memchr(s.p, ':', s.n))
		return one_v6(s, b);
	b->parts = 4;
	return parts(s, '.', 10, b, 0) == 4;
}

static int add(struct acl_addr **a, struct mq_str s, struct mq_error *e)
{
	struct box b = { 0 };

	if (!one(str_trim(s), &b))
		return wrong(s, e);
	if ((*a)->n == BOXES_MAX)
		return err_set(e, MQ_EINVAL, "more than %d addresses in one pattern", BOXES_MAX);
	*a = mem_realloc(*a, sizeof **a + ((*a)->n + 1) * sizeof b);
	(*a)->box[(*a)->n++] = b;
	return 0;
}

/* "10.1.2." and "3,4" of 10.1.2.{3,4}. */
static int add_last(struct acl_addr **a, struct mq_str head, struct mq_str list, struct mq_error *e)
{
	struct mq_str last;
	int rc = 0;

	while (rc == 0 && str_split(&list, ',', &last)) {
		char *text = mem_printf(MQ_STR_FMT MQ_STR_FMT, MQ_STR_ARG(head), MQ_STR_ARG(str_trim(last)));

		rc = add(a, str_of(text), e);
		free(text);
	}
	return rc;
}

int acl_addr_parse(struct acl_addr **out, struct mq_str text, struct mq_error *e)
{
	struct acl_addr *a;
	struct mq_str piece;
	const char *open;
	int rc = 0;

	*out = NULL;
	text = str_trim(text);
	if (!text.n)
		return 0;
	a = mem_alloc(sizeof *a);
	open = memchr(text.p, '{', text.n);
	if (str_is(text, "*") || str_is(text, "*.*.*.*") || str_is(text, "*:*:*:*:*:*:*:*")) {
		a->all = true;
	} else if (open) {
		struct mq_str head = { text.p, (size_t)(open - text.p) };

		rc = text.p[text.n - 1] != '}' ? wrong(text, e)
					       : add_last(&a, head, (struct mq_str){ open + 1, text.n - head.n - 2 }, e);
	} else {
		while (rc == 0 && str_split(&text, ',', &piece))
			rc = add(&a, piece, e);
	}
	if (rc < 0)
		acl_addr_free(a);
	else
		*out = a;
	return rc;
}

bool acl_addr_match(const struct acl_addr *a, const struct mq_host *h)
{
	static const uint8_t v4_in_v6[12] = { [10] = 0xff, [11] = 0xff };
	bool mapped = h->len == 16 && memcmp(h->ip, v4_in_v6, 12) == 0;
	const uint8_t *ip = mapped ? h->ip + 12 : h->ip;
	int n = h->len == 16 && !mapped ? 8 : 4;

	if (!a || a->all)
		return a != NULL;
	if (!h->len)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct box *b = &a->box[i];
		bool in = b->parts == n;

		for (int k = 0; in && k < n; k++) {
			int v = n == 8 ? ip[2 * k] << 8 | ip[2 * k + 1] : ip[k];

			in = v >= b->low[k] && v <= b->high[k];
		}
		if (in)
			return true;
	}
	return false;
}

void acl_addr_free(struct acl_addr *a)
{
	free(a);
}
