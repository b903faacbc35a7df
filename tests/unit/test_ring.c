/* test_ring.c: what is pushed comes out in order, also when the ring grew while its first item was anywhere. */
#include "base/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* An odd size, so that a wrong factor shows. */
struct item {
	uint32_t number, twice, minus;
};

static void push(struct ring *r, uint32_t i)
{
	*(struct item *)ring_push(r, sizeof(struct item)) = (struct item){ i, 2 * i, -i };
}

static void assert_item(const struct item *it, uint32_t i)
{
	assert_non_null(it);
	assert_int_equal(it->number, i);
	assert_int_equal(it->twice, 2 * i);
	assert_int_equal(it->minus, -i);
}

static void an_empty_ring_has_no_first(void **state)
{
	struct ring r = { 0 };

	assert_null(ring_first(&r, sizeof(struct item)));
	push(&r, 1);
	ring_pop(&r);
	assert_null(ring_first(&r, sizeof(struct item)));
	ring_free(&r);
	assert_null(r.v);
}

/* For each place of the first item in a ring of 64: fill it, let it grow twice, take everything out. */
static void the_order_is_kept_whatever_the_first_place_when_it_grows(void **state)
{
	for (uint32_t skip = 0; skip < 64; skip++) {
		struct ring r = { 0 };

		for (uint32_t i = 0; i < skip; i++)
			push(&r, i);
		for (uint32_t i = 0; i < skip; i++)
			ring_pop(&r);
		for (uint32_t i = 0; i < 200; i++)
			push(&r, i);
		assert_int_equal(r.n, 200);
		for (uint32_t i = 0; i < 200; i++)
			assert_item(ring_item(&r, sizeof(struct item), i), i);
		for (uint32_t i = 0; i < 200; i++) {
			assert_item(ring_first(&r, sizeof(struct item)), i);
			ring_pop(&r);
		}
		assert_int_equal(r.n, 0);
		ring_free(&r);
	}
}

static void it_goes_round_without_growing(void **state)
{
	struct ring r = { 0 };
	uint32_t in = 0, out = 0;
	size_t cap;

	for (int i = 0; i < 10; i++)
		push(&r, in++);
	cap = r.cap;
	for (int i = 0; i < 1000; i++) {
		push(&r, in++);
		assert_item(ring_first(&r, sizeof(struct item)), out++);
		ring_pop(&r);
	}
	assert_int_equal(r.cap, cap);
	assert_int_equal(r.n, 10);
	ring_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_ring_has_no_first),
		cmocka_unit_test(the_order_is_kept_whatever_the_first_place_when_it_grows),
		cmocka_unit_test(it_goes_round_without_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
