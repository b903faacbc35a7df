/* fetch.c: one GET by libcurl in a libuv worker. */
#include "fetch.h"
#include "../base/buf.h"
#include "../base/err.h"
#include "../base/mem.h"
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The few functions of libcurl that are used.  It stays loaded: it may have left handlers in the process. */
static struct {
	CURL *(*init)(void);
	CURLcode (*set)(CURL *, CURLoption, ...);
	CURLcode (*perform)(CURL *);
	CURLcode (*info)(CURL *, CURLINFO, ...);
	const char *(*text)(CURLcode);
	void (*cleanup)(CURL *);
} fetch_curl;

struct fetch {
	uv_work_t work;
	char *url;
	int timeout_ms;
	size_t max;
	fetch_cb *cb;
	void *arg;
	atomic_bool stop;       /* set on the loop, read by the worker */
	/* The worker's until it is done. */
	struct buf body;
	int rc;
	struct mq_error e;
};

static int load(struct mq_error *e)
{
	void *lib;

	if (fetch_curl.cleanup)
		return 0;
	lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		lib = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(e, MQ_EUNSUPPORTED, "http needs libcurl: %s", dlerror());
	*(void **)&fetch_curl.init = dlsym(lib, "curl_easy_init");
	*(void **)&fetch_curl.set = dlsym(lib, "curl_easy_setopt");
	*(void **)&fetch_curl.perform = dlsym(lib, "curl_easy_perform");
	*(void **)&fetch_curl.info = dlsym(lib, "curl_easy_getinfo");
	*(void **)&fetch_curl.text = dlsym(lib, "curl_easy_strerror");
	*(void **)&fetch_curl.cleanup = dlsym(lib, "curl_easy_cleanup");
	if (!fetch_curl.init || !fetch_curl.set || !fetch_curl.perform || !fetch_curl.info || !fetch_curl.text || !fetch_curl.cleanup) {
		fetch_curl.cleanup = NULL;
		return err_set(e, MQ_EUNSUPPORTED, "http needs libcurl; the one found lacks functions");
	}
	return 0;
}

/* ---- On the worker ------------------------------------------------------------------------------------------------------ */

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;

	if (f->body.n + size * n > f->max)
		return 0;
	buf_put(&f->body, p, size * n);
	return size * n;
}

static int on_progress(void *arg, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal, curl_off_t ulnow)
{
	return atomic_load(&((struct fetch *)arg)->stop);
}

static void run(uv_work_t *work)
{
	struct fetch *f = work->data;
	CURL *curl = fetch_curl.init();
	CURLcode code;
	long status = 0;

	if (!curl) {
		f->rc = err_set(&f->e, MQ_EUNSUPPORTED, "%s: libcurl does not start", f->url);
		return;
	}
	fetch_curl.set(curl, CURLOPT_URL, f->url);
	fetch_curl.set(curl, CURLOPT_NOSIGNAL, 1L);
	fetch_curl.set(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)f->timeout_ms);
	fetch_curl.set(curl, CURLOPT_TIMEOUT_MS, (long)f->timeout_ms);
	fetch_curl.set(curl, CURLOPT_FOLLOWLOCATION, 0L);
	fetch_curl.set(curl, CURLOPT_USERAGENT, "mq/" MQ_VERSION);
	fetch_curl.set(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	fetch_curl.set(curl, CURLOPT_WRITEDATA, f);
	fetch_curl.set(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	fetch_curl.set(curl, CURLOPT_XFERINFODATA, f);
	fetch_curl.set(curl, CURLOPT_NOPROGRESS, 0L);
	code = fetch_curl.perform(curl);
	fetch_curl.info(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OPERATION_TIMEDOUT)
		f->rc = err_set(&f->e, MQ_ETIMEOUT, "%s: no answer within %d ms", f->url, f->timeout_ms);
	else if (code == CURLE_WRITE_ERROR)
		f->rc = err_set(&f->e, MQ_ETOOBIG, "%s: more than %zu bytes", f->url, f->max);
	else if (code != CURLE_OK)
		f->rc = err_set(&f->e, MQ_ECLOSED, "%s: %s", f->url, fetch_curl.text(code));
	else if (status != 200)
		f->rc = err_set(&f->e, MQ_EREFUSED, "%s: status %ld instead of 200", f->url, status);
	fetch_curl.cleanup(curl);
}

/* ---- On the loop -------------------------------------------------------------------------------------------------------- */

static void done(uv_work_t *work, int status)
{
	struct fetch *f = work->data;

	if (status < 0 || atomic_load(&f->stop))
		f->rc = err_set(&f->e, MQ_ECANCELLED, "%s: given up", f->url);
	f->cb(f->arg, f->rc, &f->e, f->rc < 0 ? (struct mq_str){ 0 } : buf_view(&f->body));
	buf_free(&f->body);
	free(f->url);
	free(f);
}

struct fetch *fetch_start(uv_loop_t *loop, const char *url, int timeout_ms, size_t max, fetch_cb *cb, void *arg, struct mq_error *e)
{
	struct fetch *f;

	if (load(e) < 0)
		return NULL;
	f = mem_alloc(sizeof *f);
	f->url = mem_strdup(url);
	f->timeout_ms = timeout_ms;
	f->max = max;
	f->cb = cb;
	f->arg = arg;
	f->work.data = f;
	uv_queue_work(loop, &f->work, run, done);
	return f;
}

void fetch_stop(struct fetch *f)
{
	atomic_store(&f->stop, true);
	uv_cancel((uv_req_t *)&f->work);
}
