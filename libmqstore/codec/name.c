/* name.c: which names topics and groups may have.
 *
 * One rule for wire, tools and mount.  A name that passes is safe as the name of a directory: it has no '/' and no '.'.
 * Which names belong to the system is the broker's question, not asked here. */
#include "../base/err.h"
#include "../base/str.h"

/* [%|a-zA-Z0-9_-] */
static bool name_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '%' || c == '|' ||
	       c == '_' || c == '-';
}

/* also: one more character that is allowed, 0 = none. */
static int check(const char *kind, struct mq_str name, size_t max, char also, struct mq_error *why)
{
	char show[160], bad[32];
	if (name.n == 0)
		return err_set(why, MQ_EINVAL, "%s: name is empty", kind);
	for (size_t i = 0; i < name.n; i++) {
		if (name_char((unsigned char)name.p[i]) || (also && name.p[i] == also))
			continue;
		size_t n = 1; /* the whole character, if it is one of several bytes */
		while (n < 4 && i + n < name.n && ((unsigned char)name.p[i + n] & 0xc0) == 0x80)
			n++;
		struct mq_str c = { name.p + i, n };
		return err_set(why, MQ_EINVAL, "%s '%s': illegal character '%s'", kind, str_show(name, show, sizeof(show)),
			       str_show(c, bad, sizeof(bad)));
	}
	if (name.n > max)
		return err_set(why, MQ_EINVAL, "%s '%s': %zu characters, at most %zu are allowed", kind,
			       str_show(name, show, sizeof(show)), name.n, max);
	return 0;
}

int mq_check_topic(struct mq_str topic, struct mq_error *why)
{
	/* Topics made from a group's name may be as long as one.  compat: 5.2.0 allows that for retry topics only, and then
	 * cannot store the dead letters of a group with more than 122 characters. */
	bool of_group = str_starts(topic, "%RETRY%") || str_starts(topic, "%DLQ%");
	/* %RETRY%group+topic: what comes again of pops (enableRetryTopicV2). */
	return check("topic", topic, of_group ? MQ_GROUP_MAX : MQ_TOPIC_MAX, str_starts(topic, "%RETRY%") ? '+' : 0, why);
}

int mq_check_group(struct mq_str group, struct mq_error *why)
{
	return check("group", group, MQ_GROUP_MAX, 0, why);
}
