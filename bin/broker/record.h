/* record.h: a stored message becomes a record to be stored again, elsewhere or with other properties: a delay that is over, a message
 * that was sent back. */
#ifndef BROKER_RECORD_H
#define BROKER_RECORD_H

#include <mqstore.h>

/* Everything of m but queue, properties and prepared_off.  Views into m. */
static inline struct mqstore_record record_again(const struct mq_message *m)
{
	return (struct mqstore_record){
		.body = m->body, .flag = m->flag, .sys_flag = m->sys_flag, .reconsume_times = m->reconsume_times, .born_ms = m->born_ms,
		.born_host = m->born_host, .store_host = m->store_host, .again = true,
	};
}

#endif
