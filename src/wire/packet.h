/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The InfiniBand packet (IBA v1 chapters 5.2, 7, 8, 9): headers as structs in
 * host byte order, the opcode table that gives the headers of each opcode, and one
 * pair of functions that decodes and encodes them. The layers above use only the
 * structs.
 */
#ifndef SOFTIB_WIRE_PACKET_H
#define SOFTIB_WIRE_PACKET_H

#include "base/types.h"

#define WIRE_LRH_BYTES 8
#define WIRE_GRH_BYTES 40
#define WIRE_BTH_BYTES 12
#define WIRE_DETH_BYTES 8
#define WIRE_RDETH_BYTES 4
#define WIRE_RETH_BYTES 16
#define WIRE_ATOMIC_ETH_BYTES 28
#define WIRE_AETH_BYTES 4
#define WIRE_ATOMIC_ACK_BYTES 8
#define WIRE_IMM_BYTES 4
#define WIRE_IETH_BYTES 4
#define WIRE_XRCETH_BYTES 4
#define WIRE_FETH_BYTES 4
#define WIRE_ICRC_BYTES 4
#define WIRE_VCRC_BYTES 2
#define WIRE_MTU_MAX 4096
#define WIRE_FRAME_MTU_MAX 9000 /* of Ethernet: a jumbo frame, without its header (frame.h) */
#define WIRE_PAYLOAD_MAX (WIRE_FRAME_MTU_MAX + 18) /* a whole frame. Others have WIRE_MTU_MAX: transport looks */
/** upper bound of the length of all headers, LRH and GRH included */
#define WIRE_HEADERS_MAX 128
#define WIRE_PACKET_MAX (WIRE_HEADERS_MAX + WIRE_PAYLOAD_MAX + 2 + WIRE_ICRC_BYTES + WIRE_VCRC_BYTES)

#define WIRE_LID_PERMISSIVE 0xffffu
#define WIRE_LID_MULTICAST 0xc000u /* first multicast LID */
#define WIRE_QPN_MULTICAST 0xffffffu
#define WIRE_QKEY_GSI 0x80010000u /* well-known Q_Key of QP1 */
#define WIRE_PKEY_DEFAULT 0xffffu
#define WIRE_PKEY_BASE 0x7fffu /* the partition, */
#define WIRE_PKEY_FULL 0x8000u /* and full membership in it (10.9.1) */
#define WIRE_VL_MANAGEMENT 15
#define WIRE_NEXT_HEADER_BTH 0x1b /* of a GRH */

/** wire_pkey_is_valid() - does @pkey name a partition? If the low 15 bits are 0, it is an
 *  empty entry of a table (10.9.1). */
static inline bool wire_pkey_is_valid(uint16_t pkey)
{
	return pkey & WIRE_PKEY_BASE;
}

/** wire_pkeys_alike() - do two P_Keys name the same partition? (10.9.1) */
static inline bool wire_pkeys_alike(uint16_t a, uint16_t b)
{
	return !((a ^ b) & WIRE_PKEY_BASE) && wire_pkey_is_valid(a);
}

/** wire_pkeys_match() - may two ports with these P_Keys communicate? They may if the
 *  partition is the same and they are not both limited members (10.9.3). */
static inline bool wire_pkeys_match(uint16_t a, uint16_t b)
{
	return wire_pkeys_alike(a, b) && (a | b) & WIRE_PKEY_FULL;
}

union wire_gid {
	uint8_t raw[16];
};

/** struct wire_lrh - local route header (7.7). Lengths in 4-byte words,
 *  from the LRH's first byte to the ICRC's last. */
struct wire_lrh {
	uint8_t vl, lver, sl;
	uint8_t lnh; /* enum wire_lnh */
	uint16_t dlid, slid;
	uint16_t length_dwords;
	uint8_t rnr_mark; /* see wire_lrh_mark_rnr(); 0 on any wire */
};

enum wire_lnh { WIRE_LNH_RAW = 0, WIRE_LNH_RAW_IPV6 = 1, WIRE_LNH_BTH = 2, WIRE_LNH_GRH = 3 };

/** struct wire_grh - global route header (8.3) */
struct wire_grh {
	uint8_t ip_version; /* 6 */
	uint8_t traffic_class;
	uint32_t flow_label; /* 20 bits */
	uint16_t payload_bytes; /* what follows the GRH, ICRC included */
	uint8_t next_header; /* WIRE_NEXT_HEADER_BTH */
	uint8_t hop_limit;
	union wire_gid sgid, dgid;
};

/** struct wire_bth - base transport header (9.2) */
struct wire_bth {
	uint8_t opcode; /* enum wire_opcode */
	bool solicited;
	bool mig_req;
	uint8_t pad_bytes; /* 0..3 */
	uint8_t tver;
	uint16_t pkey;
	bool fecn, becn;
	uint32_t dest_qpn; /* 24 bits */
	bool ack_req;
	psn_t psn;
};

struct wire_deth {
	uint32_t qkey;
	uint32_t src_qpn;
};
struct wire_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length_bytes;
};
/** struct wire_feth - what a FLUSH asks for (annex A19) */
struct wire_feth {
	uint8_t placement;   /* enum wire_placement, one or more */
	uint8_t selectivity; /* enum wire_selectivity */
};
enum wire_placement {
	WIRE_FLUSH_GLOBAL = 1 << 0,	/* visible to all that can access the memory */
	WIRE_FLUSH_PERSISTENT = 1 << 1, /* outlives a loss of power */
};
enum wire_selectivity {
	WIRE_FLUSH_RANGE = 0, /* that of the RETH */
	WIRE_FLUSH_MR = 1,    /* all that the R_Key names */
};
#define WIRE_FETH_PLACEMENT_MASK 0x0f
#define WIRE_FETH_SELECTIVITY_SHIFT 4
#define WIRE_FETH_SELECTIVITY_MASK 0x03
struct wire_atomic_eth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add, compare;
};
struct wire_aeth {
	uint8_t syndrome; /* enum wire_aeth_kind in bits 6..5 */
	uint32_t msn;
};

/** wire_aeth_word() - in host order, as it is on the wire in network order */
static inline uint32_t wire_aeth_word(const struct wire_aeth *aeth)
{
	return (uint32_t)aeth->syndrome << 24 | (aeth->msn & 0xffffff);
}
/** wire_aeth_syndrome() - the syndrome in such a @word */
static inline uint8_t wire_aeth_syndrome(uint32_t word)
{
	return (uint8_t)(word >> 24);
}

/* AETH syndrome (9.7.5.1.1): bits 6..5 the kind, 4..0 its value */
enum wire_aeth_kind { WIRE_AETH_ACK = 0x00, WIRE_AETH_RNR_NAK = 0x20, WIRE_AETH_NAK = 0x60 };
#define WIRE_AETH_KIND_MASK 0x60
#define WIRE_AETH_VALUE_MASK 0x1f
#define WIRE_AETH_CREDIT_INVALID 0x1f
enum wire_nak {
	WIRE_NAK_PSN_SEQUENCE = 0,
	WIRE_NAK_INVALID_REQUEST = 1,
	WIRE_NAK_REMOTE_ACCESS = 2,
	WIRE_NAK_REMOTE_OPERATIONAL = 3,
	WIRE_NAK_INVALID_RD_REQUEST = 4,
};

/* Bits 7..5 of the opcode are the transport, 4..0 the operation (9.2.1) */
enum wire_transport {
	WIRE_RC = 0x00, WIRE_UC = 0x20, WIRE_RD = 0x40, WIRE_UD = 0x60, WIRE_CNP = 0x80, WIRE_XRC = 0xa0
};
#define WIRE_TRANSPORT_MASK 0xe0
enum wire_operation {
	WIRE_SEND_FIRST = 0x00, WIRE_SEND_MIDDLE, WIRE_SEND_LAST, WIRE_SEND_LAST_IMM,
	WIRE_SEND_ONLY, WIRE_SEND_ONLY_IMM,
	WIRE_WRITE_FIRST = 0x06, WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST, WIRE_WRITE_LAST_IMM,
	WIRE_WRITE_ONLY, WIRE_WRITE_ONLY_IMM,
	WIRE_READ_REQUEST = 0x0c, WIRE_READ_RESP_FIRST, WIRE_READ_RESP_MIDDLE,
	WIRE_READ_RESP_LAST, WIRE_READ_RESP_ONLY,
	WIRE_ACKNOWLEDGE = 0x11, WIRE_ATOMIC_ACK = 0x12, WIRE_CMP_SWAP = 0x13, WIRE_FETCH_ADD = 0x14,
	WIRE_RESYNC = 0x15, WIRE_SEND_LAST_INV = 0x16, WIRE_SEND_ONLY_INV = 0x17,
	WIRE_FLUSH = 0x1c, WIRE_ATOMIC_WRITE = 0x1d,
};

/* Properties of an opcode in wire_opcodes[] */
enum wire_opcode_flags {
	/* --- headers after the BTH, in wire order --- */
	WIRE_HAS_RDETH = 1 << 0,
	WIRE_HAS_DETH = 1 << 1,
	WIRE_HAS_XRCETH = 1 << 2,
	WIRE_HAS_RETH = 1 << 3,
	WIRE_HAS_ATOMIC_ETH = 1 << 4,
	WIRE_HAS_AETH = 1 << 5,
	WIRE_HAS_ATOMIC_ACK = 1 << 6,
	WIRE_HAS_IMM = 1 << 7,
	WIRE_HAS_IETH = 1 << 8,
	WIRE_HAS_PAYLOAD = 1 << 9,
	/* --- position in a message --- */
	WIRE_IS_FIRST = 1 << 10, /* first or only */
	WIRE_IS_LAST = 1 << 11,  /* last or only */
	WIRE_IS_RESPONSE = 1 << 12,
	/* --- the operation --- */
	WIRE_IS_SEND = 1 << 13,
	WIRE_IS_WRITE = 1 << 14,
	WIRE_IS_READ = 1 << 15, /* request or response; a FLUSH has a FETH, and a READ's
				   response without data */
	WIRE_IS_ATOMIC = 1 << 16, /* request or response; an ATOMIC WRITE has a RETH and
				     a payload, and a READ's response without data */
	/* --- a header again: behind WIRE_HAS_XRCETH in wire order --- */
	WIRE_HAS_FETH = 1 << 17,
};

struct wire_opcode_info {
	const char *name; /* NULL: no such opcode */
	uint32_t flags;   /* enum wire_opcode_flags */
	uint8_t ext_bytes; /* length of the headers after the BTH */
};

/** wire_opcodes - indexed by wire_bth.opcode */
extern const struct wire_opcode_info wire_opcodes[256];
/** wire_takes_receive() - does a packet whose opcode has @flags need a receive of its own? The first
 *  packet of a SEND does, and the last one of an RDMA WRITE with immediate data (9.7.5.2.8) */
static inline bool wire_takes_receive(uint32_t flags)
{
	return (flags & WIRE_IS_SEND && flags & WIRE_IS_FIRST) ||
	       (flags & WIRE_IS_WRITE && flags & WIRE_HAS_IMM);
}

/** struct wire_packet - the headers of a packet, and a pointer to its payload */
struct wire_packet {
	struct wire_lrh lrh;
	struct wire_grh grh; /* valid when lrh.lnh == WIRE_LNH_GRH */
	struct wire_bth bth;
	struct wire_deth deth;
	struct wire_feth feth;
	struct wire_reth reth;
	struct wire_atomic_eth atomic;
	struct wire_aeth aeth;
	uint64_t atomic_ack; /* original remote data */
	uint32_t imm;	/* host order */
	uint32_t ieth_rkey;
	uint32_t xrc_srqn;
	uint32_t rd_ee_context;
	const uint8_t *payload; /* into the decoded buffer; pad excluded */
	uint32_t payload_bytes;
	/** The number of packets that this one represents: 1 on every wire, more for a
	 *  segment, whose payload is that of several consecutive packets. The opcode of a
	 *  segment combines the position of its first and its last packet. */
	uint16_t packets;
	bool ip_checked; /* its IP checksums are known to be right; never on a wire */
};

/**
 * wire_segment_dwords() - the sum of LRH:PktLen of the packets that segment @pkt
 * represents; it reads lrh.lnh and bth.opcode
 */
uint32_t wire_segment_dwords(const struct wire_packet *pkt);

/** wire_ext_decode(), wire_ext_encode() - the extended headers after the BTH, selected by
 *  @flags (enum wire_opcode_flags). Return: their length in bytes */
size_t wire_ext_decode(const void *buf, uint32_t flags, struct wire_packet *pkt);
size_t wire_ext_encode(const struct wire_packet *pkt, uint32_t flags, void *buf);

/**
 * wire_packet_decode() - parse LRH to payload of a packet without CRCs
 * @buf: the packet from LRH to the last pad byte; @len bytes
 * @pkt: filled on success; pkt->payload points into @buf
 *
 * LRH.length counts the ICRC although @buf does not carry it: @len must be
 * exactly (length_dwords - 1) * 4. A jumbo frame (frame.h) is longer than LRH.length can say: that has
 * the low bits, and length_dwords is the true length.
 * Return: bytes of headers (LRH to the last extended header); -EINVAL when
 * a length, version or opcode is wrong or raw (LNH 0, 1).
 * Spec: IBA v1 5.2, 7.7, 9.2
 */
int wire_packet_decode(const void *buf, size_t len, struct wire_packet *pkt);

/**
 * wire_packet_encode() - write LRH to the last extended header
 * @pkt: headers; lrh.length_dwords, grh.payload_bytes and bth.pad_bytes are
 *       computed here from payload_bytes and written back
 * @buf: room for WIRE_HEADERS_MAX bytes
 *
 * The caller appends payload_bytes of payload and bth.pad_bytes of zeros.
 * Return: bytes of headers; -EINVAL for an unknown opcode.
 */
int wire_packet_encode(struct wire_packet *pkt, void *buf);

/** wire_lrh_decode() - only the LRH, for switches. Return: 8; -EINVAL */
int wire_lrh_decode(const void *buf, size_t len, struct wire_lrh *lrh);
/** wire_lrh_encode() - Return: 8 */
int wire_lrh_encode(const struct wire_lrh *lrh, void *buf);
/**
 * wire_lrh_mark_rnr() - tell a packet's responder to act as if no receive were posted
 * @mark: WIRE_RNR_OWN for its own timer, or WIRE_RNR_TIMER | the timer's encoding
 * The mark is stored in reserved bits of the LRH, between softibd and the engine
 * only. The engine sends the RNR NAK if the PSN is the expected one, which only the
 * engine knows.
 */
void wire_lrh_mark_rnr(void *buf, uint8_t mark);
enum wire_rnr_mark { WIRE_RNR_OWN = 0x40, WIRE_RNR_TIMER = 0x80 };
#define WIRE_RNR_TIMER_MASK 0x1f
/** wire_grh_decode() - only the GRH, without any check. Return: 40 */
int wire_grh_decode(const void *buf, struct wire_grh *grh);
/** wire_grh_encode() - only the GRH, as datagram receivers see it. Return: 40 */
int wire_grh_encode(const struct wire_grh *grh, void *buf);

/** wire_icrc() - invariant CRC (7.8.1) of LRH..pad at @buf, the four bytes on the wire as a
 *  number in host order; fields that switches or routers may change are masked */
uint32_t wire_icrc(const void *buf, size_t len);
/** wire_fcs() - frame check sequence of an Ethernet frame (IEEE 802.3 clause 3.2.9), as a
 *  big-endian number */
uint32_t wire_fcs(const void *frame, size_t len);
/** wire_vcrc() - variant CRC (7.8.2) of LRH..ICRC at @buf */
uint16_t wire_vcrc(const void *buf, size_t len);

#endif
