/* private.h: what the name server owns, for the files of this folder. */
#ifndef NAMESRV_PRIVATE_H
#define NAMESRV_PRIVATE_H

#include "kv_table.h"
#include "namesrv.h"
#include "route_table.h"

struct namesrv {
	uv_loop_t *loop;
	struct namesrv_opt opt;
	const struct namesrv_conf *conf;
	struct conf *rows;              /* NULL: no requests about the configuration */
	struct route_table *routes;
	struct kv_table *kv;
	struct server *server;          /* NULL: part of another program */
	uv_timer_t scan;
	int64_t start_ms;               /* monotonic */
	uint64_t requests;

	bool stopping;
	int closing;                    /* parts that have not yet reported their end */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

#endif
