/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MAD services on a QP of the client's own: a class may be moved from QP1 to
 * a QP of its manager (IBA v1 13.5.2), which answers Get(ClassPortInfo) on
 * QP1 with the QP to use. The client keeps the QP, its completion queues and
 * the receive buffers; the MAD layer gives it matching, retries and RMPP.
 */
#include <string.h>

#include "core/mad_priv.h"

struct ib_mad_agent *ib_redirect_mad_qp(struct ib_qp *qp, u8 rmpp_version,
					ib_mad_send_handler send_handler,
					ib_mad_recv_handler recv_handler, void *context)
{
	struct mad_port *port = mad_port_get(qp->device, qp->port, IB_QPT_GSI);
	struct mad_agent *agent;
	struct mad_qp *mqp;

	if (IS_ERR(port) || qp->qp_type != IB_QPT_UD || qp->state != IB_QPS_RTS || !send_handler ||
	    !recv_handler || (rmpp_version && rmpp_version != IB_MGMT_RMPP_VERSION))
		return ERR_PTR(-EINVAL);
	mqp = rt_zalloc(sizeof(*mqp));
	if (!mqp)
		return ERR_PTR(-ENOMEM);
	mad_qp_setup(mqp, port, qp);
	agent = mad_agent_alloc(port, mqp, send_handler, recv_handler, context);
	if (!agent) {
		rt_free(mqp);
		return ERR_PTR(-ENOMEM);
	}
	agent->own_qp = mqp;
	agent->agent.rmpp_version = rmpp_version;
	list_add_tail(&agent->node, &port->agents);
	return &agent->agent;
}

static bool is_send(struct mad_qp *mqp, const struct ib_wc *wc)
{
	struct mad_send *send;

	list_for_each_entry(send, &mqp->posted, queue_node)
		if (&send->cqe == wc->wr_cqe)
			return true;
	return false;
}

static int receive(struct mad_agent *agent, const struct ib_wc *wc)
{
	struct mad_recv *recv;

	if (wc->status != IB_WC_SUCCESS || wc->byte_len != sizeof(recv->packet))
		return 0;
	recv = mad_recv_alloc(agent->mqp);
	if (!recv)
		return -ENOMEM;
	recv->wc = *wc;
	recv->wc.port_num = agent->port->port_num;
	memcpy(&recv->packet, (const void *)(uintptr_t)wc->wr_id, sizeof(recv->packet));
	recv->recv_wc.mad_len = IB_MGMT_MAD_SIZE;
	list_add(&recv->recv_wc.recv_buf.list, &recv->recv_wc.rmpp_list);
	mad_snoop_recv(recv);
	mad_deliver(agent, recv);
	return 0;
}

int ib_process_mad_wc(struct ib_mad_agent *mad_agent, struct ib_wc *wc)
{
	struct mad_agent *agent = mad_agent_of(mad_agent);

	if (!agent->own_qp)
		return -EINVAL;
	if (!is_send(agent->mqp, wc))
		return receive(agent, wc);
	mad_send_done(wc->qp->send_cq, wc);
	return 0;
}
