/* yaml.h: the YAML of RocketMQ's plain_acl.yml and tools.yml: one document of maps, lists and texts.
 *
 * Every scalar is a string of JSON, whatever it looks like (json_bool(), json_i64() take "true" and "12"), or null.  Anchors, tags and
 * keys that are no texts are refused.  Read and written with libyaml. */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "buf.h"
#include <jansson.h>

enum { YAML_TEXT_MAX = 1024 * 1024, YAML_DEPTH_MAX = 16 };

/* A new object, empty for an empty text; NULL with the line and what is wrong there. */
json_t *yaml_parse(struct mq_str text, struct mq_error *e);
/* The same of a file, whose name heads the text.  0, MQ_EINVAL, MQ_ETOOBIG, or -errno of the file; *doc is set when it is 0. */
int yaml_read(const char *path, json_t **doc, struct mq_error *e);
/* Append the object in block style: strings, booleans, integers, arrays, objects; null members are left out. */
void yaml_write(const json_t *object, struct buf *out);

#endif
