/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The address translation service (ATS) of the DAT collaborative: a subnet administrator's service records say
 * which port has an IP address. A host table knows the addresses of one fabric; where a subnet has several (cables
 * that lead to another softibd), each one publishes its own, and asks for those that its table does not know.
 *
 * A record's ServiceData8 has the address, an IPv4 address in the last four bytes behind zeros. A port has one record for
 * each of its service ids. That of ATS is the port's IPv4 address; for the IPv6 address there is a second one, of
 * softib's own.
 *
 * Records have a lease, so that those of a fabric that has left end by themselves. They are renewed at half of it,
 * and at once when a subnet manager asks for that (IB_EVENT_CLIENT_REREGISTER) or takes over.
 */
#include <netinet/in.h>

#include "core/rdma_cm_priv.h"

#define ATS_SERVICE_ID_IPV4 0x10000ce100415453ull
#define ATS_SERVICE_ID_IPV6 0x10000ce173690006ull
#define ATS_NAME	    "DAPL Address Translation Service"
#define LEASE_SECONDS	    600
#define RENEW_NS	    (LEASE_SECONDS / 2 * NSEC_PER_SEC)
#define RETRY_NS	    NSEC_PER_SEC /* of ports that no subnet administrator has taken yet */
#define TIMEOUT_MS	    1000
#define IPV4_AT		    12

static const struct {
	sa_family_t family;
	u64 service_id;
} records[] = {{AF_INET, ATS_SERVICE_ID_IPV4}, {AF_INET6, ATS_SERVICE_ID_IPV6}};

/** struct ats_record - one of a port */
struct ats_record {
	struct ats_device *device;
	bool done, asked; /* the SA has it; a request for it is under way */
};

/** struct ats_device - the records of an adapter; requests under way keep it, too */
struct ats_device {
	struct list_head node; /* in rcm_ats.devices; empty: the adapter has left */
	struct ib_device *device;
	struct ib_event_handler events;
	unsigned int refs;
	u32 num_ports;
	struct ats_record record[][ARRAY_SIZE(records)]; /* [port - 1] */
};

/** struct rcm_ats - the service of a fabric */
struct rcm_ats {
	struct rt *rt;
	struct list_head devices;
	struct rt_timer timer;
	mono_t renew;
};

static void put_device(struct ats_device *dev)
{
	if (!--dev->refs)
		rt_free(dev);
}

/* --- publishing --- */

static void published(int status, struct ib_sa_service_rec *resp, void *context)
{
	struct ats_record *record = context;

	record->asked = false;
	record->done = !status;
	put_device(record->device);
}

static void put_address(struct ib_sa_service_rec *rec, const struct sockaddr_storage *addr)
{
	size_t bytes;
	const u8 *ip = rcm_ip((struct sockaddr_storage *)addr, &bytes);

	memcpy(rec->data8 + sizeof(rec->data8) - bytes, ip, bytes);
}

static ib_sa_comp_mask address_mask(void)
{
	return 0xffffull * IB_SA_SERVICE_REC_SERVICE_DATA8_0;
}

static void publish(struct ats_device *dev, u32 port_num, unsigned int i)
{
	const struct rdma_hosts *hosts = rcm_hosts(dev->device->rt);
	struct ats_record *record = &dev->record[port_num - 1][i];
	struct ib_sa_service_rec rec = {
		.id = cpu_to_be64(records[i].service_id), .lease = cpu_to_be32(LEASE_SECONDS), .name = ATS_NAME};
	struct sockaddr_storage addr;
	u16 pkey;

	if (!hosts || hosts->address(hosts->ctx, dev->device, port_num, records[i].family, &addr) ||
	    ib_get_cached_gid(dev->device, port_num, 0, &rec.gid) || ib_get_cached_pkey(dev->device, port_num, 0, &pkey))
		return;
	rec.pkey = cpu_to_be16(pkey);
	put_address(&rec, &addr);
	if (ib_sa_service_rec_query(&core_fabric_of(dev->device->rt)->rcm_sa_client, dev->device, port_num,
				    IB_MGMT_METHOD_SET, &rec,
				    IB_SA_SERVICE_REC_SERVICE_ID | IB_SA_SERVICE_REC_SERVICE_GID |
					    IB_SA_SERVICE_REC_SERVICE_PKEY | IB_SA_SERVICE_REC_SERVICE_LEASE |
					    IB_SA_SERVICE_REC_SERVICE_NAME | address_mask(),
				    TIMEOUT_MS, GFP_KERNEL, published, record, NULL) < 0)
		return;
	record->asked = true;
	dev->refs++;
}

static bool is_ready(struct ib_device *device, u32 port_num)
{
	struct ib_port_attr attr;

	return !ib_query_port(device, port_num, &attr) && attr.state == IB_PORT_ACTIVE &&
	       attr.link_layer != IB_LINK_LAYER_ETHERNET;
}

/* Publish what no SA has yet. Return: true: there is some left, which has to be tried again */
static bool publish_missing(struct ats_device *dev)
{
	bool missing = false;

	for (u32 p = 1; p <= dev->num_ports; p++)
		for (unsigned int i = 0; i < ARRAY_SIZE(records) && is_ready(dev->device, p); i++) {
			struct ats_record *record = &dev->record[p - 1][i];

			if (!record->done && !record->asked)
				publish(dev, p, i);
			missing |= !record->done;
		}
	return missing;
}

static void forget_published(struct ats_device *dev, u32 port_num)
{
	for (u32 p = 1; p <= dev->num_ports; p++)
		for (unsigned int i = 0; i < ARRAY_SIZE(records) && (!port_num || p == port_num); i++)
			dev->record[p - 1][i].done = false;
}

static void tick(struct rt_timer *timer)
{
	struct rcm_ats *ats = container_of(timer, struct rcm_ats, timer);
	const mono_t now = rt_now(ats->rt);
	struct ats_device *dev;
	bool missing = false;

	if (!mono_before(now, ats->renew)) {
		ats->renew = mono_add(now, RENEW_NS);
		list_for_each_entry(dev, &ats->devices, node)
			forget_published(dev, 0);
	}
	list_for_each_entry(dev, &ats->devices, node)
		missing |= publish_missing(dev);
	rt_timer_arm(timer, missing ? mono_add(now, RETRY_NS) : ats->renew);
}

static struct rcm_ats *ats_of(const struct rt *rt)
{
	const struct core_fabric *fabric = core_fabric_of(rt);

	return fabric ? fabric->rcm_ats : NULL;
}

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct ats_device *dev = container_of(handler, struct ats_device, events);
	struct rcm_ats *ats = ats_of(dev->device->rt);

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_GID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
		forget_published(dev, event->element.port_num);
		if (ats)
			rt_timer_arm(&ats->timer, rt_now(ats->rt));
		break;
	default:
		break;
	}
}

/* --- adapters --- */

static int add_device(struct ib_device *device);
static void remove_device(struct ib_device *device, void *client_data);

static const struct ib_client client = {.name = "ats", .add = add_device, .remove = remove_device};

static int add_device(struct ib_device *device)
{
	struct rcm_ats *ats = ats_of(device->rt);
	u32 ports = rdma_start_port(device) ? rdma_end_port(device) : 0;
	struct ats_device *dev = rt_zalloc(sizeof(*dev) + ports * sizeof(dev->record[0]));

	if (!dev)
		return -ENOMEM;
	dev->device = device;
	dev->refs = 1;
	dev->num_ports = ports;
	for (u32 p = 0; p < ports; p++)
		for (unsigned int i = 0; i < ARRAY_SIZE(records); i++)
			dev->record[p][i].device = dev;
	list_add_tail(&dev->node, &ats->devices);
	INIT_IB_EVENT_HANDLER(&dev->events, device, on_event);
	ib_register_event_handler(&dev->events);
	ib_set_client_data(device, &client, dev);
	rt_timer_arm(&ats->timer, rt_now(ats->rt));
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct ats_device *dev = client_data;

	ib_unregister_event_handler(&dev->events);
	list_del(&dev->node);
	put_device(dev);
}

int rdma_cm_publish(struct rt *rt, bool on)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct rcm_ats *ats = ats_of(rt);
	int ret;

	if (!fabric)
		return on ? -ENODEV : 0;
	if (on == (ats != NULL))
		return 0;
	if (!on) {
		ib_unregister_client(rt, &client);
		rt_timer_disarm(&ats->timer);
		fabric->rcm_ats = NULL;
		rt_free(ats);
		return 0;
	}
	ats = rt_zalloc(sizeof(*ats));
	if (!ats)
		return -ENOMEM;
	ats->rt = rt;
	ats->renew = mono_add(rt_now(rt), RENEW_NS);
	INIT_LIST_HEAD(&ats->devices);
	rt_timer_init(rt, &ats->timer, tick);
	fabric->rcm_ats = ats;
	ret = ib_register_client(rt, &client);
	if (ret)
		rdma_cm_publish(rt, false);
	return ret;
}

/* --- asking --- */

int rcm_ats_ask(struct rcm_id *id, void (*done)(int status, struct ib_sa_service_rec *resp, void *context))
{
	const struct sockaddr_storage *dst = &id->id.route.addr.dst_addr;
	const mono_t now = rt_now(id->rt);
	struct ib_sa_service_rec rec = {0};
	u64 left_ms;
	int ret;

	if (!ats_of(id->rt) || !id->id.device || !is_ready(id->id.device, id->id.port_num))
		return -ENETUNREACH;
	for (unsigned int i = 0; i < ARRAY_SIZE(records); i++)
		if (records[i].family == dst->ss_family)
			rec.id = cpu_to_be64(records[i].service_id);
	put_address(&rec, dst);
	left_ms = mono_before(now, id->give_up) ? (id->give_up.ns - now.ns) / NSEC_PER_MSEC : 0;
	ret = ib_sa_service_rec_query(&core_fabric_of(id->rt)->rcm_sa_client, id->id.device, id->id.port_num,
				      IB_MGMT_METHOD_GET, &rec, IB_SA_SERVICE_REC_SERVICE_ID | address_mask(), MAX(left_ms, 1ul),
				      GFP_KERNEL, done, id, &id->query);
	if (ret < 0)
		return -ENETUNREACH;
	id->query_id = ret;
	return 0;
}
