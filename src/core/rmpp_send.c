/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RMPP's sending side (IBA v1 13.6.6.1): segmentation of messages. A segment is
 * sent when the work request of the previous one has completed, up to the end
 * of the window. There the sender waits for an ACK. If none arrives, it
 * continues with the segment after the last acknowledged one.
 */
#include "core/mad_priv.h"

#define ACK_TIMEOUT_MS 2000

static void fill_header(struct mad_send *send)
{
	struct ib_rmpp_mad *mad = send->buf.mad;
	u8 flags = IB_MGMT_RMPP_FLAG_ACTIVE;
	int bytes = 0;

	/* 13.6.2.3: the first segment states the length of the message, the last one the number of
	 * its own bytes that are used */
	if (send->seg_num == 1) {
		flags |= IB_MGMT_RMPP_FLAG_FIRST;
		bytes = send->buf.seg_count * send->buf.seg_rmpp_size - send->pad;
	}
	if (send->seg_num == send->buf.seg_count) {
		flags |= IB_MGMT_RMPP_FLAG_LAST;
		bytes = send->buf.seg_rmpp_size - send->pad;
	}
	/* programs leave these fields to the kernel; OpenSM sets them to 0 */
	mad->rmpp_hdr.rmpp_version = send->agent->agent.rmpp_version;
	mad->rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_DATA;
	mad->rmpp_hdr.rmpp_status = IB_MGMT_RMPP_STATUS_SUCCESS;
	ib_set_rmpp_flags(&mad->rmpp_hdr, flags);
	mad->rmpp_hdr.seg_num = cpu_to_be32((u32)send->seg_num);
	mad->rmpp_hdr.paylen_newwin = cpu_to_be32((u32)bytes);
}

static int send_next(struct mad_send *send)
{
	send->seg_num++;
	fill_header(send);
	return mad_transmit(send);
}

int rmpp_send_start(struct mad_send *send)
{
	send->seg_num = send->last_ack = 0;
	send->newwin = MIN(rmpp_recv_window(send), send->buf.seg_count);
	return send_next(send);
}

static int ack_timeout_ms(const struct mad_send *send)
{
	int ms = send->buf.timeout_ms;

	return ms && ms < ACK_TIMEOUT_MS ? ms : ACK_TIMEOUT_MS;
}

bool rmpp_send_sent(struct mad_send *send)
{
	if (send->last_ack == send->buf.seg_count)
		return false;
	if (send->seg_num >= send->newwin)
		mad_send_wait(send, ack_timeout_ms(send));
	else if (send_next(send))
		mad_send_finish(send, IB_WC_GENERAL_ERR, 0);
	return true;
}

int rmpp_send_retry(struct mad_send *send)
{
	if (send->last_ack == send->buf.seg_count) /* it was the response that did not arrive */
		return rmpp_send_start(send);
	send->seg_num = send->last_ack;
	return send_next(send);
}

/* ABORT, too many retries: the receiver need not wait for the remaining segments */
void rmpp_send_gave_up(struct mad_send *send)
{
	struct mad_send *abort = mad_send_alloc(NULL, send->mqp, 0, IB_MGMT_MAD_HDR, 0);
	struct ib_rmpp_mad *mad, *sent = send->buf.mad;
	struct rdma_ah_attr attr;

	if (!abort)
		return;
	mad = abort->buf.mad;
	mad->mad_hdr = sent->mad_hdr;
	mad->rmpp_hdr = sent->rmpp_hdr;
	mad->rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_ABORT;
	mad->rmpp_hdr.rmpp_status = IB_MGMT_RMPP_STATUS_TMR;
	mad->rmpp_hdr.seg_num = mad->rmpp_hdr.paylen_newwin = 0;
	ib_set_rmpp_flags(&mad->rmpp_hdr, IB_MGMT_RMPP_FLAG_ACTIVE);
	abort->wr = send->wr;
	if (!rdma_query_ah(send->buf.ah, &attr))
		abort->buf.ah = rdma_create_ah(send->mqp->qp->pd, &attr, 0);
	if (IS_ERR(abort->buf.ah))
		abort->buf.ah = NULL;
	if (!abort->buf.ah || mad_transmit(abort))
		mad_send_free(abort);
}

static void acknowledged(struct mad_agent *agent, struct mad_send *send, struct mad_recv *recv)
{
	const struct ib_mad_hdr *hdr = send->buf.mad;

	rt_timer_disarm(&send->timer);
	if (send->buf.timeout_ms && hdr->method == IB_SA_METHOD_GET_MULTI)
		rmpp_control(agent, recv, IB_MGMT_RMPP_TYPE_ACK, IB_MGMT_RMPP_STATUS_SUCCESS, 0,
			     RMPP_WINDOW); /* 13.6.6.3: the response may be sent */
	if (send->posted)
		return; /* a segment was sent again, and its completion continues the transfer */
	if (send->buf.timeout_ms)
		mad_send_wait(send, send->buf.timeout_ms);
	else
		mad_send_finish(send, IB_WC_SUCCESS, 0);
}

void rmpp_send_ack(struct mad_agent *agent, struct mad_recv *recv)
{
	const struct ib_rmpp_hdr *hdr = &recv->packet.rmpp.rmpp_hdr;
	struct mad_send *send = mad_match_find(agent, recv);
	u32 seg = be32_to_cpu(hdr->seg_num), newwin = be32_to_cpu(hdr->paylen_newwin);

	if (newwin < seg) {
		rmpp_abort(agent, recv, IB_MGMT_RMPP_STATUS_W2S);
		return;
	}
	if (!send || !send->rmpp || send->last_ack == send->buf.seg_count)
		return; /* the ACK is late or a duplicate */
	if (seg > (u32)send->buf.seg_count) {
		rmpp_abort(agent, recv, IB_MGMT_RMPP_STATUS_S2B);
		return;
	}
	if (seg < (u32)send->last_ack || newwin < (u32)send->newwin)
		return; /* a newer ACK has overtaken it */
	if (seg > (u32)send->last_ack) {
		send->last_ack = (int)seg;
		send->seg_num = MAX(send->seg_num, send->last_ack);
		send->ack_retries_left = RMPP_ACK_RETRIES;
	}
	send->newwin = (int)MIN(newwin, (u32)send->buf.seg_count);
	if (send->last_ack == send->buf.seg_count) {
		acknowledged(agent, send, recv);
	} else if (!send->posted && send->seg_num < send->newwin) {
		rt_timer_disarm(&send->timer);
		if (send_next(send))
			mad_send_finish(send, IB_WC_GENERAL_ERR, 0);
	}
}

void rmpp_send_stop(struct mad_agent *agent, struct mad_recv *recv)
{
	struct mad_send *send = mad_match_find(agent, recv);

	if (send)
		mad_send_finish(send, IB_WC_REM_ABORT_ERR,
				recv->packet.rmpp.rmpp_hdr.rmpp_status);
}
