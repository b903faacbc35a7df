/* source_cluster.h: a live cluster as a source; cluster.h opens it. */
#ifndef MQFS_SOURCE_CLUSTER_H
#define MQFS_SOURCE_CLUSTER_H

#include "source.h"

extern const struct source source_cluster;

#endif
