/* strict_json.c: the peer's JSON for programs that have a JSON reader of their own (mq-admin, mqfs). */
#include "../base/err.h"
#include "../base/json.h"
#include <mqclient.h>

char *mqclient_strict_json(struct mq_str text, struct mq_error *err)
{
	json_t *o = json_parse(text, err);
	if (!o)
		return NULL;
	char *strict = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(o);
	if (!strict)
		err_set(err, MQ_ECORRUPT, "JSON that cannot be written again");
	return strict;
}
