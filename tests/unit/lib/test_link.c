/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ring from softibd as the engine reads it, and when its thread may sleep. */
#include "../test.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/libibverbs/soft.h"

#define RING_BYTES 65536u
#define PACKET_BYTES 64u

struct rig {
	struct soft_link link;
	struct abi_ring_tx softibd;
	struct abi_devpage page;
	int doorbell_fd;
};

/* lanes_ask.c's: it would need a softibd to ask */
void lanes_exit(struct lanes *lanes)
{
	free(lanes->flow);
}

static mono_t now(void *ctx)
{
	return (mono_t){0};
}

static void woken(void *ctx)
{
}

static int setup(void **state)
{
	const struct abi_context_resp resp = {.num_ports = 1, .ring_bytes = RING_BYTES,
					      .to_engine_offset = 2 * RING_BYTES};
	struct rig *r = calloc(1, sizeof(*r));
	int memfd = memfd_create("link", MFD_CLOEXEC);

	assert_true(r && memfd >= 0);
	assert_int_equal(ftruncate(memfd, 4 * RING_BYTES), 0);
	r->doorbell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(link_map(&r->link, memfd, r->doorbell_fd, &resp), 0);
	close(memfd);
	assert_int_equal(lanes_init(&r->link.lanes, &r->page, &r->link.tx, now, woken, NULL), 0);
	r->softibd = (struct abi_ring_tx){.ring = r->link.rx.ring, .size = RING_BYTES};
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	link_unmap(&r->link);
	close(r->doorbell_fd);
	free(r);
	return 0;
}

static void send_packets(struct rig *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		memset(abi_ring_reserve(&r->softibd, PACKET_BYTES), 0, PACKET_BYTES);
		abi_ring_commit(&r->softibd, PACKET_BYTES);
	}
	abi_ring_publish(&r->softibd);
}

/* as the engine does: it does not look again after its budget */
static void read_packets(struct rig *r, unsigned n)
{
	unsigned port_num;
	size_t len;

	for (unsigned i = 0; i < n; i++) {
		assert_non_null(link_ops.receive(&r->link, &len, &port_num));
		link_ops.release(&r->link);
	}
}

static void who_has_read_all_may_sleep(void **state)
{
	struct rig *r = *state;

	for (unsigned n = 1; n <= 128; n++) {
		send_packets(r, n);
		assert_false(link_arm_sleep(&r->link));
		read_packets(r, n);
		assert_true(link_arm_sleep(&r->link));
		link_disarm_sleep(&r->link);
	}
}

static void one_that_waits_keeps_it_awake(void **state)
{
	struct rig *r = *state;

	send_packets(r, 64);
	read_packets(r, 63);
	assert_false(link_arm_sleep(&r->link));
	send_packets(r, 1);
	read_packets(r, 1);
	assert_false(link_arm_sleep(&r->link));
	read_packets(r, 1);
	assert_true(link_arm_sleep(&r->link));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_has_read_all_may_sleep),
		CASE(one_that_waits_keeps_it_awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
