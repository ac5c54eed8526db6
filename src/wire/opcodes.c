/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The opcode table (IBA v1 9.2.1, table of BTH opcodes): the headers that follow
 * the BTH, and the position of the packet in its message. A transport service
 * differs from RC only in the additional headers of requests and responses.
 */
#include "wire/packet.h"

/* Position in the message */
#define FIRST WIRE_IS_FIRST
#define MIDDLE 0
#define LAST WIRE_IS_LAST
#define ONLY (WIRE_IS_FIRST | WIRE_IS_LAST)

/* Operations, as RC has them */
#define SEND (WIRE_IS_SEND | WIRE_HAS_PAYLOAD)
#define WRITE (WIRE_IS_WRITE | WIRE_HAS_PAYLOAD)
#define READ_RESPONSE (WIRE_IS_READ | WIRE_IS_RESPONSE | WIRE_HAS_PAYLOAD)
#define ATOMIC (WIRE_IS_ATOMIC | WIRE_HAS_ATOMIC_ETH)

#define EXT_BYTES(flags)                                                                 \
	(((flags) & WIRE_HAS_RDETH ? WIRE_RDETH_BYTES : 0) +                             \
	 ((flags) & WIRE_HAS_DETH ? WIRE_DETH_BYTES : 0) +                               \
	 ((flags) & WIRE_HAS_XRCETH ? WIRE_XRCETH_BYTES : 0) +                           \
	 ((flags) & WIRE_HAS_FETH ? WIRE_FETH_BYTES : 0) +                               \
	 ((flags) & WIRE_HAS_RETH ? WIRE_RETH_BYTES : 0) +                               \
	 ((flags) & WIRE_HAS_ATOMIC_ETH ? WIRE_ATOMIC_ETH_BYTES : 0) +                   \
	 ((flags) & WIRE_HAS_AETH ? WIRE_AETH_BYTES : 0) +                               \
	 ((flags) & WIRE_HAS_ATOMIC_ACK ? WIRE_ATOMIC_ACK_BYTES : 0) +                   \
	 ((flags) & WIRE_HAS_IMM ? WIRE_IMM_BYTES : 0) +                                 \
	 ((flags) & WIRE_HAS_IETH ? WIRE_IETH_BYTES : 0))

#define OP(opcode, text, bits) [opcode] = {text, (bits), EXT_BYTES(bits)}

/* @t: transport bits; @name; @req, @resp: flags added to requests and responses */
#define SENDS(t, name, req)                                                              \
	OP(t | WIRE_SEND_FIRST, name " SEND First", SEND | FIRST | (req)),               \
	OP(t | WIRE_SEND_MIDDLE, name " SEND Middle", SEND | MIDDLE | (req)),            \
	OP(t | WIRE_SEND_LAST, name " SEND Last", SEND | LAST | (req)),                  \
	OP(t | WIRE_SEND_LAST_IMM, name " SEND Last with Immediate",                     \
	   SEND | LAST | WIRE_HAS_IMM | (req))

#define SEND_ONLYS(t, name, req)                                                         \
	OP(t | WIRE_SEND_ONLY, name " SEND Only", SEND | ONLY | (req)),                  \
	OP(t | WIRE_SEND_ONLY_IMM, name " SEND Only with Immediate",                     \
	   SEND | ONLY | WIRE_HAS_IMM | (req))

#define WRITES(t, name, req)                                                             \
	OP(t | WIRE_WRITE_FIRST, name " RDMA WRITE First",                               \
	   WRITE | FIRST | WIRE_HAS_RETH | (req)),                                       \
	OP(t | WIRE_WRITE_MIDDLE, name " RDMA WRITE Middle", WRITE | MIDDLE | (req)),    \
	OP(t | WIRE_WRITE_LAST, name " RDMA WRITE Last", WRITE | LAST | (req)),          \
	OP(t | WIRE_WRITE_LAST_IMM, name " RDMA WRITE Last with Immediate",              \
	   WRITE | LAST | WIRE_HAS_IMM | (req)),                                         \
	OP(t | WIRE_WRITE_ONLY, name " RDMA WRITE Only",                                 \
	   WRITE | ONLY | WIRE_HAS_RETH | (req)),                                        \
	OP(t | WIRE_WRITE_ONLY_IMM, name " RDMA WRITE Only with Immediate",              \
	   WRITE | ONLY | WIRE_HAS_RETH | WIRE_HAS_IMM | (req))

#define READS(t, name, req, resp)                                                        \
	OP(t | WIRE_READ_REQUEST, name " RDMA READ Request",                             \
	   WIRE_IS_READ | ONLY | WIRE_HAS_RETH | (req)),                                 \
	OP(t | WIRE_READ_RESP_FIRST, name " RDMA READ Response First",                   \
	   READ_RESPONSE | FIRST | WIRE_HAS_AETH | (resp)),                              \
	OP(t | WIRE_READ_RESP_MIDDLE, name " RDMA READ Response Middle",                 \
	   READ_RESPONSE | MIDDLE | (resp)),                                             \
	OP(t | WIRE_READ_RESP_LAST, name " RDMA READ Response Last",                     \
	   READ_RESPONSE | LAST | WIRE_HAS_AETH | (resp)),                               \
	OP(t | WIRE_READ_RESP_ONLY, name " RDMA READ Response Only",                     \
	   READ_RESPONSE | ONLY | WIRE_HAS_AETH | (resp))

#define ACKS_AND_ATOMICS(t, name, req, resp)                                             \
	OP(t | WIRE_ACKNOWLEDGE, name " Acknowledge",                                    \
	   WIRE_IS_RESPONSE | ONLY | WIRE_HAS_AETH | (resp)),                            \
	OP(t | WIRE_ATOMIC_ACK, name " ATOMIC Acknowledge",                              \
	   WIRE_IS_ATOMIC | WIRE_IS_RESPONSE | ONLY | WIRE_HAS_AETH |                    \
	   WIRE_HAS_ATOMIC_ACK | (resp)),                                                \
	OP(t | WIRE_CMP_SWAP, name " CmpSwap", ATOMIC | ONLY | (req)),                   \
	OP(t | WIRE_FETCH_ADD, name " FetchAdd", ATOMIC | ONLY | (req))

#define INVALIDATES(t, name, req)                                                        \
	OP(t | WIRE_SEND_LAST_INV, name " SEND Last with Invalidate",                    \
	   SEND | LAST | WIRE_HAS_IETH | (req)),                                         \
	OP(t | WIRE_SEND_ONLY_INV, name " SEND Only with Invalidate",                    \
	   SEND | ONLY | WIRE_HAS_IETH | (req))

#define FLUSH(t, name, req)                                                              \
	OP(t | WIRE_FLUSH, name " FLUSH",                                                \
	   WIRE_IS_READ | ONLY | WIRE_HAS_FETH | WIRE_HAS_RETH | (req))

#define ATOMIC_WRITE(t, name, req)                                                       \
	OP(t | WIRE_ATOMIC_WRITE, name " ATOMIC WRITE",                                  \
	   WIRE_IS_ATOMIC | WIRE_HAS_PAYLOAD | ONLY | WIRE_HAS_RETH | (req))

#define RD_REQUEST (WIRE_HAS_RDETH | WIRE_HAS_DETH)
#define RD_RESPONSE WIRE_HAS_RDETH
#define WIRE_CNP_NOTIFICATION 0x81 /* A10: the only opcode of its range */

const struct wire_opcode_info wire_opcodes[256] = {
	SENDS(WIRE_RC, "RC", 0),
	SEND_ONLYS(WIRE_RC, "RC", 0),
	WRITES(WIRE_RC, "RC", 0),
	READS(WIRE_RC, "RC", 0, 0),
	ACKS_AND_ATOMICS(WIRE_RC, "RC", 0, 0),
	INVALIDATES(WIRE_RC, "RC", 0),
	FLUSH(WIRE_RC, "RC", 0),
	ATOMIC_WRITE(WIRE_RC, "RC", 0),

	SENDS(WIRE_UC, "UC", 0),
	SEND_ONLYS(WIRE_UC, "UC", 0),
	WRITES(WIRE_UC, "UC", 0),

	SENDS(WIRE_RD, "RD", RD_REQUEST),
	SEND_ONLYS(WIRE_RD, "RD", RD_REQUEST),
	WRITES(WIRE_RD, "RD", RD_REQUEST),
	READS(WIRE_RD, "RD", RD_REQUEST, RD_RESPONSE),
	ACKS_AND_ATOMICS(WIRE_RD, "RD", RD_REQUEST, RD_RESPONSE),
	OP(WIRE_RD | WIRE_RESYNC, "RD RESYNC", ONLY | RD_REQUEST),

	SEND_ONLYS(WIRE_UD, "UD", WIRE_HAS_DETH),

	OP(WIRE_CNP_NOTIFICATION, "CNP", WIRE_HAS_PAYLOAD | ONLY),

	SENDS(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
	SEND_ONLYS(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
	WRITES(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
	READS(WIRE_XRC, "XRC", WIRE_HAS_XRCETH, 0),
	ACKS_AND_ATOMICS(WIRE_XRC, "XRC", WIRE_HAS_XRCETH, 0),
	INVALIDATES(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
	FLUSH(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
	ATOMIC_WRITE(WIRE_XRC, "XRC", WIRE_HAS_XRCETH),
};
