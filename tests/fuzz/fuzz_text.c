/* fuzz_text: covers codec/tag.c, receipt.c, id.c, name.c, base/javaprops.c, str.c, net/addr.c, and client/address.c with what an address
 * server answers: all that is read from short texts.  Seeds: seeds/text. */
#include "lab.h"
#include "base/javaprops.h"
#include "base/str.h"
#include "client/address.h"
#include "codec/receipt.h"
#include "codec/tag.h"
#include "net/server.h"

#include <stdlib.h>

static void tags(struct mq_str s)
{
	struct mq_error e = { 0 };
	struct tag_set t;

	if (tag_parse(s, &t, &e) < 0) {
		LAB_CHECK(e.text[0]);
		return;
	}
	LAB_CHECK(t.n <= TAG_MAX && t.n <= s.n);
	for (size_t i = 0; i < t.n; i++) {
		struct mq_str one = t.tag[i];

		LAB_CHECK(tag_match_name(&t, one) && tag_match_code(&t, tag_code(one)));
		LAB_CHECK(i == 0 || t.code[i - 1] <= t.code[i]);
	}
	LAB_CHECK(!t.all || tag_match_code(&t, 12345));
	tag_free(&t);
}

static void ids(struct mq_str s)
{
	struct mq_host host;
	char text[MQ_ID_TEXT], shown[MQ_HOST_TEXT];
	int64_t off;

	if (mq_offset_id_parse(s, &host, &off) == 0) {
		LAB_CHECK(mq_offset_id(&host, off, text) == s.n && str_is_nocase(s, text));
		mq_host_text(&host, shown);
	}
}

static void names(struct mq_str s)
{
	struct mq_error e = { 0 };

	/* What passes is safe as a directory's name and in a listing. */
	if (mq_check_topic(s, &e) == 0)
		LAB_CHECK(s.n >= 1 && s.n <= 255 && !memchr(s.p, '/', s.n) && !memchr(s.p, 0, s.n) && s.p[0] != '.');
	else
		LAB_CHECK(e.text[0]);
	e.text[0] = '\0';
	if (mq_check_group(s, &e) == 0)
		LAB_CHECK(s.n >= 1 && s.n <= MQ_GROUP_MAX && !memchr(s.p, '/', s.n));
	else
		LAB_CHECK(e.text[0]);
}

static void props(struct mq_str s)
{
	struct javaprops p = javaprops_of(s), back;
	struct buf out = { 0 };
	int n = 0, m = 0;

	while (javaprops_next(&p)) {
		LAB_CHECK(p.start <= p.end && p.end <= s.n && p.line >= 1 && p.line <= p.lines);
		javaprops_put(&out, buf_view(&p.key), buf_view(&p.value));
		n++;
	}
	back = javaprops_of(buf_view(&out));
	while (javaprops_next(&back))
		m++;
	LAB_CHECK(n == m);
	javaprops_free(&p);
	javaprops_free(&back);
	buf_free(&out);
}

static void addresses(struct mq_str s)
{
	struct mq_error e = { 0 };
	char **list, host[ADDR_HOST_MAX];
	size_t n;
	int port;

	if (address_list(s, &list, &n, &e) == 0) {
		LAB_CHECK(n >= 1 && n <= ADDRESS_SERVERS_MAX && !list[n]);
		for (size_t i = 0; i < n; i++)
			LAB_CHECK(addr_split(list[i], host, &port, &e) == 0 && port > 0 && port < 65536 && host[0]);
		free(list);
	} else {
		LAB_CHECK(e.text[0]);
	}
}

static void receipts(struct mq_str s)
{
	char topic[RECEIPT_TOPIC_MAX + 1];
	struct mq_error e = { 0 };
	struct buf out = { 0 };
	struct receipt r, back;

	if (receipt_parse(s, &r, &e) == 0) {
		receipt_write(&r, &out);
		LAB_CHECK(receipt_parse(buf_view(&out), &back, &e) == 0);
		LAB_CHECK(back.start == r.start && (back.off == r.off || r.off < 0) && back.queue_id == r.queue_id && str_eq(back.broker, r.broker));
		buf_free(&out);
	} else {
		LAB_CHECK(e.text[0]);
	}
	for (int retry = RECEIPT_NORMAL; retry <= RECEIPT_RETRY_V2; retry++)
		LAB_CHECK(receipt_topic(topic, (enum receipt_retry)retry, s, MQ_STR("group")).n <= RECEIPT_TOPIC_MAX);
	receipt_retry_of(s);
	receipt_normal_topic(s, MQ_STR("group"));
}

static void numbers(struct mq_str s)
{
	char shown[32], *dup = str_dup(s), *end;
	int64_t v;
	int32_t w;
	double d;

	if (str_i64(s, &v) == 0 && v >= INT32_MIN && v <= INT32_MAX)
		LAB_CHECK(str_i32(s, &w) == 0 && w == v);
	if (str_size(s, &v) == 0)
		LAB_CHECK(v >= 0);
	if (str_duration(s, 1000, &v) == 0)
		LAB_CHECK(v >= 0);
	str_double(s, &d);
	str_strtod(dup, &end);
	LAB_CHECK(strlen(str_show(s, shown, sizeof(shown))) < sizeof(shown));
	str_java_hash(s);
	free(dup);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *copy = lab_copy(p, n);
	struct mq_str s = { copy, n };

	tags(s);
	ids(s);
	names(s);
	props(s);
	addresses(s);
	receipts(s);
	numbers(s);
	free(copy);
	return 0;
}
