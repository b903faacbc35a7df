/* store_config.c: the JSON files in DIR/config: which can be read.  What they mean is the broker's business. */
#include "store_config.h"
#include "../cli.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *store_config_read(const char *path, char why[200])
{
	struct mq_error err;
	FILE *f = fopen(path, "r");
	if (!f) {
		snprintf(why, 200, "%s", mq_strerror(errno));
		return NULL;
	}
	char *text = NULL;
	size_t cap = 0;
	ssize_t n = getdelim(&text, &cap, 0, f);
	bool more = n > 0 && text[n - 1] == 0;
	fclose(f);
	if (n <= 0 || more) {
		snprintf(why, 200, n <= 0 ? "is empty" : "holds zero bytes");
		free(text);
		return NULL;
	}
	char *strict = mqclient_strict_json((struct mq_str){ text, (size_t)n }, &err);
	json_error_t at;
	json_t *o = strict ? json_loads(strict, 0, &at) : NULL;
	if (!o)
		snprintf(why, 200, "is no JSON: %.150s", strict ? at.text : err.text);
	free(strict);
	free(text);
	return o;
}

json_t *store_config_topics(const char *dir)
{
	static const char *const names[] = { "topics.json", "topics.json.bak" };
	json_t *table = NULL;
	for (size_t i = 0; i < 2 && !table; i++) {
		char path[4096], why[200];
		snprintf(path, sizeof path, "%s/config/%s", dir, names[i]);
		json_t *o = store_config_read(path, why);
		table = json_incref(json_object_get(o, "topicConfigTable"));
		json_decref(o);
	}
	return table;
}

bool store_config_has_topic(void *arg, struct mq_str topic)
{
	static const char own[] = "rmq_sys_"; /* brokers use these whether they list them or not, such as the one of timers */
	char name[300];
	if (topic.n >= sizeof name)
		return false;
	memcpy(name, topic.p, topic.n);
	name[topic.n] = 0;
	return strncmp(name, own, sizeof own - 1) == 0 || json_object_get(arg, name) != NULL;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

static int wanted(const struct dirent *e) { return ends_with(e->d_name, ".json") || ends_with(e->d_name, ".json.bak"); }

void store_config_each(const char *dir, config_file_cb *cb, void *arg)
{
	struct dirent **names;
	char path[4096], why[200] = "", why_copy[200];
	snprintf(path, sizeof path, "%s/config", dir);
	int n = scandir(path, &names, wanted, alphasort);
	for (int i = 0; i < n; i++) {
		char name[256];
		bool copy = ends_with(names[i]->d_name, ".bak");
		snprintf(name, sizeof name, "%.*s", (int)(strlen(names[i]->d_name) - (copy ? 4 : 0)), names[i]->d_name);
		/* A copy comes right behind its file; alone it stands for a file that is missing. */
		bool alone = copy && (i == 0 || strcmp(names[i - 1]->d_name, name) != 0);
		if (!copy || alone) {
			snprintf(path, sizeof path, "%s/config/%s", dir, name);
			json_t *o = store_config_read(path, why);
			snprintf(path, sizeof path, "%s/config/%s.bak", dir, name);
			json_t *old = store_config_read(path, why_copy);
			bool none = !old && access(path, F_OK) < 0;
			if (!o)
				cb(arg, name, old ? CONFIG_COPY : CONFIG_LOST, why);
			else
				cb(arg, name, old || none ? CONFIG_GOOD : CONFIG_OLD, why_copy);
			json_decref(o);
			json_decref(old);
		}
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}
