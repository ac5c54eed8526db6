/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory, with a switch that makes the Nth allocation fail. */
#include <stdlib.h>

#include "runtime/rt.h"

static uint64_t allocations_left; /* until the one that fails; 0: none will */

void rt_fail_alloc(uint64_t nth)
{
	allocations_left = nth;
}

void *rt_zalloc(size_t size)
{
	if (allocations_left && --allocations_left == 0)
		return NULL;
	return calloc(1, size ? size : 1);
}

void rt_free(void *p)
{
	free(p);
}
