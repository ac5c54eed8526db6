/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ibv_modify_qp(): the verbs' attributes become those of the transport. The midlayer has the table of
 * the attributes that a transition needs (src/core/qp_state.c). Which transitions are legal is checked
 * here, because a QP may move to an error state by itself, and only the engine knows the present state.
 */
#include <string.h>

#include "engine/private.h"
#include "transport/fast.h"

/* legal_next[from]: bit mask of states that modify may go to (figure 124) */
static const uint16_t legal_next[] = {
	[IBV_QPS_RESET] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_INIT | 1 << IBV_QPS_ERR,
	[IBV_QPS_INIT] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_INIT | 1 << IBV_QPS_RTR | 1 << IBV_QPS_ERR,
	[IBV_QPS_RTR] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_RTS | 1 << IBV_QPS_ERR,
	[IBV_QPS_RTS] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD | 1 << IBV_QPS_ERR,
	[IBV_QPS_SQD] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD | 1 << IBV_QPS_ERR,
	[IBV_QPS_SQE] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_RTS | 1 << IBV_QPS_ERR,
	[IBV_QPS_ERR] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_ERR,
};

struct tp_av eng_av_of(const struct ibv_ah_attr *ah)
{
	struct tp_av av = {
		.dlid = ah->dlid,
		.sl = ah->sl & 0xf,
		.src_path_bits = ah->src_path_bits,
		.static_rate_enc = ah->static_rate,
		.port_num = ah->port_num,
		.is_global = ah->is_global,
		.sgid_index = ah->grh.sgid_index,
		.hop_limit = ah->grh.hop_limit,
		.traffic_class = ah->grh.traffic_class,
		.flow_label = ah->grh.flow_label & 0xfffff,
	};

	memcpy(av.dgid.raw, ah->grh.dgid.raw, 16);
	return av;
}

static bool attr_is_sound(const struct eng_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	unsigned ports = qp->engine->cfg.devpage->num_ports;

	if (mask & IBV_QP_PORT && (a->port_num < 1 || a->port_num > ports))
		return false;
	if (mask & IBV_QP_PKEY_INDEX && a->pkey_index >= ABI_PKEYS)
		return false;
	if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return false;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > TP_MAX_DEST_RD)
		return false;
	if (mask & IBV_QP_AV && a->ah_attr.is_global && a->ah_attr.grh.sgid_index >= ABI_GIDS)
		return false;
	if (mask & IBV_QP_RATE_LIMIT && !qp->init.is_raw)
		return false;
	return eng_path_may_be(qp, a, mask);
}

void eng_refresh_pkey(struct eng_qp *qp)
{
	tp_qp_attr(qp->tp)->pkey = *qp->live_pkey;
}

void eng_find_pkey(struct eng_qp *qp)
{
	const struct tp_attr *t = tp_qp_attr(qp->tp);

	qp->live_pkey = &eng_port(qp->engine, t->port_num)->pkey[t->pkey_index];
	eng_refresh_pkey(qp);
}

/* one line per attribute: its bit, where it comes from, where it goes */
static void apply(struct eng_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct tp_attr *t = tp_qp_attr(qp->tp);
	struct ibv_qp_attr *q = &qp->attr;

#define SET(bit, to, field, value)                                                                 \
	do {                                                                                       \
		if (mask & (bit)) {                                                                \
			(to) = (value);                                                            \
			q->field = a->field;                                                       \
		}                                                                                  \
	} while (0)
	SET(IBV_QP_ACCESS_FLAGS, t->qp_access_flags, qp_access_flags, (int)a->qp_access_flags);
	SET(IBV_QP_PKEY_INDEX, t->pkey_index, pkey_index, a->pkey_index);
	SET(IBV_QP_PORT, t->port_num, port_num, a->port_num);
	SET(IBV_QP_QKEY, t->qkey, qkey, a->qkey);
	SET(IBV_QP_AV, t->av, ah_attr, eng_av_of(&a->ah_attr));
	SET(IBV_QP_PATH_MTU, t->mtu_bytes, path_mtu, (uint16_t)(128u << a->path_mtu));
	SET(IBV_QP_TIMEOUT, t->timeout_enc, timeout, a->timeout & 0x1f);
	SET(IBV_QP_RETRY_CNT, t->retry_cnt, retry_cnt, a->retry_cnt & 7);
	SET(IBV_QP_RNR_RETRY, t->rnr_retry, rnr_retry, a->rnr_retry & 7);
	SET(IBV_QP_RQ_PSN, t->rq_psn, rq_psn, psn(a->rq_psn));
	SET(IBV_QP_SQ_PSN, t->sq_psn, sq_psn, psn(a->sq_psn));
	SET(IBV_QP_MAX_QP_RD_ATOMIC, t->max_rd_atomic, max_rd_atomic, a->max_rd_atomic);
	SET(IBV_QP_MAX_DEST_RD_ATOMIC, t->max_dest_rd_atomic, max_dest_rd_atomic,
	    a->max_dest_rd_atomic);
	SET(IBV_QP_MIN_RNR_TIMER, t->min_rnr_timer_enc, min_rnr_timer, a->min_rnr_timer & 0x1f);
	SET(IBV_QP_DEST_QPN, t->dest_qpn, dest_qp_num, a->dest_qp_num & 0xffffff);
#undef SET
	if (mask & IBV_QP_RATE_LIMIT)
		eng_pace_set(qp, a->rate_limit, 0, 0);
	if (mask & IBV_QP_ALT_PATH) {
		q->alt_ah_attr = a->alt_ah_attr;
		q->alt_pkey_index = a->alt_pkey_index;
		q->alt_port_num = a->alt_port_num;
		q->alt_timeout = a->alt_timeout;
	}
	if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state == IBV_MIG_MIGRATED &&
	    q->path_mig_state == IBV_MIG_ARMED)
		eng_migrate(qp);
	else if (mask & IBV_QP_PATH_MIG_STATE)
		q->path_mig_state = a->path_mig_state;
	eng_path_loaded(qp, mask);
}

/* whom the QP speaks to, and as whom */
#define RAW_MTU_BYTES 16384 /* more than a frame */
#define CONNECTION (IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PORT | IBV_QP_PKEY_INDEX)

static void prepare_for(struct eng_qp *qp, enum ibv_qp_state to)
{
	struct tp_attr *t = tp_qp_attr(qp->tp);

	if (qp->init.qpn < 2)
		t->port_num = qp->init.port_num;
	/* the transport knows powers of two; post.c the limit of a frame */
	if (tp_is_datagram(qp->tp))
		t->mtu_bytes = qp->init.is_raw ?
				       RAW_MTU_BYTES :
				       (uint16_t)(128u << eng_port(qp->engine, t->port_num)->max_mtu_enc);
	if (to == IBV_QPS_RESET) {
		eng_qp_clean_cqs(qp);
		eng_pace_set(qp, 0, 0, 0);
		qp->rq.head = qp->rq.tail;
		qp->held_bytes = 0;
		qp->spoilt = qp->has_alternate = qp->awaits_migration = false;
		qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	}
}

static bool is_legal(const struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = tp_qp_state(qp->tp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (to > IBV_QPS_ERR || !(legal_next[from] & 1 << to) || !attr_is_sound(qp, attr, mask))
		return false;
	return !(mask & IBV_QP_CUR_STATE) || attr->cur_qp_state == from ||
	       (attr->cur_qp_state == IBV_QPS_RTS && from == IBV_QPS_SQE);
}

int eng_qp_may_modify(struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	bool legal;

	eng_lock(qp->engine);
	legal = is_legal(qp, attr, mask);
	eng_unlock(qp->engine);
	return legal ? 0 : -EINVAL;
}

int eng_qp_set(struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask, bool *revoked)
{
	enum ibv_qp_state from = tp_qp_state(qp->tp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	struct engine *e = qp->engine;

	*revoked = false;
	if (!is_legal(qp, attr, mask))
		return -EINVAL;
	*revoked = eng_window_end(qp);
	apply(qp, attr, mask);
	prepare_for(qp, to);
	if (to == IBV_QPS_RESET || mask & CONNECTION)
		eng_window_leave(qp);
	if (to == IBV_QPS_RESET || mask & IBV_QP_DEST_QPN)
		qp->peer_owner = 0;
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD)
		qp->tells_drained = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	eng_find_pkey(qp);
	eng_flow_drop(qp); /* packets with the new attributes may have another flow */
	eng_lanes_forget(e, qp);
	if (to == IBV_QPS_RESET && (qp->init.is_rd || qp->ee))
		eng_rd_reset(qp);
	if (mask & IBV_QP_STATE) {
		e->now = e->cfg.now(e->cfg.ctx);
		tp_qp_modify(qp->tp, to, e->now);
		if (eng_has_tags(qp))
			eng_tag_modified(qp, to);
	}
	if (qp->init.is_rd)
		eng_rd_advance(qp);
	else if (qp->ee)
		eng_ee_turn(qp);
	eng_qp_touch(qp);
	return 0;
}

int eng_qp_modify(struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct engine *e = qp->engine;
	bool revoked;
	int ret;

	eng_lock_qp(qp);
	ret = eng_qp_set(qp, attr, mask, &revoked);
	if (!ret)
		eng_tx(e);
	eng_unlock(e);
	if (revoked)
		eng_window_quiesce(e);
	return ret;
}

void eng_qp_set_peer_owner(struct eng_qp *qp, uint32_t owner)
{
	eng_lock(qp->engine);
	qp->peer_owner = owner;
	eng_lanes_forget(qp->engine, qp);
	eng_unlock(qp->engine);
}

void eng_qp_query(struct eng_qp *qp, struct ibv_qp_attr *attr)
{
	eng_lock(qp->engine);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = tp_qp_state(qp->tp);
	attr->sq_draining = tp_qp_is_draining(qp->tp);
	attr->cap = (struct ibv_qp_cap){
		.max_send_wr = qp->init.max_send_wr,
		.max_recv_wr = qp->init.srq ? 0 : qp->init.max_recv_wr,
		.max_send_sge = qp->init.max_send_sge,
		.max_recv_sge = qp->init.srq ? 0 : qp->init.max_recv_sge,
		.max_inline_data = qp->init.max_inline,
	};
	eng_unlock(qp->engine);
}
