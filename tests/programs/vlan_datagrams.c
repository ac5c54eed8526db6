/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * VLANs as verbs show them: from each entry of the GID table the program sends a datagram to
 * each GID of RoCE version 2 of its own port. For each entry a line says the VLAN of
 * ibv_resolve_eth_l2_from_gid() (65535: none), that of ibv_wc_read_cvlan() of the datagram, and
 * by which entry ibv_init_ah_from_wc() would answer; then the entries whose GIDs it reaches:
 * "7: 100 100 7 to 6 7 8". Where there is no way, the AH fails with EHOSTUNREACH.
 */
#include <errno.h>

#include "fixture.h"

enum { GRH_BYTES = 40, QKEY = 0x11111111 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t memory[2 * GRH_BYTES];

static void make_objects(void)
{
	struct ibv_cq_init_attr_ex want = {
		.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4,
						.max_send_sge = 1, .max_recv_sge = 1}};

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	cq = ibv_create_cq_ex(context, &want);
	CHECK(cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	raise_datagram_qp(qp, QKEY);
}

static struct ibv_ah_attr way(uint32_t sgid_index, union ibv_gid dgid)
{
	return (struct ibv_ah_attr){.is_global = 1, .port_num = 1,
				    .grh = {.dgid = dgid, .sgid_index = (uint8_t)sgid_index,
					    .hop_limit = 64}};
}

/* the completion of the receive; that of the send is polled as well */
static struct ibv_wc receive(uint16_t *vlan)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_wc wc = {0};

	for (int left = 2; left;) {
		int rc = ibv_start_poll(cq, &none);

		if (rc == ENOENT)
			continue;
		CHECK(!rc && cq->status == IBV_WC_SUCCESS);
		if (ibv_wc_read_opcode(cq) == IBV_WC_RECV) {
			wc.wc_flags = ibv_wc_read_wc_flags(cq);
			wc.slid = (uint16_t)ibv_wc_read_slid(cq);
			wc.sl = ibv_wc_read_sl(cq);
			wc.dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
			*vlan = ibv_wc_read_cvlan(cq);
		}
		ibv_end_poll(cq);
		left--;
	}
	return wc;
}

static void send_datagram(struct ibv_ah *ah)
{
	struct ibv_sge in = {(uintptr_t)memory, GRH_BYTES + 1, mr->lkey};
	struct ibv_sge out = {(uintptr_t)memory + GRH_BYTES + 1, 1, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.ud = {ah, qp->qp_num, QKEY}}, *bad_send;

	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(qp, &send, &bad_send));
}

/* what the entry's own GID leads to */
static void show_entry(const struct ibv_gid_entry *entry)
{
	struct ibv_ah_attr attr = way(entry->gid_index, entry->gid), back;
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid = 0, vlan = 0;
	struct ibv_wc wc;

	CHECK(ah);
	CHECK(!ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vid));
	CHECK(mac[0] == 2);
	send_datagram(ah);
	wc = receive(&vlan);
	CHECK(!ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)memory, &back));
	printf("%u: %u %u %u to", entry->gid_index, vid, vlan, back.grh.sgid_index);
	CHECK(!ibv_destroy_ah(ah));
}

/* Return: is there a way to @to from the entry @from? */
static int leads_to(const struct ibv_gid_entry *from, const struct ibv_gid_entry *to)
{
	struct ibv_ah_attr attr = way(from->gid_index, to->gid);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	CHECK(ah || errno == EHOSTUNREACH);
	if (ah)
		CHECK(!ibv_destroy_ah(ah));
	return ah != NULL;
}

int main(void)
{
	struct ibv_gid_entry table[64];
	ssize_t n;

	make_objects();
	n = ibv_query_gid_table(context, table, 64, 0);
	CHECK(n > 0);
	for (ssize_t i = 0; i < n; i++) {
		CHECK(table[i].ndev_ifindex == 0); /* the node has no interface of it */
		if (table[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		show_entry(&table[i]);
		for (ssize_t j = 0; j < n; j++)
			if (table[j].gid_type == IBV_GID_TYPE_ROCE_V2 && leads_to(&table[i], &table[j]))
				printf(" %u", table[j].gid_index);
		putchar('\n');
	}
	return 0;
}
