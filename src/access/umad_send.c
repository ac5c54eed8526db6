/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Converts records of a program into MADs or RMPP messages with an address handle, and
 * received MADs into records. A request that timed out is returned as a record as well.
 */
#include <string.h>

#include "access/umad_private.h"

/* --- sending --- */

static struct ib_ah *make_ah(struct ib_mad_agent *agent, const struct ib_user_mad_hdr *hdr)
{
	struct rdma_ah_attr attr = {
		.dlid = be16_to_cpu(hdr->lid),
		.sl = hdr->sl,
		.src_path_bits = hdr->path_bits,
		.port_num = agent->port_num,
	};

	if (hdr->grh_present) {
		attr.ah_flags = IB_AH_GRH;
		memcpy(attr.grh.dgid.raw, hdr->gid, sizeof(attr.grh.dgid.raw));
		attr.grh.sgid_index = hdr->gid_index;
		attr.grh.flow_label = be32_to_cpu(hdr->flow_label);
		attr.grh.hop_limit = hdr->hop_limit;
		attr.grh.traffic_class = hdr->traffic_class;
	}
	return ib_create_ah(agent->qp->pd, &attr);
}

static bool is_rmpp(const struct ib_mad_agent *agent, const struct ib_rmpp_mad *mad)
{
	return ib_is_mad_class_rmpp(mad->mad_hdr.mgmt_class) && agent->rmpp_version &&
	       !(agent->flags & IB_MAD_USER_RMPP) &&
	       ib_get_rmpp_flags(&mad->rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE;
}

static struct ib_mad_send_buf *make_message(struct ib_mad_agent *agent,
					    const struct ib_user_mad *in, size_t mad_bytes)
{
	const struct ib_rmpp_mad *mad = (const void *)in->data;
	int hdr_len = ib_get_mad_data_offset(mad->mad_hdr.mgmt_class);
	struct ib_mad_send_buf *msg;

	if (mad_bytes < (size_t)hdr_len)
		return ERR_PTR(-EINVAL);
	msg = ib_create_send_mad(agent, be32_to_cpu(in->hdr.qpn), in->hdr.pkey_index,
				 is_rmpp(agent, mad), hdr_len, (int)(mad_bytes - (size_t)hdr_len),
				 GFP_KERNEL, IB_MGMT_BASE_VERSION);
	if (IS_ERR(msg))
		return msg;
	ib_set_mad_headers(msg, mad);
	if (in->hdr.qkey)
		ib_set_mad_qkey(msg, be32_to_cpu(in->hdr.qkey));
	msg->timeout_ms = (int)in->hdr.timeout_ms;
	msg->retries = (int)in->hdr.retries;
	return msg;
}

static struct umad_send *prepare(struct umad_agent *agent, const struct ib_user_mad *in,
				 size_t mad_bytes)
{
	struct umad_session *s = agent->session;
	size_t bytes = mad_bytes + UMAD_SEND_OVERHEAD;
	struct quota_node *charged;
	struct ib_mad_send_buf *msg;
	struct umad_send *send;
	struct ib_ah *ah;

	if (s->send_bytes && s->send_bytes + bytes > UMAD_SENDS_BYTES)
		return ERR_PTR(-ENOMEM); /* the limit applies only if another message is being sent */
	charged = quota_take(&s->quota, bytes);
	if (!charged)
		return ERR_PTR(-ENOMEM);
	ah = make_ah(agent->mad, &in->hdr);
	if (IS_ERR(ah)) {
		quota_give(charged, &s->quota, bytes);
		return (void *)ah;
	}
	send = rt_zalloc(sizeof(*send));
	msg = send ? make_message(agent->mad, in, mad_bytes) : ERR_PTR(-ENOMEM);
	if (IS_ERR(msg)) {
		rt_free(send);
		ib_destroy_ah(ah);
		quota_give(charged, &s->quota, bytes);
		return (void *)msg;
	}
	INIT_LIST_HEAD(&send->node);
	send->agent = agent;
	send->msg = msg;
	send->bytes = bytes;
	send->charged = charged;
	send->hdr = in->hdr;
	memcpy(send->head, msg->mad, sizeof(send->head));
	msg->context[0] = send;
	msg->ah = ah;
	s->send_bytes += bytes;
	agent->send_bytes += bytes;
	return send;
}

/* Send the header of the MAD back to the program, with an errno. Time-outs are reported like this,
 * too. */
static void report(struct umad_session *s, const struct ib_user_mad_hdr *hdr, const void *head,
		   uint32_t status)
{
	struct umad_record *r = umad_record_alloc(IB_MGMT_MAD_HDR);

	if (!r)
		return;
	r->mad.hdr = *hdr;
	r->mad.hdr.status = status;
	r->mad.hdr.length = (uint32_t)r->bytes;
	memcpy(r->mad.data, head, IB_MGMT_MAD_HDR);
	umad_queue(s, r);
}

struct umad_send *umad_send_prepare(struct umad_session *s, const struct ib_user_mad *mad,
				    size_t mad_bytes)
{
	struct umad_agent *agent = mad->hdr.id < UMAD_AGENTS ? s->agent[mad->hdr.id] : NULL;
	struct umad_send *send = ERR_PTR(-EINVAL);

	if (!s->device)
		send = ERR_PTR(-EIO);
	else if (agent)
		send = prepare(agent, mad, mad_bytes);
	if (!IS_ERR(send))
		return send;
	report(s, &mad->hdr, mad->data, (uint32_t)-PTR_ERR(send));
	return NULL;
}

void umad_send_discard(struct umad_send *send)
{
	struct umad_session *s = send->agent->session;

	send->agent->send_bytes -= send->bytes;
	if (s)
		s->send_bytes -= send->bytes;
	quota_give(send->charged, s ? &s->quota : NULL, send->bytes);
	list_del(&send->node);
	ib_destroy_ah(send->msg->ah);
	ib_free_send_mad(send->msg);
	rt_free(send);
}

void umad_send_refuse(struct umad_send *send, int ret)
{
	report(send->agent->session, &send->hdr, send->head, (uint32_t)-ret);
	umad_send_discard(send);
}

void umad_send_submit(struct umad_send *send)
{
	int ret;

	list_add_tail(&send->node, &send->agent->sends);
	ret = ib_post_send_mad(send->msg, NULL);
	if (ret)
		umad_send_refuse(send, ret);
}

void umad_write(struct umad_session *s, const struct ib_user_mad *mad, size_t bytes)
{
	struct umad_send *send;

	if (bytes < sizeof(*mad) + IB_MGMT_RMPP_HDR)
		return; /* it is too short to have a header that identifies it */
	send = umad_send_prepare(s, mad, bytes - sizeof(*mad));
	if (!send)
		return;
	ib_set_mad_contents(send->msg, mad->data);
	umad_send_submit(send);
}

bool umad_send_cancel_some(struct umad_agent *agent, unsigned count)
{
	while (count-- > 0 && !list_empty(&agent->sends)) {
		struct umad_send *send =
			list_first_entry(&agent->sends, struct umad_send, node);

		list_del(&send->node);
		ib_cancel_mad(send->msg);
	}
	return list_empty(&agent->sends);
}

void umad_send_handler(struct ib_mad_agent *mad_agent, struct ib_mad_send_wc *wc)
{
	struct umad_send *send = wc->send_buf->context[0];
	struct umad_session *s = send->agent->session;

	/* the message expected no response, only an ACK, which did not arrive: the
	 * program does not wait for a result */
	if (s && wc->status == IB_WC_RESP_TIMEOUT_ERR && send->hdr.timeout_ms)
		report(s, &send->hdr, send->head, ETIMEDOUT);
	umad_send_discard(send);
}

/* --- receiving --- */

static void fill_grh(const struct ib_mad_agent *agent, const struct ib_mad_recv_wc *wc,
		     struct ib_user_mad_hdr *hdr)
{
	const struct ib_grh *grh = wc->recv_buf.grh;
	struct rdma_ah_attr answer;
	u32 vtf;

	if (!(wc->wc->wc_flags & IB_WC_GRH) || !grh)
		return;
	vtf = be32_to_cpu(grh->version_tclass_flow);
	hdr->grh_present = 1;
	hdr->hop_limit = grh->hop_limit;
	hdr->traffic_class = (u8)(vtf >> 20);
	hdr->flow_label = cpu_to_be32(vtf & 0xfffff);
	memcpy(hdr->gid, grh->sgid.raw, sizeof(hdr->gid));
	/* which GID of this port it was sent to, and an answer is to be sent from */
	if (!ib_init_ah_attr_from_wc(agent->device, agent->port_num, wc->wc, grh, &answer))
		hdr->gid_index = answer.grh.sgid_index;
}

void umad_recv_handler(struct ib_mad_agent *mad_agent, struct ib_mad_send_buf *send,
		       struct ib_mad_recv_wc *wc)
{
	struct umad_agent *agent = mad_agent->context;
	struct ib_user_mad_hdr hdr = {
		.id = agent->id,
		.length = (uint32_t)(sizeof(struct ib_user_mad) + (size_t)wc->mad_len),
		.qpn = cpu_to_be32(wc->wc->src_qp),
		.lid = cpu_to_be16((u16)wc->wc->slid),
		.sl = wc->wc->sl,
		.path_bits = wc->wc->dlid_path_bits,
		.pkey_index = wc->wc->pkey_index,
	};
	struct umad_record *r;

	if (!agent->session) {
		ib_free_recv_mad(wc);
		return;
	}
	fill_grh(mad_agent, wc, &hdr);
	r = umad_record_of(wc);
	if (!r)
		return;
	r->mad.hdr = hdr;
	umad_queue(agent->session, r);
}
