/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A client of the MAD layer for tests: it keeps what its handlers were told,
 * and a server answers what it gets. */
#ifndef SOFTIB_TESTS_MAD_CLIENT_H
#define SOFTIB_TESTS_MAD_CLIENT_H

#include "mad_net.h"

struct client {
	struct net_node *node;
	struct ib_pd *pd;
	struct ib_mad_agent *agent;
	int sent;    /* send handlers called */
	int received;
	bool matched; /* the last came with its request */
	enum ib_wc_status status; /* of the last send */
	u32 vendor_err;
	struct ib_mad_hdr hdr; /* of the last received */
	int mad_len;
	u8 *bytes; /* the last received message, coalesced */
	mono_t when; /* the last send completed */
	int (*answer)(struct client *client, struct ib_mad_recv_wc *recv_wc);
	int answer_bytes;
};

static inline void client_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct client *c = agent->context;

	c->sent++;
	c->status = wc->status;
	c->vendor_err = wc->vendor_err;
	c->when = rt_now(c->node->net->rt);
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static inline void client_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
				   struct ib_mad_recv_wc *recv_wc)
{
	struct client *c = agent->context;

	c->received++;
	c->matched = send_buf != NULL;
	c->hdr = recv_wc->recv_buf.mad->mad_hdr;
	c->mad_len = recv_wc->mad_len;
	free(c->bytes);
	c->bytes = calloc(1, (size_t)recv_wc->mad_len);
	ib_coalesce_recv_mad(recv_wc, c->bytes);
	if (c->answer && !send_buf)
		c->answer(c, recv_wc);
	ib_free_recv_mad(recv_wc);
}

/** client_class_version() - the version of a class's MADs */
static inline u8 client_class_version(u8 mgmt_class)
{
	return mgmt_class == IB_MGMT_CLASS_CM ? 2 : 1;
}

/** client_open() - an agent on @node; @methods: bits of the first 64 */
static inline struct client *client_open(struct net_node *node, u8 mgmt_class, u64 methods,
					 u8 rmpp_version)
{
	struct ib_mad_reg_req req = {.mgmt_class = mgmt_class,
				     .mgmt_class_version = client_class_version(mgmt_class),
				     .oui = {1, 2, 3}, .method_mask = {methods}};
	enum ib_qp_type qp = mgmt_class == 1 || mgmt_class == 0x81 ? IB_QPT_SMI : IB_QPT_GSI;
	struct client *c = rt_zalloc(sizeof(*c));

	c->node = node;
	c->pd = ib_alloc_pd(&node->ib, 0);
	c->agent = ib_register_mad_agent(&node->ib, 1, qp, methods ? &req : NULL, rmpp_version,
					 client_sent, client_received, c, 0);
	if (IS_ERR(c->agent))
		abort();
	return c;
}

static inline void client_close(struct client *c)
{
	ib_unregister_mad_agent(c->agent);
	ib_dealloc_pd(c->pd);
	free(c->bytes);
	rt_free(c);
}

static inline struct ib_ah *client_ah(struct client *c, u16 dlid)
{
	struct rdma_ah_attr attr = {.dlid = dlid, .port_num = 1};

	return ib_create_ah(c->pd, &attr);
}

/** client_mad() - a request of @mgmt_class, not yet posted */
static inline struct ib_mad_send_buf *client_mad(struct client *c, u16 dlid, u8 mgmt_class,
						 u8 method, u32 tid)
{
	struct ib_mad_send_buf *buf =
		ib_create_send_mad(c->agent, c->agent->qp->qp_num, 0, 0, IB_MGMT_MAD_HDR,
				   IB_MGMT_MAD_DATA, GFP_KERNEL, IB_MGMT_BASE_VERSION);
	struct ib_mad_hdr *hdr = buf->mad;

	hdr->base_version = 1;
	hdr->mgmt_class = mgmt_class;
	hdr->class_version = client_class_version(mgmt_class);
	hdr->method = method;
	hdr->tid = cpu_to_be64((u64)c->agent->hi_tid << 32 | tid);
	buf->ah = client_ah(c, dlid);
	buf->timeout_ms = 100;
	return buf;
}

/** client_answer() - a server's answer: the request with R set. Without
 *  memory there is none, as with the real ones. */
static inline int client_answer(struct client *c, struct ib_mad_recv_wc *recv_wc)
{
	struct ib_mad_send_buf *buf =
		ib_create_send_mad(c->agent, recv_wc->wc->src_qp, 0, 0, IB_MGMT_MAD_HDR,
				   IB_MGMT_MAD_DATA, GFP_KERNEL, IB_MGMT_BASE_VERSION);
	struct ib_mad *mad;
	int ret;

	if (IS_ERR(buf))
		return (int)PTR_ERR(buf);
	mad = buf->mad;
	*mad = *recv_wc->recv_buf.mad;
	mad->mad_hdr.method = mad->mad_hdr.method == IB_MGMT_METHOD_SET ?
				      IB_MGMT_METHOD_GET_RESP :
				      mad->mad_hdr.method | IB_MGMT_METHOD_RESP;
	if (mad->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		mad->mad_hdr.status |= IB_SMP_DIRECTION;
	buf->ah = ib_create_ah_from_wc(c->pd, recv_wc->wc, recv_wc->recv_buf.grh, 1);
	ret = IS_ERR(buf->ah) ? (int)PTR_ERR(buf->ah) : ib_post_send_mad(buf, NULL);
	if (ret) {
		if (!IS_ERR(buf->ah))
			rdma_destroy_ah(buf->ah, 0);
		ib_free_send_mad(buf);
	}
	return ret;
}

#endif
