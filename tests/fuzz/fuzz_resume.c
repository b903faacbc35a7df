/* fuzz_resume: covers bin/recv_resume.c, send_resume.c, state_file.c: the file of --resume.  The first byte: 1 = mq-send's, which
 * gets the right head with 2.  What was taken is written and taken again as the same.  Seeds: seeds/resume. */
#include "lab.h"
#include "../../bin/recv_resume.h"
#include "../../bin/send_resume.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

static void receiver(const char *path)
{
	struct mqclient_queue q = { .broker = "b", .id = 0 };
	struct recv_resume r, back;
	struct mq_error e = { 0 };

	if (recv_resume_open(&r, path, &e) < 0) {
		LAB_CHECK(e.text[0]);
		recv_resume_free(&r);
		return;
	}
	recv_resume_set(&r, recv_resume_find(&r, "T", &q, true), 7);
	LAB_CHECK(recv_resume_save(&r, &e) == 0);
	LAB_CHECK(recv_resume_open(&back, path, &e) == 0);
	LAB_CHECK(back.n == r.n && back.entry[recv_resume_find(&back, "T", &q, false)].next == 7);
	for (size_t i = 0; i < r.n; i++)
		LAB_CHECK(strcmp(r.entry[i].queue, back.entry[i].queue) == 0 && r.entry[i].next == back.entry[i].next);
	recv_resume_free(&back);
	recv_resume_free(&r);
}

static void sender(const char *path)
{
	static const char *const names[] = { "one", "two" };
	struct send_resume r;
	struct mq_error e = { 0 };

	if (send_resume_open(&r, path, "T", "-l", names, 2, &e) < 0) {
		LAB_CHECK(e.text[0]);
	} else {
		LAB_CHECK(r.at.file >= 0 && r.at.file < 2 && r.at.record >= 0 && r.at.offset >= 0);
		for (int file = 0; file < 2; file++)
			for (int64_t i = 1; i < 50; i++)
				send_resume_done(&r, file, i);
	}
	send_resume_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const char head[] = "mq-send 1\ntopic T\nframing -l\nfile one\nfile two\n";
	char *path = lab_path("resume"), *text;
	size_t skip;

	if (n < 1)
		return 0;
	skip = p[0] & 2 ? sizeof(head) - 1 : 0;
	text = malloc(skip + n);
	memcpy(text, head, skip);
	memcpy(text + skip, p + 1, n - 1);
	lab_write(path, text, skip + n - 1, 0);
	free(text);
	if (p[0] & 1)
		sender(path);
	else
		receiver(path);
	return 0;
}
