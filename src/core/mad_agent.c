/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Agents: registration and its rules, and the choice of the agent that gets
 * a MAD. A response goes to the agent whose number stands in the upper half
 * of the TID; anything else to the one that registered the class, version
 * and method (of a vendor class with OUI, the OUI as well). An agent that shares its class gets such
 * a MAD first, and may pass it on to the one that does not.
 */
#include <string.h>

#include "core/mad_priv.h"
#include "core/private.h"
#include "core/trace.h"

#define MAX_CLASS 0x50
#define MAX_CLASS_VERSION 0x83
#define MASK_LONGS (IB_MGMT_MAX_METHODS / (8 * sizeof(long)))

bool ib_response_mad(const struct ib_mad_hdr *hdr)
{
	return (hdr->method & IB_MGMT_METHOD_RESP) ||
	       hdr->method == IB_MGMT_METHOD_TRAP_REPRESS ||
	       (hdr->mgmt_class == IB_MGMT_CLASS_BM &&
		(hdr->attr_mod & IB_BM_ATTR_MOD_RESP)); /* 16.3.2 */
}

/* 13.6.1: classes whose MADs carry an RMPP header, and their header bytes */
int ib_get_mad_data_offset(u8 mgmt_class)
{
	if (mgmt_class == IB_MGMT_CLASS_SUBN_ADM)
		return IB_MGMT_SA_HDR;
	if (mgmt_class == IB_MGMT_CLASS_DEVICE_MGMT || mgmt_class == IB_MGMT_CLASS_DEVICE_ADM ||
	    mgmt_class == IB_MGMT_CLASS_BIS)
		return IB_MGMT_DEVICE_HDR;
	if (mad_is_vendor2(mgmt_class))
		return IB_MGMT_VENDOR_HDR;
	return IB_MGMT_MAD_HDR;
}

bool ib_is_mad_class_rmpp(u8 mgmt_class)
{
	return ib_get_mad_data_offset(mgmt_class) != IB_MGMT_MAD_HDR;
}

/* --- the choice of an agent for a received MAD --- */

static bool has_method(const struct ib_mad_reg_req *req, u8 method)
{
	unsigned int bit = method & ~IB_MGMT_METHOD_RESP;

	return req->method_mask[bit / (8 * sizeof(long))] >> bit % (8 * sizeof(long)) & 1;
}

static bool wants(const struct mad_agent *agent, const struct ib_mad *mad)
{
	const struct ib_mad_reg_req *req = &agent->reg_req;
	const struct ib_vendor_mad *vendor = (const void *)mad;

	return agent->registered && req->mgmt_class == mad->mad_hdr.mgmt_class &&
	       req->mgmt_class_version == mad->mad_hdr.class_version &&
	       has_method(req, mad->mad_hdr.method) &&
	       (!mad_is_vendor2(req->mgmt_class) ||
		!memcmp(req->oui, vendor->oui, sizeof(req->oui)));
}

static bool shares(const struct mad_agent *agent)
{
	return agent->agent.flags & IB_MAD_SHARES;
}

struct mad_agent *mad_agent_find(struct mad_qp *mqp, const struct ib_mad *mad)
{
	u32 hi_tid = (u32)(be64_to_cpu(mad->mad_hdr.tid) >> 32);
	bool response = ib_response_mad(&mad->mad_hdr);
	struct mad_agent *agent, *found = NULL;

	list_for_each_entry(agent, &mqp->port->agents, node) {
		if (agent->mqp != mqp || !agent->agent.recv_handler)
			continue;
		if ((response ? agent->agent.hi_tid == hi_tid : wants(agent, mad)) &&
		    (!found || shares(agent)))
			found = agent;
	}
	return found;
}

bool ib_pass_on_recv_mad(struct ib_mad_agent *mad_agent, struct ib_mad_recv_wc *mad_recv_wc)
{
	struct mad_agent *from = mad_agent_of(mad_agent), *to;

	list_for_each_entry(to, &from->port->agents, node) {
		if (to->mqp != from->mqp || shares(to) || !wants(to, mad_recv_wc->recv_buf.mad))
			continue;
		mad_deliver(to, mad_recv_of(mad_recv_wc));
		return true;
	}
	return false;
}

/* --- registration --- */

static bool oui_is_zero(const u8 oui[3])
{
	return !oui[0] && !oui[1] && !oui[2];
}

static int check_class(const struct ib_mad_reg_req *req, enum ib_qp_type qp_type,
		       u8 rmpp_version)
{
	u8 class = req->mgmt_class;

	if (req->mgmt_class_version >= MAX_CLASS_VERSION)
		return -EINVAL;
	if (class == 0 || (class >= MAX_CLASS && class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE))
		return -EINVAL;
	if (mad_is_vendor2(class) && oui_is_zero(req->oui))
		return -EINVAL;
	if (rmpp_version && !ib_is_mad_class_rmpp(class))
		return -EINVAL;
	if (mad_is_smp(class) != (qp_type == IB_QPT_SMI)) /* 13.5.1 */
		return -EINVAL;
	return 0;
}

static bool same_kind(const struct ib_mad_reg_req *a, const struct ib_mad_reg_req *b)
{
	return a->mgmt_class == b->mgmt_class &&
	       a->mgmt_class_version == b->mgmt_class_version &&
	       (!mad_is_vendor2(a->mgmt_class) || !memcmp(a->oui, b->oui, sizeof(a->oui)));
}

static int check_methods(struct mad_port *port, const struct ib_mad_reg_req *req, u32 flags)
{
	struct mad_agent *other;

	list_for_each_entry(other, &port->agents, node) {
		if (!other->registered || !same_kind(&other->reg_req, req) ||
		    (other->agent.flags ^ flags) & IB_MAD_SHARES)
			continue;
		for (size_t i = 0; i < MASK_LONGS; i++)
			if (other->reg_req.method_mask[i] & req->method_mask[i])
				return -EBUSY;
	}
	return 0;
}

static void done_work(struct rt_work *work);

static bool has_agent(const struct mad_port *port, u32 hi_tid)
{
	const struct mad_agent *agent;

	list_for_each_entry(agent, &port->agents, node)
		if (agent->agent.hi_tid == hi_tid)
			return true;
	return false;
}

/* The number of an agent is a random one, so that nobody but the receiver of a request knows
 * the transaction ID of its response: a MAD does not say who sent it, other than by addresses
 * that any program of a node has. 0 is the number of no agent. */
static u32 new_hi_tid(const struct mad_port *port)
{
	u32 hi_tid;

	do
		hi_tid = rt_random(port->device->rt);
	while (!hi_tid || has_agent(port, hi_tid));
	return hi_tid;
}

struct mad_agent *mad_agent_alloc(struct mad_port *port, struct mad_qp *mqp,
				  ib_mad_send_handler send_handler,
				  ib_mad_recv_handler recv_handler, void *context)
{
	struct mad_agent *agent = rt_zalloc(sizeof(*agent));

	if (!agent)
		return NULL;
	agent->port = port;
	agent->mqp = mqp;
	agent->agent.device = port->device;
	agent->agent.qp = mqp->qp;
	agent->agent.port_num = (u8)port->port_num;
	agent->agent.send_handler = send_handler;
	agent->agent.recv_handler = recv_handler;
	agent->agent.context = context;
	agent->agent.hi_tid = new_hi_tid(port);
	mad_match_init(agent);
	INIT_LIST_HEAD(&agent->done);
	rmpp_recv_init(agent);
	rt_work_init(&agent->done_work, done_work);
	return agent;
}

static void trace(const struct mad_agent *agent, const char *what)
{
	const struct ib_mad_agent *a = &agent->agent;

	trace_mad_agent(RT_TRACE_AT(a->device, a->port_num), a->hi_tid, what,
			agent->reg_req.mgmt_class, agent->reg_req.mgmt_class_version, a->res.comm);
}

struct ib_mad_agent *ib_register_mad_agent_(struct ib_device *device, u32 port_num,
					    enum ib_qp_type qp_type,
					    const struct ib_mad_reg_req *reg_req,
					    u8 rmpp_version, ib_mad_send_handler send_handler,
					    ib_mad_recv_handler recv_handler, void *context,
					    u32 flags, const char *client)
{
	struct mad_agent *agent;
	struct mad_port *port;
	int ret = 0;

	if (qp_type != IB_QPT_SMI && qp_type != IB_QPT_GSI)
		return ERR_PTR(-EINVAL);
	if (qp_type == IB_QPT_SMI && rdma_is_port_valid(device, port_num) && /* A16: RoCE has no QP0 */
	    core_cached_port(device, port_num)->link_layer == IB_LINK_LAYER_ETHERNET)
		return ERR_PTR(-EPROTONOSUPPORT);
	port = mad_port_get(device, port_num, qp_type);
	if (IS_ERR(port))
		return (void *)port;
	if (rmpp_version && rmpp_version != IB_MGMT_RMPP_VERSION)
		return ERR_PTR(-EINVAL);
	if (reg_req ? !recv_handler : !send_handler)
		return ERR_PTR(-EINVAL);
	if (reg_req)
		ret = check_class(reg_req, qp_type, rmpp_version);
	if (!ret && reg_req)
		ret = check_methods(port, reg_req, flags);
	if (ret)
		return ERR_PTR(ret);

	agent = mad_agent_alloc(port, &port->qp[qp_type], send_handler, recv_handler, context);
	if (!agent)
		return ERR_PTR(-ENOMEM);
	agent->agent.rmpp_version = rmpp_version;
	agent->agent.flags = flags;
	agent->registered = reg_req != NULL;
	if (reg_req)
		agent->reg_req = *reg_req;
	list_add_tail(&agent->node, &port->agents);
	rdma_restrack_add(device, &agent->agent.res, RDMA_RESTRACK_MAD_AGENT, client, 0);
	trace(agent, "register");
	return &agent->agent;
}

/* The handlers of cancelled sends are called from the loop, not on the stack of the caller that
 * cancelled them. */
static void done_work(struct rt_work *work)
{
	struct mad_agent *agent = container_of(work, struct mad_agent, done_work);
	LIST_HEAD(done);

	list_splice_tail_init(&agent->done, &done);
	while (!list_empty(&done)) {
		struct mad_send *send = list_first_entry(&done, struct mad_send, queue_node);
		struct ib_mad_send_wc wc = {&send->buf, send->status, send->vendor_err};

		list_del(&send->queue_node);
		send->active = false;
		agent->agent.send_handler(&agent->agent, &wc);
	}
}

void ib_unregister_mad_agent(struct ib_mad_agent *mad_agent)
{
	struct mad_agent *agent = mad_agent_of(mad_agent);

	trace(agent, "unregister");
	list_del(&agent->node); /* no MAD is delivered to it any more */
	rdma_restrack_del(mad_agent->device, &mad_agent->res);
	rmpp_recv_cleanup(agent);
	mad_send_flush(agent);
	rt_work_cancel(&agent->done_work);
	done_work(&agent->done_work);
	rt_free(agent->own_qp);
	rt_free(agent);
}

/* --- snooping --- */

struct ib_mad_agent *ib_register_mad_snoop_(struct ib_device *device, u32 port_num,
					    enum ib_qp_type qp_type, int mad_snoop_flags,
					    ib_mad_snoop_handler snoop_handler,
					    ib_mad_recv_handler recv_handler, void *context,
					    const char *client)
{
	const int sends = IB_MAD_SNOOP_POSTED_SENDS | IB_MAD_SNOOP_SEND_COMPLETIONS;
	struct mad_agent *agent;
	struct mad_port *port;

	if ((qp_type != IB_QPT_SMI && qp_type != IB_QPT_GSI) ||
	    (mad_snoop_flags & sends && !snoop_handler) ||
	    (mad_snoop_flags & IB_MAD_SNOOP_RECVS && !recv_handler))
		return ERR_PTR(-EINVAL);
	port = mad_port_get(device, port_num, qp_type);
	if (IS_ERR(port))
		return (void *)port;
	agent = mad_agent_alloc(port, &port->qp[qp_type], NULL, recv_handler, context);
	if (!agent)
		return ERR_PTR(-ENOMEM);
	agent->agent.snoop_handler = snoop_handler;
	agent->snoop_flags = mad_snoop_flags;
	list_add_tail(&agent->node, &agent->mqp->snoops);
	rdma_restrack_add(device, &agent->agent.res, RDMA_RESTRACK_MAD_AGENT, client, 0);
	return &agent->agent;
}

void mad_snoop_send(struct mad_send *send, int flag)
{
	struct ib_mad_send_wc wc = {&send->buf, send->status, send->vendor_err};
	struct mad_agent *snoop, *tmp;

	list_for_each_entry_safe(snoop, tmp, &send->mqp->snoops, node)
		if (snoop->snoop_flags & flag)
			snoop->agent.snoop_handler(&snoop->agent, &send->buf, &wc);
}

void mad_snoop_recv(struct mad_recv *recv)
{
	struct mad_agent *snoop, *tmp;

	list_for_each_entry_safe(snoop, tmp, &recv->mqp->snoops, node)
		if (snoop->snoop_flags & IB_MAD_SNOOP_RECVS)
			snoop->agent.recv_handler(&snoop->agent, NULL, &recv->recv_wc);
}
