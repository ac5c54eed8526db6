/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs as objects: creation, attributes, and the services that the
 * transport asks of its engine (struct tp_ops).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/fast.h"
#include "transport/guard.h"

#define CACHE_LINE 64

/* --- what the transport asks for --- */

static void *op_mem(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		    enum tp_key whose)
{
	struct eng_qp *qp = ctx;
	uint32_t pd = whose == TP_KEY_RECEIVE ? qp->recv_rq->pd : qp->init.pd;
	void *at;

	if (whose == TP_KEY_REMOTE)
		return eng_mem_remote(qp, pd, key, va, len, access);
	at = eng_mem_run(qp, pd, key, va, len, access, whose);
	/* a request that nobody acknowledges has its completion before its payload is loaded */
	if (at && !access && !tp_is_acknowledged(qp->tp) && unlikely(!guard_probe(at, *len)))
		return NULL;
	return at;
}

static bool op_grants(void *ctx, uint32_t rkey, int access)
{
	struct eng_qp *qp = ctx;

	return eng_mem_grants(qp, qp->init.pd, rkey, access);
}

/* only memory windows and regions for fast registration are invalidated: a plain region keeps
 * its key (11.4.1.1) */
static int op_invalidate(void *ctx, uint32_t rkey, bool by_peer)
{
	int ret = eng_mw_invalidate(ctx, rkey);

	return ret == -ENOENT ? eng_paged_invalidate(ctx, rkey, by_peer) : ret;
}

static int op_bind(void *ctx, const struct tp_send_wr *wr)
{
	return wr->opcode == TP_WR_REG_MR ? eng_paged_register(ctx, wr) : eng_mw_bind(ctx, wr);
}

static bool op_recv_flush(void *ctx, struct tp_recv_wr *wr)
{
	struct eng_qp *qp = ctx;

	return !qp->init.srq && eng_rq_pop(&qp->rq, wr);
}

static bool op_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct eng_qp *qp = ctx;
	struct eng_srq *srq = qp->init.srq;

	return srq ? eng_srq_take(srq, qp, wr) : eng_rq_pop(&qp->rq, wr);
}

uint8_t eng_own_path_bits(const struct eng_qp *qp, uint8_t dlid_bits)
{
	const struct abi_devport *port = eng_port(qp->engine, tp_qp_attr(qp->tp)->port_num);

	return wire_path_bits(dlid_bits, port->lmc);
}

/* Add a completion that a fault rule may change, or whose CQ is full. */
noinline static void complete_with_care(struct eng_qp *qp, struct eng_cq *cq,
					struct ibv_wc *wc, bool solicited)
{
	if (!eng_spoils(qp->engine) || eng_spoil(qp, cq, wc))
		eng_cq_push(cq, wc, solicited);
}

static void op_complete_send(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			     uint32_t length_bytes)
{
	struct eng_qp *qp = ctx;
	struct eng_cq *cq = qp->send_cq;
	struct ibv_wc out;

	if (eng_needs_care(qp, cq)) {
		eng_wc_sent(qp, wr_id, status, opcode, length_bytes, &out);
		complete_with_care(qp, cq, &out, false);
		return;
	}
	eng_cq_add_sent(qp, wr_id, status, opcode, length_bytes);
}

void eng_complete_recv(struct eng_qp *qp, const struct tp_wc *wc)
{
	struct eng_cq *cq = qp->recv_cq;
	struct ibv_wc out;

	if (eng_needs_care(qp, cq)) {
		eng_wc_received(qp, wc, &out);
		complete_with_care(qp, cq, &out, wc->solicited);
		return;
	}
	eng_wc_received(qp, wc, eng_cq_next(cq));
	eng_cq_added(cq, wc->solicited || wc->status != IBV_WC_SUCCESS);
}

static void op_complete_recv(void *ctx, const struct tp_wc *wc)
{
	eng_complete_recv(ctx, wc);
}

/* a target whose SRQ has been destroyed completes nothing */
static void op_complete_xrc(void *ctx, const struct tp_wc *wc)
{
	struct eng_qp *qp = ctx;

	if (!qp->recv_cq)
		return;
	op_complete_recv(ctx, wc);
	qp->engine->suffices = eng_xrc_suffices(qp, qp->recv_cq);
}

static void op_complete_own(void *ctx, uint8_t status)
{
	eng_tag_own_done(ctx, status);
}

static void op_complete_tagged(void *ctx, const struct tp_wc *received)
{
	struct tp_wc wc = *received;

	eng_tag_received(ctx, &wc);
	eng_complete_recv(ctx, &wc);
}

void eng_qp_event(void *ctx, enum tp_event event)
{
	static const enum ibv_event_type types[] = {
		[TP_EVENT_COMM_EST] = IBV_EVENT_COMM_EST,
		[TP_EVENT_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
		[TP_EVENT_LAST_WQE_REACHED] = IBV_EVENT_QP_LAST_WQE_REACHED,
		[TP_EVENT_QP_FATAL] = IBV_EVENT_QP_FATAL,
		[TP_EVENT_QP_REQ_ERR] = IBV_EVENT_QP_REQ_ERR,
		[TP_EVENT_QP_ACCESS_ERR] = IBV_EVENT_QP_ACCESS_ERR,
	};
	struct eng_qp *qp = ctx;

	if (event == TP_EVENT_SQ_DRAINED && !qp->tells_drained)
		return;
	if (unlikely(qp->is_shared))
		eng_target_event(qp, types[event]);
	else
		qp->engine->cfg.async_event(qp->engine->cfg.ctx, types[event], qp->init.ctx);
}

static void op_failed(void *ctx)
{
	struct eng_qp *qp = ctx;

	if (unlikely(qp->init.is_rd))
		eng_rd_leave(qp);
	eng_window_revoke(ctx); /* the thread that resets or destroys the QP waits for the peer */
}

static void op_put(void *ctx, void *to, const void *from, uint32_t len, uint32_t offset)
{
	eng_put(((struct eng_qp *)ctx)->engine, to, from, len, offset);
}

void eng_qp_count(void *ctx, enum tp_counter counter)
{
	const struct eng_qp *qp = ctx;
	const struct eng_config *cfg = &qp->engine->cfg;
	const unsigned port_num = tp_qp_attr(qp->tp)->port_num;

	if (cfg->count && port_num && port_num <= cfg->devpage->num_ports)
		cfg->count(cfg->ctx, port_num, counter);
}

/* those that are the same for all QPs */
#define COMMON_OPS                                                                                 \
	.put = op_put, .invalidate = op_invalidate, .bind = op_bind,                               \
	.complete_send = op_complete_send, .event = eng_qp_event, .path_failed = eng_path_failed, \
	.count = eng_qp_count

const struct tp_ops eng_tp_ops = {
	COMMON_OPS,
	.mem = op_mem,
	.grants = op_grants,
	.recv_get = op_recv_get,
	.recv_flush = op_recv_flush,
	.complete_recv = op_complete_recv,
	.failed = op_failed,
};

static void op_failed_tags(void *ctx)
{
	op_failed(ctx);
	eng_tag_failed(ctx);
}

static const struct tp_ops tag_ops = {
	COMMON_OPS,
	.mem = op_mem,
	.grants = op_grants,
	.recv_get = eng_tag_recv_get,
	.recv_flush = op_recv_flush,
	.complete_own = op_complete_own,
	.complete_recv = op_complete_tagged,
	.failed = op_failed_tags,
};

static const struct tp_ops xrc_target_ops = {
	COMMON_OPS,
	.mem = eng_xrc_mem,
	.grants = eng_xrc_grants,
	.recv_get = eng_xrc_recv_get,
	.recv_flush = eng_xrc_recv_flush,
	.complete_recv = op_complete_xrc,
	.failed = op_failed,
};

/* --- creation --- */

struct eng_qp *eng_qp_find(struct engine *e, uint32_t qpn, unsigned port_num)
{
	if (unlikely(qpn < 2))
		return e->special[port_num * 2 + qpn];
	return eng_table_get(&e->qps, qpn);
}

static int enter_tables(struct engine *e, struct eng_qp *qp)
{
	struct eng_qp **slot;

	if (qp->init.qpn >= 2)
		return eng_table_add(&e->qps, qp->init.qpn, qp);
	slot = &e->special[qp->init.port_num * 2 + qp->init.qpn];
	if (*slot)
		return -EEXIST;
	*slot = qp;
	return 0;
}

static void leave_tables(struct engine *e, struct eng_qp *qp)
{
	if (qp->init.qpn >= 2)
		eng_table_set(&e->qps, qp->init.qpn, NULL);
	else
		e->special[qp->init.port_num * 2 + qp->init.qpn] = NULL;
}

/* Does it take receives that are not in a queue of its own? */
static bool shares_receives(const struct eng_qp_init *in)
{
	return in->srq || in->is_ee || in->type == IBV_QPT_XRC_RECV;
}

/* on cache lines of its own */
static struct eng_qp *alloc_qp(const struct eng_qp_init *in)
{
	const size_t sges = shares_receives(in) ? TP_MAX_SGE * sizeof(struct tp_sge) : 0;
	void *memory = rt_zalloc(sizeof(struct eng_qp) + sges + CACHE_LINE);
	struct eng_qp *qp;

	if (!memory)
		return NULL;
	qp = (void *)ALIGN_UP((uintptr_t)memory, (uintptr_t)CACHE_LINE);
	qp->memory = memory;
	return qp;
}

static int alloc_parts(struct eng_qp *qp)
{
	static const enum tp_type types[] = {
		[IBV_QPT_RC] = TP_RC,	    [IBV_QPT_UC] = TP_UC,
		[IBV_QPT_UD] = TP_UD,	    [IBV_QPT_XRC_SEND] = TP_XRC,
		[IBV_QPT_XRC_RECV] = TP_XRC};
	const struct eng_qp_init *in = &qp->init;
	bool is_target = in->type == IBV_QPT_XRC_RECV;
	uint32_t max_rd = in->type == IBV_QPT_RC || is_target ? TP_MAX_DEST_RD : 0;
	struct tp_qp_init tpi = {
		.type = in->is_raw ? TP_RAW : in->is_rd ? TP_RD : in->is_ee ? TP_EE : types[in->type],
		.qpn = in->qpn,
		.sq_depth = in->max_send_wr,
		.max_sge = in->max_send_sge,
		.max_inline = in->max_inline,
		.max_dest_rd = max_rd,
		.max_header = in->max_header,
		.sq_sig_all = in->sq_sig_all,
		.has_srq = in->srq != NULL,
		.min_ack_ns = qp->engine->cfg.devpage->min_ack_timeout_us * NSEC_PER_USEC,
		.own_depth = eng_has_tags(qp) ? ENG_TAG_REQUESTS : in->is_ee,
		.ops = is_target	? &xrc_target_ops :
		       eng_has_tags(qp) ? &tag_ops :
		       in->is_ee	? &eng_ee_ops :
					  &eng_tp_ops,
		.ctx = qp,
	};
	size_t size;

	if (eng_has_tags(qp))
		tpi.max_sge = MAX(tpi.max_sge, (uint32_t)ENG_TAG_SGES);
	size = tp_qp_size(tpi.sq_depth + tpi.own_depth, tpi.max_sge, tpi.max_inline, max_rd);
	/* on failure eng_qp_free() frees what is there */
	if ((!in->srq && eng_rq_init(&qp->rq, in->pd, in->max_recv_wr, in->max_recv_sge,
				     &qp->rq_block, in->memory, ENG_QUEUE_RECV)) ||
	    !eng_block_alloc(&qp->tp_block, in->memory, ENG_QUEUE_SEND, size + CACHE_LINE))
		return -ENOMEM;
	qp->tp = tp_qp_init((void *)ALIGN_UP((uintptr_t)qp->tp_block.at, (uintptr_t)CACHE_LINE),
			    &tpi);
	return 0;
}

static bool has_parts(const struct eng_qp_init *in)
{
	switch (in->type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return in->is_ee ? !in->send_cq && !in->recv_cq && !in->srq && !in->max_recv_wr :
				   in->send_cq && in->recv_cq;
	case IBV_QPT_XRC_SEND:
		return in->send_cq && in->recv_cq == in->send_cq && !in->srq && !in->max_recv_wr;
	case IBV_QPT_XRC_RECV:
		return !in->send_cq && !in->recv_cq && !in->srq && !in->max_send_wr &&
		       !in->max_recv_wr;
	default:
		return false;
	}
}

static bool init_is_sound(const struct engine *e, const struct eng_qp_init *in)
{
	return has_parts(in) && (!in->is_raw || in->type == IBV_QPT_UD) &&
	       (!(in->is_rd || in->is_ee) || in->type == IBV_QPT_RC) &&
	       in->max_send_sge <= TP_MAX_SGE &&
	       (!in->srq || !in->srq->tags || (in->type == IBV_QPT_RC && !in->is_rd)) &&
	       in->max_recv_sge <= TP_MAX_SGE && in->max_inline <= TP_MAX_INLINE &&
	       (!in->max_header || (in->type == IBV_QPT_UD && !in->is_raw &&
				    in->max_header <= TP_MAX_TSO_HEADER &&
				    e->cfg.link_ops->reserve_train)) &&
	       (in->qpn >= 2 || (in->port_num && in->port_num <= e->cfg.devpage->num_ports));
}

int eng_qp_prepare(struct engine *e, const struct eng_qp_init *init, struct eng_qp **qp_out)
{
	struct eng_qp *qp;
	int ret;

	if (!init_is_sound(e, init))
		return -EINVAL;
	qp = alloc_qp(init);
	if (!qp)
		return -ENOMEM;
	qp->engine = e;
	qp->init = *init;
	qp->handles = 1;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->recv_rq = init->srq ? &init->srq->rq : &qp->rq;
	INIT_LIST_HEAD(&qp->tx_node);
	INIT_LIST_HEAD(&qp->rd_node);
	INIT_LIST_HEAD(&qp->held_node);
	qp->slot = &eng_no_slot;
	INIT_LIST_HEAD(&qp->ack_node);
	INIT_LIST_HEAD(&qp->all_node);
	INIT_LIST_HEAD(&qp->tell_node);
	qp->lone_ack_sent = NO_LONE_ACK;
	INIT_LIST_HEAD(&qp->mcast);
	ret = init->srq && init->srq->tags ? eng_tag_qp_init(qp) :
	      init->is_ee		   ? eng_ee_init(qp) :
					     0;
	if (!ret)
		ret = alloc_parts(qp);
	if (ret) {
		eng_qp_free(qp);
		return ret;
	}
	eng_find_pkey(qp);
	*qp_out = qp;
	return 0;
}

int eng_qp_enter(struct eng_qp *qp)
{
	int ret = enter_tables(qp->engine, qp);

	if (ret)
		return ret;
	list_add_tail(&qp->all_node, &qp->engine->all_qps);
	if (qp->send_cq) {
		qp->send_cq->users++;
		qp->recv_cq->users++;
	}
	if (qp->init.srq)
		qp->init.srq->users++;
	return 0;
}

int eng_qp_create(struct engine *e, const struct eng_qp_init *init, struct eng_qp **qp_out)
{
	struct eng_qp *qp;
	int ret = eng_qp_prepare(e, init, &qp);

	if (ret)
		return ret;
	eng_lock(e);
	ret = eng_qp_enter(qp);
	eng_unlock(e);
	if (ret)
		eng_qp_free(qp);
	else
		*qp_out = qp;
	return ret;
}

static void detach_all(struct eng_qp *qp)
{
	struct eng_mcast *m, *tmp;

	list_for_each_entry_safe(m, tmp, &qp->mcast, in_qp) {
		list_del(&m->in_engine);
		list_del(&m->in_qp);
		rt_free(m);
	}
}

void eng_qp_clean_cqs(struct eng_qp *qp)
{
	if (qp->send_cq)
		eng_cq_clean(qp->send_cq, qp->init.qpn);
	if (qp->recv_cq)
		eng_cq_clean(qp->recv_cq, qp->init.qpn);
}

bool eng_qp_leave(struct eng_qp *qp)
{
	struct engine *e = qp->engine;
	bool revoked = eng_window_end(qp);

	eng_window_leave(qp);
	leave_tables(e, qp);
	if (unlikely(qp->init.is_rd || qp->ee))
		eng_rd_leave(qp);
	list_del(&qp->tx_node);
	list_del(&qp->held_node);
	list_del(&qp->ack_node);
	list_del(&qp->tell_node);
	list_del(&qp->all_node);
	eng_lanes_forget(e, qp);
	eng_mw_leave(qp);
	detach_all(qp);
	eng_qp_clean_cqs(qp);
	if (qp->send_cq) {
		qp->send_cq->users--;
		qp->recv_cq->users--;
	}
	if (qp->init.srq)
		qp->init.srq->users--;
	return revoked;
}

void eng_qp_free(struct eng_qp *qp)
{
	eng_block_free(&qp->tp_block);
	rt_free(qp->held_packet);
	rt_free(qp->header_memory);
	eng_block_free(&qp->rq_block);
	eng_tag_qp_free(qp);
	rt_free(qp->ee);
	rt_free(qp->memory);
}

void eng_qp_destroy(struct eng_qp *qp)
{
	struct engine *e = qp->engine;
	bool revoked;

	eng_lock_qp(qp);
	revoked = eng_qp_leave(qp);
	eng_unlock(e);
	if (revoked)
		eng_window_quiesce(e);
	eng_window_settle(e);
	eng_qp_free(qp);
}

/* --- multicast (10.5) --- */

static struct eng_mcast *find_mcast(struct eng_qp *qp, const union wire_gid *gid, uint16_t lid)
{
	struct eng_mcast *m;

	list_for_each_entry(m, &qp->mcast, in_qp)
		if (m->lid == lid && !memcmp(&m->gid, gid, sizeof(*gid)))
			return m;
	return NULL;
}

int eng_qp_attach_mcast(struct eng_qp *qp, const union wire_gid *gid, uint16_t lid)
{
	struct eng_mcast *m;

	if (!tp_is_datagram(qp->tp))
		return -EINVAL;
	eng_lock(qp->engine);
	m = find_mcast(qp, gid, lid);
	eng_unlock(qp->engine);
	if (m)
		return 0; /* attaching twice is attaching once */
	m = rt_zalloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->qp = qp;
	m->gid = *gid;
	m->lid = lid;
	eng_lock(qp->engine);
	list_add_tail(&m->in_engine, &qp->engine->mcast);
	list_add_tail(&m->in_qp, &qp->mcast);
	eng_unlock(qp->engine);
	return 0;
}

int eng_qp_detach_mcast(struct eng_qp *qp, const union wire_gid *gid, uint16_t lid)
{
	struct eng_mcast *m;

	eng_lock(qp->engine);
	m = find_mcast(qp, gid, lid);
	if (m) {
		list_del(&m->in_engine);
		list_del(&m->in_qp);
	}
	eng_unlock(qp->engine);
	rt_free(m);
	return m ? 0 : -EINVAL;
}
