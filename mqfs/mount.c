/* mount.c: see mount.h.  /proc/self/mountinfo: proc_pid_mountinfo(5); blanks in paths are written in octal. */
#include "mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static int set(struct mq_error *err, int code, const char *dir, const char *text)
{
	err->code = code;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "%.300s: %s", dir, text);
	return code;
}

static void decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* The newest mount at dir, or the one with the number: its number; *fuse: it is one of ours by type. */
static int64_t find(const char *dir, int64_t number, bool *fuse)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	int64_t found = -1;

	while (f && getline(&line, &cap, f) > 0) {
		char place[4096];
		long long id;
		const char *type = strstr(line, " - ");
		if (sscanf(line, "%lld %*s %*s %*s %4095s", &id, place) != 2)
			continue;
		decode(place);
		if (dir ? strcmp(place, dir) != 0 : id != number)
			continue;
		found = id;
		*fuse = type && strncmp(type, " - fuse.mqfs ", 13) == 0;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

int64_t mount_id(const char *dir)
{
	bool fuse;

	return find(dir, -1, &fuse);
}

bool mount_is_there(int64_t id)
{
	bool fuse;

	return find(NULL, id, &fuse) >= 0;
}

/* Root may; others need the helper of libfuse, which may. */
static int unmount(const char *dir)
{
	int status;
	pid_t pid;

	if (umount2(dir, MNT_DETACH) == 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		execlp("fusermount3", "fusermount3", "-u", "-z", "-q", dir, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int mount_prepare(const char *dir, struct mq_error *err)
{
	struct statfs fs;
	struct stat st;
	bool fuse = false;
	int64_t id;

	/* The kernel may remember what a dead mount said of its directory, but not what statfs asks.  Several may lie on each other. */
	for (int i = 0; statfs(dir, &fs) < 0 || stat(dir, &st) < 0; i++) {
		if (errno != ENOTCONN)
			return set(err, -errno, dir, strerror(errno));
		if (i == 16 || unmount(dir) < 0)
			return set(err, MQ_EBUSY, dir, "a mount whose program has died cannot be taken away");
	}
	if (!S_ISDIR(st.st_mode))
		return set(err, -ENOTDIR, dir, "a directory is wanted");
	id = find(dir, -1, &fuse);
	return id >= 0 && fuse ? set(err, MQ_EBUSY, dir, "an mqfs that lives is mounted there") : 0;
}
