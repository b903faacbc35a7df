/* test_frame.c: frames: real ones are read and written again, cut and damaged ones are refused, nothing crashes. */
#include "base/byte.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/request.h"
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const char *const peers[] = { "wire/java", "wire/go", "wire/node", "wire/cpp" };
enum { PEERS = sizeof(peers) / sizeof(peers[0]) };

/* ---- Helpers ----------------------------------------------------------------------------------------------------------- */

/* A JSON frame with this header text and body, in memory of exactly its size. */
static char *json_frame(const char *header, const char *body, size_t *n)
{
	size_t h = strlen(header), b = strlen(body);
	char *p = malloc(8 + h + b);

	put_be32(p, (uint32_t)(4 + h + b));
	put_be32(p + 4, (uint32_t)h);
	memcpy(p + 8, header, h);
	memcpy(p + 8 + h, body, b);
	*n = 8 + h + b;
	return p;
}

static char *frame_bytes;       /* of the last parse_json() */

static int parse_json(const char *header, struct frame *f)
{
	struct mq_error e = { 0 };
	size_t n;
	int rc;

	free(frame_bytes);
	frame_bytes = json_frame(header, "", &n);
	assert_int_equal(frame_length(frame_bytes, n), n);
	rc = frame_parse(frame_bytes, n, f, &e);
	if (rc != 0) {
		assert_int_equal(rc, MQ_EPROTO);
		assert_true(e.text[0] != 0);
	}
	return rc;
}

static int forget_bytes(void **state)
{
	free(frame_bytes);
	frame_bytes = NULL;
	return 0;
}

static void assert_str(struct mq_str got, const char *want)
{
	if (!str_is(got, want))
		fail_msg("got '" MQ_STR_FMT "', want '%s'", MQ_STR_ARG(got), want);
}

/* The frame as we would write it. */
static void write_again(const struct frame *f, int type, struct buf *out)
{
	struct frame_out o;

	if (f->flag & FRAME_RESPONSE)
		frame_answer(&o, out, (struct frame_id){ f->opaque, (uint8_t)type, false }, f->code, f->remark);
	else
		frame_request(&o, out, type, f->code, f->opaque, f->flag);
	for (uint32_t i = 0; i < f->nfields; i++)
		frame_put_str(&o, f->field[i].key.p, f->field[i].key.n, f->field[i].value);
	frame_body(&o);
	buf_str(out, f->body);
	frame_end(&o);
}

static void assert_same_frame(const struct frame *a, const struct frame *b)
{
	assert_int_equal(a->code, b->code);
	assert_int_equal(a->opaque, b->opaque);
	assert_int_equal(a->flag, b->flag);
	assert_true(str_eq(a->body, b->body));
	assert_int_equal(a->nfields, b->nfields);
	for (uint32_t i = 0; i < a->nfields; i++) {
		assert_true(str_eq(a->field[i].key, b->field[i].key));
		assert_true(str_eq(a->field[i].value, b->field[i].value));
	}
	if (a->flag & FRAME_RESPONSE)
		assert_true(str_eq(a->remark, b->remark));
}

/* ---- Real frames ------------------------------------------------------------------------------------------------------- */

static void read_and_write(void *arg, const char *name, const char *bytes, size_t n)
{
	char *copy = malloc(n);
	struct frame f, again;
	struct mq_error e = { 0 };
	struct buf out = { 0 };

	memcpy(copy, bytes, n);
	assert_int_equal(frame_length(copy, n), n);
	if (frame_parse(copy, n, &f, &e) != 0)
		fail_msg("%s: %s", name, e.text);
	assert_int_equal(f.type, strstr(name, "-binary") || strstr(name, "_CUT.req") ? FRAME_BINARY : FRAME_JSON);
	assert_true(f.version > 0);
	assert_int_not_equal(f.language, 255);
	for (int type = FRAME_JSON; type <= FRAME_BINARY; type++) {
		/* An empty value is no value in a binary header; a negative or large code has no place in it. */
		bool empty = false;

		for (uint32_t i = 0; i < f.nfields; i++)
			empty |= f.field[i].value.n == 0;
		if (type == FRAME_BINARY && empty)
			continue;
		out.n = 0;
		write_again(&f, type, &out);
		assert_int_equal(frame_length(out.p, out.n), out.n);
		if (frame_parse(out.p, out.n, &again, &e) != 0)
			fail_msg("%s, written again: %s", name, e.text);
		assert_same_frame(&f, &again);
		assert_int_equal(again.version, MQ_PEER_VERSION);
	}
	++*(int *)arg;
	buf_free(&out);
	free(copy);
}

static void real_frames_survive_reading_and_writing(void **state)
{
	int count = 0;

	for (int i = 0; i < PEERS; i++)
		golden_each(peers[i], read_and_write, &count);
	assert_true(count > 280);
}

static void decode_header(void *arg, const char *name, const char *bytes, size_t n)
{
	union { struct send_header send; char room[1024]; } h, again_h;
	char *copy = malloc(n);
	struct frame f, again;
	struct mq_error e = { 0 };
	struct buf out = { 0 };
	struct frame_out o;
	const struct request_row *row;

	memcpy(copy, bytes, n);
	assert_int_equal(frame_parse(copy, n, &f, &e), 0);
	row = f.flag & FRAME_RESPONSE ? NULL : request_find(f.code);
	if (!row)
		goto done;
	assert_true(row->header->size <= sizeof(h));
	if (header_decode(row->header, &f, &h, &e) != 0)
		fail_msg("%s: %s", name, e.text);
	frame_request(&o, &out, FRAME_JSON, f.code, 1, 0);
	header_encode(row->header, &h, f.code == REQ_SEND_MESSAGE_V2, &o);
	frame_end(&o);
	assert_int_equal(frame_parse(out.p, out.n, &again, &e), 0);
	if (header_decode(row->header, &again, &again_h, &e) != 0)
		fail_msg("%s, written again: %s", name, e.text);
	for (uint32_t i = 0; i < row->header->n; i++) {
		const struct header_field *r = &row->header->field[i];
		const char *a = (const char *)&h + r->off, *b = (const char *)&again_h + r->off;

		switch (r->type) {
		case HEADER_str: assert_true(str_eq(*(const struct mq_str *)(const void *)a, *(const struct mq_str *)(const void *)b)); break;
		case HEADER_i32: assert_memory_equal(a, b, 4); break;
		case HEADER_i64: assert_memory_equal(a, b, 8); break;
		case HEADER_boolean: assert_memory_equal(a, b, 1); break;
		}
	}
	assert_int_equal(h.send.present, again_h.send.present);
	++*(int *)arg;
done:
	buf_free(&out);
	free(copy);
}

static void headers_of_real_requests_decode_and_encode(void **state)
{
	int count = 0;

	for (int i = 0; i < PEERS; i++)
		golden_each(peers[i], decode_header, &count);
	assert_true(count > 130);
}

/* What the Java client sends, byte for byte, but for the order of fields, which is that of its hash map. */
static void a_send_of_the_java_client_has_what_it_says(void **state)
{
	size_t n;
	char *bytes = golden_read("wire/java/SEND_MESSAGE_V2.req.bin", &n);
	struct send_header h;
	struct mq_error e;
	struct frame f;

	assert_int_equal(frame_parse(bytes, n, &f, &e), 0);
	assert_int_equal(f.code, REQ_SEND_MESSAGE_V2);
	assert_string_equal(frame_language_name(f.language), "JAVA");
	assert_int_equal(f.version, 453);
	assert_int_equal(header_decode(&send_header_desc, &f, &h, &e), 0);
	assert_str(h.defaultTopic, "TBW102");
	assert_int_equal(h.defaultTopicQueueNums, 4);
	assert_true(HEADER_HAS(send_header, &h, batch));
	assert_false(h.batch);
	assert_true(h.properties.n > 0);
	assert_non_null(memchr(h.properties.p, 1, h.properties.n));
	assert_null(memchr(h.properties.p, '\\', h.properties.n));
	free(bytes);
}

static void the_node_client_sends_numbers_and_leaves_batch_out(void **state)
{
	size_t n;
	char *bytes = golden_read("wire/node/SEND_MESSAGE_V2.req.bin", &n);
	struct send_header h;
	struct mq_error e;
	struct frame f;

	assert_int_equal(frame_parse(bytes, n, &f, &e), 0);
	assert_int_equal(header_decode(&send_header_desc, &f, &h, &e), 0);
	assert_int_equal(h.defaultTopicQueueNums, 4);
	assert_true(h.bornTimestamp > 1600000000000);
	assert_false(HEADER_HAS(send_header, &h, batch));
	assert_false(h.batch);
	assert_false(h.unitMode);
	free(bytes);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------------ */

static void damage(void *arg, const char *name, const char *bytes, size_t n)
{
	struct frame f;
	struct mq_error e;

	if (n > 600)
		return;
	/* Cut anywhere, with the length made right again, or not. */
	for (size_t cut = 0; cut < n; cut++) {
		char *copy = malloc(cut ? cut : 1);

		memcpy(copy, bytes, cut);
		if (cut >= 4)
			put_be32(copy, (uint32_t)(cut - 4));
		if (cut < 8 || (be32(bytes + 4) & 0xffffff) > cut - 8)
			assert_int_equal(frame_parse(copy, cut, &f, &e), MQ_EPROTO);
		else
			assert_int_equal(frame_parse(copy, cut, &f, &e), 0);
		free(copy);
	}
	/* Every byte of envelope and header replaced by ones that mean something. */
	for (size_t at = 0; at < n && at < 8 + (be32(bytes + 4) & 0xffffff); at++) {
		static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '}', '[', ']', ',', ':', '9', '-', 'u', ' ' };

		for (size_t v = 0; v < sizeof(values); v++) {
			char *copy = malloc(n);

			memcpy(copy, bytes, n);
			copy[at] = (char)values[v];
			if (frame_length(copy, n) > 0 && frame_parse(copy, n, &f, &e) == 0) {
				/* What came out must lie inside the frame. */
				for (uint32_t i = 0; i < f.nfields; i++)
					assert_true(f.field[i].value.p >= copy && f.field[i].value.p + f.field[i].value.n <= copy + n);
				++*(int *)arg;
			}
			free(copy);
		}
	}
}

static void damaged_frames_are_refused_or_read_within_bounds(void **state)
{
	int read = 0;

	for (int i = 0; i < PEERS; i++)
		golden_each(peers[i], damage, &read);
	assert_true(read > 1000);
}

static void lengths_that_no_frame_has(void **state)
{
	unsigned char p[12] = { 0 };

	assert_int_equal(frame_length(p, 3), 0);
	assert_int_equal(frame_length(p, 4), MQ_EPROTO);        /* length 0 */
	put_be32(p, 4);
	assert_int_equal(frame_length(p, 4), 8);
	put_be32(p, FRAME_MAX - 4);
	assert_int_equal(frame_length(p, 4), FRAME_MAX);
	put_be32(p, FRAME_MAX - 3);
	assert_int_equal(frame_length(p, 4), MQ_EPROTO);
	put_be32(p, 0xffffffff);
	assert_int_equal(frame_length(p, 4), MQ_EPROTO);
	memcpy(p, "GET / HTTP/1", 12);
	assert_int_equal(frame_length(p, 12), MQ_EPROTO);
	put_be32(p, 1000);
	put_be32(p + 4, 997);                                   /* header longer than the frame */
	assert_int_equal(frame_length(p, 8), MQ_EPROTO);
	put_be32(p + 4, 2u << 24 | 10);                         /* header of an unknown kind */
	assert_int_equal(frame_length(p, 8), MQ_EPROTO);
}

/* ---- JSON header ------------------------------------------------------------------------------------------------------- */

static void json_header_in_any_shape_that_peers_send(void **state)
{
	struct frame f;

	assert_int_equal(parse_json("{}", &f), 0);
	assert_int_equal(f.code, 0);
	assert_int_equal(f.language, 255);
	assert_false(f.has_fields);
	assert_null(f.remark.p);
	assert_null(f.body.p);

	assert_int_equal(parse_json(" { \"version\" : 63 ,\r\n \"extFields\" : { \"queueId\" : 3 , \"b\" : true,\"n\":null , \"t\": \"x\" } , "
	                            "\"flag\":\"0\",\"opaque\":-7,\"code\":\"310\", \"remark\": null, \"language\":\"CPP\"}\n", &f), 0);
	assert_int_equal(f.version, 63);
	assert_int_equal(f.code, 310);
	assert_int_equal(f.opaque, -7);
	assert_string_equal(frame_language_name(f.language), "CPP");
	assert_null(f.remark.p);
	assert_int_equal(f.nfields, 3);
	assert_str(frame_get(&f, "queueId"), "3");
	assert_str(frame_get(&f, "b"), "true");
	assert_str(frame_get(&f, "t"), "x");
	assert_null(frame_get(&f, "n").p);

	assert_int_equal(parse_json("{\"unknown\":{\"a\":[1,{\"}\":\"]\\\"\"}]},\"code\":11,\"x\":[[],{}],\"y\":-1.5e3,\"z\":false}", &f), 0);
	assert_int_equal(f.code, 11);

	assert_int_equal(parse_json("{\"extFields\":{\"a\":{\"b\":[1]},\"c\":\"\"},\"remark\":\"\"}", &f), 0);
	assert_str(frame_get(&f, "a"), "{\"b\":[1]}");
	assert_non_null(frame_get(&f, "c").p);
	assert_int_equal(frame_get(&f, "c").n, 0);

	assert_int_equal(parse_json("{\"extFields\":null,\"code\":null}", &f), 0);
	assert_false(f.has_fields);
	assert_int_equal(parse_json("{\"extFields\":{}}", &f), 0);
	assert_true(f.has_fields);
	assert_int_equal(f.nfields, 0);

	assert_int_equal(parse_json("{\"language\":\"KLINGON\"}", &f), 0);
	assert_int_equal(f.language, 255);
	assert_int_equal(parse_json("{\"extFields\":{\"a\":\"1\",\"a\":\"2\"}}", &f), 0);
	assert_str(frame_get(&f, "a"), "2");
}

static void json_header_that_is_no_header(void **state)
{
	static const char *const bad[] = {
		"", " ", "null", "[]", "3", "\"x\"", "{", "{\"code\"", "{\"code\":", "{\"code\":1", "{\"code\":1,", "{\"code\":1,}", "{,}",
		"{\"code\":1}}", "{\"code\":1} x", "{\"code\":x}", "{\"code\":\"\"}", "{\"code\":\"x\"}", "{\"code\":1.5}", "{\"code\":true}",
		"{\"code\":2147483648}", "{\"opaque\":-2147483649}", "{\"code\":99999999999999999999}", "{\"code\":-}", "{code:1}", "{'code':1}",
		"{\"code\" 1}", "{\"extFields\":[]}", "{\"extFields\":1}", "{\"extFields\":\"x\"}", "{\"extFields\":{\"a\"}}",
		"{\"extFields\":{\"a\":}}", "{\"extFields\":{\"a\":\"1\"", "{\"extFields\":{\"a\":\"1\",}}", "{\"extFields\":{a:1}}",
		"{\"extFields\":{\"a\":nul}}", "{\"extFields\":{\"a\":\"\\", "{\"extFields\":{\"a\":\"\\\"}}", "{\"extFields\":{\"a\":\"\\u12\"}}",
		"{\"extFields\":{\"a\":\"\\u12G4\"}}", "{\"extFields\":{\"a\":\"\\q\"}}", "{\"x\":[}", "{\"x\":{\"a\":[1}]}", "{\"x\":\\}",
		"{\"x\":[\\\"]}", "{\"remark\":\"", "{\"extFields\":{\"a\":\"1\" \"b\":\"2\"}}",
	};
	struct frame f;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse_json(bad[i], &f) == 0)
			fail_msg("was taken: %s", bad[i]);
}

static void escapes_become_the_bytes_they_stand_for(void **state)
{
	struct frame f;

	assert_int_equal(parse_json("{\"extFields\":{\"i\":\"UNIQ_KEY\\u0001AC11\\u0002WAIT\\u0001true\\u0002\"}}", &f), 0);
	assert_str(frame_get(&f, "i"), "UNIQ_KEY\001AC11\002WAIT\001true\002");
	assert_int_equal(parse_json("{\"remark\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\'\"}", &f), 0);
	assert_str(f.remark, "\"\\/\b\f\n\r\t'");
	assert_int_equal(parse_json("{\"remark\":\"\\u00e9\\u20AC\\ud83d\\ude00\\u0041\"}", &f), 0);
	assert_str(f.remark, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" "A");
	/* Halves of pairs: what the peer makes of them. */
	assert_int_equal(parse_json("{\"remark\":\"\\ud83d\\u0041\\ude00\\ud83d\"}", &f), 0);
	assert_str(f.remark, "?A??");
	assert_int_equal(parse_json("{\"extFields\":{\"a\\u0062\":\"\\u0000\"}}", &f), 0);
	assert_int_equal(frame_get(&f, "ab").n, 1);
	/* Every distance between escapes, and every length behind the last, moves the right bytes. */
	for (int gap = 0; gap < 80; gap++) {
		char header[700] = "{\"extFields\":{\"i\":\"", want[400] = "";

		for (int piece = 0; piece < 4; piece++) {
			for (int k = 0; k < gap; k++) {
				strncat(header, &"abcdefghijklmnopqrstuvwxyz"[(k + piece) % 26], 1);
				strncat(want, &"abcdefghijklmnopqrstuvwxyz"[(k + piece) % 26], 1);
			}
			strcat(header, piece == 0 ? "\\\"" : "\\u0002");
			strcat(want, piece == 0 ? "\"" : "\002");
		}
		strcat(header, "end\",\"next\":\"1\"}}");
		strcat(want, "end");
		assert_int_equal(parse_json(header, &f), 0);
		assert_str(frame_get(&f, "i"), want);
		assert_str(frame_get(&f, "next"), "1");
	}
}

/* Strings that end at, before and behind the borders of the blocks in which the scanner looks. */
static void strings_of_all_lengths(void **state)
{
	for (int n = 0; n < 300; n++) {
		char header[400], value[301];
		struct frame f;

		memset(value, 'v', (size_t)n);
		value[n] = 0;
		snprintf(header, sizeof(header), "{\"extFields\":{\"k\":\"%s\"},\"opaque\":%d}", value, n);
		assert_int_equal(parse_json(header, &f), 0);
		assert_str(frame_get(&f, "k"), value);
		assert_int_equal(f.opaque, n);
	}
}

static void too_many_fields_and_too_deep_values(void **state)
{
	struct buf b = { 0 };
	struct frame f;

	for (int n = FRAME_FIELDS_MAX; n <= FRAME_FIELDS_MAX + 1; n++) {
		b.n = 0;
		buf_cstr(&b, "{\"extFields\":{");
		for (int i = 0; i < n; i++)
			buf_printf(&b, "%s\"k%d\":\"%d\"", i ? "," : "", i, i);
		buf_put(&b, "}}", 3);
		assert_int_equal(parse_json(b.p, &f), n > FRAME_FIELDS_MAX ? MQ_EPROTO : 0);
	}
	for (int depth = FRAME_DEPTH_MAX; depth <= FRAME_DEPTH_MAX + 1; depth++) {
		b.n = 0;
		buf_cstr(&b, "{\"x\":");
		for (int i = 0; i < depth; i++)
			buf_char(&b, '[');
		for (int i = 0; i < depth; i++)
			buf_char(&b, ']');
		buf_put(&b, "}", 2);
		assert_int_equal(parse_json(b.p, &f), depth > FRAME_DEPTH_MAX ? MQ_EPROTO : 0);
	}
	b.n = 0;
	buf_cstr(&b, "{\"x\":");
	for (int i = 0; i < 1000000; i++)
		buf_char(&b, '[');
	buf_char(&b, 0);
	assert_int_equal(parse_json(b.p, &f), MQ_EPROTO);
	buf_free(&b);
}

/* ---- Binary header ----------------------------------------------------------------------------------------------------- */

static void binary_header_rules(void **state)
{
	struct buf b = { 0 };
	struct frame_out o;
	struct frame f;
	struct mq_error e;

	frame_answer(&o, &b, (struct frame_id){ 9, FRAME_BINARY, false }, 17, MQ_STR("no such topic"));
	frame_cstr(&o, "a", "1");
	frame_cstr(&o, "empty", "");
	frame_cstr(&o, "a", "2");
	frame_i64(&o, "n", INT64_MIN);
	frame_bool(&o, "b", true);
	frame_body(&o);
	buf_cstr(&b, "body");
	frame_end(&o);
	assert_int_equal(frame_length(b.p, b.n), b.n);
	assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
	assert_int_equal(f.type, FRAME_BINARY);
	assert_int_equal(f.code, 17);
	assert_int_equal(f.opaque, 9);
	assert_int_equal(f.flag, FRAME_RESPONSE);
	assert_str(f.remark, "no such topic");
	assert_str(frame_get(&f, "a"), "2");
	assert_str(frame_get(&f, "n"), "-9223372036854775808");
	assert_str(frame_get(&f, "b"), "true");
	assert_null(frame_get(&f, "empty").p);
	assert_str(f.body, "body");

	/* The codes of pop do not fit: such a request is written as JSON. */
	b.n = 0;
	frame_request(&o, &b, FRAME_BINARY, REQ_POP_MESSAGE, 1, 0);
	frame_end(&o);
	assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
	assert_int_equal(f.type, FRAME_JSON);
	assert_int_equal(f.code, REQ_POP_MESSAGE);

	/* Negative lengths of remark, fields, value. */
	b.n = 0;
	frame_request(&o, &b, FRAME_BINARY, REQ_PULL_MESSAGE, 1, 0);
	frame_cstr(&o, "key", "value");
	frame_end(&o);
	for (int at = 8 + 13; at < (int)b.n - 4; at += at == 8 + 13 ? 4 : 9) {
		struct buf c = { 0 };

		buf_put(&c, b.p, b.n);
		put_be32(c.p + at, (uint32_t)-1);
		assert_int_equal(frame_parse(c.p, c.n, &f, &e), MQ_EPROTO);
		buf_free(&c);
	}
	buf_free(&b);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------------- */

static void written_text_is_as_the_peer_writes_it(void **state)
{
	struct buf b = { 0 };
	struct frame_out o;

	buf_cstr(&b, "before");
	frame_request(&o, &b, FRAME_JSON, 105, 7, 0);
	frame_cstr(&o, "topic", "TopicTest");
	frame_str(&o, "absent", (struct mq_str){ NULL, 0 });
	frame_end(&o);
	assert_str((struct mq_str){ b.p + 6 + 8, b.n - 14 }, "{\"code\":105,\"extFields\":{\"topic\":\"TopicTest\"},\"flag\":0,"
	           "\"language\":\"JAVA\",\"opaque\":7,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":453}");
	b.n = 0;
	frame_answer(&o, &b, (struct frame_id){ -1, FRAME_JSON, false }, 1, MQ_STR("say \"no\"\n\001\x1f \xc3\xa9 \\"));
	frame_end(&o);
	assert_str((struct mq_str){ b.p + 8, b.n - 8 }, "{\"code\":1,\"flag\":1,\"language\":\"JAVA\",\"opaque\":-1,"
	           "\"remark\":\"say \\\"no\\\"\\n\\u0001\\u001F \xc3\xa9 \\\\\",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":453}");
	buf_free(&b);
}

static void any_bytes_come_back_from_a_field(void **state)
{
	char value[512];
	struct buf b = { 0 };
	struct frame_out o;
	struct frame f;
	struct mq_error e;
	unsigned seed = 1;

	for (int round = 0; round < 3000; round++) {
		size_t n = (size_t)rand_r(&seed) % sizeof(value);

		for (size_t i = 0; i < n; i++)
			value[i] = (char)(rand_r(&seed) % (round % 2 ? 256 : 40));
		b.n = 0;
		frame_request(&o, &b, round % 3 == 0 ? FRAME_BINARY : FRAME_JSON, 310, round, FRAME_ONEWAY);
		frame_i64(&o, "number", (int64_t)((uint64_t)rand_r(&seed) << 32 | (unsigned)rand_r(&seed)) * (round % 2 ? 1 : -1) >> round % 60);
		frame_put_str(&o, "value", 5, (struct mq_str){ value, n });
		frame_end(&o);
		assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
		assert_int_equal(f.opaque, round);
		if (n)
			assert_true(str_eq(frame_get(&f, "value"), (struct mq_str){ value, n }));
	}
	buf_free(&b);
}

static void numbers_are_written_in_full(void **state)
{
	static const int64_t numbers[] = { 0, 1, 9, 10, 99, 100, 101, 999, 1000, 12345, 1796057391645, INT64_MAX, INT64_MIN, -1, -10, -123 };
	struct buf b = { 0 };
	struct frame_out o;
	struct frame f;
	struct mq_error e;
	int64_t v;

	frame_request(&o, &b, FRAME_JSON, 1, 1, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		frame_i64(&o, "n", numbers[i]);
	frame_end(&o);
	assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(str_i64(f.field[i].value, &v), 0);
		assert_true(v == numbers[i]);
	}
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_frames_survive_reading_and_writing),
		cmocka_unit_test(headers_of_real_requests_decode_and_encode),
		cmocka_unit_test(a_send_of_the_java_client_has_what_it_says),
		cmocka_unit_test(the_node_client_sends_numbers_and_leaves_batch_out),
		cmocka_unit_test(damaged_frames_are_refused_or_read_within_bounds),
		cmocka_unit_test(lengths_that_no_frame_has),
		cmocka_unit_test_teardown(json_header_in_any_shape_that_peers_send, forget_bytes),
		cmocka_unit_test_teardown(json_header_that_is_no_header, forget_bytes),
		cmocka_unit_test_teardown(escapes_become_the_bytes_they_stand_for, forget_bytes),
		cmocka_unit_test_teardown(strings_of_all_lengths, forget_bytes),
		cmocka_unit_test_teardown(too_many_fields_and_too_deep_values, forget_bytes),
		cmocka_unit_test(binary_header_rules),
		cmocka_unit_test(written_text_is_as_the_peer_writes_it),
		cmocka_unit_test(any_bytes_come_back_from_a_field),
		cmocka_unit_test(numbers_are_written_in_full),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
