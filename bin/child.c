/* child.c: see child.h.
 *
 * A command of plain words is executed directly, else /bin/sh runs it.  Input goes through an anonymous file, not a pipe: a command
 * need not read it, and nobody waits for a slow one to do so.  Output that is wanted comes the same way. */
#include "child.h"
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- Can it be started? ----------------------------------------------------------------------------------------------- */

static bool plain_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_./,:+@%-", c));
}

/* How many leading characters make up plain words and blanks; *word is the length of the first. */
static size_t plain_part(const char *s, size_t *word)
{
	size_t i = 0;

	while (plain_char(s[i]))
		i++;
	*word = i;
	while (plain_char(s[i]) || s[i] == ' ' || s[i] == '\t')
		i++;
	return i;
}

/* 0: a file that can be executed; 126: something else; 127: nothing there. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno == EACCES ? 126 : 127;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : 126;
}

static int in_path(const char *word)
{
	const char *dirs = getenv("PATH"), *end;
	int best = 127;

	if (strchr(word, '/'))
		return executable(word);
	if (!dirs)
		dirs = "/usr/local/bin:/bin:/usr/bin";
	for (; best != 0 && dirs; dirs = *end ? end + 1 : NULL) {
		char *path;
		int rc;

		end = strchrnul(dirs, ':');
		if (asprintf(&path, "%.*s/%s", end == dirs ? 1 : (int)(end - dirs), end == dirs ? "." : dirs, word) < 0)
			cli_die(CLI_SYSTEM, "out of memory");
		rc = executable(path);
		if (rc < best)
			best = rc;
		free(path);
	}
	return best;
}

/* Exit status of /bin/sh with these arguments; quiet: its output goes nowhere. */
static int shell(const char *const *args, bool quiet)
{
	int status, null;
	pid_t pid = fork();

	if (pid < 0)
		cli_die(CLI_SYSTEM, "fork: %s", strerror(errno));
	if (pid == 0) {
		null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		if (quiet) {
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
		execv("/bin/sh", (char *const *)args);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char **split(const char *command)
{
	char **argv = calloc(strlen(command) / 2 + 2, sizeof(*argv)), *words = strdup(command), *save = NULL;
	size_t n = 0;

	if (!argv || !words)
		cli_die(CLI_SYSTEM, "out of memory");
	for (char *w = strtok_r(words, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		argv[n++] = w;
	return argv;
}

void command_open(struct command *c, const char *opt, const char *command)
{
	size_t plain, len;
	char *word;
	int rc;

	command += strspn(command, " \t\n");
	*c = (struct command){ .opt = opt, .text = command };
	if (!*command)
		cli_usage_error("%s: the command is empty", opt);
	plain = plain_part(command, &len);
	word = strndup(command, len);
	if (!word)
		cli_die(CLI_SYSTEM, "out of memory");
	rc = len ? in_path(word) : 0;
	if (rc != 0 && !strchr(word, '/') &&
	    shell((const char *const[]){ "sh", "-c", "command -v -- \"$1\"", "sh", word, NULL }, true) == 0)
		plain = 0; /* a builtin of the shell; or a word of its language */
	else if (rc != 0 && command[len] != '=')
		cli_die(rc, "%s: '%s': %s", opt, word, rc == 126 ? "cannot be executed" : "command not found");
	free(word);
	if (command[plain] == '\0') {
		c->argv = split(command);
		return;
	}
	if (shell((const char *const[]){ "sh", "-n", "-c", command, NULL }, false) != 0)
		cli_usage_error("%s: '%s': the shell does not understand this", opt, command);
}

void command_close(struct command *c)
{
	if (c->argv) {
		free(c->argv[0]);
		free(c->argv);
	}
	c->argv = NULL;
}

/* ---- What the command gets -------------------------------------------------------------------------------------------- */

void child_env_str(struct child_env *e, const char *name, struct mq_str value)
{
	if (value.n && memchr(value.p, 0, value.n))
		return; /* no environment can hold it */
	bytes_str(&e->text, name);
	bytes_byte(&e->text, '=');
	bytes_add(&e->text, value.p, value.n);
	bytes_byte(&e->text, '\0');
	e->n++;
}

void child_env_int(struct child_env *e, const char *name, int64_t v)
{
	bytes_str(&e->text, name);
	bytes_byte(&e->text, '=');
	bytes_int(&e->text, v);
	bytes_byte(&e->text, '\0');
	e->n++;
}

/* MQ_PROP_<name>, what cannot be part of a shell's variable as '_'. */
static void env_props(struct child_env *e, struct mq_str props)
{
	struct bytes name = { 0 };
	struct mq_str n, v;
	size_t pos = 0;

	while (mq_prop_next(props, &pos, &n, &v)) {
		name.n = 0;
		bytes_str(&name, "MQ_PROP_");
		for (size_t i = 0; i < n.n; i++)
			bytes_byte(&name, isalnum((unsigned char)n.p[i]) ? n.p[i] : '_');
		bytes_byte(&name, '\0');
		child_env_str(e, name.p, v);
	}
	bytes_free(&name);
}

void child_env_message(struct child_env *e, const struct shown *s)
{
	const struct mq_message *m = s->m;
	struct bytes text = { 0 };

	child_env_str(e, "MQ_TOPIC", m->topic);
	bytes_str(&text, s->broker);
	bytes_byte(&text, ':');
	bytes_int(&text, m->queue_id);
	child_env_str(e, "MQ_QUEUE", bytes_view(&text));
	child_env_int(e, "MQ_OFFSET", m->queue_off);
	text.n = 0;
	record_out_id(&text, m);
	child_env_str(e, "MQ_ID", bytes_view(&text));
	bytes_free(&text);
	child_env_str(e, "MQ_KEYS", mq_prop_get(m->props, "KEYS"));
	child_env_str(e, "MQ_TAGS", mq_prop_get(m->props, "TAGS"));
	child_env_int(e, "MQ_SIZE", (int64_t)s->body.n);
	child_env_int(e, "MQ_BORN", m->born_ms);
	child_env_int(e, "MQ_STORED", m->store_ms);
	child_env_int(e, "MQ_RETRIES", m->reconsume_times);
	env_props(e, m->props);
}

/* Variables that a command of another mq-recv was given are not handed on. */
static bool ours(const char *var)
{
	static const char *const names[] = { "MQ_TOPIC=", "MQ_QUEUE=", "MQ_OFFSET=", "MQ_ID=", "MQ_KEYS=", "MQ_TAGS=", "MQ_SIZE=",
	                                     "MQ_BORN=", "MQ_STORED=", "MQ_RETRIES=", "MQ_ATTEMPT=", "MQ_PROP_", NULL };

	for (const char *const *n = names; *n; n++)
		if (strncmp(var, *n, strlen(*n)) == 0)
			return true;
	return false;
}

static char **environment(const struct child_env *e)
{
	size_t n = 0;
	char **env;
	const char *p = e->text.p;

	while (environ[n])
		n++;
	env = calloc(n + e->n + 1, sizeof(*env));
	if (!env)
		cli_die(CLI_SYSTEM, "out of memory");
	n = 0;
	for (char **v = environ; *v; v++)
		if (!ours(*v))
			env[n++] = *v;
	for (size_t i = 0; i < e->n; i++) {
		env[n++] = (char *)p;
		p += strlen(p) + 1;
	}
	return env;
}

/* Bytes as a file, at its beginning; or -errno. */
static int input_file(struct mq_str s)
{
	int fd = memfd_create("body", MFD_CLOEXEC), rc;
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < s.n) {
		ssize_t k = write(fd, s.p + done, s.n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			goto failed;
		done += (size_t)k;
	}
	if (lseek(fd, 0, SEEK_SET) == 0)
		return fd;
failed:
	rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

/* What the command wrote: at most CHILD_OUTPUT_MAX bytes; more is a failure. */
static bool read_output(int fd, struct bytes *out)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size > CHILD_OUTPUT_MAX)
		return false;
	while ((off_t)out->n < st.st_size) {
		ssize_t k = pread(fd, bytes_room(out, (size_t)st.st_size - out->n), (size_t)st.st_size - out->n, (off_t)out->n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		out->n += (size_t)k;
	}
	return true;
}

/* ---- Running ---------------------------------------------------------------------------------------------------------- */

struct child {
	uv_process_t process;
	uv_timer_t timer;
	int open;                       /* handles that are not closed */
	int output_fd;                  /* -1 = not captured */
	bool timed_out;
	child_done *done;
	void *arg;
};

static void child_free(struct child *c)
{
	if (c->output_fd >= 0)
		close(c->output_fd);
	free(c);
}

static void on_closed(uv_handle_t *h)
{
	struct child *c = h->data;

	if (--c->open == 0)
		child_free(c);
}

static void on_exit_status(uv_process_t *p, int64_t status, int sig)
{
	struct child *c = p->data;
	struct child_end end = { .code = sig ? -1 : (int)status, .sig = sig, .timed_out = c->timed_out };
	struct bytes out = { 0 };

	if (c->timed_out)
		snprintf(end.why, sizeof(end.why), "killed, it took too long");
	else if (sig)
		snprintf(end.why, sizeof(end.why), "killed by signal %d", sig);
	else
		snprintf(end.why, sizeof(end.why), "exit code %" PRId64, status);
	if (c->output_fd >= 0 && !read_output(c->output_fd, &out)) {
		end.code = -1;
		snprintf(end.why, sizeof(end.why), "more than %d bytes of output", CHILD_OUTPUT_MAX);
		out.n = 0;
	}
	end.output = bytes_view(&out);
	uv_close((uv_handle_t *)&c->timer, on_closed);
	uv_close((uv_handle_t *)p, on_closed);
	c->done(c->arg, &end);
	bytes_free(&out);
}

/* It is asked to end, and two seconds later it has to. */
static void on_too_long(uv_timer_t *t)
{
	struct child *c = t->data;

	uv_process_kill(&c->process, c->timed_out ? SIGKILL : SIGTERM);
	c->timed_out = true;
	uv_timer_start(t, on_too_long, 2000, 0);
}

int child_start(uv_loop_t *loop, const struct command *cmd, const struct child_env *env, struct mq_str input, bool capture,
                int64_t timeout_ms, child_done *done, void *arg)
{
	char *sh_argv[] = { "sh", "-c", (char *)cmd->text, NULL };
	uv_stdio_container_t io[3] = { { .flags = UV_INHERIT_FD },
	                               { .flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO },
	                               { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO } };
	uv_process_options_t opt = { .exit_cb = on_exit_status, .stdio = io, .stdio_count = 3 };
	struct child *c = calloc(1, sizeof(*c));
	int fd = input_file(input), rc;

	if (!c)
		cli_die(CLI_SYSTEM, "out of memory");
	c->output_fd = capture ? memfd_create("output", MFD_CLOEXEC) : -1;
	if (fd < 0 || (capture && c->output_fd < 0)) {
		rc = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		child_free(c);
		return rc;
	}
	c->done = done;
	c->arg = arg;
	c->process.data = c->timer.data = c;
	io[0].data.fd = fd;
	if (capture)
		io[1].data.fd = c->output_fd;
	opt.args = cmd->argv ? cmd->argv : sh_argv;
	opt.file = cmd->argv ? cmd->argv[0] : "/bin/sh";
	opt.env = environment(env);
	rc = uv_spawn(loop, &c->process, &opt);
	free(opt.env);
	close(fd);
	c->open = rc == 0 ? 2 : 1;
	if (rc != 0) {
		uv_close((uv_handle_t *)&c->process, on_closed);
		return rc;
	}
	uv_timer_init(loop, &c->timer);
	if (timeout_ms > 0)
		uv_timer_start(&c->timer, on_too_long, (uint64_t)timeout_ms, 0);
	return 0;
}
