/* store_config.h: the JSON files in DIR/config, for check and repair. */
#ifndef ADMIN_STORE_CONFIG_H
#define ADMIN_STORE_CONFIG_H

#include "admin.h"

/* The file as JSON, or NULL with the reason in why (200 bytes). */
json_t *store_config_read(const char *path, char why[200]);
/* Topics of config/topics.json or its copy; NULL if neither can be read.  The caller frees it. */
json_t *store_config_topics(const char *dir);
/* Is it one of them?  arg: what store_config_topics() gave. */
bool store_config_has_topic(void *arg, struct mq_str topic);

enum config_state {
	CONFIG_GOOD,
	CONFIG_COPY,    /* damaged, the copy (.bak) is good */
	CONFIG_LOST,    /* damaged, and so is the copy, or there is none */
	CONFIG_OLD,     /* the copy is damaged, the file is good */
};
/* Every *.json, or *.json.bak without it, by name. */
typedef void config_file_cb(void *arg, const char *name, enum config_state state, const char *why);
void store_config_each(const char *dir, config_file_cb *cb, void *arg);

#endif
