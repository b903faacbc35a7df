/* mq.h: what every part of mq speaks of: byte strings, errors, hosts and messages.
 *
 * PUBLIC.  The smallest of the three public headers; mqstore.h and mqclient.h build on it.
 *
 * Nothing declared here allocates.  A `struct mq_str` and every pointer inside a `struct mq_message` are borrowed views: they
 * live as long as the bytes they point into, which the function that hands them out says.  All functions may be called
 * from any thread.  Times are Unix milliseconds, integers are in host order. */
#ifndef MQ_H
#define MQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MQ_API __attribute__((visibility("default")))
#define MQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define MQ_VERSION "0.1.0"
/* What we call ourselves on the wire: the ordinal of V5_2_0 in the peer's MQVersion. */
#define MQ_PEER_VERSION 453
#define MQ_PEER_VERSION_NAME "V5_2_0"

/* ---- Byte strings ---------------------------------------------------------------------------------------------------- */

/* A view of `n` bytes; not NUL-terminated, may hold any byte.  p may be NULL when n is 0. */
struct mq_str {
	const char *p;
	size_t n;
};

#define MQ_STR(literal) ((struct mq_str){ (literal), sizeof(literal) - 1 })
#define MQ_STR_FMT "%.*s"
#define MQ_STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

/* ---- Errors ---------------------------------------------------------------------------------------------------------- */

/* Functions return 0 or a negative code: one of these, or -errno.  The same list makes code and text.
 *      name              code    text */
#define MQ_ERRORS(E) \
	E(MQ_EINVAL,      -10001, "invalid argument")                                                       \
	E(MQ_ENOTFOUND,   -10002, "not found")                                                              \
	E(MQ_ETOOBIG,     -10003, "too big")                                                                \
	E(MQ_EFULL,       -10004, "disk full: the store takes no more messages until there is room")        \
	E(MQ_EREADONLY,   -10005, "read only")                                                              \
	E(MQ_ECORRUPT,    -10006, "damaged data")                                                           \
	E(MQ_EPROTO,      -10007, "the peer broke the protocol")                                            \
	E(MQ_ETIMEOUT,    -10008, "no answer in time")                                                      \
	E(MQ_ECLOSED,     -10009, "connection closed")                                                      \
	E(MQ_EREFUSED,    -10010, "refused by the server")                                                  \
	E(MQ_EBUSY,       -10011, "in use by another process")                                              \
	E(MQ_EBROKEN,     -10012, "the store stopped taking writes after an error of the disk")             \
	E(MQ_ENOROUTE,    -10013, "no broker serves this topic")                                            \
	E(MQ_EMISMATCH,   -10014, "file size differs from the configured size")                             \
	E(MQ_ECANCELLED,  -10015, "given up")                                                               \
	E(MQ_EUNSUPPORTED,-10016, "not supported here")

enum mq_err {
	MQ_OK = 0,
#define MQ_ERROR_ENUM(name, code, text) name = code,
	MQ_ERRORS(MQ_ERROR_ENUM)
#undef MQ_ERROR_ENUM
};

/* A failure told in words: what was wrong with which thing, and what would be right.  `code` is the return code;
 * `response` is the peer's response code when code is MQ_EREFUSED, else 0.  `text` is one line without a full stop. */
struct mq_error {
	int code;
	int response;
	char text[500];
};

/* Text of a code of ours, of an errno (negative or positive), or of libuv.  Static, never NULL. */
MQ_API const char *mq_strerror(int code);

/* ---- Hosts ----------------------------------------------------------------------------------------------------------- */

struct mq_host {
	uint8_t ip[16]; /* network order; the first `len` bytes count */
	uint8_t len;    /* 4 or 16; 0 = unset, written as 0.0.0.0 */
	int32_t port;
};

/* "10.0.0.1:10911" or "[::1]:10911" into `out` (at least MQ_HOST_TEXT bytes).  Returns out. */
#define MQ_HOST_TEXT 64
MQ_API char *mq_host_text(const struct mq_host *h, char *out);

/* ---- Messages -------------------------------------------------------------------------------------------------------- */

/* Bits of sys_flag (peer: MessageSysFlag). */
enum {
	MQ_SYS_COMPRESSED = 0x001,
	MQ_SYS_MULTI_TAGS = 0x002,
	MQ_SYS_TRAN_MASK = 0x00c, /* 0 none, 4 prepared, 8 commit, 12 rollback */
	MQ_SYS_TRAN_PREPARED = 0x004,
	MQ_SYS_TRAN_COMMIT = 0x008,
	MQ_SYS_TRAN_ROLLBACK = 0x00c,
	MQ_SYS_BORN_V6 = 0x010,
	MQ_SYS_STORE_V6 = 0x020,
	MQ_SYS_NEED_UNWRAP = 0x040,
	MQ_SYS_INNER_BATCH = 0x080,
	MQ_SYS_COMPRESS_TYPE = 0x700, /* 0 = zlib, 0x100 = LZ4 frame, 0x200 = zstd, 0x300 = zlib */
	MQ_SYS_COMPRESS_LZ4 = 0x100,
	MQ_SYS_COMPRESS_ZSTD = 0x200,
	MQ_SYS_COMPRESS_ZLIB = 0x300,
};

/* Limits, as the peer has them. */
enum {
	MQ_BODY_MAX = 4 * 1024 * 1024,  /* default of maxMessageSize */
	MQ_PROPS_MAX = 32767,           /* int16 on disk */
	MQ_TOPIC_MAX = 127,             /* retry topics: 255 */
	MQ_GROUP_MAX = 255,
};

/* One message: what is stored, what a pull brings, what is sent.  Every view is borrowed.
 * When a message is sent only topic, queue_id (-1 = choose), flag, body and props count. */
struct mq_message {
	struct mq_str topic;
	struct mq_str body;           /* as stored: compressed if sys_flag says so */
	struct mq_str props;          /* name 0x01 value 0x02 ..., see mq_prop_get() */
	int32_t queue_id;
	int32_t flag;                 /* the application's own */
	int32_t sys_flag;
	int32_t reconsume_times;
	int64_t queue_off;            /* number in its queue */
	int64_t log_off;              /* byte offset in the commit log */
	int64_t born_ms, store_ms;    /* clock of the producer; of the broker */
	int64_t prepared_off;         /* log offset of the half message, or 0 */
	struct mq_host born_host, store_host;
	int32_t size;                 /* bytes of the whole record */
	uint32_t body_crc;
};

/* Value of property `name`, or an empty view with p == NULL.  For duplicates the last wins, as with the peer; an entry
 * with an empty value counts as absent. */
MQ_API struct mq_str mq_prop_get(struct mq_str props, const char *name);

/* Walk all properties in order.  Start with *pos = 0; returns false at the end. */
MQ_API bool mq_prop_next(struct mq_str props, size_t *pos, struct mq_str *name, struct mq_str *value);

/* Offset id (upper-case hex of store host and log offset, 32 or 56 characters) into out; returns its length. */
#define MQ_ID_TEXT 57
MQ_API size_t mq_offset_id(const struct mq_host *store_host, int64_t log_off, char out[MQ_ID_TEXT]);

/* The reverse.  Returns 0 or MQ_EINVAL. */
MQ_API int mq_offset_id_parse(struct mq_str id, struct mq_host *store_host, int64_t *log_off);

/* Decode one record (as in the commit log or a pull answer) at p.  On success returns its size (> 0) and fills m with
 * views into p.  Returns 0 if n bytes do not hold the whole record, MQ_ECORRUPT if this is no record; with check_crc also
 * when the body does not match its checksum. */
MQ_API int32_t mq_message_decode(const void *p, size_t n, bool check_crc, struct mq_message *m);

/* The body in plain form.  An uncompressed body is returned as the view it is; else it is inflated into *scratch (malloc'd,
 * grown with realloc, *scratch_cap its size; the caller frees it) and the view is good until the next call with it.
 * Returns 0, MQ_ECORRUPT, MQ_ETOOBIG beyond `max` bytes, or MQ_EUNSUPPORTED for an unknown kind of compression. */
MQ_API int mq_message_body(const struct mq_message *m, size_t max, void **scratch, size_t *scratch_cap,
                           struct mq_str *body);

/* Checks of names: one rule at every door (wire, tool, mount).  Return 0 or MQ_EINVAL with the reason in `why`
 * (may be NULL).  compat: 5.2.0 allows [%|a-zA-Z0-9_-] and 127 characters, 255 for groups and retry topics; here dead letter
 * topics may have 255 too, or long groups had none. */
MQ_API int mq_check_topic(struct mq_str topic, struct mq_error *why);
MQ_API int mq_check_group(struct mq_str group, struct mq_error *why);

#ifdef __cplusplus
}
#endif
#endif
