/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Data transfer operations: work requests, and what their completions mean. */
#include "ulp/kdapl/private.h"

/* --- completions --- */

static DAT_DTO_COMPLETION_STATUS status_of(enum ib_wc_status status)
{
	static const struct {
		enum ib_wc_status from;
		DAT_DTO_COMPLETION_STATUS to;
	} table[] = {
		{IB_WC_SUCCESS, DAT_DTO_SUCCESS},
		{IB_WC_WR_FLUSH_ERR, DAT_DTO_ERR_FLUSHED},
		{IB_WC_LOC_LEN_ERR, DAT_DTO_ERR_LOCAL_LENGTH},
		{IB_WC_LOC_QP_OP_ERR, DAT_DTO_ERR_LOCAL_EP},
		{IB_WC_LOC_PROT_ERR, DAT_DTO_ERR_LOCAL_PROTECTION},
		{IB_WC_LOC_ACCESS_ERR, DAT_DTO_ERR_LOCAL_PROTECTION},
		{IB_WC_MW_BIND_ERR, DAT_RMR_OPERATION_FAILED},
		{IB_WC_BAD_RESP_ERR, DAT_DTO_ERR_BAD_RESPONSE},
		{IB_WC_REM_ACCESS_ERR, DAT_DTO_ERR_REMOTE_ACCESS},
		{IB_WC_REM_INV_REQ_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IB_WC_REM_OP_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
		{IB_WC_RNR_RETRY_EXC_ERR, DAT_DTO_ERR_RECEIVER_NOT_READY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].from == status)
			return table[i].to;
	return DAT_DTO_ERR_TRANSPORT;
}

static const struct kd_dto *dto_of(struct kd_ep *ep, u64 number)
{
	if (!(number & KD_WR_RECV))
		return kd_dtos_done(&ep->request, (u32)number);
	return ep->srq ? kd_srq_done(ep->srq, (u32)number)
		       : kd_dtos_done(&ep->recv, (u32)number);
}

static DAT_EVENT bind_event(const struct kd_dto *dto, DAT_DTO_COMPLETION_STATUS status)
{
	return (DAT_EVENT){
		.event_number = DAT_RMR_BIND_COMPLETION_EVENT,
		.event_data.rmr_completion_event_data = {.rmr_handle = dto->rmr,
							 .user_cookie = dto->cookie,
							 .status = status}};
}

static DAT_EVENT transfer_event(struct kd_ep *ep, const struct kd_dto *dto,
				const struct ib_wc *wc, DAT_DTO_COMPLETION_STATUS status)
{
	return (DAT_EVENT){.event_number = DAT_DTO_COMPLETION_EVENT,
			   .event_data.dto_completion_event_data = {
				   .ep_handle = ep,
				   .user_cookie = dto->cookie,
				   .status = status,
				   .transfered_length = dto->op == KD_RECV
								? wc->byte_len
								: dto->length}};
}

bool kd_dto_event(const struct ib_wc *wc, DAT_EVENT *event, bool *quiet)
{
	DAT_DTO_COMPLETION_STATUS status = status_of(wc->status);
	struct kd_ep *ep = wc->qp->qp_context;
	const struct kd_dto *dto = dto_of(ep, wc->wr_id);

	if (!dto)
		return false;
	*quiet = dto->quiet && status == DAT_DTO_SUCCESS;
	if (dto->op == KD_BIND)
		*event = bind_event(dto, status);
	else if (dto->op != KD_DRAIN)
		*event = transfer_event(ep, dto, wc, status);
	if (dto->op == KD_DRAIN) {
		if (ep->state == DAT_EP_STATE_DISCONNECT_PENDING)
			kd_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		return false;
	}
	/* the connection is not usable any more: 10.3.1.7 */
	if (status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED &&
	    (ep->state == DAT_EP_STATE_CONNECTED ||
	     ep->state == DAT_EP_STATE_DISCONNECT_PENDING))
		kd_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	return true;
}

/* --- work requests --- */

DAT_RETURN kd_dto_sges(const DAT_LMR_TRIPLET *iov, DAT_COUNT n, DAT_COUNT max,
		       struct ib_sge *sge, int *num_sge, DAT_VLEN *length)
{
	if (n < 0 || n > max)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (n && !iov)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*num_sge = 0;
	*length = 0;
	for (DAT_COUNT i = 0; i < n; i++) {
		if (!iov[i].segment_length)
			continue;
		if (iov[i].segment_length > UINT32_MAX)
			return DAT_ERROR(DAT_LENGTH_ERROR, 0);
		*length += iov[i].segment_length;
		sge[(*num_sge)++] = (struct ib_sge){.addr = iov[i].virtual_address,
						    .length = (u32)iov[i].segment_length,
						    .lkey = iov[i].lmr_context};
	}
	return DAT_SUCCESS;
}

int kd_request_flags(const struct kd_ep *ep, DAT_COMPLETION_FLAGS flags, bool *quiet)
{
	const unsigned int known =
		DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	if (flags & ~known)
		return -1;
	*quiet = flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
	return (flags & DAT_COMPLETION_SUPPRESS_FLAG ? 0 : IB_SEND_SIGNALED) |
	       (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG ? IB_SEND_SOLICITED : 0) |
	       (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? IB_SEND_FENCE : 0);
}

DAT_RETURN kd_request_check(const struct kd_ep *ep)
{
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECTED)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	/* one place is kept for what ends a graceful disconnect */
	if (!ep->qp || kd_dtos_count(&ep->request) >= (u32)ep->attr.max_request_dtos)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	return DAT_SUCCESS;
}

/** struct request - one that is being built */
struct request {
	struct ib_rdma_wr wr;
	struct ib_sge sge[KD_MAX_IOV];
	DAT_VLEN length;
};

static DAT_RETURN post_request(struct kd_ep *ep, struct request *r, enum kd_op op,
			       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			       DAT_RETURN bad_flags)
{
	struct kd_dto *dto = kd_dtos_next(&ep->request);
	bool quiet = false;
	int send_flags = kd_request_flags(ep, flags, &quiet);

	if (send_flags < 0)
		return bad_flags;
	*dto = (struct kd_dto){
		.cookie = cookie, .length = r->length, .op = op, .quiet = quiet};
	r->wr.wr.wr_id = ep->request.tail;
	r->wr.wr.sg_list = r->sge;
	r->wr.wr.send_flags = send_flags;
	if (ib_post_send(ep->qp, &r->wr.wr, NULL))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	kd_dtos_posted(&ep->request);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct request r = {.wr.wr.opcode = IB_WR_SEND};
	DAT_RETURN ret = kd_request_check(ep);

	if (ret == DAT_SUCCESS)
		ret = kd_dto_sges(local_iov, num_segments, ep->attr.max_request_iov,
				  r.sge, &r.wr.wr.num_sge, &r.length);
	if (ret != DAT_SUCCESS)
		return ret;
	if (r.length > ep->attr.max_message_size)
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	return post_request(ep, &r, KD_SEND, user_cookie, completion_flags,
			    DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
}
EXPORT_SYMBOL(dat_ep_post_send);

static DAT_RETURN remote_iov_check(const struct kd_ep *ep, const DAT_RMR_TRIPLET *remote)
{
	if (!remote)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return remote->segment_length > ep->attr.max_rdma_size
		       ? DAT_ERROR(DAT_LENGTH_ERROR, 0)
		       : DAT_SUCCESS;
}

/* An RDMA read moves what @remote_iov says; what the last segments have in addition
 * stays. */
static void trim(struct request *r, DAT_VLEN length)
{
	int n = 0;

	r->length = length;
	for (; length; n++) {
		if (r->sge[n].length > length)
			r->sge[n].length = (u32)length;
		length -= r->sge[n].length;
	}
	r->wr.wr.num_sge = n;
}

/* Check an RDMA request with opcode @r->wr.wr.opcode, and fill in its local and its remote memory. */
static DAT_RETURN prepare_rdma(struct kd_ep *ep, struct request *r, DAT_LMR_TRIPLET *local_iov,
			       DAT_COUNT num_segments, const DAT_RMR_TRIPLET *remote_iov)
{
	const bool reads = r->wr.wr.opcode == IB_WR_RDMA_READ;
	DAT_RETURN ret = kd_request_check(ep);

	if (ret == DAT_SUCCESS)
		ret = kd_dto_sges(local_iov, num_segments,
				  reads ? ep->attr.max_rdma_read_iov :
					  ep->attr.max_rdma_write_iov,
				  r->sge, &r->wr.wr.num_sge, &r->length);
	if (ret == DAT_SUCCESS)
		ret = remote_iov_check(ep, remote_iov);
	if (ret != DAT_SUCCESS)
		return ret;
	if (reads ? remote_iov->segment_length > r->length :
		    r->length > remote_iov->segment_length)
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	r->wr.remote_addr = remote_iov->target_address;
	r->wr.rkey = remote_iov->rmr_context;
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct request r = {.wr.wr.opcode = IB_WR_RDMA_READ};
	DAT_RETURN ret = prepare_rdma(ep, &r, local_iov, num_segments, remote_iov);

	if (ret != DAT_SUCCESS)
		return ret;
	trim(&r, remote_iov->segment_length);
	return post_request(ep, &r, KD_READ, user_cookie, completion_flags,
			    DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct request r = {.wr.wr.opcode = IB_WR_RDMA_WRITE};
	DAT_RETURN ret = prepare_rdma(ep, &r, local_iov, num_segments, remote_iov);

	if (ret != DAT_SUCCESS)
		return ret;
	return post_request(ep, &r, KD_WRITE, user_cookie, completion_flags,
			    DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct ib_sge sge[KD_MAX_IOV];
	struct ib_recv_wr wr = {.sg_list = sge};
	struct kd_dto *dto;
	DAT_VLEN length;
	DAT_RETURN ret;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep->qp || ep->srq)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	if (completion_flags & ~(unsigned int)DAT_COMPLETION_UNSIGNALLED_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	ret = kd_dto_sges(local_iov, num_segments, ep->attr.max_recv_iov, sge,
			  &wr.num_sge, &length);
	if (ret != DAT_SUCCESS)
		return ret;
	dto = kd_dtos_next(&ep->recv);
	if (!dto)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	*dto = (struct kd_dto){.cookie = user_cookie,
			       .op = KD_RECV,
			       .quiet = completion_flags &
					DAT_COMPLETION_UNSIGNALLED_FLAG};
	wr.wr_id = KD_WR_RECV | ep->recv.tail;
	if (ib_post_recv(ep->qp, &wr, NULL))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	kd_dtos_posted(&ep->recv);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_post_recv);
