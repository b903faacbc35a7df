/* golden_store.c: unpacks with tar alone; zstd is the library's. */
#include "golden_store.h"
#include "golden.h"

#include "base/crc.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/zip.h"
#include "codec/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

const char *const golden_stores[] = { "clean", "crashed", "torn", "trimmed", "features", "features-nocrc", "ipv6", "v4.9.7", "v5.3.2", NULL };

enum { STORE_MAX = 256 * 1024 * 1024 };

char *golden_store(const char *dir, const char *name)
{
	char *file = mem_printf("store/%s/store.tar.zst", name), *command = mem_printf("tar -x -C '%s' -f -", dir);
	struct buf plain = { 0 };
	size_t n;
	char *packed = golden_read(file, &n);
	if (zip_unpack(MQ_SYS_COMPRESS_ZSTD, (struct mq_str){ packed, n }, STORE_MAX, &plain) < 0)
		fail_msg("cannot unpack '%s'", file);
	FILE *tar = popen(command, "w");
	if (tar == NULL || fwrite(plain.p, 1, plain.n, tar) != plain.n || pclose(tar) != 0)
		fail_msg("'%s' failed on '%s'", command, file);
	buf_free(&plain);
	free(packed);
	free(command);
	free(file);
	return mem_printf("%s/store", dir);
}

json_t *golden_manifest(const char *name)
{
	char *file = mem_printf("store/%s/manifest.json", name);
	size_t n;
	json_error_t e;
	char *text = golden_read(file, &n), *nul;
	/* A key made of NUL characters is more than jansson takes: U+E000 stands for them. */
	while ((nul = memmem(text, n, "\\u0000", 6)))
		memcpy(nul, "\\uE000", 6);
	json_t *m = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	if (m == NULL)
		fail_msg("'%s' line %d: %s", file, e.line, e.text);
	free(text);
	free(file);
	return m;
}

void golden_log(const char *store, golden_record_cb *cb, void *arg)
{
	char *dir = mem_printf("%s/commitlog", store), **names;
	size_t count;
	if (sys_list(dir, &names, &count) < 0)
		fail_msg("cannot list '%s'", dir);
	for (size_t i = 0; i < count; i++) {
		char *path = mem_printf("%s/%s", dir, names[i]), *p;
		size_t n, at = 0;
		if (sys_read_file(path, GOLDEN_SEGMENT, &p, &n) < 0)
			fail_msg("cannot read '%s'", path);
		while (at < n) {
			struct mq_message m;
			bool blank;
			int32_t size = message_peek(p + at, n - at, &m, &blank);
			if (size <= 0 || blank)
				break;
			if (mq_message_decode(p + at, n - at, true, &m) > 0)
				cb(arg, &m, p + at);
			at += (size_t)size;
		}
		free(p);
		free(path);
	}
	free(names);
	free(dir);
}

uint64_t golden_fingerprint(const char *path)
{
	struct stat st;
	char **names, *p;
	size_t n;
	if (sys.stat(path, &st) < 0)
		fail_msg("cannot look at '%s'", path);
	uint64_t sum = str_of(path).n * 31 + (uint64_t)st.st_size * 17 + st.st_mode;
	if (!S_ISDIR(st.st_mode)) {
		if (sys_read_file(path, STORE_MAX, &p, &n) < 0)
			fail_msg("cannot read '%s'", path);
		sum = sum * 1000003 + crc32_of(p, n) + ((uint64_t)st.st_mtim.tv_sec << 20) + (uint64_t)st.st_mtim.tv_nsec;
		free(p);
		return sum;
	}
	if (sys_list(path, &names, &n) < 0)
		fail_msg("cannot list '%s'", path);
	for (size_t i = 0; i < n; i++) {
		char *kid = mem_printf("%s/%s", path, names[i]);
		sum = sum * 1000003 + crc32_of(names[i], strlen(names[i])) + golden_fingerprint(kid);
		free(kid);
	}
	free(names);
	return sum;
}
