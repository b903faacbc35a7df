/* member_file.c: brokerIdentity, brokerIdentity-temp and epochFileCheckpoint: who this broker is, and who wrote its log. */
#include "member_private.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <errno.h>
#include <stdlib.h>

#define LOG_MODULE "member"

enum { IDENTITY_MAX = 4096, EPOCHS_MAX = 1 << 20, BOOT_MAX = 256 };

static char *temp_path(const struct member *m)
{
	return mem_printf("%s-temp", m->conf->storePathBrokerIdentity);
}

/* CLUSTER#NAME#ID, and with a temporary one #CHECK.  0: there is none. */
static int read_identity(struct member *m, const char *path, int64_t *id, char *check, struct mq_error *e)
{
	struct mq_str rest, cluster = { 0 }, name = { 0 }, number = { 0 };
	size_t n;
	char *p;
	int rc = sys_read_file(path, IDENTITY_MAX, &p, &n);

	*id = 0;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_sys(e, rc, "read '%s'", path);
	rest = str_trim((struct mq_str){ p, n });
	if (!rest.n)
		rc = 0;
	else if (!str_split(&rest, '#', &cluster) || !str_split(&rest, '#', &name) || !str_split(&rest, '#', &number) ||
		 str_i64(number, id) < 0 || *id <= 0)
		rc = err_set(e, MQ_ECORRUPT, "'%s' is no CLUSTER#NAME#NUMBER; remove it to take a new number", path);
	else if (!str_is(cluster, m->conf->brokerClusterName) || !str_is(name, m->conf->brokerName))
		rc = err_set(e, MQ_EINVAL, "'%s' belongs to broker '" MQ_STR_FMT "' of cluster '" MQ_STR_FMT "', this is '%s' of '%s'",
			     path, MQ_STR_ARG(name), MQ_STR_ARG(cluster), m->conf->brokerName, m->conf->brokerClusterName);
	else if (check)
		snprintf(check, ROLE_ADDR, MQ_STR_FMT, MQ_STR_ARG(rest));
	free(p);
	return rc < 0 ? rc : 0;
}

static int read_epochs(struct member *m, const char *path, struct mq_error *e)
{
	size_t n;
	char *p;
	int rc = sys_read_file(path, EPOCHS_MAX, &p, &n);

	if (rc < 0)
		return rc == -ENOENT ? MQ_ENOTFOUND : err_sys(e, rc, "read '%s'", path);
	rc = epoch_decode((struct mq_str){ p, n }, &m->epochs, e);
	free(p);
	return rc < 0 ? err_wrap(e, "'%s'", path) : 0;
}

int member_file_load(struct member *m, struct role_identity *id, struct mq_error *e)
{
	char *temp = temp_path(m), *bak = mem_printf("%s.bak", m->conf->storePathEpochFile);
	struct mq_error why;
	int rc = read_identity(m, m->conf->storePathBrokerIdentity, &id->id, NULL, e);

	if (rc == 0)
		rc = read_identity(m, temp, &id->temp_id, id->temp_check, e);
	if (rc == 0 && !id->temp_check[0])
		id->temp_id = 0;
	if (rc == 0) {
		rc = read_epochs(m, m->conf->storePathEpochFile, e);
		if (rc < 0 && read_epochs(m, bak, &why) == 0) {
			log_warn("the list of epochs is read from '%s'", bak);
			rc = 0;
		}
		if (rc == MQ_ENOTFOUND)
			rc = 0;
	}
	free(temp);
	free(bak);
	return rc;
}

static int write_text(const char *path, char *text, struct mq_error *e)
{
	int rc = sys_mkdir_parent(path);

	if (rc == 0)
		rc = sys_replace_file(path, text, strlen(text));
	free(text);
	return rc < 0 ? err_sys(e, rc, "write '%s'", path) : 0;
}

int member_file_write_temp(struct member *m, int64_t id, const char *check, struct mq_error *e)
{
	char *path = temp_path(m);
	int rc = write_text(path, mem_printf("%s#%s#%lld#%s", m->conf->brokerClusterName, m->conf->brokerName, (long long)id, check), e);

	free(path);
	return rc;
}

int member_file_write_identity(struct member *m, int64_t id, struct mq_error *e)
{
	int rc = write_text(m->conf->storePathBrokerIdentity,
			    mem_printf("%s#%s#%lld", m->conf->brokerClusterName, m->conf->brokerName, (long long)id), e);

	if (rc == 0)
		member_file_forget_temp(m);
	return rc;
}

void member_file_forget_temp(struct member *m)
{
	char *path = temp_path(m), *bak = mem_printf("%s.bak", path);
	int rc = sys.unlink(path);

	if (rc < 0 && rc != -ENOENT)
		log_warn("remove '%s': %s", path, mq_strerror(rc));
	sys.unlink(bak);
	free(path);
	free(bak);
}

bool member_file_same_boot(struct member *m)
{
	char *path = mem_printf("%s-boot", m->conf->storePathEpochFile), *now = NULL, *then = NULL;
	size_t now_n = 0, then_n = 0;
	bool same = sys_read_file("/proc/sys/kernel/random/boot_id", BOOT_MAX, &now, &now_n) == 0 &&
		    sys_read_file(path, BOOT_MAX, &then, &then_n) == 0 && now_n == then_n && memcmp(now, then, now_n) == 0;

	if (!same && now_n && (sys_mkdir_parent(path) < 0 || sys_replace_file(path, now, now_n) < 0))
		log_warn("write '%s': it is not known at the next start whether this machine has been started anew", path);
	free(path);
	free(now);
	free(then);
	return same;
}

/* ---- Epochs ------------------------------------------------------------------------------------------------------------- */

const struct epoch_list *member_epochs(const struct member *m)
{
	return &m->epochs;
}

struct epoch_list *member_epochs_change(struct member *m)
{
	return &m->epochs;
}

int member_save_epochs(struct member *m, struct mq_error *e)
{
	struct buf text = { 0 };
	int rc;

	epoch_encode(&m->epochs, &text);
	rc = sys_mkdir_parent(m->conf->storePathEpochFile);
	if (rc == 0)
		rc = sys_replace_file(m->conf->storePathEpochFile, text.p, text.n);
	buf_free(&text);
	return rc < 0 ? err_sys(e, rc, "write '%s'", m->conf->storePathEpochFile) : 0;
}
