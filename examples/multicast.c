/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A listener on a multicast group: each adapter joins the group by the subnet administrator,
 * which creates it with the first member, and prints what it hears. With the parameter
 * `text`, add() sends that to the group, once it has joined.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_sa.h>

#define QKEY	   0x11111111
#define BUFFERS	   8
#define GRH_BYTES  sizeof(struct ib_grh) /* before what a datagram QP receives */
#define TEXT_BYTES 64

static char *text;
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "what to send to the group; none: listen alone");

static struct ib_client client;
static struct ib_sa_client sa_client;
/* link-local, transient, of nobody in particular */
static const union ib_gid group = {{0xff, 0x12, 0x53, 0x49, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x53, 0x54,
				    0x49, 0x42}};

struct adapter {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_sa_multicast *member;
	bool attached;
	struct completion done; /* joined; sent */
	int status;
	char buffer[BUFFERS][GRH_BYTES + TEXT_BYTES];
	char out[TEXT_BYTES];
};

/* --- datagrams --- */

static int post_recv(struct adapter *a, u64 i)
{
	struct ib_sge sge = {(uintptr_t)a->buffer[i], sizeof(a->buffer[i]), a->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(a->qp, &wr, NULL);
}

static void on_completion(struct ib_cq *cq, void *context)
{
	struct adapter *a = context;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (wc.opcode != IB_WC_RECV) {
			a->status = wc.status ? -EIO : 0;
			complete(&a->done);
		} else if (!wc.status) {
			pr_info("heard '%.*s' from lid %u\n", (int)(wc.byte_len - GRH_BYTES),
				a->buffer[wc.wr_id] + GRH_BYTES, wc.slid);
			post_recv(a, wc.wr_id);
		}
	}
}

static int send_text(struct adapter *a)
{
	struct ib_sge sge = {(uintptr_t)a->out, 0, a->pd->local_dma_lkey};
	struct ib_ud_wr wr = {.wr = {.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND},
			      .remote_qpn = IB_MULTICAST_QPN,
			      .remote_qkey = QKEY};
	struct rdma_ah_attr to;
	int ret = ib_init_ah_from_mcmember(a->device, rdma_start_port(a->device), &a->member->rec, &to);

	if (ret)
		return ret;
	wr.ah = rdma_create_ah(a->pd, &to, 0);
	if (IS_ERR(wr.ah))
		return PTR_ERR(wr.ah);
	sge.length = (u32)snprintf(a->out, sizeof(a->out), "%.*s", TEXT_BYTES - 1, text);
	ret = ib_post_send(a->qp, &wr.wr, NULL);
	if (!ret) {
		wait_for_completion(&a->done);
		ret = a->status;
	}
	rdma_destroy_ah(wr.ah, 0);
	return ret;
}

/* from a new QP to one that sends and receives */
static int start_qp(struct adapter *a)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = (u8)rdma_start_port(a->device), .qkey = QKEY};
	int ret = ib_modify_qp(a->qp, &attr,
			       IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);

	for (u64 i = 0; !ret && i < BUFFERS; i++)
		ret = post_recv(a, i);
	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(a->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ? ret : ib_modify_qp(a->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* --- the group --- */

/* Return: 0; other: the membership is freed */
static int on_joined(int status, struct ib_sa_multicast *member)
{
	struct adapter *a = member->context;

	if (status == -ENETRESET) {
		pr_err("the membership is lost\n");
		return 0;
	}
	a->status = status;
	if (!status)
		a->status = ib_attach_mcast(a->qp, &member->rec.mgid, be16_to_cpu(member->rec.mlid));
	a->attached = !a->status;
	complete(&a->done);
	return 0;
}

static int join(struct adapter *a)
{
	const u32 port = rdma_start_port(a->device);
	struct ib_sa_mcmember_rec rec = {
		.mgid = group, .qkey = cpu_to_be32(QKEY), .pkey = cpu_to_be16(0xffff), .join_state = 1};
	struct ib_sa_multicast *member;
	int ret = ib_query_gid(a->device, port, 0, &rec.port_gid);

	if (ret)
		return ret;
	/* what a group that does not exist yet is to be like is among these */
	member = ib_sa_join_multicast(&sa_client, a->device, port, &rec,
				      IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
					      IB_SA_MCMEMBER_REC_JOIN_STATE |
					      IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_PKEY |
					      IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL |
					      IB_SA_MCMEMBER_REC_TRAFFIC_CLASS,
				      GFP_KERNEL, on_joined, a);
	if (IS_ERR(member))
		return PTR_ERR(member);
	a->member = member;
	wait_for_completion(&a->done);
	if (!a->status)
		pr_info("%s is a member: mlid 0x%x\n", a->device->name, be16_to_cpu(member->rec.mlid));
	return a->status;
}

/* --- adapters --- */

static void close_adapter(struct adapter *a)
{
	if (a->attached)
		ib_detach_mcast(a->qp, &a->member->rec.mgid, be16_to_cpu(a->member->rec.mlid));
	if (a->member)
		ib_sa_free_multicast(a->member);
	if (!IS_ERR_OR_NULL(a->qp))
		ib_destroy_qp(a->qp);
	if (!IS_ERR_OR_NULL(a->cq))
		ib_destroy_cq(a->cq);
	if (!IS_ERR_OR_NULL(a->pd))
		ib_dealloc_pd(a->pd);
	kfree(a);
}

static int open_adapter(struct adapter *a)
{
	struct ib_cq_init_attr cq_attr = {.cqe = 2 * BUFFERS};
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {.max_send_wr = 1, .max_recv_wr = BUFFERS, .max_send_sge = 1, .max_recv_sge = 1}};
	int ret;

	a->pd = ib_alloc_pd(a->device, 0);
	if (IS_ERR(a->pd))
		return PTR_ERR(a->pd);
	a->cq = ib_create_cq(a->device, on_completion, NULL, a, &cq_attr);
	if (IS_ERR(a->cq))
		return PTR_ERR(a->cq);
	ib_req_notify_cq(a->cq, IB_CQ_NEXT_COMP);
	init.send_cq = init.recv_cq = a->cq;
	a->qp = ib_create_qp(a->pd, &init);
	if (IS_ERR(a->qp))
		return PTR_ERR(a->qp);
	ret = start_qp(a);
	return ret ? ret : join(a);
}

static int mcast_add(struct ib_device *device)
{
	struct adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int ret;

	if (!a)
		return -ENOMEM;
	a->device = device;
	init_completion(&a->done);
	ret = open_adapter(a);
	if (!ret && text)
		ret = send_text(a);
	if (ret) {
		pr_err("%s: error %d\n", device->name, ret);
		close_adapter(a);
		return ret;
	}
	ib_set_client_data(device, &client, a);
	return 0;
}

static void mcast_remove(struct ib_device *device, void *client_data)
{
	close_adapter(client_data);
}

static struct ib_client client = {.name = "multicast", .add = mcast_add, .remove = mcast_remove};

static int __init mcast_init(void)
{
	int ret;

	ib_sa_register_client(&sa_client);
	ret = ib_register_client(&client);
	if (ret)
		ib_sa_unregister_client(&sa_client);
	return ret;
}

static void __exit mcast_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(mcast_init);
module_exit(mcast_exit);
MODULE_LICENSE("Dual BSD/GPL");
