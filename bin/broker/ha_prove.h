/* ha_prove.h: a mutual proof (ha_proof.h) over a connection, within HA_PROVE_MS.  On the loop's thread. */
#ifndef BROKER_HA_PROVE_H
#define BROKER_HA_PROVE_H

#include "ha_proof.h"
#include <net/stream.h>

enum { HA_PROVE_MS = 5000 };

struct ha_prove;

/* s is the proof's until done() is called, never before return, or until it is cancelled; then it is the caller's again, who gives it
 * operations and an owner (stream_hand_over()) or closes it.  rc: 0, or why not: MQ_EPROTO, MQ_ETIMEOUT, MQ_ECLOSED, -errno. */
struct ha_prove *ha_prove_start(uv_loop_t *loop, struct stream *s, enum ha_proof_side side, const struct ha_secret *secret,
                                void (*done)(void *arg, int rc, const char *why), void *arg);
void ha_prove_cancel(struct ha_prove *p);       /* done() does not come; NULL is allowed */

#endif
