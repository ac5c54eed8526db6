/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ethernet frames of raw packet QPs (wire/frame.h), and flow steering: which QPs of an
 * adapter receive a frame. The rules of a port stand in the order of their priorities,
 * 0 first. A frame goes to
 *
 *  - every sniffer of the port
 *  - the QPs of all matching rules that have the best priority among the matching ones; a rule
 *    with DONT_TRAP gets a copy, and the search continues with lower priorities
 *  - if no rule matches, the QPs of the default rules: for all frames, and for frames to groups
 *
 * A QP receives a frame once, with the tag of the first of its rules in the place of the Q_Key. A frame that matches no rule is dropped. If several QPs are to receive
 * a frame, one that has no room misses it, because Ethernet has no flow control. Only if a frame is
 * for a single station, and nobody there has room, does its sender keep it and offer it again, as with
 * priority flow control.
 */
#include <string.h>

#include "base/bytes.h"
#include "fabric/ethernet.h"
#include "hca/private.h"
#include "wire/frame.h"

#define HEADERS (WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_DETH_BYTES)
#define LRH_LNH_MASK	3 /* of the second byte of the LRH */
#define LRH_DLID_AT	2
#define BTH_DEST_QPN_AT (WIRE_LRH_BYTES + 5) /* 24 bits */
#define DETH_QKEY_AT	(WIRE_LRH_BYTES + WIRE_BTH_BYTES)
#define GROUP_BIT 1			     /* in the first byte of a MAC address */

/** struct hca_flow - a flow steering rule */
struct hca_flow {
	struct ib_flow ib;
	struct list_head node; /* in hca_port.flows */
	struct hca_qp *qp;
	struct ib_flow_attr attr;
	struct wire_frame_key value, mask;
	uint64_t last_frame; /* value of hca->frames for the last frame that matched */
};

/** struct delivery - a frame while it is delivered to QPs */
struct delivery {
	const struct fab_packet *pkt;
	struct hca_port *port;
	struct wire_frame_key key;
	uint8_t bytes[WIRE_PACKET_MAX];
	unsigned copies;
	bool full; /* the program of the last QP had no room in its ring */
};

/* --- to the fabric --- */

static uint16_t put_station(const struct hca *hca, uint8_t *bytes)
{
	uint16_t station = fab_ethernet_find_mac(hca->fab, bytes + HEADERS);

	put_be16(bytes + LRH_DLID_AT, station);
	return station;
}

bool hca_frame_route(const struct hca *hca, unsigned port, struct fab_packet *pkt, uint8_t *bytes)
{
	const struct hca_qp *src = eng_table_get(&hca->qps, pkt->src_qpn);

	if (!fab_is_ethernet(hca->fab, hca->node, (int)port) || !src || src->ib.qp_type != IB_QPT_RAW_PACKET ||
	    pkt->lrh.lnh != WIRE_LNH_BTH || pkt->len < HEADERS + WIRE_FRAME_MIN)
		return false;
	pkt->lrh.dlid = put_station(hca, bytes);
	return true;
}

void hca_frame_address(const struct hca *hca, uint8_t *bytes, size_t len)
{
	if (len >= HEADERS + WIRE_FRAME_MIN && (bytes[1] & LRH_LNH_MASK) == WIRE_LNH_BTH &&
	    get_be24(bytes + BTH_DEST_QPN_AT) == WIRE_QPN_FRAME)
		put_station(hca, bytes);
}

/* --- from the fabric --- */

static bool is_to_group(const struct delivery *d)
{
	return d->key.dst_mac[0] & GROUP_BIT;
}

static bool is_own(const struct delivery *d)
{
	return d->pkt->source == 1 + (uint32_t)d->port->hca->node;
}

struct hashed {
	uint8_t bytes[WIRE_TOEPLITZ_KEY_BYTES - 4];
	size_t len;
};

static void add(struct hashed *hashed, const uint8_t *field, size_t len, bool wanted)
{
	if (!wanted)
		return;
	memcpy(hashed->bytes + hashed->len, field, len);
	hashed->len += len;
}

/* Choose the work queue that receives a frame. The hash covers those of the selected fields that the
 * frame has, in the order in which they are in the frame. A frame with none of them goes to the first
 * work queue. */
static struct hca_qp *work_queue(const struct ib_rss *rss, const struct wire_frame_key *key)
{
	bool ip = key->has & (WIRE_FRAME_IPV4 | WIRE_FRAME_IPV6);
	bool ports = key->has & (WIRE_FRAME_TCP | WIRE_FRAME_UDP);
	bool ipv4 = key->has & WIRE_FRAME_IPV4, tcp = key->has & WIRE_FRAME_TCP;
	uint64_t src = ipv4 ? IB_RX_HASH_SRC_IPV4 : IB_RX_HASH_SRC_IPV6;
	uint64_t src_port = tcp ? IB_RX_HASH_SRC_PORT_TCP : IB_RX_HASH_SRC_PORT_UDP;
	size_t ip_bytes = ipv4 ? 4 : 16;
	struct hashed hashed = {.len = 0};
	uint32_t hash;

	add(&hashed, key->src_ip, ip_bytes, ip && rss->fields & src);
	add(&hashed, key->dst_ip, ip_bytes, ip && rss->fields & src << 1);
	add(&hashed, key->src_port, 2, ports && rss->fields & src_port);
	add(&hashed, key->dst_port, 2, ports && rss->fields & src_port << 1);
	hash = wire_toeplitz(rss->key, hashed.bytes, hashed.len);
	return container_of(rss->wq[hash & ((1u << rss->log_size) - 1)], struct hca_qp, ib);
}

static void give(struct delivery *d, struct hca_qp *qp, uint32_t tag)
{
	struct hca *hca = d->port->hca;

	if (qp->ib.rss)
		qp = work_queue(qp->ib.rss, &d->key);
	if (qp->last_frame == hca->frames) /* another rule has delivered the frame to this QP */
		return;
	if (is_own(d) && is_to_group(d) && qp->ib.qp_num == d->pkt->src_qpn)
		return;
	qp->last_frame = hca->frames;
	put_be24(d->bytes + BTH_DEST_QPN_AT, qp->ib.qp_num);
	put_be32(d->bytes + DETH_QKEY_AT, tag);
	d->full = (qp->user ? hca_user_deliver(qp->user, d->bytes, d->pkt->len) :
			      hca_link_receive(hca, d->port->port_num, d->bytes, d->pkt->len)) == -EAGAIN;
	d->copies += !d->full;
}

static bool is_type(const struct hca_flow *flow, enum ib_flow_attr_type type)
{
	return flow->attr.type == type;
}

static void follow(struct delivery *d, struct hca_flow *flow)
{
	flow->last_frame = d->port->hca->frames;
	if (!flow->attr.drops)
		give(d, flow->qp, flow->attr.tag);
}

static void give_to(struct delivery *d, enum ib_flow_attr_type type)
{
	struct hca_flow *flow;

	list_for_each_entry(flow, &d->port->flows, node)
		if (is_type(flow, type))
			follow(d, flow);
}

/* Return: true if a rule without DONT_TRAP matched, so that the default rules do not apply */
static bool give_by_rules(struct delivery *d)
{
	struct hca_flow *flow;
	int best = -1;

	list_for_each_entry(flow, &d->port->flows, node) {
		if (!is_type(flow, IB_FLOW_ATTR_NORMAL) ||
		    !wire_frame_matches(&d->key, &flow->value, &flow->mask))
			continue;
		if (best >= 0 && flow->attr.priority != best)
			break;
		if (!(flow->attr.flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP))
			best = flow->attr.priority;
		follow(d, flow);
	}
	return best >= 0;
}

/* Count a received frame. One that was not delivered for lack of room is offered again, and counted
 * when it is delivered. */
static void count(const struct delivery *d)
{
	struct hca_flow *flow;

	list_for_each_entry(flow, &d->port->flows, node) {
		if (flow->last_frame != d->port->hca->frames)
			continue;
		flow->ib.packets++;
		flow->ib.bytes += d->pkt->payload_bytes;
	}
}

int hca_frame_deliver(struct hca_port *port, const struct fab_packet *pkt)
{
	struct delivery d = {.pkt = pkt, .port = port};

	if (list_empty(&port->flows) || pkt->len < HEADERS + WIRE_FRAME_MIN ||
	    wire_frame_parse(pkt->bytes + HEADERS, pkt->payload_bytes, &d.key))
		return 0;
	if (is_own(&d) && pkt->lrh.dlid == FAB_STATION_ALL && !is_to_group(&d))
		return 0; /* a switch floods a frame to all ports but the one that it came from */
	memcpy(d.bytes, pkt->bytes, pkt->len);
	port->hca->frames++;
	give_to(&d, IB_FLOW_ATTR_SNIFFER);
	if (!give_by_rules(&d)) {
		give_to(&d, IB_FLOW_ATTR_ALL_DEFAULT);
		if (is_to_group(&d))
			give_to(&d, IB_FLOW_ATTR_MC_DEFAULT);
	}
	if (d.full && !d.copies && pkt->lrh.dlid != FAB_STATION_ALL)
		return -EAGAIN;
	count(&d);
	return 0;
}

/* --- rules --- */

/* Insert the rule behind all others of the same priority. */
static void insert(struct hca_port *port, struct hca_flow *flow)
{
	struct list_head *at = port->flows.prev;

	while (at != &port->flows &&
	       list_entry(at, struct hca_flow, node)->attr.priority > flow->attr.priority)
		at = at->prev;
	list_add(&flow->node, at);
}

struct ib_flow *hca_create_flow(struct ib_qp *ibqp, const struct ib_flow_attr *attr)
{
	struct hca *hca = hca_of(ibqp->device);
	struct hca_flow *flow;

	if (!fab_is_ethernet(hca->fab, hca->node, attr->port))
		return ERR_PTR(-EOPNOTSUPP);
	flow = rt_zalloc(sizeof(*flow));
	if (!flow)
		return ERR_PTR(-ENOMEM);
	flow->qp = container_of(ibqp, struct hca_qp, ib);
	flow->attr = *attr;
	memcpy(&flow->value, attr->value, sizeof(flow->value));
	memcpy(&flow->mask, attr->mask, sizeof(flow->mask));
	insert(&hca->port[attr->port - 1], flow);
	return &flow->ib;
}

void hca_destroy_flow(struct ib_flow *ibflow)
{
	struct hca_flow *flow = container_of(ibflow, struct hca_flow, ib);

	list_del(&flow->node);
	rt_free(flow);
}
