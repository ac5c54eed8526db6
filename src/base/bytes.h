/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Big-endian loads and stores at any alignment: the wire's byte order. */
#ifndef SOFTIB_BASE_BYTES_H
#define SOFTIB_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BYTES_DEFINE(bits)                                                     \
	static inline uint##bits##_t get_be##bits(const void *p)               \
	{                                                                      \
		uint##bits##_t v;                                              \
		memcpy(&v, p, sizeof(v));                                      \
		return be##bits##toh(v);                                       \
	}                                                                      \
	static inline void put_be##bits(void *p, uint##bits##_t v)             \
	{                                                                      \
		v = htobe##bits(v);                                            \
		memcpy(p, &v, sizeof(v));                                      \
	}

BYTES_DEFINE(16)
BYTES_DEFINE(32)
BYTES_DEFINE(64)

static inline uint32_t get_be24(const void *p)
{
	const uint8_t *b = p;
	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void put_be24(void *p, uint32_t v)
{
	uint8_t *b = p;
	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

#endif
