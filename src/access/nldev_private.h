/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The netlink endpoint's inside: sessions and requests (nldev.c), messages (nldev_message.c), and
 * what they say of devices, ports and objects (nldev_describe.c). */
#ifndef SOFTIB_ACCESS_NLDEV_PRIVATE_H
#define SOFTIB_ACCESS_NLDEV_PRIVATE_H

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "rdma/ib_verbs.h"

/* A reader's buffer is a page at least (libmnl), so no datagram is longer. */
#define NLDEV_DATAGRAM_BYTES 4096

/** struct nl_out - a datagram of messages as it grows; @begun: the message under way, at this byte */
struct nl_out {
	size_t bytes, begun;
	bool full; /* something did not fit: the message under way is not whole */
	_Alignas(8) char data[NLDEV_DATAGRAM_BYTES];
};

/** struct nl_request - of NLDEV: its header, and the attributes that are asked by; has: bit set */
struct nl_request {
	struct nlmsghdr head;
	u16 cmd; /* enum rdma_nldev_command */
	bool dump, has_device, has_port, has_id;
	u32 device, port, id;
};

/* --- nldev_message.c --- */

/** nl_parse() - the first message of @bytes at @data.
 *  Return: 0; -EINVAL no request, or its attributes are malformed; -EOPNOTSUPP of another client */
int nl_parse(const void *data, size_t bytes, struct nl_request *request);
/** nl_begin(), nl_end() - a message that answers @request; @flags: NLM_F_MULTI of a dump.
 *  nl_end() - Return: false: it did not fit, and @out is as before */
void nl_begin(struct nl_out *out, const struct nl_request *request, u16 flags);
bool nl_end(struct nl_out *out);
/** nl_put() - an attribute of @bytes at @value; NLDEV's attributes are in host order */
void nl_put(struct nl_out *out, u16 type, const void *value, size_t bytes);
void nl_put_u8(struct nl_out *out, u16 type, u8 value);
void nl_put_u32(struct nl_out *out, u16 type, u32 value);
void nl_put_u64(struct nl_out *out, u16 type, u64 value);
void nl_put_text(struct nl_out *out, u16 type, const char *text);
/** nl_nest() - Return: what nl_nest_end() is called with behind the nested attributes */
size_t nl_nest(struct nl_out *out, u16 type);
void nl_nest_end(struct nl_out *out, size_t nest);
/** nl_done() - the end of a dump */
void nl_done(struct nl_out *out, const struct nl_request *request);
/** nl_ack() - @error: 0, or -errno, of the whole @request */
void nl_ack(struct nl_out *out, const struct nl_request *request, int error);

/* --- nldev_describe.c --- */

/** nldev_put_handle() - which device a message is about */
void nldev_put_handle(struct nl_out *out, const struct ib_device *device);
void nldev_put_device(struct nl_out *out, struct ib_device *device);
/** nldev_put_port() - 0; -errno of the driver's query */
int nldev_put_port(struct nl_out *out, struct ib_device *device, u32 port_num);
/** nldev_put_summary() - how many objects of each type there are */
void nldev_put_summary(struct nl_out *out, struct ib_device *device);

/** struct nldev_table - the objects of one type: how a request names the type and one of them */
struct nldev_table {
	u16 cmd;		/* RDMA_NLDEV_CMD_RES_QP_GET ... */
	u16 table, entry, id;	/* attributes */
	enum rdma_restrack_type type;
	void (*put)(struct nl_out *out, const struct rdma_restrack_entry *entry);
};

/** nldev_table_of() - Return: NULL: @cmd asks for no objects */
const struct nldev_table *nldev_table_of(u16 cmd);
/** nldev_id() - by which number a program knows the object of @entry: a QPN, or a running number */
u32 nldev_id(const struct rdma_restrack_entry *entry);
/** nldev_is_on() - does it belong to this port? Objects of no port in particular belong to none */
bool nldev_is_on(const struct rdma_restrack_entry *entry, u32 port_num);
/** nldev_put_object() - its attributes and its owner */
void nldev_put_object(struct nl_out *out, const struct nldev_table *table,
		      const struct rdma_restrack_entry *entry);

#endif
