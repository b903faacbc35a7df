/* runner.c: runs a command per message.
 *
 * A command of plain words is executed directly, else /bin/sh runs it.  The body goes through an anonymous file, not a pipe: a
 * command need not read it, and nobody waits for a slow one to do so. */
#include "runner.h"
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAITING_BYTES ((size_t)8 << 20)
#define WAITING_MAX 1000

extern char **environ;

struct runner_job {
	struct runner_job *next;
	struct runner *r;
	struct runner_lane *lane;
	void *queue;
	int64_t off;
	struct bytes env;   /* "NAME=VALUE" NUL ... */
	size_t nenv;
	struct bytes body;
	uv_process_t process;
};

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

void runner_open(struct runner *r, uv_loop_t *loop, const char *command)
{
	size_t plain, len;
	char *word;
	int rc;

	r->loop = loop;
	r->ready_last = &r->ready;
	command += strspn(command, " \t\n");
	r->command = command;
	if (!*command)
		cli_usage_error("-x: the command is empty");
	plain = plain_part(command, &len);
	word = strndup(command, len);
	if (!word)
		cli_die(CLI_SYSTEM, "out of memory");
	rc = len ? in_path(word) : 0;
	if (rc != 0 && !strchr(word, '/') &&
	    shell((const char *const[]){ "sh", "-c", "command -v -- \"$1\"", "sh", word, NULL }, true) == 0)
		plain = 0; /* a builtin of the shell; or a word of its language */
	else if (rc != 0 && command[len] != '=')
		cli_die(rc, "-x: '%s': %s", word, rc == 126 ? "cannot be executed" : "command not found");
	free(word);
	if (command[plain] == '\0') {
		r->argv = split(command);
		return;
	}
	if (shell((const char *const[]){ "sh", "-n", "-c", command, NULL }, false) != 0)
		cli_usage_error("-x: '%s': the shell does not understand this", command);
}

void runner_close(struct runner *r)
{
	if (r->argv) {
		free(r->argv[0]);
		free(r->argv);
	}
	r->argv = NULL;
}

/* ---- What the command gets -------------------------------------------------------------------------------------------- */

static void env_str(struct runner_job *j, const char *name, struct mq_str value)
{
	if (value.n && memchr(value.p, 0, value.n))
		return; /* no environment can hold it */
	bytes_str(&j->env, name);
	bytes_byte(&j->env, '=');
	bytes_add(&j->env, value.p, value.n);
	bytes_byte(&j->env, '\0');
	j->nenv++;
}

static void env_int(struct runner_job *j, const char *name, int64_t v)
{
	bytes_str(&j->env, name);
	bytes_byte(&j->env, '=');
	bytes_int(&j->env, v);
	bytes_byte(&j->env, '\0');
	j->nenv++;
}

/* MQ_PROP_<name>, what cannot be part of a shell's variable as '_'. */
static void env_props(struct runner_job *j, struct mq_str props)
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
		env_str(j, name.p, v);
	}
	bytes_free(&name);
}

static void env_all(struct runner_job *j, const struct shown *s)
{
	const struct mq_message *m = s->m;
	struct bytes text = { 0 };

	env_str(j, "MQ_TOPIC", m->topic);
	bytes_str(&text, s->broker);
	bytes_byte(&text, ':');
	bytes_int(&text, m->queue_id);
	env_str(j, "MQ_QUEUE", bytes_view(&text));
	env_int(j, "MQ_OFFSET", m->queue_off);
	text.n = 0;
	record_out_id(&text, m);
	env_str(j, "MQ_ID", bytes_view(&text));
	bytes_free(&text);
	env_str(j, "MQ_KEYS", mq_prop_get(m->props, "KEYS"));
	env_str(j, "MQ_TAGS", mq_prop_get(m->props, "TAGS"));
	env_int(j, "MQ_SIZE", (int64_t)s->body.n);
	env_int(j, "MQ_BORN", m->born_ms);
	env_int(j, "MQ_STORED", m->store_ms);
	env_int(j, "MQ_RETRIES", m->reconsume_times);
	env_props(j, m->props);
}

/* Variables that a command of another mq-recv was given are not handed on. */
static bool ours(const char *var)
{
	static const char *const names[] = { "MQ_TOPIC=", "MQ_QUEUE=", "MQ_OFFSET=", "MQ_ID=", "MQ_KEYS=", "MQ_TAGS=", "MQ_SIZE=",
	                                     "MQ_BORN=", "MQ_STORED=", "MQ_RETRIES=", "MQ_PROP_", NULL };

	for (const char *const *n = names; *n; n++)
		if (strncmp(var, *n, strlen(*n)) == 0)
			return true;
	return false;
}

static char **environment(const struct runner_job *j)
{
	size_t n = 0;
	char **env;
	const char *p = j->env.p;

	while (environ[n])
		n++;
	env = calloc(n + j->nenv + 1, sizeof(*env));
	if (!env)
		cli_die(CLI_SYSTEM, "out of memory");
	n = 0;
	for (char **e = environ; *e; e++)
		if (!ours(*e))
			env[n++] = *e;
	for (size_t i = 0; i < j->nenv; i++) {
		env[n++] = (char *)p;
		p += strlen(p) + 1;
	}
	return env;
}

/* The body as a file, at its beginning; or -errno. */
static int body_file(const struct runner_job *j)
{
	int fd = memfd_create("body", MFD_CLOEXEC), rc;
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < j->body.n) {
		ssize_t k = write(fd, j->body.p + done, j->body.n - done);

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

/* ---- Running ---------------------------------------------------------------------------------------------------------- */

static void start_more(struct runner *r);

static void job_free(struct runner_job *j)
{
	bytes_free(&j->env);
	bytes_free(&j->body);
	free(j);
}

static void lane_ready(struct runner *r, struct runner_lane *lane)
{
	if (lane->queued || lane->busy || !lane->first)
		return;
	lane->queued = true;
	lane->next = NULL;
	*r->ready_last = lane;
	r->ready_last = &lane->next;
}

static void on_closed(uv_handle_t *h)
{
	job_free(h->data);
}

static void finished(struct runner_job *j, bool ok, const char *why)
{
	struct runner *r = j->r;

	r->running--;
	j->lane->busy = false;
	if (!ok)
		r->stopped = true;
	r->done(r->arg, j->queue, j->off, ok, why);
	lane_ready(r, j->lane);
	start_more(r);
}

static void on_exit_status(uv_process_t *p, int64_t status, int sig)
{
	struct runner_job *j = p->data;
	char why[64];

	if (sig)
		snprintf(why, sizeof(why), "killed by signal %d", sig);
	else
		snprintf(why, sizeof(why), "exit code %" PRId64, status);
	finished(j, sig == 0 && status == 0, why);
	uv_close((uv_handle_t *)p, on_closed);
}

static void start(struct runner *r, struct runner_job *j)
{
	char *sh_argv[] = { "sh", "-c", (char *)r->command, NULL };
	uv_stdio_container_t io[3] = { { .flags = UV_INHERIT_FD },
	                               { .flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO },
	                               { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO } };
	uv_process_options_t opt = { .exit_cb = on_exit_status, .stdio = io, .stdio_count = 3 };
	int fd = body_file(j), rc;

	j->lane->busy = true;
	r->running++;
	j->process.data = j;
	if (fd < 0) {
		finished(j, false, strerror(-fd));
		job_free(j);
		return;
	}
	io[0].data.fd = fd;
	opt.args = r->argv ? r->argv : sh_argv;
	opt.file = r->argv ? r->argv[0] : "/bin/sh";
	opt.env = environment(j);
	rc = uv_spawn(r->loop, &j->process, &opt);
	free(opt.env);
	close(fd);
	if (rc != 0) {
		finished(j, false, uv_strerror(rc));
		uv_close((uv_handle_t *)&j->process, on_closed);
	}
}

static void start_more(struct runner *r)
{
	while (!r->stopped && r->running < r->jobs && r->ready) {
		struct runner_lane *lane = r->ready;
		struct runner_job *j = lane->first;

		r->ready = lane->next;
		if (!r->ready)
			r->ready_last = &r->ready;
		lane->queued = false;
		if (!j) /* runner_lane_free() took it */
			continue;
		lane->first = j->next;
		if (!lane->first)
			lane->last = &lane->first;
		r->waiting--;
		r->waiting_bytes -= j->body.n;
		start(r, j);
	}
}

void runner_put(struct runner *r, struct runner_lane *lane, void *queue, int64_t off, const struct shown *s)
{
	struct runner_job *j = calloc(1, sizeof(*j));

	if (!j)
		cli_die(CLI_SYSTEM, "out of memory");
	j->r = r;
	j->lane = lane;
	j->queue = queue;
	j->off = off;
	env_all(j, s);
	bytes_add(&j->body, s->body.p, s->body.n);
	if (!lane->first)
		lane->last = &lane->first;
	*lane->last = j;
	lane->last = &j->next;
	r->waiting++;
	r->waiting_bytes += j->body.n;
	lane_ready(r, lane);
	start_more(r);
}

bool runner_full(const struct runner *r)
{
	return r->waiting >= WAITING_MAX || r->waiting_bytes >= WAITING_BYTES;
}

bool runner_idle(const struct runner *r)
{
	return r->running == 0 && (r->waiting == 0 || r->stopped);
}

void runner_stop(struct runner *r)
{
	r->stopped = true;
}

void runner_lane_free(struct runner *r, struct runner_lane *lane)
{
	while (lane->first) {
		struct runner_job *j = lane->first;

		lane->first = j->next;
		r->waiting--;
		r->waiting_bytes -= j->body.n;
		job_free(j);
	}
}
