/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any datagram of a program to the netlink socket: its attributes are read within its bounds, and
 * an answer that names it is whole messages of the length that they say. */
#include <errno.h>
#include <string.h>

#include "access/nldev_private.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_messages(const struct nl_out *out)
{
	size_t at = 0;

	while (at < out->bytes) {
		struct nlmsghdr head;

		memcpy(&head, out->data + at, sizeof(head));
		check(head.nlmsg_len >= NLMSG_HDRLEN && head.nlmsg_len <= out->bytes - at);
		at += NLMSG_ALIGN(head.nlmsg_len);
	}
	check(at == out->bytes);
}

/* a dump of as many things as there is room for, each with a text of @size bytes */
static void dump(const struct nl_request *request, size_t size)
{
	static struct nl_out out;
	char text[512] = {0};

	memset(text, 'x', MIN(size, sizeof(text) - 1));
	out.bytes = 0;
	do {
		size_t nest;

		nl_begin(&out, request, NLM_F_MULTI);
		nest = nl_nest(&out, RDMA_NLDEV_ATTR_RES_QP);
		nl_put_text(&out, RDMA_NLDEV_ATTR_RES_KERN_NAME, text);
		nl_put_u64(&out, RDMA_NLDEV_ATTR_RES_MRLEN, request->id);
		nl_nest_end(&out, nest);
	} while (nl_end(&out));
	check_messages(&out);
	check(out.bytes + size + 64 > NLDEV_DATAGRAM_BYTES / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nl_out out;
	struct nl_request request;
	int ret = nl_parse(data, size, &request);

	check(!ret || ret == -EINVAL || ret == -EOPNOTSUPP);
	out.bytes = 0;
	nl_ack(&out, &request, ret);
	nl_done(&out, &request);
	check_messages(&out);
	if (!ret && request.dump)
		dump(&request, size);
	return 0;
}
