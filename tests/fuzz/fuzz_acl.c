/* fuzz_acl: covers base/yaml.c, bin/broker/acl_rules.c and acl_addr.c: a file of accounts.  What is read and written is read as the same.
 * Seeds: seeds/acl. */
#include "lab.h"
#include "base/yaml.h"
#include "../../bin/broker/acl_rules.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *text = malloc(n + !n);
	struct mq_error e = { 0 };
	json_t *doc, *again;

	memcpy(text, p, n);
	doc = yaml_parse((struct mq_str){ text, n }, &e);
	LAB_CHECK(doc || e.text[0]);
	if (doc) {
		struct buf out = { 0 };

		LAB_CHECK(acl_rules_check(doc, "f", &e) == 0 || e.text[0]);
		yaml_write(doc, &out);
		again = yaml_parse(buf_view(&out), &e);
		LAB_CHECK(again || out.n > YAML_TEXT_MAX);
		if (again)
			LAB_CHECK(acl_rules_check(again, "f", &e) == acl_rules_check(doc, "f", &e));
		json_decref(again);
		buf_free(&out);
		json_decref(doc);
	}
	free(text);
	return 0;
}
