/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Atomics of many on one word. */
#include "litmus.h"

#define SUM 0
#define LOCK 64
#define TRIES 64

/* On side 0's words, also from itself. Others than the first of the two sides
 * reach them through their own QPs. */
static uint64_t atomic_at(struct actor *a, enum ibv_wr_opcode opcode, size_t at, uint64_t compare,
			  uint64_t value)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, opcode, 1, a->base + FROM, 8);

	wr.wr.atomic.remote_addr = a->q.peer.addr + at;
	wr.wr.atomic.rkey = a->q.peer.rkey;
	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = value;
	post(&a->q, &wr);
	await(&a->q, GRACE_S);
	return *word(a, FROM);
}

/* at most one owner of the word at a time: it writes its own name into it */
static void swap(struct actor *a)
{
	uint64_t name = 1 + (uint64_t)a->index;

	if (atomic_at(a, IBV_WR_ATOMIC_CMP_AND_SWP, LOCK, 0, name) != 0)
		return;
	if (atomic_at(a, IBV_WR_ATOMIC_CMP_AND_SWP, LOCK, name, 0) != name)
		fail("two have swapped themselves in");
	atomic_fetch_add(&shared->swaps, 1);
}

/* Side 1's actors add to side 0's words, all at once. */
void sum(struct actor *a)
{
	uint64_t last = 0, found;

	part(a);
	while (a->me == 1 && !over()) {
		found = atomic_at(a, IBV_WR_ATOMIC_FETCH_AND_ADD, SUM, 1, 0);
		if (last && found < last)
			fail("the sum went from %lu to %lu", (unsigned long)last,
			     (unsigned long)found);
		last = found + 1;
		atomic_fetch_add(&shared->adds, 1);
		if (rng_below(&a->rng, 4) == 0)
			swap(a);
		count(a);
	}
	if (a->me == 1)
		atomic_fetch_add(&shared->ended, 1);
	part(a);
}
