/* mode_table.h: which group pops which topic rather than pulls it: config/messageRequestMode.json. */
#ifndef BROKER_MODE_TABLE_H
#define BROKER_MODE_TABLE_H

#include "hash.h"
#include "table_file.h"
#include <codec/body_pop.h>

struct mode {
	UT_hash_handle hh;              /* by key */
	bool pop;
	int32_t share;                  /* pop: members whose queues a member reads beside its own; <= 0: all queues */
	uint32_t topic_n, key_n;
	char key[];                     /* topic@group */
};

struct mode_table {
	struct broker *b;
	struct mode *all;               /* uthash */
	struct table_file file;
};

int mode_table_open(struct mode_table **t, struct broker *b, struct mq_error *e);
void mode_table_free(struct mode_table *t);

/* What was set, or else the default of the configuration; retry topics are always pulled. */
struct body_mode mode_table_get(const struct mode_table *t, struct mq_str topic, struct mq_str group);
/* 0, or MQ_EINVAL with the reason. */
int mode_table_set(struct mode_table *t, const struct body_mode *m, struct mq_error *e);
/* A slave's: the master's in the place of these. */
void mode_table_replace(struct mode_table *t, const struct body_modes *to);
void mode_table_write(struct mode_table *t, struct buf *out);   /* {"messageRequestModeMap"}: 402 and the file */

#endif
