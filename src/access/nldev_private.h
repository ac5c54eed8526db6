/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of the netlink endpoint: sessions and requests (nldev.c), messages (nldev_message.c), and
 * the attributes of devices, ports and objects (nldev_describe.c). */
#ifndef SOFTIB_ACCESS_NLDEV_PRIVATE_H
#define SOFTIB_ACCESS_NLDEV_PRIVATE_H

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "rdma/ib_verbs.h"

/* No datagram is longer than a page, since a reader's buffer may be as small as that (libmnl). */
#define NLDEV_DATAGRAM_BYTES 4096

/** struct nl_out - a datagram while messages are appended to it
 *  @bytes: its length; @begun: offset of the message that is being written */
struct nl_out {
	size_t bytes, begun;
	bool full; /* an attribute did not fit: the message that is being written is incomplete */
	_Alignas(8) char data[NLDEV_DATAGRAM_BYTES];
};

/** struct nl_request - a request of NLDEV: its header, and the attributes that select what it is about.
 *  @has_device, @has_port, @has_id: the request has this attribute */
struct nl_request {
	struct nlmsghdr head;
	u16 cmd; /* enum rdma_nldev_command */
	bool dump, has_device, has_port, has_id;
	u32 device, port, id;
};

/* --- nldev_message.c --- */

/** nl_parse() - read the first message in @bytes at @data
 *  Return: 0; -EINVAL: it is no request, or its attributes are malformed; -EOPNOTSUPP: it is for another
 *  client than NLDEV */
int nl_parse(const void *data, size_t bytes, struct nl_request *request);
/** nl_begin(), nl_end() - begin and end a message that answers @request. @flags: NLM_F_MULTI in a dump.
 *  nl_end() returns false if the message did not fit: then it was removed from @out */
void nl_begin(struct nl_out *out, const struct nl_request *request, u16 flags);
bool nl_end(struct nl_out *out);
/** nl_put() - append an attribute whose value has @bytes. Attributes of NLDEV are in host byte order */
void nl_put(struct nl_out *out, u16 type, const void *value, size_t bytes);
void nl_put_u8(struct nl_out *out, u16 type, u8 value);
void nl_put_u32(struct nl_out *out, u16 type, u32 value);
void nl_put_u64(struct nl_out *out, u16 type, u64 value);
void nl_put_text(struct nl_out *out, u16 type, const char *text);
/** nl_nest() - begin nested attributes. Return: the argument @nest of nl_nest_end(), which ends them */
size_t nl_nest(struct nl_out *out, u16 type);
void nl_nest_end(struct nl_out *out, size_t nest);
/** nl_done() - append the message that ends a dump */
void nl_done(struct nl_out *out, const struct nl_request *request);
/** nl_ack() - append the acknowledgement of @request. @error: 0 or -errno */
void nl_ack(struct nl_out *out, const struct nl_request *request, int error);

/* --- nldev_describe.c --- */

/** nldev_put_handle() - append the attributes that say which device a message is about */
void nldev_put_handle(struct nl_out *out, const struct ib_device *device);
void nldev_put_device(struct nl_out *out, struct ib_device *device);
/** nldev_put_port() - append the attributes of a port. Return: 0; -errno of ib_query_port() */
int nldev_put_port(struct nl_out *out, struct ib_device *device, u32 port_num);
/** nldev_put_summary() - append the number of objects of each type */
void nldev_put_summary(struct nl_out *out, struct ib_device *device);

/** struct nldev_table - one type of object: the command and the attributes by which requests and answers
 *  name the type and one object of it */
struct nldev_table {
	u16 cmd;		/* RDMA_NLDEV_CMD_RES_QP_GET ... */
	u16 table, entry, id;	/* attributes */
	enum rdma_restrack_type type;
	void (*put)(struct nl_out *out, const struct rdma_restrack_entry *entry);
};

/** nldev_table_of() - Return: the type that @cmd asks for; NULL: it does not ask for objects */
const struct nldev_table *nldev_table_of(u16 cmd);
/** nldev_id() - Return: the number by which users name the object of @entry: its QPN, or a serial number */
u32 nldev_id(const struct rdma_restrack_entry *entry);
/** nldev_is_on() - does the object belong to this port? Most types of objects belong to no port */
bool nldev_is_on(const struct rdma_restrack_entry *entry, u32 port_num);
/** nldev_put_object() - append the attributes of an object, and its owner */
void nldev_put_object(struct nl_out *out, const struct nldev_table *table,
		      const struct rdma_restrack_entry *entry);

#endif
