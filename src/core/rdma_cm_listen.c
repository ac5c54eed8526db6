/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Listeners. A service id has a port space and a port, but no address (A11.3). So all
 * listeners of one port share one listener of the CM on each device, which is called a
 * service. The address in the private data of a request selects one of them.
 */
#include "core/rdma_cm_priv.h"
#include "rdma/ib.h"

/** struct rcm_service - the listener of the CM for one service id on one device */
struct rcm_service {
	struct list_head node;	  /* struct core_fabric.rcm_services */
	struct list_head listens; /* struct rcm_listen; the service is freed with the last one */
	struct ib_cm_id *cm;	  /* its context is the service */
};

/** struct rcm_listen - that the listener @id uses @service */
struct rcm_listen {
	struct list_head node;	     /* in @id->listens */
	struct list_head of_service; /* in @service->listens */
	struct rcm_service *service;
	struct rcm_id *id;
	struct rcm_tracked tracked; /* used if @id is bound to no device */
};

static struct rcm_service *open_service(struct ib_device *device, __be64 service_id)
{
	struct rcm_service *service = rt_zalloc(sizeof(*service));
	int ret;

	if (!service)
		return ERR_PTR(-ENOMEM);
	service->cm = ib_create_cm_id_(device, rcm_on_listener, service, "rdma_cm");
	ret = IS_ERR(service->cm) ? (int)PTR_ERR(service->cm) : 0;
	if (!ret) {
		ret = ib_cm_listen(service->cm, service_id, 0);
		if (ret)
			ib_destroy_cm_id(service->cm);
	}
	if (ret) {
		rt_free(service);
		return ERR_PTR(ret == -EBUSY ? -EADDRINUSE : ret);
	}
	INIT_LIST_HEAD(&service->listens);
	list_add_tail(&service->node, &core_fabric_of(device->rt)->rcm_services);
	return service;
}

static struct rcm_service *get_service(struct ib_device *device, __be64 service_id)
{
	struct rcm_service *service;

	list_for_each_entry(service, &core_fabric_of(device->rt)->rcm_services, node)
		if (service->cm->device == device &&
		    service->cm->service_id == service_id)
			return service;
	return open_service(device, service_id);
}

static int listen_on(struct ib_device *device, void *ctx)
{
	struct rcm_listen *listen = rt_zalloc(sizeof(*listen));
	struct rcm_id *id = ctx;

	if (!listen)
		return -ENOMEM;
	listen->service = get_service(device,
				      rcm_service_id(id->id.ps, &id->id.route.addr.src_addr));
	if (IS_ERR(listen->service)) {
		int ret = (int)PTR_ERR(listen->service);

		rt_free(listen);
		return ret;
	}
	listen->id = id;
	if (!id->id.device)
		rcm_track(&listen->tracked, id, device);
	list_add_tail(&listen->of_service, &listen->service->listens);
	rcm_own(rcm_first_listener(listen->service), listen->service->cm);
	list_add_tail(&listen->node, &id->listens);
	return 0;
}

void rcm_drop_listens(struct rcm_id *id, const struct ib_device *only)
{
	struct rcm_listen *listen, *next;

	list_for_each_entry_safe(listen, next, &id->listens, node) {
		struct rcm_service *service = listen->service;

		if (only && service->cm->device != only)
			continue;
		list_del(&listen->of_service);
		list_del(&listen->node);
		rdma_restrack_del(service->cm->device, &listen->tracked.res);
		rt_free(listen);
		if (!list_empty(&service->listens)) {
			rcm_own(rcm_first_listener(service), service->cm);
			continue;
		}
		list_del(&service->node);
		ib_destroy_cm_id(service->cm);
		rt_free(service);
	}
}

struct rcm_id *rcm_find_listener(const struct rcm_service *service,
				 const struct sockaddr_storage *addr)
{
	const struct rcm_listen *listen;

	list_for_each_entry(listen, &service->listens, of_service)
		if (rcm_listens_for(listen->id, addr))
			return listen->id;
	return NULL;
}

struct rcm_id *rcm_find_ib_listener(const struct rcm_service *service)
{
	const struct rcm_listen *listen;

	list_for_each_entry(listen, &service->listens, of_service)
		if (listen->id->id.route.addr.src_addr.ss_family == AF_IB)
			return listen->id;
	return NULL;
}

const struct rcm_id *rcm_first_listener(const struct rcm_service *service)
{
	return list_first_entry(&service->listens, struct rcm_listen, of_service)->id;
}

u16 rcm_service_port(const struct rcm_service *service)
{
	return (u16)be64_to_cpu(service->cm->service_id);
}

enum rdma_ucm_port_space rcm_service_port_space(const struct rcm_service *service)
{
	return (enum rdma_ucm_port_space)(be64_to_cpu(service->cm->service_id) >> 16);
}

int rcm_listen_at_new_device(struct ib_device *device)
{
	struct rcm_id *id;
	int ret = 0;

	list_for_each_entry(id, &core_fabric_of(device->rt)->rcm_ids, node)
		if (!ret && id->state == RCM_LISTEN && !id->id.device &&
		    !strcmp(id->node_name, device->node_name))
			ret = listen_on(device, id);
	return ret;
}

int rdma_listen(struct rdma_cm_id *rdma_id, int backlog)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct sockaddr_storage any = {.ss_family = AF_INET};
	int ret = 0;

	rcm_trace_call(id, "listen");
	if (id->state == RCM_IDLE)
		ret = rdma_bind_addr(rdma_id, (struct sockaddr *)&any);
	if (ret)
		return ret;
	if (id->state != RCM_BOUND)
		return -EINVAL;
	if (rcm_is_taken(id, &rdma_id->route.addr.src_addr))
		return -EADDRINUSE; /* another id that shares the port listens already */
	id->backlog = backlog > 0 ? (unsigned int)backlog : 0;
	if (rdma_id->device)
		ret = listen_on(rdma_id->device, id);
	else
		ret = ib_device_for_each_of_node(id->rt, id->node_name, listen_on, id);
	if (ret)
		rcm_drop_listens(id, NULL);
	else
		id->state = RCM_LISTEN;
	return ret;
}
