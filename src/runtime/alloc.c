/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory, with a switch that makes the Nth allocation fail, and a count. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/rt.h"

#define TCACHE_BYTES_MAX 1032

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

/* glibc's calloc() does not use the free blocks that a thread keeps (tcache), which malloc() takes from there.
 * Of large blocks calloc() knows that fresh pages are zero. */
static void *zeroed(size_t size)
{
	void *p;

	if (size > TCACHE_BYTES_MAX)
		return calloc(1, size);
	p = malloc(size);
	__asm__("" : "+r"(p)); /* or the compiler makes a calloc() of both */
	return p ? memset(p, 0, size) : NULL;
}

void *rt_zalloc(size_t size)
{
	return must_fail() ? NULL : counted(zeroed(size ? size : 1));
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
