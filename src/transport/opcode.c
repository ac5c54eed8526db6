/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The transport's tables: send operations and their packets, and the
 * encodings of time-outs, RNR delays and credits.
 */
#include "transport/qp.h"

#define RC (1 << TP_RC)
#define RC_UC (RC | 1 << TP_UC)
#define RC_XRC (RC | 1 << TP_XRC)
#define CONNECTED (RC_UC | 1 << TP_XRC)
#define RELIABLE (RC_XRC | 1 << TP_RD | 1 << TP_EE)
#define RDMA (RELIABLE | 1 << TP_UC)
#define ANY (RDMA | 1 << TP_UD)

const struct tp_kind tp_kinds[] = {
	[TP_RC] = {WIRE_RC, TP_ACKNOWLEDGED | TP_CONNECTED | TP_RDMA | TP_BY_WINDOW | TP_FAST},
	[TP_UC] = {WIRE_UC, TP_CONNECTED | TP_RDMA},
	[TP_UD] = {WIRE_UD, TP_DATAGRAM | TP_ADDRESSED | TP_FAST},
	[TP_XRC] = {WIRE_XRC, TP_ACKNOWLEDGED | TP_CONNECTED | TP_RDMA | TP_SRQ_NUMBER |
				      TP_FAST},
	[TP_RAW] = {WIRE_UD, TP_DATAGRAM | TP_ADDRESSED},
	[TP_RD] = {WIRE_RD, TP_ADDRESSED | TP_RDMA | TP_HELD},
	[TP_EE] = {WIRE_RD, TP_ACKNOWLEDGED | TP_CONNECTED | TP_ADDRESSED | TP_RDMA |
				    TP_EE_CONTEXT},
};

bool tp_type_may_use_windows(enum tp_type type)
{
	return tp_kinds[type].can & TP_BY_WINDOW;
}

/* Which operations a transport has: 9.2.1 table 35. */
const struct tp_op tp_ops_table[TP_OPS] = {
	[IBV_WR_SEND] = TP_OP_SEND,
	[IBV_WR_SEND_WITH_IMM] = {WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST_IMM,
				  WIRE_SEND_ONLY_IMM, ANY, TP_OP_RECEIVES},
	[IBV_WR_SEND_WITH_INV] = {WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST_INV,
				  WIRE_SEND_ONLY_INV, RC_XRC, TP_OP_RECEIVES},
	[IBV_WR_TSO] = {.only = WIRE_SEND_ONLY,
			.transport_mask = 1 << TP_UD,
			.flags = TP_OP_RECEIVES | TP_OP_CUT},
	[IBV_WR_RDMA_WRITE] = {WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST,
			       WIRE_WRITE_ONLY, RDMA, TP_OP_RETH},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE,
					WIRE_WRITE_LAST_IMM, WIRE_WRITE_ONLY_IMM, RDMA,
					TP_OP_RETH | TP_OP_RECEIVES},
	[IBV_WR_LOCAL_INV] = {.transport_mask = CONNECTED,
			      .flags = TP_OP_LOCAL},
	[IBV_WR_BIND_MW] = {.transport_mask = CONNECTED,
			    .flags = TP_OP_LOCAL},
	[TP_WR_REG_MR] = {.transport_mask = CONNECTED,
			  .flags = TP_OP_LOCAL},
	[IBV_WR_RDMA_READ] = {.only = WIRE_READ_REQUEST,
			      .transport_mask = RELIABLE,
			      .flags = TP_OP_READ | TP_OP_RETH},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.only = WIRE_CMP_SWAP,
				       .transport_mask = RELIABLE,
				       .flags = TP_OP_ATOMIC},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.only = WIRE_FETCH_ADD,
					 .transport_mask = RELIABLE,
					 .flags = TP_OP_ATOMIC},
	[TP_WR_FLUSH] = {.only = WIRE_FLUSH,
			 .transport_mask = RC_XRC,
			 .flags = TP_OP_FLUSH | TP_OP_RETH},
	[IBV_WR_ATOMIC_WRITE] = {.only = WIRE_ATOMIC_WRITE,
				 .transport_mask = RC_XRC,
				 .flags = TP_OP_ATOMIC_WRITE | TP_OP_RETH},
	[TP_WR_RESYNC] = {.only = WIRE_RESYNC, .transport_mask = 1 << TP_EE},
};

/* 9.7.7.2; the last code is WIRE_AETH_CREDIT_INVALID */
const uint16_t tp_credits[32] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,  32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 0,
};

/* 9.7.5.2.8, in units of 10 us */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,    8,	    12,	   16,	  24,	 32,
	48,    64,   96,   128,	 192,  256,  384,   512,   768,	  1024,	 1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t tp_rnr_ns(uint8_t rnr_enc)
{
	return rnr_10us[rnr_enc & WIRE_AETH_VALUE_MASK] * 10 * NSEC_PER_USEC;
}

uint64_t tp_timeout_ns(uint8_t timeout_enc)
{
	timeout_enc &= 31;
	return timeout_enc ? 4096ull << timeout_enc : UINT64_MAX;
}
