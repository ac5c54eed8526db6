/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* gloo_side RANK SIZE FOLDER: one of the processes that add up arrays of several sizes by Gloo, the library of
 * collective operations that machine learning uses, over its transport ibverbs. They find each other by files.
 * Gloo aborts when an operation is destroyed whose last message is not acknowledged yet, so none is. */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#define ROUNDS 5

using context = std::shared_ptr<gloo::rendezvous::Context>;

/* Each process adds its rank, from 1 on. Return: whether every sum is right */
static bool adds_up(const context &all, size_t elements)
{
	const float own = static_cast<float>(all->rank + 1), sum = all->size * (all->size + 1) / 2.0f;
	auto &values = *new std::vector<float>(elements);
	std::vector<float *> arrays{values.data()};
	auto &add = *new gloo::AllreduceRingChunked<float>(all, arrays, static_cast<int>(elements));

	for (int round = 0; round < ROUNDS; round++) {
		values.assign(elements, own);
		add.run();
		if (values != std::vector<float>(elements, sum))
			return false;
	}
	return true;
}

int main(int, char **argv)
{
	gloo::rendezvous::FileStore store(argv[3]);
	auto all = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));

	auto device = gloo::transport::ibverbs::CreateDevice({"", 1, 0}); /* the first adapter, port 1 */

	all->connectFullMesh(store, device);
	for (size_t elements : {1u, 1000u, 1000000u}) {
		const bool right = adds_up(all, elements);

		(new gloo::BarrierAllToAll(all))->run();
		printf("%zu %s\n", elements, right ? "right" : "wrong");
	}
	fflush(stdout);
	_exit(0); /* without the destructors, which abort */
}
