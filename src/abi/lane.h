/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lane: the shortcut from one program to another, past softibd, for packets
 * whose way through the fabric is clean. Memory that both map: a ring of
 * packets that only the sender fills, and before it the sender's counts by
 * flow, which softibd adds to the counters of every port on the flow's way.
 *
 * A flow is (source port, DLID, destination QPN, SL, P_Key) and holds while
 * abi_devpage.route_epoch is what it was when softibd resolved it. Order
 * between a lane and the ring to softibd is kept by rule: a sender goes from
 * one to the other only when the one it leaves is empty, and a receiver looks
 * how far its lanes are filled, empties the ring from softibd, and only then
 * reads the lanes, that far.
 */
#ifndef SOFTIB_ABI_LANE_H
#define SOFTIB_ABI_LANE_H

#include "abi/ring.h"

#define ABI_LANE_FLOWS 128
#define ABI_LANE_RING_BYTES (1u << 20)
#define ABI_NO_LANE 0xffffffffu

/** struct abi_flow_count - what the sender sent; it alone writes */
struct abi_flow_count {
	_Atomic uint64_t packets, dwords; /* dwords as in the LRH's length */
};

struct abi_lane {
	alignas(64) struct abi_flow_count flow[ABI_LANE_FLOWS];
	struct abi_ring ring; /* its data end the lane */
};

static inline size_t abi_lane_bytes(void)
{
	return sizeof(struct abi_lane) + ABI_LANE_RING_BYTES;
}

/*
 * ABI_CMD_RESOLVE on the uverbs socket: is there a lane for this flow? The
 * answer carries, when the lane is new to the sender, a memfd and the
 * receiver's doorbell (an eventfd).
 */
#define ABI_CMD_RESOLVE 0x5f00u

struct abi_resolve {
	uint32_t port_num;
	uint32_t dest_qpn;
	uint16_t dlid, pkey;
	uint8_t sl, reserved[3];
};

struct abi_resolve_resp {
	uint32_t lane;	/* ABI_NO_LANE: by softibd only */
	uint32_t flow;	/* index of its counts */
	uint32_t epoch; /* the answer holds while this is the route epoch */
	uint32_t mtu_bytes; /* longer payloads go by softibd, who drops them */
};

/** struct abi_lane_event - on ABI_FD_LANES; LANE_IN carries the memfd. A
 *  program that could not take it says LANE_REFUSED, with the id alone */
struct abi_lane_event {
	uint32_t kind; /* enum abi_lane_kind */
	uint32_t lane;
	uint16_t slid, slid_mask; /* LANE_IN: whose packets may come by it */
};

enum abi_lane_kind {
	ABI_LANE_IN = 1,   /* a new lane to receive from */
	ABI_LANE_IN_GONE,  /* its sender is gone: read what is in it, unmap */
	ABI_LANE_OUT_GONE, /* its receiver is gone: send no more */
	ABI_LANE_REFUSED,  /* to softibd: no descriptor or memory for it */
};

#endif
