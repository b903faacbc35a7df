/* handle_config.c: the configuration, asked for and changed over the wire. */
#include "dispatch.h"
#include "private.h"
#include <base/log.h>
#include <base/javaprops.h>
#include <base/str.h>

#define LOG_MODULE "config"

/* Is there a key in the text that no request may change? */
static bool touches_locked(const struct namesrv *ns, struct mq_str text)
{
	struct javaprops p = javaprops_of(text);
	bool locked = false;

	while (!locked && javaprops_next(&p))
		locked = namesrv_conf_locked(ns->rows, ns->conf, buf_view(&p.key));
	javaprops_free(&p);
	return locked;
}

void handle_config_update(const struct ns_request *q)
{
	struct namesrv *ns = q->ns;
	int changed = 0, rc;
	struct mq_error e;

	if (!ns->rows || touches_locked(ns, q->f->body)) {
		ns_answer(q, RESP_NO_PERMISSION, "Can not update config in black list.");
		return;
	}
	if (!q->f->body.n) {
		ns_answer(q, RESP_SUCCESS, NULL);
		return;
	}
	rc = conf_update(ns->rows, q->f->body, &changed, &e);
	if (rc < 0) {
		ns_answer(q, rc == MQ_EREFUSED ? RESP_NO_PERMISSION : RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	log_info("configuration changed by request peer=%s keys=%d", conn_name(q->c), changed);
	if (changed)
		namesrv_changed(ns);
	if (changed && namesrv_conf_save(ns->rows, ns->conf, &e) < 0) {
		ns_answer(q, RESP_SYSTEM_ERROR, "changed, but only until the next start: %s", e.text);
		return;
	}
	ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_config_get(const struct ns_request *q)
{
	struct frame_out o;

	ns_answer_body(q, &o, NULL, NULL);
	if (q->ns->rows)
		conf_print(q->ns->rows, q->out);
	frame_end(&o);
}
