/* tree_top.c: README and status. */
#include "cluster.h"
#include "fail.h"
#include "options.h"
#include "task.h"
#include "tree_nodes.h"
#include "when.h"

#include <string.h>

static const char readme[] =
	"This is a message queue, mounted by mqfs " MQ_VERSION ".  All of it is in mqfs(8).\n"
	"\n"
	"  status                          where the messages come from; the last error\n"
	"  topics/T/send                   echo hello >send: one message; close says whether the broker has it\n"
	"  topics/T/lines, json            each line is a message\n"
	"  topics/T/tail                   cat tail: what comes from now on\n"
	"  topics/T/from@...               from@0, from@-10, from@2026-11-30T12:00: from there on\n"
	"  topics/T/queues/B:ID/messages/  the newest messages, one file each; any other by its number\n"
	"  topics/T/queues/B:ID/meta/      what else there is to know of each, as JSON\n"
	"  topics/T/by-key/KEY/, by-time/TIME/, by-id/ID   links to messages, found by name\n"
	"  topics/T/config, groups/G/config, brokers/N/ID/config   settings: read, edit, write\n"
	"  groups/G/recv/T                 while read -r m; do ...; done <recv/T: what was read is acknowledged\n"
	"  groups/G/offsets/T/B:ID         where the group stands: echo 0 >B:ID sets it\n"
	"  groups/G/lag, clients           how far behind; who is there\n"
	"  dlq/G, delayed/, transactions/  what was given up; what waits\n"
	"\n"
	"To look changes nothing and never waits for a message; only tail, from@... and recv/T do, when they are opened by name.\n";

int top_readme(struct node *n, struct bytes *out)
{
	bytes_str(out, readme);
	return 0;
}

int top_status(struct node *n, struct bytes *out)
{
	int64_t count, when_ms, age = cluster_age_ms();
	const char *last = fail_last(&count, &when_ms);
	char text[40];

	bytes_printf(out, "version=%s\naddress=%s\n", MQ_VERSION, options.addr);
	if (source->cluster) {
		const char *const *ns = mqclient_nameservers(cluster_client());
		bytes_str(out, "nameservers=");
		for (size_t i = 0; ns[i]; i++)
			bytes_printf(out, "%s%s", i ? ";" : "", ns[i]);
		/* How old what is known of the brokers is; padded, so that the size stays. */
		bytes_printf(out, "\nclientId=%s\ncacheAgeMs=%8lld\n", mqclient_id(cluster_client()), (long long)age);
	}
	bytes_printf(out, "options=%s%s%s%s,list=%lld,timeout=%lldms\n", options.read_only ? "ro" : "rw", options.admin ? ",admin" : "",
	             options.system ? ",system" : "", options.no_streams ? ",nostreams" : "", (long long)options.list,
	             (long long)options.timeout_ms);
	bytes_printf(out, "errors=%lld\n", (long long)count);
	if (count)
		bytes_printf(out, "lastError=%s %s\n", when_text(when_ms, text, sizeof(text)), last);
	return 0;
}
