/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decoding of packets for the fabric, and encoding of the agents' MADs. */
#include "fabric/fabric_private.h"

#include <errno.h>
#include <string.h>

int fab_packet_decode(struct fab_packet *pkt, const void *bytes, size_t len)
{
	struct wire_packet p;
	bool datagram;

	if (wire_packet_decode(bytes, len, &p) < 0)
		return -EINVAL;
	datagram = wire_opcodes[p.bth.opcode].flags & WIRE_HAS_DETH;
	*pkt = (struct fab_packet){
		.bytes = bytes,
		.len = len,
		.lrh = p.lrh,
		.pkey = p.bth.pkey,
		.opcode = p.bth.opcode,
		.dest_qpn = p.bth.dest_qpn,
		.src_qpn = datagram ? p.deth.src_qpn : 0,
		.qkey = datagram ? p.deth.qkey : 0,
		.payload_bytes = p.payload_bytes + p.bth.pad_bytes,
	};
	return 0;
}

struct wire_grh fab_packet_grh(const struct fab_packet *pkt)
{
	struct wire_grh grh;

	wire_grh_decode(pkt->bytes + WIRE_LRH_BYTES, &grh);
	return grh;
}

size_t fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
		      uint8_t *buf)
{
	struct wire_packet p = {
		.lrh = {.vl = job->qpn == 0 ? WIRE_VL_MANAGEMENT : 0, .sl = job->sl,
			.lnh = WIRE_LNH_BTH, .dlid = dlid, .slid = slid},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = job->pkey,
			.dest_qpn = job->src_qpn, .psn = psn},
		.deth = {.qkey = job->qpn == 0 ? 0 : WIRE_QKEY_GSI, .src_qpn = job->qpn},
		.payload_bytes = WIRE_MAD_BYTES,
	};
	int n = wire_packet_encode(&p, buf);

	memcpy(buf + n, job->mad, WIRE_MAD_BYTES);
	return (size_t)n + WIRE_MAD_BYTES;
}
