/* The body of a batch send: what was put comes back; what is cut short is refused. */
#include "codec/batch.h"
#include "base/byte.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static struct buf three(void)
{
	struct buf b = { 0 };
	batch_put(&b, &(struct batch_item){ 7, MQ_STR("first"), MQ_STR("KEYS\1k\2") });
	batch_put(&b, &(struct batch_item){ -1, MQ_STR(""), MQ_STR("") });
	batch_put(&b, &(struct batch_item){ 0, MQ_STR("third"), MQ_STR("TAGS\1t\2") });
	return b;
}

static void members_come_back_in_order(void **state)
{
	struct buf b = three();
	struct batch_item it;
	size_t pos = 0;
	assert_int_equal(b.n, 3 * 22 + 5 + 7 + 5 + 7);
	assert_int_equal(be32(b.p), 22 + 5 + 7);
	assert_int_equal(batch_next(buf_view(&b), &pos, &it), 1);
	assert_int_equal(it.flag, 7);
	assert_true(str_is(it.body, "first"));
	assert_true(str_is(it.props, "KEYS\1k\2"));
	assert_int_equal(batch_next(buf_view(&b), &pos, &it), 1);
	assert_int_equal(it.flag, -1);
	assert_int_equal(it.body.n + it.props.n, 0);
	assert_int_equal(batch_next(buf_view(&b), &pos, &it), 1);
	assert_true(str_is(it.body, "third"));
	assert_int_equal(pos, b.n);
	assert_int_equal(batch_next(buf_view(&b), &pos, &it), 0);
	buf_free(&b);
}

static void a_batch_cut_anywhere_is_refused(void **state)
{
	struct buf b = three();
	for (size_t n = 0; n < b.n; n++) {
		char *part = malloc(n ? n : 1);
		struct batch_item it;
		size_t pos = 0;
		int rc, whole = 0;
		memcpy(part, b.p, n);
		while ((rc = batch_next((struct mq_str){ part, n }, &pos, &it)) > 0)
			whole++;
		bool at_border = n == 0 || n == 34 || n == 56;
		assert_int_equal(rc, at_border ? 0 : MQ_ECORRUPT);
		assert_int_equal(whole, (n >= 34) + (n >= 56));
		free(part);
	}
	buf_free(&b);
}

static void lengths_that_lie_are_refused(void **state)
{
	struct batch_item it;
	uint32_t body[] = { 6, 0x7fffffff, 0x80000000, 0xffffffff };
	for (size_t i = 0; i < sizeof(body) / sizeof(*body); i++) {
		struct buf b = { 0 };
		size_t pos = 0;
		batch_put(&b, &(struct batch_item){ 0, MQ_STR("x"), MQ_STR("ab") });
		put_be32(b.p + 16, body[i]);
		assert_int_equal(batch_next(buf_view(&b), &pos, &it), MQ_ECORRUPT);
		assert_int_equal(pos, 0);
		buf_free(&b);
	}
	uint16_t props[] = { 3, 0x7fff, 0x8000, 0xffff };
	for (size_t i = 0; i < sizeof(props) / sizeof(*props); i++) {
		struct buf b = { 0 };
		size_t pos = 0;
		batch_put(&b, &(struct batch_item){ 0, MQ_STR("x"), MQ_STR("ab") });
		put_be16(b.p + 21, props[i]);
		assert_int_equal(batch_next(buf_view(&b), &pos, &it), MQ_ECORRUPT);
		buf_free(&b);
	}
	/* Beyond what the record can hold, though the bytes are there. */
	struct buf b = { 0 };
	size_t pos = 0;
	char *big = calloc(1, 0x8000);
	batch_put(&b, &(struct batch_item){ 0, MQ_STR("x"), { big, 0x8000 } });
	assert_int_equal(batch_next(buf_view(&b), &pos, &it), MQ_ECORRUPT);
	free(big);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_back_in_order),
		cmocka_unit_test(a_batch_cut_anywhere_is_refused),
		cmocka_unit_test(lengths_that_lie_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
