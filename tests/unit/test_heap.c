/* test_heap.c: timers come out in order of their due time, whatever was pushed, moved or taken out before. */
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NODES = 2000 };
static struct heap_node nodes[NODES];

static size_t drain_in_order(struct heap *h)
{
	int64_t last = INT64_MIN;
	size_t n = 0;

	while (h->n) {
		struct heap_node *top = heap_top(h);

		assert_true(top->due >= last);
		last = top->due;
		heap_remove(h, top);
		assert_int_equal(top->at, 0);
		n++;
	}
	return n;
}

static void random_pushes_come_out_sorted(void **state)
{
	struct heap h = { 0 };

	srand(1);
	for (int i = 0; i < NODES; i++)
		heap_push(&h, &nodes[i], rand() % 500);
	assert_int_equal(drain_in_order(&h), NODES);
	assert_null(heap_top(&h));
	heap_free(&h);
}

static void removed_from_the_middle_the_rest_stays_sorted(void **state)
{
	struct heap h = { 0 };

	srand(2);
	for (int i = 0; i < NODES; i++)
		heap_push(&h, &nodes[i], rand());
	for (int i = 0; i < NODES; i += 3)
		heap_remove(&h, &nodes[i]);
	heap_remove(&h, &nodes[0]); /* a second time: nothing happens */
	assert_int_equal(drain_in_order(&h), NODES - (NODES + 2) / 3);
	heap_free(&h);
}

static void pushed_again_a_node_moves(void **state)
{
	struct heap h = { 0 };

	for (int i = 0; i < 10; i++)
		heap_push(&h, &nodes[i], i);
	heap_push(&h, &nodes[9], -1);
	assert_ptr_equal(heap_top(&h), &nodes[9]);
	heap_push(&h, &nodes[9], 100);
	assert_ptr_equal(heap_top(&h), &nodes[0]);
	assert_int_equal(drain_in_order(&h), 10);
	heap_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_pushes_come_out_sorted),
		cmocka_unit_test(removed_from_the_middle_the_rest_stays_sorted),
		cmocka_unit_test(pushed_again_a_node_moves),
	};
	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
