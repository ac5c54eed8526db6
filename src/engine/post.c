/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posting: a list of requests is queued up to the first bad one, and as many packets as fit are
 * sent at once (IBA v1 11.4.1). The only system call is the doorbell of a peer that sleeps.
 */
#include "engine/fast.h"
#include "engine/window_fast.h"
#include "wire/frame.h"

static bool has_immediate(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool invalidates(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND_WITH_INV || op == IBV_WR_LOCAL_INV;
}

static void describe(const struct ibv_send_wr *wr, struct tp_send_wr *out)
{
	out->wr_id = wr->wr_id;
	out->opcode = (uint8_t)wr->opcode;
	out->flags = (uint16_t)(wr->send_flags & ~TP_SEND_OWN);
	out->num_sge = (uint8_t)wr->num_sge;
	out->imm_or_rkey = has_immediate(wr->opcode) ? be32toh(wr->imm_data) :
			   invalidates(wr->opcode)   ? wr->invalidate_rkey :
						       0;
}

static int describe_bind(const struct ibv_send_wr *wr, struct tp_send_wr *out)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (!wr->bind_mw.mw || (!info->mr && info->length))
		return -EINVAL;
	out->rkey = wr->bind_mw.mw->rkey;
	out->imm_or_rkey = wr->bind_mw.rkey;
	out->remote_addr = info->addr;
	out->bind = (struct tp_bind){info->length, info->mr ? info->mr->lkey : 0,
				     (int)info->mw_access_flags};
	return 0;
}

void eng_flush_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr, uint32_t length,
		  uint8_t placement, uint8_t selectivity)
{
	wr->opcode = (enum ibv_wr_opcode)TP_WR_FLUSH;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = length;
	wr->wr.atomic.swap = (uint64_t)selectivity << 8 | placement;
}

static int describe_flush(const struct ibv_send_wr *wr, struct tp_send_wr *out)
{
	uint64_t length = wr->wr.atomic.compare_add, feth = wr->wr.atomic.swap;

	if (length > UINT32_MAX || feth >> 16)
		return -EINVAL;
	out->remote_addr = wr->wr.atomic.remote_addr;
	out->rkey = wr->wr.atomic.rkey;
	out->flush = (struct tp_flush){
		.length_bytes = (uint32_t)length,
		.feth = {.placement = (uint8_t)feth, .selectivity = (uint8_t)(feth >> 8)},
	};
	out->srqn = wr->qp_type.xrc.remote_srqn & 0xffffff;
	return 0;
}

static int describe_remote(const struct ibv_send_wr *wr, struct tp_send_wr *out)
{
	switch ((unsigned)wr->opcode) {
	case IBV_WR_BIND_MW:
		return describe_bind(wr, out);
	case TP_WR_FLUSH:
		return describe_flush(wr, out);
	case TP_WR_REG_MR: /* programs cannot post it: see eng_post_register() */
		return -EINVAL;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		out->remote_addr = wr->wr.atomic.remote_addr;
		out->rkey = wr->wr.atomic.rkey;
		out->compare_add = wr->wr.atomic.compare_add;
		out->swap = wr->wr.atomic.swap;
		break;
	default:
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->wr.rdma.rkey;
	}
	out->srqn = wr->qp_type.xrc.remote_srqn & 0xffffff; /* of XRC, else unused */
	return 0;
}

/* The MTU does not include the header of a frame. */
static uint32_t frame_max(const struct eng_qp *qp)
{
	return eng_port(qp->engine, qp->attr.port_num)->frame_mtu + WIRE_FRAME_OVERHEAD;
}

/* softibd finds the station by the frame's MAC address, so @out->av does not matter. */
static int describe_frame(const struct eng_qp *qp, struct tp_send_wr *out)
{
	out->av = (struct tp_av){.dlid = WIRE_LID_MULTICAST, .port_num = qp->attr.port_num};
	out->remote_qpn = WIRE_QPN_FRAME;
	out->remote_qkey = 0;
	return out->length_bytes < WIRE_FRAME_MIN || out->length_bytes > frame_max(qp) ? -EINVAL :
										    0;
}

static int describe_datagram(struct eng_qp *qp, const struct ibv_send_wr *wr,
			     struct tp_send_wr *out, const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	const struct tp_av *av;

	if (unlikely(qp->init.is_raw))
		return describe_frame(qp, out);
	av = wr->wr.ud.ah ? av_of(wr->wr.ud.ah) : NULL;
	if (!av)
		return -EINVAL;
	out->av = *av;
	out->remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	out->remote_qkey = wr->wr.ud.remote_qkey;
	return unlikely(wr->opcode == IBV_WR_TSO) ? eng_describe_cut(qp, wr, out) : 0;
}

static uint32_t max_sge(const struct eng_qp *qp, enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ && qp->init.max_sge_rd ?
		       MIN(qp->init.max_sge_rd, qp->init.max_send_sge) :
		       qp->init.max_send_sge;
}

/* Translate a request into the transport's form; its pieces are stored in @sge. */
static int translate(struct eng_qp *qp, const struct ibv_send_wr *wr,
		     const struct tp_av *(*av_of)(struct ibv_ah *ah), struct tp_send_wr *out,
		     struct tp_sge sge[TP_MAX_SGE])
{
	uint64_t total = 0;

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge(qp, wr->opcode)))
		return -EINVAL;
	describe(wr, out);
	for (int i = 0; i < wr->num_sge; i++) {
		sge[i] = eng_sge(&wr->sg_list[i]);
		total += sge[i].length_bytes;
	}
	if (unlikely(total > UINT32_MAX))
		return -EINVAL;
	out->length_bytes = (uint32_t)total;
	out->sge = sge;
	return tp_is_datagram(qp->tp) ? describe_datagram(qp, wr, out, av_of) :
					describe_remote(wr, out);
}

/* Return: 0, and *@queued: it is in the send queue; -errno */
static int post_one(struct eng_qp *qp, const struct ibv_send_wr *wr,
		    const struct tp_av *(*av_of)(struct ibv_ah *ah), bool *queued)
{
	struct tp_sge sge[TP_MAX_SGE];
	struct tp_send_wr out;
	int ret = translate(qp, wr, av_of, &out, sge);

	if (unlikely(ret) || eng_window_takes(qp, &out))
		return ret;
	*queued = true;
	return tp_qp_post_send(qp->tp, &out);
}

int eng_post_rd(struct eng_qp *qp, const struct ibv_send_wr *wr, const struct eng_rd_to *to)
{
	struct tp_sge sge[TP_MAX_SGE];
	struct tp_send_wr out;
	int ret;

	eng_lock_qp(qp);
	ret = translate(qp, wr, NULL, &out, sge);
	if (!ret) {
		out.remote_qpn = to->qpn & 0xffffff;
		out.remote_qkey = to->qkey;
		out.ee_context = to->ee_context & 0xffffff;
		ret = tp_qp_post_send(qp->tp, &out);
	}
	if (!ret) {
		eng_rd_advance(qp);
		eng_tx(qp->engine);
	}
	eng_unlock(qp->engine);
	return ret;
}

/* Send what has been posted, unless other QPs come first. */
static void transmit(struct engine *e, struct eng_qp *qp)
{
	if (likely(list_empty(&e->tx))) {
		eng_tx_qp(e, qp);
		return;
	}
	/* packets that wait too long are dropped, so the time has to be right */
	e->now = e->cfg.now(e->cfg.ctx);
	eng_qp_touch(qp);
	eng_tx(e);
}

/*
 * Three functions post a list of requests and release the lock: post_sends() and
 * post_one_sided() handle requests as long as a fast path takes them, and leave the
 * rest to post_rest(). They are not inlined, so that each saves only the registers
 * that it uses.
 */

/* Return: 0; -errno and *@bad the first request not queued */
noinline static int post_rest(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			      const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	bool queued = false;
	int ret = 0;

	for (; wr; wr = wr->next) {
		ret = post_one(qp, wr, av_of, &queued);
		if (unlikely(ret))
			break;
	}
	if (queued)
		transmit(qp->engine, qp);
	eng_unlock(qp->engine);
	if (unlikely(ret) && bad)
		*bad = wr;
	return ret;
}

/* a SEND by the fast path */
static bool post_single(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
			const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	bool has_av = tp_fast_is(qp->tp, 0) && wr->wr.ud.ah;

	return wr->opcode == IBV_WR_SEND &&
	       eng_single_post(e, qp, wr, has_av ? av_of(wr->wr.ud.ah) : NULL);
}

noinline static int post_sends(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			       const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	struct engine *e = qp->engine;
	struct eng_flow *flow = qp->flow;
	bool sent = false;

	/* if other QPs wait for the engine's turn, this one waits behind them */
	if (likely(list_empty(&e->tx)))
		for (; wr && post_single(e, qp, wr, av_of); wr = wr->next)
			sent = true;
	if (sent && unlikely(abi_lane_must_ring(&flow->lane->tx)))
		eng_ring(e, flow->lane);
	if (unlikely(wr))
		return post_rest(qp, wr, bad, av_of);
	eng_unlock(e);
	return 0;
}

noinline static int post_one_sided(struct eng_qp *qp, struct ibv_send_wr *wr,
				   struct ibv_send_wr **bad,
				   const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	struct engine *e = qp->engine;

	for (; wr && eng_window_fast(e, qp, wr); wr = wr->next)
		;
	if (unlikely(wr))
		return (wr->opcode == IBV_WR_SEND ? post_sends : post_rest)(qp, wr, bad, av_of);
	eng_unlock(e);
	return 0;
}

/* post a list under the lock, which is given back */
static inline int post_list(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			    const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	if (likely(wr) && wr->opcode == IBV_WR_SEND)
		return post_sends(qp, wr, bad, av_of);
	return post_one_sided(qp, wr, bad, av_of);
}

/* by a thread that is not the owner of the lock's bias, or while another thread's request of
 * the QP is half done */
noinline static int post_locked(struct eng_qp *qp, struct ibv_send_wr *wr,
				struct ibv_send_wr **bad,
				const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	eng_lock_qp(qp);
	return post_list(qp, wr, bad, av_of);
}

/* for a request whose ACK timer does not run yet, or whose receiver sleeps */
noinline static int posted_few(struct eng_qp *qp)
{
	struct engine *e = qp->engine;

	if (!tp_timer_runs(qp->tp))
		eng_start_ack_timer(e, qp->tp);
	if (abi_lane_must_ring(&qp->flow->lane->tx))
		eng_ring(e, qp->flow->lane);
	eng_unlock(e);
	return 0;
}

/* a list that may be one small WRITE into a window: as eng_post_send() */
noinline static int post_write(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
			       const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	struct engine *e = qp->engine;

	if (unlikely(wr->next || !eng_window_write_word(e, qp, wr)))
		return post_one_sided(qp, wr, bad, av_of);
	eng_lock_leave(&e->lock);
	return 0;
}

/* The most frequent posts are performed in this function itself. It calls others only in tail
 * position, so that it saves no registers. */
int eng_post_send(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		  const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	struct engine *e = qp->engine;
	const struct abi_lane_tx *tx;

	if (unlikely(!eng_lock_enter(&e->lock)))
		return post_locked(qp, wr, bad, av_of);
	if (unlikely(qp->in_window || !wr)) {
		eng_lock_leave(&e->lock);
		return post_locked(qp, wr, bad, av_of);
	}
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		return post_write(qp, wr, bad, av_of);
	if (wr->opcode != IBV_WR_SEND)
		return post_one_sided(qp, wr, bad, av_of);
	if (unlikely(wr->next || !list_empty(&e->tx)))
		return post_sends(qp, wr, bad, av_of);
	tx = eng_single_post_few(e, qp, wr);
	if (unlikely(!tx))
		return post_sends(qp, wr, bad, av_of);
	if (unlikely(!tp_timer_runs(qp->tp) || abi_lane_sleeps(tx)))
		return posted_few(qp);
	eng_lock_leave(&e->lock);
	return 0;
}

int eng_post_register(struct eng_qp *qp, const struct eng_register *reg)
{
	const struct tp_send_wr wr = {
		.wr_id = reg->wr_id,
		.opcode = TP_WR_REG_MR,
		.flags = (uint16_t)(reg->send_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED)),
		.rkey = reg->key,
		.imm_or_rkey = reg->new_key,
		.bind.access = reg->access,
	};
	int ret;

	eng_lock_qp(qp);
	ret = tp_qp_post_send(qp->tp, &wr);
	if (!ret)
		transmit(qp->engine, qp);
	eng_unlock(qp->engine);
	return ret;
}

/* would all requests of a list be accepted? */
static int check_list(struct eng_qp *qp, const struct ibv_send_wr *wr,
		      const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	uint32_t room = tp_qp_sq_free(qp->tp);
	struct tp_sge sge[TP_MAX_SGE];
	struct tp_send_wr out;
	int ret = 0;

	for (; wr && !ret; wr = wr->next) {
		ret = translate(qp, wr, av_of, &out, sge);
		if (!ret)
			ret = tp_qp_check_send(qp->tp, &out);
		if (!ret && room-- == 0)
			ret = -ENOMEM;
	}
	return ret;
}

int eng_post_send_all(struct eng_qp *qp, struct ibv_send_wr *wr,
		      const struct tp_av *(*av_of)(struct ibv_ah *ah))
{
	int ret;

	eng_lock_qp(qp);
	ret = check_list(qp, wr, av_of);
	if (!ret)
		return post_list(qp, wr, NULL, av_of);
	eng_unlock(qp->engine);
	return ret;
}

int eng_post_recv(struct eng_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct engine *e = qp->engine;
	enum ibv_qp_state state;
	int ret = -EINVAL;

	eng_lock(e);
	state = tp_qp_state(qp->tp);
	/* C10-22: receives are taken from INIT on */
	if (likely(state != IBV_QPS_RESET && !qp->init.srq))
		ret = eng_rq_post(&qp->rq, &wr);
	if (unlikely(state == IBV_QPS_ERR))
		tp_qp_posted_recv(qp->tp);
	eng_unlock(e);
	if (unlikely(ret) && bad)
		*bad = wr;
	return ret;
}
