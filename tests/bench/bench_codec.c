/* bench_codec: nanoseconds for one pass through each step that every request takes: frame, header, answer.
 *
 * Usage: bench_codec [FRAME-FILE ...]   (frames as in tests/golden/wire; built in: a 310 request as the Java client sends it) */
#include "base/clock.h"
#include "codec/request.h"

#include <stdio.h>
#include <stdlib.h>

static const char java_310[] =
	"{\"code\":310,\"extFields\":{\"a\":\"GROUP_ab12cd34ef56\",\"b\":\"TopicTest\",\"c\":\"TBW102\",\"d\":\"4\",\"e\":\"2\",\"f\":\"0\","
	"\"g\":\"1796057391645\",\"h\":\"0\",\"i\":\"UNIQ_KEY\\u0001C0000202523C4AA31F0F1E3FD3F40000\\u0002WAIT\\u0001true\\u0002TAGS\\u0001TagA"
	"\\u0002\",\"j\":\"0\",\"k\":\"false\",\"l\":\"0\",\"m\":\"false\",\"n\":\"broker-a\"},\"flag\":0,\"language\":\"JAVA\",\"opaque\":123456,"
	"\"serializeTypeCurrentRPC\":\"JSON\",\"version\":453}";

enum { ROUNDS = 2000000, COPIES = 200, SIZE_MAX_HERE = 4096 };

static double per_pass(int64_t from_us, int rounds)
{
	return (double)(clock_mono_us() - from_us) * 1000.0 / rounds;
}

static void bench(const char *name, const char *bytes, size_t n)
{
	static char space[COPIES][SIZE_MAX_HERE];
	struct frame f;
	struct mq_error e;
	union { struct send_header send; char room[2048]; } h;
	const struct request_row *row;
	struct buf out = { 0 };
	int64_t sum = 0, t, parse_us = 0;
	double parse_ns, decode_ns, encode_ns;

	if (n > sizeof(space[0])) {
		fprintf(stderr, "bench_codec: %s: more than %zu bytes\n", name, sizeof(space[0]));
		return;
	}
	/* Parsing changes the bytes, so many copies are parsed before new ones are made. */
	for (int i = 0; i < ROUNDS / COPIES; i++) {
		for (int k = 0; k < COPIES; k++)
			memcpy(space[k], bytes, n);
		t = clock_mono_us();
		for (int k = 0; k < COPIES; k++) {
			if (frame_length(space[k], n) != (int64_t)n || frame_parse(space[k], n, &f, &e) != 0) {
				fprintf(stderr, "bench_codec: %s: %s\n", name, e.text);
				return;
			}
			sum += f.opaque + (int64_t)f.nfields;
		}
		parse_us += clock_mono_us() - t;
	}
	parse_ns = (double)parse_us * 1000.0 / ROUNDS;
	row = request_find(f.code);
	if (!row || header_decode(row->header, &f, &h, &e) != 0) {
		printf("%-28s %5zu bytes %3u fields: parse %4.0f ns\n", name, n, f.nfields, parse_ns);
		return;
	}
	t = clock_mono_us();
	for (int i = 0; i < ROUNDS; i++) {
		row = request_find(f.code);
		sum += header_decode(row->header, &f, &h, &e);
		__asm__ volatile("" : : "r"(&h) : "memory");
	}
	decode_ns = per_pass(t, ROUNDS);
	t = clock_mono_us();
	for (int i = 0; i < ROUNDS; i++) {
		struct frame_out o;

		if (i % COPIES == 0)
			out.n = 0;
		frame_answer(&o, &out, frame_id_of(&f), 0, MQ_STR(""));
		frame_cstr(&o, "MSG_REGION", "DefaultRegion");
		frame_cstr(&o, "TRACE_ON", "true");
		frame_cstr(&o, "msgId", "7F00000100002A9F0000000000001234");
		frame_i64(&o, "queueId", i & 3);
		frame_i64(&o, "queueOffset", 1000000 + i);
		frame_cstr(&o, "transactionId", "C0000202523C4AA31F0F1E3FD3F40000");
		frame_end(&o);
	}
	encode_ns = per_pass(t, ROUNDS);
	printf("%-28s %5zu bytes %3u fields: parse %4.0f ns, header %4.0f ns, send answer %4.0f ns  (%lld)\n", name, n, f.nfields, parse_ns,
	       decode_ns, encode_ns, (long long)sum % 10);
	buf_free(&out);
}

int main(int argc, char **argv)
{
	static char file[64 * 1024];
	struct buf b = { 0 };
	uint32_t n = sizeof(java_310) - 1;
	char envelope[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };

	for (int i = 0; i < 4; i++) {
		envelope[i] = (char)((n + 4 + 128) >> (24 - 8 * i));
		envelope[4 + i] = (char)(n >> (24 - 8 * i));
	}
	buf_put(&b, envelope, 8);
	buf_put(&b, java_310, n);
	memset(buf_room(&b, 128), 'x', 128);
	b.n += 128;
	bench("java 310, built in", b.p, b.n);
	for (int i = 1; i < argc; i++) {
		FILE *in = fopen(argv[i], "rb");
		size_t got = in ? fread(file, 1, sizeof(file), in) : 0;

		if (in)
			fclose(in);
		bench(strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i], file, got);
	}
	buf_free(&b);
	return 0;
}
