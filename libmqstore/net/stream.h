/* stream.h: a connection of bare bytes, for a protocol that is not made of frames: the replication of the log.
 *
 * The owner reads and writes itself, as much as the socket takes, when it is told that it can.  Nothing is buffered here, so bytes
 * can come straight into a file's map and leave straight from a file.  All on the loop's thread; clock_now_ms() is fresh in
 * every callback.  The process ignores SIGPIPE. */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <mq.h>
#include <sys/uio.h>
#include <uv.h>

struct stream;
struct stream_server;

struct stream_ops {
	/* Of a dial: 0 = connected; else why not, and the stream is to be closed. */
	void (*opened)(struct stream *s, int rc);
	void (*readable)(struct stream *s);
	void (*writable)(struct stream *s);     /* while stream_want_write() holds */
};

/* Connect to "host:port" or "[v6]:port"; opened() follows, never before return.  NULL with e: no address. */
struct stream *stream_dial(uv_loop_t *loop, const char *addr, int timeout_ms, const struct stream_ops *ops, void *owner,
                           struct mq_error *e);
/* No callback comes any more; the memory goes with the next turns of the loop. */
void stream_close(struct stream *s);

void *stream_owner(const struct stream *s);
void stream_set_owner(struct stream *s, void *owner);
/* From now on somebody else is called.  Of what was said with stream_want_write() and stream_pause() nothing changes. */
void stream_hand_over(struct stream *s, const struct stream_ops *ops, void *owner);
const struct mq_host *stream_peer(const struct stream *s);
const char *stream_name(const struct stream *s);        /* "1.2.3.4:567", or what was dialled */

/* Bytes read or written; 0 = none now; MQ_ECLOSED = the peer has ended; -errno. */
ssize_t stream_recv(struct stream *s, const struct iovec *v, int n);
ssize_t stream_send(struct stream *s, const struct iovec *v, int n, bool more_follows);
ssize_t stream_send_file(struct stream *s, int fd, off_t off, size_t n);
void stream_want_write(struct stream *s, bool on);
void stream_pause(struct stream *s, bool on);           /* no readable() */

/* Listen.  accepted() has the new stream, its owner is still that of the server; it may close it.  Out of descriptors is a state:
 * accepting pauses and goes on by itself.  NULL with e. */
struct stream_server *stream_listen(uv_loop_t *loop, const char *bind_to, int port, int backlog, const struct stream_ops *ops,
                                    void (*accepted)(void *owner, struct stream *s), void *owner, struct mq_error *e);
int stream_server_port(const struct stream_server *s);
void stream_server_close(struct stream_server *s);      /* streams that came through it stay */

#endif
