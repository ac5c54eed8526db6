/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Redirects connections. With dguid, requests for the service of TCP port `port` are refused
 * by a REJ that names the port with this GUID. Without, the CM class of the own port is moved
 * to a QP of this module: requests that arrive at QP1 are redirected there. With class, that one is
 * moved in place of the CM's, and the QP answers each Get.
 */
#include <linux/module.h>
#include <rdma/ib_cm.h>

#define TCP_SERVICES 0x0000000001060000ull /* A11.2: the port is added */
#define QKEY	     0x11223344
#define QP1_QKEY     0x80010000
#define RECEIVES     16
#define MAD_BYTES    296 /* with GRH */

static unsigned long long dguid;
module_param(dguid, ullong, 0444);
MODULE_PARM_DESC(dguid, "GUID of the port that has the service");
static int port = 7174;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "TCP port of the service");

static int class;
module_param(class, int, 0444);
MODULE_PARM_DESC(class, "management class to move: 0x21 or 0x32; 0: the CM's");

static bool stand_in;
module_param(stand_in, bool, 0444);
MODULE_PARM_DESC(stand_in, "the QP answers what arrives at QP1, too, for who follows no redirection");

#define CLASS_CONGESTION 0x21
#define CONGESTION_DATA	 64 /* where its attributes begin (A10.4) */
#define STATUS_REDIRECT	 0x0002 /* 13.4.7 */

/* A class answers QP1 of who asks, whose Q_Key is a controlled one: such a key in a request stands
 * for that of the sending pair (10.2.5). */
static u32 own_qkey(void)
{
	return class ? QP1_QKEY : QKEY;
}

/** struct moved - what the module has of a device */
struct moved {
	struct ib_device *device;
	u32 port_num;
	struct ib_cm_id *listener;
	union ib_gid gid;
	unsigned int num;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_mad_agent *agent;
	struct ib_mad_agent *gsi; /* at QP1, for what has not been redirected yet */
	struct ib_class_port_info info; /* that it answers with */
	u8 buffer[RECEIVES][MAD_BYTES];
};

/* --- a service that is at another port --- */

static int on_request(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct moved *m = id->context;

	if (event->event != IB_CM_REQ_RECEIVED)
		return 0;
	m->num++;
	pr_info("redirected %u\n", m->num);
	ib_send_cm_rej(id, IB_CM_REJ_PORT_REDIRECT, &m->gid, sizeof(m->gid), NULL, 0);
	return 1; /* the id of this request is done */
}

static int redirect_service(struct moved *m)
{
	int ret = ib_query_gid(m->device, m->port_num, 0, &m->gid);

	m->gid.global.interface_id = cpu_to_be64(dguid);
	m->listener = ib_create_cm_id(m->device, on_request, m);
	if (ret || IS_ERR(m->listener))
		return ret ? ret : (int)PTR_ERR(m->listener);
	return ib_cm_listen(m->listener, cpu_to_be64(TCP_SERVICES + port), 0);
}

/* --- a class with a QP of its own --- */

static int post(struct moved *m, u8 *buffer)
{
	struct ib_sge sge = {(uintptr_t)buffer, MAD_BYTES, m->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = (uintptr_t)buffer, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(m->qp, &wr, NULL);
}

static void on_completion(struct ib_cq *cq, void *context)
{
	struct moved *m = context;
	struct ib_wc wc;

	do {
		while (ib_poll_cq(cq, 1, &wc) > 0) {
			bool received = wc.status == IB_WC_SUCCESS && wc.opcode == IB_WC_RECV;

			if (received)
				pr_info("class message %u at QP 0x%06x\n", ++m->num, m->qp->qp_num);
			ib_process_mad_wc(m->agent, &wc);
			if (received)
				post(m, (u8 *)(uintptr_t)wc.wr_id);
		}
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static int open_qp(struct moved *m)
{
	struct ib_cq_init_attr cq_attr = {.cqe = 2 * RECEIVES};
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_UD,
				       .cap = {.max_send_wr = 4, .max_recv_wr = RECEIVES,
					       .max_send_sge = 1, .max_recv_sge = 1}};
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = (u8)m->port_num, .qkey = own_qkey()};
	int ret;

	m->pd = ib_alloc_pd(m->device, 0);
	m->cq = ib_create_cq(m->device, on_completion, NULL, m, &cq_attr);
	if (IS_ERR(m->pd) || IS_ERR(m->cq))
		return -ENOMEM;
	init.send_cq = init.recv_cq = m->cq;
	m->qp = ib_create_qp(m->pd, &init);
	if (IS_ERR(m->qp))
		return (int)PTR_ERR(m->qp);
	ret = ib_modify_qp(m->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	for (int i = 0; i < RECEIVES && !ret; i++)
		ret = post(m, m->buffer[i]);
	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(m->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ? ret : ib_modify_qp(m->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

static void on_answered(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

/* @data: of the answer, as much as fits; @num bytes of it are given */
static void answer(struct ib_mad_agent *agent, struct ib_pd *pd, struct ib_mad_recv_wc *wc,
		   u16 status, const void *data, size_t num)
{
	int at = class == CLASS_CONGESTION ? CONGESTION_DATA : ib_get_mad_data_offset((u8)class);
	struct ib_mad mad = *wc->recv_buf.mad;
	struct ib_ah *ah = ib_create_ah_from_wc(pd, wc->wc, wc->recv_buf.grh, agent->port_num);
	struct ib_mad_send_buf *buf =
		ib_create_send_mad(agent, wc->wc->src_qp, wc->wc->pkey_index, 0, IB_MGMT_MAD_HDR,
				   IB_MGMT_MAD_DATA, GFP_ATOMIC, IB_MGMT_BASE_VERSION);

	mad.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	mad.mad_hdr.status = cpu_to_be16(status);
	memcpy((u8 *)&mad + at, data, num);
	if (IS_ERR(ah) || IS_ERR(buf)) {
		pr_err("no answer\n");
		return;
	}
	ib_set_mad_contents(buf, &mad);
	buf->ah = ah;
	if (ib_post_send_mad(buf, NULL))
		pr_err("the answer was not sent\n");
}

static void on_own_qp(struct ib_mad_agent *agent, struct ib_mad_send_buf *request,
		      struct ib_mad_recv_wc *wc)
{
	static const u8 congestion_info[] = {0, 1, 7}; /* credit starvation; 7 blocks of its table */
	struct moved *m = agent->context;

	if (class == CLASS_CONGESTION)
		answer(m->agent, m->pd, wc, 0, congestion_info, sizeof(congestion_info));
	else
		answer(m->agent, m->pd, wc, 0, m->device->node_name,
		       strlen(m->device->node_name) + 1);
	ib_free_recv_mad(wc);
}

static void on_gsi(struct ib_mad_agent *agent, struct ib_mad_send_buf *request,
		   struct ib_mad_recv_wc *wc)
{
	struct moved *m = agent->context;

	if (stand_in) {
		on_own_qp(agent, request, wc);
		return;
	}
	pr_info("class 0x%x is redirected\n", class);
	answer(agent, agent->qp->pd, wc, STATUS_REDIRECT, &m->info, sizeof(m->info));
	ib_free_recv_mad(wc);
}

static int move_class(struct moved *m)
{
	struct ib_mad_reg_req req = {.mgmt_class = (u8)class,
				     .mgmt_class_version = class == CLASS_CONGESTION ? 2 : 1,
				     .oui = {0x00, 0x14, 0x05}};

	req.method_mask[0] = 1ul << IB_MGMT_METHOD_GET;
	m->agent = ib_redirect_mad_qp(m->qp, 0, on_answered, on_own_qp, m);
	if (IS_ERR(m->agent))
		return (int)PTR_ERR(m->agent);
	m->gsi = ib_register_mad_agent(m->device, m->port_num, IB_QPT_GSI, &req, 0, on_answered,
				       on_gsi, m, 0);
	return PTR_ERR_OR_ZERO(m->gsi);
}

static int redirect_class(struct moved *m)
{
	struct ib_class_port_info info = {.redirect_pkey = cpu_to_be16(0xffff),
					  .redirect_qkey = cpu_to_be32(own_qkey())};
	struct ib_port_attr attr;
	int ret = open_qp(m);

	if (ret)
		return ret;
	if (!class)
		m->agent = ib_cm_serve_qp(m->qp);
	else
		ret = move_class(m);
	if (ret || IS_ERR(m->agent))
		return ret ? ret : (int)PTR_ERR(m->agent);
	ib_req_notify_cq(m->cq, IB_CQ_NEXT_COMP);
	ret = ib_query_gid(m->device, m->port_num, 0, &m->gid);
	if (!ret)
		ret = ib_query_port(m->device, m->port_num, &attr);
	if (ret)
		return ret;
	memcpy(info.redirect_gid, &m->gid, sizeof(m->gid));
	info.redirect_lid = cpu_to_be16((u16)attr.lid);
	info.redirect_qp = cpu_to_be32(m->qp->qp_num);
	m->info = info;
	return class ? 0 : ib_cm_redirect(m->device, m->port_num, &info);
}

/* --- devices --- */

static struct ib_client client;

static void moved_remove(struct ib_device *device, void *data)
{
	struct moved *m = data;

	if (!m)
		return;
	if (!IS_ERR_OR_NULL(m->listener))
		ib_destroy_cm_id(m->listener);
	if (!IS_ERR_OR_NULL(m->gsi))
		ib_unregister_mad_agent(m->gsi);
	if (!IS_ERR_OR_NULL(m->agent)) {
		if (!class)
			ib_cm_redirect(device, m->port_num, NULL);
		ib_unregister_mad_agent(m->agent);
	}
	if (!IS_ERR_OR_NULL(m->qp))
		ib_destroy_qp(m->qp);
	if (!IS_ERR_OR_NULL(m->cq))
		ib_destroy_cq(m->cq);
	if (!IS_ERR_OR_NULL(m->pd))
		ib_dealloc_pd(m->pd);
	kfree(m);
}

static int moved_add(struct ib_device *device)
{
	struct moved *m = kzalloc(sizeof(*m), GFP_KERNEL);
	int ret;

	if (!m)
		return -ENOMEM;
	m->device = device;
	m->port_num = rdma_start_port(device);
	ret = dguid ? redirect_service(m) : redirect_class(m);
	if (ret) {
		pr_err("nothing is redirected: error %d\n", ret);
		moved_remove(device, m);
		return ret;
	}
	ib_set_client_data(device, &client, m);
	return 0;
}

static struct ib_client client = {.name = "redirect", .add = moved_add, .remove = moved_remove};

static int __init redirect_init(void)
{
	return ib_register_client(&client);
}

static void __exit redirect_exit(void)
{
	ib_unregister_client(&client);
}

module_init(redirect_init);
module_exit(redirect_exit);
MODULE_LICENSE("Dual BSD/GPL");
