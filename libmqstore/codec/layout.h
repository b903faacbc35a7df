/* layout.h: fixed layouts on disk.  Source: mqstore(5) (checked against stores of the Java broker 5.2.0).
 * All integers big-endian. */
#ifndef CODEC_LAYOUT_H
#define CODEC_LAYOUT_H

#include "../base/byte.h"

/* Commit log record: magic at +4. */
#define RECORD_MAGIC_V1 0xDAA320A7u
#define RECORD_MAGIC_V2 0xDAA320ABu     /* topic length in 2 bytes */
#define RECORD_MAGIC_BLANK 0xCBD43194u  /* "rest of this segment is empty": i32 bytes left, i32 magic */
enum { BLANK_BYTES = 8, RECORD_MIN = 91 };

/* Consume queue entry: i64 log offset | i32 record size | i64 tags code.  Filler before a queue's first entry: 0 | 0x7FFFFFFF | 0 */
enum { CQ_ENTRY = 20, CQ_FILLER_SIZE = 0x7fffffff };

/* Batch consume queue entry: i64 log offset | i32 record size | i64 tags code | i64 store time | i64 number of its first message |
 * i16 messages | i32 compacted offset (-1) | i32 reserved */
enum { BATCH_CQ_ENTRY = 46 };

/* Index file: header, slots (i32 each), entries.
 * header: i64 beginTimestamp | i64 endTimestamp | i64 beginPhyOffset | i64 endPhyOffset | i32 used slots | i32 index count
 * entry:  i32 key hash | i64 log offset | i32 seconds since beginTimestamp | i32 previous entry of the chain */
enum { INDEX_HEADER = 40, INDEX_SLOT = 4, INDEX_ENTRY = 20 };

/* checkpoint: i64 each, rest zero.  The last one is ours; the peer neither reads nor writes it. */
enum { CHECKPOINT_BYTES = 4096, CHECKPOINT_LOG_MS = 0, CHECKPOINT_QUEUE_MS = 8, CHECKPOINT_INDEX_MS = 16,
       CHECKPOINT_MASTER_FLUSHED = 24, CHECKPOINT_CONFIRM = 32, CHECKPOINT_WHOLE = 40,
       CHECKPOINT_QUEUES = 48 };

#endif
