/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Interfaces: made, found, ended; and what they do when the port changes. */
#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>

#include "ulp/eth/private.h"
#include "ulp/net/tun.h"

static const struct ib_client eth_client;

/** struct eth_device - the interfaces of a device; the client data */
struct eth_device {
	struct list_head interfaces;
};

struct eth *eth_find(struct ib_device *device, u32 port_num, u16 vlan_id)
{
	struct eth_device *d = ib_get_client_data(device, &eth_client);
	struct eth *eth;

	if (!d)
		return NULL;
	list_for_each_entry(eth, &d->interfaces, node)
		if (eth->port_num == port_num && eth->vlan_id == vlan_id)
			return eth;
	return NULL;
}

const struct eth *eth_find_index(const struct eth *eth, unsigned int ifindex)
{
	const struct eth_device *d = ib_get_client_data(eth->device, &eth_client);
	const struct eth *other;

	list_for_each_entry(other, &d->interfaces, node)
		if (other->port_num == eth->port_num && other->ifindex == ifindex)
			return other;
	return NULL;
}

unsigned int eth_count(struct ib_device *device)
{
	const struct eth_device *d = ib_get_client_data(device, &eth_client);
	const struct eth *eth;
	unsigned int n = 0;

	if (d)
		list_for_each_entry(eth, &d->interfaces, node)
			n++;
	return n;
}

const u8 *eth_mac(const struct eth *eth)
{
	return eth->mac;
}

unsigned int eth_mtu(const struct eth *eth)
{
	return eth->mtu;
}

unsigned int eth_ifindex(const struct eth *eth)
{
	return eth->ifindex;
}

void eth_name(const struct eth *eth, char *name)
{
	net_tun_name(eth->host.fd, name);
}

const struct eth_stats *eth_stats(const struct eth *eth)
{
	return &eth->stats;
}

/* --- the port --- */

static void follow_state(struct eth *eth)
{
	struct ib_port_attr port;

	if (ib_query_port(eth->device, eth->port_num, &port))
		return;
	net_tun_set_carrier(eth->host.fd, port.state == IB_PORT_ACTIVE);
	trace_eth_interface(ETH_TRACE_AT(eth), eth->mtu, port.state == IB_PORT_ACTIVE ? "up" : "down");
}

static void port_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct eth *eth = container_of(handler, struct eth, events);

	if (event->element.port_num == eth->port_num &&
	    (event->event == IB_EVENT_PORT_ERR || event->event == IB_EVENT_PORT_ACTIVE))
		follow_state(eth);
}

void eth_set_mtu(struct eth *eth, unsigned int bytes)
{
	bytes = MIN(bytes, (unsigned int)WIRE_FRAME_MTU_MAX);
	if (eth->mtu == bytes)
		return;
	eth->mtu = bytes;
	trace_eth_interface(ETH_TRACE_AT(eth), eth->mtu, "mtu");
	if (!eth->vlan_id)
		ib_set_mtu(eth->device, eth->port_num, eth->mtu);
}

/* The first GID of a port of RoCE is the link-local address of its MAC address (RFC 4291,
 * appendix A). */
static int read_port(struct eth *eth)
{
	struct ib_port_attr port;
	union ib_gid gid;
	int ret = ib_query_port(eth->device, eth->port_num, &port);

	if (!ret && port.link_layer != IB_LINK_LAYER_ETHERNET)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = ib_query_gid(eth->device, eth->port_num, 0, &gid);
	if (ret)
		return ret;
	memcpy(eth->mac, gid.raw + 8, 3);
	memcpy(eth->mac + 3, gid.raw + 13, 3);
	eth->mac[0] ^= 0x02;
	eth_set_mtu(eth, ETH_MTU);
	return 0;
}

/* --- an interface --- */

static void gone(struct rt_work *work)
{
	eth_close(container_of(work, struct eth, end));
}

static void restart(struct rt_work *work)
{
	eth_queue_restart(container_of(work, struct eth, restart));
}

int eth_open(const struct eth_config *config)
{
	struct eth_device *d = ib_get_client_data(config->device, &eth_client);
	int ret = net_tun_check(config->tap_fd, config->rtnl_fd, IFF_TAP);
	struct eth *eth;

	if (!ret && config->vlan_id > ETH_VLAN_ID)
		ret = -EINVAL;
	if (!ret && (!d || !rdma_is_port_valid(config->device, config->port_num)))
		ret = -ENODEV;
	if (!ret && eth_find(config->device, config->port_num, config->vlan_id))
		ret = -EEXIST;
	eth = ret ? NULL : rt_zalloc(sizeof(*eth));
	if (!eth)
		return ret ? ret : -ENOMEM;
	eth->device = config->device;
	eth->port_num = config->port_num;
	eth->vlan_id = config->vlan_id;
	eth->host.fd = config->tap_fd;
	eth->rtnl_fd = config->rtnl_fd;
	eth->ifindex = config->ifindex;
	rt_work_init(&eth->end, gone);
	rt_work_init(&eth->restart, restart);
	eth_queue_init(eth);
	list_add_tail(&eth->node, &d->interfaces);
	INIT_IB_EVENT_HANDLER(&eth->events, eth->device, port_event);
	ib_register_event_handler(&eth->events);
	eth_host_open(eth);
	ret = read_port(eth);
	if (!ret)
		ret = eth_queue_open(eth);
	if (!ret) {
		trace_eth_interface(ETH_TRACE_AT(eth), eth->mtu, "opened");
		follow_state(eth);
		eth_rtnl_open(eth);
	} else {
		eth->host.fd = eth->rtnl_fd = -1; /* they stay the caller's */
		eth_close(eth);
	}
	return ret;
}

void eth_close(struct eth *eth)
{
	eth->closing = true;
	trace_eth_interface(ETH_TRACE_AT(eth), eth->mtu, "closed");
	ib_unregister_event_handler(&eth->events);
	list_del(&eth->node);
	eth_queue_close(eth);
	if (eth->rtnl_fd >= 0)
		eth_rtnl_close(eth);
	eth_host_close(eth);
	rt_work_cancel(&eth->end);
	rt_work_cancel(&eth->restart);
	rt_free(eth);
}

/* --- devices --- */

static int add_device(struct ib_device *device)
{
	struct eth_device *d = rt_zalloc(sizeof(*d));

	if (!d)
		return -ENOMEM;
	INIT_LIST_HEAD(&d->interfaces);
	ib_set_client_data(device, &eth_client, d);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct eth_device *d = client_data;

	while (!list_empty(&d->interfaces))
		eth_close(list_first_entry(&d->interfaces, struct eth, node));
	rt_free(d);
}

static const struct ib_client eth_client = {
	.name = "eth",
	.add = add_device,
	.remove = remove_device,
};

int eth_init(struct rt *rt)
{
	int ret = eth_host_init(rt);

	if (ret)
		return ret;
	ret = ib_register_client(rt, &eth_client);
	if (ret)
		eth_host_cleanup(rt);
	return ret;
}

void eth_cleanup(struct rt *rt)
{
	ib_unregister_client(rt, &eth_client);
	eth_host_cleanup(rt);
}
