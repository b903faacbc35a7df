/* namesrv_conf.c: the rows of namesrv.conf made from the list in the header. */
#include "namesrv_conf.h"
#include <base/err.h>
#include <base/mem.h>
#include <base/javaprops.h>
#include <base/str.h>
#include <base/sys.h>

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#define CONF_T_str CONF_STR
#define CONF_T_i32 CONF_I32
#define CONF_T_i64 CONF_I64
#define CONF_T_boolean CONF_BOOL
#define CONF_T_enum_log_level CONF_ENUM
#define CONF_N_str NULL
#define CONF_N_i32 NULL
#define CONF_N_i64 NULL
#define CONF_N_boolean NULL
#define CONF_N_enum_log_level NAMESRV_LOG_LEVELS

#define CONF_ROW(type, key, otherwise, min, max, flags, help) \
	{ #key, CONF_T_##type, offsetof(struct namesrv_conf, key), otherwise, min, max, CONF_N_##type, flags, help },

static const struct conf_row namesrv_conf_rows[] = { NAMESRV_CONF(CONF_ROW) };
enum { NROWS = sizeof(namesrv_conf_rows) / sizeof(namesrv_conf_rows[0]) };

struct conf *namesrv_conf_new(struct namesrv_conf *c)
{
	return conf_new(namesrv_conf_rows, NROWS, c);
}

int namesrv_conf_take(struct conf *into, const struct conf *from, int *changed, struct mq_error *e)
{
	struct buf text = { 0 };
	int rc;

	for (size_t i = 0; i < NROWS; i++) {
		struct mq_str key = str_of(namesrv_conf_rows[i].key);

		if (namesrv_conf_rows[i].flags & CONF_RUNTIME)
			javaprops_put(&text, key, conf_get(from, key));
	}
	rc = conf_update(into, buf_view(&text), changed, e);
	buf_free(&text);
	return rc;
}

static const char *home(void)
{
	const char *dir = getenv("HOME");
	const struct passwd *pw = dir && *dir ? NULL : getpwuid(getuid());

	return pw ? pw->pw_dir : dir && *dir ? dir : "/";
}

/* compat: where the peer keeps them. */
static int fill_path(struct conf *rows, const char *key, const char *now, const char *name, const char *instead,
                     struct mq_error *e)
{
	char *path;
	int rc;

	if (*now)
		return 0;
	path = instead ? mem_strdup(instead) : mem_printf("%s/namesrv/%s", home(), name);
	rc = conf_set(rows, str_of(key), str_of(path), e);
	free(path);
	return rc;
}

int namesrv_conf_check(struct conf *rows, struct namesrv_conf *c, const char *conf_path, struct mq_error *e)
{
	int rc = fill_path(rows, "kvConfigPath", c->kvConfigPath, "kvConfig.json", NULL, e);

	if (rc == 0 && c->enableControllerInNamesrv) {
		char *instead = mem_printf("%s/controller/%s", home(), c->controllerDLegerSelfId);

		rc = fill_path(rows, "controllerStorePath", c->controllerStorePath, NULL, instead, e);
		free(instead);
	}
	return rc < 0 ? rc : fill_path(rows, "configStorePath", c->configStorePath, "namesrv.properties", conf_path, e);
}

int namesrv_conf_save(struct conf *rows, const struct namesrv_conf *c, struct mq_error *e)
{
	int rc = sys_mkdir_parent(c->configStorePath);

	return rc < 0 ? err_sys(e, rc, "make the directory of '%s'", c->configStorePath) : conf_save(rows, c->configStorePath, e);
}

bool namesrv_conf_locked(const struct conf *rows, const struct namesrv_conf *c, struct mq_str key)
{
	const struct conf_row *row = conf_find(rows, key);
	struct mq_str rest = str_of(c->configBlackList), name;

	if (row && row->flags & CONF_FIXED)
		return true;
	while (str_split(&rest, ';', &name))
		if (str_eq(str_trim(name), key))
			return true;
	return false;
}
