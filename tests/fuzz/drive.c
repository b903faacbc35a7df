/* drive.c: feeds inputs to a harness: files, standard input, or files with random changes. */
#include "drive.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 16 * 1024 * 1024 };

struct input {
	char *p;
	size_t n;
};

/* In memory of exactly its size, so that a step beyond is seen. */
static void run(const char *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	memcpy(copy, p, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

/* A few changes of the kinds that find things: a byte, an interesting byte, a piece cut out, doubled, or taken from another. */
static size_t change(char *p, size_t n, size_t cap, const struct input *other, unsigned *seed)
{
	static const unsigned char interesting[] = { 0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', 'e', 'u' };

	for (int times = 1 + rand_r(seed) % 4; times; times--) {
		size_t at = n ? (size_t)rand_r(seed) % n : 0, len = n ? (size_t)rand_r(seed) % 16 % (n - at + 1) : 0, from;

		switch (rand_r(seed) % 5) {
		case 0:
			if (n)
				p[at] = (char)rand_r(seed);
			break;
		case 1:
			if (n)
				p[at] = (char)interesting[(size_t)rand_r(seed) % sizeof(interesting)];
			break;
		case 2:
			memmove(p + at, p + at + len, n - at - len);
			n -= len;
			break;
		case 3:
			if (n + len > cap)
				break;
			memmove(p + at + len, p + at, n - at);
			n += len;
			break;
		case 4:
			from = other->n ? (size_t)rand_r(seed) % other->n : 0;
			if (len > other->n - from)
				len = other->n - from;
			memcpy(p + at, other->p + from, len);
			break;
		}
	}
	return n;
}

static void mutate(const struct input *in, size_t count, int64_t seconds, unsigned seed)
{
	char *p = malloc(INPUT_MAX);
	int64_t end = clock_mono_us() + seconds * 1000000, runs = 0;

	for (; clock_mono_us() < end; runs++) {
		const struct input *from = &in[(size_t)rand_r(&seed) % count];

		memcpy(p, from->p, from->n);
		run(p, change(p, from->n, INPUT_MAX, &in[(size_t)rand_r(&seed) % count], &seed));
	}
	printf("%lld inputs\n", (long long)runs);
	free(p);
}

int main(int argc, char **argv)
{
	struct input *in = NULL;
	int64_t seconds = 0;
	unsigned seed = 1;
	int c, count;
	size_t n;

	log_to(NULL, NULL);
	log_max = LOG_ERROR;
	while ((c = getopt(argc, argv, "m:s:")) != -1)
		switch (c) {
		case 'm': seconds = atoll(optarg); break;
		case 's': seed = (unsigned)atoi(optarg); break;
		default: return 2;
		}
	count = argc - optind;
	if (!count) {
		char *p = malloc(INPUT_MAX);

		n = fread(p, 1, INPUT_MAX, stdin);
		run(p, n);
		free(p);
		return 0;
	}
	in = mem_alloc((size_t)count * sizeof(*in));
	for (int i = 0; i < count; i++) {
		int rc = sys_read_file(argv[optind + i], INPUT_MAX, &in[i].p, &in[i].n);

		if (rc < 0) {
			fprintf(stderr, "%s: %s\n", argv[optind + i], mq_strerror(rc));
			return 2;
		}
		run(in[i].p, in[i].n);
	}
	if (seconds)
		mutate(in, (size_t)count, seconds, seed);
	for (int i = 0; i < count; i++)
		free(in[i].p);
	free(in);
	return 0;
}
