/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets: the opcode table, headers to bytes and back, CRCs. */
#include "../test.h"

#include <errno.h>

#include "codecs.h"
#include "wire/address.h"
#include "base/bytes.h"
#include "wire/erf.h"
#include "wire/inet.h"
#include "wire/pcapng.h"
#include "wire/packet.h"
#include "wire/roce.h"

#define SEEDS 20

/* A packet of @opcode whose every field is pseudo-random */
static void random_packet(uint8_t opcode, uint64_t seed, bool grh, struct wire_packet *p)
{
	codecs_random(seed, p, sizeof(*p));
	p->lrh.vl &= 15;
	p->lrh.sl &= 15;
	p->lrh.lver = 0;
	p->lrh.rnr_mark = 0;
	p->packets = 1;
	p->ip_checked = false;
	p->lrh.lnh = grh ? WIRE_LNH_GRH : WIRE_LNH_BTH;
	p->grh.ip_version = 6;
	p->grh.next_header = 0x1b;
	p->grh.flow_label &= 0xfffff;
	p->bth.opcode = opcode;
	p->bth.tver = 0;
	p->bth.solicited = seed & 1;
	p->bth.mig_req = seed >> 1 & 1;
	p->bth.fecn = seed >> 2 & 1;
	p->bth.becn = seed >> 3 & 1;
	p->bth.ack_req = seed >> 4 & 1;
	p->bth.dest_qpn &= 0xffffff;
	p->bth.psn = psn(p->bth.psn.v);
	p->deth.src_qpn &= 0xffffff;
	p->feth.placement &= WIRE_FETH_PLACEMENT_MASK;
	p->feth.selectivity &= WIRE_FETH_SELECTIVITY_MASK;
	p->aeth.msn &= 0xffffff;
	p->xrc_srqn &= 0xffffff;
	p->rd_ee_context &= 0xffffff;
	p->payload = NULL;
	p->payload_bytes = 0;
	if (wire_opcodes[opcode].flags & WIRE_HAS_PAYLOAD)
		p->payload_bytes = (uint32_t)(seed * 5 % 23);
}

/* Write @p with its payload. Return: bytes, LRH to the last pad byte */
static size_t write_packet(struct wire_packet *p, uint8_t *buf)
{
	int n = wire_packet_encode(p, buf);

	assert_in_range(n, WIRE_LRH_BYTES + WIRE_BTH_BYTES, WIRE_HEADERS_MAX);
	codecs_random(7, buf + n, p->payload_bytes);
	memset(buf + n + p->payload_bytes, 0, p->bth.pad_bytes);
	return (size_t)n + p->payload_bytes + p->bth.pad_bytes;
}

/* Opcodes of each service as 9.2.1 lists them */
static void opcode_table_is_complete(void **state)
{
	static const struct {
		uint8_t transport;
		uint32_t operations; /* bit per operation */
	} expected[] = {
	    {WIRE_RC,  0x30dfffff},
	    {WIRE_UC,  0x00000fff},
	    {WIRE_RD,  0x003fffff},
	    {WIRE_UD,  0x00000030},
	    {WIRE_CNP, 0x00000002},
	    {WIRE_XRC, 0x30dfffff},
	    {0xc0,	   0	    },
	    {0xe0,	   0	    },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(expected); i++)
		for (unsigned int op = 0; op < 32; op++)
			assert_int_equal(wire_opcodes[expected[i].transport | op].name !=
					     NULL,
					 expected[i].operations >> op & 1);
}

static void opcode_sizes(void **state)
{
	static const struct {
		uint8_t opcode, bytes;
	} cases[] = {
	    {WIRE_RC | WIRE_SEND_MIDDLE,	 0 },
		  {WIRE_RC | WIRE_SEND_ONLY_IMM,	 4 },
	    {WIRE_RC | WIRE_SEND_LAST_INV,	   4 },
		  {WIRE_RC | WIRE_WRITE_ONLY_IMM,	  20},
	    {WIRE_RC | WIRE_READ_REQUEST,	  16},
		  {WIRE_RC | WIRE_READ_RESP_MIDDLE, 0 },
	    {WIRE_RC | WIRE_ACKNOWLEDGE,	 4 },
		  {WIRE_RC | WIRE_ATOMIC_ACK,	      12},
	    {WIRE_RC | WIRE_ATOMIC_WRITE,	 16},
	    {WIRE_RC | WIRE_FLUSH,	 20},
	    {WIRE_RC | WIRE_CMP_SWAP,	      28},
		  {WIRE_RD | WIRE_CMP_SWAP,	    40},
	    {WIRE_RD | WIRE_ACKNOWLEDGE,	 8 },
		  {WIRE_UD | WIRE_SEND_ONLY_IMM,	 12},
	    {WIRE_XRC | WIRE_WRITE_ONLY_IMM,  24},
		  {WIRE_XRC | WIRE_READ_RESP_ONLY,  4 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(wire_opcodes[cases[i].opcode].ext_bytes, cases[i].bytes);
}

static void every_opcode_survives(void **state)
{
	uint8_t buf[WIRE_PACKET_MAX], again[WIRE_PACKET_MAX];
	struct wire_packet in, out;

	for (unsigned int op = 0; op < 256; op++) {
		for (uint64_t seed = 0; wire_opcodes[op].name && seed < SEEDS; seed++) {
			size_t len;
			int n;

			random_packet((uint8_t)op, seed, seed & 1, &in);
			len = write_packet(&in, buf);
			memcpy(&out, &in, sizeof(out));
			n = wire_packet_decode(buf, len, &out);
			assert_true(n > 0);
			assert_ptr_equal(out.payload, buf + n);
			out.payload = NULL;
			assert_memory_equal(&in, &out, sizeof(in));
			assert_int_equal(wire_packet_encode(&out, again), n);
			assert_memory_equal(buf, again, n);
		}
	}
}

/* the mark leaves what is beside it alone, and is gone when encoded anew */
static void the_rnr_mark(void **state)
{
	struct wire_lrh in = {.vl = 3, .sl = 15, .lnh = WIRE_LNH_GRH, .length_dwords = 0x7ff}, out;
	uint8_t buf[WIRE_LRH_BYTES];

	wire_lrh_encode(&in, buf);
	wire_lrh_mark_rnr(buf, WIRE_RNR_TIMER | 31);
	assert_int_equal(wire_lrh_decode(buf, sizeof(buf), &out), WIRE_LRH_BYTES);
	assert_int_equal(out.rnr_mark, WIRE_RNR_TIMER | 31);
	assert_int_equal(out.sl, 15);
	assert_int_equal(out.lnh, WIRE_LNH_GRH);
	assert_int_equal(out.length_dwords, 0x7ff);
	wire_lrh_encode(&out, buf);
	wire_lrh_decode(buf, sizeof(buf), &out);
	assert_int_equal(out.rnr_mark, 0);
	wire_lrh_mark_rnr(buf, WIRE_RNR_OWN);
	wire_lrh_decode(buf, sizeof(buf), &out);
	assert_int_equal(out.rnr_mark, WIRE_RNR_OWN);
}

/* A field that an opcode has not must not move when it is decoded; one that
 * it has must: fill with ones, decode a packet of zeros. */
static void only_its_own_headers_are_read(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		uint32_t flags = wire_opcodes[op].flags;
		uint8_t buf[128] = {(uint8_t)op};
		struct wire_packet p;

		if (!wire_opcodes[op].name)
			continue;
		memset(&p, 0xff, sizeof(p));
		assert_true(wire_bth_decode(buf,
					    WIRE_BTH_BYTES + wire_opcodes[op].ext_bytes,
					    &p) > 0);
		assert_int_equal(p.deth.qkey == 0, !!(flags & WIRE_HAS_DETH));
		assert_int_equal(p.feth.placement == 0, !!(flags & WIRE_HAS_FETH));
		assert_int_equal(p.reth.va == 0, !!(flags & WIRE_HAS_RETH));
		assert_int_equal(p.atomic.va == 0, !!(flags & WIRE_HAS_ATOMIC_ETH));
		assert_int_equal(p.aeth.msn == 0, !!(flags & WIRE_HAS_AETH));
		assert_int_equal(p.atomic_ack == 0, !!(flags & WIRE_HAS_ATOMIC_ACK));
		assert_int_equal(p.imm == 0, !!(flags & WIRE_HAS_IMM));
		assert_int_equal(p.ieth_rkey == 0, !!(flags & WIRE_HAS_IETH));
		assert_int_equal(p.xrc_srqn == 0, !!(flags & WIRE_HAS_XRCETH));
		assert_int_equal(p.rd_ee_context == 0, !!(flags & WIRE_HAS_RDETH));
	}
}

static void truncation_is_refused(void **state)
{
	uint8_t buf[WIRE_PACKET_MAX];
	struct wire_packet p, out;

	for (unsigned int op = 0; op < 256; op++) {
		size_t len;

		if (!wire_opcodes[op].name)
			continue;
		random_packet((uint8_t)op, 3, true, &p);
		len = write_packet(&p, buf);
		for (size_t cut = 0; cut < len; cut++)
			assert_int_equal(wire_packet_decode(buf, cut, &out), -EINVAL);
		/* ... also when the lengths inside agree with the cut */
		for (size_t cut = 0; cut + 4 <= 48 + WIRE_BTH_BYTES; cut += 4) {
			uint8_t lie[WIRE_PACKET_MAX];

			memcpy(lie, buf, len);
			lie[4] = 0;
			lie[5] = (uint8_t)(cut / 4 + 1);
			assert_int_equal(wire_packet_decode(lie, cut, &out), -EINVAL);
		}
	}
}

/* Change one byte of a good packet at a time */
static void bad_fields_are_refused(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t mask, value;
		const char *what;
	} cases[] = {
	    {0,	0x0f, 0x01, "LVer"	  },
		  {1,  0x03, 0x00, "LNH: raw" },
	    {1,	0x03, 0x01, "LNH: IPv6"},
		  {5,  0xff, 0x11, "PktLen"	  },
	    {8,	0xf0, 0x40, "IPVer"	   },
		  {13, 0xff, 0x01, "PayLen"   },
	    {14, 0xff, 0x11, "NxtHdr"   },
		  {48, 0xff, 0x18, "opcode"   },
	    {49, 0x0f, 0x01, "TVer"	   },
	};
	uint8_t good[WIRE_PACKET_MAX], bad[WIRE_PACKET_MAX];
	struct wire_packet p, out;
	size_t len;

	random_packet(WIRE_UD | WIRE_SEND_ONLY, 2, true, &p);
	len = write_packet(&p, good);
	assert_true(wire_packet_decode(good, len, &out) > 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(bad, good, len);
		bad[cases[i].at] =
		    (uint8_t)((bad[cases[i].at] & ~cases[i].mask) | cases[i].value);
		if (wire_packet_decode(bad, len, &out) != -EINVAL)
			fail_msg("%s accepted", cases[i].what);
	}
}

static void more_pad_than_payload_is_refused(void **state)
{
	uint8_t bth[WIRE_BTH_BYTES + 4] = {WIRE_RC | WIRE_SEND_ONLY, 3 << 4};
	struct wire_packet p;

	assert_int_equal(wire_bth_decode(bth, WIRE_BTH_BYTES, &p), -EINVAL);
	assert_int_equal(wire_bth_decode(bth, WIRE_BTH_BYTES + 4, &p), WIRE_BTH_BYTES);
	assert_int_equal(p.payload_bytes, 1);
	bth[0] = WIRE_RC | WIRE_ACKNOWLEDGE; /* no payload, so no pad either */
	assert_int_equal(wire_bth_decode(bth, WIRE_BTH_BYTES + 4, &p), -EINVAL);
	bth[1] = 0;
	assert_int_equal(wire_bth_decode(bth, WIRE_BTH_BYTES + 4, &p),
			 WIRE_BTH_BYTES + 4);
}

static void unknown_opcodes_are_not_written(void **state)
{
	struct wire_packet p = {.lrh.lnh = WIRE_LNH_BTH, .bth.opcode = 0x3f};
	uint8_t buf[WIRE_HEADERS_MAX];

	assert_int_equal(wire_packet_encode(&p, buf), -EINVAL);
	p.bth.opcode = WIRE_RC | WIRE_SEND_ONLY;
	p.payload_bytes = WIRE_PAYLOAD_MAX + 1;
	assert_int_equal(wire_packet_encode(&p, buf), -EINVAL);
	p.payload_bytes = WIRE_MTU_MAX;
	assert_int_equal(wire_packet_encode(&p, buf), 20);
	assert_int_equal(p.lrh.length_dwords, (20 + 4096 + 4) / 4);
	p.lrh.lnh = WIRE_LNH_RAW;
	assert_int_equal(wire_packet_encode(&p, buf), -EINVAL);
}

/* A jumbo frame is longer than PktLen can say, which has the low bits of its length. */
static void jumbo_frames(void **state)
{
	static uint8_t buf[WIRE_PACKET_MAX];
	struct wire_packet p = {.lrh.lnh = WIRE_LNH_BTH, .bth.opcode = WIRE_UD | WIRE_SEND_ONLY}, out;
	size_t len;

	p.payload_bytes = WIRE_PAYLOAD_MAX + 1;
	assert_int_equal(wire_packet_encode(&p, buf), -EINVAL);
	p.payload_bytes = WIRE_PAYLOAD_MAX;
	assert_int_equal(wire_packet_encode(&p, buf), 28);
	len = 28 + WIRE_PAYLOAD_MAX + p.bth.pad_bytes;
	assert_int_equal(wire_packet_decode(buf, len, &out), 28);
	assert_int_equal(out.payload_bytes, WIRE_PAYLOAD_MAX);
	assert_int_equal(out.lrh.length_dwords * 4u, len + WIRE_ICRC_BYTES);
	assert_int_equal(wire_packet_decode(buf, len - 4, &out), -EINVAL);
	assert_int_equal(wire_packet_decode(buf, len - 8192, &out), 28); /* it says so, too */
}

/* CRC of IEEE 802, a bit at a time: independent of the library */
static uint32_t slow_crc32(const uint8_t *b, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len * 8; i++)
		crc = (crc >> 1) ^ ((crc ^ b[i / 8] >> i % 8) & 1 ? 0xedb88320u : 0);
	return ~crc;
}

static void icrc_masks_what_may_change(void **state)
{
	/* byte, and whether the ICRC covers it: {offset, local, global} */
	static const struct {
		int at;
		uint8_t bits;
		bool local, global;
	} cases[] = {
	    {0, 0xf0, false, false}, /* VL */
	    {0, 0x0f, true,  false}, /* LVer */
	    {1, 0xf0, true,  false}, /* SL: a router may change it */
	    {2, 0xff, true,  false}, /* DLID */
	    {7, 0xff, true,  false}, /* SLID */
	};
	static const struct {
		int at;
		uint8_t bits;
		bool covered;
	} grh[] = {
	    {8,	0xf0, true },
	      {8,  0x0f, false},
		{9,  0xff, false},
		   {11, 0xff, false},
	    {12, 0xff, true },
	      {14, 0xff, true },
		{15, 0xff, false},
		   {16, 0xff, true },
	    {47, 0xff, true },
	      {48, 0xff, true },
		{52, 0xff, false},
		   {53, 0xff, true },
	    {59, 0xff, true },
	      {60, 0xff, true },
	};
	uint8_t buf[WIRE_PACKET_MAX];
	struct wire_packet p;
	size_t len;
	uint32_t icrc;

	for (int global = 0; global < 2; global++) {
		random_packet(WIRE_UD | WIRE_SEND_ONLY, 4, global, &p);
		len = write_packet(&p, buf);
		icrc = wire_icrc(buf, len);
		for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
			buf[cases[i].at] ^= cases[i].bits;
			assert_int_equal(wire_icrc(buf, len) != icrc,
					 global ? cases[i].global : cases[i].local);
			buf[cases[i].at] ^= cases[i].bits;
		}
		for (unsigned int i = 0; global && i < ARRAY_SIZE(grh); i++) {
			buf[grh[i].at] ^= grh[i].bits;
			assert_int_equal(wire_icrc(buf, len) != icrc, grh[i].covered);
			buf[grh[i].at] ^= grh[i].bits;
		}
	}
}

static void icrc_is_the_crc_of_ethernet(void **state)
{
	uint8_t buf[WIRE_PACKET_MAX];
	struct wire_packet p;
	size_t len;
	uint32_t icrc;

	random_packet(WIRE_RC | WIRE_WRITE_ONLY, 4, false, &p);
	len = write_packet(&p, buf);
	icrc = wire_icrc(buf, len);
	buf[0] |= 0xf0;
	buf[WIRE_LRH_BYTES + 4] = 0xff;
	assert_int_equal(icrc, __builtin_bswap32(slow_crc32(buf, len)));
}

/* 7.8.2 a bit at a time: a register that shifts towards its highest term,
 * fed with the lowest bit of each byte first, sent highest term first */
static void vcrc_is_the_division_by_100b(void **state)
{
	uint8_t buf[300];

	for (size_t len = 0; len < sizeof(buf); len += 13) {
		uint16_t reg = 0xffff, sent = 0;

		codecs_random(len, buf, sizeof(buf));
		for (size_t i = 0; i < len * 8; i++) {
			bool feedback = (reg >> 15 ^ buf[i / 8] >> i % 8) & 1;

			reg = (uint16_t)(reg << 1 ^ (feedback ? 0x100b : 0));
		}
		for (int i = 0; i < 16; i++) /* first bit sent: lowest of byte 0 */
			sent |=
			    (uint16_t)((~reg >> (15 - i) & 1) << (i < 8 ? i + 8 : i - 8));
		assert_int_equal(wire_vcrc(buf, len), sent);
	}
}

static void roce_icrc_wants_udp(void **state)
{
	uint8_t ip[80] = {0x45, 0, 0, 80};
	uint32_t icrc = 1;

	assert_int_equal(wire_roce_icrc(ip, sizeof(ip), &icrc), -EINVAL);
	ip[9] = 17;
	assert_int_equal(wire_roce_icrc(ip, sizeof(ip), &icrc), 0);
	assert_int_equal(wire_roce_icrc(ip, 39, &icrc), -EINVAL);
	ip[0] = 0x46; /* options */
	assert_int_equal(wire_roce_icrc(ip, sizeof(ip), &icrc), -EINVAL);
	ip[0] = 0x60;
	ip[6] = 6; /* TCP */
	assert_int_equal(wire_roce_icrc(ip, sizeof(ip), &icrc), -EINVAL);
	ip[6] = 17;
	assert_int_equal(wire_roce_icrc(ip, 59, &icrc), -EINVAL);
	assert_int_equal(wire_roce_icrc(ip, 60, &icrc), 0);
	ip[0] = 0x50;
	assert_int_equal(wire_roce_icrc(ip, sizeof(ip), &icrc), -EINVAL);
}

/* of RoCEv2: IPv4 by mapped GIDs, otherwise IPv6; a tag with the VLAN and the priority */
static void roce_headers(void **state)
{
	static const uint8_t untagged[] = {
		0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00,			    /* Ethernet */
		0x45, 0x20, 0, 48, 0, 0, 0x40, 0, 64, 17, 0x26, 0x9b, 10, 0, 0, 1, 10, 0, 0, 2, /* IPv4 */
		0xd2, 0x34, 0x12, 0xb7, 0, 28, 0, 0,					    /* UDP */
	};
	static const uint8_t tagged[] = {
		0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x81, 0x00, 0x60, 0x64, 0x86, 0xdd,
		0x62, 0x01, 0x12, 0x34, 0, 28, 17, 64, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
		0xd2, 0x34, 0x12, 0xb7, 0, 28, 0, 0,
	};
	struct wire_roce_headers h = {
		.dst_mac = {0x02, [5] = 2}, .src_mac = {0x02, [5] = 1},
		.grh = {.ip_version = 6, .traffic_class = 0x20, .flow_label = 0x11234, .hop_limit = 64,
			.sgid.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
			.dgid.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
	};
	uint8_t buf[WIRE_ROCE_HEADERS_MAX];

	assert_int_equal(wire_roce_headers_encode(&h, 16, buf), sizeof(untagged));
	assert_memory_equal(buf, untagged, sizeof(untagged));
	h.vlan_id = 100;
	h.priority = 3;
	h.grh.sgid = (union wire_gid){.raw = {0xfe, 0x80, [15] = 1}};
	h.grh.dgid = (union wire_gid){.raw = {0xfe, 0x80, [15] = 2}};
	assert_int_equal(wire_roce_headers_encode(&h, 16, buf), sizeof(tagged));
	assert_memory_equal(buf, tagged, sizeof(tagged));
	h.grh.sgid = (union wire_gid){.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}};
	h.grh.dgid = (union wire_gid){.raw = {0xff, 0x0e, [10] = 0xff, [11] = 0xff, 239, 1, 2, 3}};
	assert_int_equal(wire_roce_headers_encode(&h, 16, buf), sizeof(untagged) + 4); /* of a group */
	assert_int_equal(get_be32(buf + 34), 0xef010203);
}

static struct wire_roce_headers some_headers(bool v4, uint16_t vlan_id)
{
	struct wire_roce_headers h = {
		.dst_mac = {0x02, [5] = 2}, .src_mac = {0x02, [5] = 1}, .vlan_id = vlan_id, .priority = vlan_id ? 5 : 0,
		.grh = {.ip_version = 6, .traffic_class = 0x68, .flow_label = 0x1234, .hop_limit = 9, .next_header = 0x1b,
			.sgid.raw = {0xfe, 0x80, [15] = 1}, .dgid.raw = {0xfe, 0x80, [15] = 2}},
	};

	if (v4) {
		h.grh.sgid = (union wire_gid){.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}};
		h.grh.dgid = (union wire_gid){.raw = {0xff, 0x0e, [10] = 0xff, [11] = 0xff, 239, 1, 2, 3}};
	}
	return h;
}

static void roce_frames_come_back(void **state)
{
	uint8_t bth[WIRE_BTH_BYTES + 20], frame[WIRE_ROCE_FRAME_MAX] = {0};
	struct wire_roce roce;

	codecs_random(1, bth, sizeof(bth));
	for (int i = 0; i < 4; i++) {
		struct wire_roce_headers h = some_headers(i & 1, i & 2 ? 100 : 0);
		size_t n = wire_roce_encode(&h, bth, sizeof(bth), frame);

		assert_int_equal(n, (i & 1 ? 20 : 40) + (i & 2 ? 18 : 14) + 8 + sizeof(bth) + 4);
		assert_int_equal(wire_roce_decode(frame, n, &roce), 0);
		h.grh.payload_bytes = sizeof(bth) + 4;
		assert_memory_equal(roce.headers.dst_mac, h.dst_mac, 12);
		assert_int_equal(roce.headers.vlan_id, h.vlan_id);
		assert_int_equal(roce.headers.priority, h.priority);
		assert_memory_equal(&roce.headers.grh, &h.grh, sizeof(h.grh));
		assert_int_equal(roce.bytes, sizeof(bth));
		assert_memory_equal(roce.bth, bth, sizeof(bth));
		for (size_t cut = 0; cut < n; cut++)
			assert_int_not_equal(wire_roce_decode(frame, cut, &roce), 0);
	}
}

static int changed(size_t at, uint16_t value)
{
	struct wire_roce_headers h = some_headers(true, 0);
	uint8_t bth[WIRE_BTH_BYTES] = {0}, frame[WIRE_ROCE_FRAME_MAX] = {0};
	size_t n = wire_roce_encode(&h, bth, sizeof(bth), frame);
	struct wire_roce roce;
	uint32_t icrc;

	put_be16(frame + at, value);
	if (at < 34 && at != 24) { /* what depends on it is right, so that the field alone is wrong */
		put_be16(frame + 24, 0);
		put_be16(frame + 24, wire_inet_fold(wire_inet_sum(frame + 14, 20, 0)));
	}
	if (!wire_roce_icrc(frame + 14, n - 18, &icrc))
		put_be32(frame + n - 4, icrc);
	return wire_roce_decode(frame, n, &roce);
}

static void roce_frames_that_lie(void **state)
{
	static const struct {
		size_t at;
		uint16_t value;
		int expected;
	} cases[] = {
		{18, 7, 0},	     /* identification */
		{12, 0x86dd, -ENOENT}, /* not what the header is */
		{14, 0x4600, -ENOENT}, /* IPv4 options that are longer than the frame's header */
		{16, 20, -EINVAL},     /* IP's length: shorter than what UDP says */
		{16, 19, -EINVAL},
		{16, 0xffff, -EINVAL},
		{20, 0x2000, -EINVAL}, /* the first fragment */
		{20, 0x0010, -ENOENT}, /* a later one */
		{22, 0x4006, -ENOENT}, /* TCP */
		{24, 0x1111, -EINVAL}, /* checksum */
		{36, 4790, -ENOENT},
		{38, 23, -EINVAL}, /* UDP's length */
		{38, 28, -EINVAL},
		{40, 0x1234, -EINVAL}, /* UDP's checksum */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (changed(cases[i].at, cases[i].value) != cases[i].expected)
			fail_msg("%zu: %d", i, changed(cases[i].at, cases[i].value));
}

static void a_udp_checksum_is_checked(void **state)
{
	struct wire_roce_headers h = some_headers(false, 0);
	uint8_t bth[WIRE_BTH_BYTES] = {4}, frame[WIRE_ROCE_FRAME_MAX] = {0};
	size_t n = wire_roce_encode(&h, bth, sizeof(bth), frame);
	struct wire_roce roce;
	uint8_t *udp = frame + 54;

	put_be16(udp + 6, wire_inet_fold(wire_inet_sum(udp, n - 54, wire_inet_pseudo_sum(frame + 14, 17, n - 54))));
	assert_int_equal(wire_roce_decode(frame, n, &roce), 0);
	udp[7] ^= 1;
	assert_int_equal(wire_roce_decode(frame, n, &roce), -EINVAL);
}

static void capture_headers(void **state)
{
	uint8_t buf[32];

	assert_int_equal(wire_pcap_file_encode(WIRE_LINKTYPE_ERF, 65535, buf), 24);
	assert_int_equal(buf[20], 197);
	assert_int_equal(wire_pcap_record_encode(3500000000, 100, buf), 16);
	assert_int_equal(buf[0], 3);
	assert_int_equal(buf[8], 100);
	assert_int_equal(wire_erf_encode(3500000000, 2, 100, 100, buf), 16);
	assert_memory_equal(buf, "\0\0\0\x80\3\0\0\0\x15\x06\0\x74\0\0\0\x64", 16);
	assert_int_equal(wire_erf_encode(0, 0, 65519, 65519, buf), 16);
	assert_int_equal(wire_erf_encode_ethernet(3500000000, 2, 64, 64, buf), 18);
	assert_int_equal(buf[8], 2);
	assert_int_equal(get_be16(buf + 10), 64 + 18);
	assert_int_equal(get_be16(buf + 14), 64);
	assert_int_equal(get_be16(buf + 16), 0);
	assert_int_equal(wire_erf_encode_ethernet(0, 0, 65518, 65518, buf), -EINVAL);
	assert_int_equal(wire_erf_encode(0, 0, 65520, 0, buf), -EINVAL);
	assert_int_equal(wire_erf_encode(0, 0, 100, 101, buf), -EINVAL);
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* every block says its length in front and at its end, in whole words */
static void expect_block(const uint8_t *block, int bytes, uint32_t type)
{
	assert_int_equal(bytes % 4, 0);
	assert_int_equal(le32(block), type);
	assert_int_equal(le32(block + 4), bytes);
	assert_int_equal(le32(block + bytes - 4), bytes);
}

static void capture_blocks(void **state)
{
	char endless[1000];
	uint8_t buf[WIRE_PCAPNG_BLOCK_MAX];
	struct wire_pcapng_packet packet = {.interface = 3, .time_ns = 0x1122334455667788,
					    .bytes = 100, .sent = true, .dropped = 9};

	memset(endless, 'x', sizeof(endless));
	endless[sizeof(endless) - 1] = 0;
	expect_block(buf, wire_pcapng_section_encode("t", buf), 0x0a0d0d0a);
	expect_block(buf, wire_pcapng_section_encode(endless, buf), 0x0a0d0d0a);
	expect_block(buf, wire_pcapng_interface_encode(197, 0, endless, endless, buf), 1);
	expect_block(buf, wire_pcapng_statistics_encode(0, 1, 2, endless, buf), 5);
	for (packet.captured_bytes = 0; packet.captured_bytes < 9; packet.captured_bytes++) {
		int n = wire_pcapng_packet_head(&packet, buf) + (int)packet.captured_bytes;
		int tail = wire_pcapng_packet_tail(&packet, buf + n);

		assert_true(tail <= WIRE_PCAPNG_PACKET_TAIL);
		expect_block(buf, n + tail, 6);
		assert_int_equal(le32(buf + 12), 0x11223344);
		assert_int_equal(le32(buf + 16), 0x55667788);
	}
}

static bool is_of(uint16_t lid, uint16_t port_lid, unsigned lmc)
{
	return wire_addr_is_of(wire_addr_of_lid(lid), wire_port_addrs(port_lid, lmc));
}

/* 7.11: the low LMC bits of a LID choose a path to the same port */
static void addresses_of_a_port(void **state)
{
	assert_true(is_of(8, 8, 0));
	assert_false(is_of(9, 8, 0));
	assert_true(is_of(11, 8, 2));
	assert_true(is_of(8, 11, 2)); /* any of the port's LIDs names it */
	assert_false(is_of(12, 8, 2));
	/* a packet with SLID 0 is of no port, nor is one of any other LID */
	for (unsigned lmc = 0; lmc < 8; lmc++)
		for (unsigned lid = 0; lid <= UINT16_MAX; lid++)
			assert_false(is_of((uint16_t)lid, 0, lmc));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(opcode_table_is_complete),
	    cmocka_unit_test(addresses_of_a_port),
	    cmocka_unit_test(opcode_sizes),
	    cmocka_unit_test(every_opcode_survives),
	    cmocka_unit_test(the_rnr_mark),
	    cmocka_unit_test(only_its_own_headers_are_read),
	    cmocka_unit_test(truncation_is_refused),
	    cmocka_unit_test(bad_fields_are_refused),
	    cmocka_unit_test(more_pad_than_payload_is_refused),
	    cmocka_unit_test(unknown_opcodes_are_not_written),
	    cmocka_unit_test(jumbo_frames),
	    cmocka_unit_test(icrc_masks_what_may_change),
	    cmocka_unit_test(icrc_is_the_crc_of_ethernet),
	    cmocka_unit_test(vcrc_is_the_division_by_100b),
	    cmocka_unit_test(roce_icrc_wants_udp),
	    cmocka_unit_test(roce_headers),
	    cmocka_unit_test(roce_frames_come_back),
	    cmocka_unit_test(roce_frames_that_lie),
	    cmocka_unit_test(a_udp_checksum_is_checked),
	    cmocka_unit_test(capture_headers),
	    cmocka_unit_test(capture_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
