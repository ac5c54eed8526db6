/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The frames of a cable that leaves an Ethernet fabric (outlet.h), and the packets that they are in the
 * fabric: RDMA is a packet with a GRH between two stations, of which the frame has an IP header, that of UDP and the ICRC
 * (RoCE version 2, IBA v1 annex A17); any other frame is the payload of a datagram (wire/frame.h).
 *
 * What arrives has been sent by somebody else's program. Frames that claim to be from a station of the fabric
 * are dropped, and so is RDMA for a station of the fabric whose lengths, checksums or ICRC are wrong, or that says it is from an
 * address of the fabric's own.
 *
 * Context: the fabric's thread.
 */
#ifndef SOFTIB_FABRIC_FRAMES_H
#define SOFTIB_FABRIC_FRAMES_H

#include <assert.h>

#include "fabric/fabric.h"
#include "wire/frame.h"
#include "wire/roce.h"

#define FAB_FRAME_MAX (WIRE_FRAME_MTU_MAX + WIRE_FRAME_OVERHEAD) /* that arrives */

static_assert(WIRE_ROCE_FRAME_MAX >= FAB_FRAME_MAX, "one buffer is enough for what leaves");

/** struct fab_frames - a cable, and what was counted there */
struct fab_frames {
	struct fabric *fab;
	int node, port; /* that it is plugged into */
	uint64_t received, sent;
	uint64_t wrong_length; /* shorter than a header, or longer than FAB_FRAME_MAX */
	uint64_t malformed;    /* no sender, or RDMA for this fabric that is wrong */
	uint64_t spoofed;      /* from a station of the fabric, they say */
};

/**
 * fab_frames_arrive() - a frame has come by the cable: learn who has sent it, and make it a packet
 * @frame: without FCS
 * @bytes: of WIRE_PACKET_MAX, for the packet
 * @pkt: set: for fab_outlet_receive()
 * Return: 0; -EINVAL it is dropped, and counted here and at the port (PortRcvErrors)
 */
int fab_frames_arrive(struct fab_frames *f, const void *frame, size_t len, uint8_t *bytes, struct fab_packet *pkt);

/**
 * fab_frames_leave() - the frame of a packet that leaves by the cable
 * @frame: of WIRE_ROCE_FRAME_MAX
 * Return: its bytes, without FCS, 60 at least; 0: such packets do not travel on Ethernet
 */
size_t fab_frames_leave(struct fab_frames *f, const struct fab_packet *pkt, uint8_t *frame);

/** fab_frames_headers() - what is in front of the BTH of a packet with a GRH on a link of Ethernet */
void fab_frames_headers(const struct fabric *fab, const struct wire_lrh *lrh, const struct wire_grh *grh,
			struct wire_roce_headers *headers);

#endif
