/* body_heartbeat.c: heartbeats, subscriptions, lists of consumers. */
#include "body_heartbeat.h"

/* ---- Enums: the peer's names in the order of their ordinals ------------------------------------------------------ */

static const char *const consume_types[] = { "CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP" };
static const char *const models[] = { "BROADCASTING", "CLUSTERING" };
static const char *const froms[] = {
	"CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET",
	"CONSUME_FROM_MAX_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP",
};
#define COUNT(names) (int)(sizeof(names) / sizeof((names)[0]))

const char *body_consume_type_name(enum body_consume_type t)
{
	return consume_types[t];
}

const char *body_model_name(enum body_model m)
{
	return models[m];
}

const char *body_from_name(enum body_from f)
{
	return froms[f];
}

void body_how_get(const json_t *o, enum body_consume_type *type, enum body_model *model, enum body_from *from)
{
	*type = (enum body_consume_type)body_enum(o, "consumeType", consume_types, COUNT(consume_types),
	                                          CONSUME_PASSIVELY);
	*model = (enum body_model)body_enum(o, "messageModel", models, COUNT(models), MODEL_CLUSTERING);
	*from = (enum body_from)body_enum(o, "consumeFromWhere", froms, COUNT(froms), FROM_LAST_OFFSET);
}

/* ---- SubscriptionData -------------------------------------------------------------------------------------------- */

void body_sub_get(struct body_keep *k, const json_t *o, struct body_sub *s)
{
	json_t *codes = json_array_at(o, "codeSet"), *one;
	size_t i;

	*s = (struct body_sub){
		.topic = json_str(o, "topic"),
		.expression = json_str(o, "subString"),
		.type = json_str(o, "expressionType"),
		.version = json_i64(o, "subVersion", 0),
		.class_filter = json_bool(o, "classFilterMode", false),
	};
	if (!s->type.n)
		s->type = MQ_STR("TAG");
	s->ntags = body_strings_get(k, json_array_at(o, "tagsSet"), &s->tag);
	if (!body_size(codes))
		return;
	s->code = body_alloc(k, body_size(codes) * sizeof(*s->code));
	json_array_foreach(codes, i, one)
		if (json_is_integer(one))
			s->code[s->ncodes++] = (int32_t)json_integer_value(one);
}

void body_sub_put(struct json_out *o, const struct body_sub *s)
{
	json_open(o, '{');
	json_member_bool(o, "classFilterMode", s->class_filter);
	json_key(o, "codeSet");
	json_open(o, '[');
	for (size_t i = 0; i < s->ncodes; i++)
		json_put_i64(o, s->code[i]);
	json_close(o, ']');
	json_member_str(o, "expressionType", s->type.p ? s->type : MQ_STR("TAG"));
	if (s->expression.p)
		json_member_str(o, "subString", s->expression);
	json_member_i64(o, "subVersion", s->version);
	body_strings_put(o, "tagsSet", s->tag, s->ntags);
	json_member_str(o, "topic", s->topic);
	json_close(o, '}');
}

/* ---- HeartbeatData ----------------------------------------------------------------------------------------------- */

static void consumer_get(struct body_keep *k, const json_t *o, struct body_consumer *c)
{
	json_t *subs = json_array_at(o, "subscriptionDataSet"), *one;
	size_t i;

	*c = (struct body_consumer){ .group = json_str(o, "groupName"), .unit_mode = json_bool(o, "unitMode", false) };
	body_how_get(o, &c->type, &c->model, &c->from);
	c->sub = body_alloc(k, body_size(subs) * sizeof(*c->sub));
	json_array_foreach(subs, i, one)
		if (json_is_object(one))
			body_sub_get(k, one, &c->sub[c->nsubs++]);
}

static void consumer_put(struct json_out *o, const struct body_consumer *c)
{
	json_open(o, '{');
	json_member_cstr(o, "consumeFromWhere", body_from_name(c->from));
	json_member_cstr(o, "consumeType", body_consume_type_name(c->type));
	json_member_str(o, "groupName", c->group);
	json_member_cstr(o, "messageModel", body_model_name(c->model));
	json_key(o, "subscriptionDataSet");
	json_open(o, '[');
	for (size_t i = 0; i < c->nsubs; i++)
		body_sub_put(o, &c->sub[i]);
	json_close(o, ']');
	json_member_bool(o, "unitMode", c->unit_mode);
	json_close(o, '}');
}

int body_heartbeat_decode(struct mq_str body, struct body_heartbeat *h, struct mq_error *e)
{
	json_t *producers, *consumers, *one;
	struct mq_str group;
	size_t i;
	int rc;

	*h = (struct body_heartbeat){ 0 };
	rc = body_parse(&h->keep, body, "heartbeat", e);
	if (rc)
		return rc;
	h->client_id = json_str(h->keep.json, "clientID");
	h->fingerprint = body_i32(h->keep.json, "heartbeatFingerprint", 0);
	h->without_sub = json_bool(h->keep.json, "withoutSub", false);
	producers = json_array_at(h->keep.json, "producerDataSet");
	consumers = json_array_at(h->keep.json, "consumerDataSet");
	h->producer = body_alloc(&h->keep, body_size(producers) * sizeof(*h->producer));
	h->consumer = body_alloc(&h->keep, body_size(consumers) * sizeof(*h->consumer));
	json_array_foreach(producers, i, one) {
		group = json_str(one, "groupName");
		if (group.n)
			h->producer[h->nproducers++] = group;
	}
	json_array_foreach(consumers, i, one) {
		if (!json_str(one, "groupName").n)
			continue;
		consumer_get(&h->keep, one, &h->consumer[h->nconsumers++]);
	}
	return 0;
}

void body_heartbeat_encode(const struct body_heartbeat *h, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_str(&o, "clientID", h->client_id);
	json_key(&o, "consumerDataSet");
	json_open(&o, '[');
	for (size_t i = 0; i < h->nconsumers; i++)
		consumer_put(&o, &h->consumer[i]);
	json_close(&o, ']');
	json_member_i64(&o, "heartbeatFingerprint", h->fingerprint);
	json_key(&o, "producerDataSet");
	json_open(&o, '[');
	for (size_t i = 0; i < h->nproducers; i++) {
		json_open(&o, '{');
		json_member_str(&o, "groupName", h->producer[i]);
		json_close(&o, '}');
	}
	json_close(&o, ']');
	json_member_bool(&o, "withoutSub", h->without_sub);
	json_close(&o, '}');
}

void body_heartbeat_free(struct body_heartbeat *h)
{
	body_free(&h->keep);
}

/* ---- CheckClientRequestBody -------------------------------------------------------------------------------------- */

int body_client_check_decode(struct mq_str body, struct body_client_check *c, struct mq_error *e)
{
	int rc;

	*c = (struct body_client_check){ 0 };
	rc = body_parse(&c->keep, body, "client check", e);
	if (rc)
		return rc;
	c->client_id = json_str(c->keep.json, "clientId");
	c->group = json_str(c->keep.json, "group");
	c->namespace = json_str(c->keep.json, "namespace");
	body_sub_get(&c->keep, json_object_at(c->keep.json, "subscriptionData"), &c->sub);
	return 0;
}

void body_client_check_encode(const struct body_client_check *c, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_str(&o, "clientId", c->client_id);
	json_member_str(&o, "group", c->group);
	if (c->namespace.p)
		json_member_str(&o, "namespace", c->namespace);
	json_key(&o, "subscriptionData");
	body_sub_put(&o, &c->sub);
	json_close(&o, '}');
}

void body_client_check_free(struct body_client_check *c)
{
	body_free(&c->keep);
}

/* ---- GetConsumerListByGroupResponseBody -------------------------------------------------------------------------- */

int body_consumer_list_decode(struct mq_str body, struct body_consumer_list *l, struct mq_error *e)
{
	int rc;

	*l = (struct body_consumer_list){ 0 };
	rc = body_parse(&l->keep, body, "consumer list", e);
	if (rc)
		return rc;
	l->n = body_strings_get(&l->keep, json_array_at(l->keep.json, "consumerIdList"), &l->id);
	return 0;
}

void body_consumer_list_encode(const struct body_consumer_list *l, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_strings_put(&o, "consumerIdList", l->id, l->n);
	json_close(&o, '}');
}

void body_consumer_list_free(struct body_consumer_list *l)
{
	body_free(&l->keep);
}
