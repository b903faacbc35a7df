/* server.h: listen, accept, close the idle. */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include "conn.h"

struct server;

struct server_opt {
	const char *bind;           /* "0.0.0.0", "::", ... ; NULL with unix_path */
	int port;                   /* 0 = any */
	const char *unix_path;      /* listen here instead, mode 0600; a stale socket file is replaced */
	int idle_ms;                /* close a connection without traffic; 0 = never.  Peer: 120,000 */
	int backlog;                /* 0 = 1024 */
	int max_conns;              /* 0 = as descriptors allow; beyond it, accepted and closed at once */
};

struct server *server_listen(uv_loop_t *loop, const struct server_opt *opt, const struct conn_ops *ops, void *owner,
                             struct mq_error *e);
int server_port(const struct server *s);
size_t server_conns(const struct server *s);
/* Every live connection. */
void server_each(struct server *s, void (*cb)(void *arg, struct conn *c), void *arg);
/* Stop accepting; close all connections after what is written has left (at most grace_ms); when each has had its closed(), free
 * the server and call done(arg). */
void server_stop(struct server *s, int grace_ms, void (*done)(void *arg), void *arg);

/* "host:port", "[v6]:port": split.  0 or MQ_EINVAL.  host: 253 characters are a DNS name's most. */
enum { ADDR_HOST_MAX = 256 };
int addr_split(const char *addr, char host[ADDR_HOST_MAX], int *port, struct mq_error *e);
/* The first address of this machine that others can reach, else 127.0.0.1 (brokerIP1's default). */
void addr_local(char *out, size_t cap);

#endif
