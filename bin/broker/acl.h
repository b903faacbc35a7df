/* acl.h: who may do what (aclEnable=true): each request is signed by an account (codec/sign.h) that has the right to what it asks for, or
 * comes from an address that needs none.  Source: PlainAccessValidator, PlainAccessResource, PlainPermissionManager.validate().
 *
 * In this order: an address of globalWhiteRemoteAddresses may do everything; the account has to be there; from its own
 * whiteRemoteAddress it may do everything; the signature has to be right; anybody with an account may send message traces; an admin may
 * do everything; what changes the broker itself is for admins; then the rights to topics and groups.
 *
 * compat: these are stricter than with the peer, for which a known account is enough there: what pops, acks and gives leases, recall, the
 * end of a transaction that names its topic, and all requests that change accounts, offsets of whole groups, or files, which are for
 * admins.  A message for a retry topic needs the right to that topic's group, whatever group the request names.
 *
 * The files are looked at every ACL_LOOK_MS and read again when they have changed; wrong ones leave everything as it was, with an
 * error in the log.  One loop. */
#ifndef BROKER_ACL_H
#define BROKER_ACL_H

#include <codec/header.h>

struct acl;

enum { ACL_LOOK_MS = 5000 };

/* path: plain_acl.yml; beside it acl/ may hold more.  0, or why not: it has to be there, and right. */
int acl_open(struct acl **a, const char *path, struct mq_error *e);
void acl_free(struct acl *a);           /* NULL is allowed */
void acl_look(struct acl *a);           /* have the files changed? */

/* May this request be served?  If not, why: for the remark of the answer. */
bool acl_allows(const struct acl *a, const struct frame *f, const struct mq_host *peer, struct mq_error *why);

/* Changes by request, in the file that holds the account (a new one: in the main file), whose version goes up.  Comments in it do
 * not survive.  0, or why not; nothing has changed then. */
int acl_account_set(struct acl *a, const struct acl_config_header *h, struct mq_error *e);
int acl_account_delete(struct acl *a, struct mq_str access, struct mq_error *e);
/* file: one of those that are read; empty: the main one.  list: with commas. */
int acl_white_set(struct acl *a, struct mq_str list, struct mq_str file, struct mq_error *e);

/* As JSON: the version of the main file, and of each file. */
void acl_versions(const struct acl *a, struct buf *main_file, struct buf *all);

#endif
