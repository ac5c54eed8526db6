/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a host leaves to its network interface (virtio 1.2 section 5.1.6): a checksum that
 * is to be filled in, and TCP segments of up to 64 KiB that are to be cut into packets
 * that fit the link. Pure.
 */
#ifndef SOFTIB_ULP_IPOIB_SEGMENT_H
#define SOFTIB_ULP_IPOIB_SEGMENT_H

#include <linux/virtio_net.h>

#include "rdma/ib_types.h"

#define IPOIB_LARGE_BYTES 65535 /* an IP packet, at most */

/** struct ipoib_cut - a large TCP segment, and how much of it is cut */
struct ipoib_cut {
	const u8 *packet;
	size_t bytes, ip_header, headers; /* of IP alone; with TCP's */
	size_t mss, at;			  /* at: of the next payload */
	u16 index;
};

/** ipoib_is_large() - is the packet to be cut? */
bool ipoib_is_large(const struct virtio_net_hdr *h);
/** ipoib_fill_checksum() - of a packet that is not to be cut, if @h wants that
 *  Return: 0; -EINVAL the place of the checksum is outside of it */
int ipoib_fill_checksum(const struct virtio_net_hdr *h, u8 *packet, size_t bytes);

/** ipoib_checksum_is_plain() - does @h want the checksum of TCP or UDP directly behind the header of IP?
 *  Then an adapter can compute it */
bool ipoib_checksum_is_plain(const struct virtio_net_hdr *h, const u8 *packet, size_t bytes);

/** ipoib_cut_begin() - @packet stays the caller's, until the last part of it
 *  Return: 0; -EINVAL it is no TCP packet, or its parts exceed @mtu */
int ipoib_cut_begin(struct ipoib_cut *c, const struct virtio_net_hdr *h, const u8 *packet,
		    size_t bytes, size_t mtu);
/** ipoib_cut_next() - the next part, into @to. Return: its bytes; 0: that was all */
size_t ipoib_cut_next(struct ipoib_cut *c, u8 *to);
/** ipoib_cut_is_plain() - has it no other headers than those of IP and TCP? Then an adapter can
 *  cut it */
bool ipoib_cut_is_plain(const struct ipoib_cut *c);
/** ipoib_cut_is_done() - was that the last part? */
bool ipoib_cut_is_done(const struct ipoib_cut *c);

#endif
