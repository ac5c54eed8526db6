/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flow steering: the specifications of a rule become one key and one mask over the fields of a
 * frame (wire/frame.h), which the adapter compares at once.
 */
#include <stdlib.h>

#include "abi/objects.h"
#include "soft.h"
#include "wire/frame.h"

/** struct rule - the key and its mask while the specifications are read */
struct rule {
	struct wire_frame_key value, mask;
	bool drops, is_tagged;
	uint32_t tag;
	struct ibv_counters *counters;
};

/* the rule selects frames that have these headers */
static void demand(struct rule *r, uint8_t has)
{
	r->value.has |= has;
	r->mask.has |= has;
}

#define FIELD(to, from)                                                                           \
	do {                                                                                       \
		memcpy(&r->value.to, &spec->val.from, sizeof(spec->val.from));                     \
		memcpy(&r->mask.to, &spec->mask.from, sizeof(spec->mask.from));                    \
	} while (0)

static int add_eth(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_eth *spec = bytes;

	FIELD(dst_mac, dst_mac);
	FIELD(src_mac, src_mac);
	FIELD(ether_type, ether_type);
	FIELD(vlan_tag, vlan_tag);
	if (spec->mask.vlan_tag)
		demand(r, WIRE_FRAME_VLAN);
	return 0;
}

static int add_ipv4(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_ipv4 *spec = bytes;

	demand(r, WIRE_FRAME_IPV4);
	FIELD(src_ip, src_ip);
	FIELD(dst_ip, dst_ip);
	return 0;
}

static int add_ipv4_ext(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_ipv4_ext *spec = bytes;

	demand(r, WIRE_FRAME_IPV4);
	FIELD(src_ip, src_ip);
	FIELD(dst_ip, dst_ip);
	FIELD(ip_proto, proto);
	FIELD(tos, tos);
	FIELD(ttl, ttl);
	FIELD(ip_flags, flags);
	return 0;
}

static int add_ipv6(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_ipv6 *spec = bytes;

	demand(r, WIRE_FRAME_IPV6);
	FIELD(src_ip, src_ip);
	FIELD(dst_ip, dst_ip);
	FIELD(ip_proto, next_hdr);
	FIELD(tos, traffic_class);
	FIELD(ttl, hop_limit);
	/* 20 bits at the end of the word */
	memcpy(r->value.flow_label, (const uint8_t *)&spec->val.flow_label + 1, 3);
	memcpy(r->mask.flow_label, (const uint8_t *)&spec->mask.flow_label + 1, 3);
	return 0;
}

static int add_ports(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_tcp_udp *spec = bytes;

	demand(r, spec->type == IBV_FLOW_SPEC_TCP ? WIRE_FRAME_TCP : WIRE_FRAME_UDP);
	FIELD(src_port, src_port);
	FIELD(dst_port, dst_port);
	return 0;
}

static int add_drop(struct rule *r, const void *bytes)
{
	r->drops = true;
	return 0;
}

/* one tag for a rule */
static int add_tag(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_action_tag *spec = bytes;

	if (r->is_tagged)
		return -EINVAL;
	r->is_tagged = true;
	r->tag = spec->tag_id;
	return 0;
}

/* one set of counters for a rule */
static int add_count(struct rule *r, const void *bytes)
{
	const struct ibv_flow_spec_counter_action *spec = bytes;

	if (!spec->counters || r->counters)
		return -EINVAL;
	r->counters = spec->counters;
	return 0;
}

static const struct spec {
	uint32_t type;
	size_t bytes;
	int (*add)(struct rule *r, const void *spec);
} specs[] = {
	{IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth), add_eth},
	{IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4), add_ipv4},
	{IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext), add_ipv4_ext},
	{IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6), add_ipv6},
	{IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp), add_ports},
	{IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp), add_ports},
	{IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop), add_drop},
	{IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), add_tag},
	{IBV_FLOW_SPEC_ACTION_COUNT, sizeof(struct ibv_flow_spec_counter_action), add_count},
};

/* Return: 0; -EOPNOTSUPP a kind that is not in the table; -EINVAL its size is wrong */
static int add_spec(struct rule *r, const struct ibv_flow_spec *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		if (spec->hdr.type != specs[i].type)
			continue;
		return spec->hdr.size == specs[i].bytes ? specs[i].add(r, spec) : -EINVAL;
	}
	return -EOPNOTSUPP;
}

/* The specifications follow the attributes, each with its size. */
static int read_rule(const struct ibv_flow_attr *attr, struct rule *r)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	int rc = 0;

	for (unsigned i = 0; i < attr->num_of_specs && !rc; i++) {
		const struct ibv_flow_spec *spec = (const void *)at;

		rc = add_spec(r, spec);
		at += spec->hdr.size;
	}
	return rc;
}

/**
 * flow_create() - ibv_create_flow()
 * Return: the rule; NULL and errno: EOPNOTSUPP the port is not Ethernet's, a flag but
 * DONT_TRAP, or a specification that is neither of Ethernet, IPv4, IPv6, TCP, UDP nor an
 * action that drops, tags or counts; EINVAL no raw packet QP, no such port, a default rule with
 * specifications, two tags, counters of another context; ENOMEM; EIO
 */
struct ibv_flow *flow_create(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct soft_context *ctx = to_context(qp->context);
	struct abi_create_flow req = {
		.qp_handle = qp->handle,
		.flags = attr->flags,
		.type = (uint16_t)attr->type,
		.priority = attr->priority,
		.port_num = attr->port,
	};
	struct abi_create_flow_resp resp;
	struct rule rule = {0};
	struct soft_flow *flow;
	int rc = attr->comp_mask ? -EINVAL : read_rule(attr, &rule);

	if (!rc && rule.counters && rule.counters->context != qp->context)
		rc = -EINVAL;
	if (rc)
		return verbs_null(rc);
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return verbs_null(-ENOMEM);
	req.drops = rule.drops;
	req.tag = rule.tag;
	memcpy(req.value, &rule.value, sizeof(req.value));
	memcpy(req.mask, &rule.mask, sizeof(req.mask));
	rc = session_command(ctx, ABI_CMD_CREATE_FLOW, &req, sizeof(req), &resp, sizeof(resp));
	if (rc) {
		free(flow);
		return verbs_null(rc);
	}
	flow->ibv.context = qp->context;
	flow->ibv.handle = resp.flow_handle;
	if (rule.counters)
		counters_take(rule.counters, flow);
	return &flow->ibv;
}

/** flow_destroy() - ibv_destroy_flow() */
int flow_destroy(struct ibv_flow *flow)
{
	struct abi_destroy_flow req = {.flow_handle = flow->handle};
	struct soft_flow *soft = container_of(flow, struct soft_flow, ibv);
	int rc = counters_leave(soft);

	if (!rc)
		rc = session_destroy(to_context(flow->context), ABI_CMD_DESTROY_FLOW, &req,
				     sizeof(req), NULL, 0);
	if (!rc)
		free(soft);
	return verbs_err(rc);
}
