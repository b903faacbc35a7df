/* acl_private.h: what acl.c and acl_edit.c share. */
#ifndef BROKER_ACL_PRIVATE_H
#define BROKER_ACL_PRIVATE_H

#include "acl.h"
#include "acl_rules.h"

struct acl {
	char *path, *dir;
	struct acl_rules *rules;
	char trouble[256];      /* of the last look, said once */
};

/* Read all files again.  0, or why the rules stay as they are. */
int acl_read(struct acl *a, struct mq_error *e);

#endif
