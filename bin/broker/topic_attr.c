/* topic_attr.c: see topic_attr.h. */
#include "topic_attr.h"
#include <base/err.h>
#include <base/str.h>
#include <assert.h>
#include <string.h>

/* Attributes that ask for another kind of storage.  A topic that has one (its store came from a peer) is kept as it is. */
static const struct {
	const char *key, *value, *text;
} unserved[] = {
	{ "queue.type", "BatchCQ", "queue.type=BatchCQ" },
	{ "cleanup.policy", "COMPACTION", "cleanup.policy=COMPACTION" },
};

void topic_attr_set(struct topic *t, const struct body_pair *attr, size_t n)
{
	struct body_keep keep = { 0 };
	struct body_pair *copy = n ? body_alloc(&keep, n * sizeof *copy) : NULL;

	for (size_t i = 0; i < n; i++)
		copy[i] = (struct body_pair){ body_copy(&keep, attr[i].key), body_copy(&keep, attr[i].value) };
	body_free(&t->keep);
	t->keep = keep;
	t->conf.attr = copy;
	t->conf.nattrs = n;
	t->unserved = NULL;
	for (size_t i = 0; i < n; i++)
		for (size_t u = 0; u < sizeof unserved / sizeof unserved[0]; u++)
			if (str_is(copy[i].key, unserved[u].key) && str_is(copy[i].value, unserved[u].value))
				t->unserved = unserved[u].text;
}

/* The attributes of 5.2.0: name, values, may it change after creation. */
static const struct attr_rule {
	const char *name;
	const char *values;     /* joined by | */
	bool changeable;
} attr_rules[] = {
	{ "queue.type",     "BatchCQ|SimpleCQ", false },
	{ "cleanup.policy", "DELETE|COMPACTION", false },
	{ "message.type",   "UNSPECIFIED|NORMAL|FIFO|DELAY|TRANSACTION|MIXED", true },
};
static_assert(sizeof attr_rules / sizeof attr_rules[0] == TOPIC_ATTRS, "a place for each");

static bool is_value(struct mq_str value, const char *values)
{
	struct mq_str rest = str_of(values), piece;

	while (str_split(&rest, '|', &piece))
		if (str_eq(piece, value))
			return true;
	return false;
}

/* "+k=v,-k" applied to what `have` (may be NULL: a new topic) holds; the result has one place per rule: attr[i].key.p NULL =
 * absent.  Views point into `change` and the old attributes. */
static int apply(const struct topic *have, struct mq_str change, bool mixed, struct body_pair attr[TOPIC_ATTRS],
                 struct mq_error *e)
{
	struct mq_str piece;
	unsigned seen = 0;

	memset(attr, 0, TOPIC_ATTRS * sizeof *attr);
	for (size_t i = 0; have && i < have->conf.nattrs; i++)
		for (int r = 0; r < TOPIC_ATTRS; r++)
			if (str_is(have->conf.attr[i].key, attr_rules[r].name))
				attr[r] = have->conf.attr[i];
	while (str_split(&change, ',', &piece)) {
		struct mq_str key, value;
		const char *eq;
		int r = 0;

		if (piece.n == 0 && change.n == 0)
			break;
		eq = piece.n ? memchr(piece.p, '=', piece.n) : NULL;
		if (piece.n < 2 || (piece.p[0] != '+' && piece.p[0] != '-') || (piece.p[0] == '+') != !!eq)
			return err_set(e, MQ_EINVAL, "attribute '" MQ_STR_FMT "': write +key=value or -key", MQ_STR_ARG(piece));
		key = (struct mq_str){ piece.p + 1, (eq ? (size_t)(eq - piece.p) : piece.n) - 1 };
		value = eq ? (struct mq_str){ eq + 1, (size_t)(piece.p + piece.n - eq - 1) } : (struct mq_str){ "", 0 };
		while (r < TOPIC_ATTRS && !str_is(key, attr_rules[r].name))
			r++;
		if (r == TOPIC_ATTRS)
			return err_set(e, MQ_EINVAL, "unsupported key: " MQ_STR_FMT, MQ_STR_ARG(key));
		if (seen & 1u << r)
			return err_set(e, MQ_EINVAL, "key duplication: " MQ_STR_FMT, MQ_STR_ARG(key));
		seen |= 1u << r;
		if (piece.p[0] == '-') {
			if (!have)
				return err_set(e, MQ_EINVAL, "attribute '" MQ_STR_FMT "': a new topic has none to remove",
					       MQ_STR_ARG(piece));
			if (!attr[r].key.p)
				return err_set(e, MQ_EINVAL, "attempt to delete a nonexistent key: " MQ_STR_FMT, MQ_STR_ARG(key));
		} else if (!is_value(value, attr_rules[r].values))
			return err_set(e, MQ_EINVAL, "attribute " MQ_STR_FMT ": value '" MQ_STR_FMT "' is none of %s",
				       MQ_STR_ARG(key), MQ_STR_ARG(value), attr_rules[r].values);
		if (have && !attr_rules[r].changeable && !(attr[r].key.p && str_eq(attr[r].value, value)))
			return err_set(e, MQ_EINVAL, "attempt to update an unchangeable attribute. key: " MQ_STR_FMT,
				       MQ_STR_ARG(key));
		for (size_t u = 0; u < sizeof unserved / sizeof unserved[0]; u++)
			if (str_is(key, unserved[u].key) && str_is(value, unserved[u].value) &&
			    !(attr[r].key.p && str_eq(attr[r].value, value)))
				return err_set(e, MQ_EUNSUPPORTED, "this broker does not offer %s yet", unserved[u].text);
		if (!mixed && str_is(value, "MIXED"))
			return err_set(e, MQ_EINVAL, "MIXED message type is not supported.");
		attr[r] = piece.p[0] == '-' ? (struct body_pair){ 0 } : (struct body_pair){ str_of(attr_rules[r].name), value };
	}
	return 0;
}

int topic_attr_change(const struct topic *have, struct mq_str change, bool mixed, struct body_pair attr[TOPIC_ATTRS], size_t *n,
                      struct mq_error *e)
{
	int rc = apply(have, change, mixed, attr, e);

	*n = 0;
	for (int r = 0; rc == 0 && r < TOPIC_ATTRS; r++)
		if (attr[r].key.p)
			attr[(*n)++] = attr[r];
	return rc;
}

bool topic_attr_same(const struct topic *x, const struct body_pair *attr, size_t n)
{
	if (x->conf.nattrs != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < n && !found; j++)
			found = str_eq(attr[i].key, x->conf.attr[j].key) && str_eq(attr[i].value, x->conf.attr[j].value);
		if (!found)
			return false;
	}
	return true;
}
