/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rules of flow steering that select frames by their VLAN tag. A raw packet QP sends frames with
 * and without tags to its own port, and receives those that the rule names. Prints "steered".
 *
 * vlan_rules OWN_MAC (six bytes in hexadecimal, with colons)
 */
#include <arpa/inet.h>
#include <string.h>

#include "fixture.h"

enum { FRAMES = 5, BYTES = 100, MARK_AT = 30, ETHER_TYPE = 0x88b5 /* of experiments */ };

static const int tags[FRAMES] = {-1 /* none */, 0x0006, 0x0005, 0xe006, 0xe005};
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t in[FRAMES][256], out[FRAMES][BYTES], mac[6];

static void open_qp(struct ibv_pd *pd)
{
	qp = make_raw_qp(pd, cq, FRAMES);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		move_raw_qp(qp, (enum ibv_qp_state)state);
}

static void make_frame(int n)
{
	uint16_t type = htons(ETHER_TYPE), tag[2] = {htons(0x8100), htons((uint16_t)tags[n])};
	uint8_t *at = out[n] + 12;

	memcpy(out[n], mac, 6);
	memcpy(out[n] + 6, mac, 6);
	if (tags[n] >= 0) {
		memcpy(at, tag, sizeof(tag));
		at += sizeof(tag);
	}
	memcpy(at, &type, sizeof(type));
	out[n][MARK_AT] = (uint8_t)(n + 1);
}

/* a rule for frames of the type behind the tag, whose tag has these bits */
static struct ibv_flow *steer(uint16_t tag, uint16_t mask)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			.val = {.vlan_tag = htons(tag), .ether_type = htons(ETHER_TYPE)},
			.mask = {.vlan_tag = htons(mask), .ether_type = 0xffff}},
	};

	return ibv_create_flow(qp, (struct ibv_flow_attr *)(void *)&rule);
}

/* Send all frames, and wait until @num are received. Return: which, a bit each. Those that come to
 * a port come in order, so a frame that should not have come is among them */
static unsigned received(unsigned num)
{
	unsigned which = 0, waits = num + FRAMES;
	struct ibv_wc wc;

	for (unsigned i = 0; i < num; i++) {
		struct ibv_sge sge = {(uintptr_t)in[i], sizeof(in[i]), mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
	for (int i = 0; i < FRAMES; i++) {
		struct ibv_sge sge = {(uintptr_t)out[i], BYTES, mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED}, *bad;

		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
	while (waits) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
		waits -= (unsigned)n;
		if (n && wc.opcode == IBV_WC_RECV)
			which |= 1u << (in[wc.wr_id][MARK_AT] - 1);
	}
	return which;
}

static void try(uint16_t tag, uint16_t mask, unsigned num, unsigned expected)
{
	struct ibv_flow *flow = steer(tag, mask);

	CHECK(flow);
	CHECK(received(num) == expected);
	CHECK(!ibv_destroy_flow(flow));
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	CHECK(argc == 2 && sscanf(argv[1], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
				  &mac[2], &mac[3], &mac[4], &mac[5]) == 6);
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * FRAMES, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(pd && cq && mr);
	open_qp(pd);
	for (int i = 0; i < FRAMES; i++)
		make_frame(i);
	try(0x0005, 0x0fff, 2, 1 << 2 | 1 << 4);		/* a VLAN, of any priority */
	try(0xe000, 0xe000, 2, 1 << 3 | 1 << 4);		/* a priority, of any VLAN */
	try(0xe006, 0xffff, 1, 1 << 3);				/* both */
	try(0x0000, 0xe000, 2, 1 << 1 | 1 << 2);		/* no tag is not priority 0 */
	try(0, 0, FRAMES, (1 << FRAMES) - 1);			/* tags make no difference */
	puts("steered");
	return 0;
}
