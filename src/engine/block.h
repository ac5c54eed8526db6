/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of queues (block.c). */
#ifndef SOFTIB_ENGINE_BLOCK_H
#define SOFTIB_ENGINE_BLOCK_H

#include "engine/engine.h"

/** struct eng_block - memory of a queue's entries, and who gave it */
struct eng_block {
	void *at;
	const struct eng_memory *from; /* NULL: the heap */
	enum eng_queue of;
};

/** eng_block_alloc() - @bytes of zeros from @memory, or of the heap. Return: is there memory? */
bool eng_block_alloc(struct eng_block *block, const struct eng_memory *memory, enum eng_queue of,
		     size_t bytes);
/** eng_block_free() - may be empty */
void eng_block_free(struct eng_block *block);

#endif
