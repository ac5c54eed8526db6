/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A channel: its queue pair, its messages, and its end.
 *
 * A receive is posted again before the answer to its message is sent, so that the receive
 * queue is never empty when an initiator sends as many requests as its limit allows. The
 * state of a message is in its struct srpt_request. It exists longer than the receive, and
 * longer than the channel if a disk is still performing its command.
 */
#include <errno.h>

#include "ulp/srpt/private.h"
#include "ulp/srpt/trace.h"

/* --- receives --- */

static void received(struct ib_cq *cq, struct ib_wc *wc);

static int post_receive(struct srpt_receive *recv)
{
	struct srpt_channel *ch = recv->channel;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(ch->qp->device, recv->iu, ch->iu_bytes,
					  DMA_FROM_DEVICE),
		.length = ch->iu_bytes,
		.lkey = ch->srpt->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(ch->qp, &wr, NULL);
}

static int add_receives(struct srpt_channel *ch, u32 nr)
{
	while (nr--) {
		struct srpt_receive *recv = rt_zalloc(sizeof(*recv) + ch->iu_bytes);
		int ret;

		if (!recv)
			return -ENOMEM;
		recv->channel = ch;
		recv->cqe.done = received;
		list_add_tail(&recv->node, &ch->receives);
		ret = post_receive(recv);
		if (ret)
			return ret;
	}
	return 0;
}

/* --- requests --- */

static void free_channel(struct srpt_channel *ch)
{
	struct srpt_receive *recv, *next;

	list_for_each_entry_safe(recv, next, &ch->receives, node)
		rt_free(recv);
	rt_work_cancel(&ch->end);
	srpt_initiator_leave(ch->initiator);
	rt_free(ch);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct srpt_request *r = container_of(wc->wr_cqe, struct srpt_request, sent);

	r->in_flight--;
	if (wc->status != IB_WC_SUCCESS || r->channel->ending)
		srpt_channel_end(r->channel);
	srpt_request_finish(r);
}

static struct srpt_request *make_request(struct srpt_channel *ch,
					 struct srpt_receive *recv)
{
	struct srpt_request *r = rt_zalloc(sizeof(*r));

	if (!r)
		return NULL;
	r->channel = ch;
	r->receive = recv;
	r->sent.done = sent;
	INIT_LIST_HEAD(&r->in_line);
	INIT_LIST_HEAD(&r->aborted);
	list_add_tail(&r->node, &ch->requests);
	return r;
}

void srpt_request_finish(struct srpt_request *r)
{
	struct srpt_channel *ch = r->channel;

	if (r->in_flight || r->executing || !r->answered)
		return;
	srpt_task_release(r);
	srpt_task_forget(r);
	srpt_command_drop(r);
	list_del(&r->node);
	/* an aborted command was not answered, so that its receive has not been posted again */
	if (r->receive && ch->srpt && !ch->ending && post_receive(r->receive))
		srpt_channel_end(ch);
	rt_free(r);
	if (!ch->srpt && list_empty(&ch->requests))
		free_channel(ch);
}

int srpt_post_send(struct srpt_channel *ch, struct ib_send_wr *wr)
{
	int ret = ch->ending ? -ESHUTDOWN : ib_post_send(ch->qp, wr, NULL);

	if (ret)
		srpt_channel_end(ch);
	return ret;
}

void srpt_request_answer(struct srpt_request *r, size_t bytes)
{
	struct srpt_channel *ch = r->channel;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(ch->qp->device, r->answer, bytes,
					  DMA_TO_DEVICE),
		.length = (u32)bytes,
		.lkey = ch->srpt->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &r->sent,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags =
			IB_SEND_SIGNALED | (r->answer[1] & 1 ? IB_SEND_SOLICITED : 0),
	};

	r->answered = true;
	if (r->receive && !ch->ending && post_receive(r->receive))
		srpt_channel_end(ch);
	r->receive = NULL;
	if (!srpt_post_send(ch, &wr))
		r->in_flight++;
}

/* Ignore further messages, and do not perform commands that have not begun. */
static void stop(struct srpt_channel *ch)
{
	struct srpt_request *r;

	if (ch->ending)
		return;
	ch->ending = true;
	list_for_each_entry(r, &ch->requests, node)
		if (r->is_command)
			srpt_command_abandon(r);
}

/* --- messages of the target's own --- */

void srpt_channel_logout(struct srpt_channel *ch, u32 reason)
{
	struct srpt_request *r = ch->ending ? NULL : make_request(ch, NULL);

	trace_srpt_logout(SRPT_TRACE_AT(ch), ch->qp->qp_num, reason);
	if (r) {
		srpt_request_answer(r, srp_logout_build(reason, r->answer));
		stop(ch); /* the channel is closed when the message is sent */
		srpt_request_finish(r);
	} else {
		srpt_channel_end(ch);
	}
}

static void offer_credits(struct srpt_channel *ch)
{
	struct srp_credits before = ch->credits;
	struct srpt_request *r;
	u8 message[SRP_RSP_IU_BYTES];
	size_t bytes;
	u32 more;

	bytes = srp_credits_grow(&ch->credits, &more, message);
	if (!bytes)
		return;
	r = make_request(ch, NULL);
	if (!r || add_receives(ch, more)) {
		ch->credits = before; /* receives that were added already are spare ones */
		if (r) {
			r->answered = true;
			srpt_request_finish(r);
		}
		return;
	}
	memcpy(r->answer, message, bytes);
	srpt_request_answer(r, bytes);
}

void srpt_channel_report(struct srpt_channel *ch, enum scsi_sense sense)
{
	u8 message[SRP_RSP_IU_BYTES];
	size_t bytes = ch->ending ? 0 : srp_event_build(&ch->events, sense, message);
	struct srpt_request *r = bytes ? make_request(ch, NULL) : NULL;

	if (!bytes)
		return;
	if (!r) {
		srpt_channel_end(ch); /* the initiator will log in again */
		return;
	}
	memcpy(r->answer, message, bytes);
	srpt_request_answer(r, bytes);
	srpt_request_finish(r);
}

/* --- messages of the initiator --- */

static void begin_request(struct srpt_channel *ch, struct srpt_receive *recv, size_t len)
{
	struct srpt_request *r;

	if (srp_credits_take(&ch->credits)) {
		srpt_channel_logout(ch, SRP_LOGOUT_NO_REASON);
		return;
	}
	offer_credits(ch);
	r = make_request(ch, recv);
	if (!r) {
		srpt_channel_end(ch);
		return;
	}
	if (recv->iu[0] == WIRE_SRP_CMD)
		srpt_command_begin(r, recv->iu, len);
	else
		srpt_task_begin(r, recv->iu, len);
}

/* Handle a message that is not a request. Return: the reason to log the initiator out; -1: none */
static int64_t take_response(struct srpt_channel *ch, const u8 *iu, size_t len)
{
	struct wire_srp_i_logout message;
	bool again = false;

	wire_srp_i_logout_decode(iu, len, &message);
	switch (message.opcode) {
	case WIRE_SRP_CRED_RSP:
		return srp_credits_answered(&ch->credits, message.tag)
			       ? SRP_LOGOUT_SPONTANEOUS_RESPONSE
			       : -1;
	case WIRE_SRP_AER_RSP:
		if (srp_event_answered(&ch->events, message.tag, &again))
			return SRP_LOGOUT_SPONTANEOUS_RESPONSE;
		if (again)
			srpt_channel_report(ch, SCSI_LUNS_CHANGED);
		return -1;
	default:
		return SRP_LOGOUT_BAD_OPCODE;
	}
}

static void take_message(struct srpt_channel *ch, struct srpt_receive *recv, size_t len)
{
	const struct wire_codec *codec = len ? wire_srp_codec(recv->iu[0]) : NULL;
	int64_t reason;

	if (!codec || len < codec->bytes) {
		srpt_channel_logout(ch, SRP_LOGOUT_BAD_OPCODE);
	} else if (recv->iu[0] == WIRE_SRP_CMD || recv->iu[0] == WIRE_SRP_TSK_MGMT) {
		begin_request(ch, recv, len);
	} else if (recv->iu[0] == WIRE_SRP_I_LOGOUT) {
		srpt_channel_end(ch);
	} else {
		reason = take_response(ch, recv->iu, len);
		if (reason >= 0)
			srpt_channel_logout(ch, (u32)reason);
		else if (post_receive(recv))
			srpt_channel_end(ch);
	}
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct srpt_receive *recv = container_of(wc->wr_cqe, struct srpt_receive, cqe);
	struct srpt_channel *ch = recv->channel;

	if (wc->status != IB_WC_SUCCESS)
		srpt_channel_end(ch);
	else if (!ch->ending)
		take_message(ch, recv, wc->byte_len);
}

/* --- the queue pair --- */

static int change_state(struct srpt_channel *ch, enum ib_qp_state state, u32 psn)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(ch->cm, &attr, &mask);

	attr.rq_psn = psn;
	return ret ? ret : ib_modify_qp(ch->qp, &attr, mask);
}

static int open_qp(struct srpt_channel *ch, u32 psn)
{
	struct ib_qp_init_attr init = {
		.send_cq = ch->cq,
		.recv_cq = ch->cq,
		.cap = {.max_send_wr = SRPT_SENDS,
			.max_recv_wr = SRPT_LIMIT_MOST + SRPT_SPARE_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp = ib_create_qp(ch->srpt->pd, &init);
	int ret;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	ch->qp = qp;
	ret = change_state(ch, IB_QPS_INIT, psn);
	if (!ret)
		ret = add_receives(ch, SRPT_LIMIT_FIRST + SRPT_SPARE_RECEIVES);
	if (!ret)
		ret = change_state(ch, IB_QPS_RTR, psn);
	return ret ? ret : change_state(ch, IB_QPS_RTS, psn);
}

static int open_queues(struct srpt_channel *ch, u32 psn)
{
	struct ib_cq *cq = ib_alloc_cq(ch->srpt->device, ch,
				       SRPT_SENDS + SRPT_LIMIT_MOST + SRPT_SPARE_RECEIVES, 0,
				       IB_POLL_SOFTIRQ);

	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	ch->cq = cq;
	return open_qp(ch, psn);
}

static void close_queues(struct srpt_channel *ch)
{
	if (ch->qp)
		ib_destroy_qp(ch->qp);
	if (ch->cq)
		ib_free_cq(ch->cq);
}

/* --- its beginning and end --- */

static void end_work(struct rt_work *work)
{
	srpt_channel_close(container_of(work, struct srpt_channel, end));
}

void srpt_channel_end(struct srpt_channel *ch)
{
	stop(ch);
	if (ch->srpt)
		rt_work_queue(ch->rt, &ch->end);
}

struct srpt_channel *srpt_channel_open(struct srpt *srpt, struct ib_cm_id *cm,
				       const struct srp_login *login, u32 psn)
{
	struct srpt_channel *ch = rt_zalloc(sizeof(*ch));
	struct srpt_receive *recv, *next;
	int ret;

	if (!ch)
		return ERR_PTR(-ENOMEM);
	ch->srpt = srpt;
	ch->rt = srpt->device->rt;
	ch->cm = cm;
	ch->iu_bytes = login->it_iu_bytes;
	ch->immediate_offset = login->immediate_offset;
	ch->credits =
		(struct srp_credits){.limit = SRPT_LIMIT_FIRST, .max = SRPT_LIMIT_MOST};
	INIT_LIST_HEAD(&ch->receives);
	INIT_LIST_HEAD(&ch->requests);
	rt_work_init(&ch->end, end_work);
	ret = open_queues(ch, psn);
	if (!ret) {
		list_add_tail(&ch->node, &srpt->channels);
		srpt->nr_channels++;
		return ch;
	}
	ch->ending = true;
	close_queues(ch);
	rt_work_cancel(&ch->end);
	list_for_each_entry_safe(recv, next, &ch->receives, node)
		rt_free(recv);
	rt_free(ch);
	return ERR_PTR(ret);
}

void srpt_channel_close(struct srpt_channel *ch)
{
	struct srpt *srpt = ch->srpt;
	struct srpt_request *r, *next;

	trace_srpt_close(SRPT_TRACE_AT(ch), ch->qp->qp_num, ch->commands);
	stop(ch);
	close_queues(ch);
	rt_work_cancel(&ch->end);
	ib_destroy_cm_id(ch->cm);
	list_for_each_entry(r, &ch->requests, node) {
		r->in_flight = 0; /* the queue pair is destroyed: there are no further completions */
		r->answered = true;
		srpt->held_bytes -= r->held_bytes;
		r->held_bytes = 0;
		srpt_task_forget(r); /* commands of this channel, too, do not notify it any more */
	}
	list_del(&ch->node);
	srpt->nr_channels--;
	ch->srpt = NULL;
	if (list_empty(&ch->requests)) {
		free_channel(ch);
		return;
	}
	/* the last request frees the channel, at once or when its disk has performed the command */
	list_for_each_entry_safe(r, next, &ch->requests, node) {
		bool last = ch->requests.next == ch->requests.prev;

		srpt_request_finish(r);
		if (last)
			return;
	}
}
