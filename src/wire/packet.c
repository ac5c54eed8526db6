/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decodes and encodes packet headers. This is on the hot path of the transport, so
 * it consists of straight-line loads and stores, selected by the flags of the
 * opcode table. The codec of fields.h is for management structures only.
 */
#include "wire/packet.h"
#include "wire/roce.h"
#include "base/bytes.h"

#include <errno.h>

#define GRH_IP_VERSION	    6
#define PKTLEN_DWORDS	    2048 /* PktLen is a number of dwords modulo this */

int wire_lrh_decode(const void *buf, size_t len, struct wire_lrh *lrh)
{
	const uint8_t *b = buf;

	if (len < WIRE_LRH_BYTES || (b[0] & 0x0f) != 0) /* 7.7.2: LVer is 0 */
		return -EINVAL;
	lrh->vl = b[0] >> 4;
	lrh->lver = 0;
	lrh->sl = b[1] >> 4;
	lrh->lnh = b[1] & 3;
	lrh->dlid = get_be16(b + 2);
	lrh->length_dwords = get_be16(b + 4) & 0x7ff;
	lrh->slid = get_be16(b + 6);
	lrh->rnr_mark = (uint8_t)((b[1] & 0x0c) << 4 | b[4] >> 3);
	return WIRE_LRH_BYTES;
}

void wire_lrh_mark_rnr(void *buf, uint8_t mark)
{
	uint8_t *b = buf;

	b[1] |= (uint8_t)(mark >> 4 & 0x0c);
	b[4] |= (uint8_t)((mark & WIRE_RNR_TIMER_MASK) << 3);
}

int wire_lrh_encode(const struct wire_lrh *lrh, void *buf)
{
	uint8_t *b = buf;

	b[0] = (uint8_t)(lrh->vl << 4 | (lrh->lver & 0x0f));
	b[1] = (uint8_t)(lrh->sl << 4 | (lrh->lnh & 3));
	put_be16(b + 2, lrh->dlid);
	put_be16(b + 4, lrh->length_dwords & 0x7ff);
	put_be16(b + 6, lrh->slid);
	return WIRE_LRH_BYTES;
}

int wire_grh_decode(const void *buf, struct wire_grh *grh)
{
	const uint8_t *b = buf;
	uint32_t word = get_be32(b);

	grh->ip_version = (uint8_t)(word >> 28);
	grh->traffic_class = (uint8_t)(word >> 20);
	grh->flow_label = word & 0xfffff;
	grh->payload_bytes = get_be16(b + 4);
	grh->next_header = b[6];
	grh->hop_limit = b[7];
	memcpy(grh->sgid.raw, b + 8, 16);
	memcpy(grh->dgid.raw, b + 24, 16);
	return WIRE_GRH_BYTES;
}

/* 8.3: @len counts from the GRH to the last pad byte, without the ICRC */
static int grh_decode(const uint8_t *b, size_t len, struct wire_grh *grh)
{
	if (len < WIRE_GRH_BYTES)
		return -EINVAL;
	wire_grh_decode(b, grh);
	if (grh->ip_version != GRH_IP_VERSION ||
	    grh->next_header != WIRE_NEXT_HEADER_BTH ||
	    grh->payload_bytes != len - WIRE_GRH_BYTES + WIRE_ICRC_BYTES)
		return -EINVAL;
	return WIRE_GRH_BYTES;
}

int wire_grh_encode(const struct wire_grh *grh, void *buf)
{
	uint8_t *b = buf;

	put_be32(b, (uint32_t)GRH_IP_VERSION << 28 | (uint32_t)grh->traffic_class << 20 |
			(grh->flow_label & 0xfffff));
	put_be16(b + 4, grh->payload_bytes);
	b[6] = WIRE_NEXT_HEADER_BTH;
	b[7] = grh->hop_limit;
	memcpy(b + 8, grh->sgid.raw, 16);
	memcpy(b + 24, grh->dgid.raw, 16);
	return WIRE_GRH_BYTES;
}

static void bth_load(const uint8_t *b, struct wire_bth *bth)
{
	bth->opcode = b[0];
	bth->solicited = b[1] >> 7;
	bth->mig_req = b[1] >> 6 & 1;
	bth->pad_bytes = b[1] >> 4 & 3;
	bth->tver = b[1] & 0x0f;
	bth->pkey = get_be16(b + 2);
	bth->fecn = b[4] >> 7;
	bth->becn = b[4] >> 6 & 1;
	bth->dest_qpn = get_be24(b + 5);
	bth->ack_req = b[8] >> 7;
	bth->psn = psn(get_be24(b + 9));
}

static void bth_store(const struct wire_bth *bth, uint8_t *b)
{
	b[0] = bth->opcode;
	b[1] = (uint8_t)(bth->solicited << 7 | bth->mig_req << 6 | bth->pad_bytes << 4 |
			 (bth->tver & 0x0f));
	put_be16(b + 2, bth->pkey);
	b[4] = (uint8_t)(bth->fecn << 7 | bth->becn << 6);
	put_be24(b + 5, bth->dest_qpn);
	b[8] = (uint8_t)(bth->ack_req << 7);
	put_be24(b + 9, bth->psn.v);
}

static uint32_t feth_word(const struct wire_feth *feth)
{
	return (uint32_t)(feth->selectivity & WIRE_FETH_SELECTIVITY_MASK)
		       << WIRE_FETH_SELECTIVITY_SHIFT |
	       (feth->placement & WIRE_FETH_PLACEMENT_MASK);
}

static struct wire_feth feth_of(uint32_t word)
{
	return (struct wire_feth){
		.placement = word & WIRE_FETH_PLACEMENT_MASK,
		.selectivity = word >> WIRE_FETH_SELECTIVITY_SHIFT & WIRE_FETH_SELECTIVITY_MASK,
	};
}

/*
 * The only list of the extended headers, in wire order (9.2.1, figure of 9.3); @flags
 * selects some of them. It is compiled twice, to load them (@store false) and to store
 * them, with zeros in reserved fields. The caller has checked that the packet contains
 * all of them.
 */
#define FIELD(bits, at, member)                                                                    \
	do {                                                                                       \
		if (store)                                                                         \
			put_be##bits(b + (at), (member));                                          \
		else                                                                               \
			(member) = get_be##bits(b + (at));                                         \
	} while (0)
/* 24 bits after a reserved byte */
#define FIELD_24(at, member)                                                                       \
	do {                                                                                       \
		if (store)                                                                         \
			b[at] = 0;                                                                 \
		FIELD(24, (at) + 1, member);                                                       \
	} while (0)
__attribute__((always_inline)) static inline size_t ext_pass(uint8_t *b, uint32_t flags,
							     struct wire_packet *pkt,
							     const bool store)
{
	uint8_t *start = b;

	if (flags & WIRE_HAS_RDETH) {
		FIELD_24(0, pkt->rd_ee_context);
		b += WIRE_RDETH_BYTES;
	}
	if (flags & WIRE_HAS_DETH) {
		FIELD(32, 0, pkt->deth.qkey);
		FIELD_24(4, pkt->deth.src_qpn);
		b += WIRE_DETH_BYTES;
	}
	if (flags & WIRE_HAS_XRCETH) {
		FIELD_24(0, pkt->xrc_srqn);
		b += WIRE_XRCETH_BYTES;
	}
	if (flags & WIRE_HAS_FETH) {
		if (store)
			put_be32(b, feth_word(&pkt->feth));
		else
			pkt->feth = feth_of(get_be32(b));
		b += WIRE_FETH_BYTES;
	}
	if (flags & WIRE_HAS_RETH) {
		FIELD(64, 0, pkt->reth.va);
		FIELD(32, 8, pkt->reth.rkey);
		FIELD(32, 12, pkt->reth.length_bytes);
		b += WIRE_RETH_BYTES;
	}
	if (flags & WIRE_HAS_ATOMIC_ETH) {
		FIELD(64, 0, pkt->atomic.va);
		FIELD(32, 8, pkt->atomic.rkey);
		FIELD(64, 12, pkt->atomic.swap_add);
		FIELD(64, 20, pkt->atomic.compare);
		b += WIRE_ATOMIC_ETH_BYTES;
	}
	if (flags & WIRE_HAS_AETH) {
		if (store)
			put_be32(b, wire_aeth_word(&pkt->aeth));
		else
			pkt->aeth = (struct wire_aeth){b[0], get_be24(b + 1)};
		b += WIRE_AETH_BYTES;
	}
	if (flags & WIRE_HAS_ATOMIC_ACK) {
		FIELD(64, 0, pkt->atomic_ack);
		b += WIRE_ATOMIC_ACK_BYTES;
	}
	if (flags & WIRE_HAS_IMM) {
		FIELD(32, 0, pkt->imm);
		b += WIRE_IMM_BYTES;
	}
	if (flags & WIRE_HAS_IETH) {
		FIELD(32, 0, pkt->ieth_rkey);
		b += WIRE_IETH_BYTES;
	}
	return (size_t)(b - start);
}
#undef FIELD_24
#undef FIELD

size_t wire_ext_decode(const void *buf, uint32_t flags, struct wire_packet *pkt)
{
	return ext_pass((uint8_t *)buf, flags, pkt, false);
}

size_t wire_ext_encode(const struct wire_packet *pkt, uint32_t flags, void *buf)
{
	return ext_pass(buf, flags, (struct wire_packet *)pkt, true);
}

int wire_bth_decode(const void *buf, size_t len, struct wire_packet *pkt)
{
	const uint8_t *b = buf;
	const struct wire_opcode_info *op;
	size_t headers, rest;

	if (len < WIRE_BTH_BYTES)
		return -EINVAL;
	bth_load(b, &pkt->bth);
	op = &wire_opcodes[pkt->bth.opcode];
	headers = WIRE_BTH_BYTES + op->ext_bytes;
	if (!op->name || pkt->bth.tver != 0 || len < headers) /* 9.6.1: opcode, TVer */
		return -EINVAL;
	rest = len - headers;
	if (rest < pkt->bth.pad_bytes || rest - pkt->bth.pad_bytes > WIRE_PAYLOAD_MAX)
		return -EINVAL;
	rest -= pkt->bth.pad_bytes;
	if (rest && !(op->flags & WIRE_HAS_PAYLOAD))
		return -EINVAL;
	wire_ext_decode(b + WIRE_BTH_BYTES, op->flags, pkt);
	pkt->payload = b + headers;
	pkt->payload_bytes = (uint32_t)rest;
	pkt->packets = 1;
	pkt->ip_checked = false;
	return (int)headers;
}

uint32_t wire_segment_dwords(const struct wire_packet *pkt)
{
	const struct wire_opcode_info *op = &wire_opcodes[pkt->bth.opcode];
	uint32_t each = WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES;
	uint32_t once = op->ext_bytes;

	if (pkt->lrh.lnh == WIRE_LNH_GRH)
		each += WIRE_GRH_BYTES;
	/* The headers of an Only packet are split between First and Last; both have an AETH */
	if (op->flags & WIRE_HAS_AETH && op->flags & WIRE_IS_FIRST && op->flags & WIRE_IS_LAST &&
	    pkt->packets > 1)
		once += WIRE_AETH_BYTES;
	return (pkt->packets * each + once + pkt->payload_bytes + 3) / 4;
}

int wire_bth_encode(struct wire_packet *pkt, void *buf)
{
	uint8_t *b = buf;
	const struct wire_opcode_info *op = &wire_opcodes[pkt->bth.opcode];

	if (!op->name)
		return -EINVAL;
	pkt->bth.pad_bytes = (uint8_t)(-pkt->payload_bytes & 3); /* 9.2.3 */
	bth_store(&pkt->bth, b);
	wire_ext_encode(pkt, op->flags, b + WIRE_BTH_BYTES);
	return WIRE_BTH_BYTES + op->ext_bytes;
}

int wire_packet_decode(const void *buf, size_t len, struct wire_packet *pkt)
{
	const uint8_t *b = buf;
	size_t at = WIRE_LRH_BYTES;
	int n;

	if (wire_lrh_decode(buf, len, &pkt->lrh) < 0)
		return -EINVAL;
	/* 7.7.5: PktLen counts LRH to ICRC; the ICRC is not in the buffer. Of a jumbo frame it has the
	 * low bits. */
	if ((len + WIRE_ICRC_BYTES) % (PKTLEN_DWORDS * 4) != (size_t)pkt->lrh.length_dwords * 4)
		return -EINVAL;
	pkt->lrh.length_dwords = (uint16_t)((len + WIRE_ICRC_BYTES) / 4);
	if (pkt->lrh.lnh == WIRE_LNH_GRH) {
		n = grh_decode(b + at, len - at, &pkt->grh);
		if (n < 0)
			return n;
		at += (size_t)n;
	} else if (pkt->lrh.lnh != WIRE_LNH_BTH) {
		return -EINVAL;
	}
	n = wire_bth_decode(b + at, len - at, pkt);
	return n < 0 ? n : (int)at + n;
}

int wire_packet_encode(struct wire_packet *pkt, void *buf)
{
	uint8_t *b = buf;
	size_t at = WIRE_LRH_BYTES, bytes;
	int n;

	if (pkt->lrh.lnh == WIRE_LNH_GRH)
		at += WIRE_GRH_BYTES;
	else if (pkt->lrh.lnh != WIRE_LNH_BTH)
		return -EINVAL;
	n = wire_bth_encode(pkt, b + at);
	if (n < 0)
		return n;
	bytes = (size_t)n + pkt->payload_bytes + pkt->bth.pad_bytes + WIRE_ICRC_BYTES;
	if (pkt->payload_bytes > WIRE_PAYLOAD_MAX)
		return -EINVAL;
	pkt->lrh.length_dwords = (uint16_t)((at + bytes) / 4);
	wire_lrh_encode(&pkt->lrh, b);
	if (pkt->lrh.lnh == WIRE_LNH_GRH) {
		pkt->grh.payload_bytes = (uint16_t)bytes;
		wire_grh_encode(&pkt->grh, b + WIRE_LRH_BYTES);
	}
	return (int)at + n;
}
