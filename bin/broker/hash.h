/* hash.h: uthash over byte strings, with a hash that reads eight bytes at a time. */
#ifndef BROKER_HASH_H
#define BROKER_HASH_H

#include <base/digest.h>
#include <mq.h>
#include <string.h>

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = (unsigned)digest_of((keyptr), (keylen)))
#include <uthash.h>

#endif
