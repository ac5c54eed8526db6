/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The records of a capture, in the ring of a reader. */
#ifndef SOFTIB_ABI_CAPTURE_H
#define SOFTIB_ABI_CAPTURE_H

#include "abi/reader.h"

#define ABI_CAPTURE_WRONG_ICRC 1
#define ABI_CAPTURE_WRONG_VCRC 2

/** struct abi_capture_record - heads each record; the packet's bytes follow,
 *  from the LRH, without CRCs, cut at the capture's limit. Not aligned in
 *  the ring: copy it. */
struct abi_capture_record {
	uint64_t time_ns; /* since 1970 */
	uint64_t dropped; /* abi_reader.dropped as it was then */
	uint32_t node;	  /* index in the topology, as "nodes" lists them */
	uint32_t bytes;	  /* of the whole packet, LRH to pad */
	uint16_t port;
	uint16_t sent;	     /* leaves through the port, else arrives */
	uint32_t wrong_crcs; /* ABI_CAPTURE_WRONG_...: spoilt on purpose */
	/* --- of RDMA on a link of Ethernet: what the frame has in place of the LRH --- */
	uint8_t dst_mac[6], src_mac[6];
	uint16_t vlan_id; /* 0: untagged */
	uint16_t is_roce; /* the above is set, and the packet has a GRH */
};

#endif
