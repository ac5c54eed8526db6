/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device management agent of the ports of an adapter with targets, and its bit in the ports'
 * CapabilityMask. A change of this bit causes trap 144, after which initiators discover the targets. */
#include <errno.h>
#include <stdio.h>

#include "ulp/srpt/private.h"

#define VENDOR_ID 0x001405 /* the OUI of OpenIB, which software adapters use */

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static void describe(const struct srpt *srpt, struct srp_description *d)
{
	*d = (struct srp_description){
		.guid = srpt->guid,
		.vendor_id = VENDOR_ID,
		.device_id = 1,
		.send_queue_depth = SRPT_LIMIT_MOST,
		.send_size_bytes = SRP_MAX_IU_BYTES,
		.rdma_size_bytes = SCSI_MAX_TRANSFER_BYTES,
	};
	if (srpt->slot == 1)
		snprintf(d->id_string, sizeof(d->id_string), "softib SRP target of %.40s",
			 srpt->device->node_name);
	else
		snprintf(d->id_string, sizeof(d->id_string), "softib SRP target %u of %.40s",
			 srpt->slot, srpt->device->node_name);
}

static void reply(struct ib_mad_agent *agent, const struct ib_mad_recv_wc *in,
		  const u8 *mad)
{
	struct ib_mad_send_buf *buf;
	struct ib_ah *ah;

	ah = ib_create_ah_from_wc(agent->qp->pd, in->wc, in->recv_buf.grh,
				  agent->port_num);
	if (IS_ERR(ah))
		return;
	buf = ib_create_send_mad(agent, in->wc->src_qp, in->wc->pkey_index, 0,
				 IB_MGMT_DEVICE_HDR, IB_MGMT_DEVICE_DATA, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf)) {
		rdma_destroy_ah(ah, 0);
		return;
	}
	buf->ah = ah;
	ib_set_mad_contents(buf, mad);
	if (ib_post_send_mad(buf, NULL)) {
		ib_free_send_mad(buf);
		rdma_destroy_ah(ah, 0);
	}
}

static void received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		     struct ib_mad_recv_wc *in)
{
	const struct srpt_adapter *adapter = agent->context;
	struct srp_io_unit unit = {.change_id = adapter->change_id};
	u8 out[IB_MGMT_MAD_SIZE];

	for (unsigned int i = 0; i < SRP_CONTROLLERS; i++)
		if (adapter->target[i])
			describe(adapter->target[i], &unit.controller[i]);
	if (srp_describe(&unit, (const u8 *)in->recv_buf.mad, out))
		reply(agent, in, out);
	ib_free_recv_mad(in);
}

static int open_port(struct srpt_adapter *adapter, u32 port_num)
{
	struct ib_port_modify modify = {.set_port_cap_mask = IB_PORT_DEVICE_MGMT_SUP};
	const struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_DEVICE_MGMT,
		.mgmt_class_version = 1,
		.method_mask = {1ul << IB_MGMT_METHOD_GET | 1ul << IB_MGMT_METHOD_SET},
	};
	struct ib_mad_agent *agent;

	agent = ib_register_mad_agent(adapter->device, port_num, IB_QPT_GSI, &req, 0, sent,
				      received, adapter, 0);
	if (IS_ERR(agent))
		return (int)PTR_ERR(agent);
	adapter->agent[port_num - 1] = agent;
	return ib_modify_port(adapter->device, port_num, 0, &modify);
}

int srpt_agent_open(struct srpt_adapter *adapter)
{
	int ret = 0;

	adapter->agent =
		rt_zalloc(adapter->device->phys_port_cnt * sizeof(struct ib_mad_agent *));
	if (!adapter->agent)
		return -ENOMEM;
	for (u32 port = 1; !ret && port <= adapter->device->phys_port_cnt; port++)
		ret = open_port(adapter, port);
	return ret;
}

void srpt_agent_close(struct srpt_adapter *adapter)
{
	struct ib_port_modify modify = {.clr_port_cap_mask = IB_PORT_DEVICE_MGMT_SUP};

	for (u32 port = 1; adapter->agent && port <= adapter->device->phys_port_cnt; port++) {
		if (!adapter->agent[port - 1])
			continue;
		ib_modify_port(adapter->device, port, 0, &modify);
		ib_unregister_mad_agent(adapter->agent[port - 1]);
	}
	rt_free(adapter->agent);
}

void srpt_agent_announce(struct srpt_adapter *adapter)
{
	const struct ib_port_modify off = {.clr_port_cap_mask = IB_PORT_DEVICE_MGMT_SUP},
				    on = {.set_port_cap_mask = IB_PORT_DEVICE_MGMT_SUP};

	for (u32 port = 1; port <= adapter->device->phys_port_cnt; port++) {
		struct ib_port_modify modify = off;

		ib_modify_port(adapter->device, port, 0, &modify);
		modify = on;
		ib_modify_port(adapter->device, port, 0, &modify);
	}
}
