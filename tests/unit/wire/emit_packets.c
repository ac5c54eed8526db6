/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * emit_packets FILE - write one capture of every kind of packet and MAD that
 * the wire layer can encode, and on standard output, a line of JSON each, what
 * a reader of the capture must find. tests/interop/test_wire.py shows the
 * capture to tshark.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs.h"
#include "base/bytes.h"
#include "wire/erf.h"
#include "wire/packet.h"
#include "wire/sa.h"

static FILE *pcap;
static uint64_t now_ns = 1700000000ull * NSEC_PER_SEC;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put(const void *buf, size_t len)
{
	if (fwrite(buf, 1, len, pcap) != len)
		die("write");
}

/* Add CRCs to LRH..pad at @buf and write the record */
static void put_packet(uint8_t *buf, size_t len)
{
	uint8_t head[WIRE_PCAP_RECORD_BYTES + WIRE_ERF_BYTES];

	put_be32(buf + len, wire_icrc(buf, len));
	len += WIRE_ICRC_BYTES;
	put_be16(buf + len, wire_vcrc(buf, len));
	len += WIRE_VCRC_BYTES;
	now_ns += NSEC_PER_USEC;
	wire_pcap_record_encode(now_ns, (uint32_t)(WIRE_ERF_BYTES + len), head);
	wire_erf_encode(now_ns, 0, len, len, head + WIRE_PCAP_RECORD_BYTES);
	put(head, sizeof(head));
	put(buf, len);
}

static void print_gid(const char *name, const union wire_gid *gid)
{
	printf(", \"%s\": \"", name);
	for (int i = 0; i < 16; i++)
		printf("%02x", gid->raw[i]);
	printf("\"");
}

static void print_number(const char *name, uint64_t value)
{
	printf(", \"infiniband.%s\": %" PRIu64, name, value);
}

/* What tshark must say of the headers, under its names */
static void print_headers(const struct wire_packet *p)
{
	uint32_t flags = wire_opcodes[p->bth.opcode].flags;

	print_number("lrh.vl", p->lrh.vl);
	print_number("lrh.sl", p->lrh.sl);
	print_number("lrh.dlid", p->lrh.dlid);
	print_number("lrh.slid", p->lrh.slid);
	print_number("lrh.pktlen", p->lrh.length_dwords);
	if (p->lrh.lnh == WIRE_LNH_GRH) {
		print_number("grh.tclass", p->grh.traffic_class);
		print_number("grh.flowlabel", p->grh.flow_label);
		print_number("grh.paylen", p->grh.payload_bytes);
		print_number("grh.hoplmt", p->grh.hop_limit);
		print_gid("infiniband.grh.sgid", &p->grh.sgid);
		print_gid("infiniband.grh.dgid", &p->grh.dgid);
	}
	print_number("bth.opcode", p->bth.opcode);
	print_number("bth.se", p->bth.solicited);
	print_number("bth.m", p->bth.mig_req);
	print_number("bth.padcnt", p->bth.pad_bytes);
	print_number("bth.p_key", p->bth.pkey);
	print_number("bth.destqp", p->bth.dest_qpn);
	print_number("bth.a", p->bth.ack_req);
	print_number("bth.psn", p->bth.psn.v);
	if (flags & WIRE_HAS_RDETH)
		print_number("rdeth.eecnxt", p->rd_ee_context);
	if (flags & WIRE_HAS_DETH) {
		print_number("deth.q_key", p->deth.qkey);
		print_number("deth.srcqp", p->deth.src_qpn);
	}
	if (flags & WIRE_HAS_FETH) {
		print_number("feth.plt", p->feth.placement);
		print_number("feth.sel", p->feth.selectivity);
	}
	if (flags & WIRE_HAS_RETH) {
		print_number("reth.va", p->reth.va);
		print_number("reth.r_key", p->reth.rkey);
		print_number("reth.dmalen", p->reth.length_bytes);
	}
	if (flags & WIRE_HAS_ATOMIC_ETH) {
		print_number("reth.va", p->atomic.va);
		print_number("reth.r_key", p->atomic.rkey);
		print_number("atomiceth.swapdt", p->atomic.swap_add);
		print_number("atomiceth.cmpdt", p->atomic.compare);
	}
	if (flags & WIRE_HAS_AETH) {
		print_number("aeth.syndrome", p->aeth.syndrome);
		print_number("aeth.msn", p->aeth.msn);
	}
	if (flags & WIRE_HAS_ATOMIC_ACK)
		print_number("atomicacketh.origremdt", p->atomic_ack);
	if (flags & WIRE_HAS_IMM)
		print_number("immdt", p->imm);
	if (flags & WIRE_HAS_IETH)
		print_number("ieth", p->ieth_rkey);
}

/* Encode @p with @payload, write it, and start its line of JSON */
static void emit(struct wire_packet *p, const void *payload, const char *kind,
		 const char *name)
{
	uint8_t buf[WIRE_PACKET_MAX];
	int n = wire_packet_encode(p, buf);
	size_t len;

	if (n < 0) {
		fprintf(stderr, "emit_packets: %s does not encode\n", name);
		exit(1);
	}
	memcpy(buf + n, payload, p->payload_bytes);
	memset(buf + n + p->payload_bytes, 0, p->bth.pad_bytes);
	len = (size_t)n + p->payload_bytes + p->bth.pad_bytes;
	put_packet(buf, len);
	printf("{\"kind\": \"%s\", \"name\": \"%s\", \"header_bytes\": %d", kind, name,
	       n);
	print_headers(p);
}

static void emit_opcode(uint8_t opcode, bool grh, uint32_t payload_bytes)
{
	struct wire_packet p;
	uint8_t payload[64];

	/* bytes that no upper-level protocol begins with */
	memset(payload, 0xdb, sizeof(payload));
	codecs_random(opcode * 8u + payload_bytes, &p, sizeof(p));
	p.lrh.vl = opcode & 7;
	p.lrh.sl = opcode >> 2 & 15;
	p.lrh.lver = 0;
	p.lrh.lnh = grh ? WIRE_LNH_GRH : WIRE_LNH_BTH;
	p.lrh.dlid = (uint16_t)(p.lrh.dlid % 0xbfff + 1);
	p.lrh.slid = (uint16_t)(p.lrh.slid % 0xbfff + 1);
	p.grh.flow_label &= 0xfffff;
	p.bth = (struct wire_bth){.opcode = opcode,
				  .solicited = payload_bytes & 1,
				  .mig_req = true,
				  .pkey = 0xffff,
				  .fecn = false,
				  .dest_qpn = 0x1234 + opcode,
				  .ack_req = opcode & 1,
				  .psn = psn(p.bth.psn.v)};
	p.deth.src_qpn &= 0xffffff;
	p.aeth.syndrome = 0x1f;
	p.aeth.msn &= 0xffffff;
	p.xrc_srqn &= 0xffffff;
	p.rd_ee_context &= 0xffffff;
	p.payload_bytes =
	    wire_opcodes[opcode].flags & WIRE_HAS_PAYLOAD ? payload_bytes : 0;
	emit(&p, payload, "packet", wire_opcodes[opcode].name);
	printf("}\n");
}

static void print_member(void *ctx, const struct wire_field *f, unsigned int index,
			 uint64_t value)
{
	printf("%s[\"%s\", %u, %" PRIu64 "]", *(const char **)ctx, f->name, index, value);
	*(const char **)ctx = ", ";
}

static void print_struct(const char *name, const struct wire_codec *codec,
			 const void *obj)
{
	const char *comma = "";

	printf(", \"%s\": [", name);
	wire_fields_visit(codec, obj, print_member, &comma);
	printf("]");
}

static void emit_mad(const struct wire_mgmt_class *cls, const struct wire_attr *attr,
		     uint8_t method)
{
	struct wire_packet p = {
	    .lrh = {.lnh = WIRE_LNH_BTH, .dlid = 1,	    .slid = 2},
	    .bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY,			.pkey = 0xffff, .dest_qpn = 1},
	    .deth = {.qkey = WIRE_QKEY_GSI,	    .src_qpn = 1			},
	    .payload_bytes = WIRE_MAD_BYTES,
	};
	uint8_t mad[WIRE_MAD_BYTES] = {0}, bits[CODEC_BYTES_MAX];
	uint64_t header[CODEC_BYTES_MAX / 8], obj[CODEC_BYTES_MAX / 8];

	if (cls->header == &wire_smp_lid_codec || cls->header == &wire_smp_direct_codec) {
		p.lrh.vl = WIRE_VL_MANAGEMENT;
		p.bth.dest_qpn = p.deth.src_qpn = p.deth.qkey = 0;
	}
	codecs_random(attr->id * 256u + cls->first, bits, sizeof(bits));
	bits[0] = WIRE_MAD_BASE_VERSION;
	bits[1] = cls->first;
	bits[2] = cls->version;
	bits[3] = method;
	put_be16(bits + 16, attr->id);
	if (cls->header == &wire_sa_codec) /* RMPP: not active */
		memset(bits + WIRE_RMPP_OFFSET, 0, WIRE_RMPP_BYTES);
	wire_fields_decode(cls->header, bits, sizeof(bits), header);
	wire_fields_encode(cls->header, header, mad);
	codecs_random(attr->id * 256u + cls->first + 128, bits, sizeof(bits));
	wire_fields_decode(attr->codec, bits, sizeof(bits), obj);
	if (attr->codec == &wire_multipath_record_codec) {
		/* as many GIDs as follow the record's header */
		struct wire_multipath_record *mp = (void *)obj;

		mp->sgid_count = 1;
		mp->dgid_count = 2;
	}
	wire_fields_encode(attr->codec, obj, mad + cls->data_offset);
	emit(&p, mad, "mad", attr->codec->name);
	printf(", \"class\": \"%s\"", cls->name);
	print_struct("header", cls->header, header);
	print_struct("attr", attr->codec, obj);
	printf("}\n");
}

int main(int argc, char **argv)
{
	uint8_t head[WIRE_PCAP_FILE_BYTES];

	if (argc != 2) {
		fprintf(stderr, "usage: emit_packets FILE\n");
		return 2;
	}
	pcap = fopen(argv[1], "wb");
	if (!pcap)
		die(argv[1]);
	wire_pcap_file_encode(WIRE_LINKTYPE_ERF, 65535, head);
	put(head, sizeof(head));
	for (unsigned int op = 0; op < 256; op++)
		for (uint32_t size = 1; wire_opcodes[op].name && size <= 4; size++)
			emit_opcode((uint8_t)op, size & 1, size * 13);
	for (unsigned int c = 0; c < wire_nr_classes; c++)
		for (const struct wire_attr *a = wire_classes[c].attrs; a && a->codec;
		     a++)
			emit_mad(&wire_classes[c], a,
				 wire_classes[c].first == WIRE_CLASS_CM
				     ? WIRE_METHOD_SEND
				     : WIRE_METHOD_GET_RESP);
	if (fclose(pcap))
		die(argv[1]);
	return 0;
}
