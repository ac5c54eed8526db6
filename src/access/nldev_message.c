/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Netlink messages: parsing of requests and construction of answers, without I/O. */
#include "access/nldev_private.h"

#include <errno.h>
#include <string.h>

/* --- requests --- */

/* The attributes by which a request selects a device, a port or an object. */
static void take(struct nl_request *r, u16 type, u32 value)
{
	switch (type) {
	case RDMA_NLDEV_ATTR_DEV_INDEX:
		r->has_device = true;
		r->device = value;
		break;
	case RDMA_NLDEV_ATTR_PORT_INDEX:
		r->has_port = true;
		r->port = value;
		break;
	case RDMA_NLDEV_ATTR_RES_LQPN:
	case RDMA_NLDEV_ATTR_RES_PDN:
	case RDMA_NLDEV_ATTR_RES_CQN:
	case RDMA_NLDEV_ATTR_RES_MRN:
	case RDMA_NLDEV_ATTR_RES_CM_IDN:
	case RDMA_NLDEV_ATTR_RES_CTXN:
	case RDMA_NLDEV_ATTR_RES_SRQN:
		r->has_id = true;
		r->id = value;
		break;
	default: /* like the kernel, ignore an attribute that does not select anything */
		break;
	}
}

static int parse_attributes(const char *at, size_t bytes, struct nl_request *r)
{
	while (bytes >= NLA_HDRLEN) {
		struct nlattr attr;
		u32 value;

		memcpy(&attr, at, sizeof(attr));
		if (attr.nla_len < NLA_HDRLEN || attr.nla_len > bytes)
			return -EINVAL;
		if (attr.nla_len == NLA_HDRLEN + sizeof(value)) {
			memcpy(&value, at + NLA_HDRLEN, sizeof(value));
			take(r, attr.nla_type & NLA_TYPE_MASK, value);
		}
		if (NLA_ALIGN(attr.nla_len) >= bytes)
			return 0;
		at += NLA_ALIGN(attr.nla_len);
		bytes -= NLA_ALIGN(attr.nla_len);
	}
	return bytes ? -EINVAL : 0;
}

int nl_parse(const void *data, size_t bytes, struct nl_request *r)
{
	*r = (struct nl_request){0};
	if (bytes < NLMSG_HDRLEN)
		return -EINVAL;
	memcpy(&r->head, data, sizeof(r->head));
	if (r->head.nlmsg_len < NLMSG_HDRLEN || r->head.nlmsg_len > bytes ||
	    !(r->head.nlmsg_flags & NLM_F_REQUEST))
		return -EINVAL;
	if (RDMA_NL_GET_CLIENT(r->head.nlmsg_type) != RDMA_NL_NLDEV)
		return -EOPNOTSUPP;
	r->cmd = RDMA_NL_GET_OP(r->head.nlmsg_type);
	r->dump = (r->head.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	return parse_attributes((const char *)data + NLMSG_HDRLEN,
				r->head.nlmsg_len - NLMSG_HDRLEN, r);
}

/* --- answers --- */

/* Return: space for @bytes at the end, whose padding is zeroed; NULL: there is no space */
static char *reserve(struct nl_out *out, size_t bytes)
{
	char *at = out->data + out->bytes;

	if (out->full || NLMSG_ALIGN(bytes) > sizeof(out->data) - out->bytes) {
		out->full = true;
		return NULL;
	}
	memset(at, 0, NLMSG_ALIGN(bytes));
	out->bytes += NLMSG_ALIGN(bytes);
	return at;
}

static void begin(struct nl_out *out, const struct nl_request *request, u16 type, u16 flags)
{
	const struct nlmsghdr head = {
		.nlmsg_type = type,
		.nlmsg_flags = flags,
		.nlmsg_seq = request->head.nlmsg_seq,
		.nlmsg_pid = request->head.nlmsg_pid,
	};
	char *at;

	out->begun = out->bytes;
	out->full = false;
	at = reserve(out, sizeof(head));
	if (at)
		memcpy(at, &head, sizeof(head));
}

void nl_begin(struct nl_out *out, const struct nl_request *request, u16 flags)
{
	begin(out, request, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, request->cmd), flags);
}

bool nl_end(struct nl_out *out)
{
	u32 len = (u32)(out->bytes - out->begun);

	if (out->full)
		out->bytes = out->begun;
	else
		memcpy(out->data + out->begun, &len, sizeof(len));
	return !out->full;
}

void nl_put(struct nl_out *out, u16 type, const void *value, size_t bytes)
{
	const struct nlattr attr = {.nla_len = (u16)(NLA_HDRLEN + bytes), .nla_type = type};
	char *at = reserve(out, attr.nla_len);

	if (!at)
		return;
	memcpy(at, &attr, sizeof(attr));
	if (bytes)
		memcpy(at + NLA_HDRLEN, value, bytes);
}

void nl_put_u8(struct nl_out *out, u16 type, u8 value)
{
	nl_put(out, type, &value, sizeof(value));
}

void nl_put_u32(struct nl_out *out, u16 type, u32 value)
{
	nl_put(out, type, &value, sizeof(value));
}

void nl_put_u64(struct nl_out *out, u16 type, u64 value)
{
	nl_put(out, type, &value, sizeof(value));
}

void nl_put_text(struct nl_out *out, u16 type, const char *text)
{
	nl_put(out, type, text, strlen(text) + 1);
}

size_t nl_nest(struct nl_out *out, u16 type)
{
	size_t nest = out->bytes;

	nl_put(out, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

void nl_nest_end(struct nl_out *out, size_t nest)
{
	u16 len = (u16)(out->bytes - nest);

	if (!out->full)
		memcpy(out->data + nest, &len, sizeof(len));
}

void nl_done(struct nl_out *out, const struct nl_request *request)
{
	const int status = 0;
	char *at;

	begin(out, request, NLMSG_DONE, NLM_F_MULTI);
	at = reserve(out, sizeof(status));
	if (at)
		memcpy(at, &status, sizeof(status));
	nl_end(out);
}

void nl_ack(struct nl_out *out, const struct nl_request *request, int error)
{
	const struct nlmsgerr ack = {.error = error, .msg = request->head};
	char *at;

	begin(out, request, NLMSG_ERROR, 0);
	at = reserve(out, sizeof(ack));
	if (at)
		memcpy(at, &ack, sizeof(ack));
	nl_end(out);
}
