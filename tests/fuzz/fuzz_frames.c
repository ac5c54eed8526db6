/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What other programs send by two cables of Ethernet that leave a fabric of two nodes: hosts that are learned, frames that become
 * packets, and packets that become frames for the other cable.
 *
 * The input is a list of records: a byte that says what it is, a length in one byte, and so many bytes.
 *
 *   bit 0      the cable
 *   bits 1, 2  0: a frame; 1: RDMA in a frame whose checksums and ICRC are right, made of headers and what is behind
 *              them; 2: a frame, too; 3: the cable is pulled, or plugged in
 *   bits 3, 4  the source has the MAC address of the bytes, or of one of three hosts
 *   bits 5, 6  the destination likewise, or one of the nodes, or all
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/ethernet.h"
#include "fabric/frames.h"
#include "fabric/outlet.h"
#include "runtime/sim/rt_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOPOLOGY "star:2,spare=2,link=ethernet"
#define NODES	 2 /* stations 1 and 2 */
#define SWITCH	 2
#define FIRST	 3 /* port of the switch */

struct cable {
	struct fab_frames frames;
	struct fab_outlet *outlet;
	bool pulled;
};

static struct world {
	struct rt *rt;
	struct topology *topo;
	struct fabric *fab;
	struct cable cable[2];
} w;

static int leaves(void *ctx, const struct fab_packet *pkt)
{
	struct cable *c = ctx;
	uint8_t frame[WIRE_ROCE_FRAME_MAX];
	size_t len = fab_frames_leave(&c->frames, pkt, frame);
	struct wire_roce roce;
	int ret;

	check(len <= sizeof(frame));
	if (len) {
		ret = wire_roce_decode(frame, len, &roce);
		check(pkt->dest_qpn == WIRE_QPN_FRAME || !ret);
	}
	return 0;
}

static void ignore(void *ctx, const struct fab_outlet_link *link)
{
}

/* Neither the MAC address nor the GID of the sender is one of the fabric's own. */
static int delivered(void *ctx, const struct fab_packet *pkt)
{
	uint8_t mac[FAB_MAC_BYTES];
	unsigned int port, path;
	struct wire_grh grh;
	int node;

	fab_ethernet_mac(w.fab, pkt->lrh.slid, mac);
	check(pkt->lrh.slid > NODES && fab_ethernet_find_mac(w.fab, mac) == pkt->lrh.slid);
	if (pkt->lrh.lnh == WIRE_LNH_GRH) {
		grh = fab_packet_grh(pkt);
		check(!fab_ethernet_find_port(w.fab, &grh.sgid, &node, &port, &path));
	}
	return 0;
}

static void set_plugged(struct cable *c, bool plugged)
{
	struct fab_outlet_link link = fab_outlet_own_link(c->outlet);

	link.plugged = true;
	link.phys_request = WIRE_PHYS_POLLING;
	fab_outlet_far_link(c->outlet, plugged ? &link : NULL);
	c->pulled = !plugged;
	rt_sim_run(w.rt, 1000);
}

static void begin(void)
{
	static const struct fab_outlet_ops ops = {.send = leaves, .changed = ignore};
	const struct fab_sink sink = {.deliver = delivered};
	struct topo_plan plan;
	char err[256];

	w = (struct world){0};
	topo_plan_init(&plan);
	check(!rt_sim_create(1, &w.rt) && !topo_load(TOPOLOGY, "fuzz", &w.topo, err, sizeof(err)) &&
	      !fab_create(w.rt, w.topo, &w.fab) && !fab_ethernet_start(w.fab, &plan, NULL));
	for (int i = 0; i < 2; i++) {
		struct cable *c = &w.cable[i];

		fab_attach(w.fab, i, 1, &sink);
		c->frames = (struct fab_frames){.fab = w.fab, .node = SWITCH, .port = FIRST + i};
		check(!fab_outlet_create(w.fab, SWITCH, FIRST + i, &ops, c, &c->outlet));
		set_plugged(c, true);
	}
}

static void end(void)
{
	for (int i = 0; i < 2; i++)
		fab_outlet_destroy(w.cable[i].outlet);
	fab_destroy(w.fab);
	topo_free(w.topo);
	rt_sim_destroy(w.rt);
}

static void put_macs(uint8_t kind, uint8_t dst[6], uint8_t src[6])
{
	const unsigned int from = kind >> 3 & 3, to = kind >> 5 & 3;
	const uint8_t host[6] = {0x52, 0x54, 0, 0, 0, (uint8_t)from};

	if (from)
		memcpy(src, host, sizeof(host));
	if (to == 3)
		memset(dst, 0xff, 6);
	else if (to)
		fab_ethernet_mac(w.fab, (uint16_t)to, dst);
}

static void arrive(struct cable *c, const uint8_t *frame, size_t len)
{
	uint8_t bytes[WIRE_PACKET_MAX], *copy = malloc(len + 1); /* so that reads beyond it are seen */
	struct fab_packet pkt;

	memcpy(copy, frame, len);
	if (!fab_frames_arrive(&c->frames, copy, len, bytes, &pkt)) {
		check(pkt.len <= sizeof(bytes) && pkt.bytes == bytes);
		fab_outlet_receive(c->outlet, &pkt, false);
	}
	free(copy);
}

/* RDMA whose headers are the first bytes: VLAN, priority, GIDs; the rest is from the BTH on */
static void arrive_rdma(struct cable *c, uint8_t kind, const uint8_t *bytes, size_t len)
{
	struct wire_roce_headers h = {.grh = {.ip_version = 6, .hop_limit = 64}};
	uint8_t frame[WIRE_ROCE_FRAME_MAX] = {0};
	size_t n;

	if (len < 36)
		return;
	h.vlan_id = bytes[0] & 1 ? bytes[1] : 0;
	h.priority = bytes[0] >> 5;
	memcpy(h.grh.sgid.raw, bytes + 2, 16);
	memcpy(h.grh.dgid.raw, bytes + 18, 16);
	put_macs(kind, h.dst_mac, h.src_mac);
	n = (len - 34) & ~(size_t)3;
	arrive(c, frame, wire_roce_encode(&h, bytes + 34, n, frame));
}

static void take(uint8_t kind, const uint8_t *bytes, size_t len)
{
	struct cable *c = &w.cable[kind & 1];
	uint8_t frame[12 + 255];

	switch (kind >> 1 & 3) {
	case 1:
		arrive_rdma(c, kind, bytes, len);
		break;
	case 3:
		set_plugged(c, c->pulled);
		break;
	default:
		memcpy(frame, bytes, len);
		if (len >= 12)
			put_macs(kind, frame, frame + 6);
		arrive(c, frame, len);
	}
	rt_sim_run(w.rt, 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	while (size >= 2) {
		size_t len = MIN((size_t)data[1], size - 2);

		take(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	end();
	return 0;
}
