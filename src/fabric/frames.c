/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frames of cables that leave an Ethernet fabric, and packets: frames.h. */
#include "fabric/frames.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/ethernet_private.h"

#define FRAME_AT  (WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_DETH_BYTES) /* in a packet */
#define FRAME_MIN 60 /* IEEE 802.3 clause 3.2.8: before the FCS */

/** struct arrival - a frame that has come by a cable */
struct arrival {
	struct fab_ethernet *eth;
	const uint8_t *frame;
	size_t len;
	struct wire_frame_key key;
	uint16_t from, to; /* the numbers of the stations, in path 0 */
	bool for_us;	   /* to a station of the fabric, or to a group */
};

/* --- to packets --- */

enum kind { RDMA, FRAME, MALFORMED, SPOOFED };

/* RDMA that no station of the fabric can read travels as a frame. */
static enum kind kind_of(const struct arrival *a, struct wire_roce *roce, unsigned int *path)
{
	int ret = a->for_us ? wire_roce_decode(a->frame, a->len, roce) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? FRAME : MALFORMED;
	*path = eth_find_vlan(a->eth, roce->headers.vlan_id);
	if (roce->headers.vlan_id && !*path)
		return FRAME;
	return eth_own_station(a->eth, &roce->headers.grh.sgid, *path) ? SPOOFED : RDMA;
}

/* Return: bytes of the packet */
static size_t make_rdma(const struct arrival *a, const struct wire_roce *roce, unsigned int path, uint8_t *bytes)
{
	const size_t at = WIRE_LRH_BYTES + WIRE_GRH_BYTES;
	const struct wire_lrh lrh = {
		.lnh = WIRE_LNH_GRH, .sl = roce->headers.priority,
		.slid = (uint16_t)(a->from + path), .dlid = (uint16_t)(a->to + path),
		.length_dwords = (uint16_t)((at + roce->bytes + WIRE_ICRC_BYTES) / 4),
	};

	wire_lrh_encode(&lrh, bytes);
	wire_grh_encode(&roce->headers.grh, bytes + WIRE_LRH_BYTES);
	memcpy(bytes + at, roce->bth, roce->bytes);
	return at + roce->bytes;
}

size_t eth_datagram(uint16_t slid, uint16_t dlid, const uint8_t *frame, size_t len, uint8_t *bytes)
{
	struct wire_packet p = {
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = slid, .dlid = dlid},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = WIRE_PKEY_DEFAULT, .dest_qpn = WIRE_QPN_FRAME},
		.payload_bytes = (uint32_t)len,
	};
	size_t n = (size_t)wire_packet_encode(&p, bytes);

	memcpy(bytes + n, frame, len);
	memset(bytes + n + len, 0, p.bth.pad_bytes);
	return n + len + p.bth.pad_bytes;
}

/* Return: bytes of the packet; 0: it is to be dropped, and *@kind says why */
static size_t make_packet(const struct arrival *a, uint8_t *bytes, struct fab_packet *pkt, enum kind *kind)
{
	struct wire_roce roce;
	unsigned int path;
	size_t n = 0;

	*kind = kind_of(a, &roce, &path);
	if (*kind == FRAME)
		n = eth_datagram(a->from, a->to, a->frame, a->len, bytes);
	else if (*kind == RDMA)
		n = make_rdma(a, &roce, path, bytes);
	if (n && fab_packet_decode(pkt, bytes, n))
		n = 0;
	/* those numbers are for frames, and for management that Ethernet does not have */
	if (n && *kind == RDMA && (pkt->dest_qpn == WIRE_QPN_FRAME || pkt->dest_qpn == 0))
		n = 0;
	return n;
}

static int dropped(struct fab_frames *f, uint64_t *counter)
{
	(*counter)++;
	fab_ag_port(fab_port_of(f->fab, f->node, f->port))->count.raw[AG_RCV_ERRORS]++;
	return -EINVAL;
}

int fab_frames_arrive(struct fab_frames *f, const void *frame, size_t len, uint8_t *bytes, struct fab_packet *pkt)
{
	static const uint8_t nobody[FAB_MAC_BYTES];
	struct arrival a = {.eth = f->fab->ethernet, .frame = frame, .len = len};
	enum kind kind;

	f->received++;
	if (len > FAB_FRAME_MAX || wire_frame_parse(frame, len, &a.key))
		return dropped(f, &f->wrong_length);
	if (a.key.src_mac[0] & 1 || !memcmp(a.key.src_mac, nobody, sizeof(nobody)))
		return dropped(f, &f->malformed);
	if (eth_own_place(a.eth, a.key.src_mac) >= 0)
		return dropped(f, &f->spoofed);
	a.from = eth_outside_hear(a.eth, fab_port_of(f->fab, f->node, f->port), frame, len, &a.key);
	a.to = fab_ethernet_find_mac(f->fab, a.key.dst_mac);
	a.for_us = a.key.dst_mac[0] & 1 || eth_own_place(a.eth, a.key.dst_mac) >= 0;
	if (!a.from || !make_packet(&a, bytes, pkt, &kind))
		return dropped(f, a.from && kind == SPOOFED ? &f->spoofed : &f->malformed);
	return 0;
}

/* --- to frames --- */

void fab_frames_headers(const struct fabric *fab, const struct wire_lrh *lrh, const struct wire_grh *grh,
			struct wire_roce_headers *headers)
{
	*headers = (struct wire_roce_headers){
		.vlan_id = fab_ethernet_vlan(fab, lrh->dlid), .priority = lrh->sl, .grh = *grh};
	fab_ethernet_mac(fab, lrh->slid, headers->src_mac);
	if (lrh->dlid < FAB_STATION_ALL)
		fab_ethernet_mac(fab, lrh->dlid, headers->dst_mac);
	else
		fab_ethernet_group_mac(grh->dgid.raw, headers->dst_mac);
}

static size_t rdma_frame(const struct fab_frames *f, const struct fab_packet *pkt, uint8_t *frame)
{
	const size_t at = WIRE_LRH_BYTES + WIRE_GRH_BYTES;
	const struct wire_grh grh = fab_packet_grh(pkt);
	struct wire_roce_headers headers;

	fab_frames_headers(f->fab, &pkt->lrh, &grh, &headers);
	return wire_roce_encode(&headers, pkt->bytes + at, pkt->len - at, frame);
}

size_t fab_frames_leave(struct fab_frames *f, const struct fab_packet *pkt, uint8_t *frame)
{
	const bool has_grh = pkt->lrh.lnh == WIRE_LNH_GRH;
	size_t n = 0;

	if (has_grh) {
		n = rdma_frame(f, pkt, frame);
	} else if (pkt->dest_qpn == WIRE_QPN_FRAME) {
		n = pkt->payload_bytes - (pkt->bytes[WIRE_LRH_BYTES + 1] >> 4 & 3);
		memcpy(frame, pkt->bytes + FRAME_AT, n);
	}
	if (!n)
		return 0;
	f->sent++;
	if (n < FRAME_MIN)
		memset(frame + n, 0, FRAME_MIN - n);
	return MAX(n, (size_t)FRAME_MIN);
}
