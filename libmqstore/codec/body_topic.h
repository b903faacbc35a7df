/* body_topic.h: topics: one configuration (351), a broker's table of them (21, inside 103), lists of names (206, 224, 304, ...).
 * Source: the peer's TopicConfigSerializeWrapper.  The file config/topics.json has the shape of the table. */
#ifndef CODEC_BODY_TOPIC_H
#define CODEC_BODY_TOPIC_H

#include "body.h"

enum { PERM_INHERIT = 1, PERM_WRITE = 2, PERM_READ = 4, PERM_PRIORITY = 8 };
enum { TOPIC_UNIT = 1, TOPIC_UNIT_SUB = 2 };    /* bits of sys_flag */

struct body_topic {                     /* TopicConfig */
	struct mq_str name;
	int32_t read, write;            /* numbers of queues; default 16 */
	int32_t perm;                   /* default 6 */
	int32_t sys_flag;
	bool order, multi_tag;          /* topicFilterType MULTI_TAG, else SINGLE_TAG */
	size_t nattrs;
	struct body_pair *attr;         /* without sign */
};
struct body_topic_one {
	struct body_keep keep;
	struct body_topic topic;
};
int body_topic_decode(struct mq_str body, struct body_topic_one *t, struct mq_error *e);
void body_topic_encode(const struct body_topic *t, struct buf *out);
void body_topic_free(struct body_topic_one *t);
void body_topic_get(struct body_keep *k, const json_t *o, struct body_topic *t);
void body_topic_put(struct json_out *o, const struct body_topic *t);

struct body_topic_table { /* TopicConfigAndMappingSerializeWrapper; mappings of static topics are left out */
	struct body_keep keep;
	struct body_version version, mapping_version;
	size_t n;
	struct body_topic *topic;
};
int body_topic_table_decode(struct mq_str body, struct body_topic_table *t, struct mq_error *e);
void body_topic_table_encode(const struct body_topic_table *t, struct buf *out);
void body_topic_table_free(struct body_topic_table *t);
void body_topic_table_get(struct body_keep *k, const json_t *o, struct body_topic_table *t);
void body_topic_table_put(struct json_out *o, const struct body_topic_table *t);

struct body_topic_list {
	struct body_keep keep;
	struct mq_str broker_addr;      /* p == NULL: none */
	size_t n;
	struct mq_str *topic;
};
int body_topic_list_decode(struct mq_str body, struct body_topic_list *l, struct mq_error *e);
void body_topic_list_encode(const struct body_topic_list *l, struct buf *out);
void body_topic_list_free(struct body_topic_list *l);

#endif
