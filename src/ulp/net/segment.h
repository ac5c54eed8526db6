/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a host leaves to its network interface (virtio 1.2 section 5.1.6): a checksum that
 * is to be filled in, and TCP segments of up to 64 KiB that are to be cut into packets
 * that fit the link. Pure.
 */
#ifndef SOFTIB_ULP_NET_SEGMENT_H
#define SOFTIB_ULP_NET_SEGMENT_H

#include <linux/virtio_net.h>

#include "rdma/ib_types.h"

#define NET_LARGE_BYTES 65535 /* an IP packet, at most */

/** struct net_cut - a large TCP segment, and how much of it is cut */
struct net_cut {
	const u8 *packet;
	size_t bytes, ip_header, headers; /* of IP alone; with TCP's */
	size_t mss, at;			  /* at: of the next payload */
	u16 index;
};

/** net_is_large() - is the packet to be cut? */
bool net_is_large(const struct virtio_net_hdr *h);
/** net_fill_checksum() - of a packet that is not to be cut, if @h wants that
 *  Return: 0; -EINVAL the place of the checksum is outside of it */
int net_fill_checksum(const struct virtio_net_hdr *h, u8 *packet, size_t bytes);

/** net_checksum_is_plain() - does @h want the checksum of TCP or UDP directly behind the header of IP?
 *  Then an adapter can compute it */
bool net_checksum_is_plain(const struct virtio_net_hdr *h, const u8 *packet, size_t bytes);

/** net_cut_begin() - @packet stays the caller's, until the last part of it
 *  Return: 0; -EINVAL it is no TCP packet, or its parts exceed @mtu */
int net_cut_begin(struct net_cut *c, const struct virtio_net_hdr *h, const u8 *packet,
		  size_t bytes, size_t mtu);
/** net_cut_next() - the next part, into @to. Return: its bytes; 0: that was all */
size_t net_cut_next(struct net_cut *c, u8 *to);
/** net_cut_is_plain() - has it no other headers than those of IP and TCP? Then an adapter can
 *  cut it */
bool net_cut_is_plain(const struct net_cut *c);
/** net_cut_is_done() - was that the last part? */
bool net_cut_is_done(const struct net_cut *c);

#endif
