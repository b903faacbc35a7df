/* proc.h: who is it that calls: read from /proc, since the kernel tells a number only. */
#ifndef MQFS_PROC_H
#define MQFS_PROC_H

#include <sys/types.h>

/* The process of a thread; the number itself if it cannot be told. */
pid_t proc_of_thread(pid_t tid);

/* A file is closed by a process that goes on, or because the process ends: how does it end? */
enum proc_end {
	PROC_LIVES,
	PROC_EXITS,      /* with status 0 */
	PROC_FAILS,      /* with another status */
	PROC_KILLED,     /* by a signal */
	PROC_UNKNOWN,    /* in another namespace, or somebody else's */
};
enum proc_end proc_ending(pid_t pid);

#endif
