/* One stored message: our bytes are the peer's bytes, both versions, both kinds of host; no damage gets through. */
#include "codec/layout.h"
#include "codec/message.h"
#include "base/crc.h"
#include "base/str.h"
#include "base/zip.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* A record written by the Java broker 5.2.0: golden/store/clean, log offset 0. */
static const char java_v1[] =
	"000000dbdaa320a7430ff98800000000000000000000000000000000000000000000000000000000000001a22d5c87c77f000001"
	"0000a88c000001a22d5c880a7f000001000051af0000000000000000000000000000000c706c61696e20626f64792030074678"
	"506c61696e006d4d53475f524547494f4e0144656661756c74526567696f6e02554e49515f4b45590143303030303230323645"
	"413235464644324232373938463439464246303030"
	"3002434c5553544552014678436c7573746572025741495401747275650254524143455f4f4e017472756502";
/* golden/store/features, log offset 18210: version 2, because the topic has 132 bytes; 132 times 'G' is cut out here. */
static const char java_v2_head[] =
	"0000027ddaa320ab27c1379000000000000000000000000000000000000000000000472200000000000001a22d541ea07f0000010000c930"
	"000001a22d54230c7f000001000051af0000000100000000000000000000001a676f657320746f2061206c6f6e67207265747279"
	"20746f7069630084";

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;
	for (size_t i = 0; i < n; i++) {
		unsigned v;
		sscanf(hex + 2 * i, "%2x", &v);
		out[i] = (uint8_t)v;
	}
	return n;
}

static struct message_parts parts_of(const struct mq_message *m)
{
	return (struct message_parts){
		.topic = m->topic, .body = m->body, .props = { m->props }, .queue_id = m->queue_id, .flag = m->flag,
		.sys_flag = m->sys_flag, .reconsume_times = m->reconsume_times, .queue_off = m->queue_off,
		.log_off = m->log_off, .born_ms = m->born_ms, .store_ms = m->store_ms, .prepared_off = m->prepared_off,
		.born_host = m->born_host, .store_host = m->store_host,
	};
}

static void a_record_of_the_peer_is_read_and_written_byte_for_byte(void **state)
{
	uint8_t raw[512], again[512];
	struct mq_message m;
	size_t n = unhex(java_v1, raw);
	assert_int_equal(n, 219);
	assert_int_equal(mq_message_decode(raw, n, true, &m), 219);
	assert_true(str_is(m.topic, "FxPlain"));
	assert_true(str_is(m.body, "plain body 0"));
	assert_true(str_is(mq_prop_get(m.props, "CLUSTER"), "FxCluster"));
	assert_int_equal(m.born_ms, 1796057368519);
	assert_int_equal(m.store_ms, 1796057368586);
	assert_int_equal(m.born_host.port, 43148);
	assert_int_equal(m.store_host.port, 20911);
	assert_int_equal(m.body_crc, 1125120392);
	assert_int_equal(message_store_ms(raw), m.store_ms);
	assert_int_equal(message_queue_off(raw), 0);

	struct message_parts p = parts_of(&m);
	assert_int_equal(message_size(&p), 219);
	message_encode(&p, again);
	assert_memory_equal(raw, again, 219);
}

static void a_long_topic_makes_version_2(void **state)
{
	uint8_t raw[1024], head[200];
	char topic[256] = "%RETRY%";
	struct mq_message m;
	memset(topic + 7, 'G', 125);
	struct message_parts p = {
		.topic = { topic, 132 }, .body = MQ_STR("goes to a long retry topic"), .log_off = 18210, .born_ms = 1796056817312,
		.store_ms = 1796056818444, .reconsume_times = 1, .born_host = { { 127, 0, 0, 1 }, 4, 51504 },
		.store_host = { { 127, 0, 0, 1 }, 4, 20911 },
		.props = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } },
	};
	char props[637];
	size_t n = unhex(java_v2_head, head), props_n = 637 - RECORD_MIN - 1 - 132 - p.body.n;
	memset(props, 'p', sizeof(props));
	p.props[0] = (struct mq_str){ props, props_n };
	assert_int_equal(message_size(&p), 637);
	message_encode(&p, raw);
	assert_memory_equal(raw, head, n);
	assert_int_equal(mq_message_decode(raw, 637, true, &m), 637);
	assert_int_equal(m.topic.n, 132);
	assert_int_equal(m.props.n, props_n);
	p.topic.n = 127;
	message_encode(&p, raw);
	assert_int_equal(be32(raw + 4), RECORD_MAGIC_V1);
	assert_int_equal(mq_message_decode(raw, sizeof(raw), true, &m), message_size(&p));
	assert_int_equal(m.topic.n, 127);
}

static void every_mix_of_ipv4_and_ipv6_goes_both_ways(void **state)
{
	for (int mix = 0; mix < 8; mix++) {
		uint8_t raw[1024];
		char topic[200];
		struct mq_message m;
		memset(topic, 't', sizeof(topic));
		struct message_parts p = {
			.topic = { topic, mix & 4 ? 200 : 20 }, .body = MQ_STR("body"), .props = { MQ_STR("a\0011\2") },
			.queue_id = 3, .flag = -1, .sys_flag = MQ_SYS_TRAN_COMMIT | 0x30, .reconsume_times = 16,
			.queue_off = 0x123456789abc, .log_off = 0x7123456789abcdef, .born_ms = -1, .store_ms = 1796056818444,
			.prepared_off = 77, .born_host = { { 1, 2, 3, 4, [15] = 9 }, mix & 1 ? 16 : 4, 65535 },
			.store_host = { { 5, 6, 7, 8, [15] = 9 }, mix & 2 ? 16 : 4, -1 },
		};
		int64_t n = message_size(&p);
		assert_int_equal(n, 91 + p.topic.n + 4 + 4 + (mix & 1) * 12 + (mix & 2) / 2 * 12 + (mix & 4) / 4);
		message_encode(&p, raw);
		assert_int_equal(mq_message_decode(raw, (size_t)n, true, &m), n);
		assert_true(str_eq(m.topic, p.topic) && str_eq(m.body, p.body) && str_eq(m.props, p.props[0]));
		assert_int_equal(m.sys_flag, MQ_SYS_TRAN_COMMIT | (mix & 1 ? MQ_SYS_BORN_V6 : 0) | (mix & 2 ? MQ_SYS_STORE_V6 : 0));
		assert_int_equal(m.queue_id, 3);
		assert_int_equal(m.flag, -1);
		assert_int_equal(m.queue_off, p.queue_off);
		assert_int_equal(m.log_off, p.log_off);
		assert_int_equal(m.born_ms, -1);
		assert_int_equal(m.store_ms, p.store_ms);
		assert_int_equal(m.prepared_off, 77);
		assert_int_equal(m.reconsume_times, 16);
		assert_int_equal(m.born_host.len, p.born_host.len);
		assert_memory_equal(m.born_host.ip, p.born_host.ip, p.born_host.len);
		assert_int_equal(m.born_host.port, 65535);
		assert_int_equal(m.store_host.len, p.store_host.len);
		assert_memory_equal(m.store_host.ip, p.store_host.ip, p.store_host.len);
		assert_int_equal(m.store_host.port, -1);
		assert_int_equal(message_store_ms(raw), p.store_ms);
		assert_int_equal(message_queue_off(raw), p.queue_off);
	}
}

static void pieces_of_properties_are_joined_with_one_separator(void **state)
{
	uint8_t raw[512];
	struct mq_message m;
	struct message_parts p = { .topic = MQ_STR("t"), .body = MQ_STR("b") };
	const struct { struct mq_str piece[3]; struct mq_str whole; } row[] = {
		{ { MQ_STR("a\0011\2"), MQ_STR("b\0012\2"), MQ_STR("c\0013\2") }, MQ_STR("a\0011\2b\0012\2c\0013\2") },
		{ { MQ_STR("a\0011"), MQ_STR("b\0012"), MQ_STR("c\0013") }, MQ_STR("a\0011\2b\0012\2c\0013") },
		{ { MQ_STR("a\0011"), MQ_STR(""), MQ_STR("c\0013\2") }, MQ_STR("a\0011\2c\0013\2") },
		{ { MQ_STR(""), MQ_STR("b\0012"), MQ_STR("") }, MQ_STR("b\0012") },
		{ { MQ_STR(""), MQ_STR(""), MQ_STR("") }, MQ_STR("") },
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		memcpy(p.props, row[i].piece, sizeof(p.props));
		message_encode(&p, raw);
		assert_int_equal(mq_message_decode(raw, (size_t)message_size(&p), true, &m), message_size(&p));
		assert_true(str_eq(m.props, row[i].whole));
	}
}

static void what_does_not_fit_a_record_is_too_big(void **state)
{
	char *big = calloc(1, 40000);
	struct message_parts p = { .topic = MQ_STR("t"), .props = { { big, 32767 } } };
	assert_int_equal(message_size(&p), 91 + 1 + 32767);
	p.props[0].n = 32768;
	assert_int_equal(message_size(&p), MQ_ETOOBIG);
	/* 32766 and the separator that joins them fit, one more does not. */
	p.props[0].n = 32765, p.props[1] = MQ_STR("x");
	assert_int_equal(message_size(&p), 91 + 1 + 32767);
	p.props[0].n = 32766;
	assert_int_equal(message_size(&p), MQ_ETOOBIG);
	p.props[0].n = 0;
	p.topic = (struct mq_str){ big, 255 };
	assert_true(message_size(&p) > 0);
	p.topic.n = 256;
	assert_int_equal(message_size(&p), MQ_ETOOBIG);
	p.topic.n = 1;
	p.body = (struct mq_str){ big, (size_t)INT32_MAX };
	assert_int_equal(message_size(&p), MQ_ETOOBIG);
	free(big);
}

static void a_record_cut_anywhere_is_not_whole(void **state)
{
	uint8_t raw[512];
	struct mq_message m;
	size_t n = unhex(java_v1, raw);
	for (size_t k = 0; k < n; k++) {
		uint8_t *part = malloc(k ? k : 1); /* of exactly this size, so that a look behind it is seen */
		memcpy(part, raw, k);
		assert_int_equal(mq_message_decode(part, k, true, &m), 0);
		free(part);
	}
}

static void lengths_that_do_not_add_up_are_damage(void **state)
{
	uint8_t raw[512];
	struct mq_message m;
	size_t n = unhex(java_v1, raw);
	const struct { size_t at; int width; uint32_t value; } row[] = {
		{ 0, 4, 0 }, { 0, 4, 90 }, { 0, 4, 218 }, { 0, 4, 0x80000000 }, { 0, 4, 0xffffffff },
		{ 4, 4, 0 }, { 4, 4, RECORD_MAGIC_V2 }, { 4, 4, 0x20313726 },
		{ 84, 4, 11 }, { 84, 4, 13 }, { 84, 4, 0x7fffffff }, { 84, 4, 0xffffffff }, { 84, 4, 0x80000000 }, { 84, 4, 140 },
		{ 100, 1, 6 }, { 100, 1, 8 }, { 100, 1, 127 }, { 100, 1, 128 }, { 100, 1, 255 },
		{ 108, 2, 0x6c }, { 108, 2, 0x6e }, { 108, 2, 0xffff }, { 108, 2, 0x7fff },
		{ 36, 4, MQ_SYS_BORN_V6 }, { 36, 4, MQ_SYS_STORE_V6 }, { 36, 4, MQ_SYS_BORN_V6 | MQ_SYS_STORE_V6 },
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		uint8_t *bad = malloc(n);
		memcpy(bad, raw, n);
		if (row[i].width == 4)
			put_be32(bad + row[i].at, row[i].value);
		else if (row[i].width == 2)
			put_be16(bad + row[i].at, (uint16_t)row[i].value);
		else
			bad[row[i].at] = (uint8_t)row[i].value;
		assert_int_equal(mq_message_decode(bad, n, false, &m), MQ_ECORRUPT);
		free(bad);
	}
	/* Every single byte of the lengths, any value: never a record of another shape. */
	const size_t at[] = { 0, 1, 2, 3, 84, 85, 86, 87, 100, 108, 109 };
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		for (int v = 0; v < 256; v++) {
			uint8_t *bad = malloc(n), was = raw[at[i]];
			memcpy(bad, raw, n);
			bad[at[i]] = (uint8_t)v;
			int32_t rc = mq_message_decode(bad, n, false, &m);
			assert_true(v == was ? rc == (int32_t)n : rc == MQ_ECORRUPT || (rc == 0 && at[i] < 4));
			free(bad);
		}
}

static void the_smallest_record_with_ipv6_bits_is_damage(void **state)
{
	uint8_t raw[RECORD_MIN] = { 0 };
	struct mq_message m;
	struct message_parts p = { .queue_id = 0 };
	assert_int_equal(message_size(&p), RECORD_MIN);
	message_encode(&p, raw);
	assert_int_equal(mq_message_decode(raw, sizeof(raw), true, &m), RECORD_MIN);
	put_be32(raw + RECORD_AT_SYS_FLAG, MQ_SYS_STORE_V6);
	assert_int_equal(mq_message_decode(raw, sizeof(raw), true, &m), MQ_ECORRUPT);
}

static void a_changed_body_fails_its_checksum_only_when_asked(void **state)
{
	uint8_t raw[512];
	struct mq_message m;
	size_t n = unhex(java_v1, raw);
	raw[88] ^= 1;
	assert_int_equal(mq_message_decode(raw, n, true, &m), MQ_ECORRUPT);
	assert_int_equal(mq_message_decode(raw, n, false, &m), n);
}

static void an_empty_body_has_no_checksum(void **state)
{
	uint8_t raw[200];
	struct mq_message m;
	struct message_parts p = { .topic = MQ_STR("t") };
	message_encode(&p, raw);
	assert_int_equal(be32(raw + RECORD_AT_CRC), 0);
	put_be32(raw + RECORD_AT_CRC, 5);
	assert_int_equal(mq_message_decode(raw, sizeof(raw), true, &m), message_size(&p));
}

static void the_checksum_has_no_top_bit(void **state)
{
	uint8_t raw[200];
	struct message_parts p = { .topic = MQ_STR("t"), .body = MQ_STR("a") }; /* CRC-32 0xE8B7BE43 */
	assert_int_equal(crc32_of("a", 1), 0xe8b7be43);
	message_encode(&p, raw);
	assert_int_equal(be32(raw + RECORD_AT_CRC), 0x68b7be43);
}

static void peek_tells_a_blank_from_a_record(void **state)
{
	uint8_t raw[512], rest[64] = { 0 };
	struct mq_message m;
	bool blank;
	size_t n = unhex(java_v1, raw);
	assert_int_equal(message_peek(raw, n, &m, &blank), n);
	assert_false(blank);
	put_be32(rest, sizeof(rest));
	put_be32(rest + 4, RECORD_MAGIC_BLANK);
	assert_int_equal(message_peek(rest, sizeof(rest), &m, &blank), sizeof(rest));
	assert_true(blank);
	put_be32(rest, 0xffffffff);
	assert_int_equal(message_peek(rest, 8, &m, &blank), 8);
	assert_true(blank);
	assert_int_equal(message_peek(rest, 7, &m, &blank), MQ_OK);
	assert_false(blank);
	memset(rest, 0, sizeof(rest));
	assert_int_equal(message_peek(rest, sizeof(rest), &m, &blank), MQ_ECORRUPT);
	assert_false(blank);
	assert_int_equal(mq_message_decode(rest, 4, false, &m), MQ_ECORRUPT);
}

static void bodies_are_inflated_whatever_packed_them(void **state)
{
	static const int32_t type[] = { 0, MQ_SYS_COMPRESS_LZ4, MQ_SYS_COMPRESS_ZSTD, MQ_SYS_COMPRESS_ZLIB };
	void *scratch = NULL;
	size_t cap = 0;
	struct mq_str plain = MQ_STR("twenty times the same, twenty times the same, twenty times the same"), body;
	for (size_t i = 0; i < sizeof(type) / sizeof(*type); i++) {
		struct buf b = { 0 };
		assert_int_equal(zip_pack(type[i], 5, plain, &b), 0);
		struct mq_message m = { .body = buf_view(&b), .sys_flag = MQ_SYS_COMPRESSED | type[i] };
		assert_int_equal(mq_message_body(&m, 1000, &scratch, &cap, &body), 0);
		assert_true(str_eq(body, plain));
		assert_int_equal(mq_message_body(&m, plain.n - 1, &scratch, &cap, &body), MQ_ETOOBIG);
		m.body.n--;
		assert_int_equal(mq_message_body(&m, 1000, &scratch, &cap, &body), MQ_ECORRUPT);
		assert_int_equal(body.n, 0);
		buf_free(&b);
	}
	free(scratch);
}

static void a_plain_body_is_the_view_it_is(void **state)
{
	void *scratch = NULL;
	size_t cap = 0;
	struct mq_message m = { .body = MQ_STR("plain") };
	struct mq_str body;
	assert_int_equal(mq_message_body(&m, 5, &scratch, &cap, &body), 0);
	assert_ptr_equal(body.p, m.body.p);
	assert_null(scratch);
	assert_int_equal(mq_message_body(&m, 4, &scratch, &cap, &body), MQ_ETOOBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_of_the_peer_is_read_and_written_byte_for_byte),
		cmocka_unit_test(a_long_topic_makes_version_2),
		cmocka_unit_test(every_mix_of_ipv4_and_ipv6_goes_both_ways),
		cmocka_unit_test(pieces_of_properties_are_joined_with_one_separator),
		cmocka_unit_test(what_does_not_fit_a_record_is_too_big),
		cmocka_unit_test(a_record_cut_anywhere_is_not_whole),
		cmocka_unit_test(lengths_that_do_not_add_up_are_damage),
		cmocka_unit_test(the_smallest_record_with_ipv6_bits_is_damage),
		cmocka_unit_test(a_changed_body_fails_its_checksum_only_when_asked),
		cmocka_unit_test(an_empty_body_has_no_checksum),
		cmocka_unit_test(the_checksum_has_no_top_bit),
		cmocka_unit_test(peek_tells_a_blank_from_a_record),
		cmocka_unit_test(bodies_are_inflated_whatever_packed_them),
		cmocka_unit_test(a_plain_body_is_the_view_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
