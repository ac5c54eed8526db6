/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Internet checksum (RFC 1071). */
#ifndef SOFTIB_ULP_IPOIB_CHECKSUM_H
#define SOFTIB_ULP_IPOIB_CHECKSUM_H

#include <endian.h>
#include <string.h>

#include "base/bytes.h"
#include "rdma/ib_types.h"

/** ipoib_sum_blocks() - the sum of @blocks of 32 bytes. Four sums of words in the host's byte
 *  order make vector instructions of it; 2^16 is 1 modulo 0xffff, so that exchanging the bytes
 *  of the folded sum gives the one in network order (RFC 1071 section 2) */
static inline u64 ipoib_sum_blocks(const u8 *p, size_t blocks)
{
	typedef u32 words __attribute__((vector_size(16)));
	typedef u64 sums __attribute__((vector_size(16)));
	sums even = {0}, odd = {0};
	u64 sum;
	words w[2];

	for (; blocks; p += sizeof(w), blocks--) {
		memcpy(w, p, sizeof(w));
		for (int i = 0; i < 2; i++) {
			even += (sums)w[i] & 0xffffffffu;
			odd += (sums)w[i] >> 32;
		}
	}
	even = (even & 0xffffffffu) + (even >> 32) + (odd & 0xffffffffu) + (odd >> 32);
	sum = even[0] + even[1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return be16toh((u16)sum);
}

/** ipoib_sum() - add @bytes to the sum @before: four at a time, as 2^16 is 1 modulo
 *  0xffff */
static inline u64 ipoib_sum(const u8 *p, size_t bytes, u64 before)
{
	if (bytes >= 64) {
		before += ipoib_sum_blocks(p, bytes / 32);
		p += bytes & ~(size_t)31;
		bytes &= 31;
	}
	for (; bytes >= 4; p += 4, bytes -= 4)
		before += get_be32(p);
	if (bytes >= 2) {
		before += get_be16(p);
		p += 2;
		bytes -= 2;
	}
	return bytes ? before + (u64)(p[0] << 8) : before;
}

/** ipoib_fold() - the checksum that a sum makes */
static inline u16 ipoib_fold(u64 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}

#endif
