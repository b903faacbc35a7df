/* frame_json.h: the JSON header of a frame, scanned in place. */
#ifndef CODEC_FRAME_JSON_H
#define CODEC_FRAME_JSON_H

#include "frame.h"

/* Fill all but type and body of *f from the n header bytes at p, which are changed where strings have escapes. */
int frame_json_parse(char *p, size_t n, struct frame *f, struct mq_error *e);
/* First byte of [p, end) that JSON cannot hold as it is inside a string (", \, below 0x20), else end. */
const char *frame_json_special(const char *p, const char *end);

#endif
