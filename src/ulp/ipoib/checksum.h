/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Internet checksum (RFC 1071). */
#ifndef SOFTIB_ULP_IPOIB_CHECKSUM_H
#define SOFTIB_ULP_IPOIB_CHECKSUM_H

#include "base/bytes.h"
#include "rdma/ib_types.h"

/** ipoib_sum() - add @bytes to the sum @before: four at a time, as 2^16 is 1 modulo
 *  0xffff */
static inline u64 ipoib_sum(const u8 *p, size_t bytes, u64 before)
{
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
