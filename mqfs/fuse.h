/* fuse.h: libfuse's low-level interface, in the version that this program is written for. */
#ifndef MQFS_FUSE_H
#define MQFS_FUSE_H

#define FUSE_USE_VERSION 34
#include <fuse_lowlevel.h>

#endif
