/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send buffers, and the life of a send: posted, waiting, done (mad_priv.h).
 * One timer per send: it runs while a response or an ACK is awaited; when it
 * fires the send is posted again, or is over.
 */
#include <string.h>

#include "core/mad_priv.h"
#include "core/trace.h"

/* --- buffers --- */

static int segment_count(int data_len, int seg_size)
{
	return data_len ? DIV_ROUND_UP(data_len, seg_size) : 1;
}

static void init_rmpp(struct mad_send *send)
{
	struct ib_rmpp_mad *mad = (void *)send->mad;
	int rest = send->buf.data_len % send->buf.seg_size;

	send->rmpp = true;
	send->segments = send->mad + IB_MGMT_MAD_SIZE;
	send->pad = rest || !send->buf.data_len ? send->buf.seg_size - rest : 0;
	ib_set_rmpp_flags(&mad->rmpp_hdr, IB_MGMT_RMPP_FLAG_ACTIVE);
}

static void on_timeout(struct rt_timer *timer);

struct mad_send *mad_send_alloc(struct mad_agent *agent, struct mad_qp *mqp, int rmpp,
				int hdr_len, int data_len)
{
	int seg_size = IB_MGMT_MAD_SIZE - hdr_len;
	int count = rmpp ? segment_count(data_len, seg_size) : 0;
	struct mad_send *send = rt_zalloc(sizeof(*send) + IB_MGMT_MAD_SIZE +
					  (size_t)count * (size_t)seg_size);

	if (!send)
		return NULL;
	send->agent = agent;
	send->mqp = mqp;
	send->cqe.done = mad_send_done;
	send->buf.mad = send->mad;
	send->buf.hdr_len = hdr_len;
	send->buf.data_len = data_len;
	send->buf.mad_agent = agent ? &agent->agent : NULL;
	send->buf.seg_count = count;
	send->buf.seg_size = rmpp ? seg_size : 0;
	send->buf.seg_rmpp_size = rmpp ? IB_MGMT_RMPP_DATA : 0;
	rt_tree_node_init(&send->match_node);
	INIT_LIST_HEAD(&send->queue_node);
	rt_timer_init(mqp->port->device->rt, &send->timer, on_timeout);
	if (rmpp)
		init_rmpp(send);
	return send;
}

void mad_send_free(struct mad_send *send)
{
	list_del(&send->queue_node);
	if (!send->agent && !send->orphan && send->buf.ah)
		rdma_destroy_ah(send->buf.ah, 0);
	rt_free(send);
}

struct ib_mad_send_buf *ib_create_send_mad(struct ib_mad_agent *mad_agent, u32 remote_qpn,
					   u16 pkey_index, int rmpp_active, int hdr_len,
					   int data_len, gfp_t gfp_mask, u8 base_version)
{
	struct mad_agent *agent = mad_agent_of(mad_agent);
	bool own_rmpp = mad_agent->rmpp_version && !(mad_agent->flags & IB_MAD_USER_RMPP);
	struct mad_send *send;

	if (base_version != IB_MGMT_BASE_VERSION || data_len < 0)
		return ERR_PTR(-EINVAL);
	if (hdr_len < (rmpp_active ? IB_MGMT_RMPP_HDR : IB_MGMT_MAD_HDR) ||
	    hdr_len >= IB_MGMT_MAD_SIZE)
		return ERR_PTR(-EINVAL);
	if (rmpp_active ? !own_rmpp : data_len > IB_MGMT_MAD_SIZE - hdr_len)
		return ERR_PTR(-EINVAL);
	send = mad_send_alloc(agent, agent->mqp, rmpp_active, hdr_len, data_len);
	if (!send)
		return ERR_PTR(-ENOMEM);
	send->wr.remote_qpn = remote_qpn;
	send->wr.remote_qkey = remote_qpn ? 0x80010000 : 0;
	send->wr.pkey_index = pkey_index;
	send->wr.port_num = agent->port->port_num;
	return &send->buf;
}

void ib_free_send_mad(struct ib_mad_send_buf *send_buf)
{
	struct mad_send *send = mad_send_of(send_buf);

	rt_timer_disarm(&send->timer);
	rt_tree_remove(&send->match_node);
	if (send->posted && !mad_unpost(send)) {
		send->orphan = true; /* the device is still reading it */
		send->agent = NULL;
		return;
	}
	send->orphan = true; /* the address handle belongs to the client */
	mad_send_free(send);
}

void *ib_get_rmpp_segment(struct ib_mad_send_buf *send_buf, int seg_num)
{
	struct mad_send *send = mad_send_of(send_buf);

	if (!send->rmpp || seg_num < 1 || seg_num > send_buf->seg_count)
		return NULL;
	return send->segments + (seg_num - 1) * send_buf->seg_size;
}

void ib_set_mad_headers(struct ib_mad_send_buf *send_buf, const void *mad)
{
	struct ib_mad_hdr *hdr = send_buf->mad;

	memcpy(hdr, mad, (size_t)send_buf->hdr_len);
	if (!ib_response_mad(hdr))
		hdr->tid = cpu_to_be64((u64)send_buf->mad_agent->hi_tid << 32 |
				       (be64_to_cpu(hdr->tid) & 0xffffffff));
}

void ib_set_mad_contents(struct ib_mad_send_buf *send_buf, const void *mad)
{
	const u8 *data = (const u8 *)mad + send_buf->hdr_len;

	ib_set_mad_headers(send_buf, mad);
	/* the segments are contiguous in memory */
	memcpy(send_buf->seg_count ? ib_get_rmpp_segment(send_buf, 1) :
				     (u8 *)send_buf->mad + send_buf->hdr_len,
	       data, (size_t)send_buf->data_len);
}

void ib_set_mad_qkey(struct ib_mad_send_buf *send_buf, u32 qkey)
{
	mad_send_of(send_buf)->wr.remote_qkey = qkey;
}

static struct rt_trace_at at(const struct mad_send *send)
{
	return RT_TRACE_AT(send->mqp->port->device, send->mqp->port->port_num);
}

/* --- posting --- */

int mad_transmit(struct mad_send *send)
{
	return send->loops ? mad_loopback(send) : mad_post(send);
}

static int choose_way(struct mad_send *send)
{
	struct ib_smp *smp = send->buf.mad;

	send->loops = false;
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE) {
		enum smi_action action = smi_send(smp, send->mqp->port->port_num);

		send->loops = action == SMI_LOCAL;
		return action == SMI_DISCARD ? -EINVAL : 0;
	}
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED)
		send->loops = mad_loops_back(send);
	return 0;
}

static int post_one(struct mad_send *send)
{
	struct mad_agent *agent = send->agent;
	int ret;

	if (send->active || !send->buf.ah || !agent->agent.send_handler ||
	    (send->buf.timeout_ms && !agent->agent.recv_handler))
		return -EINVAL;
	ret = choose_way(send);
	if (ret)
		return ret;
	send->retries_left = send->buf.retries;
	send->ack_retries_left = RMPP_ACK_RETRIES;
	send->answered = false;
	send->status = IB_WC_SUCCESS;
	send->vendor_err = 0;
	send->active = true;
	mad_match_add(send);
	mad_snoop_send(send, IB_MAD_SNOOP_POSTED_SENDS);
	trace_mad_send(at(send), agent->agent.hi_tid, send->buf.mad, send->buf.timeout_ms,
		       send->buf.retries);
	ret = send->rmpp ? rmpp_send_start(send) : mad_transmit(send);
	if (ret) {
		send->active = false;
		rt_tree_remove(&send->match_node);
	}
	return ret;
}

int ib_post_send_mad(struct ib_mad_send_buf *send_buf, struct ib_mad_send_buf **bad_send_buf)
{
	while (send_buf) {
		struct ib_mad_send_buf *next = send_buf->next;
		int ret = post_one(mad_send_of(send_buf));

		if (ret) {
			if (bad_send_buf)
				*bad_send_buf = send_buf;
			return ret;
		}
		send_buf = next;
	}
	return 0;
}

/* --- what comes next --- */

static void call_handler(struct mad_send *send)
{
	struct ib_mad_send_wc wc = {&send->buf, send->status, send->vendor_err};
	struct mad_agent *agent = send->agent;

	send->active = false;
	mad_snoop_send(send, IB_MAD_SNOOP_SEND_COMPLETIONS);
	agent->agent.send_handler(&agent->agent, &wc);
}

static void settle(struct mad_send *send, enum ib_wc_status status, u32 vendor_err)
{
	rt_timer_disarm(&send->timer);
	rt_tree_remove(&send->match_node);
	send->answered = true;
	send->status = status;
	send->vendor_err = vendor_err;
	trace_mad_done(at(send), send->agent->agent.hi_tid, send->buf.mad, (int)status);
}

void mad_send_finish(struct mad_send *send, enum ib_wc_status status, u32 vendor_err)
{
	settle(send, status, vendor_err);
	if (!send->posted || mad_unpost(send))
		call_handler(send);
}

void mad_send_wait(struct mad_send *send, int timeout_ms)
{
	struct rt *rt = send->mqp->port->device->rt;

	rt_timer_arm(&send->timer, mono_add(rt_now(rt), (u64)timeout_ms * NSEC_PER_MSEC));
}

void mad_send_sent(struct mad_send *send, enum ib_wc_status status)
{
	send->posted = false;
	if (!send->agent) /* it was one of the layer's own, or was freed in the meantime */
		mad_send_free(send);
	else if (send->answered)
		call_handler(send);
	else if (status != IB_WC_SUCCESS)
		mad_send_finish(send, status, 0);
	else if (send->rmpp && rmpp_send_sent(send))
		return;
	else if (send->buf.timeout_ms)
		mad_send_wait(send, send->buf.timeout_ms);
	else
		mad_send_finish(send, IB_WC_SUCCESS, 0);
}

static bool awaits_ack(const struct mad_send *send)
{
	return send->rmpp && send->last_ack < send->buf.seg_count;
}

static void on_timeout(struct rt_timer *timer)
{
	struct mad_send *send = container_of(timer, struct mad_send, timer);
	int *left = awaits_ack(send) ? &send->ack_retries_left : &send->retries_left;

	trace_mad_retry(at(send), send->agent->agent.hi_tid, send->buf.mad, *left - 1);
	if ((*left)-- > 0 &&
	    !(send->rmpp ? rmpp_send_retry(send) : mad_transmit(send)))
		return;
	if (awaits_ack(send))
		rmpp_send_gave_up(send);
	mad_send_finish(send, IB_WC_RESP_TIMEOUT_ERR, 0);
}

/* --- ends before the end --- */

void ib_cancel_mad(struct ib_mad_send_buf *send_buf)
{
	struct mad_send *send = mad_send_of(send_buf);

	if (!send->active || send->answered)
		return;
	settle(send, IB_WC_WR_FLUSH_ERR, 0);
	if (send->posted && !mad_unpost(send))
		return; /* the completion calls the handler */
	list_add_tail(&send->queue_node, &send->agent->done);
	rt_work_queue(send->mqp->port->device->rt, &send->agent->done_work);
}

int ib_modify_mad(struct ib_mad_send_buf *send_buf, u32 timeout_ms)
{
	struct mad_send *send = mad_send_of(send_buf);

	if (!send->active || send->answered)
		return -EINVAL;
	if (!timeout_ms) {
		ib_cancel_mad(send_buf);
		return 0;
	}
	send_buf->timeout_ms = (int)timeout_ms;
	if (rt_timer_armed(&send->timer))
		mad_send_wait(send, send_buf->timeout_ms);
	return 0;
}

/* Sends whose outcome is known, but which have not completed, cannot be matched any more. They
 * are on the list of posted sends. */
static void flush_posted(struct mad_agent *agent, struct list_head *queue)
{
	struct mad_send *send, *tmp;

	list_for_each_entry_safe(send, tmp, queue, queue_node)
		if (send->agent == agent && send->active)
			call_handler(send);
}

void mad_send_flush(struct mad_agent *agent)
{
	struct mad_send *send;

	while ((send = mad_match_first(agent))) {
		settle(send, IB_WC_WR_FLUSH_ERR, 0);
		if (!send->posted || mad_unpost(send))
			call_handler(send);
	}
	flush_posted(agent, &agent->mqp->posted);
	flush_posted(agent, &agent->port->loopback_sent);
}
