/* table_file.c: load a table from config/NAME.json or its .bak, save it in the background. */
#include "table_file.h"
#include "broker.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/sys.h>
#include <assert.h>
#include <stdlib.h>

#define LOG_MODULE "table"

struct table_wait {
	struct table_wait *next;
	uint64_t version;
	void (*cb)(void *arg, int rc);
	void *arg;
};

/* 1: read and parsed; 0: missing or empty; negative: there, but no good. */
static int load(const char *path, json_t **json, struct mq_error *e)
{
	struct mq_str text;
	char *p;
	size_t n;
	int rc = sys_read_file(path, JSON_TEXT_MAX, &p, &n);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	for (text = (struct mq_str){ p, n }; text.n && (unsigned char)text.p[text.n - 1] <= ' '; text.n--)
		;
	if (text.n == 0) {
		free(p);
		return 0;
	}
	*json = json_parse(text, e);
	free(p);
	if (!*json)
		return err_wrap(e, "'%s'", path);
	if (!json_is_object(*json)) {
		json_decref(*json);
		*json = NULL;
		return err_set(e, MQ_ECORRUPT, "'%s': not a JSON object", path);
	}
	return 1;
}

/* A file that is no good moves out of the way: the next save would put it where the good copy is. */
static int set_aside(const char *path, struct mq_error *e)
{
	char *aside = mem_printf("%s.broken", path);
	int rc = sys.rename(path, aside);

	if (rc < 0 && rc != -ENOENT)
		err_sys(e, rc, "move '%s' aside", path);
	else
		rc = 0;
	free(aside);
	return rc;
}

static int load_either(struct table_file *t, json_t **json, struct mq_error *e)
{
	char *bak = mem_printf("%s.bak", t->path);
	struct mq_error e1 = { 0 }, e2 = { 0 };
	int rc = load(t->path, json, &e1), rc2;

	if (rc == 1)
		goto out;
	rc2 = load(bak, json, &e2);
	if (rc2 == 1) {
		log_warn("%s: %s; the copy from the save before is used: '%s'", t->kind.name,
			 rc < 0 ? e1.text : "the file is missing or empty", bak);
		rc = set_aside(t->path, e);
		if (rc < 0) {
			json_decref(*json);
			*json = NULL;
		}
		goto out;
	}
	if (rc < 0) {
		rc = err_set(e, MQ_ECORRUPT, "%s, and no copy to go back to: %s; mend one of them, or move both away to start with "
			     "nothing", e1.text, rc2 < 0 ? e2.text : "its .bak is missing or empty");
		goto out;
	}
	if (rc2 < 0)
		rc = err_set(e, MQ_ECORRUPT, "'%s' is missing or empty, and %s; mend it, or move it away to start with nothing",
			     t->path, e2.text);
out:
	free(bak);
	return rc < 0 ? rc : 0;
}

int table_file_open(struct table_file *t, struct broker *b, const struct table_kind *kind, void *table, struct mq_error *e)
{
	char *dir = mem_printf("%s/config", b->conf->storePathRootDir);
	json_t *json = NULL;
	int rc = sys_mkdir_all(dir);

	*t = (struct table_file){ .b = b, .kind = *kind, .table = table };
	t->wait_end = &t->wait;
	t->path = kind->file ? mem_printf("%s/%s", dir, kind->file) : mem_printf("%s/%s.json", dir, kind->name);
	if (rc < 0)
		err_sys(e, rc, "make directory '%s'", dir);
	else
		rc = load_either(t, &json, e);
	free(dir);
	if (rc < 0) {
		free(t->path);
		t->path = NULL;
		return rc;
	}
	if (!json)
		return 0;
	kind->load(table, json);
	json_decref(json);
	return 1;
}

static void tell(struct table_file *t, uint64_t upto, int rc)
{
	while (t->wait && t->wait->version <= upto) {
		struct table_wait *w = t->wait;

		t->wait = w->next;
		if (!t->wait)
			t->wait_end = &t->wait;
		w->cb(w->arg, rc);
		free(w);
	}
}

static void save_run(uv_work_t *work)
{
	struct table_file *t = work->data;

	t->rc = sys_replace_file(t->path, t->text.p, t->text.n);
}

/* What became of a save; a failure is told to those who wait and tried again with the next change or period. */
static void saved(struct table_file *t, uint64_t version, int rc)
{
	t->rc = rc;
	t->failed = rc < 0 ? version : 0;
	if (rc < 0) {
		t->b->metrics.table_failures++;
		log_error("%s: write '%s': %s", t->kind.name, t->path, mq_strerror(rc));
	} else {
		t->b->metrics.tables_saved++;
		t->saved = version;
	}
}

static void save_done(uv_work_t *work, int status)
{
	struct table_file *t = work->data;
	uint64_t version = t->saving;

	t->saving = 0;
	t->text.n = 0;
	if (t->text.cap > 1 << 20)
		buf_free(&t->text);
	saved(t, version, status < 0 ? status : t->rc);
	tell(t, version, status < 0 ? status : t->rc);
	if (t->saved_cb)
		t->saved_cb(t->b);
	if (t->version != version && !t->kind.later)
		table_file_save(t);
}

void table_file_save(struct table_file *t)
{
	int rc;

	if (t->saving || table_file_is_saved(t))
		return;
	t->saving = t->version;
	t->failed = 0;
	t->text.n = 0;
	t->kind.write(t->table, &t->text);
	t->work.data = t;
	rc = uv_queue_work(t->b->loop, &t->work, save_run, save_done);
	assert(rc == 0); /* fails only without a callback */
}

void table_file_changed(struct table_file *t)
{
	t->version++;
	if (!t->kind.later)
		broker_want_turn(t->b);
}

void table_file_when_saved(struct table_file *t, void (*cb)(void *arg, int rc), void *arg)
{
	struct table_wait *w;

	if (table_file_is_saved(t)) {
		cb(arg, 0);
		return;
	}
	w = mem_alloc(sizeof *w);
	*w = (struct table_wait){ .version = t->version, .cb = cb, .arg = arg };
	*t->wait_end = w;
	t->wait_end = &w->next;
	table_file_save(t);
}

bool table_file_idle(const struct table_file *t)
{
	return !t->saving;
}

int table_file_flush(struct table_file *t, struct mq_error *e)
{
	uint64_t version = t->version;
	int rc;

	assert(!t->saving);
	if (table_file_is_saved(t))
		return 0;
	t->text.n = 0;
	t->kind.write(t->table, &t->text);
	rc = sys_replace_file(t->path, t->text.p, t->text.n);
	saved(t, version, rc);
	tell(t, version, rc);
	return rc < 0 ? err_sys(e, rc, "write '%s'", t->path) : 0;
}

void table_file_close(struct table_file *t)
{
	assert(!t->saving && !t->wait);
	buf_free(&t->text);
	free(t->path);
	t->path = NULL;
}
