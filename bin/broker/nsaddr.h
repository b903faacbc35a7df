/* nsaddr.h: which name servers there are: namesrvAddr, or what an http address server says (asked again and again). */
#ifndef BROKER_NSADDR_H
#define BROKER_NSADDR_H

#include <mq.h>

struct broker;
struct nsaddr;

/* changed(arg) when the list is another one; also before nsaddr_new() returns, if namesrvAddr has one. */
struct nsaddr *nsaddr_new(struct broker *b, void (*changed)(void *arg, char *const *addr, size_t n), void *arg);
void nsaddr_reload(struct nsaddr *a);           /* configuration may have changed */
void nsaddr_stop(struct nsaddr *a, void (*done)(void *arg), void *arg);
void nsaddr_free(struct nsaddr *a);             /* ends with the next turns of the loop */

#endif
