/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive work queues, and the tables by which a raw packet QP spreads its frames over them.
 * A work queue is a raw packet QP whose send queue nobody uses: softibd knows it by that
 * QP's handle, and its states are those that this QP goes through. A table is the library's
 * own until a QP is made with it.
 */
#include <stdlib.h>

#include "abi/objects.h"
#include "soft.h"

/** struct soft_wq - a work queue */
struct soft_wq {
	struct ibv_wq ibv;
	struct ibv_qp *qp;
	atomic_int users; /* tables */
};

/** struct soft_table - an indirection table */
struct soft_table {
	struct ibv_rwq_ind_table ibv;
	atomic_int users; /* QPs */
	uint32_t log_size;
	struct ibv_wq *wq[];
};

static struct soft_wq *to_wq(struct ibv_wq *wq)
{
	return container_of(wq, struct soft_wq, ibv);
}

static struct soft_table *to_table(struct ibv_rwq_ind_table *table)
{
	return container_of(table, struct soft_table, ibv);
}

/* --- work queues --- */

static int post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return qp_post_recv(to_wq(wq)->qp, wr, bad);
}

/**
 * wq_create() - ibv_create_wq()
 * Return: the queue in RESET; NULL and errno: EINVAL kind or limits; EOPNOTSUPP flags, or no
 * port of Ethernet; ENOMEM; EIO
 */
struct ibv_wq *wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = attr->cq,
		.recv_cq = attr->cq,
		.cap = {.max_recv_wr = attr->max_wr, .max_recv_sge = attr->max_sge},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = attr->pd,
	};
	struct soft_wq *wq;

	if (attr->wq_type != IBV_WQT_RQ ||
	    attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS)
		return verbs_null(-EINVAL);
	if (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags)
		return verbs_null(-EOPNOTSUPP);
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return verbs_null(-ENOMEM);
	wq->qp = qp_create_ex(context, &init);
	if (!wq->qp) {
		free(wq);
		return NULL;
	}
	wq->ibv = (struct ibv_wq){
		.context = context,
		.pd = attr->pd,
		.cq = attr->cq,
		.wq_num = wq->qp->qp_num,
		.handle = wq->qp->handle,
		.state = IBV_WQS_RESET,
		.wq_type = attr->wq_type,
		.post_recv = post_recv,
	};
	to_qp(wq->qp)->wq = &wq->ibv;
	attr->max_wr = init.cap.max_recv_wr;
	attr->max_sge = init.cap.max_recv_sge;
	return &wq->ibv;
}

/** wq_acknowledge() - an event of @ibwq was acknowledged, which its QP counts */
void wq_acknowledge(struct ibv_wq *ibwq)
{
	qp_acknowledge(to_wq(ibwq)->qp);
}

/* to a state, by a way that the QP's states allow */
static int go_through(struct ibv_qp *qp, const enum ibv_qp_state *states, int num)
{
	struct ibv_qp_attr attr = {.port_num = 1};
	int rc = 0;

	for (int i = 0; i < num && !rc; i++) {
		attr.qp_state = states[i];
		rc = ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | (states[i] == IBV_QPS_INIT ? IBV_QP_PORT : 0));
	}
	return rc;
}

static int set_state(struct ibv_qp *qp, enum ibv_wq_state from, enum ibv_wq_state to)
{
	static const enum ibv_qp_state ready[] = {IBV_QPS_INIT, IBV_QPS_RTR},
				       reset[] = {IBV_QPS_RESET}, error[] = {IBV_QPS_ERR};

	if (to == IBV_WQS_RDY && from == IBV_WQS_RESET)
		return go_through(qp, ready, ARRAY_SIZE(ready));
	if (to == IBV_WQS_ERR && from != IBV_WQS_RESET)
		return go_through(qp, error, ARRAY_SIZE(error));
	if (to == IBV_WQS_RESET)
		return go_through(qp, reset, ARRAY_SIZE(reset));
	return to == from ? 0 : EINVAL;
}

/** wq_modify() - ibv_modify_wq(). 0; EINVAL; EOPNOTSUPP flags; EIO */
int wq_modify(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	int rc = 0;

	if (attr->attr_mask & IBV_WQ_ATTR_FLAGS && attr->flags & attr->flags_mask)
		return verbs_err(-EOPNOTSUPP);
	if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE && attr->curr_wq_state != wq->state)
		return verbs_err(-EINVAL);
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		rc = set_state(to_wq(wq)->qp, wq->state, attr->wq_state);
	if (!rc && attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return rc;
}

/** wq_destroy() - ibv_destroy_wq(). 0; EBUSY it is in a table */
int wq_destroy(struct ibv_wq *ibwq)
{
	struct soft_wq *wq = to_wq(ibwq);
	int rc = wq->users ? verbs_err(-EBUSY) : ibv_destroy_qp(wq->qp);

	if (!rc)
		free(wq);
	return rc;
}

/* --- tables --- */

/** wq_create_table() - ibv_create_rwq_ind_table(). Return: the table; NULL and errno: EINVAL;
 *  ENOMEM memory, or the program has max_rwq_indirection_tables */
struct ibv_rwq_ind_table *wq_create_table(struct ibv_context *context,
					  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct soft_context *ctx = to_context(context);
	struct soft_table *table;
	uint32_t num;

	if (attr->comp_mask || attr->log_ind_tbl_size >= 32 ||
	    1u << attr->log_ind_tbl_size > ABI_RSS_QUEUES)
		return verbs_null(-EINVAL);
	num = 1u << attr->log_ind_tbl_size;
	for (uint32_t i = 0; i < num; i++)
		if (!attr->ind_tbl[i] || attr->ind_tbl[i]->context != context)
			return verbs_null(-EINVAL);
	if (!take_room(&ctx->num_tables, ctx->attr.rss_caps.max_rwq_indirection_tables))
		return verbs_null(-ENOMEM);
	table = calloc(1, sizeof(*table) + num * sizeof(struct ibv_wq *));
	if (!table) {
		give_room(&ctx->num_tables);
		return verbs_null(-ENOMEM);
	}
	table->ibv.context = context;
	table->log_size = attr->log_ind_tbl_size;
	for (uint32_t i = 0; i < num; i++) {
		table->wq[i] = attr->ind_tbl[i];
		to_wq(table->wq[i])->users++;
	}
	return &table->ibv;
}

/** wq_destroy_table() - ibv_destroy_rwq_ind_table(). 0; EBUSY a QP uses it */
int wq_destroy_table(struct ibv_rwq_ind_table *ibtable)
{
	struct soft_table *table = to_table(ibtable);

	if (table->users)
		return verbs_err(-EBUSY);
	for (uint32_t i = 0; i < 1u << table->log_size; i++)
		to_wq(table->wq[i])->users--;
	give_room(&to_context(ibtable->context)->num_tables);
	free(table);
	return 0;
}

/* --- QPs that use them --- */

/** wq_rss_check() - may a QP be made with this table and this hash?
 *  Return: 0; -EINVAL; -EOPNOTSUPP a field, or another hash than Toeplitz' */
int wq_rss_check(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct abi_set_rss rss;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) ||
	    !(attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) || !attr->rwq_ind_tbl ||
	    attr->qp_type != IBV_QPT_RAW_PACKET || attr->cap.max_send_wr || attr->cap.max_recv_wr)
		return -EINVAL;
	if (hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
	    hash->rx_hash_fields_mask & ~SOFT_RX_HASH_FIELDS)
		return -EOPNOTSUPP;
	return hash->rx_hash_key_len == sizeof(rss.key) ? 0 : -EINVAL;
}

/** wq_rss_cq() - the CQ that stands where such a QP has none: of its first work queue */
struct ibv_cq *wq_rss_cq(const struct ibv_qp_init_attr_ex *attr)
{
	return to_table(attr->rwq_ind_tbl)->wq[0]->cq;
}

/** wq_rss_start() - let the QP, which is new, pass its frames on. 0; -errno */
int wq_rss_start(struct soft_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct soft_table *table = to_table(attr->rwq_ind_tbl);
	struct abi_set_rss req = {
		.fields = attr->rx_hash_conf.rx_hash_fields_mask,
		.qp_handle = qp->ibv.handle,
		.log_size = table->log_size,
	};
	int rc;

	memcpy(req.key, attr->rx_hash_conf.rx_hash_key, sizeof(req.key));
	for (uint32_t i = 0; i < 1u << table->log_size; i++)
		req.wq_handle[i] = table->wq[i]->handle;
	rc = session_command(to_context(qp->ibv.context), ABI_CMD_SET_RSS, &req, sizeof(req), NULL,
			     0);
	if (!rc) {
		table->users++;
		qp->table = &table->ibv;
	}
	return rc;
}

/** wq_rss_end() - the QP is gone */
void wq_rss_end(struct soft_qp *qp)
{
	if (qp->table)
		to_table(qp->table)->users--;
}
