/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ibv_modify_qp(): softibd checks each transition against the table of attributes (IBA v1
 * 10.3.1, table 91); the engine then makes it.
 */
#include "soft.h"

static struct ib_uverbs_qp_dest dest_of(const struct ibv_ah_attr *ah)
{
	struct ib_uverbs_qp_dest dest = {
		/* as adapters do: UCX sets all bits on RoCE */
		.flow_label = ah->grh.flow_label & IB_GRH_FLOWLABEL_MASK,
		.dlid = ah->dlid,
		.sgid_index = ah->grh.sgid_index,
		.hop_limit = ah->grh.hop_limit,
		.traffic_class = ah->grh.traffic_class,
		.sl = ah->sl,
		.src_path_bits = ah->src_path_bits,
		.static_rate = ah->static_rate,
		.is_global = ah->is_global,
		.port_num = ah->port_num,
	};

	memcpy(dest.dgid, ah->grh.dgid.raw, sizeof(dest.dgid));
	return dest;
}

static struct ib_uverbs_modify_qp modify_request(const struct ibv_qp *qp,
						 const struct ibv_qp_attr *a, int mask)
{
	struct ib_uverbs_modify_qp req = {
		.qp_handle = qp->handle,
		.attr_mask = (uint32_t)mask,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.qp_access_flags = a->qp_access_flags,
		.pkey_index = a->pkey_index,
		.alt_pkey_index = a->alt_pkey_index,
		.qp_state = (uint8_t)a->qp_state,
		.cur_qp_state = (uint8_t)a->cur_qp_state,
		.path_mtu = (uint8_t)a->path_mtu,
		.path_mig_state = (uint8_t)a->path_mig_state,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_port_num = a->alt_port_num,
		.alt_timeout = a->alt_timeout,
	};

	if (mask & IBV_QP_AV)
		req.dest = dest_of(&a->ah_attr);
	if (mask & IBV_QP_ALT_PATH)
		req.alt_dest = dest_of(&a->alt_ah_attr);
	return req;
}

/* Attributes that came later have a command of their own. */
static int command_modify(struct soft_context *ctx, const struct ibv_qp *qp,
			  const struct ibv_qp_attr *a, int mask)
{
	struct ib_uverbs_ex_modify_qp req = {.base = modify_request(qp, a, mask),
					     .rate_limit = a->rate_limit};
	struct ib_uverbs_ex_modify_qp_resp resp;

	if (mask & IBV_QP_RATE_LIMIT)
		return session_command_ex(ctx, IB_USER_VERBS_EX_CMD_MODIFY_QP, &req, sizeof(req),
					  &resp, sizeof(resp));
	return session_command(ctx, IB_USER_VERBS_CMD_MODIFY_QP, &req.base, sizeof(req.base), NULL,
			       0);
}

/* The flow of a connected QP that goes to RTR with these attributes. Return: false: it has none,
 * or the attributes are not complete */
static bool flow_of(struct soft_context *ctx, struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		    int mask, struct abi_resolve *flow)
{
	const int peer = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;
	struct ibv_qp_attr now;
	struct abi_devport port;
	uint16_t pkey_index;

	if (qp->qp_type == IBV_QPT_UD || qp->qp_type == IBV_QPT_RAW_PACKET ||
	    (mask & peer) != peer || attr->qp_state != IBV_QPS_RTR)
		return false;
	eng_qp_query(to_qp(qp)->eng, &now);
	pkey_index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : now.pkey_index;
	if (device_port_read(ctx, attr->ah_attr.port_num, &port) || pkey_index >= ABI_PKEYS)
		return false;
	*flow = (struct abi_resolve){
		.port_num = attr->ah_attr.port_num,
		.dest_qpn = attr->dest_qp_num,
		.dlid = attr->ah_attr.dlid,
		.pkey = port.pkey[pkey_index],
		.sl = attr->ah_attr.sl,
	};
	return flow->dest_qpn >= 2 && flow->dlid < WIRE_LID_MULTICAST;
}

/* Does an INIT QP stay as softibd knows it, except for what its peer may do with memory? Then
 * the engine alone needs to know, until the peer can reach the QP. librdmacm does this before
 * each transition to RTR. */
static bool changes_access_alone(const struct soft_context *ctx, struct ibv_qp *qp,
				 const struct ibv_qp_attr *attr, int mask)
{
	const int known = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr now;

	if ((qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC) || mask & ~known ||
	    !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_INIT)
		return false;
	if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC &&
	    ctx->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE)
		return false;
	eng_qp_query(to_qp(qp)->eng, &now);
	return now.qp_state == IBV_QPS_INIT &&
	       !(mask & IBV_QP_PKEY_INDEX && attr->pkey_index != now.pkey_index) &&
	       !(mask & IBV_QP_PORT && attr->port_num != now.port_num);
}

/* The transition to RTR takes along what changes_access_alone() has kept from softibd. */
static int add_access(const struct soft_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr now;

	if (!qp->access_kept || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RTR ||
	    mask & IBV_QP_ACCESS_FLAGS)
		return mask;
	eng_qp_query(qp->eng, &now);
	attr->qp_access_flags = now.qp_access_flags;
	return mask | IBV_QP_ACCESS_FLAGS;
}

/* Is this one of the transitions of a connected QP that softibd cannot refuse? Then the program
 * need not wait for its answer. (core's limits_check() has the limits.) */
static bool is_certain(const struct soft_context *ctx, struct ibv_qp *qp,
		       const struct ibv_qp_attr *attr, int mask)
{
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr now;

	if (qp->qp_type != IBV_QPT_RC || (mask != to_init && mask != to_rts))
		return false;
	eng_qp_query(to_qp(qp)->eng, &now);
	if (mask == to_init)
		return now.qp_state == IBV_QPS_RESET && attr->qp_state == IBV_QPS_INIT &&
		       attr->port_num >= 1 && attr->port_num <= ctx->num_ports &&
		       attr->pkey_index == 0 &&
		       !(attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC &&
			 ctx->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE);
	return now.qp_state == IBV_QPS_RTR && attr->qp_state == IBV_QPS_RTS &&
	       attr->timeout <= 31 && attr->retry_cnt <= 7 && attr->rnr_retry <= 7 &&
	       attr->max_rd_atomic <= ctx->attr.orig_attr.max_qp_init_rd_atom;
}

/* May softibd refuse what an RC QP is to be in RTR? It has answered ahead about its flow, which has the
 * path that softibd gave. */
static bool is_certain_in_rtr(struct soft_context *ctx, struct ibv_qp *qp,
			      const struct ibv_qp_attr *attr, int mask)
{
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct abi_devport port;

	return qp->qp_type == IBV_QPT_RC && (mask & ~IBV_QP_ACCESS_FLAGS) == to_rtr &&
	       !attr->ah_attr.is_global && attr->ah_attr.sl <= 15 &&
	       attr->max_dest_rd_atomic <= ctx->attr.orig_attr.max_qp_rd_atom &&
	       attr->min_rnr_timer <= 31 && !device_port_read(ctx, attr->ah_attr.port_num, &port) &&
	       attr->path_mtu <= port.max_mtu_enc; /* the engine has checked that it is one */
}

/* Nobody can reach a QP in INIT, so softibd hears of that with the next command. A QP that the RDMA CM
 * connects is not reached in RTR before its next command, before which softibd hears of it. */
static int tell_modified(struct soft_context *ctx, const struct ibv_qp *qp,
			 const struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_modify_qp req = modify_request(qp, attr, mask);

	_Static_assert((sizeof(struct ib_uverbs_cmd_hdr) + sizeof(req)) % 8 == 0, "another one may follow");
	if (attr->qp_state == IBV_QPS_INIT || (attr->qp_state == IBV_QPS_RTR && context_tells_now()))
		return session_tell_later(ctx, ABI_CMD_MODIFIED, &req, sizeof(req));
	return session_tell(ctx, ABI_CMD_MODIFIED, &req, sizeof(req));
}

/* softibd's part of ibv_modify_qp(). For a connected QP that goes to RTR it also says whether there
 * is a lane for its packets, before the first of them, and which program owns its peer. */
static int softibd_modify(struct soft_context *ctx, struct ibv_qp *qp, struct ibv_qp_attr *attr,
			  int mask, uint32_t *owner)
{
	struct ib_uverbs_modify_qp req;
	struct abi_resolve flow;

	*owner = 0;
	if (changes_access_alone(ctx, qp, attr, mask)) {
		to_qp(qp)->access_kept |= (mask & IBV_QP_ACCESS_FLAGS) != 0;
		return 0;
	}
	if (is_certain(ctx, qp, attr, mask))
		return tell_modified(ctx, qp, attr, mask);
	mask = add_access(to_qp(qp), attr, mask);
	if (ctx->link.lanes.off || mask & IBV_QP_RATE_LIMIT ||
	    !flow_of(ctx, qp, attr, mask, &flow))
		return command_modify(ctx, qp, attr, mask);
	if (is_certain_in_rtr(ctx, qp, attr, mask) && lanes_take_expected(ctx, &flow, owner))
		return tell_modified(ctx, qp, attr, mask);
	req = modify_request(qp, attr, mask);
	return lanes_connect(ctx, &req, &flow, owner);
}

static int resolve_paths(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct soft_context *ctx = to_context(qp->context);
	struct ibv_qp_attr now;
	int rc = 0;

	if (mask & IBV_QP_AV) {
		eng_qp_query(to_qp(qp)->eng, &now);
		rc = ah_resolve(ctx, &attr->ah_attr, now.port_num);
	}
	if (!rc && mask & IBV_QP_ALT_PATH)
		rc = ah_resolve(ctx, &attr->alt_ah_attr, attr->alt_port_num);
	return rc;
}

/* softibd has agreed. Of a target that others have open it alone knows the state. */
static int engine_modify(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int rc = eng_qp_modify(qp->eng, attr, mask);

	return rc && eng_target_is_shared(qp->eng) ? 0 : rc;
}

/* softibd does not know that a failed request has moved the QP to SQE, out of which fewer attributes
 * may be changed than in RTS. To RESET and ERR there is a way from anywhere. */
static int add_state(const struct soft_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	bool falls = mask & IBV_QP_STATE &&
		     (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR);
	struct ibv_qp_attr now;

	if (falls || mask & IBV_QP_CUR_STATE)
		return mask;
	eng_qp_query(qp->eng, &now);
	if (now.qp_state != IBV_QPS_SQE)
		return mask;
	attr->cur_qp_state = IBV_QPS_SQE;
	return mask | IBV_QP_CUR_STATE;
}

static bool may_be_paced(const struct soft_context *ctx, const struct ibv_qp *qp)
{
	return ctx->attr.packet_pacing_caps.supported_qpts & 1u << qp->qp_type;
}

/**
 * ibv_modify_qp() - change state or attributes of a QP
 * Return: 0; EINVAL the transition, or its attributes, are not legal; EHOSTUNREACH on
 * Ethernet, no port has the DGID; EOPNOTSUPP a rate limit, which raw packet QPs alone have; EIO
 * Spec: IBA v1 11.2.4.2
 */
EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *given, int mask)
{
	struct soft_context *ctx = to_context(ibqp->context);
	struct ibv_qp_attr resolved = *given, *attr = &resolved;
	uint32_t owner;
	int rc;

	if (!may_be_paced(ctx, ibqp) && mask & IBV_QP_RATE_LIMIT)
		return verbs_err(-EOPNOTSUPP);
	rc = resolve_paths(ibqp, attr, mask);
	if (rc)
		return verbs_err(rc);
	if (mask & IBV_QP_STATE && (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR))
		context_settle(ctx, to_qp(ibqp)->eng);
	mask = add_state(to_qp(ibqp), attr, mask);
	/* first, since softibd would hold a transition for made that it has allowed */
	if (!eng_target_is_shared(to_qp(ibqp)->eng))
		rc = eng_qp_may_modify(to_qp(ibqp)->eng, attr, mask);
	if (!rc)
		rc = softibd_modify(ctx, ibqp, attr, mask, &owner);
	if (!rc)
		rc = engine_modify(to_qp(ibqp), attr, mask);
	if (!rc && mask & IBV_QP_STATE) {
		ibqp->state = attr->qp_state;
		to_qp(ibqp)->access_kept &= attr->qp_state == IBV_QPS_INIT;
	}
	if (!rc && owner)
		eng_qp_set_peer_owner(to_qp(ibqp)->eng, owner);
	return verbs_err(rc);
}

/**
 * qp_modify_rate_limit() - ibv_modify_qp_rate_limit()
 * Return: 0; EINVAL the QP is not in RTS, the rate is not one of the device's, or a burst without a
 * rate; EOPNOTSUPP no raw packet QP; EIO
 */
int qp_modify_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *limit)
{
	struct soft_context *ctx = to_context(qp->context);
	struct ibv_qp_attr attr = {.rate_limit = limit->rate_limit};
	int rc;

	if (!may_be_paced(ctx, qp))
		return verbs_err(-EOPNOTSUPP);
	if (limit->comp_mask || (!limit->rate_limit && (limit->max_burst_sz || limit->typical_pkt_sz)))
		return verbs_err(-EINVAL);
	rc = command_modify(ctx, qp, &attr, IBV_QP_RATE_LIMIT);
	if (!rc)
		rc = eng_qp_pace(to_qp(qp)->eng, limit->rate_limit, limit->max_burst_sz,
				 limit->typical_pkt_sz);
	return verbs_err(rc);
}
