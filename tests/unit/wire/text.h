/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets and MADs as text, a field a line, for the vectors beside their hex. */
#ifndef SOFTIB_TEST_WIRE_TEXT_H
#define SOFTIB_TEST_WIRE_TEXT_H

#include <inttypes.h>
#include <stdio.h>

#include "codecs.h"
#include "wire/packet.h"

/* One line per member; an array's elements share a line. Zero is not shown. */
struct text_line {
	FILE *out;
	const struct wire_field *field;
	bool all_zero;
	unsigned int elements;
	uint64_t value[WIRE_MAD_BYTES];
};

static inline void text_flush(struct text_line *line)
{
	bool bytes = line->field && line->elements > 1 && line->field->width == 8;

	if (line->field && !line->all_zero) {
		fprintf(line->out, "  %s =", line->field->name);
		for (unsigned int i = 0; i < line->elements; i++)
			fprintf(line->out, bytes ? "%s%02" PRIx64 : " %s%#" PRIx64,
				bytes && i == 0 ? " " : "", line->value[i]);
		fprintf(line->out, "\n");
	}
	line->field = NULL;
}

static inline void text_member(void *ctx, const struct wire_field *f, unsigned int index,
			       uint64_t value)
{
	struct text_line *line = ctx;

	if (index == 0) {
		text_flush(line);
		*line =
		    (struct text_line){.out = line->out, .field = f, .all_zero = true};
	}
	line->value[line->elements++] = value;
	line->all_zero &= value == 0;
}

static inline void text_struct(FILE *out, const struct wire_codec *codec, const void *obj)
{
	struct text_line line = {.out = out};

	fprintf(out, "%s\n", codec->name);
	wire_fields_visit(codec, obj, text_member, &line);
	text_flush(&line);
}

static inline void text_gid(FILE *out, const char *name, const union wire_gid *gid)
{
	fprintf(out, "  %s = ", name);
	for (int i = 0; i < 16; i++)
		fprintf(out, "%02x%s", gid->raw[i], i % 2 && i < 15 ? ":" : "");
	fprintf(out, "\n");
}

/** text_packet() - everything from the BTH on; with @lrh, LRH and GRH too */
static inline void text_packet(FILE *out, const struct wire_packet *p, bool lrh)
{
	uint32_t flags = wire_opcodes[p->bth.opcode].flags;

	if (lrh)
		fprintf(out, "LRH\n  vl = %u\n  sl = %u\n  dlid = %u\n  slid = %u\n",
			p->lrh.vl, p->lrh.sl, p->lrh.dlid, p->lrh.slid);
	if (lrh && p->lrh.lnh == WIRE_LNH_GRH) {
		fprintf(
		    out,
		    "GRH\n  traffic class = %u\n  flow label = %#x\n  hop limit = %u\n",
		    p->grh.traffic_class, p->grh.flow_label, p->grh.hop_limit);
		text_gid(out, "sgid", &p->grh.sgid);
		text_gid(out, "dgid", &p->grh.dgid);
	}
	fprintf(out, "BTH\n  opcode = %s\n  pkey = %#x\n  dest qpn = %#x\n  psn = %#x\n",
		wire_opcodes[p->bth.opcode].name, p->bth.pkey, p->bth.dest_qpn,
		p->bth.psn.v);
	fprintf(out, "  flags =%s%s%s%s%s\n", p->bth.solicited ? " solicited" : "",
		p->bth.mig_req ? " migreq" : "", p->bth.ack_req ? " ackreq" : "",
		p->bth.fecn ? " fecn" : "", p->bth.becn ? " becn" : "");
	if (flags & WIRE_HAS_RDETH)
		fprintf(out, "RDETH\n  ee context = %#x\n", p->rd_ee_context);
	if (flags & WIRE_HAS_DETH)
		fprintf(out, "DETH\n  qkey = %#x\n  src qpn = %#x\n", p->deth.qkey,
			p->deth.src_qpn);
	if (flags & WIRE_HAS_XRCETH)
		fprintf(out, "XRCETH\n  srqn = %#x\n", p->xrc_srqn);
	if (flags & WIRE_HAS_FETH)
		fprintf(out, "FETH\n  placement = %#x\n  selectivity = %u\n", p->feth.placement,
			p->feth.selectivity);
	if (flags & WIRE_HAS_RETH)
		fprintf(out, "RETH\n  va = %#" PRIx64 "\n  rkey = %#x\n  length = %u\n",
			p->reth.va, p->reth.rkey, p->reth.length_bytes);
	if (flags & WIRE_HAS_ATOMIC_ETH)
		fprintf(out,
			"AtomicETH\n  va = %#" PRIx64
			"\n  rkey = %#x\n  swap or add = %#" PRIx64
			"\n  compare = %#" PRIx64 "\n",
			p->atomic.va, p->atomic.rkey, p->atomic.swap_add,
			p->atomic.compare);
	if (flags & WIRE_HAS_AETH)
		fprintf(out, "AETH\n  syndrome = %#x\n  msn = %#x\n", p->aeth.syndrome,
			p->aeth.msn);
	if (flags & WIRE_HAS_ATOMIC_ACK)
		fprintf(out, "AtomicAckETH\n  original = %#" PRIx64 "\n", p->atomic_ack);
	if (flags & WIRE_HAS_IMM)
		fprintf(out, "ImmDt\n  value = %#x\n", p->imm);
	if (flags & WIRE_HAS_IETH)
		fprintf(out, "IETH\n  rkey = %#x\n", p->ieth_rkey);
	fprintf(out, "payload %u bytes, pad %u\n", p->payload_bytes, p->bth.pad_bytes);
}

#endif
