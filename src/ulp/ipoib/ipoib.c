/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Interfaces: made, found, ended; and what they do when the fabric changes. */
#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>

#include "ulp/ipoib/private.h"
#include "ulp/ipoib/trace.h"
#include "ulp/net/tun.h"

static const struct ib_client ipoib_client;

/** struct ipoib_device - the interfaces of a device; the client data */
struct ipoib_device {
	struct list_head interfaces;
};

struct ipoib *ipoib_find(struct ib_device *device, u32 port_num, u16 pkey)
{
	struct ipoib_device *d = ib_get_client_data(device, &ipoib_client);
	struct ipoib *p;

	if (!d)
		return NULL;
	list_for_each_entry(p, &d->interfaces, node)
		if (p->port_num == port_num && !((p->pkey ^ pkey) & 0x7fff))
			return p;
	return NULL;
}

unsigned int ipoib_count(struct ib_device *device)
{
	const struct ipoib_device *d = ib_get_client_data(device, &ipoib_client);
	const struct ipoib *p;
	unsigned int n = 0;

	if (d)
		list_for_each_entry(p, &d->interfaces, node)
			n++;
	return n;
}

int ipoib_each_of_port(const struct ipoib *of, int (*fn)(void *ctx, struct ipoib *ipoib),
		       void *ctx)
{
	struct ipoib_device *d = ib_get_client_data(of->device, &ipoib_client);
	struct ipoib *p;
	int ret = 0;

	list_for_each_entry(p, &d->interfaces, node) {
		if (p->port_num == of->port_num)
			ret = fn(ctx, p);
		if (ret)
			break;
	}
	return ret;
}

u16 ipoib_pkey(const struct ipoib *p)
{
	return p->pkey;
}

struct ib_device *ipoib_device(const struct ipoib *p, u32 *port_num)
{
	*port_num = p->port_num;
	return p->device;
}

const struct ipoib_link *ipoib_own_link(const struct ipoib *p)
{
	return &p->own;
}

const struct ipoib_stats *ipoib_stats(const struct ipoib *p)
{
	return &p->stats;
}

/* --- stopping and starting --- */

static void stop(struct ipoib *p)
{
	if (p->stopped)
		return;
	p->stopped = true;
	trace_ipoib_interface(IPOIB_TRACE_AT(p), p->pkey, "stop");
	ipoib_set_carrier(p, false);
	ipoib_neighbours_close(p);
	ipoib_groups_leave(p);
}

static void start(struct ipoib *p)
{
	struct ib_port_attr port;

	if (ipoib_queue_restart(p))
		return; /* until the next event */
	p->stopped = false;
	trace_ipoib_interface(IPOIB_TRACE_AT(p), p->pkey, "start");
	if (!ib_query_port(p->device, p->port_num, &port) && port.state == IB_PORT_ACTIVE)
		ipoib_set_carrier(p, true);
	ipoib_groups_join(p);
	ipoib_conflict_begin_all(p);
}

static void restart(struct rt_work *work)
{
	struct ipoib *p = container_of(work, struct ipoib, restart);

	stop(p);
	start(p);
}

/* The subnet manager may have taken the P_Key away, moved it in the table or returned it,
 * and given the port another subnet prefix. Return: is the interface as before? */
static bool follow_port(struct ipoib *p)
{
	union ib_gid gid = p->own.gid;
	u16 index;

	if (ib_find_cached_pkey(p->device, p->port_num, p->pkey, &index)) {
		stop(p);
		return false;
	}
	ib_query_gid(p->device, p->port_num, 0, &gid);
	if (!p->stopped && index == p->pkey_index &&
	    !memcmp(&gid, &p->own.gid, sizeof(gid)))
		return true;
	p->own.gid = gid;
	stop(p);
	start(p);
	return false;
}

/* --- events of the port --- */

static void port_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct ipoib *p = container_of(handler, struct ipoib, events);

	if (event->element.port_num != p->port_num)
		return;
	switch (event->event) {
	case IB_EVENT_PORT_ERR:
		ipoib_set_carrier(p, false);
		break;
	case IB_EVENT_PORT_ACTIVE:
		if (!follow_port(p))
			break;
		ipoib_set_carrier(p, true);
		ipoib_groups_flush(p);
		ipoib_neighbours_flush(p);
		ipoib_conflict_begin_all(p);
		break;
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_GID_CHANGE:
		if (!follow_port(p))
			break;
		ipoib_groups_flush(p);
		ipoib_neighbours_flush(p);
		break;
	default:
		break;
	}
}

/* --- an interface --- */

static void gone(struct rt_work *work)
{
	ipoib_close(container_of(work, struct ipoib, end));
}

static int open_parts(struct ipoib *p)
{
	int ret = ib_query_gid(p->device, p->port_num, 0, &p->own.gid);

	if (!ret)
		ret = ipoib_queue_open(p);
	if (!ret)
		ret = ipoib_groups_open(p);
	return ret;
}

int ipoib_open(const struct ipoib_config *config)
{
	struct ipoib_device *d = ib_get_client_data(config->device, &ipoib_client);
	int ret = net_tun_check(config->tun_fd, config->rtnl_fd, IFF_TUN);
	struct ipoib *p;

	if (!ret && (!d || !rdma_is_port_valid(config->device, config->port_num)))
		ret = -ENODEV;
	if (!ret && ipoib_find(config->device, config->port_num, config->pkey))
		ret = -EEXIST;
	p = ret ? NULL : rt_zalloc(sizeof(*p));
	if (!p)
		return ret ? ret : -ENOMEM;
	p->device = config->device;
	p->port_num = config->port_num;
	p->pkey = config->pkey;
	p->host.fd = config->tun_fd;
	p->rtnl_fd = config->rtnl_fd;
	p->ifindex = config->ifindex;
	INIT_LIST_HEAD(&p->groups);
	rt_work_init(&p->end, gone);
	rt_work_init(&p->restart, restart);
	trace_ipoib_interface(IPOIB_TRACE_AT(p), p->pkey, "open");
	ipoib_queue_init(p);
	ipoib_connected_init(p);
	ipoib_neighbours_init(p);
	ipoib_conflict_open(p);
	ib_sa_register_client_(&p->sa, "ipoib");
	list_add_tail(&p->node, &d->interfaces);
	INIT_IB_EVENT_HANDLER(&p->events, p->device, port_event);
	ib_register_event_handler(&p->events);
	ipoib_host_open(p);
	ipoib_rtnl_open(p);
	ret = open_parts(p);
	if (!ret && config->connected)
		ret = ipoib_set_connected(p, true);
	if (!ret)
		ipoib_set_mtu(p);
	if (ret) {
		p->host.fd = p->rtnl_fd = -1; /* they stay the caller's */
		ipoib_close(p);
	}
	return ret;
}

void ipoib_close(struct ipoib *p)
{
	p->closing = true;
	trace_ipoib_interface(IPOIB_TRACE_AT(p), p->pkey, "close");
	ib_unregister_event_handler(&p->events);
	list_del(&p->node);
	ipoib_conflict_close(p);
	ipoib_neighbours_close(p);
	ipoib_connected_end(p);
	ipoib_groups_close(p);
	ib_sa_unregister_client(&p->sa);
	ipoib_queue_close(p);
	ipoib_rtnl_close(p);
	ipoib_host_close(p);
	rt_work_cancel(&p->end);
	rt_work_cancel(&p->restart);
	rt_free(p);
}

/* --- devices --- */

static int add_device(struct ib_device *device)
{
	struct ipoib_device *d = rt_zalloc(sizeof(*d));

	if (!d)
		return -ENOMEM;
	INIT_LIST_HEAD(&d->interfaces);
	ib_set_client_data(device, &ipoib_client, d);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct ipoib_device *d = client_data;

	while (!list_empty(&d->interfaces))
		ipoib_close(list_first_entry(&d->interfaces, struct ipoib, node));
	rt_free(d);
}

static const struct ib_client ipoib_client = {
	.name = "ipoib",
	.add = add_device,
	.remove = remove_device,
};

int ipoib_init(struct rt *rt)
{
	int ret = ipoib_host_init(rt);

	if (ret)
		return ret;
	ret = ib_register_client(rt, &ipoib_client);
	if (ret)
		ipoib_host_cleanup(rt);
	return ret;
}

void ipoib_cleanup(struct rt *rt)
{
	ib_unregister_client(rt, &ipoib_client);
	ipoib_host_cleanup(rt);
}
