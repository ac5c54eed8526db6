/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fabric of names only: n1 and n2 on a switch s1; and packets between them. */
#ifndef SOFTIB_TESTS_FAULT_LAB_H
#define SOFTIB_TESTS_FAULT_LAB_H

#include "../test.h"

#include "fault/fault.h"
#include "wire/mad.h"

enum { N1, N2, S1, LAB_NODES };

static inline int lab_find(void *ctx, const char *name)
{
	static const char *const names[] = {"n1", "n2", "s1"};

	for (int i = 0; i < LAB_NODES; i++)
		if (!strcmp(names[i], name))
			return i;
	return strcmp("host two", name) ? -1 : N2; /* as it is described */
}

static inline const char *lab_name(void *ctx, int node)
{
	return node == N1 ? "n1" : node == N2 ? "n2" : "s1";
}

static inline int lab_num_ports(void *ctx, int node, bool *is_switch)
{
	*is_switch = node == S1;
	return node == S1 ? 4 : 1;
}

static inline bool lab_has_cable(void *ctx, int node, int port)
{
	return node != S1 || port <= 2;
}

static inline bool lab_has_qp(void *ctx, int node, uint32_t qpn)
{
	return qpn >= 0x11 && qpn < 0x20;
}

static const struct flt_names lab_names = {
	.find = lab_find, .name = lab_name, .num_ports = lab_num_ports,
	.has_cable = lab_has_cable, .has_qp = lab_has_qp,
};

static inline struct flt_rule lab_rule(const char *text)
{
	struct flt_rule rule;
	char err[512];

	if (flt_parse(text, &lab_names, &rule, err, sizeof(err)))
		fail_msg("%s: %s", text, err);
	return rule;
}

static inline uint32_t lab_add(struct flt_set *set, const char *text)
{
	struct flt_rule rule = lab_rule(text);
	int id = flt_add(set, &rule);

	assert_true(id > 0);
	return (uint32_t)id;
}

/** struct lab_packet - what a test says of a packet; RC SEND Only by default */
struct lab_packet {
	uint8_t opcode;
	uint32_t dest_qpn, src_qpn, psn, payload;
	const uint8_t *mad;
};

static inline size_t lab_encode(struct lab_packet in, uint8_t *buf)
{
	struct wire_packet p = {
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = 1, .dlid = 2},
		.bth = {.opcode = in.opcode ? in.opcode : WIRE_SEND_ONLY, .pkey = 0xffff,
			.dest_qpn = in.dest_qpn ? in.dest_qpn : 0x12, .psn = psn(in.psn)},
		.deth = {.src_qpn = in.src_qpn},
		.payload_bytes = in.mad ? WIRE_MAD_BYTES : in.payload,
	};
	int n = wire_packet_encode(&p, buf);

	memset(buf + n, 0, p.payload_bytes + p.bth.pad_bytes);
	if (in.mad)
		memcpy(buf + n, in.mad, WIRE_MAD_BYTES);
	return (size_t)n + p.payload_bytes + p.bth.pad_bytes;
}

/* from n1 to s1:1 */
static inline struct flt_event lab_event(struct lab_packet in)
{
	struct flt_event ev = {
		.now = {1000}, .from = {N1, 1, false}, .to = {S1, 1, true}, .first = true};
	uint8_t buf[WIRE_PACKET_MAX];
	size_t len = lab_encode(in, buf);

	assert_int_equal(flt_event_packet(&ev, buf, len), 0);
	return ev;
}

/* the second link of the same way: s1:2 to n2 */
static inline struct flt_event lab_second(struct lab_packet in)
{
	struct flt_event ev = lab_event(in);

	ev.from = (struct flt_end){S1, 2, true};
	ev.to = (struct flt_end){N2, 1, false};
	ev.first = false;
	return ev;
}

#endif
