/* store_repair.c: mend what check finds: the store by mqstore_repair(), the JSON files in config from their copies. */
#include "store_config.h"
#include "../cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct repairing {
	const char *dir, *save_dir;
	json_t *topics;
	bool dry_run;
	int acts, lost;
};

static void step(void *arg, const char *text)
{
	(void)arg;
	puts(text);
}

static bool has_topic(void *arg, struct mq_str topic)
{
	struct repairing *r = arg;
	return store_config_has_topic(r->topics, topic);
}

static _Noreturn void failed(const char *what, const char *path)
{
	cli_die(CLI_SYSTEM, "repair: cannot %s '%s': %s", what, path, mq_strerror(errno));
}

/* Same bytes in another place, on the disk before it returns. */
static void copy(const char *from, const char *to)
{
	char buf[65536];
	FILE *in = fopen(from, "r"), *out = in ? fopen(to, "wx") : NULL;
	size_t n;
	if (!in)
		failed("read", from);
	if (!out)
		failed("make", to);
	while ((n = fread(buf, 1, sizeof buf, in)) > 0)
		if (fwrite(buf, 1, n, out) != n)
			failed("write", to);
	if (ferror(in))
		failed("read", from);
	if (fflush(out) == EOF || fsync(fileno(out)) < 0 || fclose(out) == EOF)
		failed("write", to);
	fclose(in);
}

static void mend_config(void *arg, const char *name, enum config_state state, const char *why)
{
	struct repairing *r = arg;
	char path[4096], saved[4096], part[4096];
	if (state == CONFIG_LOST) {
		cli_warn("repair: config/%s %s and has no good copy: left as it is", name, why);
		r->lost++;
	}
	if (state != CONFIG_COPY)
		return;
	r->acts++;
	printf("config/%s %s: its copy (.bak) takes its place, saved as config/%s\n", name, why, name);
	if (r->dry_run)
		return;
	snprintf(saved, sizeof saved, "%s/config", r->save_dir);
	if ((mkdir(r->save_dir, 0755) < 0 && errno != EEXIST) || (mkdir(saved, 0755) < 0 && errno != EEXIST))
		failed("make", saved);
	snprintf(path, sizeof path, "%s/config/%s", r->dir, name);
	snprintf(saved, sizeof saved, "%s/config/%s", r->save_dir, name);
	if (access(path, F_OK) == 0)
		copy(path, saved);
	snprintf(saved, sizeof saved, "%s/config/%s.bak", r->dir, name);
	snprintf(part, sizeof part, "%s/config/%s.tmp", r->dir, name);
	unlink(part);
	copy(saved, part);
	if (rename(part, path) < 0)
		failed("rename", part);
}

/* What is still not as it should be: damage in the middle of the log. */
static bool still_damaged(struct admin *a, struct repairing *r)
{
	struct mqstore_check_opt opt = { .topic_exists = has_topic, .arg = r };
	struct mqstore_checked sum;
	struct mq_error err;
	struct mqstore_files *f = store_files(a);
	if (mqstore_files_check(f, &opt, &sum, &err) < 0)
		cli_fail(&err);
	mqstore_files_close(f);
	if (sum.damages + sum.follows == 0)
		return false;
	cli_warn("repair: %lld things cannot be mended and are left as they are: see check", (long long)(sum.damages + sum.follows));
	return true;
}

static int repair(struct admin *a)
{
	struct mqstore_opt opt = store_options(a);
	char save_dir[4096], stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	struct mq_error err;
	localtime_r(&now, &tm);
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
	snprintf(save_dir, sizeof save_dir, "%s/repair-%s", opt.dir, stamp);
	struct repairing r = {
		.dir = opt.dir, .save_dir = save_dir, .topics = store_config_topics(opt.dir), .dry_run = admin_flag(a, "dry-run"),
	};
	struct mqstore_repair_opt how = {
		.save_dir = save_dir, .dry_run = r.dry_run, .step = step, .topic_exists = has_topic, .arg = &r,
	};
	/* It refuses when a broker is at work, so it comes before the files of config. */
	int n = mqstore_repair(&opt, &how, &err);
	if (n < 0)
		cli_fail(&err);
	store_config_each(opt.dir, mend_config, &r);
	bool left = r.lost || (!r.dry_run && still_damaged(a, &r));
	json_decref(r.topics);
	if (n + r.acts == 0)
		cli_warn("repair: nothing to mend in %s", opt.dir);
	else if (r.dry_run)
		cli_warn("repair: nothing done (--dry-run)");
	else
		cli_warn("repair: what was cut is in %s", save_dir);
	return left ? CLI_NONE : CLI_OK;
}

static const struct command_opt repair_opts[] = {
	{ 'y', "dry-run", NULL, false, "only say what would be done" },
	{ 0 },
};

const struct command store_repair_commands[] = {
	{ "repair", repair_opts, repair, COMMAND_FILES, "mend what check finds, save what is cut" },
	{ 0 },
};
