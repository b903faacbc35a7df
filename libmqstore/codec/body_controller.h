/* body_controller.h: bodies of a controller's requests: sync sets, elections, replicas.  Source: the peer's remoting.protocol.body. */
#ifndef CODEC_BODY_CONTROLLER_H
#define CODEC_BODY_CONTROLLER_H

#include "body_route.h"

enum { SYNC_SET_MAX = 64 };     /* members; the peer has no bound, and nobody has so many replicas */

/* SyncStateSet: {"syncStateSet":[1,2],"syncStateSetEpoch":3}. */
struct body_sync_set {
	int64_t id[SYNC_SET_MAX];
	size_t n;
	int32_t epoch;
};
/* Repeated ids count once.  MQ_EINVAL if there are more than SYNC_SET_MAX. */
int body_sync_set_decode(struct mq_str body, struct body_sync_set *s, struct mq_error *e);
void body_sync_set_encode(const struct body_sync_set *s, struct buf *out);
static inline bool body_sync_set_has(const struct body_sync_set *s, int64_t id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->id[i] == id)
			return true;
	return false;
}

/* ElectMasterResponseBody: {"brokerMemberGroup":{...},"syncStateSet":[1]}; without members if `members` is NULL. */
void body_elected_encode(const struct body_broker *members, const struct body_sync_set *s, struct buf *out);

/* BrokerReplicasInfo: {"replicasInfoTable":{"broker-a":{...}}}.  masterBrokerId and masterAddress are null while there is none. */
struct body_replica {
	int64_t id;
	struct mq_str addr;
	bool alive, in_sync;
};
struct body_replicas {
	struct mq_str name;
	int64_t master;                 /* -1 = none */
	struct mq_str master_addr;
	int32_t master_epoch, sync_epoch;
	const struct body_replica *v;   /* n of them */
	size_t n;
};
void body_replicas_encode(const struct body_replicas *v, size_t n, struct buf *out);

#endif
