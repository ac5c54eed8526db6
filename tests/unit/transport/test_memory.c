/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A message into its pieces of memory, packet by packet: all of it, in whichever
 * way it is copied, and nothing beside it. */
#include "../test.h"

#include <stdlib.h>

#include "transport/qp.h"

#define ROOM (6u << 20)

static void *mem(void *ctx, uint32_t key, uint64_t addr, uint64_t *length_bytes, int access,
		 enum tp_key whose)
{
	assert_true(addr + *length_bytes <= ROOM);
	return (uint8_t *)ctx + addr;
}

static void a_long_message_arrives_whole(void **state)
{
	static const uint32_t packets[] = {65536, 4096, 1000, 65535, 1, 30000};
	const struct tp_ops ops = {.mem = mem};
	const struct tp_sge sge[] = {{.addr = 3, .length_bytes = 100},
				     {.addr = 130, .length_bytes = ROOM - 200}};
	uint8_t *from = malloc(ROOM), *to = calloc(1, ROOM);
	struct tp_qp *qp = calloc(1, sizeof(*qp));
	struct tp_cursor at = {0, 0};
	uint32_t done = 0, bytes = ROOM - 100;

	qp->ops = &ops;
	qp->ctx = to;
	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(1 + i % 251);
	for (unsigned n = 0; done < bytes; n++) {
		uint32_t len = MIN(packets[n % ARRAY_SIZE(packets)], bytes - done);

		assert_int_equal(tp_scatter(qp, TP_KEY_RECEIVE, sge, 2, &at, from + done, len), TP_COPY_OK);
		done += len;
	}
	assert_int_equal(tp_scatter(qp, TP_KEY_RECEIVE, sge, 2, &at, from, 1), TP_COPY_TOO_SHORT);
	assert_memory_equal(to + 3, from, 100);
	assert_memory_equal(to + 130, from + 100, ROOM - 200);
	assert_int_equal(to[2] | to[103] | to[129] | to[ROOM - 70], 0);
	free(from);
	free(to);
	free(qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_message_arrives_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
