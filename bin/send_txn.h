/* send_txn.h: mq-send --transaction: a half message, a command that does the local part, and then commit or rollback.
 *
 *      exit code of the command    0 commit    75, or killed by a signal: not known    else: roll back
 *
 * What is not known is asked of the command of --check, at once and whenever a broker asks: the same codes.  Without it, or while it
 * does not know either, nothing is said, and the broker asks again, this process or another of the group.
 *
 * Promises:
 *   T1  The command runs after the half is stored, and only then.
 *   T2  Nothing is committed or rolled back that no command has decided.
 *   T3  While a command runs for a message, no other runs for it. */
#ifndef BIN_SEND_TXN_H
#define BIN_SEND_TXN_H

#include "child.h"

#include <mqclient.h>

enum send_txn_end { SEND_TXN_COMMITTED, SEND_TXN_ROLLED_BACK, SEND_TXN_UNKNOWN };

struct send_txn_job;

struct send_txn {
	const char *group;
	bool checks;                    /* there is a command of --check */
	struct mqclient *client;
	uv_loop_t *loop;
	int64_t answered;               /* questions of brokers */
	int busy;                       /* commands and answers under way for them */
	/* --- own matters below --- */
	struct command local, check;
	bool locals;
	struct send_txn_job *jobs;
};

/* local and check may be NULL.  A command that cannot be started ends the program (child.h). */
void send_txn_open(struct send_txn *t, const char *local, const char *check);
/* Begin to answer for the group, by the brokers of this topic.  0, or a negative code with the reason. */
int send_txn_answer(struct send_txn *t, struct mq_str topic, struct mq_error *err);

/* Before the half is sent: keep what the commands will get.  m has its UNIQ_KEY. */
struct send_txn_job *send_txn_prepare(struct send_txn *t, const struct mq_message *m);
/* It was stored: go on.  done comes once, later, with a reason for people unless it was committed. */
void send_txn_run(struct send_txn_job *j, const struct mqclient_sent *r, void (*done)(void *arg, enum send_txn_end end, const char *why),
                  void *arg);
/* It was not. */
void send_txn_drop(struct send_txn_job *j);
void send_txn_free(struct send_txn *t);

#endif
