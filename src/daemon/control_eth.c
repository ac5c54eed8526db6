/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations eth_open and eth: Ethernet interfaces of adapters (ulp/eth). The client creates
 * the TAP device, in the network namespace of the interface.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control_private.h"
#include "ulp/eth/eth.h"

enum { FD_TAP, FD_RTNL };

static const char *why(int error)
{
	switch (error) {
	case -EINVAL:
		return "\"eth_open\" needs two descriptors: a TAP device without packet information "
		       "and with virtio-net headers, and a routing socket";
	case -EEXIST:
		return "the port has such an interface already: delete its device";
	case -EOPNOTSUPP:
		return "it is a port of InfiniBand, which has an IP interface by \"ipoib_open\"";
	default:
		return strerror(-error);
	}
}

static void put_interface(struct json_object *o, const struct eth *eth)
{
	const u8 *mac = eth_mac(eth);
	char text[3 * ETH_MAC_BYTES];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
	control_put_text(o, "mac", text);
	control_put_number(o, "mtu", eth_mtu(eth));
}

/* Return: "vlan", the id; 0: the untagged interface; -2: (answered) */
static int64_t vlan_of(struct control_request *req)
{
	int64_t vlan = control_number(req, "vlan", ETH_VLAN_ID);

	return vlan == -1 ? 0 : vlan;
}

bool control_op_eth_open(struct control_request *req)
{
	int64_t ifindex = control_number(req, "ifindex", INT32_MAX), vlan = vlan_of(req);
	struct eth_config config = {.tap_fd = req->fd[FD_TAP], .rtnl_fd = req->fd[FD_RTNL]};
	int ret = -EINVAL;

	if (ifindex == -2 || vlan == -2 || !control_adapter_port(req, &config.device, &config.port_num))
		return true;
	config.ifindex = (unsigned int)ifindex;
	config.vlan_id = (u16)vlan;
	if (ifindex > 0 && config.tap_fd >= 0 && config.rtnl_fd >= 0)
		ret = eth_open(&config);
	if (ret) {
		control_fail(req, "%s", why(ret));
		return true;
	}
	req->fd[FD_TAP] = req->fd[FD_RTNL] = -1;
	put_interface(req->out, eth_find(config.device, config.port_num, config.vlan_id));
	control_put_number(req->out, "segments", ETH_SEGMENTS);
	return true;
}

bool control_op_eth(struct control_request *req)
{
	const struct eth_stats *stats;
	int64_t vlan = vlan_of(req);
	struct ib_device *device;
	struct eth *eth;
	u32 port;

	if (vlan == -2 || !control_adapter_port(req, &device, &port))
		return true;
	eth = eth_find(device, port, (u16)vlan);
	if (!eth) {
		control_fail(req, "%s has no Ethernet interface on port %u: 'softib up --net node' "
			     "gives one to each port of Ethernet", device->node_name, port);
		return true;
	}
	put_interface(req->out, eth);
	stats = eth_stats(eth);
	control_put_number(req->out, "rx_packets", stats->rx_packets);
	control_put_number(req->out, "rx_bytes", stats->rx_bytes);
	control_put_number(req->out, "rx_errors", stats->rx_errors);
	control_put_number(req->out, "rx_length_errors", stats->rx_length_errors);
	control_put_number(req->out, "rx_dropped", stats->rx_dropped);
	control_put_number(req->out, "tx_packets", stats->tx_packets);
	control_put_number(req->out, "tx_bytes", stats->tx_bytes);
	control_put_number(req->out, "tx_errors", stats->tx_errors);
	control_put_number(req->out, "tx_length_errors", stats->tx_length_errors);
	control_put_number(req->out, "tx_dropped", stats->tx_dropped);
	control_put_number(req->out, "tx_waits", stats->tx_waits);
	control_put_number(req->out, "restarts", stats->restarts);
	return true;
}
