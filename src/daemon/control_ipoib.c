/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations ipoib_open, ipoib_close, ipoib_mode and ipoib: IP interfaces of adapters (ulp/ipoib).
 * The client creates the TUN device, in the network namespace of the interface.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control_private.h"
#include "runtime/posix/log.h"
#include "ulp/ipoib/ipoib.h"
#include "wire/packet.h"

enum { FD_TUN, FD_ADDRESSES };

/* Get "node", "port" and "pkey", which identify an interface. As in Linux, its P_Key has
 * the bit of full membership, whatever the port's membership is. Return: are they valid? */
static bool find_partition(struct control_request *req, struct ib_device **device,
			   u32 *port, u16 *pkey)
{
	int64_t n = control_number(req, "pkey", 0xffff);

	if (n == -2)
		return false;
	*pkey = n < 0 ? WIRE_PKEY_DEFAULT : (u16)n | WIRE_PKEY_FULL;
	if (!wire_pkey_is_valid(*pkey)) {
		control_fail(req, "P_Keys 0 and 32768 name no partition");
		return false;
	}
	return control_adapter_port(req, device, port);
}

/* Return: the interface of a request; NULL after answering with an error */
static struct ipoib *find_interface(struct control_request *req)
{
	struct ib_device *device;
	struct ipoib *ipoib;
	u32 port;
	u16 pkey;

	if (!find_partition(req, &device, &port, &pkey))
		return NULL;
	ipoib = ipoib_find(device, port, pkey);
	if (!ipoib)
		control_fail(req,
			     "%s has no IP interface of partition 0x%04x on port %u: "
			     "'softib up --net node' gives each port one of 0xffff, "
			     "'softib ipoib NODE create PKEY' others",
			     device->node_name, pkey, port);
	return ipoib;
}

#define LINK_TEXT (3 * IPOIB_LINK_BYTES)

static const char *link_text(const struct ipoib_link *link, char text[LINK_TEXT])
{
	u8 bytes[IPOIB_LINK_BYTES];

	ipoib_put_link(link, bytes);
	for (int i = 0; i < IPOIB_LINK_BYTES; i++)
		snprintf(text + 3 * i, 4, i + 1 < IPOIB_LINK_BYTES ? "%02x:" : "%02x",
			 bytes[i]);
	return text;
}

static void put_link(struct json_object *o, const char *key,
		     const struct ipoib_link *link)
{
	char text[LINK_TEXT];

	control_put_text(o, key, link_text(link, text));
}

static const char *mode_of(const struct ipoib *ipoib)
{
	return ipoib_is_connected(ipoib) ? "connected" : "datagram";
}

/* --- ipoib_open -------------------------------------------------------------- */

static const char *why(int error)
{
	switch (error) {
	case -EINVAL:
		return "\"ipoib_open\" needs two descriptors: a TUN device without "
		       "packet information and with virtio-net headers, and a routing "
		       "socket";
	case -EEXIST:
		return "the port has an interface in this partition already: delete its "
		"device, or send \"ipoib_close\"";
	case -ENOENT:
		return "the port is not in this partition: 'softib exec NODE -- smpquery "
		       "-D "
		       "pkeys 0' lists the P_Keys that the subnet manager gave it";
	default:
		return strerror(-error);
	}
}

static bool is_ethernet(struct ib_device *device, u32 port_num)
{
	struct ib_port_attr attr;

	return !ib_query_port(device, port_num, &attr) &&
	       attr.link_layer == IB_LINK_LAYER_ETHERNET;
}

bool control_op_ipoib_open(struct control_request *req)
{
	int64_t ifindex = control_number(req, "ifindex", INT32_MAX);
	struct ipoib_config config;
	struct ipoib *ipoib;
	int ret;

	if (ifindex == -2 ||
	    !find_partition(req, &config.device, &config.port_num, &config.pkey))
		return true;
	config.tun_fd = req->fd[FD_TUN];
	config.rtnl_fd = req->fd[FD_ADDRESSES];
	config.ifindex = (unsigned int)ifindex;
	config.connected = control_ops(req->control)->ipoib_connected;
	if (is_ethernet(config.device, config.port_num)) {
		control_fail(req, "port %u is Ethernet's: IP over InfiniBand needs a port of InfiniBand",
			     config.port_num);
		return true;
	}
	if (ifindex < 0 || config.tun_fd < 0 || config.rtnl_fd < 0)
		ret = -EINVAL;
	else
		ret = ipoib_open(&config);
	if (ret) {
		control_fail(req, "%s", why(ret));
		return true;
	}
	req->fd[FD_TUN] = req->fd[FD_ADDRESSES] = -1;
	ipoib = ipoib_find(config.device, config.port_num, config.pkey);
	put_link(req->out, "link", ipoib_own_link(ipoib));
	control_put_number(req->out, "mtu", ipoib_mtu(ipoib));
	control_put_number(req->out, "segments", IPOIB_SEGMENTS);
	return true;
}

/* --- ipoib_close ------------------------------------------------------------- */

bool control_op_ipoib_close(struct control_request *req)
{
	struct ipoib *ipoib = find_interface(req);

	if (ipoib)
		ipoib_close(ipoib);
	return true;
}

/* --- ipoib_mode -------------------------------------------------------------- */

bool control_op_ipoib_mode(struct control_request *req)
{
	const char *mode = control_text(req, "mode");
	bool connected = mode && !strcmp(mode, "connected");
	struct ipoib *ipoib;
	int ret;

	if (!connected && (!mode || strcmp(mode, "datagram") != 0)) {
		control_fail(req, "\"mode\" is \"connected\" or \"datagram\"");
		return true;
	}
	ipoib = find_interface(req);
	if (!ipoib)
		return true;
	ret = ipoib_set_connected(ipoib, connected);
	if (ret) {
		control_fail(req, "it cannot take connections: %s", strerror(-ret));
		return true;
	}
	control_put_number(req->out, "mtu", ipoib_mtu(ipoib));
	return true;
}

/* --- ipoib_moderation -------------------------------------------------------- */

bool control_op_ipoib_moderation(struct control_request *req)
{
	int64_t usecs = control_number(req, "rx_usecs", UINT16_MAX);
	int64_t frames = control_number(req, "rx_frames", UINT16_MAX);
	struct ipoib *ipoib = usecs == -2 || frames == -2 ? NULL : find_interface(req);
	struct ipoib_moderation moderation;
	int ret;

	if (!ipoib)
		return true;
	moderation = ipoib_moderation(ipoib);
	if (usecs >= 0)
		moderation.usecs = (u16)usecs;
	if (frames >= 0)
		moderation.frames = (u16)frames;
	ret = ipoib_set_moderation(ipoib, &moderation);
	if (ret)
		control_fail(req, "the adapter does not moderate completions so: 'softib exec NODE -- "
			     "ibv_devinfo -v' shows its limits (max_cq_count, max_cq_period)");
	return true;
}

/* --- ipoib ------------------------------------------------------------------- */

static const char *ip_text(const struct in6_addr *ip, char text[INET6_ADDRSTRLEN])
{
	if (IN6_IS_ADDR_V4MAPPED(ip))
		return inet_ntop(AF_INET, &ip->s6_addr[12], text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, ip, text, INET6_ADDRSTRLEN);
}

static int put_pkey(void *ctx, struct ipoib *ipoib)
{
	return json_object_array_add(ctx, json_object_new_int(ipoib_pkey(ipoib)));
}

static int put_address(void *ctx, const struct ipoib_own_address *address)
{
	char text[INET6_ADDRSTRLEN], whole[INET6_ADDRSTRLEN + sizeof("/128")];

	snprintf(whole, sizeof(whole), "%s/%u", ip_text(address->ip, text), address->prefix_bits);
	return json_object_array_add(ctx, json_object_new_string(whole));
}

/* Return: 1 if the address is being verified, which ends the iteration; 0 */
static int is_verifying(void *ctx, const struct ipoib_own_address *address)
{
	return address->verifying;
}

/* Put an address if another host uses it, too. */
static int put_conflict(void *ctx, const struct ipoib_own_address *address)
{
	struct json_object *o;
	char text[INET6_ADDRSTRLEN];

	if (!address->duplicate && !address->other)
		return 0;
	o = json_object_new_object();
	control_put_text(o, "ip", ip_text(address->ip, text));
	control_put_bool(o, "duplicate", address->duplicate);
	if (address->other)
		put_link(o, "link", address->other);
	return json_object_array_add(ctx, o);
}

void control_report_conflict(const struct ipoib *ipoib, const struct ipoib_own_address *address)
{
	char text[INET6_ADDRSTRLEN], link[LINK_TEXT] = "another interface";
	u32 port;
	const struct ib_device *device = ipoib_device(ipoib, &port);

	if (address->other)
		link_text(address->other, link);
	rt_log("%s port %u, P_Key 0x%04x: the address %s is also that of %s: %s",
	       device->node_name, port, ipoib_pkey(ipoib), ip_text(address->ip, text), link,
	       address->duplicate ? "it is not used here; give the node another one ('ip address')" :
				    "it stays here; give the other node another one");
}

static int put_neighbour(void *ctx, const struct ipoib_peer *peer)
{
	struct json_object *o = json_object_new_object();
	char text[INET6_ADDRSTRLEN];

	control_put_text(o, "ip", ip_text(peer->ip, text));
	if (peer->link)
		put_link(o, "link", peer->link);
	if (peer->path) {
		control_put_number(o, "lid", peer->path->dlid);
		control_put_number(o, "sl", peer->path->sl);
	}
	control_put_bool(o, "connected", peer->connected);
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
		{"conflicts", s->conflicts},   {"completions", s->completions},
		{"events", s->events},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		control_put_number(o, rows[i].key, rows[i].value);
}

bool control_op_ipoib(struct control_request *req)
{
	struct ipoib *ipoib = find_interface(req);
	struct json_object *out = req->out;

	if (!ipoib)
		return true;
	control_put_number(out, "pkey", ipoib_pkey(ipoib));
	ipoib_each_of_port(ipoib, put_pkey, control_put_list(out, "pkeys"));
	put_link(out, "link", ipoib_own_link(ipoib));
	control_put_text(out, "mode", mode_of(ipoib));
	control_put_number(out, "mtu", ipoib_mtu(ipoib));
	control_put_bool(out, "joined", ipoib_is_joined(ipoib));
	control_put_number(out, "connections", ipoib_connections(ipoib));
	control_put_number(out, "rx_usecs", ipoib_moderation(ipoib).usecs);
	control_put_number(out, "rx_frames", ipoib_moderation(ipoib).frames);
	put_stats(out, ipoib_stats(ipoib));
	ipoib_each_address(ipoib, put_address, control_put_list(out, "addresses"));
	control_put_bool(out, "verifying", ipoib_each_address(ipoib, is_verifying, NULL));
	ipoib_each_address(ipoib, put_conflict, control_put_list(out, "address_conflicts"));
	ipoib_each_neighbour(ipoib, put_neighbour, control_put_list(out, "neighbours"));
	ipoib_each_group(ipoib, put_group, control_put_list(out, "groups"));
	return true;
}
