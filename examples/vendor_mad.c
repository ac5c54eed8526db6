/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A MAD agent of a vendor class: it answers Get with the name of its node's adapter, and
 * with the parameter `dlid` asks another node's first.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <rdma/ib_mad.h>

#define CLASS	   0x30
#define OUI	   {0x00, 0x14, 0x05}
#define TIMEOUT_MS 1000
#define RETRIES	   4

static int dlid;
module_param(dlid, int, 0444);
MODULE_PARM_DESC(dlid, "LID of the port to ask; 0: none");

static struct ib_client client;
static struct completion answered;

static void on_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	bool asked = wc->send_buf->context[0];

	if (wc->status)
		pr_err("not answered: status %d\n", wc->status);
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
	if (asked)
		complete(&answered);
}

/* Return: 0; -errno: @ah is destroyed */
static int post(struct ib_mad_agent *agent, struct ib_ah *ah, u32 qpn, u16 pkey_index,
		const struct ib_vendor_mad *mad, bool ask)
{
	struct ib_mad_send_buf *buf;
	int ret;

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	buf = ib_create_send_mad(agent, qpn, pkey_index, 0, IB_MGMT_VENDOR_HDR,
				 IB_MGMT_VENDOR_DATA, GFP_ATOMIC, IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf)) {
		rdma_destroy_ah(ah, 0);
		return PTR_ERR(buf);
	}
	ib_set_mad_contents(buf, mad);
	buf->ah = ah;
	buf->context[0] = ask ? agent : NULL;
	buf->timeout_ms = ask ? TIMEOUT_MS : 0;
	buf->retries = ask ? RETRIES : 0;
	ret = ib_post_send_mad(buf, NULL);
	if (ret) {
		rdma_destroy_ah(ah, 0);
		ib_free_send_mad(buf);
	}
	return ret;
}

static void on_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *request,
			struct ib_mad_recv_wc *wc)
{
	struct ib_vendor_mad mad = *(struct ib_vendor_mad *)wc->recv_buf.mad;

	if (request && mad.mad_hdr.status) {
		pr_err("lid %d refuses: status 0x%x\n", dlid, be16_to_cpu(mad.mad_hdr.status));
	} else if (request) {
		pr_info("lid %d is %.32s\n", dlid, (const char *)mad.data);
	} else {
		mad.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
		snprintf((char *)mad.data, sizeof(mad.data), "%s of %s", agent->device->name,
			 agent->device->node_name);
		post(agent,
		     ib_create_ah_from_wc(agent->qp->pd, wc->wc, wc->recv_buf.grh, agent->port_num),
		     wc->wc->src_qp, wc->wc->pkey_index, &mad, false);
	}
	ib_free_recv_mad(wc);
}

static void ask(struct ib_mad_agent *agent)
{
	struct rdma_ah_attr to = {.dlid = (u16)dlid, .port_num = agent->port_num};
	struct ib_vendor_mad mad = {.mad_hdr = {.base_version = IB_MGMT_BASE_VERSION,
						.mgmt_class = CLASS,
						.class_version = 1,
						.method = IB_MGMT_METHOD_GET,
						.tid = cpu_to_be64(1)},
				    .oui = OUI};

	if (!post(agent, rdma_create_ah(agent->qp->pd, &to, 0), 1, 0, &mad, true))
		wait_for_completion(&answered);
}

static int vendor_add(struct ib_device *device)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = CLASS, .mgmt_class_version = 1, .oui = OUI};
	struct ib_mad_agent *agent;

	req.method_mask[0] = 1ul << IB_MGMT_METHOD_GET;
	agent = ib_register_mad_agent(device, rdma_start_port(device), IB_QPT_GSI, &req, 0, on_sent,
				      on_received, NULL, 0);
	if (IS_ERR(agent))
		return PTR_ERR(agent);
	ib_set_client_data(device, &client, agent);
	if (dlid)
		ask(agent);
	return 0;
}

static void vendor_remove(struct ib_device *device, void *client_data)
{
	ib_unregister_mad_agent(client_data);
}

static struct ib_client client = {.name = "vendor_mad", .add = vendor_add, .remove = vendor_remove};

static int __init vendor_init(void)
{
	init_completion(&answered);
	return ib_register_client(&client);
}

static void __exit vendor_exit(void)
{
	ib_unregister_client(&client);
}

module_init(vendor_init);
module_exit(vendor_exit);
MODULE_LICENSE("Dual BSD/GPL");
