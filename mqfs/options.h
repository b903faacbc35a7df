/* options.h: what the command line, or fstab, says about the mount. */
#ifndef MQFS_OPTIONS_H
#define MQFS_OPTIONS_H

#include <mqclient.h>
#include <sys/types.h>

struct options {
	char addr[4096];
	char *mountpoint;               /* absolute */
	bool background, admin, read_only, system, no_streams, allow_other, debug;
	int64_t list;                   /* so many messages of a queue are listed */
	int64_t timeout_ms;             /* of every call that needs an answer */
	mode_t umask;
	uid_t uid;
	gid_t gid;
	int ready_fd;                   /* -1 = none */
	char kernel[1024];              /* mount options that are the kernel's, or libfuse's: "nodev,noatime" */
};

extern struct options options;

/* Ends the program on wrong usage. */
void options_parse(int argc, char **argv);

#endif
