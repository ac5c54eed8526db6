/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctls: agents are registered and unregistered. */
#include <string.h>

#include "access/umad_private.h"

static struct umad_agent *free_agent(struct umad_session *s)
{
	for (uint32_t id = 0; id < UMAD_AGENTS; id++) {
		struct umad_agent *agent = &s->agent[id];

		if (agent->mad)
			continue;
		agent->session = s;
		agent->id = id;
		return agent;
	}
	return NULL;
}

static int enter(struct umad_session *s, uint32_t qpn, const struct ib_mad_reg_req *req,
		 u8 rmpp_version, u32 flags, __u32 *id)
{
	struct umad_agent *agent = free_agent(s);
	struct ib_mad_agent *mad;

	if (!agent)
		return -ENOMEM;
	if (qpn > 1)
		return -EINVAL;
	/* class 0: an agent that only sends */
	mad = ib_register_mad_agent(s->device, s->port_num, qpn ? IB_QPT_GSI : IB_QPT_SMI,
				    req->mgmt_class ? req : NULL, rmpp_version,
				    umad_send_handler, umad_recv_handler, agent, flags);
	if (IS_ERR(mad))
		return (int)PTR_ERR(mad);
	agent->mad = mad;
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
		in->flags = IB_USER_MAD_REG_FLAGS_CAP; /* what would be taken */
		return -EINVAL;
	}
	memcpy(req.method_mask, in->method_mask, sizeof(req.method_mask));
	return enter(s, in->qpn, &req, in->rmpp_version,
		     in->flags & IB_USER_MAD_USER_RMPP ? IB_MAD_USER_RMPP : 0, &in->id);
}

static int unregister_agent(struct umad_session *s, void *arg)
{
	__u32 id = *(const __u32 *)arg;
	struct ib_mad_agent *mad;

	if (id >= UMAD_AGENTS || !s->agent[id].mad)
		return -EINVAL;
	mad = s->agent[id].mad;
	ib_unregister_mad_agent(mad);
	s->agent[id].mad = NULL;
	return 0;
}

/* P_Key indices are always on here: the record has no older form */
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

void umad_agents_drop(struct umad_session *s)
{
	for (uint32_t id = 0; id < UMAD_AGENTS; id++) {
		if (s->agent[id].mad)
			ib_unregister_mad_agent(s->agent[id].mad);
		s->agent[id].mad = NULL;
	}
}
