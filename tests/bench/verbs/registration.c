/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registering memory of @size for a peer: ibv_reg_mr() itself, and the peer's
 * first RDMA WRITE to it, at which a window is made. Each time fresh pages.
 */
#include <string.h>
#include <sys/mman.h>

#include "verbs.h"

#define BATCHES 7
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct offer {
	uint64_t memory;
	uint32_t rkey, reserved;
	double register_us;
};

static char *fresh(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	measure_check(p != MAP_FAILED, "mmap");
	return memset(p, 1, size);
}

static void offer_one(struct bench *b)
{
	char *memory = fresh(b->size);
	uint64_t start = measure_now_ns();
	struct ibv_mr *mr = ibv_reg_mr(b->end.pd, memory, b->size, ACCESS);
	struct offer o = {.memory = (uintptr_t)memory};

	measure_check(mr != NULL, "ibv_reg_mr");
	o.register_us = (double)(measure_now_ns() - start) / 1e3;
	o.rkey = mr->rkey;
	tell(b, &o, sizeof(o));
	sync_sides(b);
	measure_check(memory[0] == 0, "the WRITE did not arrive");
	ibv_dereg_mr(mr);
	munmap(memory, b->size);
}

static void registration_server(struct bench *b)
{
	for (unsigned i = 0; i < BATCHES; i++)
		offer_one(b);
}

static void registration_client(struct bench *b)
{
	double reg[BATCHES], first[BATCHES], both[BATCHES];
	struct offer o;

	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start;

		hear(b, &o, sizeof(o));
		b->end.peer.memory = o.memory;
		b->end.peer.rkey = o.rkey;
		start = measure_now_ns();
		post_send(&b->end, 0, IBV_WR_RDMA_WRITE, 8, true);
		await(&b->end, 1);
		reg[i] = o.register_us;
		first[i] = (double)(measure_now_ns() - start) / 1e3;
		both[i] = reg[i] + first[i];
		sync_sides(b);
	}
	figure(b, NULL, measure_median(both, BATCHES), "us");
	figure(b, "call", measure_median(reg, BATCHES), "us");
	figure(b, "first_write", measure_median(first, BATCHES), "us");
}

const struct kind registration_kinds[] = {
	{"register", registration_client, registration_server, {.bytes = 4096}},
	{},
};
