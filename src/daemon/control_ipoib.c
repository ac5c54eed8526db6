/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations ipoib_open and ipoib: IP interfaces of adapters (ulp/ipoib). Who opens
 * one has made a TUN device in the network namespace that it is for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control_private.h"
#include "ulp/ipoib/ipoib.h"
#include "wire/packet.h"

enum { FD_TUN, FD_ADDRESSES };

/* Return: the adapter of "node" and *@port; NULL (answered) */
static struct ib_device *find_device(struct control_request *req, u32 *port)
{
	struct ib_device *device;
	int node, number;

	if (!control_port(req, &node, &number))
		return NULL;
	device = ib_device_get_by_name(control_rt(req->control),
				       control_topology(req)->node[node].name, "softib0");
	if (!device)
		control_fail(req, "%s has no adapter: only those have IP interfaces",
			     control_topology(req)->node[node].name);
	*port = (u32)number;
	return device;
}

static void put_link(struct json_object *o, const char *key,
		     const struct ipoib_link *link)
{
	char text[3 * IPOIB_LINK_BYTES];
	u8 bytes[IPOIB_LINK_BYTES];

	ipoib_put_link(link, bytes);
	for (int i = 0; i < IPOIB_LINK_BYTES; i++)
		snprintf(text + 3 * i, 4, i + 1 < IPOIB_LINK_BYTES ? "%02x:" : "%02x",
			 bytes[i]);
	control_put_text(o, key, text);
}

/* --- ipoib_open -------------------------------------------------------------- */

static const char *why(int error)
{
	switch (error) {
	case -EINVAL:
		return "with \"ipoib_open\" go two descriptors: a TUN device without "
		       "packet information and with virtio-net headers, and a routing "
		       "socket";
	case -EEXIST:
		return "the port has an interface of this partition: it ends with its "
		       "device";
	case -ENOENT:
		return "the port is not in this partition: softib exec NODE -- "
		       "ibv_devinfo -v "
		       "lists its P_Keys";
	default:
		return strerror(-error);
	}
}

bool control_op_ipoib_open(struct control_request *req)
{
	int64_t pkey = control_number(req, "pkey", 0xffff);
	int64_t ifindex = control_number(req, "ifindex", INT32_MAX);
	struct ipoib_config config = {.pkey = pkey < 0 ? WIRE_PKEY_DEFAULT : (u16)pkey};
	int ret;

	if (pkey == -2 || ifindex == -2)
		return true;
	config.device = find_device(req, &config.port_num);
	if (!config.device)
		return true;
	config.tun_fd = req->fd[FD_TUN];
	config.address_fd = req->fd[FD_ADDRESSES];
	config.ifindex = (unsigned int)ifindex;
	if (ifindex < 0 || config.tun_fd < 0 || config.address_fd < 0)
		ret = -EINVAL;
	else
		ret = ipoib_open(&config);
	if (ret) {
		control_fail(req, "%s", why(ret));
		return true;
	}
	req->fd[FD_TUN] = req->fd[FD_ADDRESSES] = -1;
	put_link(req->out, "link",
		 ipoib_own_link(ipoib_find(config.device, config.port_num, config.pkey)));
	control_put_number(req->out, "mtu", IPOIB_MTU);
	return true;
}

/* --- ipoib ------------------------------------------------------------------- */

static int put_neighbour(void *ctx, const struct in6_addr *ip,
			 const struct ipoib_link *link)
{
	struct json_object *o = json_object_new_object();
	char text[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(ip))
		inet_ntop(AF_INET, &ip->s6_addr[12], text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip, text, sizeof(text));
	control_put_text(o, "ip", text);
	if (link)
		put_link(o, "link", link);
	return json_object_array_add(ctx, o);
}

static int put_group(void *ctx, const union ib_gid *mgid, bool send_only, bool joined)
{
	struct json_object *o = json_object_new_object();
	char text[INET6_ADDRSTRLEN];

	control_put_text(o, "mgid", inet_ntop(AF_INET6, mgid, text, sizeof(text)));
	control_put_bool(o, "send_only", send_only);
	control_put_bool(o, "joined", joined);
	return json_object_array_add(ctx, o);
}

static void put_stats(struct json_object *o, const struct ipoib_stats *s)
{
	const struct {
		const char *key;
		u64 value;
	} rows[] = {
		{"rx_packets", s->rx_packets}, {"rx_bytes", s->rx_bytes},
		{"rx_errors", s->rx_errors},   {"rx_dropped", s->rx_dropped},
		{"tx_packets", s->tx_packets}, {"tx_bytes", s->tx_bytes},
		{"tx_errors", s->tx_errors},   {"tx_dropped", s->tx_dropped},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		control_put_number(o, rows[i].key, rows[i].value);
}

bool control_op_ipoib(struct control_request *req)
{
	int64_t pkey = control_number(req, "pkey", 0xffff);
	struct json_object *neighbours, *groups;
	struct ib_device *device;
	struct ipoib *ipoib;
	u32 port;

	device = pkey == -2 ? NULL : find_device(req, &port);
	if (!device)
		return true;
	ipoib = ipoib_find(device, port, pkey < 0 ? WIRE_PKEY_DEFAULT : (u16)pkey);
	if (!ipoib) {
		control_fail(req,
			     "%s has no IP interface of this partition: 'softib up --net "
			     "node' gives one to each port",
			     device->node_name);
		return true;
	}
	put_link(req->out, "link", ipoib_own_link(ipoib));
	control_put_bool(req->out, "joined", ipoib_is_joined(ipoib));
	put_stats(req->out, ipoib_stats(ipoib));
	neighbours = json_object_new_array();
	groups = json_object_new_array();
	ipoib_each_neighbour(ipoib, put_neighbour, neighbours);
	ipoib_each_group(ipoib, put_group, groups);
	json_object_object_add(req->out, "neighbours", neighbours);
	json_object_object_add(req->out, "groups", groups);
	return true;
}
