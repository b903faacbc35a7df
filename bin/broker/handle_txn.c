/* handle_txn.c: END_TRANSACTION: a producer commits or rolls back a half, by itself or because it was asked. */
#include "broker.h"
#include "ha_master.h"
#include "handle.h"
#include "settle.h"
#include "txn.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/str.h>
#include <codec/property.h>

/* Is m the half that h speaks of, and may h end it?  Answered if not. */
static bool may_end(struct req *q, const struct end_transaction_header *h, const struct mq_message *m)
{
	int64_t immunity = txn_immunity(m->props);

	/* compat: who comes by itself after the time of grace is refused, and will be asked. */
	if (!h->fromTransactionCheck && immunity >= 0 && clock_now_ms() - m->born_ms > immunity)
		reply(q, RESP_ILLEGAL_OPERATION, "the time of grace, CHECK_IMMUNITY_TIME_IN_SECONDS, is over: wait to be asked");
	else if (!str_eq(mq_prop_get(m->props, PROP_PGROUP), h->producerGroup))
		reply(q, RESP_SYSTEM_ERROR, "The producer group wrong");
	else if (m->queue_off != h->tranStateTableOffset)
		reply(q, RESP_SYSTEM_ERROR, "The transaction state table offset wrong");
	else if (m->log_off != h->commitLogOffset)
		reply(q, RESP_SYSTEM_ERROR, "The commit log offset wrong");
	else
		return true;
	return false;
}

void handle_end_transaction(struct req *q)
{
	const struct end_transaction_header *h = q->h;
	struct broker *b = q->b;
	bool commit = h->commitOrRollback == MQ_SYS_TRAN_COMMIT;
	struct mqstore_place place;
	struct mq_message m;
	struct mq_error e;
	struct mq_str record;
	struct send_done done = { 0 };
	enum txn_state state;

	if (!commit && h->commitOrRollback != MQ_SYS_TRAN_ROLLBACK)
		return; /* it does not know yet.  compat: no answer, even if one is wanted */
	if (mqstore_at(b->store, h->commitLogOffset, &record) < 0 || mq_message_decode(record.p, record.n, false, &m) <= 0 ||
	    !str_is(m.topic, TOPIC_HALF)) {
		reply(q, RESP_SYSTEM_ERROR, "Find prepared transaction message failed");
		return;
	}
	if (!may_end(q, h, &m))
		return;
	state = txn_state(b->txn, &m);
	if (state == TXN_ENDED || (state == TXN_GIVEN_UP && !commit)) {
		b->metrics.ends_again++;
		reply(q, RESP_SUCCESS, "the transaction has ended before");
		return;
	}
	if (txn_end(b->txn, &m, commit, &place, &e) < 0) {
		reply(q, e.code == MQ_EINVAL ? RESP_MESSAGE_ILLEGAL : RESP_SYSTEM_ERROR,
		      "the end of the transaction cannot be stored: %s", e.text);
		return;
	}
	settle_promise(b->settle, &done, place.end_off, ha_master_need(b->ha));
	settle_plain(b->settle, q, &done);
}
