/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A subnet administrator for tests of the SA client: node 0 answers requests
 * with the record that was asked about, as often as a test wants, or not.
 * Node 1 is the client's.
 */
#ifndef SOFTIB_TESTS_FAKE_SA_H
#define SOFTIB_TESTS_FAKE_SA_H

#include "../test.h"

#include "mad_net.h"
#include "base/bytes.h"
#include "rdma/ib_sa.h"
#include "wire/sa.h"

#define SA_MGID {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 1}}
#define SA_SERVICE_GID {.raw = {0xfe, 0x80, [15] = 77}}

struct fake_sa {
	struct net_node *node;
	struct ib_mad_agent *agent;
	int asked;	  /* requests received */
	int asked_attr;	  /* of the attribute that a test counts */
	u16 count_attr;
	u8 counted_method; /* of the last of these, and its record */
	u8 counted_record[IB_MGMT_SA_DATA];
	u8 method;	  /* of the last one */
	u16 attr_id;
	u64 comp_mask;
	u8 record[IB_MGMT_SA_DATA];
	int reports_answered;
	/* --- how to answer --- */
	bool silent;
	u16 status;   /* of MADs */
	u16 refuses;  /* this attribute, with status 0x0200; 0: none */
	int busy;     /* so many times */
	int records;  /* in a table */
	enum ib_mtu group_mtu; /* 0: 2048 */
	bool by_gid; /* a path has the LIDs that its GIDs end in; otherwise always the same */
};

static inline void fake_sa_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static inline size_t fake_sa_stride(u16 attr_id)
{
	return attr_id == IB_SA_ATTR_PATH_REC ? 64 : attr_id == IB_SA_ATTR_MC_MEMBER_REC ? 56 : 176;
}

/* what an SA adds to what it was asked about */
static inline void fake_sa_fill(const struct fake_sa *sa, int i, u8 *record)
{
	if (sa->attr_id == IB_SA_ATTR_PATH_REC) {
		record[41] = sa->by_gid ? record[23] : (u8)(11 + i); /* DLID */
		record[43] = sa->by_gid ? record[39] : 11;	     /* SLID */
		record[54] = 0x80 | IB_MTU_4096; /* exactly */
	} else if (sa->attr_id == IB_SA_ATTR_MC_MEMBER_REC) {
		record[36] = 0xc0; /* MLID */
		record[37] = 0x05;
		record[38] = 0x80 | (u8)(sa->group_mtu ? sa->group_mtu : IB_MTU_2048); /* exactly */
		if (!record[0])
			memcpy(record, &(union ib_gid)SA_MGID, 16); /* an MGID of its own making */
	} else if (sa->attr_id == IB_SA_ATTR_SERVICE_REC && sa->method == IB_MGMT_METHOD_GET) {
		memcpy(record + 8, &(union ib_gid)SA_SERVICE_GID, 16);
	}
}

static inline u8 fake_sa_response(u8 method)
{
	return method == IB_MGMT_METHOD_SET ? IB_MGMT_METHOD_GET_RESP : method | IB_MGMT_METHOD_RESP;
}

static inline void fake_sa_answer(struct fake_sa *sa, struct ib_mad_recv_wc *recv_wc, u16 status)
{
	bool table = sa->method == IB_SA_METHOD_GET_TABLE && !status;
	size_t stride = fake_sa_stride(sa->attr_id);
	struct ib_mad_send_buf *buf = ib_create_send_mad(
		sa->agent, recv_wc->wc->src_qp, 0, table, IB_MGMT_SA_HDR,
		table ? (int)stride * sa->records : IB_MGMT_SA_DATA, GFP_KERNEL, 1);
	struct ib_mad *mad;

	if (IS_ERR(buf))
		return;
	mad = buf->mad;
	memcpy(&mad->mad_hdr, &recv_wc->recv_buf.mad->mad_hdr, sizeof(mad->mad_hdr));
	mad->mad_hdr.method = fake_sa_response(sa->method);
	mad->mad_hdr.status = cpu_to_be16(status);
	((u8 *)mad)[45] = (u8)(stride / 8); /* AttributeOffset */
	for (int i = 0; i < (table ? sa->records : 1); i++) {
		u8 record[IB_MGMT_SA_DATA];

		memcpy(record, sa->record, sizeof(record));
		fake_sa_fill(sa, i, record);
		for (size_t b = 0; b < stride; b++) {
			size_t at = (size_t)i * stride + b;
			u8 *to = table ? (u8 *)ib_get_rmpp_segment(buf, (int)(at / 200) + 1) + at % 200 :
					 (u8 *)mad + IB_MGMT_SA_HDR + at;
			*to = record[b];
		}
	}
	buf->ah = ib_create_ah_from_wc(sa->agent->qp->pd, recv_wc->wc, NULL, 1);
	if (IS_ERR(buf->ah)) {
		ib_free_send_mad(buf);
	} else if (ib_post_send_mad(buf, NULL)) {
		rdma_destroy_ah(buf->ah, 0);
		ib_free_send_mad(buf);
	}
}

static inline void fake_sa_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
				    struct ib_mad_recv_wc *recv_wc)
{
	struct fake_sa *sa = agent->context;
	const u8 *mad = (const u8 *)recv_wc->recv_buf.mad;
	u16 status;

	if (buf) { /* a ReportResp */
		sa->reports_answered++;
		ib_free_recv_mad(recv_wc);
		return;
	}
	sa->asked++;
	sa->method = mad[3];
	sa->attr_id = get_be16(mad + 16);
	sa->asked_attr += sa->attr_id == sa->count_attr;
	sa->comp_mask = get_be64(mad + 48);
	memcpy(sa->record, mad + IB_MGMT_SA_HDR, sizeof(sa->record));
	if (sa->attr_id == sa->count_attr) {
		sa->counted_method = sa->method;
		memcpy(sa->counted_record, sa->record, sizeof(sa->record));
	}
	status = sa->refuses == sa->attr_id ? 0x0200 : sa->status;
	if (sa->busy && sa->busy--)
		status = IB_MGMT_MAD_STATUS_BUSY;
	if (!sa->silent)
		fake_sa_answer(sa, recv_wc, status);
	ib_free_recv_mad(recv_wc);
}

/** fake_sa_open() - an SA on @node */
static inline struct fake_sa *fake_sa_open(struct net_node *node)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
		.mgmt_class_version = IB_SA_CLASS_VERSION,
		.method_mask = {1ul << IB_MGMT_METHOD_GET | 1ul << IB_MGMT_METHOD_SET |
				1ul << IB_SA_METHOD_GET_TABLE | 1ul << IB_SA_METHOD_DELETE},
	};
	struct fake_sa *sa = rt_zalloc(sizeof(*sa));

	sa->node = node;
	sa->records = 1;
	sa->agent = ib_register_mad_agent(&node->ib, 1, IB_QPT_GSI, &req, IB_MGMT_RMPP_VERSION,
					  fake_sa_sent, fake_sa_received, sa, 0);
	if (IS_ERR(sa->agent))
		abort();
	return sa;
}

static inline void fake_sa_close(struct fake_sa *sa)
{
	ib_unregister_mad_agent(sa->agent);
	rt_free(sa);
}

/** fake_sa_report() - Report(Notice) of a generic trap about @gid, to LID @dlid */
static inline void fake_sa_report(struct fake_sa *sa, u16 dlid, u16 trap, const union ib_gid *gid)
{
	struct ib_mad_send_buf *buf = ib_create_send_mad(sa->agent, 1, 0, 0, IB_MGMT_SA_HDR,
							 IB_MGMT_SA_DATA, GFP_KERNEL, 1);
	struct wire_notice notice = {.is_generic = true, .type = WIRE_NOTICE_INFORMATIONAL,
				     .producer = WIRE_PRODUCER_CLASS_MANAGER,
				     .trap_number = trap, .issuer_lid = 10};
	struct rdma_ah_attr attr = {.dlid = dlid, .port_num = 1};
	struct ib_mad_hdr *hdr = buf->mad;

	memcpy(notice.details + 6, gid, sizeof(*gid));
	hdr->base_version = 1;
	hdr->mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	hdr->class_version = IB_SA_CLASS_VERSION;
	hdr->method = IB_MGMT_METHOD_REPORT;
	hdr->tid = cpu_to_be64((u64)sa->agent->hi_tid << 32 | trap);
	hdr->attr_id = cpu_to_be16(IB_SA_ATTR_NOTICE);
	wire_notice_encode(&notice, (u8 *)buf->mad + IB_MGMT_SA_HDR);
	buf->ah = rdma_create_ah(sa->agent->qp->pd, &attr, 0);
	buf->timeout_ms = 100;
	assert_int_equal(ib_post_send_mad(buf, NULL), 0);
}

/* --- the net of every test --- */

static struct net *net;
static struct fake_sa *sa;
static struct ib_device *device; /* the client's, of node 1 */
static struct ib_sa_client client;

static inline int sa_setup(void **state)
{
	net = net_create(3);
	if (ib_sa_init(net->rt))
		return -1;
	sa = fake_sa_open(net->node[0]);
	device = &net->node[1]->ib;
	ib_sa_register_client(&client);
	return 0;
}

static inline int sa_teardown(void **state)
{
	ib_sa_unregister_client(&client);
	rt_sim_run_for(net->rt, 10 * NSEC_PER_SEC);
	ib_sa_cleanup(net->rt);
	fake_sa_close(sa);
	assert_int_equal(net_destroy(net), 0);
	return 0;
}

static inline void run_ms(u64 ms)
{
	rt_sim_run_for(net->rt, ms * NSEC_PER_MSEC);
}

static inline void port_event(enum ib_event_type type)
{
	ib_dispatch_event(&(struct ib_event){.device = device, .element.port_num = 1, .event = type});
	run_ms(1);
}

#endif
