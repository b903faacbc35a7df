/* recv_options.h: what mq-recv was asked to do. */
#ifndef BIN_RECV_OPTIONS_H
#define BIN_RECV_OPTIONS_H

#include "exit_map.h"
#include "record_out.h"
#include "seal.h"

#include <mqclient.h>

struct recv_options {
	const char *addr;               /* NULL = the default */
	const char *resume;             /* NULL = not given */
	const char *command;            /* of -x or --reply; NULL = standard output */
	const char *command_opt;        /* which of them */
	struct mqclient_consume_opt consume; /* its topics are allocated: free() them */
	struct record_out out;
	struct exit_map on_exit;
	struct seal seal;
	int64_t count;                  /* 0 = no end */
	int64_t timeout_ms;             /* -1 = none */
	int64_t exec_timeout_ms;        /* of a command; 0 = none */
	int32_t max_attempts;           /* 0 = not given */
	int jobs;
	bool progress, one_by_one, reply, json_input;
};

/* From the command line.  What is wrong ends the program (cli.h). */
void recv_options(struct recv_options *o, int argc, char **argv);

#endif
