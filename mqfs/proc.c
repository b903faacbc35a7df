/* proc.c: see proc.h.  Fields of /proc/PID/stat are counted as in proc(5). */
#include "proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_STATE = 3, FIELD_FLAGS = 9, FIELD_EXIT_CODE = 52, FLAG_EXITING = 4, SIGNAL_BITS = 0x7f };

static ssize_t read_file(pid_t pid, const char *name, char *out, size_t cap)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, out, cap - 1);
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

pid_t proc_of_thread(pid_t tid)
{
	char text[2048], *p;

	if (tid <= 0 || read_file(tid, "status", text, sizeof(text)) <= 0)
		return tid;
	p = strstr(text, "\nTgid:");
	return p ? (pid_t)strtol(p + 6, NULL, 10) : tid;
}

enum proc_end proc_ending(pid_t pid)
{
	char text[2048], *p;
	long flags = 0, code = 0;

	if (pid <= 0 || read_file(pid, "stat", text, sizeof(text)) <= 0)
		return PROC_UNKNOWN;
	/* The name of the program may hold anything, also blanks and ')'. */
	p = strrchr(text, ')');
	for (int field = FIELD_STATE; p && field <= FIELD_EXIT_CODE; field++) {
		p = strchr(p + 1, ' ');
		if (p && field == FIELD_FLAGS)
			flags = strtol(p, NULL, 10);
		if (p && field == FIELD_EXIT_CODE)
			code = strtol(p, NULL, 10);
	}
	if (!p)
		return PROC_UNKNOWN;
	if (!(flags & FLAG_EXITING))
		return PROC_LIVES;
	return code & SIGNAL_BITS ? PROC_KILLED : code ? PROC_FAILS : PROC_EXITS;
}
