/* ha_agree.h: before a slave asks for bytes: is what it has the same as what the master has, and if not, where do they part?
 *
 * The default protocol has no word for this: a slave that is ahead, or has other bytes at the same offsets, would go on as if nothing
 * was.  So the master is asked as any client may ask it, which a Java master answers too: for its configuration (26), for the
 * ends of its log (28), and for the record at an offset (33), which is compared byte by byte with ours.  Records hold their
 * offset, queue offset, times and hosts; when one is the same at the same offset, all before it was written by the same master. */
#ifndef BROKER_HA_AGREE_H
#define BROKER_HA_AGREE_H

#include <net/conn.h>

struct broker;
struct ha_agree;

struct ha_agreed {
	enum {
		HA_AGREE_FOLLOW,        /* what is here is there */
		HA_AGREE_CUT,           /* what is behind `end` is not there; the record before begins at `last` */
		HA_AGREE_TOO_OLD,       /* what comes next is no longer there: nothing of this log can stay */
		HA_AGREE_FAILED,        /* could not be found out, or must not be: why */
	} what;
	int64_t begin;                  /* FOLLOW with an empty log: it begins here */
	int64_t end, last;
	int64_t master_min, master_max;
	char why[400];
};

/* Ask over c; done(arg, r) when it is found out, never before return.  *r is good until done returns. */
struct ha_agree *ha_agree_start(struct broker *b, struct conn *c, void (*done)(void *arg, const struct ha_agreed *r), void *arg);
void ha_agree_cancel(struct ha_agree *a);       /* done does not come */

#endif
