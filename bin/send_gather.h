/* send_gather.h: from the records of the input to batches that may share a request. */
#ifndef BIN_SEND_GATHER_H
#define BIN_SEND_GATHER_H

#include "compose.h"
#include "send_flight.h"
#include "send_input.h"
#include "send_resume.h"

struct send_gather {
	struct send_input *input;
	struct compose *compose;
	struct flight *flight;          /* is told what is refused */
	struct send_resume *resume;
	enum frame_mode framing;
	size_t batch_max;               /* messages */
	bool skip_empty, strict;
	bool alone;                     /* each in a request of its own */
	bool with_id;                   /* each gets its unique id here */
	bool ended;                     /* the input has no more */
	/* --- own matters below --- */
	struct composed next;           /* a message that did not fit into the last batch */
	struct input_place next_at;
	char next_id[MQ_ID_TEXT];
	bool have_next;
};

/* As many messages as are there now, may go together and are at most max; b is empty before. */
void send_gather(struct send_gather *g, struct flight_batch *b, size_t max);
/* All was handed out. */
static inline bool send_gather_done(const struct send_gather *g) { return g->ended && !g->have_next; }
/* Before the first record that was not handed out. */
struct input_place send_gather_place(const struct send_gather *g);

#endif
