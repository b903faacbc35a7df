/* embedded.h: the name server inside of an embedded broker: it knows this broker alone, and at once.
 *
 * It stands outside of both, since neither the broker nor the name server knows the other. */
#ifndef BIN_EMBEDDED_H
#define BIN_EMBEDDED_H

#include "broker/broker.h"

extern const struct broker_names embedded_names;

#endif
