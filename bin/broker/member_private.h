/* member_private.h: between member.c (lives), member_file.c (files) and member_call.c (controllers). */
#ifndef BROKER_MEMBER_PRIVATE_H
#define BROKER_MEMBER_PRIVATE_H

#include "member.h"

enum { MEMBER_CALLS = ROLE_CONTROLLERS_MAX + 4 };

struct member_call {                    /* a connection to a controller */
	struct member *m;
	char addr[ROLE_ADDR];
	struct conn *c;                 /* NULL: none, nor on the way */
	bool opened;
	bool failed;                    /* the last try, which has been told of */
	int64_t due_ms;                 /* not dialled before */
};

struct member {
	uv_loop_t *loop;
	struct broker_opt opt;          /* of each life */
	struct broker_opt outer;        /* as given */
	struct broker_conf *conf;
	struct role role;
	bool begun;                     /* role_start() was called */
	struct broker *b;               /* NULL: between two lives */
	bool leads;                     /* role of the life that is, or is to be */
	bool ending;                    /* broker_stop() was called */
	enum { MEMBER_STAYS, MEMBER_TO_MASTER, MEMBER_TO_SLAVE } change; /* that role.h waits for */
	struct role_master to;          /* of the change */
	bool to_whole;                  /* ... and whether an epoch that the log knows goes on */
	bool registered, stopping;
	int rc;
	struct epoch_list epochs;
	int64_t log_end, slave_confirm;
	struct member_call call[MEMBER_CALLS];
	int calls, calls_open;
	char controllers[1024];         /* the texts that role_conf points into */
	uv_timer_t tick, soon;
	char addr[ROLE_ADDR];
	char stuck[200];
	int32_t said_code, said_to;     /* of the last refusal, for the log */
	int64_t said_ms;
	int closed;
};

/* member.c: act on what role.h wants. */
void member_run(struct member *m);

/* member_file.c */
int member_file_load(struct member *m, struct role_identity *id, struct mq_error *e);
int member_file_write_temp(struct member *m, int64_t id, const char *check, struct mq_error *e);
int member_file_write_identity(struct member *m, int64_t id, struct mq_error *e);
/* Has the machine not been started anew since this was asked last?  Then the log has all that was ever written to it. */
bool member_file_same_boot(struct member *m);
void member_file_forget_temp(struct member *m);

/* member_call.c */
void member_call_tick(struct member *m);        /* dial who is not connected */
void member_call_ask(struct member *m, const struct role_act *a);
void member_call_beat(struct member *m);
void member_call_stop(struct member *m);

#endif
