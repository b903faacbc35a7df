/* acl_rules.h: what plain_acl.yml and the files beside it say: accounts, their rights, and who needs none.  Source:
 * PlainPermissionManager, Permission.
 *
 *	globalWhiteRemoteAddresses: [ "10.1.7.*" ]      who needs no account (acl_addr.h)
 *	accounts:
 *	- accessKey: orders-app                         7 bytes at least
 *	  secretKey: s3cret-of-app                      the same
 *	  whiteRemoteAddress: 10.1.8.3                  from there without signature
 *	  admin: false
 *	  defaultTopicPerm: DENY                        DENY, PUB, SUB, PUB|SUB; without it DENY
 *	  defaultGroupPerm: SUB
 *	  topicPerms: [ orders=PUB|SUB, audit=DENY ]
 *	  groupPerms: [ orders-cg=SUB ]
 *	dataVersion:                                    as changes by request leave it
 *	- counter: 1
 *	  timestamp: 1700000000000
 *
 * What is not understood is an error that names the file and the account; nothing of it counts then.  (The peer takes an unknown right
 * for DENY.) */
#ifndef BROKER_ACL_RULES_H
#define BROKER_ACL_RULES_H

#include "acl_addr.h"
#include "hash.h"
#include <jansson.h>
#include <sys/stat.h>

enum { ACL_DENY = 1, ACL_PUB = 4, ACL_SUB = 8 };        /* the peer's numbers */
enum { ACL_KEY_LEAST = 7 };

struct acl_perm {
	UT_hash_handle hh;
	int perm;
	char name[];                    /* a topic; %RETRY%GROUP stands for a group */
};

struct acl_account {
	UT_hash_handle hh;              /* by access key */
	char *access, *secret;
	bool admin;
	int topic_perm, group_perm;     /* where nothing else is said */
	struct acl_perm *perms;
	struct acl_addr *white;
	size_t file;                    /* where it stands */
};

struct acl_file {
	char *path;
	struct stat st;                 /* when it was read */
	int64_t counter, timestamp;     /* its version */
};

struct acl_rules {
	struct acl_account *accounts;
	struct acl_addr **white;
	size_t white_n;
	struct acl_file *file;          /* the main one is the last */
	size_t file_n;
};

/* All of `path` and of the .yml and .yaml in `dir` and below, which need not be there.  An access key that is in two files counts in
 * the first.  0, or a negative code with a text. */
int acl_rules_read(struct acl_rules **r, const char *path, const char *dir, struct mq_error *e);
/* Of one document alone: would it do? */
int acl_rules_check(const json_t *doc, const char *path, struct mq_error *e);
/* Has nothing changed on the disk since? */
bool acl_rules_are_fresh(const struct acl_rules *r, const char *path, const char *dir);
void acl_rules_free(struct acl_rules *r);       /* NULL is allowed */

/* The document in a file, empty if there is none.  0, or why it cannot be read. */
int acl_document(const char *path, json_t **doc, struct mq_error *e);

#endif
