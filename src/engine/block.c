/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of queues: the heap's, or what a program gives by the allocators of a parent domain
 * (ibv_alloc_parent_domain(3)).
 */
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

bool eng_block_alloc(struct eng_block *block, const struct eng_memory *memory, enum eng_queue of,
		     size_t bytes)
{
	void *at = memory ? memory->alloc(memory->ctx, bytes, of) : ENG_QUEUE_FROM_HEAP;

	*block = (struct eng_block){.at = at, .from = memory, .of = of};
	if (at == ENG_QUEUE_FROM_HEAP)
		*block = (struct eng_block){.at = rt_zalloc(bytes), .of = of};
	else if (at)
		memset(at, 0, bytes);
	return block->at;
}

void eng_block_free(struct eng_block *block)
{
	if (block->from && block->at)
		block->from->free(block->from->ctx, block->at, block->of);
	else
		rt_free(block->at);
	block->at = NULL;
}
