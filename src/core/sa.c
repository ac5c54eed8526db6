/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SA client's ports. The subnet administrator of a port is at QP1 of the
 * LID that its PortInfo names (14.2.5.6: MasterSMLID, MasterSMSL). An event
 * that may change it invalidates the address, and the next query reads it again.
 */
#include "core/sa_priv.h"

#define DEFAULT_PKEY 0xffff /* every port is a member, full or limited (10.9.1.2) */

/** struct sa_device - the SA client's data of a device */
struct sa_device {
	struct ib_event_handler events;
	u32 num_ports;
	struct sa_port port[];
};

static const struct ib_client sa_ib_client;

struct sa_port *sa_port_find(struct ib_device *device, u32 port_num)
{
	struct sa_device *sa = ib_get_client_data(device, &sa_ib_client);

	if (!sa || !rdma_is_port_valid(device, port_num))
		return NULL;
	return &sa->port[port_num - rdma_start_port(device)];
}

/* --- the address of the SA --- */

void sa_address_put(struct sa_address *address)
{
	if (!address || --address->users)
		return;
	rdma_destroy_ah(address->ah, 0);
	rt_free(address);
}

static int address_open(struct sa_port *port)
{
	struct rdma_ah_attr attr = {.port_num = (u8)port->port_num};
	struct ib_port_attr now;
	struct sa_address *address;
	int ret = ib_query_port(port->device, port->port_num, &now);

	if (ret)
		return ret;
	if (!now.sm_lid || now.state < IB_PORT_INIT)
		return -EAGAIN;
	address = rt_zalloc(sizeof(*address));
	if (!address)
		return -ENOMEM;
	attr.dlid = (u16)now.sm_lid;
	attr.sl = now.sm_sl;
	/* 15.4.2: requests to the SA go by the default partition */
	if (ib_find_cached_pkey(port->device, port->port_num, DEFAULT_PKEY, &address->pkey_index))
		address->pkey_index = 0;
	address->ah = rdma_create_ah(port->agent->qp->pd, &attr, 0);
	if (IS_ERR(address->ah)) {
		ret = (int)PTR_ERR(address->ah);
		rt_free(address);
		return ret;
	}
	address->users = 1;
	port->address = address;
	return 0;
}

static void address_drop(struct sa_port *port)
{
	sa_address_put(port->address);
	port->address = NULL;
}

int sa_port_open(struct sa_port *port)
{
	if (port->closing)
		return -ENODEV;
	if (!port->agent) {
		struct ib_mad_agent *agent = ib_register_mad_agent_(
			port->device, port->port_num, IB_QPT_GSI, NULL, IB_MGMT_RMPP_VERSION,
			sa_query_sent, sa_query_answered, port, 0, "sa");

		if (IS_ERR(agent))
			return (int)PTR_ERR(agent);
		port->agent = agent;
	}
	return port->address ? 0 : address_open(port);
}

/* --- events --- */

/* The parts of a port's state that become invalid by an event. */
enum {
	ENDS_ADDRESS = 1, /* the SA may have another address */
	ENDS_PATHS = 2,	  /* paths may have changed */
	ENDS_GROUPS = 4,  /* the memberships are lost */
	ENDS_PKEYS = 8,	  /* the memberships in partitions that the port left are lost */
	ENDS_NOTICES = 16,
};

static const uint8_t event_ends[] = {
	[IB_EVENT_PORT_ERR] = ENDS_ADDRESS | ENDS_PATHS | ENDS_GROUPS | ENDS_NOTICES,
	[IB_EVENT_PORT_ACTIVE] = ENDS_ADDRESS,
	[IB_EVENT_LID_CHANGE] = ENDS_ADDRESS | ENDS_PATHS | ENDS_GROUPS | ENDS_NOTICES,
	[IB_EVENT_PKEY_CHANGE] = ENDS_ADDRESS | ENDS_PATHS | ENDS_PKEYS,
	[IB_EVENT_SM_CHANGE] = ENDS_ADDRESS | ENDS_PATHS | ENDS_NOTICES,
	/* 14.4.11: the SM has lost the registrations of the port */
	[IB_EVENT_CLIENT_REREGISTER] = ENDS_ADDRESS | ENDS_PATHS | ENDS_GROUPS | ENDS_NOTICES,
	[IB_EVENT_GID_CHANGE] = ENDS_PATHS,
};

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct sa_port *port;
	uint8_t ends;

	if ((unsigned int)event->event >= ARRAY_SIZE(event_ends))
		return;
	ends = event_ends[event->event];
	port = ends ? sa_port_find(handler->device, event->element.port_num) : NULL;
	if (!port)
		return;
	if (ends & ENDS_ADDRESS)
		address_drop(port);
	if (ends & ENDS_PATHS)
		sa_cache_drop(port);
	if (ends & ENDS_GROUPS)
		sa_groups_lost(port);
	else if (ends & ENDS_PKEYS)
		sa_groups_check_pkeys(port);
	if (ends & ENDS_NOTICES)
		sa_notices_lost(port);
}

/* --- the devices --- */

static void close_port(struct sa_port *port)
{
	port->closing = true;
	sa_cache_close(port);
	sa_groups_close(port);
	sa_notices_close(port);
	sa_queries_end(port);
	if (port->agent)
		ib_unregister_mad_agent(port->agent);
	address_drop(port);
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct sa_device *sa = client_data;

	if (!sa)
		return;
	ib_unregister_event_handler(&sa->events);
	for (u32 i = 0; i < sa->num_ports; i++)
		close_port(&sa->port[i]);
	ib_set_client_data(device, &sa_ib_client, NULL);
	rt_free(sa);
}

static int add_device(struct ib_device *device)
{
	u32 first = rdma_start_port(device), ports = rdma_end_port(device) - first + 1;
	struct sa_device *sa = rt_zalloc(sizeof(*sa) + ports * sizeof(sa->port[0]));

	if (!sa)
		return -ENOMEM;
	sa->num_ports = ports;
	for (u32 i = 0; i < ports; i++) {
		struct sa_port *port = &sa->port[i];

		port->device = device;
		port->port_num = first + i;
		INIT_LIST_HEAD(&port->groups);
		INIT_LIST_HEAD(&port->notices);
		INIT_LIST_HEAD(&port->cache);
	}
	INIT_IB_EVENT_HANDLER(&sa->events, device, on_event);
	ib_register_event_handler(&sa->events);
	ib_set_client_data(device, &sa_ib_client, sa);
	return 0;
}

static const struct ib_client sa_ib_client = {
	.name = "sa",
	.add = add_device,
	.remove = remove_device,
};

int ib_sa_init(struct rt *rt)
{
	return ib_register_client(rt, &sa_ib_client);
}

void ib_sa_cleanup(struct rt *rt)
{
	ib_unregister_client(rt, &sa_ib_client);
}
