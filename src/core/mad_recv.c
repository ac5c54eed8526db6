/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The path of a received MAD: it is validated, a directed route is followed, the device's
 * agents (SMA, PMA) may answer it, and otherwise the agent of a client gets it. If there is
 * none, the requester gets an error.
 */
#include <string.h>

#include "core/mad_priv.h"
#include "core/trace.h"
#include "wire/cm.h"

void ib_free_recv_mad(struct ib_mad_recv_wc *mad_recv_wc)
{
	struct list_head *segments = &mad_recv_wc->rmpp_list;

	/* the first segment is on the list too, and is freed last */
	while (!list_empty(segments)) {
		struct ib_mad_recv_buf *buf =
			list_first_entry(segments, struct ib_mad_recv_buf, list);

		list_del(&buf->list);
		if (buf != &mad_recv_wc->recv_buf)
			rt_free(container_of(buf, struct mad_recv, recv_wc.recv_buf));
	}
	rt_free(mad_recv_of(mad_recv_wc));
}

void ib_coalesce_recv_mad(struct ib_mad_recv_wc *mad_recv_wc, void *buf)
{
	int offset = ib_get_mad_data_offset(mad_recv_wc->recv_buf.mad->mad_hdr.mgmt_class);
	int left = mad_recv_wc->mad_len, from = 0;
	struct ib_mad_recv_buf *segment;
	u8 *to = buf;

	list_for_each_entry(segment, &mad_recv_wc->rmpp_list, list) {
		int n = MIN(left, IB_MGMT_MAD_SIZE - from);

		memcpy(to, (u8 *)segment->mad + from, (size_t)n);
		to += n;
		left -= n;
		from = offset; /* headers once */
	}
}

size_t ib_take_recv_mad(struct ib_mad_recv_wc *mad_recv_wc, void *buf, size_t room)
{
	/* the first segment is freed with the message, so its header remains */
	struct ib_mad_recv_buf *first = &mad_recv_wc->recv_buf, *segment;
	int offset = ib_get_mad_data_offset(first->mad->mad_hdr.mgmt_class);
	u8 *to = buf;

	while (mad_recv_wc->mad_len > 0 && room - (size_t)(to - (u8 *)buf) >= IB_MGMT_MAD_SIZE) {
		int from, n;

		segment = list_first_entry(&mad_recv_wc->rmpp_list, struct ib_mad_recv_buf, list);
		from = segment == first ? 0 : offset;
		n = MIN(mad_recv_wc->mad_len, IB_MGMT_MAD_SIZE - from);
		memcpy(to, (u8 *)segment->mad + from, (size_t)n);
		to += n;
		mad_recv_wc->mad_len -= n;
		list_del(&segment->list);
		if (segment != first)
			rt_free(container_of(segment, struct mad_recv, recv_wc.recv_buf));
	}
	return (size_t)(to - (u8 *)buf);
}

static void init_recv_wc(struct mad_recv *recv)
{
	recv->recv_wc.mad_len = IB_MGMT_MAD_SIZE;
	list_add(&recv->recv_wc.recv_buf.list, &recv->recv_wc.rmpp_list);
}

static bool is_mad(const struct mad_recv *recv)
{
	const struct ib_mad_hdr *hdr = &recv->packet.mad.mad_hdr;
	struct mad_qp *mqp = recv->mqp;
	bool qp0 = mqp == &mqp->port->qp[IB_QPT_SMI];

	return recv->wc.byte_len == sizeof(recv->packet) &&
	       hdr->base_version == IB_MGMT_BASE_VERSION &&
	       mad_is_smp(hdr->mgmt_class) == qp0; /* 13.5.1 */
}

/* Return: true if the SMA or PMA has consumed it */
static bool device_answers(struct mad_recv *recv)
{
	struct ib_device *device = recv->mqp->port->device;
	const struct ib_mad_hdr *hdr = &recv->packet.mad.mad_hdr;
	struct ib_mad out = {0};
	size_t out_bytes = sizeof(out);
	u16 pkey_index = recv->wc.pkey_index;
	int result;

	if (!device->ops->process_mad)
		return false;
	result = device->ops->process_mad(device, 0, recv->mqp->port->port_num, &recv->wc,
					  recv->wc.wc_flags & IB_WC_GRH ? &recv->packet.grh : NULL,
					  &recv->packet.mad, &out, &out_bytes, &pkey_index);
	if (!(result & IB_MAD_RESULT_SUCCESS))
		return false;
	if (result & IB_MAD_RESULT_CONSUMED)
		return true;
	if (!(result & IB_MAD_RESULT_REPLY))
		return false;
	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		out.mad_hdr.status |= IB_SMP_DIRECTION;
	mad_reply(recv, &out);
	return true;
}

/* the requests that expect a response, and its method */
static const struct {
	u8 mgmt_class; /* 0: every class */
	u8 method, response;
} answered_methods[] = {
	{0, IB_MGMT_METHOD_GET, IB_MGMT_METHOD_GET_RESP},
	{0, IB_MGMT_METHOD_SET, IB_MGMT_METHOD_GET_RESP},
	{IB_MGMT_CLASS_SUBN_ADM, 0x12, 0x92}, /* GetTable */
	{IB_MGMT_CLASS_SUBN_ADM, 0x15, 0x95}, /* Delete */
};

/* 13.4.7: a request that no agent supports is answered with an error */
static void answer_unsupported(struct mad_recv *recv)
{
	struct ib_mad mad = recv->packet.mad;
	u16 status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	u8 class = mad.mad_hdr.mgmt_class;

	if (wire_cm_refuse((u8 *)&mad))
		mad_reply(recv, &mad);
	for (size_t i = 0; i < ARRAY_SIZE(answered_methods); i++) {
		if (answered_methods[i].method != mad.mad_hdr.method ||
		    (answered_methods[i].mgmt_class && answered_methods[i].mgmt_class != class))
			continue;
		mad.mad_hdr.method = answered_methods[i].response;
		mad.mad_hdr.status = cpu_to_be16(status);
		if (class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
			mad.mad_hdr.status |= IB_SMP_DIRECTION;
		mad_reply(recv, &mad);
		return;
	}
}

static struct rt_trace_at at(const struct mad_qp *mqp)
{
	return RT_TRACE_AT(mqp->port->device, mqp->port->port_num);
}

void mad_receive(struct mad_recv *recv)
{
	const struct ib_mad *mad = &recv->packet.mad;
	struct mad_agent *agent;

	init_recv_wc(recv);
	if (!is_mad(recv))
		goto drop;
	mad_snoop_recv(recv);
	trace_mad_receive(at(recv->mqp), mad, recv->wc.slid, recv->wc.src_qp);
	if (mad->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE &&
	    smi_receive(&recv->packet.smp, recv->mqp->port->port_num) != SMI_LOCAL)
		goto drop;
	if (device_answers(recv))
		goto drop;
	agent = mad_agent_find(recv->mqp, mad);
	if (agent) {
		mad_deliver(agent, recv);
		return;
	}
	trace_mad_unwanted(at(recv->mqp), mad);
	answer_unsupported(recv);
drop:
	ib_free_recv_mad(&recv->recv_wc);
}

static bool unmatched_rmpp(const struct mad_agent *agent, const struct mad_recv *recv)
{
	const struct ib_rmpp_mad *mad = &recv->packet.rmpp;

	return (agent->agent.flags & IB_MAD_USER_RMPP) &&
	       ib_is_mad_class_rmpp(mad->mad_hdr.mgmt_class) &&
	       (ib_get_rmpp_flags(&mad->rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE);
}

void mad_deliver(struct mad_agent *agent, struct mad_recv *recv)
{
	struct ib_mad_agent *a = &agent->agent;
	struct mad_send *send;

	trace_mad_deliver(at(agent->mqp), a->hi_tid, &recv->packet.mad);
	if (rmpp_is_active(agent, &recv->packet.mad)) {
		recv = rmpp_receive(agent, recv);
		if (!recv)
			return;
	}
	if (!ib_response_mad(&recv->packet.mad.mad_hdr)) {
		a->recv_handler(a, NULL, &recv->recv_wc);
		return;
	}
	send = mad_match_find(agent, recv);
	if (send) {
		/* The client sees the response first, and then that its request has ended. A
		 * cancellation in between is too late. */
		rt_timer_disarm(&send->timer);
		rt_tree_remove(&send->match_node);
		send->answered = true;
		a->recv_handler(a, &send->buf, &recv->recv_wc);
		mad_send_finish(send, IB_WC_SUCCESS, 0);
	} else if (unmatched_rmpp(agent, recv)) {
		a->recv_handler(a, NULL, &recv->recv_wc);
	} else {
		ib_free_recv_mad(&recv->recv_wc); /* a late response: its request has timed out */
	}
}

void mad_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct mad_recv *recv = container_of(wc->wr_cqe, struct mad_recv, cqe);

	list_del(&recv->node);
	recv->mqp->num_receives--;
	if (wc->status != IB_WC_SUCCESS) {
		rt_free(recv);
		return;
	}
	recv->wc = *wc;
	mad_receive(recv);
}
