/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as a packet from the LRH on: refused, or encoded again to headers
 * that decode to the same.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decode what was encoded: it must be what was decoded first */
static void encode_and_decode(struct wire_packet *p, const uint8_t *data, size_t size,
			      int headers)
{
	struct wire_packet again;
	uint8_t *buf = calloc(1, WIRE_HEADERS_MAX + size);

	if (!buf)
		abort();
	memset(&again, 0, sizeof(again));
	if (wire_packet_encode(p, buf) != headers)
		abort();
	memcpy(buf + headers, data + headers, size - (size_t)headers);
	if (wire_packet_decode(buf, size, &again) != headers)
		abort();
	if (p->payload != data + headers || p->payload_bytes > size - (size_t)headers)
		abort();
	again.payload = p->payload = NULL;
	if (memcmp(&again.bth, &p->bth, sizeof(p->bth)) || again.imm != p->imm ||
	    again.reth.va != p->reth.va || again.atomic.compare != p->atomic.compare ||
	    again.payload_bytes != p->payload_bytes || again.aeth.msn != p->aeth.msn)
		abort();
	free(buf);
}

/* the LRH alone, as switches read it: the same, and all bits but the reserved */
static void lrh_alone(const uint8_t *data, size_t size, const struct wire_packet *p)
{
	uint8_t again[WIRE_LRH_BYTES];
	struct wire_lrh lrh;

	memset(&lrh, 0, sizeof(lrh));
	if (wire_lrh_decode(data, size, &lrh) != WIRE_LRH_BYTES ||
	    wire_lrh_encode(&lrh, again) != WIRE_LRH_BYTES || lrh.dlid != p->lrh.dlid ||
	    lrh.slid != p->lrh.slid || lrh.sl != p->lrh.sl || lrh.vl != p->lrh.vl ||
	    lrh.lnh != p->lrh.lnh || memcmp(again + 2, data + 2, 2) || memcmp(again + 6, data + 6, 2))
		abort();
}

/* the GRH alone, as receivers of datagrams see it */
static void grh_alone(const uint8_t *data)
{
	uint8_t again[WIRE_GRH_BYTES];
	struct wire_grh grh;

	wire_grh_decode(data, &grh);
	wire_grh_encode(&grh, again);
	/* but for what is always the same: IPVer, NxtHdr */
	if (memcmp(again + 1, data + 1, 5) || memcmp(again + 7, data + 7, sizeof(again) - 7))
		abort();
}

/* the extended headers alone, as a record of a lane has them: of the opcode that the first
 * byte is, and encoded again to as many bytes that decode to the same */
static void ext_alone(const uint8_t *data, size_t size)
{
	const struct wire_opcode_info *op = &wire_opcodes[data[0]];
	uint8_t buf[WIRE_HEADERS_MAX], second[WIRE_HEADERS_MAX];
	struct wire_packet p, again;

	if (size < op->ext_bytes)
		return;
	memset(&p, 0, sizeof(p));
	memset(&again, 0, sizeof(again));
	if (wire_ext_decode(data, op->flags, &p) != op->ext_bytes ||
	    wire_ext_encode(&p, op->flags, buf) != op->ext_bytes ||
	    wire_ext_decode(buf, op->flags, &again) != op->ext_bytes ||
	    wire_ext_encode(&again, op->flags, second) != op->ext_bytes ||
	    memcmp(buf, second, op->ext_bytes))
		abort();
}

static void as_packet(const uint8_t *data, size_t size)
{
	struct wire_packet p;
	int n;

	memset(&p, 0, sizeof(p));
	n = wire_packet_decode(data, size, &p);
	if (n > 0)
		lrh_alone(data, size, &p);
	if (size >= WIRE_GRH_BYTES)
		grh_alone(data);
	if (size)
		ext_alone(data, size);
	/* the encoder pads to the next word; a packet may carry more, never less */
	if (n > 0 && p.bth.pad_bytes == (-p.payload_bytes & 3))
		encode_and_decode(&p, data, size, n);
	wire_icrc(data, size);
	wire_vcrc(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_packet(data, size);
	if (size >= WIRE_ICRC_BYTES) /* the vectors end with one */
		as_packet(data, size - WIRE_ICRC_BYTES);
	return 0;
}
