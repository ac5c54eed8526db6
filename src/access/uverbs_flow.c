/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands of flow steering and receive side scaling, for raw packet QPs. */
#include "access/uverbs_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "abi/objects.h"

static_assert(ABI_RSS_QUEUES == 1 << IB_RSS_MAX_LOG_SIZE, "one table");

int cmd_create_flow(struct call *call)
{
	const struct abi_create_flow *in = call->in;
	struct abi_create_flow_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_qp *qp = ib_uobject_get(context, IB_UOBJECT_QP, in->qp_handle);
	struct ib_flow_attr attr = {
		.type = (enum ib_flow_attr_type)in->type,
		.priority = in->priority,
		.port = in->port_num,
		.flags = in->flags,
		.drops = in->drops,
		.tag = in->tag,
	};
	struct ib_uobject *uobject;
	int ret;

	if (!uverbs_may_send_raw(call->session))
		return -EPERM;
	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	memcpy(attr.value, in->value, sizeof(attr.value));
	memcpy(attr.mask, in->mask, sizeof(attr.mask));
	uobject = ib_uobject_alloc(context, IB_UOBJECT_FLOW);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	ret = ib_uobject_commit(uobject, ib_create_flow(qp, &attr));
	if (!ret)
		out->flow_handle = uobject->handle;
	return ret;
}

int cmd_destroy_flow(struct call *call)
{
	const struct abi_destroy_flow *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_FLOW, in->flow_handle);
}

int cmd_read_flow(struct call *call)
{
	const struct abi_read_flow *in = call->in;
	struct abi_read_flow_resp *out = call->out;
	const struct ib_flow *flow =
		ib_uobject_get(call->session->context, IB_UOBJECT_FLOW, in->flow_handle);

	if (IS_ERR(flow))
		return (int)PTR_ERR(flow);
	*out = (struct abi_read_flow_resp){.packets = flow->packets, .bytes = flow->bytes};
	return 0;
}

int cmd_set_rss(struct call *call)
{
	const struct abi_set_rss *in = call->in;
	struct ib_ucontext *context = call->session->context;
	struct ib_qp *qp = ib_uobject_get(context, IB_UOBJECT_QP, in->qp_handle);
	struct ib_rss rss = {.fields = in->fields, .log_size = in->log_size};

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	if (in->log_size > IB_RSS_MAX_LOG_SIZE || in->fields & ~(u64)IB_RX_HASH_ALL)
		return -EINVAL;
	memcpy(rss.key, in->key, sizeof(rss.key));
	for (u32 i = 0; i < 1u << in->log_size; i++) {
		rss.wq[i] = ib_uobject_get(context, IB_UOBJECT_QP, in->wq_handle[i]);
		if (IS_ERR(rss.wq[i]))
			return (int)PTR_ERR(rss.wq[i]);
	}
	return ib_set_rss(qp, &rss);
}
