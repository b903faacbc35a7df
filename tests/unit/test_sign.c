/* test_sign.c: signatures of requests, against values that a second implementation (Python's hmac) has made. */
#include "codec/sign.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SECRET MQ_STR("orders-secret")

/* A frame of these fields, NULL at the end. */
static struct frame frame_of(const char *const *pairs, const char *body)
{
	struct frame f = { .version = 453, .body = str_of(body) };

	for (; *pairs; pairs += 2)
		f.field[f.nfields++] = (struct frame_field){ str_of(pairs[0]), str_of(pairs[1]) };
	return f;
}

static void assert_signed(const struct frame *f, int without, const char *want)
{
	char text[SIGN_TEXT + 1] = "";

	sign_text(f, SECRET, without, text);
	assert_string_equal(text, want);
}

static void values_are_signed_in_the_order_of_their_names_and_then_the_body(void **state)
{
	static const char *const one[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x", NULL };
	static const char *const other[] = { "topic", "x", "AccessKey", "orders-app", "a", "producers", "b", "orders", NULL };
	struct frame f = frame_of(one, "hello"), g = frame_of(other, "hello");

	assert_signed(&f, 0, "xmOyoak0jqCm1Nz5H74emN8f028=");
	assert_signed(&g, 0, "xmOyoak0jqCm1Nz5H74emN8f028=");
}

static void the_signature_itself_is_not_signed_and_of_two_the_last_counts(void **state)
{
	static const char *const pairs[] = { "b", "no", "a", "producers", "Signature", "x", "AccessKey", "orders-app", "topic", "x", "b",
					     "orders", NULL };
	struct frame f = frame_of(pairs, "hello");

	assert_signed(&f, 0, "xmOyoak0jqCm1Nz5H74emN8f028=");
}

static bool checks(const char *const *pairs, const char *body, int version, struct mq_str secret)
{
	struct frame f = frame_of(pairs, body);

	f.version = version;
	return sign_check(&f, secret);
}

static void a_right_signature_is_told_from_wrong_ones(void **state)
{
	static const char *const good[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x",
					    "Signature", "xmOyoak0jqCm1Nz5H74emN8f028=", NULL };
	static const char *const changed[] = { "b", "order5", "a", "producers", "AccessKey", "orders-app", "topic", "x",
					       "Signature", "xmOyoak0jqCm1Nz5H74emN8f028=", NULL };
	static const char *const cut[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x",
					   "Signature", "xmOyoak0jqCm1Nz5H74emN8f028", NULL };
	static const char *const none[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x", NULL };

	assert_true(checks(good, "hello", 453, SECRET));
	assert_false(checks(good, "hell0", 453, SECRET));
	assert_false(checks(good, "hello", 453, MQ_STR("orders-secreT")));
	assert_false(checks(good, "hello", 453, MQ_STR("")));
	assert_false(checks(changed, "hello", 453, SECRET));
	assert_false(checks(cut, "hello", 453, SECRET));
	assert_false(checks(none, "hello", 453, SECRET));
}

static void a_token_may_be_signed_or_not(void **state)
{
	static const char *const with[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x", "SecurityToken", "tok",
					    "Signature", "dqi2WBSAbXqlG/3RVFYsVUFoyWk=", NULL };
	static const char *const without[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x", "SecurityToken",
					       "tok", "Signature", "xmOyoak0jqCm1Nz5H74emN8f028=", NULL };

	assert_true(checks(with, "hello", 453, SECRET));
	assert_true(checks(without, "hello", 453, SECRET));
}

static void the_flag_of_unique_keys_is_signed_from_4_9_4_on(void **state)
{
	static const char *const with[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x",
					    "_UNIQUE_KEY_QUERY", "true", "Signature", "D9ityRq9B7fiAaFDdvekiHL8TLQ=", NULL };
	static const char *const without[] = { "b", "orders", "a", "producers", "AccessKey", "orders-app", "topic", "x",
					       "_UNIQUE_KEY_QUERY", "true", "Signature", "gJ28VUwDLc7QR6shk3E4bIGTF18=", NULL };

	assert_true(checks(with, NULL, 400, SECRET));
	assert_false(checks(without, NULL, 400, SECRET));
	assert_true(checks(without, NULL, 399, SECRET));
	assert_false(checks(with, NULL, 399, SECRET));
}

/* What is signed reads as before, with three fields more, and checks. */
static void sign_and_read(int type, const struct sign_key *key)
{
	struct buf b = { 0 };
	struct frame_out o;
	struct frame f;
	size_t start;

	buf_cstr(&b, "what stands before");
	start = b.n;
	frame_request(&o, &b, type, 310, 77, FRAME_ONEWAY);
	frame_str(&o, "b", MQ_STR("a \"topic\"\n"));
	frame_i64(&o, "e", -3);
	frame_str(&o, "i", MQ_STR("K\001v\002"));
	frame_body(&o);
	buf_put(&b, "a\0b", 3);
	frame_end(&o);
	sign_request(&b, start, key);
	assert_memory_equal(b.p, "what stands before", start);
	assert_int_equal(frame_length(b.p + start, b.n - start), b.n - start);
	assert_int_equal(frame_parse(b.p + start, b.n - start, &f, NULL), 0);
	assert_int_equal(f.type, type);
	assert_int_equal(f.code, 310);
	assert_int_equal(f.opaque, 77);
	assert_int_equal(f.flag, FRAME_ONEWAY);
	assert_true(str_is(frame_get(&f, "b"), "a \"topic\"\n"));
	assert_true(str_is(frame_get(&f, "e"), "-3"));
	assert_true(str_is(frame_get(&f, "i"), "K\001v\002"));
	assert_true(str_eq(frame_get(&f, "AccessKey"), key->access));
	assert_true(str_eq(frame_get(&f, "SecurityToken"), key->token));
	assert_true(str_eq(f.body, (struct mq_str){ "a\0b", 3 }));
	assert_true(sign_check(&f, key->secret));
	buf_free(&b);
}

static void a_request_is_signed_in_both_kinds_of_header(void **state)
{
	struct sign_key key = { MQ_STR("orders-app"), SECRET, { NULL, 0 } }, with = { MQ_STR("orders-app"), SECRET, MQ_STR("token") };

	sign_and_read(FRAME_JSON, &key);
	sign_and_read(FRAME_BINARY, &key);
	sign_and_read(FRAME_JSON, &with);
	sign_and_read(FRAME_BINARY, &with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_signed_in_the_order_of_their_names_and_then_the_body),
		cmocka_unit_test(the_signature_itself_is_not_signed_and_of_two_the_last_counts),
		cmocka_unit_test(a_right_signature_is_told_from_wrong_ones),
		cmocka_unit_test(a_token_may_be_signed_or_not),
		cmocka_unit_test(the_flag_of_unique_keys_is_signed_from_4_9_4_on),
		cmocka_unit_test(a_request_is_signed_in_both_kinds_of_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
