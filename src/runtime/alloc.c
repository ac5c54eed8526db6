/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory, with a switch that makes the Nth allocation fail, and a count. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/rt.h"

static uint64_t allocations_left; /* until the one that fails; 0: none will */
static _Atomic int64_t balance;

void rt_fail_alloc(uint64_t nth)
{
	allocations_left = nth;
}

static bool must_fail(void)
{
	return allocations_left && --allocations_left == 0;
}

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add_explicit(&balance, 1, memory_order_relaxed);
	return p;
}

void *rt_zalloc(size_t size)
{
	return must_fail() ? NULL : counted(calloc(1, size ? size : 1));
}

void *rt_alloc(size_t size)
{
	return must_fail() ? NULL : counted(malloc(size ? size : 1));
}

void rt_free(void *p)
{
	if (p)
		atomic_fetch_sub_explicit(&balance, 1, memory_order_relaxed);
	free(p);
}

void *rt_alloc_pages(size_t bytes)
{
	void *p;

	if (must_fail())
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : counted(p);
}

void rt_free_pages(void *p, size_t bytes)
{
	munmap(p, bytes);
	atomic_fetch_sub_explicit(&balance, 1, memory_order_relaxed);
}

int64_t rt_alloc_balance(void)
{
	return atomic_load_explicit(&balance, memory_order_relaxed);
}
