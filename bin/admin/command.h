/* command.h: the commands of mq-admin.
 *
 * To add one: (1) a function `int admin_NAME(struct admin *a)` in the file of its noun, (2) its options and its row in that file's
 * table (the first option table above the function), (3) a section in man/mq-admin.1, (4) a test in tests/mq-admin.bats.
 * Names and options are those of the peer's mqadmin. */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include <mq.h>

struct admin;

struct command_opt {
	char letter;            /* 0 = long only */
	const char *name;
	const char *meta;       /* what the argument is; NULL = none is taken */
	bool required;
	const char *help;
};

enum { COMMAND_CLUSTER = 1, COMMAND_STORE = 2 /* also works on store:DIR */,
       COMMAND_FILES = 4 /* only there, and on the files as they are: no handle is opened */,
       COMMAND_ALONE = 8 /* needs neither */,
       COMMAND_CONTROLLER = 16 /* asks those of -a; name servers only if they are given */ };

struct command {
	const char *name;               /* one word, or two with a blank */
	const struct command_opt *opts; /* ended by an all-zero row */
	int (*run)(struct admin *a);    /* exit status */
	int where;
	const char *help;
};

/* One table a noun, ended by an all-zero row. */
extern const struct command topic_commands[], topic_change_commands[], group_commands[], client_commands[], offset_commands[],
	offset_change_commands[], key_commands[], trace_commands[],
	broker_commands[], namesrv_commands[], cluster_commands[], stats_commands[], message_commands[], message_find_commands[],
	message_print_commands[], message_send_commands[], timers_commands[], controller_commands[], promote_commands[],
	acl_commands[];
extern const struct command store_check_commands[], store_du_commands[], store_dump_commands[], store_find_commands[],
	store_repair_commands[];

#endif
