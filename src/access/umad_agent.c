/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Agents: the ioctls that register and unregister them, and their destruction. A program may
 * leave tens of thousands of sends behind, so the sends of an agent are cancelled in batches,
 * one batch in each turn of the loop. Agents that are being destroyed take turns.
 */
#include <string.h>

#include "access/umad_private.h"

#define CANCELS_AT_ONCE 64 /* sends of one agent */
#define ENDS_PER_TURN 16   /* agents */

/* --- the end of an agent --- */

/* Return: true if the agent has been destroyed */
static bool end_some(struct umad_agent *agent)
{
	if (!umad_send_cancel_some(agent, CANCELS_AT_ONCE))
		return false;
	list_del(&agent->node);
	ib_unregister_mad_agent(agent->mad); /* calls the handlers of the cancelled sends */
	rt_free(agent);
	return true;
}

static void end_work(struct rt_work *work)
{
	struct umad_ends *ends = container_of(work, struct umad_ends, work);

	for (unsigned n = 0; n < ENDS_PER_TURN && !list_empty(&ends->agents); n++) {
		struct umad_agent *agent =
			list_first_entry(&ends->agents, struct umad_agent, node);

		if (end_some(agent))
			continue;
		list_del(&agent->node);
		list_add_tail(&agent->node, &ends->agents);
	}
	if (!list_empty(&ends->agents))
		rt_work_queue(ends->rt, &ends->work);
}

static void end_agent(struct umad_agent *agent)
{
	struct umad_session *s = agent->session;
	struct umad_ends *ends = s->ends;

	if (umad_load_agent(s) == agent)
		umad_load_drop(s);
	s->agent[agent->id] = NULL;
	s->send_bytes -= agent->send_bytes; /* their memory stays charged to the node until they are cancelled */
	s->quota.bytes -= agent->send_bytes + agent->recv_bytes;
	agent->session = NULL;
	list_add_tail(&agent->node, &ends->agents);
	if (!end_some(agent))
		rt_work_queue(ends->rt, &ends->work);
}

void umad_agents_drop(struct umad_session *s)
{
	for (uint32_t id = 0; id < UMAD_AGENTS; id++)
		if (s->agent[id])
			end_agent(s->agent[id]);
}

void umad_ends_init(struct umad_ends *ends, struct rt *rt)
{
	ends->rt = rt;
	rt_work_init(&ends->work, end_work);
	INIT_LIST_HEAD(&ends->agents);
}

void umad_ends_finish(struct umad_ends *ends, const struct ib_device *device)
{
	struct umad_agent *agent, *next;

	list_for_each_entry_safe(agent, next, &ends->agents, node)
		if (!device || agent->mad->device == device)
			while (!end_some(agent))
				;
	if (list_empty(&ends->agents))
		rt_work_cancel(&ends->work);
}

/* --- the memory of reassemblies --- */

static bool take_room(void *context, size_t bytes)
{
	struct umad_agent *agent = context;
	struct quota_node *charged =
		agent->session ? quota_take(&agent->session->quota, bytes) : NULL;

	if (!charged)
		return false;
	agent->charged = charged;
	agent->recv_bytes += bytes;
	return true;
}

static void give_room(void *context, size_t bytes)
{
	struct umad_agent *agent = context;

	agent->recv_bytes -= bytes;
	quota_give(agent->charged, agent->session ? &agent->session->quota : NULL, bytes);
}

static const struct ib_mad_keeper keeper = {.take = take_room, .give = give_room};

/* --- ioctls --- */

static int free_id(const struct umad_session *s)
{
	for (int id = 0; id < UMAD_AGENTS; id++)
		if (!s->agent[id])
			return id;
	return -ENOMEM;
}

static int enter(struct umad_session *s, uint32_t qpn, const struct ib_mad_reg_req *req,
		 u8 rmpp_version, u32 flags, __u32 *id)
{
	int place = free_id(s), ret;
	struct umad_agent *agent;

	if (place < 0)
		return place;
	if (qpn > 1)
		return -EINVAL;
	agent = rt_zalloc(sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	agent->session = s;
	agent->id = (uint32_t)place;
	INIT_LIST_HEAD(&agent->sends);
	INIT_LIST_HEAD(&agent->node);
	/* class 0: an agent that only sends */
	agent->mad = ib_register_mad_agent_(s->device, s->port_num, qpn ? IB_QPT_GSI : IB_QPT_SMI,
					   req->mgmt_class ? req : NULL, rmpp_version,
					   umad_send_handler, umad_recv_handler, agent, flags, NULL);
	if (IS_ERR(agent->mad)) {
		ret = (int)PTR_ERR(agent->mad);
		rt_free(agent);
		return ret;
	}
	ib_mad_agent_set_keeper(agent->mad, &keeper);
	rdma_restrack_set_owner(&agent->mad->res, s->pid, s->comm);
	s->agent[place] = agent;
	*id = agent->id;
	return 0;
}

static int register_agent(struct umad_session *s, void *arg)
{
	struct ib_user_mad_reg_req *in = arg;
	struct ib_mad_reg_req req = {.mgmt_class = in->mgmt_class,
				     .mgmt_class_version = in->mgmt_class_version};

	memcpy(req.oui, in->oui, sizeof(req.oui));
	memcpy(req.method_mask, in->method_mask, sizeof(req.method_mask));
	return enter(s, in->qpn, &req, in->rmpp_version, 0, &in->id);
}

static int register_agent2(struct umad_session *s, void *arg)
{
	struct ib_user_mad_reg_req2 *in = arg;
	struct ib_mad_reg_req req = {.mgmt_class = in->mgmt_class,
				     .mgmt_class_version = in->mgmt_class_version,
				     .oui = {(u8)(in->oui >> 16), (u8)(in->oui >> 8), (u8)in->oui}};

	if (in->oui & 0xff000000)
		return -EINVAL;
	if (in->flags & ~(__u32)IB_USER_MAD_REG_FLAGS_CAP) {
		in->flags = IB_USER_MAD_REG_FLAGS_CAP; /* the flags that are supported */
		return -EINVAL;
	}
	memcpy(req.method_mask, in->method_mask, sizeof(req.method_mask));
	return enter(s, in->qpn, &req, in->rmpp_version,
		     in->flags & IB_USER_MAD_USER_RMPP ? IB_MAD_USER_RMPP : 0, &in->id);
}

static int unregister_agent(struct umad_session *s, void *arg)
{
	__u32 id = *(const __u32 *)arg;

	if (id >= UMAD_AGENTS || !s->agent[id])
		return -EINVAL;
	end_agent(s->agent[id]);
	return 0;
}

/* Records always have a P_Key index. The older form without it is not supported. */
static int enable_pkey(struct umad_session *s, void *arg)
{
	return 0;
}

static const struct {
	uint32_t request;
	uint32_t bytes;
	int (*handler)(struct umad_session *s, void *arg);
} ioctls[] = {
	{IB_USER_MAD_REGISTER_AGENT, sizeof(struct ib_user_mad_reg_req), register_agent},
	{IB_USER_MAD_REGISTER_AGENT2, sizeof(struct ib_user_mad_reg_req2), register_agent2},
	{IB_USER_MAD_UNREGISTER_AGENT, sizeof(__u32), unregister_agent},
	{IB_USER_MAD_ENABLE_PKEY, 0, enable_pkey},
};

static int answer_told_ring(struct umad_session *s)
{
	int fds[ABI_TOLD_FDS];
	int ret = umad_open_told(s, fds);
	const int sent = endpoint_send(s->control_fd, ret, NULL, 0, fds, ret ? 0 : ABI_TOLD_FDS);

	for (int i = 0; !ret && i < ABI_TOLD_FDS; i++) /* the message carries duplicates of them */
		close(fds[i]);
	return sent;
}

int umad_ioctl(struct umad_session *s, const void *message, size_t bytes)
{
	_Alignas(8) uint8_t arg[sizeof(struct ib_user_mad_reg_req2)] = {0};
	struct abi_ioctl head;
	int ret = -ENOTTY;

	if (bytes < sizeof(head))
		return endpoint_send(s->control_fd, -EINVAL, NULL, 0, NULL, 0);
	memcpy(&head, message, sizeof(head));
	bytes -= sizeof(head);
	if (!s->device)
		return endpoint_send(s->control_fd, -EIO, NULL, 0, NULL, 0);
	if (head.request == ABI_UMAD_TOLD_RING)
		return answer_told_ring(s);
	for (unsigned i = 0; i < ARRAY_SIZE(ioctls); i++) {
		if (ioctls[i].request != head.request)
			continue;
		if (head.bytes != bytes || bytes != ioctls[i].bytes)
			return endpoint_send(s->control_fd, -EINVAL, NULL, 0, NULL, 0);
		memcpy(arg, (const char *)message + sizeof(head), bytes);
		ret = ioctls[i].handler(s, arg);
		return endpoint_send(s->control_fd, ret, arg, bytes, NULL, 0);
	}
	return endpoint_send(s->control_fd, ret, NULL, 0, NULL, 0);
}
