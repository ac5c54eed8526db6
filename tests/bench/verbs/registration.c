/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registering memory of @size for a peer, each time fresh pages that were
 * written. The call; "move", how much longer it takes than without remote
 * rights, where nothing moves; "moved", the share of times that the pages did
 * move under a memfd (the bench runs it so that they do); "first_write", the
 * peer's; "until_alone", from there until the peer's requests are done by the
 * peer alone: a completion is there when ibv_post_send() returns; "dereg".
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs.h"

#define BATCHES 15
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define WRITES	20000 /* at most: perhaps there are no windows */

struct offer {
	uint64_t memory;
	uint32_t rkey, moved;
	double local_us, register_us, end_us;
};

static char *fresh(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	measure_check(p != MAP_FAILED, "mmap");
	return memset(p, 1, size);
}

static bool is_shared(const char *memory)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	bool shared = false;
	char line[512], rights[5];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 &&
		    start <= (uintptr_t)memory && (uintptr_t)memory < end)
			shared = rights[3] == 's';
	if (maps)
		fclose(maps);
	return shared;
}

static double us_since(uint64_t start)
{
	return (double)(measure_now_ns() - start) / 1e3;
}

static struct ibv_mr *timed_reg(struct bench *b, char *memory, int access, double *us)
{
	uint64_t start = measure_now_ns();
	struct ibv_mr *mr = ibv_reg_mr(b->end.pd, memory, b->size, access);

	*us = us_since(start);
	measure_check(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void offer_one(struct bench *b)
{
	char *memory = fresh(b->size);
	struct offer o = {.memory = (uintptr_t)memory};
	struct ibv_mr *mr;
	uint64_t start;

	ibv_dereg_mr(timed_reg(b, memory, IBV_ACCESS_LOCAL_WRITE, &o.local_us));
	mr = timed_reg(b, memory, ACCESS, &o.register_us);
	o.moved = is_shared(memory);
	o.rkey = mr->rkey;
	tell(b, &o, sizeof(o));
	sync_sides(b);
	measure_check(memory[0] == 0, "the WRITE did not arrive");
	start = measure_now_ns();
	ibv_dereg_mr(mr);
	o.end_us = us_since(start);
	tell(b, &o, sizeof(o));
	munmap(memory, b->size);
}

static void registration_server(struct bench *b)
{
	for (unsigned i = 0; i < BATCHES; i++)
		offer_one(b);
}

static double until_alone(struct bench *b, uint64_t start)
{
	uint64_t since = start;
	unsigned row = 0;

	for (unsigned i = 0; i < WRITES && row < ALONE; i++) {
		if (!row)
			since = measure_now_ns();
		row = done_at_once(&b->end, IBV_WR_RDMA_WRITE) ? row + 1 : 0;
	}
	return (double)(since - start) / 1e3;
}

static void registration_client(struct bench *b)
{
	double reg[BATCHES], move[BATCHES], first[BATCHES], alone[BATCHES], end[BATCHES], moved = 0;
	struct offer o;

	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start;

		hear(b, &o, sizeof(o));
		b->end.peer.memory = o.memory;
		b->end.peer.rkey = o.rkey;
		reg[i] = o.register_us;
		move[i] = o.register_us - o.local_us;
		moved += o.moved;
		start = measure_now_ns();
		post_send(&b->end, 0, IBV_WR_RDMA_WRITE, 8, true);
		await(&b->end, 1);
		first[i] = us_since(start);
		alone[i] = until_alone(b, start);
		sync_sides(b);
		hear(b, &o, sizeof(o));
		end[i] = o.end_us;
	}
	figure(b, NULL, measure_median(reg, BATCHES), "us");
	figure(b, "move", measure_median(move, BATCHES), "us");
	figure(b, "moved", moved / BATCHES, "share");
	figure(b, "first_write", measure_median(first, BATCHES), "us");
	figure(b, "until_alone", measure_median(alone, BATCHES), "us");
	figure(b, "dereg", measure_median(end, BATCHES), "us");
}

const struct kind registration_kinds[] = {
	{"register", registration_client, registration_server, {.bytes = 4096}},
	{},
};
