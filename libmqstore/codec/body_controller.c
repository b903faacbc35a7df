/* body_controller.c: sync sets, elections, replicas as JSON.  What they mean is known to bin/namesrv/controller.h. */
#include "body_controller.h"
#include "../base/err.h"

int body_sync_set_decode(struct mq_str body, struct body_sync_set *s, struct mq_error *e)
{
	json_t *o = json_parse(body, e), *ids;
	int rc = 0;

	*s = (struct body_sync_set){ 0 };
	if (!o)
		return MQ_EINVAL;
	ids = json_array_at(o, "syncStateSet");
	s->epoch = body_i32(o, "syncStateSetEpoch", 0);
	for (size_t i = 0; ids && i < json_array_size(ids); i++) {
		const json_t *v = json_array_get(ids, i);

		if (!json_is_integer(v) || body_sync_set_has(s, json_integer_value(v)))
			continue;
		if (s->n == SYNC_SET_MAX) {
			rc = err_set(e, MQ_EINVAL, "syncStateSet has more than %d members", SYNC_SET_MAX);
			break;
		}
		s->id[s->n++] = json_integer_value(v);
	}
	json_decref(o);
	return rc;
}

static void put_ids(struct json_out *o, const struct body_sync_set *s)
{
	json_key(o, "syncStateSet");
	json_open(o, '[');
	for (size_t i = 0; i < s->n; i++)
		json_put_i64(o, s->id[i]);
	json_close(o, ']');
}

void body_sync_set_encode(const struct body_sync_set *s, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	put_ids(&o, s);
	json_member_i64(&o, "syncStateSetEpoch", s->epoch);
	json_close(&o, '}');
}

void body_elected_encode(const struct body_broker *members, const struct body_sync_set *s, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	if (members) {
		struct body_members m = { .broker = *members };

		/* It is the member of the same name of the other body. */
		struct buf whole = { 0 };

		body_members_encode(&m, &whole);
		buf_put(o.b, whole.p + 1, whole.n - 2);
		o.comma = true;
		buf_free(&whole);
	}
	put_ids(&o, s);
	json_close(&o, '}');
}

static void put_replicas(struct json_out *o, const char *key, const struct body_replicas *r, bool in_sync)
{
	json_key(o, key);
	json_open(o, '[');
	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].in_sync != in_sync)
			continue;
		json_open(o, '{');
		json_member_bool(o, "alive", r->v[i].alive);
		json_member_str(o, "brokerAddress", r->v[i].addr);
		json_member_i64(o, "brokerId", r->v[i].id);
		json_member_str(o, "brokerName", r->name);
		json_close(o, '}');
	}
	json_close(o, ']');
}

void body_replicas_encode(const struct body_replicas *v, size_t n, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "replicasInfoTable");
	json_open(&o, '{');
	for (size_t i = 0; i < n; i++) {
		json_key_str(&o, v[i].name);
		json_open(&o, '{');
		put_replicas(&o, "inSyncReplicas", &v[i], true);
		if (v[i].master >= 0) {
			json_member_str(&o, "masterAddress", v[i].master_addr);
			json_member_i64(&o, "masterBrokerId", v[i].master);
		}
		json_member_i64(&o, "masterEpoch", v[i].master_epoch);
		put_replicas(&o, "notInSyncReplicas", &v[i], false);
		json_member_i64(&o, "syncStateSetEpoch", v[i].sync_epoch);
		json_close(&o, '}');
	}
	json_close(&o, '}');
	json_close(&o, '}');
}
