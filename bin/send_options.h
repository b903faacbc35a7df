/* send_options.h: what mq-send was asked to do. */
#ifndef BIN_SEND_OPTIONS_H
#define BIN_SEND_OPTIONS_H

#include "compose.h"
#include "frame_in.h"
#include "seal.h"

#include <mqclient.h>

struct send_options {
	const char *addr;               /* NULL = the default */
	const char *topic;              /* "-" with topic_per_record */
	const char *queue, *sharding_key, *failed, *resume; /* NULL = not given */
	enum frame_mode framing;
	struct compose compose;         /* what every message gets; freed by the caller */
	struct mqclient_send_opt send;
	size_t batch_max;               /* messages in a request */
	int64_t in_flight;              /* requests without an answer */
	int64_t rate;                   /* messages a second; 0 = as fast as it goes */
	struct seal seal;
	const char *transaction, *check; /* commands; NULL = not given */
	int64_t wait_ms;                /* answer for transactions so long after the input has ended */
	bool skip_empty, strict, progress, verbose, request;
	bool topic_per_record;
};

/* From the command line; optind is the first FILE.  What is wrong ends the program (cli.h). */
void send_options(struct send_options *o, int argc, char **argv);

#endif
