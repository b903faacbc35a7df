/* txn.h: transactional messages: halves that wait to be committed or rolled back, and the question to their producers.
 *
 * A half lies in RMQ_SYS_TRANS_HALF_TOPIC.  Its end is a record of RMQ_SYS_TRANS_OP_HALF_TOPIC that names its queue offset, stored
 * in one piece with the message itself if it is committed: there is never one without the other.  Which halves are pending is
 * kept in memory, and made anew at the start from what lies behind the offsets of the group CID_RMQ_SYS_TRANS in the two
 * topics, as the peer keeps them.
 *
 * Every transactionCheckInterval the producers of those that have been pending for transactionTimeOut, or for as long as the message
 * itself allows (CHECK_IMMUNITY_TIME_IN_SECONDS), are asked what became of them: the half is appended again with one more in
 * TRANSACTION_CHECK_TIMES, so that the part of the topic that matters stays short, and CHECK_TRANSACTION_STATE goes to one
 * live producer of its group.  After transactionCheckMax questions it moves to TRANS_CHECK_MAX_TIME_TOPIC. */
#ifndef BROKER_TXN_H
#define BROKER_TXN_H

#include <base/buf.h>
#include <mqstore.h>

struct broker;
struct txn;

/* Find out what is pending; rounds begin with the loop; on a slave neither, that is the master's to do.  *t NULL on failure. */
int txn_open(struct txn **t, struct broker *b, struct mq_error *e);
void txn_stop(struct txn *t);           /* no more rounds */
/* After the last flush: note how far the two topics are done with, in the table of offsets. */
void txn_save(struct txn *t);           /* when idle */
void txn_free(struct txn *t);           /* ends with the next turns of the loop */

/* ---- Halves -------------------------------------------------------------------------------------------------------------- */

/* What txn_props() writes: to be left out of what is copied from the client.  For property_copy_without(). */
#define TXN_PROPS PROP_REAL_TOPIC, PROP_REAL_QID, PROP_TRANSACTION_ID

struct mqstore_queue *txn_queue(struct txn *t);
/* Append REAL_TOPIC, REAL_QID and the transaction id. */
void txn_props(struct buf *out, struct mq_str topic, int32_t queue_id, struct mq_str uniq_key);
/* A half of this topic was appended; immunity: of the message, in ms, or -1. */
void txn_stored(struct txn *t, struct mq_str topic, const struct mqstore_place *place, int64_t born_ms, int64_t immunity_ms);

/* ---- Their end ----------------------------------------------------------------------------------------------------------- */

/* Time of grace that a message asks for (its properties), in ms; -1: it does not. */
int64_t txn_immunity(struct mq_str props);

enum txn_state {
	TXN_PENDING,
	TXN_GIVEN_UP,           /* asked about too often; what its producer says now still counts */
	TXN_ENDED,              /* committed or rolled back before: nothing more to do */
};
enum txn_state txn_state(struct txn *t, const struct mq_message *half);
/* Commit or roll back: half, a record of the half topic, is done with; *place is that of the last record of it.  0 or a negative code:
 * then nothing has changed. */
int txn_end(struct txn *t, const struct mq_message *half, bool commit, struct mqstore_place *place, struct mq_error *e);

size_t txn_pending(const struct txn *t);
int64_t txn_count(const struct txn *t, struct mq_str topic); /* of a topic */
bool txn_idle(const struct txn *t);     /* no save of how many are pending by topic is under way */

#endif
