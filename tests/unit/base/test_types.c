/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Serial arithmetic of PSNs, the saturating clock, the list. */
#include "../test.h"

#include "base/bytes.h"
#include "base/list.h"

static void psn_wraps_at_24_bits(void **state)
{
	assert_int_equal(psn_add(psn(0xffffff), 1).v, 0);
	assert_int_equal(psn_diff(psn(0), psn(0xffffff)), 1);
	assert_int_equal(psn_diff(psn(0xffffff), psn(0)), -1);
}

static void psn_window_is_half_the_circle(void **state)
{
	/* 1: the farthest that is still ahead; 2: the first that is behind */
	assert_int_equal(psn_diff(psn(0x7fffff), psn(0)), 0x7fffff);
	assert_int_equal(psn_diff(psn(0x800000), psn(0)), -0x800000);
	assert_true(psn_before(psn(0x800001), psn(0)));
	assert_false(psn_before(psn(5), psn(5)));
}

static void time_saturates_instead_of_wrapping(void **state)
{
	assert_true(mono_add(MONO_NEVER, 1).ns == MONO_NEVER.ns);
	assert_true(mono_add((mono_t){5}, UINT64_MAX).ns == MONO_NEVER.ns);
	assert_true(mono_before((mono_t){1}, MONO_NEVER));
}

struct item {
	int value;
	struct list_head node;
};

static void list_keeps_order_through_splice(void **state)
{
	struct item a = {.value = 1}, b = {.value = 2}, c = {.value = 3}, *i;
	LIST_HEAD(one);
	LIST_HEAD(two);
	int sum = 0, n = 0;

	list_add_tail(&b.node, &one);
	list_add_tail(&c.node, &one);
	list_add_tail(&a.node, &two);
	list_splice_tail_init(&one, &two);
	assert_true(list_empty(&one));
	list_for_each_entry(i, &two, node)
		sum += i->value * (++n);
	assert_int_equal(sum, 1 * 1 + 2 * 2 + 3 * 3);
	list_del(&b.node);
	list_del(&b.node); /* twice is harmless */
	assert_ptr_equal(a.node.next, &c.node);
}

static void big_endian_at_any_alignment(void **state)
{
	uint8_t b[9] = {0};

	put_be64(b + 1, 0x0102030405060708ull);
	assert_int_equal(b[1], 1);
	assert_true(get_be64(b + 1) == 0x0102030405060708ull);
	put_be24(b, 0xa1b2c3);
	assert_int_equal(get_be24(b), 0xa1b2c3);
	assert_int_equal(get_be16(b), 0xa1b2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn_wraps_at_24_bits),
		cmocka_unit_test(psn_window_is_half_the_circle),
		cmocka_unit_test(time_saturates_instead_of_wrapping),
		cmocka_unit_test(list_keeps_order_through_splice),
		cmocka_unit_test(big_endian_at_any_alignment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
