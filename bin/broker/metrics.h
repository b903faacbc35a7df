/* metrics.h: counters of the broker, one row each.  Only numbers go up here; who shows them: GET_BROKER_RUNTIME_INFO,
 * and SIGUSR1, which writes all of them to the log.
 *
 *      M(name, help) */
#ifndef BROKER_METRICS_H
#define BROKER_METRICS_H

#include <base/buf.h>

#define BROKER_METRICS(M) \
	M(requests, "requests that came, of any kind") \
	M(oneway_requests, "of these, marked as not wanting an answer") \
	M(unknown_requests, "of these, with a code that is not served") \
	M(requests_denied, "of these, of somebody who has no account or no right to it (aclEnable)") \
	M(bad_requests, "of these, refused because a header field was missing or wrong") \
	M(send_requests, "requests to send, single and batch") \
	M(messages_in, "messages stored") \
	M(bytes_in, "bytes of their records") \
	M(sends_refused, "messages not stored") \
	M(sent_back, "messages that consumers sent back") \
	M(dead_letters, "messages stored in %DLQ% topics") \
	M(locks_granted, "queues locked for ordered consumption, or locks renewed") \
	M(locks_refused, "queues that another member had locked") \
	M(halves_in, "halves of transactions stored") \
	M(commits, "transactions committed") \
	M(rollbacks, "transactions rolled back") \
	M(ends_again, "ends of transactions that had ended before: ignored") \
	M(checks_sent, "questions to producers what became of a transaction") \
	M(checks_unheard, "questions that no producer was there for") \
	M(halves_given_up, "transactions given up after too many questions") \
	M(halves_lost, "halves that could not be read") \
	M(delayed_in, "messages of these that wait for their delay level") \
	M(delayed_out, "delayed messages delivered") \
	M(delayed_found, "deliveries found in the log at the start, after a stop that was not clean") \
	M(delayed_retries, "deliveries of delayed messages that failed and are tried again") \
	M(delayed_lost, "delayed messages that could not be delivered ever") \
	M(timers_in, "messages of these that wait for a given time") \
	M(timers_out, "of such messages, delivered") \
	M(timers_late, "of these, whose time was over before they were in the wheel") \
	M(timers_rolled, "messages put into the queue of timers once more, being due beyond its window") \
	M(timers_cancelled, "messages for a given time that were cancelled") \
	M(timers_found, "deliveries of them found in the log at the start, after a stop that was not clean") \
	M(timers_retries, "deliveries of them that failed and are tried again") \
	M(timers_lost, "messages for a given time that could not be delivered ever") \
	M(replies_pushed, "replies to request messages that the asking client took") \
	M(replies_failed, "replies that it did not take, or that found it gone") \
	M(pull_requests, "requests to pull") \
	M(pulls_found, "of these, answered with messages") \
	M(messages_out, "messages delivered by pulls") \
	M(bytes_out, "bytes of their records") \
	M(pulls_held, "pulls that were made to wait for a message") \
	M(pulls_fetched, "times that a worker had to fetch messages from the disk before a pull, a pop or a query was answered") \
	M(pulls_woken, "waiting pulls ended by a message") \
	M(pulls_expired, "waiting pulls ended by their time") \
	M(pulls_not_held, "pulls that would have waited, over maxHeldPulls") \
	M(pop_requests, "requests to pop") \
	M(pops_found, "pops answered with messages") \
	M(pops_acked, "popped messages acked") \
	M(pops_acked_late, "acks and changes of popped messages that had been revived before: refused") \
	M(pops_revived, "popped messages that nobody acked in time: stored again for their group") \
	M(pops_lost, "of these, those whose message was gone from the log") \
	M(busy_answers, "answers with code 2, system busy: this broker has no reason to give any") \
	M(heartbeats, "heartbeats of clients") \
	M(notices, "NOTIFY_CONSUMER_IDS_CHANGED sent to members of groups") \
	M(notices_merged, "changes of groups that shared a notice with another") \
	M(offset_commits, "offsets of groups stored") \
	M(offset_commits_ignored, "offsets of groups ignored: negative, or beyond the end of the queue") \
	M(flushes, "flushes of the log") \
	M(flush_us, "microseconds spent in them") \
	M(flush_timeouts, "sends answered with code 10: not on the disk in time") \
	M(flush_failures, "flushes that failed") \
	M(slave_timeouts, "sends answered with code 11 or 12: not on enough machines in time") \
	M(replicas_missing, "sends refused because too few machines are in sync") \
	M(ha_bytes_out, "bytes of log sent to slaves") \
	M(ha_bytes_in, "bytes of log that came from the master") \
	M(ha_refused, "connections of slaves ended: not allowed, or with a number that cannot be") \
	M(ha_cuts, "times that this slave gave up what its master has not") \
	M(registrations, "registrations answered by a name server") \
	M(registration_failures, "registrations that failed") \
	M(tables_saved, "tables written to config/*.json") \
	M(table_failures, "tables that could not be written") \
	M(clients_expired, "group members removed for want of heartbeats") \
	M(commit_late, "commits of an offset below the stored one") \
	M(conns_closed, "connections gone, whoever closed them") \
	M(conns_idle_closed, "of these, closed by us: no traffic") \
	M(conns_protocol_closed, "of these, closed by us: not a frame") \
	M(conns_slow_closed, "of these, closed by us: answers not read") \
	M(conns_expired_closed, "of these, closed by us: no heartbeat for channelExpiredTimeout") \
	M(conns_opened, "connections accepted")

struct metrics {
#define METRICS_FIELD(name, help) uint64_t name;
	BROKER_METRICS(METRICS_FIELD)
#undef METRICS_FIELD
	/* Answers by response code: 0..63 by itself, then the rest together. */
	uint64_t answers[64], answers_other;
};

static inline void metrics_answer(struct metrics *m, int32_t code)
{
	if ((uint32_t)code < 64)
		m->answers[code]++;
	else
		m->answers_other++;
}

/* "name value" lines, answers as "answer_SUCCESS value" (only those that happened). */
void metrics_print(const struct metrics *m, struct buf *out);
/* Each counter: cb(arg, name, help, value). */
void metrics_each(const struct metrics *m, void (*cb)(void *arg, const char *name, const char *help, uint64_t v), void *arg);
/* All of them to the log, a line each, "what it is: name=value"; the connections come last. */
void metrics_log(const struct metrics *m);

#endif
