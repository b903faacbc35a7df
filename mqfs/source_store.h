/* source_store.h: a store directory as a source, without a server and without changing a byte of it. */
#ifndef MQFS_SOURCE_STORE_H
#define MQFS_SOURCE_STORE_H

#include "source.h"

/* The name of the broker of every queue: as mq-recv and mq-admin call it. */
#define SOURCE_STORE_BROKER "store"

extern const struct source source_store;

int source_store_open(const char *dir, uv_loop_t *loop, struct mq_error *err);

#endif
