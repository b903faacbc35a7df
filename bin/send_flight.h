/* send_flight.h: sends that are under way, in the order of the input.
 *
 * Promises:
 *   F1  What `settled` names is a place in the input before which every record was accepted by a broker, or refused and reported.
 *   F2  -v lines come in the order of the input.
 *   F3  With `failed` a message that was not accepted stands there as a JSON line: mq-send -J - FILE sends it again. */
#ifndef BIN_SEND_FLIGHT_H
#define BIN_SEND_FLIGHT_H

#include "bytes.h"
#include "compose.h"
#include "record_out.h"
#include "seal.h"
#include "send_input.h"
#include "send_txn.h"

#include <mqclient.h>

#define FLIGHT_BATCH_MAX 4096

/* Records that leave together. */
struct flight_batch {
	struct bytes bytes;               /* bodies and properties, copied: the input buffer moves on */
	size_t n, max;
	size_t body_bytes;
	struct flight_part {
		size_t body, body_n, props, props_n;
		int32_t flag;
		struct input_place start; /* before its record */
	} part[FLIGHT_BATCH_MAX];
	char topic[256];
	char broker[256];
	int32_t queue_id;                 /* -1 = choose */
	struct bytes sharding;
	bool has_sharding;
	bool alone;                       /* nothing may go with it */
	char (*ids)[MQ_ID_TEXT];          /* with verbose */
};

enum flight_state { FLIGHT_UNDER_WAY, FLIGHT_ACCEPTED, FLIGHT_LOST, FLIGHT_REPORTED };

struct flight_send {
	struct flight *f;
	enum flight_state state;
	struct input_place start;
	int64_t last;                     /* number of its last record */
	size_t n, bytes;
	struct bytes again;               /* as JSON lines, for `failed` */
	struct bytes reply;               /* as it is printed */
	struct send_txn_job *job;         /* of a transaction */
	char (*ids)[MQ_ID_TEXT];
	const char *broker;
	int32_t queue_id;
	int64_t queue_off;                /* of the first, -1 unknown */
};

struct flight {
	struct mqclient *client;
	const struct send_input *input;
	struct mqclient_send_opt opt;
	bool verbose, topic_per_record;
	int failed_fd;                    /* -1 = none */
	int max_sends;
	bool request;                     /* each is a request; its reply is printed */
	struct record_out replies;        /* how */
	struct send_txn *txn;             /* each is a transaction; NULL = none is */
	struct seal *seal;                /* before they leave; NULL = as they are */
	/* Results. */
	int64_t accepted, refused, lost;  /* messages */
	int64_t rolled_back, undecided;   /* transactions */
	int64_t late[3];                  /* accepted, but with a status of 10, 11, 12 */
	int status;                       /* exit status so far */
	bool stop;                        /* a failure that ends the program */
	/* --- own matters below --- */
	struct flight_send **ring;
	size_t head, n, cap;
	int under_way;
	size_t bytes;
	char last_why[500];               /* told last */
	struct bytes out;                 /* -v lines that wait for their turn */
};

void flight_init(struct flight *f);
void flight_free(struct flight *f);

/* Room for another send? */
bool flight_room(const struct flight *f);
/* Send what the batch holds (n > 0), and empty it. */
void flight_send(struct flight *f, struct flight_batch *b);

/* A record was refused before it was sent. */
void flight_refuse(struct flight *f, int file, int64_t number, const struct mq_error *err);
/* Raise the exit status: 3 wins over 4 over the rest. */
void flight_status(struct flight *f, int status);

/* F1.  `reading` is where the input stands. */
struct input_place flight_settled(const struct flight *f, struct input_place reading);
/* Records beyond the settled place that were accepted, too: cb(first, last) for each run. */
void flight_beyond(const struct flight *f, void (*cb)(void *arg, int file, int64_t first, int64_t last), void *arg);

/* At the end: print what stood behind a failed one. */
void flight_finish(struct flight *f);

#endif
