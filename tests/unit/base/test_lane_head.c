/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The head of a lane is its receiver's, who may write anything there: it makes no room that
 * the sender has not used. */
#include "../test.h"

#include "abi/lane.h"

static struct abi_lane *memory;

static int setup(void **state)
{
	static struct abi_lane_tx tx;

	memory = aligned_alloc(_Alignof(struct abi_lane), ALIGN_UP(abi_lane_bytes(), 4096));
	memset(memory, 0, abi_lane_bytes());
	abi_lane_tx_init(&tx, memory, false);
	*state = &tx;
	return 0;
}

static int teardown(void **state)
{
	free(memory);
	return 0;
}

static void fill(struct abi_lane_tx *tx)
{
	while (abi_lane_has_cell(tx))
		tx->bulk_end[tx->tail++ & (ABI_LANE_CELLS - 1)] = 0;
}

static void only_cells_that_were_sent_become_free(void **state)
{
	struct abi_lane_tx *tx = *state;

	fill(tx);
	assert_int_equal(tx->tail, ABI_LANE_CELLS);
	atomic_store(&memory->head, tx->tail + 1);
	assert_false(abi_lane_has_cell(tx));
	atomic_store(&memory->head, UINT32_MAX);
	assert_false(abi_lane_has_cell(tx));
	atomic_store(&memory->head, 3);
	assert_true(abi_lane_has_cell(tx));
	fill(tx);
	assert_int_equal(tx->tail, ABI_LANE_CELLS + 3);
	atomic_store(&memory->head, 2); /* back */
	assert_false(abi_lane_has_cell(tx));
	assert_int_equal(tx->head_seen, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_cells_that_were_sent_become_free, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
