/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cables of Ethernet that leave the fabric: hosts that are learned from their frames, and frames that are packets:
 *
 *   N0, N1 -- S2:3 ... outside     S2:4 ... outside
 */
#include "net.h"

#include <arpa/inet.h>

#include "base/bytes.h"
#include "fabric/ethernet.h"
#include "fabric/frames.h"
#include "fabric/outlet.h"
#include "wire/inet.h"

#define OWN_MAC(n)  {0x02, 0x73, 0x69, 0x00, 0x00, n}
#define HOST_MAC(n) {0x52, 0x54, 0x00, 0x00, 0x00, n}

static const uint8_t mac_n0[6] = OWN_MAC(1), mac_n1[6] = OWN_MAC(2), mac_a[6] = HOST_MAC(1), mac_b[6] = HOST_MAC(2),
		     mac_all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/** struct cable - one that leaves the fabric, and the last frame that did */
struct cable {
	struct fab_frames frames;
	struct fab_outlet *outlet;
	unsigned int sent;
	bool full;
	uint8_t last[WIRE_ROCE_FRAME_MAX];
	size_t last_len;
};

struct world {
	struct net net;
	struct cable cable[2];
	struct fab_vlans vlans;
};

static int leaves(void *ctx, const struct fab_packet *pkt)
{
	struct cable *c = ctx;

	if (c->full)
		return -EAGAIN;
	c->last_len = fab_frames_leave(&c->frames, pkt, c->last);
	c->sent += c->last_len != 0;
	return 0;
}

static void ignore(void *ctx, const struct fab_outlet_link *link)
{
}

static void plug(struct world *w, struct cable *c, int node, int port)
{
	static const struct fab_outlet_ops ops = {.send = leaves, .changed = ignore};
	struct fab_outlet_link link;

	c->frames = (struct fab_frames){.fab = w->net.fab, .node = node, .port = port};
	assert_int_equal(fab_outlet_create(w->net.fab, node, port, &ops, c, &c->outlet), 0);
	link = fab_outlet_own_link(c->outlet);
	link.plugged = true;
	fab_outlet_far_link(c->outlet, &link);
	rt_sim_run(w->net.rt, 100);
	assert_int_equal(net_port(&w->net, node, port)->state, WIRE_PORT_ACTIVE);
}

static struct world *begin_with(const char *vlans, uint8_t ports_of_n1)
{
	struct world *w = calloc(1, sizeof(*w));
	struct topo_plan plan;
	char err[200];

	net_add(&w->net, TOPO_CA, 1);
	net_add(&w->net, TOPO_CA, ports_of_n1);
	net_add(&w->net, TOPO_SWITCH, 6);
	net_cable(&w->net, N0, 1, S2, 1);
	net_cable(&w->net, N1, 1, S2, 2);
	topo_set_ethernet(&w->net.topo);
	net_start(&w->net);
	topo_plan_init(&plan);
	if (vlans) {
		assert_int_equal(fab_vlans_parse(&w->vlans, &w->net.topo, vlans, err, sizeof(err)), 0);
		plan.vlans = w->vlans.num;
		assert_int_equal(topo_plan_fit(&plan, &w->net.topo, err, sizeof(err)), 0);
	}
	assert_int_equal(fab_ethernet_start(w->net.fab, &plan, vlans ? &w->vlans : NULL), 0);
	rt_sim_run(w->net.rt, 100);
	for (int i = 0; i < 2; i++)
		plug(w, &w->cable[i], S2, 3 + i);
	return w;
}

static struct world *begin(const char *vlans)
{
	return begin_with(vlans, 1);
}

static void end(struct world *w)
{
	for (int i = 0; i < 2; i++)
		if (w->cable[i].outlet)
			fab_outlet_destroy(w->cable[i].outlet);
	net_stop(&w->net);
	fab_vlans_free(&w->vlans);
	free(w);
}

static int arrive(struct cable *c, const void *frame, size_t len)
{
	uint8_t bytes[WIRE_PACKET_MAX];
	struct fab_packet pkt;
	int ret = fab_frames_arrive(&c->frames, frame, len, bytes, &pkt);

	return ret ? ret : fab_outlet_receive(c->outlet, &pkt, false);
}

static union wire_gid gid_of(const char *text)
{
	union wire_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, &gid), 1);
	return gid;
}

static uint16_t find(struct world *w, const char *gid, unsigned int path)
{
	const union wire_gid wire = gid_of(gid);

	return fab_ethernet_find_gid(w->net.fab, &wire, path);
}

/* --- frames --- */

static size_t put_header(uint8_t *f, const uint8_t dst[6], const uint8_t src[6], uint16_t vlan, uint16_t type)
{
	memcpy(f, dst, 6);
	memcpy(f + 6, src, 6);
	if (vlan) {
		put_be16(f + 12, 0x8100);
		put_be16(f + 14, vlan);
	}
	put_be16(f + (vlan ? 16 : 12), type);
	return vlan ? 18 : 14;
}

static int say_arp(struct cable *c, const uint8_t mac[6], uint16_t vlan, uint32_t ipv4)
{
	static const uint8_t head[] = {0, 1, 8, 0, 6, 4, 0, 1};
	uint8_t f[64] = {0};
	size_t at = put_header(f, mac_all, mac, vlan, 0x0806);

	memcpy(f + at, head, sizeof(head));
	memcpy(f + at + 8, mac, 6);
	put_be32(f + at + 14, ipv4);
	return arrive(c, f, at + 28);
}

static int say_ip(struct cable *c, const uint8_t dst[6], const uint8_t mac[6], uint32_t ipv4)
{
	uint8_t f[64] = {0};
	size_t at = put_header(f, dst, mac, 0, 0x0800);

	f[at] = 0x45;
	f[at + 9] = 1; /* ICMP */
	put_be32(f + at + 12, ipv4);
	return arrive(c, f, 60);
}

/* neighbour discovery, or with another type something that it is not */
static int say_nd(struct cable *c, const uint8_t mac[6], const char *address, uint8_t type)
{
	uint8_t f[96] = {0};
	size_t at = put_header(f, mac_all, mac, 0, 0x86dd);
	union wire_gid gid = gid_of(address);

	f[at] = 0x60;
	f[at + 6] = 58;
	memcpy(f + at + 8, gid.raw, 16);
	f[at + 40] = type;
	return arrive(c, f, at + 64);
}

struct rdma {
	const uint8_t *dst, *src;
	const char *sgid, *dgid;
	uint16_t vlan;
	uint32_t qpn;
};

static size_t put_rdma(const struct rdma *r, uint8_t frame[WIRE_ROCE_FRAME_MAX])
{
	struct wire_packet p = {
		.bth = {.opcode = WIRE_RC | WIRE_SEND_ONLY, .pkey = 0xffff, .dest_qpn = r->qpn ? r->qpn : 0x123456},
		.payload_bytes = 8};
	struct wire_roce_headers h = {
		.vlan_id = r->vlan, .priority = r->vlan ? 3 : 0,
		.grh = {.ip_version = 6, .traffic_class = 0x20, .hop_limit = 64,
			.sgid = gid_of(r->sgid), .dgid = gid_of(r->dgid)}};
	uint8_t bth[WIRE_BTH_BYTES + 8] = {0};

	memcpy(h.dst_mac, r->dst, 6);
	memcpy(h.src_mac, r->src, 6);
	wire_bth_encode(&p, bth);
	memcpy(bth + WIRE_BTH_BYTES, "payload", 8);
	return wire_roce_encode(&h, bth, sizeof(bth), frame);
}

static int say_rdma(struct cable *c, struct rdma r)
{
	uint8_t frame[WIRE_ROCE_FRAME_MAX] = {0};

	return arrive(c, frame, put_rdma(&r, frame));
}

static const struct rdma a_to_n1 = {mac_n1, mac_a, "::ffff:10.1.9.1", "::ffff:10.1.0.2", 0, 0};

/* --- tests --- */

static void send_frame(struct world *w, int from, const uint8_t dst[6])
{
	struct wire_packet p = {
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = net_port(&w->net, from, 1)->lid,
			.dlid = fab_ethernet_find_mac(w->net.fab, dst)},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = 0xffff, .dest_qpn = WIRE_QPN_FRAME},
		.payload_bytes = 30};
	uint8_t bytes[200] = {0};
	struct fab_packet pkt;
	size_t n = (size_t)wire_packet_encode(&p, bytes);

	memcpy(bytes + n, dst, 6);
	fab_ethernet_mac(w->net.fab, p.lrh.slid, bytes + n + 6);
	assert_int_equal(fab_packet_decode(&pkt, bytes, n + 32), 0);
	assert_int_equal(fab_send(w->net.fab, from, 1, &pkt), 0);
}

static void a_host_is_learned_by_its_first_frame(void **state)
{
	struct world *w = begin(NULL);

	assert_int_equal(fab_ethernet_find_mac(w->net.fab, mac_a), FAB_STATION_ALL);
	assert_int_equal(say_ip(&w->cable[0], mac_n0, mac_a, 0x0a010901), 0);
	assert_int_equal(w->net.sink[N0].packets, 1);
	assert_int_equal(w->net.sink[N1].packets, 0);
	assert_memory_equal(w->net.sink[N0].last + 28, mac_n0, 6);
	assert_int_equal(fab_ethernet_find_mac(w->net.fab, mac_a), 3); /* behind two stations */
	send_frame(w, N0, mac_a);
	assert_int_equal(w->cable[0].sent, 1);
	assert_int_equal(w->cable[1].sent, 0);
	assert_int_equal(w->cable[0].last_len, 60); /* padded */
	assert_memory_equal(w->cable[0].last, mac_a, 6);
	assert_memory_equal(w->cable[0].last + 6, mac_n0, 6);
	assert_int_equal(net_count(&w->net, S2, 3, AG_RCV_PACKETS), 1);
	assert_int_equal(net_count(&w->net, S2, 3, AG_XMIT_PACKETS), 1);
	end(w);
}

static void groups_and_unknown_addresses_go_to_all(void **state)
{
	struct world *w = begin(NULL);

	send_frame(w, N0, mac_all);
	send_frame(w, N0, mac_b);
	for (int i = 0; i < 2; i++)
		assert_int_equal(w->cable[i].sent, 2);
	assert_int_equal(say_ip(&w->cable[0], mac_all, mac_a, 0), 0);
	assert_int_equal(w->net.sink[N0].packets, 3); /* its own two, as of every group */
	assert_int_equal(w->net.sink[N1].packets, 3);
	assert_int_equal(w->cable[0].sent, 2); /* not back where it came from */
	assert_int_equal(w->cable[1].sent, 3);
	end(w);
}

static void rdma_in_both_directions(void **state)
{
	struct world *w = begin(NULL);
	struct wire_packet p;
	struct wire_roce roce;
	struct fab_packet pkt;
	uint8_t bytes[200];

	assert_int_equal(say_rdma(&w->cable[0], a_to_n1), 0);
	assert_int_equal(w->net.sink[N1].packets, 1);
	assert_true(wire_packet_decode(w->net.sink[N1].last, w->net.sink[N1].last_len, &p) > 0);
	assert_int_equal(p.lrh.slid, 3);
	assert_int_equal(p.lrh.dlid, 2);
	assert_int_equal(p.bth.dest_qpn, 0x123456);
	assert_int_equal(p.payload_bytes, 8);
	assert_memory_equal(p.payload, "payload", 8);
	assert_memory_equal(p.grh.sgid.raw, gid_of(a_to_n1.sgid).raw, 16);
	assert_int_equal(find(w, a_to_n1.sgid, 0), 3);

	memcpy(bytes, w->net.sink[N1].last, w->net.sink[N1].last_len); /* back to its sender */
	put_be16(bytes + 2, 3);
	put_be16(bytes + 6, 2);
	memcpy(bytes + 8 + 8, p.grh.dgid.raw, 16);
	memcpy(bytes + 8 + 24, p.grh.sgid.raw, 16);
	assert_int_equal(fab_packet_decode(&pkt, bytes, w->net.sink[N1].last_len), 0);
	assert_int_equal(fab_send(w->net.fab, N1, 1, &pkt), 0);
	assert_int_equal(w->cable[0].sent, 1);
	assert_int_equal(wire_roce_decode(w->cable[0].last, w->cable[0].last_len, &roce), 0);
	assert_memory_equal(roce.headers.dst_mac, mac_a, 6);
	assert_memory_equal(roce.headers.src_mac, mac_n1, 6);
	assert_memory_equal(roce.headers.grh.dgid.raw, gid_of(a_to_n1.sgid).raw, 16);
	assert_memory_equal(roce.bth + WIRE_BTH_BYTES, "payload", 8);

	w->cable[0].full = true;
	assert_int_equal(fab_send(w->net.fab, N1, 1, &pkt), -EAGAIN);
	assert_int_equal(net_count(&w->net, S2, 3, AG_XMIT_WAIT), 1);
	end(w);
}

static void rdma_to_groups(void **state)
{
	static const uint8_t group_mac[6] = {0x33, 0x33, 0xef, 1, 2, 3};
	struct rdma r = {group_mac, mac_a, "::ffff:10.1.9.1", "ff0e::ffff:239.1.2.3", 0, 0xffffff};
	struct world *w = begin(NULL);
	struct wire_roce roce;

	assert_int_equal(say_rdma(&w->cable[0], r), 0);
	assert_int_equal(w->net.sink[N0].packets, 1);
	assert_int_equal(w->net.sink[N1].packets, 1);
	assert_memory_equal(w->net.sink[N0].last + 8 + 24, gid_of(r.dgid).raw, 16);
	assert_int_equal(w->cable[1].sent, 1);
	assert_int_equal(wire_roce_decode(w->cable[1].last, w->cable[1].last_len, &roce), 0);
	assert_memory_equal(roce.headers.dst_mac, group_mac, 6);
	assert_memory_equal(roce.headers.src_mac, mac_a, 6);
	end(w);
}

/* between two hosts outside it is a frame like others, and nobody looks what is in it */
static void rdma_that_passes_through(void **state)
{
	struct world *w = begin(NULL);
	struct rdma r = {mac_b, mac_a, "::ffff:10.1.9.1", "::ffff:10.1.9.2", 0, 0};
	uint8_t frame[WIRE_ROCE_FRAME_MAX] = {0};
	size_t n = put_rdma(&r, frame);

	assert_int_equal(say_arp(&w->cable[1], mac_b, 0, 0x0a010902), 0);
	frame[n - 1] ^= 1;
	assert_int_equal(arrive(&w->cable[0], frame, n), 0);
	assert_int_equal(w->cable[1].sent, 1);
	assert_int_equal(w->cable[1].last_len, n);
	assert_memory_equal(w->cable[1].last, frame, n);
	end(w);
}

static void what_teaches_addresses(void **state)
{
	struct world *w = begin(NULL);
	struct cable *c = &w->cable[0];

	assert_int_equal(say_arp(c, mac_a, 0, 0x0a010901), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	assert_int_equal(say_nd(c, mac_b, "fe80::9", 135), 0);
	assert_int_equal(find(w, "fe80::9", 0), 4);
	assert_int_equal(say_nd(c, mac_b, "fd00::9", 136), 0);
	assert_int_equal(find(w, "fd00::9", 0), 4);
	assert_int_equal(find(w, "fd00::9", 1), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.9", 0), 0);
	for (uint32_t i = 0; i < 20; i++) /* a router */
		assert_int_equal(say_ip(c, mac_n0, mac_a, 0xc0000201 + i), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	assert_int_equal(find(w, "::ffff:192.0.2.7", 0), 3); /* as long as there is room */
	assert_int_equal(find(w, "::ffff:192.0.2.8", 0), 0);
	assert_int_equal(say_arp(c, mac_a, 0, 0x0a010902), 0); /* what is sure has precedence */
	assert_int_equal(find(w, "::ffff:10.1.9.2", 0), 3);
	end(w);
}

static void what_teaches_none(void **state)
{
	static const uint32_t nobodys[] = {0, 0x7f000001, 0xe0000001, 0xffffffff};
	struct world *w = begin(NULL);
	struct cable *c = &w->cable[0];
	uint8_t odd[42] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(nobodys); i++)
		assert_int_equal(say_arp(c, mac_a, 0, nobodys[i]), 0);
	assert_int_equal(say_arp(c, mac_a, 0, 0x0a010002), 0); /* N1's */
	assert_int_equal(say_nd(c, mac_a, "::", 135), 0);
	assert_int_equal(say_nd(c, mac_a, "::1", 135), 0);
	assert_int_equal(say_nd(c, mac_a, "fe80::73:69ff:fe00:2", 135), 0); /* N1's */
	put_header(odd, mac_all, mac_a, 0, 0x0806);
	for (size_t len = 14; len < sizeof(odd); len++)
		assert_int_equal(arrive(c, odd, len), 0);
	assert_int_equal(find(w, "::ffff:0.0.0.0", 0), 0);
	assert_int_equal(find(w, "::ffff:127.0.0.1", 0), 0);
	assert_int_equal(find(w, "::ffff:224.0.0.1", 0), 0);
	assert_int_equal(find(w, "::ffff:10.1.0.2", 0), 2);
	assert_int_equal(find(w, "fe80::73:69ff:fe00:2", 0), 2);
	assert_int_equal(find(w, "::1", 0), 0);
	assert_int_equal(find(w, "::", 0), 0);
	end(w);
}

/* It is nobody's when the station gives it up, until the host says again that it is its own. */
static void an_address_that_was_the_fabrics_own(void **state)
{
	struct fab_roce_address own = {.gid = gid_of("::ffff:10.1.9.1")};
	struct world *w = begin(NULL);

	fab_ethernet_set_added(w->net.fab, N1, 1, &own, 1);
	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 2);
	fab_ethernet_set_added(w->net.fab, N1, 1, NULL, 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 0);
	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	end(w);
}

static void an_address_is_its_last_claimants(void **state)
{
	struct world *w = begin(NULL);

	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	assert_int_equal(say_ip(&w->cable[0], mac_all, mac_b, 0x0a010901), 0); /* not sure */
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	assert_int_equal(say_arp(&w->cable[0], mac_b, 0, 0x0a010901), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 4);
	end(w);
}

static void what_is_dropped(void **state)
{
	static uint8_t jumbo[FAB_FRAME_MAX + 1];
	static const uint8_t group[6] = {1}, none[6];
	struct rdma spoofed = a_to_n1, frame_qp = a_to_n1;
	uint8_t frame[WIRE_ROCE_FRAME_MAX] = {0};
	struct world *w = begin(NULL);
	struct cable *c = &w->cable[0];
	size_t n = put_rdma(&a_to_n1, frame);

	assert_int_equal(arrive(c, jumbo, 13), -EINVAL);
	assert_int_equal(arrive(c, jumbo, sizeof(jumbo)), -EINVAL);
	assert_int_equal(c->frames.wrong_length, 2);
	assert_int_equal(say_ip(c, mac_n0, group, 0), -EINVAL);
	assert_int_equal(say_ip(c, mac_n0, none, 0), -EINVAL);
	assert_int_equal(c->frames.malformed, 2);
	assert_int_equal(say_ip(c, mac_n0, mac_n1, 0), -EINVAL);
	spoofed.sgid = "::ffff:10.1.0.1"; /* N0's */
	assert_int_equal(say_rdma(c, spoofed), -EINVAL);
	assert_int_equal(c->frames.spoofed, 2);
	frame[n - 1] ^= 1;
	assert_int_equal(arrive(c, frame, n), -EINVAL);
	frame_qp.qpn = WIRE_QPN_FRAME;
	assert_int_equal(say_rdma(c, frame_qp), -EINVAL);
	assert_int_equal(c->frames.malformed, 4);
	assert_int_equal(net_count(&w->net, S2, 3, AG_RCV_ERRORS), 8);
	assert_int_equal(w->net.sink[N0].packets + w->net.sink[N1].packets, 0);
	put_header(jumbo, mac_n0, mac_a, 0, 0x1234);
	assert_int_equal(arrive(c, jumbo, FAB_FRAME_MAX), 0);
	assert_int_equal(c->frames.received, 9);
	end(w);
}

static void a_host_moves_to_another_cable(void **state)
{
	struct world *w = begin(NULL);

	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	send_frame(w, N0, mac_a);
	assert_int_equal(say_ip(&w->cable[1], mac_n0, mac_a, 0), 0);
	send_frame(w, N0, mac_a);
	assert_int_equal(w->cable[0].sent, 1);
	assert_int_equal(w->cable[1].sent, 2); /* the ARP was for all */
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	end(w);
}

static void a_cable_is_removed(void **state)
{
	struct world *w = begin(NULL);

	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	assert_int_equal(say_arp(&w->cable[0], mac_b, 0, 0x0a010902), 0);
	fab_outlet_far_link(w->cable[0].outlet, NULL); /* it is lost for a while */
	rt_sim_run(w->net.rt, 100);
	send_frame(w, N0, mac_a);
	assert_int_equal(w->cable[0].sent, 0);
	assert_int_equal(w->cable[1].sent, 2);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 3);
	fab_outlet_destroy(w->cable[0].outlet);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 0);
	assert_int_equal(fab_ethernet_find_mac(w->net.fab, mac_a), FAB_STATION_ALL);
	plug(w, &w->cable[0], S2, 5);
	assert_int_equal(say_arp(&w->cable[0], mac_b, 0, 0x0a010902), 0);
	assert_int_equal(find(w, "::ffff:10.1.9.2", 0), 4); /* the number that it had */
	send_frame(w, N0, mac_b);
	assert_int_equal(w->cable[0].sent, 1);
	end(w);
}

/* A link that comes back needs no new frame of its hosts. */
static void a_link_comes_back(void **state)
{
	struct world *w = begin(NULL);

	assert_int_equal(say_arp(&w->cable[0], mac_a, 0, 0x0a010901), 0);
	for (int up = 0; up < 2; up++) {
		assert_int_equal(fab_link_set(w->net.fab, S2, 3, up), 0);
		rt_sim_run(w->net.rt, 100);
		send_frame(w, N0, mac_a);
		assert_int_equal(w->cable[0].sent, up);
	}
	end(w);
}

static void the_table_is_bounded(void **state)
{
	struct world *w = begin(NULL);
	uint8_t mac[6] = HOST_MAC(0);

	for (unsigned int i = 0; i < 300; i++) {
		put_be16(mac + 4, (uint16_t)i);
		assert_int_equal(say_arp(&w->cable[0], mac, 0, 0x0a020000 + i), 0);
		rt_sim_jump(w->net.rt, 1000);
		if (i == 255) { /* the first one is not the oldest */
			put_be16(mac + 4, 0);
			assert_int_equal(say_ip(&w->cable[0], mac_n0, mac, 0), 0);
			rt_sim_jump(w->net.rt, 1000);
		}
	}
	assert_int_equal(find(w, "::ffff:10.2.0.0", 0), 3);
	assert_int_equal(find(w, "::ffff:10.2.0.1", 0), 0);
	assert_int_equal(find(w, "::ffff:10.2.0.44", 0), 0);
	assert_int_equal(find(w, "::ffff:10.2.0.45", 0), 3 + 45);
	assert_int_equal(find(w, "::ffff:10.2.1.43", 0), 3 + 44); /* 299 */
	end(w);
}

static void vlans(void **state)
{
	struct world *w = begin("100:n1"); /* N0 is no member */
	struct rdma r = {mac_n1, mac_a, "fe80::9", "fe80::73:69ff:fe00:2", 100, 0};
	uint16_t n1 = net_port(&w->net, N1, 1)->lid;
	uint16_t a;
	struct wire_packet p;
	struct wire_roce roce;
	struct fab_packet pkt;
	uint8_t bytes[200];

	assert_int_equal(say_arp(&w->cable[0], mac_a, 100, 0x0a010901), 0);
	a = fab_ethernet_find_mac(w->net.fab, mac_a);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 1), a + 1);
	assert_int_equal(find(w, "::ffff:10.1.9.1", 0), 0);
	assert_int_equal(say_arp(&w->cable[0], mac_a, 200, 0x0a010902), 0); /* no VLAN of this fabric */
	for (unsigned int path = 0; path < FAB_PATHS; path++)
		assert_int_equal(find(w, "::ffff:10.1.9.2", path), 0);
	w->net.sink[N1].packets = 0;
	assert_int_equal(say_rdma(&w->cable[0], r), 0);
	assert_int_equal(w->net.sink[N1].packets, 1);
	assert_true(wire_packet_decode(w->net.sink[N1].last, w->net.sink[N1].last_len, &p) > 0);
	assert_int_equal(p.lrh.slid, a + 1);
	assert_int_equal(p.lrh.dlid, n1 + 1);
	assert_int_equal(p.lrh.sl, 3);

	memcpy(bytes, w->net.sink[N1].last, w->net.sink[N1].last_len);
	put_be16(bytes + 2, (uint16_t)(a + 1));
	put_be16(bytes + 6, (uint16_t)(n1 + 1));
	assert_int_equal(fab_packet_decode(&pkt, bytes, w->net.sink[N1].last_len), 0);
	assert_int_equal(fab_send(w->net.fab, N1, 1, &pkt), 0);
	assert_int_equal(wire_roce_decode(w->cable[0].last, w->cable[0].last_len, &roce), 0);
	assert_int_equal(roce.headers.vlan_id, 100);
	assert_int_equal(roce.headers.priority, 3);

	put_be16(bytes + 2, FAB_STATION_ALL + 1); /* to a group */
	bytes[8 + 24] = 0xff;
	assert_int_equal(fab_packet_decode(&pkt, bytes, w->net.sink[N1].last_len), 0);
	assert_int_equal(fab_send(w->net.fab, N1, 1, &pkt), 0);
	assert_int_equal(wire_roce_decode(w->cable[1].last, w->cable[1].last_len, &roce), 0);
	assert_int_equal(roce.headers.vlan_id, 100);
	assert_int_equal(roce.headers.dst_mac[0], 0x33);
	end(w);
}

static void a_port_asks_for_hosts(void **state)
{
	static const uint8_t solicited[6] = {0x33, 0x33, 0xff, 0, 0, 9};
	struct world *w = begin("100");
	const union wire_gid v4 = gid_of("::ffff:10.1.9.9"), v6 = gid_of("fe80::9"), group = gid_of("ff02::1");
	const uint8_t *f = w->cable[0].last;

	assert_true(fab_ethernet_ask(w->net.fab, N0, 1, &v4, 0));
	assert_int_equal(w->net.sink[N1].packets, 1);
	assert_int_equal(w->net.sink[N0].packets, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(w->cable[i].sent, 1);
	assert_memory_equal(f, mac_all, 6);
	assert_memory_equal(f + 6, mac_n0, 6);
	assert_int_equal(get_be16(f + 12), 0x0806);
	assert_int_equal(get_be32(f + 28), 0x0a010001); /* the sender */
	assert_int_equal(get_be32(f + 38), 0x0a010909);
	assert_true(fab_ethernet_ask(w->net.fab, N0, 1, &v4, 1));
	assert_int_equal(get_be32(f + 12), 0x81000064);
	assert_int_equal(get_be32(f + 32), 0x0a020001); /* the VLAN's network */

	assert_true(fab_ethernet_ask(w->net.fab, N0, 1, &v6, 0));
	assert_memory_equal(f, solicited, 6);
	assert_int_equal(f[54], 135);
	assert_memory_equal(f + 62, v6.raw, 16);
	assert_memory_equal(f + 80, mac_n0, 6);
	assert_int_equal(wire_inet_fold(wire_inet_sum(f + 54, 32, wire_inet_pseudo_sum(f + 14, 58, 32))), 0);
	assert_false(fab_ethernet_ask(w->net.fab, N0, 1, &group, 0));
	fab_outlet_far_link(w->cable[0].outlet, NULL);
	assert_true(fab_ethernet_ask(w->net.fab, N0, 1, &v4, 0));
	fab_outlet_far_link(w->cable[1].outlet, NULL);
	assert_false(fab_ethernet_ask(w->net.fab, N0, 1, &v4, 0));
	end(w);
}

/* An adapter's own port may have such a cable, as with two hosts back to back. */
static void without_a_switch(void **state)
{
	struct world *w = begin_with(NULL, 2);
	struct fab_sink sink = {net_deliver, net_changed, &w->net.sink[N1]};

	fab_outlet_destroy(w->cable[1].outlet);
	fab_attach(w->net.fab, N1, 2, &sink);
	plug(w, &w->cable[1], N1, 2);
	assert_int_equal(say_arp(&w->cable[1], mac_a, 0, 0x0a010901), 0);
	assert_int_equal(w->net.sink[N1].packets, 1);
	assert_int_equal(w->net.sink[N0].packets, 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_learned_by_its_first_frame),
		cmocka_unit_test(groups_and_unknown_addresses_go_to_all),
		cmocka_unit_test(rdma_in_both_directions),
		cmocka_unit_test(rdma_to_groups),
		cmocka_unit_test(rdma_that_passes_through),
		cmocka_unit_test(what_teaches_addresses),
		cmocka_unit_test(what_teaches_none),
		cmocka_unit_test(an_address_that_was_the_fabrics_own),
		cmocka_unit_test(an_address_is_its_last_claimants),
		cmocka_unit_test(what_is_dropped),
		cmocka_unit_test(a_host_moves_to_another_cable),
		cmocka_unit_test(a_cable_is_removed),
		cmocka_unit_test(a_link_comes_back),
		cmocka_unit_test(the_table_is_bounded),
		cmocka_unit_test(vlans),
		cmocka_unit_test(a_port_asks_for_hosts),
		cmocka_unit_test(without_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
