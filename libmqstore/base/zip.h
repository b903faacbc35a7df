/* zip.h: bodies in zlib streams, LZ4 frames, zstd frames.  type is a MQ_SYS_COMPRESS_* value (0 = zlib). */
#ifndef BASE_ZIP_H
#define BASE_ZIP_H

#include "buf.h"

int zip_pack(int32_t type, int level, struct mq_str in, struct buf *out);       /* appends; 0 or MQ_EUNSUPPORTED */
/* Appends at most `max` bytes.  0, MQ_ECORRUPT (also when cut short), MQ_ETOOBIG, MQ_EUNSUPPORTED. */
int zip_unpack(int32_t type, struct mq_str in, size_t max, struct buf *out);

#endif
