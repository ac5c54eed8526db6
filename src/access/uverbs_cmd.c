/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of commands, and the commands for devices, protection domains, CQs and SRQs. A handler
 * converts the structs of <rdma/ib_user_verbs.h> into calls of the core. Their lengths have been
 * checked against the table; the core or the handler checks all other values. The data path of an
 * object is in the program. softibd has the object's number, limits and state, and destroys the object
 * when the program ends.
 */
#include "access/uverbs_private.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>

/* QPs of programs have neither (IB_QP_CREATE_IPOIB_UD_LSO) */
#define KERNEL_CAPS ((u64)(IB_DEVICE_UD_IP_CSUM | IB_DEVICE_UD_TSO))

/* --- the context --- */

static int cmd_get_context(struct call *call)
{
	struct session *s = call->session;
	struct ib_ucontext *context = ib_ucontext_open(s->device, s->peer.pid, s->peer.comm);
	struct abi_context_resp *out = call->out;
	int ret;

	if (IS_ERR(context))
		return (int)PTR_ERR(context);
	ret = context->num_driver_fds != ABI_CONTEXT_FDS ||
			      context->driver_resp_bytes != sizeof(*out) ?
		      -EPROTO :
		      share_make_token(s);
	if (ret) {
		ib_ucontext_close(context);
		return ret;
	}
	call->fds = context->driver_fds;
	call->num_fds = context->num_driver_fds;
	memcpy(out, context->driver_resp, sizeof(*out));
	memcpy(out->token, s->token, sizeof(out->token));
	call->out_bytes = sizeof(*out);
	context->priv = s;
	context->fatal = uverbs_context_lost;
	s->context = context;
	s->state = SESSION_ACTIVE;
	return 0;
}

/* Convert a version such as "1.2.3" to the three numbers of the struct's fw_ver. */
static u64 pack_version(const char *text)
{
	unsigned int major = 0, minor = 0, sub = 0;

	sscanf(text, "%u.%u.%u", &major, &minor, &sub);
	return (u64)major << 32 | (u64)(minor & 0xffff) << 16 | (sub & 0xffff);
}

static void answer_device(struct ib_uverbs_query_device_resp *out, const struct ib_device *device,
			  const struct ib_device_attr *attr)
{
	const struct ib_device_attr a = *attr;

	*out = (struct ib_uverbs_query_device_resp){
		.fw_ver = pack_version(a.fw_ver),
		.node_guid = device->node_guid,
		.sys_image_guid = a.sys_image_guid,
		.max_mr_size = a.max_mr_size,
		.page_size_cap = a.page_size_cap,
		.vendor_id = a.vendor_id,
		.vendor_part_id = a.vendor_part_id,
		.hw_ver = a.hw_ver,
		.max_qp = (u32)a.max_qp,
		.max_qp_wr = (u32)a.max_qp_wr,
		.device_cap_flags = (u32)(a.device_cap_flags & ~KERNEL_CAPS),
		.max_sge = (u32)MIN(a.max_send_sge, a.max_recv_sge),
		.max_sge_rd = (u32)a.max_sge_rd,
		.max_cq = (u32)a.max_cq,
		.max_cqe = (u32)a.max_cqe,
		.max_mr = (u32)a.max_mr,
		.max_pd = (u32)a.max_pd,
		.max_qp_rd_atom = (u32)a.max_qp_rd_atom,
		.max_res_rd_atom = (u32)a.max_res_rd_atom,
		.max_qp_init_rd_atom = (u32)a.max_qp_init_rd_atom,
		.atomic_cap = a.atomic_cap,
		.max_mw = (u32)a.max_mw,
		.max_raw_ethy_qp = (u32)a.max_raw_ethy_qp,
		.max_mcast_grp = (u32)a.max_mcast_grp,
		.max_mcast_qp_attach = (u32)a.max_mcast_qp_attach,
		.max_total_mcast_qp_attach = (u32)a.max_total_mcast_qp_attach,
		.max_ah = (u32)a.max_ah,
		.max_srq = (u32)a.max_srq,
		.max_srq_wr = (u32)a.max_srq_wr,
		.max_srq_sge = (u32)a.max_srq_sge,
		.max_pkeys = a.max_pkeys,
		.local_ca_ack_delay = a.local_ca_ack_delay,
		.phys_port_cnt = (u8)device->phys_port_cnt,
	};
}

static int cmd_query_device(struct call *call)
{
	const struct ib_device *device = call->session->device;
	struct ib_device_attr a;
	int ret = ib_query_device(call->session->device, &a);

	if (!ret)
		answer_device(call->out, device, &a);
	return ret;
}

static int cmd_ex_query_device(struct call *call)
{
	const struct ib_uverbs_ex_query_device *in = call->in;
	struct abi_ex_query_device_resp *own = call->out;
	struct ib_uverbs_ex_query_device_resp *out = &own->core;
	struct ib_device_attr a;
	int ret = ib_query_device(call->session->device, &a);

	if (in->comp_mask || in->reserved)
		return -EINVAL;
	if (ret)
		return ret;
	answer_device(&out->base, call->session->device, &a);
	out->response_length = sizeof(*out);
	out->odp_caps.general_caps = a.odp_caps.general_caps;
	out->odp_caps.per_transport_caps.rc_odp_caps = a.odp_caps.per_transport_caps.rc_odp_caps;
	out->odp_caps.per_transport_caps.uc_odp_caps = a.odp_caps.per_transport_caps.uc_odp_caps;
	out->odp_caps.per_transport_caps.ud_odp_caps = a.odp_caps.per_transport_caps.ud_odp_caps;
	out->xrc_odp_caps = a.odp_caps.per_transport_caps.xrc_odp_caps;
	out->timestamp_mask = a.timestamp_mask;
	out->hca_core_clock = a.hca_core_clock_khz;
	out->device_cap_flags_ex = a.device_cap_flags & ~KERNEL_CAPS;
	out->max_dm_size = a.max_dm_size;
	if (a.rss_fields) {
		out->rss_caps.supported_qpts = 1u << IB_QPT_RAW_PACKET;
		out->rss_caps.max_rwq_indirection_tables = (u32)a.max_raw_ethy_qp;
		out->rss_caps.max_rwq_indirection_table_size = 1u << IB_RSS_MAX_LOG_SIZE;
		out->max_wq_type_rq = (u32)a.max_raw_ethy_qp;
	}
	if (a.tm_caps.max_num_tags)
		out->tm_caps = (struct ib_uverbs_tm_caps){
			.max_rndv_hdr_size = a.tm_caps.max_rndv_hdr_size,
			.max_num_tags = a.tm_caps.max_num_tags,
			.flags = a.tm_caps.flags,
			.max_ops = a.tm_caps.max_ops,
			.max_sge = a.tm_caps.max_sge,
		};
	out->cq_moderation_caps.max_cq_moderation_count = a.cq_caps.max_cq_moderation_count;
	out->cq_moderation_caps.max_cq_moderation_period = a.cq_caps.max_cq_moderation_period;
	own->min_rate_limit = a.min_rate_limit;
	own->max_rate_limit = a.max_rate_limit;
	return 0;
}

static int cmd_query_port(struct call *call)
{
	const struct ib_uverbs_query_port *in = call->in;
	struct ib_uverbs_query_port_resp *out = call->out;
	struct ib_port_attr a;
	int ret = ib_query_port(call->session->device, in->port_num, &a);

	if (ret)
		return ret;
	*out = (struct ib_uverbs_query_port_resp){
		.port_cap_flags = a.port_cap_flags,
		.max_msg_sz = a.max_msg_sz,
		.bad_pkey_cntr = a.bad_pkey_cntr,
		.qkey_viol_cntr = a.qkey_viol_cntr,
		.gid_tbl_len = (u32)a.gid_tbl_len,
		.pkey_tbl_len = a.pkey_tbl_len,
		.lid = (u16)(a.link_layer == IB_LINK_LAYER_ETHERNET ? 0 : a.lid),
		.sm_lid = (u16)a.sm_lid,
		.state = (u8)a.state,
		.max_mtu = (u8)a.max_mtu,
		.active_mtu = (u8)a.active_mtu,
		.lmc = a.link_layer == IB_LINK_LAYER_ETHERNET ? 0 : a.lmc,
		.max_vl_num = a.max_vl_num,
		.sm_sl = a.sm_sl,
		.subnet_timeout = a.subnet_timeout,
		.init_type_reply = a.init_type_reply,
		.active_width = a.active_width,
		.active_speed = (u8)MIN(a.active_speed, UINT8_MAX),
		.phys_state = a.phys_state,
		.link_layer = a.link_layer,
	};
	return 0;
}

/* --- protection domains --- */

static int cmd_alloc_pd(struct call *call)
{
	struct ib_uverbs_alloc_pd_resp *out = call->out;
	struct ib_uobject *uobject = ib_uobject_alloc(call->session->context, IB_UOBJECT_PD);
	struct ib_pd *pd;
	int ret;

	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	pd = ib_alloc_pd_user(uobject);
	ret = ib_uobject_commit(uobject, pd);
	if (ret)
		return ret;
	out->pd_handle = uobject->handle;
	return 0;
}

static int cmd_dealloc_pd(struct call *call)
{
	const struct ib_uverbs_dealloc_pd *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_PD, in->pd_handle);
}

/* --- completion queues; completion channels exist only in the program --- */

static int cmd_create_comp_channel(struct call *call)
{
	struct ib_uverbs_create_comp_channel_resp *out = call->out;

	out->fd = UINT32_MAX; /* no descriptor of softibd: the library raises the events itself */
	return 0;
}

static int cmd_create_cq(struct call *call)
{
	const struct ib_uverbs_create_cq *in = call->in;
	struct ib_uverbs_create_cq_resp *out = call->out;
	struct ib_cq_init_attr attr = {.cqe = in->cqe, .comp_vector = in->comp_vector};
	struct ib_uobject *uobject = ib_uobject_alloc(call->session->context, IB_UOBJECT_CQ);
	struct ib_cq *cq;
	int ret;

	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	uobject->user_handle = in->user_handle;
	cq = ib_create_cq_user(uobject, &attr);
	ret = ib_uobject_commit(uobject, cq);
	if (ret)
		return ret;
	cq->event_handler = uverbs_object_event;
	cq->cq_context = uobject;
	out->cq_handle = uobject->handle;
	out->cqe = (u32)cq->cqe;
	return 0;
}

static int cmd_resize_cq(struct call *call)
{
	const struct ib_uverbs_resize_cq *in = call->in;
	struct ib_uverbs_resize_cq_resp *out = call->out;
	struct ib_cq *cq = ib_uobject_get(call->session->context, IB_UOBJECT_CQ, in->cq_handle);
	int ret;

	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	ret = ib_resize_cq(cq, in->cqe > INT32_MAX ? -1 : (int)in->cqe);
	out->cqe = (u32)cq->cqe;
	return ret;
}

/* The library counts the completion events of a CQ, since it raises them. softibd has none to count. */
static int cmd_destroy_cq(struct call *call)
{
	const struct ib_uverbs_destroy_cq *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_CQ, in->cq_handle);
}

/* --- shared receive queues --- */

static int create_srq(struct call *call, u64 user_handle, u32 pd_handle,
		      struct ib_srq_init_attr *attr)
{
	struct ib_uverbs_create_srq_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_pd *pd = ib_uobject_get(context, IB_UOBJECT_PD, pd_handle);
	struct ib_uobject *uobject;
	struct ib_srq *srq;
	int ret;

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	uobject = ib_uobject_alloc(context, IB_UOBJECT_SRQ);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	uobject->user_handle = user_handle;
	srq = ib_create_srq_user(uobject, pd, attr);
	ret = ib_uobject_commit(uobject, srq);
	if (ret)
		return ret;
	srq->event_handler = uverbs_object_event;
	srq->srq_context = uobject;
	out->srq_handle = uobject->handle;
	out->max_wr = attr->attr.max_wr;
	out->max_sge = attr->attr.max_sge;
	out->srqn = srq->srq_num;
	return 0;
}

static int cmd_create_srq(struct call *call)
{
	const struct ib_uverbs_create_srq *in = call->in;
	struct ib_srq_init_attr attr = {.attr = {.max_wr = in->max_wr, .max_sge = in->max_sge,
						 .srq_limit = in->srq_limit}};

	return create_srq(call, in->user_handle, in->pd_handle, &attr);
}

static int cmd_create_xsrq(struct call *call)
{
	const struct ib_uverbs_create_xsrq *in = call->in;
	struct ib_ucontext *context = call->session->context;
	struct ib_srq_init_attr attr = {
		.attr = {.max_wr = in->max_wr, .max_sge = in->max_sge, .srq_limit = in->srq_limit},
		.xrcd = ib_uobject_get(context, IB_UOBJECT_XRCD, in->xrcd_handle),
		.cq = ib_uobject_get(context, IB_UOBJECT_CQ, in->cq_handle),
	};

	if (in->srq_type != IB_UVERBS_SRQT_XRC)
		return -EOPNOTSUPP;
	if (IS_ERR(attr.xrcd) || IS_ERR(attr.cq))
		return -EINVAL;
	return create_srq(call, in->user_handle, in->pd_handle, &attr);
}

/* The program names the file of its descriptor by device and inode, as uverbs receives no descriptors. */
static int cmd_open_xrcd(struct call *call)
{
	const struct ib_uverbs_open_xrcd *in = call->in;
	const struct abi_open_xrcd *more = (const void *)(in + 1);
	const struct ib_xrcd_file file = {more->device, more->inode};
	struct ib_uverbs_open_xrcd_resp *out = call->out;
	struct ib_uobject *uobject = ib_uobject_alloc(call->session->context, IB_UOBJECT_XRCD);
	struct ib_xrcd *xrcd;
	int ret;

	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	xrcd = ib_alloc_xrcd_user(uobject, in->fd == UINT32_MAX ? NULL : &file, (int)in->oflags);
	ret = ib_uobject_commit(uobject, xrcd);
	if (ret)
		return ret;
	out->xrcd_handle = uobject->handle;
	memcpy(out + 1, &xrcd->domain->number, sizeof(xrcd->domain->number));
	return 0;
}

static int cmd_close_xrcd(struct call *call)
{
	const struct ib_uverbs_close_xrcd *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_XRCD, in->xrcd_handle);
}

static int cmd_modify_srq(struct call *call)
{
	const struct ib_uverbs_modify_srq *in = call->in;
	struct ib_srq *srq =
		ib_uobject_get(call->session->context, IB_UOBJECT_SRQ, in->srq_handle);
	struct ib_srq_attr attr = {.max_wr = in->max_wr, .srq_limit = in->srq_limit};

	return IS_ERR(srq) ? (int)PTR_ERR(srq) : ib_modify_srq(srq, &attr, in->attr_mask);
}

static int cmd_query_srq(struct call *call)
{
	const struct ib_uverbs_query_srq *in = call->in;
	struct ib_uverbs_query_srq_resp *out = call->out;
	struct ib_srq *srq =
		ib_uobject_get(call->session->context, IB_UOBJECT_SRQ, in->srq_handle);
	struct ib_srq_attr attr = {0};
	int ret;

	if (IS_ERR(srq))
		return (int)PTR_ERR(srq);
	ret = ib_query_srq(srq, &attr);
	out->max_wr = attr.max_wr;
	out->max_sge = attr.max_sge;
	out->srq_limit = attr.srq_limit;
	return ret;
}

static int cmd_destroy_srq(struct call *call)
{
	const struct ib_uverbs_destroy_srq *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_SRQ, in->srq_handle);
}

/* --- the table --- */

#define IN(name) sizeof(struct ib_uverbs_##name)
#define OUT(name) sizeof(struct ib_uverbs_##name##_resp)

static int cmd_driver(struct call *call)
{
	struct ib_device *device = call->session->device;

	if (!device->ops->driver_command)
		return -EOPNOTSUPP;
	call->fds = call->driver_fds;
	return device->ops->driver_command(call->session->context, call->number, call->in, call->out,
					   call->driver_fds, &call->num_fds);
}

static int cmd_told_ring(struct call *call)
{
	int ret = uverbs_open_told(call->session, call->driver_fds);

	call->fds = call->driver_fds;
	call->num_fds = ret ? 0 : ABI_TOLD_FDS;
	return ret;
}

static int cmd_connect(struct call *call)
{
	struct abi_resolve_resp *out = call->out;
	int ret = cmd_modify_qp(call);

	if (ret)
		return ret;
	call->in = (const struct ib_uverbs_modify_qp *)call->in + 1;
	call->number = ABI_CMD_RESOLVE;
	if (cmd_driver(call)) {
		*out = (struct abi_resolve_resp){.lane = ABI_NO_LANE};
		call->num_fds = 0;
	}
	return 0;
}

const struct command uverbs_driver_commands[] = {
	[ABI_CMD_RESOLVE - ABI_CMD_RESOLVE] = {"resolve", sizeof(struct abi_resolve),
					       sizeof(struct abi_resolve_resp), cmd_driver},
	[ABI_CMD_CONNECT - ABI_CMD_RESOLVE] = {"connect",
					       IN(modify_qp) + sizeof(struct abi_resolve),
					       sizeof(struct abi_resolve_resp), cmd_connect},
	[ABI_CMD_MODIFIED - ABI_CMD_RESOLVE] = {"modified", IN(modify_qp), 0, cmd_modified},
	[ABI_CMD_CREATED_QP - ABI_CMD_RESOLVE] = {"created_qp", sizeof(struct abi_create_granted_qp), 0,
						  cmd_created_qp},
	[ABI_CMD_TOLD_RING - ABI_CMD_RESOLVE] = {"told_ring", 0, 0, cmd_told_ring},
	[ABI_CMD_COMPLETION - ABI_CMD_RESOLVE] = {"completion", sizeof(struct abi_completion),
						  sizeof(struct abi_completion_resp), cmd_driver},
	[ABI_CMD_ALLOC_DM - ABI_CMD_RESOLVE] = {"alloc_dm", sizeof(struct abi_alloc_dm),
						sizeof(struct abi_alloc_dm_resp), cmd_alloc_dm},
	[ABI_CMD_FREE_DM - ABI_CMD_RESOLVE] = {"free_dm", sizeof(struct abi_free_dm), 0,
					       cmd_free_dm},
	[ABI_CMD_REG_DM_MR - ABI_CMD_RESOLVE] = {"reg_dm_mr", sizeof(struct abi_reg_dm_mr),
						 OUT(reg_mr), cmd_reg_dm_mr},
	[ABI_CMD_QUERY_OBJECT - ABI_CMD_RESOLVE] = {"query_object",
						    sizeof(struct abi_query_object),
						    sizeof(struct abi_query_object_resp),
						    cmd_query_object},
	[ABI_CMD_FIND_STATION - ABI_CMD_RESOLVE] = {"find_station",
						    sizeof(struct abi_find_station),
						    sizeof(struct abi_find_station_resp),
						    cmd_driver},
	[ABI_CMD_CREATE_FLOW - ABI_CMD_RESOLVE] = {"create_flow", sizeof(struct abi_create_flow),
						   sizeof(struct abi_create_flow_resp),
						   cmd_create_flow},
	[ABI_CMD_DESTROY_FLOW - ABI_CMD_RESOLVE] = {"destroy_flow",
						    sizeof(struct abi_destroy_flow), 0,
						    cmd_destroy_flow},
	[ABI_CMD_SET_RSS - ABI_CMD_RESOLVE] = {"set_rss", sizeof(struct abi_set_rss), 0,
					       cmd_set_rss},
	[ABI_CMD_READ_FLOW - ABI_CMD_RESOLVE] = {"read_flow", sizeof(struct abi_read_flow),
						 sizeof(struct abi_read_flow_resp), cmd_read_flow},
	[ABI_CMD_SHARE - ABI_CMD_RESOLVE] = {"share", sizeof(struct abi_share_context), 0,
					     cmd_share},
	[ABI_CMD_REACH - ABI_CMD_RESOLVE] = {"reach", sizeof(struct abi_reach), 0, cmd_reach},
};
const unsigned int uverbs_num_driver_commands = ARRAY_SIZE(uverbs_driver_commands);

const struct command uverbs_commands[] = {
	/* clang-format off */
	[IB_USER_VERBS_CMD_GET_CONTEXT] = {"get_context", IN(get_context), 0, cmd_get_context},
	[IB_USER_VERBS_CMD_QUERY_DEVICE] =
		{"query_device", IN(query_device), OUT(query_device), cmd_query_device},
	[IB_USER_VERBS_CMD_QUERY_PORT] =
		{"query_port", IN(query_port), OUT(query_port), cmd_query_port},
	[IB_USER_VERBS_CMD_ALLOC_PD] = {"alloc_pd", IN(alloc_pd), OUT(alloc_pd), cmd_alloc_pd},
	[IB_USER_VERBS_CMD_DEALLOC_PD] = {"dealloc_pd", IN(dealloc_pd), 0, cmd_dealloc_pd},
	[IB_USER_VERBS_CMD_CREATE_AH] =
		{"create_ah", IN(create_ah), OUT(create_ah), cmd_create_ah},
	[IB_USER_VERBS_CMD_DESTROY_AH] = {"destroy_ah", IN(destroy_ah), 0, cmd_destroy_ah},
	[IB_USER_VERBS_CMD_REG_MR] = {"reg_mr", IN(reg_mr), OUT(reg_mr), cmd_reg_mr},
	[IB_USER_VERBS_CMD_REREG_MR] = {"rereg_mr", IN(rereg_mr), OUT(rereg_mr), cmd_rereg_mr},
	[IB_USER_VERBS_CMD_DEREG_MR] = {"dereg_mr", IN(dereg_mr), 0, cmd_dereg_mr},
	[IB_USER_VERBS_CMD_ALLOC_MW] = {"alloc_mw", IN(alloc_mw), OUT(alloc_mw), cmd_alloc_mw},
	[IB_USER_VERBS_CMD_DEALLOC_MW] = {"dealloc_mw", IN(dealloc_mw), 0, cmd_dealloc_mw},
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] =
		{"create_comp_channel", IN(create_comp_channel), OUT(create_comp_channel),
		 cmd_create_comp_channel},
	[IB_USER_VERBS_CMD_CREATE_CQ] =
		{"create_cq", IN(create_cq), OUT(create_cq), cmd_create_cq},
	[IB_USER_VERBS_CMD_RESIZE_CQ] =
		{"resize_cq", IN(resize_cq), OUT(resize_cq), cmd_resize_cq},
	[IB_USER_VERBS_CMD_DESTROY_CQ] =
		{"destroy_cq", IN(destroy_cq), OUT(destroy_cq), cmd_destroy_cq},
	[IB_USER_VERBS_CMD_CREATE_QP] =
		{"create_qp", IN(create_qp), OUT(create_qp), cmd_create_qp},
	[IB_USER_VERBS_CMD_QUERY_QP] =
		{"query_qp", IN(query_qp), OUT(query_qp), cmd_query_qp},
	[IB_USER_VERBS_CMD_MODIFY_QP] = {"modify_qp", IN(modify_qp), 0, cmd_modify_qp},
	[IB_USER_VERBS_CMD_DESTROY_QP] =
		{"destroy_qp", IN(destroy_qp), OUT(destroy_qp), cmd_destroy_qp},
	[IB_USER_VERBS_CMD_ATTACH_MCAST] =
		{"attach_mcast", IN(attach_mcast), 0, cmd_attach_mcast},
	[IB_USER_VERBS_CMD_DETACH_MCAST] =
		{"detach_mcast", IN(detach_mcast), 0, cmd_detach_mcast},
	[IB_USER_VERBS_CMD_CREATE_SRQ] =
		{"create_srq", IN(create_srq), OUT(create_srq), cmd_create_srq},
	[IB_USER_VERBS_CMD_OPEN_XRCD] =
		{"open_xrcd", IN(open_xrcd) + sizeof(struct abi_open_xrcd),
		 OUT(open_xrcd) + sizeof(u32), cmd_open_xrcd},
	[IB_USER_VERBS_CMD_OPEN_QP] = {"open_qp", IN(open_qp), OUT(create_qp), cmd_open_qp},
	[IB_USER_VERBS_CMD_CLOSE_XRCD] = {"close_xrcd", IN(close_xrcd), 0, cmd_close_xrcd},
	[IB_USER_VERBS_CMD_CREATE_XSRQ] =
		{"create_xsrq", IN(create_xsrq), OUT(create_srq), cmd_create_xsrq},
	[IB_USER_VERBS_CMD_MODIFY_SRQ] = {"modify_srq", IN(modify_srq), 0, cmd_modify_srq},
	[IB_USER_VERBS_CMD_QUERY_SRQ] =
		{"query_srq", IN(query_srq), OUT(query_srq), cmd_query_srq},
	[IB_USER_VERBS_CMD_DESTROY_SRQ] =
		{"destroy_srq", IN(destroy_srq), OUT(destroy_srq), cmd_destroy_srq},
	/* clang-format on */
};
const unsigned int uverbs_num_commands = ARRAY_SIZE(uverbs_commands);

const struct command uverbs_ex_commands[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] = {"ex_query_device", IN(ex_query_device),
					       sizeof(struct abi_ex_query_device_resp),
					       cmd_ex_query_device},
	[IB_USER_VERBS_EX_CMD_MODIFY_QP] = {"ex_modify_qp", IN(ex_modify_qp), OUT(ex_modify_qp),
					    cmd_ex_modify_qp},
};
const unsigned int uverbs_num_ex_commands = ARRAY_SIZE(uverbs_ex_commands);
