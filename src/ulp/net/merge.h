/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP segments that arrive one behind the other are given to the host as one large packet, as
 * network drivers do (generic receive offload): the host takes it in one system call and
 * looks at one header. What the host sees is what a sender with segmentation offload would
 * have made them of, so cutting it (segment.h) gives them back. Pure.
 */
#ifndef SOFTIB_ULP_NET_MERGE_H
#define SOFTIB_ULP_NET_MERGE_H

#include <sys/uio.h>

#include "ulp/net/segment.h"

#define NET_MERGED_MOST    128 /* packets */
#define NET_MERGED_HEADERS 100 /* IPv6 and TCP with options */

/** struct net_merge - a packet that grows; zero: empty. Its payload stays where it was received, or
 *  is copied to @copied */
struct net_merge {
	size_t bytes, ip_header, headers; /* of IP alone; with TCP's */
	size_t mss;
	u32 next_seq;
	unsigned int count; /* of segments; 0: empty */
	bool whole;	    /* the last segment was short, or pushed: nothing follows */
	u8 header[NET_MERGED_HEADERS];
	unsigned int num_parts;
	struct iovec part[NET_MERGED_MOST]; /* payloads */
	u8 copied[NET_LARGE_BYTES];
};

/** net_merge_may_begin() - may others be appended to @packet? That of a checksum that is wrong
 *  is not added all the same */
bool net_merge_may_begin(const u8 *packet, size_t bytes);
/** net_merge_is_udp() - of one that may begin: only Linux 6.2 and later take such packets */
bool net_merge_is_udp(const u8 *packet);
/** net_merge_add() - append @packet, of @bytes, or begin with it if @m is empty
 *  @checked: its checksum is known to be right
 *  @stays: it stays where it is and does not change until @m has been given to the host
 *  Return: false: it does not belong there; give @m to the host first */
bool net_merge_add(struct net_merge *m, const u8 *packet, size_t bytes, bool checked, bool stays);
/** net_merge_end() - set the headers of @m, which is not empty, and @h for the host. The packet is
 *  @header, of @headers bytes, and what @part has */
void net_merge_end(struct net_merge *m, struct virtio_net_hdr *h);

#endif
