/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Gives each verb that takes more than one object an object of another context, or none, in the
 * place of one of its own, and checks that the verb refuses it with the errno of its man page,
 * and that it accepts its own. Both contexts have made the same objects in the same order, so
 * that a handle of one is most likely a handle of the other as well.
 *
 * Prints each call that was not answered as it should be, and then how many were made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "fixture.h"

#define BYTES 4096

/** struct side - a context, and one of everything that belongs to it */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_td *td;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_mw *mw[2]; /* of type 1, of type 2 */
	struct ibv_dm *dm;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp, *target;
	struct ibv_ah *ah;
	/* of Ethernet alone */
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_counters *counters;
	struct ibv_qp *raw;
	char memory[BYTES] __attribute__((aligned(BYTES)));
};

static struct side own, other;
static bool is_ethernet;
static unsigned made_calls, wrong;

static void expect(const char *call, int got, int wanted)
{
	made_calls++;
	if (got == wanted)
		return;
	wrong++;
	printf("%s: %d (%s), not %d\n", call, got, strerror(got), wanted);
}

#define ACCEPTED(call)	     expect(#call, call, 0)
#define REFUSED(call, error) expect(#call, call, error)

/* --- each verb: it makes an object and ends it. Return: 0; errno --- */

/* with nothing but a PD, verbs.h calls ibv_create_qp(), which cannot do without one */
#define WITH_PD (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS)

static int qp_of(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC, .send_cq = send, .recv_cq = recv,
					   .srq = srq, .comp_mask = WITH_PD, .pd = pd};
	struct ibv_qp *qp = ibv_create_qp_ex(own.context, &init);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int xrc_initiator_of(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_SEND, .send_cq = cq,
					   .comp_mask = WITH_PD, .pd = pd};
	struct ibv_qp *qp = ibv_create_qp_ex(own.context, &init);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static struct ibv_qp *make_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};

	return ibv_create_qp_ex(own.context, &init);
}

static int xrc_target_of(struct ibv_xrcd *xrcd)
{
	struct ibv_qp *qp = make_target(xrcd);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int opened_target_of(struct ibv_xrcd *xrcd, const struct ibv_qp *target)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target->qp_num, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *qp = ibv_open_qp(own.context, &attr);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int srq_of(enum ibv_srq_type type, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
		  struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = type, .pd = pd, .xrcd = xrcd, .cq = cq, .tm_cap = {1, 1}};
	struct ibv_srq *srq;

	if (type == IBV_SRQT_TM)
		init.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	if (type == IBV_SRQT_XRC)
		init.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD;
	srq = ibv_create_srq_ex(own.context, &init);
	return srq ? ibv_destroy_srq(srq) : errno;
}

static int cq_on(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(own.context, 1, NULL, channel, 0);

	return cq ? ibv_destroy_cq(cq) : errno;
}

static int cq_in(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					   .parent_domain = parent};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(own.context, &attr);

	return cq ? ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) : errno;
}

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};

	return ibv_alloc_parent_domain(own.context, &attr);
}

static int parent_domain_of(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_pd *parent = parent_of(pd, td);

	return parent ? ibv_dealloc_pd(parent) : errno;
}

static int dm_region_of(struct ibv_pd *pd, struct ibv_dm *dm)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);

	return mr ? ibv_dereg_mr(mr) : errno;
}

static int moved_region_to(struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(own.pd, own.memory, 64, 0);
	int rc;

	CHECK(mr);
	rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) ? errno : 0;
	CHECK(!ibv_dereg_mr(mr));
	return rc;
}

static int imported_region_of(struct ibv_pd *pd, const struct ibv_mr *mr)
{
	struct ibv_mr *imported = ibv_import_mr(pd, mr->handle);

	if (!imported)
		return errno;
	ibv_unimport_mr(imported);
	return 0;
}

static int advised(struct ibv_pd *pd, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};

	return ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int advised_on_demand(struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(own.pd, own.memory, 64, IBV_ACCESS_ON_DEMAND);
	int rc;

	CHECK(mr);
	rc = advised(pd, mr);
	CHECK(!ibv_dereg_mr(mr));
	return rc;
}

/* the release of what was bound follows */
static int bound(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind bind = {
		.bind_info = {mr, mr ? (uintptr_t)mr->addr : 0, 8, IBV_ACCESS_REMOTE_WRITE}};

	return ibv_bind_mw(qp, mw, &bind);
}

static int group(struct ibv_qp *qp)
{
	union ibv_gid gid = {.raw = {0xff, 0x12, [15] = 1}};
	int rc = ibv_attach_mcast(qp, &gid, 0xc001);

	return rc ? rc : ibv_detach_mcast(qp, &gid, 0xc001);
}

/* --- Ethernet --- */

static struct ibv_wq *make_wq(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};

	return ibv_create_wq(pd ? pd->context : own.context, &attr);
}

static int wq_of(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};
	struct ibv_wq *wq = ibv_create_wq(own.context, &attr);

	return wq ? ibv_destroy_wq(wq) : errno;
}

static int table_of(struct ibv_wq *wq)
{
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &wq};
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(own.context, &attr);

	return table ? ibv_destroy_rwq_ind_table(table) : errno;
}

static int spreading_qp_of(struct ibv_pd *pd, struct ibv_rwq_ind_table *table)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key), .rx_hash_key = key,
				 .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4}};
	struct ibv_qp *qp = ibv_create_qp_ex(own.context, &init);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int rule_with(struct ibv_counters *counters)
{
	struct ibv_flow *flow = counting_rule(own.raw, NULL, counters);

	return flow ? ibv_destroy_flow(flow) : errno;
}

/* a rule of own.raw, which counts into own.counters already */
static int counted_by(struct ibv_counters *counters)
{
	struct ibv_counter_attach_attr point = {.counter_desc = IBV_COUNTER_BYTES, .index = 3};
	struct ibv_flow *flow = counting_rule(own.raw, NULL, own.counters);
	int rc;

	CHECK(flow);
	rc = ibv_attach_counters_point_flow(counters, &point, flow);
	CHECK(!ibv_destroy_flow(flow));
	return rc;
}

static void open_ethernet(struct side *s)
{
	struct ibv_counters_init_attr init = {0};
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &s->wq};

	CHECK((s->wq = make_wq(s->pd, s->cq)));
	CHECK((s->table = ibv_create_rwq_ind_table(s->context, &attr)));
	CHECK((s->counters = ibv_create_counters(s->context, &init)));
	s->raw = make_raw_qp(s->pd, s->cq, 1);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTR; state++)
		move_raw_qp(s->raw, (enum ibv_qp_state)state);
}

/* --- completions: what the adapter alone can see --- */

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {.path_mtu = IBV_MTU_256,
				   .dest_qp_num = qp->qp_num, .ah_attr = {.port_num = 1, .is_global = 1}};

	CHECK(!ibv_query_port(qp->context, 1, &port));
	attr.ah_attr.dlid = port.lid;
	attr.ah_attr.grh.hop_limit = 1;
	CHECK(!ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid));
	CHECK(!raise_connected_qp(qp, attr, IBV_QPS_RTS));
}

/* The status of a request on a QP of its own, which speaks to itself. */
static int done(struct ibv_send_wr wr, struct ibv_sge sge)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = own.cq, .recv_cq = own.cq,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
						.max_recv_sge = 1}, .sq_sig_all = 1};
	struct ibv_sge in = {(uintptr_t)own.memory, 64, own.mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_qp *qp = ibv_create_qp(own.pd, &init);
	struct ibv_send_wr *bad;
	struct ibv_wc wc = {.wr_id = 1};
	int n = 0;

	CHECK(qp);
	to_rts(qp);
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	if (sge.length) {
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (n <= 0 || wc.wr_id) {
		n = ibv_poll_cq(own.cq, 1, &wc);
		CHECK(n >= 0);
	}
	CHECK(!ibv_destroy_qp(qp)); /* the completion of the receive leaves the CQ */
	return (int)wc.status;
}

static int sent_from(const struct ibv_mr *mr)
{
	return done((struct ibv_send_wr){.opcode = IBV_WR_SEND},
		    (struct ibv_sge){(uintptr_t)mr->addr, 8, mr->lkey});
}

static int bound_in_the_queue(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {mw, ibv_inc_rkey(mw->rkey),
			    {mr, (uintptr_t)mr->addr, 8, IBV_ACCESS_REMOTE_WRITE}}};

	return done(wr, (struct ibv_sge){0});
}

/* --- the calls --- */

static void open_side(struct side *s)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_alloc_dm_attr dm = {.length = BYTES};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
						       IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1, .oflags = O_CREAT};
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4}};

	s->context = open_first_device();
	CHECK((s->pd = ibv_alloc_pd(s->context)) && (s->td = ibv_alloc_td(s->context, &td)));
	CHECK((s->channel = ibv_create_comp_channel(s->context)));
	CHECK((s->cq = ibv_create_cq(s->context, 16, NULL, NULL, 0)));
	CHECK((s->mr = ibv_reg_mr(s->pd, s->memory, BYTES,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_MW_BIND)));
	CHECK((s->mw[0] = ibv_alloc_mw(s->pd, IBV_MW_TYPE_1)));
	CHECK((s->mw[1] = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2)));
	CHECK((s->dm = ibv_alloc_dm(s->context, &dm)));
	CHECK((s->srq = ibv_create_srq(s->pd, &srq)));
	CHECK((s->xrcd = ibv_open_xrcd(s->context, &xrcd)));
	qp.send_cq = qp.recv_cq = s->cq;
	CHECK((s->qp = ibv_create_qp(s->pd, &qp)));
	if (is_ethernet)
		open_ethernet(s);
}

static void try_queues(void)
{
	struct ibv_qp *target;

	ACCEPTED(qp_of(own.pd, own.cq, own.cq, NULL));
	ACCEPTED(qp_of(own.pd, own.cq, own.cq, own.srq));
	REFUSED(qp_of(NULL, own.cq, own.cq, NULL), EINVAL);
	REFUSED(qp_of(own.pd, NULL, own.cq, NULL), EINVAL);
	REFUSED(qp_of(own.pd, own.cq, NULL, NULL), EINVAL);
	REFUSED(qp_of(other.pd, own.cq, own.cq, NULL), EINVAL);
	REFUSED(qp_of(own.pd, other.cq, own.cq, NULL), EINVAL);
	REFUSED(qp_of(own.pd, own.cq, other.cq, NULL), EINVAL);
	REFUSED(qp_of(own.pd, own.cq, own.cq, other.srq), EINVAL);
	ACCEPTED(xrc_initiator_of(own.pd, own.cq));
	REFUSED(xrc_initiator_of(NULL, own.cq), EINVAL);
	REFUSED(xrc_initiator_of(own.pd, NULL), EINVAL);
	REFUSED(xrc_initiator_of(other.pd, own.cq), EINVAL);
	REFUSED(xrc_initiator_of(own.pd, other.cq), EINVAL);
	ACCEPTED(xrc_target_of(own.xrcd));
	REFUSED(xrc_target_of(NULL), EINVAL);
	REFUSED(xrc_target_of(other.xrcd), EINVAL);
	CHECK((target = make_target(own.xrcd)));
	ACCEPTED(opened_target_of(own.xrcd, target));
	REFUSED(opened_target_of(NULL, target), EINVAL);
	REFUSED(opened_target_of(other.xrcd, target), EINVAL);
	REFUSED(opened_target_of(own.xrcd, own.qp), EINVAL);
	CHECK(!ibv_destroy_qp(target));
	ACCEPTED(srq_of(IBV_SRQT_TM, own.pd, NULL, own.cq));
	REFUSED(srq_of(IBV_SRQT_TM, NULL, NULL, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_TM, own.pd, NULL, NULL), EINVAL);
	REFUSED(srq_of(IBV_SRQT_TM, other.pd, NULL, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_TM, own.pd, NULL, other.cq), EINVAL);
	ACCEPTED(srq_of(IBV_SRQT_XRC, own.pd, own.xrcd, own.cq));
	REFUSED(srq_of(IBV_SRQT_XRC, NULL, own.xrcd, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_XRC, own.pd, NULL, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_XRC, own.pd, own.xrcd, NULL), EINVAL);
	REFUSED(srq_of(IBV_SRQT_XRC, other.pd, own.xrcd, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_XRC, own.pd, other.xrcd, own.cq), EINVAL);
	REFUSED(srq_of(IBV_SRQT_XRC, own.pd, own.xrcd, other.cq), EINVAL);
	ACCEPTED(cq_on(NULL));
	ACCEPTED(cq_on(own.channel));
	REFUSED(cq_on(other.channel), EINVAL);
}

static void try_domains(void)
{
	struct ibv_pd *parent = parent_of(own.pd, own.td);

	CHECK(parent);
	REFUSED(ibv_dealloc_td(own.td), EBUSY);
	ACCEPTED(cq_in(parent));
	REFUSED(cq_in(NULL), EINVAL);
	REFUSED(cq_in(own.pd), EINVAL); /* no parent domain */
	CHECK(!ibv_dealloc_pd(parent));
	ACCEPTED(parent_domain_of(own.pd, NULL));
	ACCEPTED(parent_domain_of(own.pd, own.td));
	REFUSED(parent_domain_of(NULL, NULL), EINVAL);
	REFUSED(parent_domain_of(other.pd, NULL), EINVAL);
	REFUSED(parent_domain_of(own.pd, other.td), EINVAL);
	ACCEPTED(ibv_dealloc_td(own.td));
}

static void try_memory(void)
{
	ACCEPTED(dm_region_of(own.pd, own.dm));
	REFUSED(dm_region_of(own.pd, other.dm), EINVAL);
	REFUSED(dm_region_of(other.pd, own.dm), EINVAL);
	ACCEPTED(moved_region_to(own.pd));
	REFUSED(moved_region_to(NULL), EINVAL);
	REFUSED(moved_region_to(other.pd), EINVAL);
	ACCEPTED(imported_region_of(own.pd, own.mr));
	REFUSED(imported_region_of(ibv_alloc_pd(own.context), own.mr), EINVAL);
	ACCEPTED(advised_on_demand(own.pd));
	REFUSED(advised_on_demand(other.pd), EFAULT);
	REFUSED(advised(own.pd, own.mr), EFAULT); /* is not paged on demand */
	to_rts(own.qp);
	ACCEPTED(bound(own.qp, own.mw[0], own.mr));
	REFUSED(bound(own.qp, own.mw[0], NULL), EINVAL);
	REFUSED(bound(own.qp, own.mw[1], own.mr), EINVAL); /* of type 2 */
	REFUSED(bound(own.qp, own.mw[0], other.mr), EPERM);
	REFUSED(bound(own.qp, other.mw[0], other.mr), EINVAL);
	REFUSED(bound(other.qp, own.mw[0], own.mr), EINVAL);
	REFUSED(group(own.qp), EINVAL); /* no UD QP */
}

static void try_requests(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(own.context);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(pd, own.memory, BYTES, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);

	CHECK(mr && mw);
	ACCEPTED(sent_from(own.mr));
	REFUSED(sent_from(mr), IBV_WC_LOC_PROT_ERR);
	REFUSED(sent_from(other.mr), IBV_WC_LOC_PROT_ERR);
	ACCEPTED(bound_in_the_queue(own.mw[1], own.mr));
	REFUSED(bound_in_the_queue(mw, mr), IBV_WC_MW_BIND_ERR);
	REFUSED(bound_in_the_queue(other.mw[1], other.mr), IBV_WC_MW_BIND_ERR);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_mw(mw) && !ibv_dealloc_pd(pd));
}

static void try_ethernet(void)
{
	ACCEPTED(wq_of(own.pd, own.cq));
	REFUSED(wq_of(NULL, own.cq), EINVAL);
	REFUSED(wq_of(own.pd, NULL), EINVAL);
	REFUSED(wq_of(other.pd, own.cq), EINVAL);
	REFUSED(wq_of(own.pd, other.cq), EINVAL);
	ACCEPTED(table_of(own.wq));
	REFUSED(table_of(NULL), EINVAL);
	REFUSED(table_of(other.wq), EINVAL);
	ACCEPTED(spreading_qp_of(own.pd, own.table));
	REFUSED(spreading_qp_of(NULL, own.table), EINVAL);
	REFUSED(spreading_qp_of(own.pd, NULL), EINVAL);
	REFUSED(spreading_qp_of(other.pd, own.table), EINVAL);
	REFUSED(spreading_qp_of(own.pd, other.table), EINVAL);
	ACCEPTED(rule_with(own.counters));
	REFUSED(rule_with(NULL), EINVAL);
	REFUSED(rule_with(other.counters), EINVAL);
	ACCEPTED(counted_by(own.counters));
	REFUSED(counted_by(other.counters), EINVAL);
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(context, 1, &port));
	is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	open_side(&own);
	open_side(&other);
	try_queues();
	try_domains();
	try_memory();
	try_requests();
	if (is_ethernet)
		try_ethernet();
	printf("%u calls, %u answered wrongly\n", made_calls, wrong);
	return wrong != 0;
}
