/* fuzz_conf: covers base/conf.c with the rows of the broker and of the name server, broker_conf.c: a file, an update by request,
 * the same saved and read again; and the user's mq/config.  The first byte: 1 = the name server's.  Seeds: seeds/conf. */
#include "lab.h"
#include "../../bin/broker/broker_conf.h"
#include "../../bin/namesrv/namesrv_conf.h"
#include "base/conf.h"
#include "base/str.h"
#include "base/sys.h"

#include <stdlib.h>

/* A key without effect or of the kind that is shown must not lose what it was set to. */
static void file(struct conf *c, struct conf *again, const char *path)
{
	struct mq_error e = { 0 };
	struct buf one = { 0 }, two = { 0 };
	int changed = 0;
	char *text;
	size_t n;

	if (conf_file(c, path, &e) < 0) {
		LAB_CHECK(e.text[0]);
		return;
	}
	LAB_CHECK(sys_read_file(path, 1 << 20, &text, &n) == 0);
	/* Taken again as an update: all of it is known to parse, but for the keys that are not for the wire. */
	conf_update(c, (struct mq_str){ text, n }, &changed, &e);
	free(text);
	if (conf_save(c, path, &e) == 0) {
		LAB_CHECK(conf_file(again, path, &e) == 0);
		conf_print(c, &one);
		conf_print(again, &two);
		LAB_CHECK(one.n == two.n && memcmp(one.p, two.p, one.n) == 0);
	}
	buf_free(&one);
	buf_free(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct broker_conf b, b2;
	struct namesrv_conf s, s2;
	struct mq_error e = { 0 };
	struct conf *c, *again;
	char out[64], *path, *copy;
	int changed;

	if (n < 1)
		return 0;
	lab_quiet();
	path = lab_path("a.conf");
	lab_write(path, p + 1, n - 1, 0);
	c = p[0] & 1 ? namesrv_conf_new(&s) : broker_conf_new(&b);
	again = p[0] & 1 ? namesrv_conf_new(&s2) : broker_conf_new(&b2);
	file(c, again, path);
	if (!(p[0] & 1))
		broker_conf_check(c, &b, &e);
	conf_free(again);
	conf_free(c);

	c = p[0] & 1 ? namesrv_conf_new(&s) : broker_conf_new(&b);
	copy = lab_copy(p + 1, n - 1);
	conf_update(c, (struct mq_str){ copy, n - 1 }, &changed, &e);
	free(copy);
	conf_free(c);

	sys_mkdir_all(lab_path("mq"));
	lab_write(lab_path("mq/config"), p + 1, n - 1, 0);
	setenv("XDG_CONFIG_HOME", lab_dir(), 1);
	if (conf_user_key("nameserver", out, sizeof(out), &e) == 0)
		LAB_CHECK(strlen(out) < sizeof(out));
	return 0;
}
