/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel types that users of the midlayer's interface know: sized
 * integers, big-endian integers, allocation flags, error pointers, lists.
 * Nothing else of the kernel is needed to write a client or a protocol.
 */
#ifndef RDMA_IB_TYPES_H
#define RDMA_IB_TYPES_H

#include <endian.h>
#include <errno.h>
#include <linux/types.h>

#include "base/list.h"
#include "base/types.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef uint64_t dma_addr_t;

/** gfp_t - how an allocation may behave; here none ever sleeps */
typedef unsigned int gfp_t;
#define GFP_KERNEL 0x1u
#define GFP_ATOMIC 0x2u

#define cpu_to_be16(x) ((__be16)htobe16(x))
#define cpu_to_be32(x) ((__be32)htobe32(x))
#define cpu_to_be64(x) ((__be64)htobe64(x))
#define be16_to_cpu(x) be16toh((uint16_t)(x))
#define be32_to_cpu(x) be32toh((uint32_t)(x))
#define be64_to_cpu(x) be64toh((uint64_t)(x))

#define MAX_ERRNO 4095

/** ERR_PTR() - carry a negative errno in a pointer; IS_ERR() tells */
static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *ptr)
{
	return (long)ptr;
}

static inline bool IS_ERR(const void *ptr)
{
	return (uintptr_t)ptr >= (uintptr_t)-MAX_ERRNO;
}

static inline bool IS_ERR_OR_NULL(const void *ptr)
{
	return !ptr || IS_ERR(ptr);
}

static inline int PTR_ERR_OR_ZERO(const void *ptr)
{
	return IS_ERR(ptr) ? (int)PTR_ERR(ptr) : 0;
}

#endif
