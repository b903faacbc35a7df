/* fault.h: make the n-th file system call of the code under test go wrong.
 *
 * Loop n from 1 until fault_fired() says that nothing failed any more: then every place has been tried. */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

#include <stdbool.h>

enum fault_kind {
	FAULT_ONCE,     /* this call fails, later ones work */
	FAULT_CRASH,    /* this call and all later ones fail: nothing more reaches the disk */
	FAULT_TORN,     /* as CRASH, but a write of several bytes puts half of them down first */
	FAULT_SHORT,    /* if this call is a pread or pwrite of several bytes it moves half of them and says so; nothing fails */
};

/* Count from here on; call number nth (1 = the next) fails with -error.  nth 0 = only count. */
void fault_set(int nth, int error, enum fault_kind kind);
void fault_off(void);           /* the real table again */
bool fault_fired(void);         /* has the chosen call been made? */
int fault_calls(void);          /* made since fault_set() */
/* Syncs are counted and may fail, but do nothing: for loops that look at what files hold and not at the disk. */
void fault_without_syncs(void);
const char *fault_name(void);   /* of the call that failed: "fsync" */

#endif
