/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as what a program writes into its ring to softibd. The first
 * byte chooses: the whole ring's memory and its tail, or well-kept records,
 * each a length byte and a packet. softibd must read it, or cut the program
 * off, and what it holds of the program must go with it. In the target
 * ring_change the program writes while softibd reads (changing.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/ring.h"
#include "abi/session.h"
#include "core/uobject.h"
#include "hca/hca.h"
#include "changing.h"
#include "pair.h"
#include "rdma/ib_mad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rt *rt;
static struct ib_device *device;
static bool lost;

static void on_lost(struct ib_ucontext *context)
{
	lost = true;
}

static int keep_device(struct ib_device *dev, void *ctx)
{
	device = dev;
	return 1;
}

static void make_world(void)
{
	struct topology *topo;
	struct fabric *fab;
	struct hca_set *set;
	struct hca *hca;
	char err[256];

	if (rt)
		return;
	if (rt_posix_create(&rt) || topo_load("pair", "fuzz", &topo, err, sizeof(err)) ||
	    fab_create(rt, topo, &fab) || ib_mad_init(rt))
		abort();
	pair_configure(fab);
	if (hca_set_create(rt, fab, &set) || hca_create(set, topo_find(topo, "n1"), &hca))
		abort();
	ib_device_for_each(rt, keep_device, NULL);
	if (!device)
		abort();
}

/* --- the program --- */

/* memory kept well: a record of each length byte and what follows it */
static uint64_t write_records(struct abi_ring *ring, const uint8_t *data, size_t size)
{
	struct abi_ring_tx tx = {.ring = ring, .size = ABI_LINK_RING_BYTES};

	while (size) {
		const size_t len = MIN((size_t)*data++ * 4, --size);
		void *room = abi_ring_reserve(&tx, len);

		if (!room)
			break;
		memcpy(room, data, len);
		abi_ring_commit(&tx, len);
		data += len;
		size -= len;
	}
	return tx.tail;
}

static uint64_t scribble(struct abi_ring *ring, const uint8_t *data, size_t size)
{
	uint64_t tail = 0;

	if (size < sizeof(tail))
		return 0;
	memcpy(&tail, data, sizeof(tail));
	memcpy(ring->data, data + sizeof(tail), size - sizeof(tail));
	return tail;
}

static void turn(int *n)
{
	changing_on(true);
	rt_posix_turn(rt);
	changing_on(false);
	if (changing_happened()) /* enough for what an input holds */
		*n += 100;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct abi_context_resp *resp;
	struct ib_ucontext *context;
	struct abi_ring *ring;
	size_t bytes;
	void *memory;

	make_world();
	changing_take(&data, &size);
	if (!size)
		return 0;
	context = ib_ucontext_open(device, 1, "fuzz");
	if (IS_ERR(context))
		abort();
	context->fatal = on_lost;
	lost = false;
	resp = context->driver_resp;
	bytes = resp->to_engine_offset;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      context->driver_fds[ABI_FD_LINK], 0);
	if (memory == MAP_FAILED)
		abort();
	ring = memory;
	atomic_store(&ring->tail, data[0] & 1 ? scribble(ring, data + 1, size - 1)
					      : write_records(ring, data + 1, size - 1));
	changing_watch(memory, bytes);
	for (int n = 0; n < 10000 && !lost && atomic_load(&ring->head) != ring->tail; n++)
		turn(&n);
	/* who changes the ends of the ring may keep softibd from seeing the other */
	if (!lost && atomic_load(&ring->head) != ring->tail && !changing_happened())
		abort(); /* neither read nor cut off */
	if (lost && !(data[0] & 1) && !changing_happened())
		abort(); /* cut off for nothing */
	ib_ucontext_close(context);
	munmap(memory, bytes);
	for (int n = 0; n < 3; n++)
		rt_posix_turn(rt);
	return 0;
}
