/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the core share among themselves. */
#ifndef SOFTIB_CORE_PRIVATE_H
#define SOFTIB_CORE_PRIVATE_H

#include <string.h>

#include "core/uobject.h"
#include "rdma/ib_sa.h"
#include "rdma/ib_verbs.h"
#include "runtime/rt.h"

#define CORE_NAME_BUCKETS 4096
#define RCM_PORT_BUCKETS  65536 /* ports: a search for a free one looks at many of them */

/**
 * struct core_fabric - what the core knows of one fabric. It is found through the fabric's loop,
 * and exists while a device or a client is registered there, or an id of the RDMA CM is left.
 */
struct core_fabric {
	struct rt *rt;
	struct list_head devices;			   /* oldest first */
	struct list_head clients;			   /* in the order of registration */
	struct list_head by_node_name[CORE_NAME_BUCKETS];  /* struct ib_device.name_node */
	struct ib_sa_client sa_client;			   /* of multicast and notices */
	struct ib_sa_client cm_sa_client;		   /* of the CM */
	/* --- the RDMA CM --- */
	struct ib_sa_client rcm_sa_client;
	const struct rdma_hosts *hosts;
	struct list_head rcm_ids;      /* oldest first */
	struct list_head rcm_services; /* ports of devices that are listened on */
	struct list_head rcm_bound[RCM_PORT_BUCKETS]; /* those bound to a port; zero: never used */
};

static inline struct core_fabric *core_fabric_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_CORE);
}
/** core_fabric_put() - free it if it is no longer in use */
void core_fabric_put(struct core_fabric *fabric);

/** struct core_owner - for whom an object is made: a kernel client by its
 *  name, or a program through its uobject (then name is NULL) */
struct core_owner {
	const char *client;
	struct ib_uobject *uobject;
};

static inline struct ib_udata *core_udata(const struct core_owner *owner, struct ib_udata *udata)
{
	if (!owner->uobject)
		return NULL;
	udata->context = owner->uobject->context;
	return udata;
}

/** core_track() - enter an object of @owner in the resource tables */
static inline void core_track(struct ib_device *device, struct rdma_restrack_entry *res,
			      enum rdma_restrack_type type, const struct core_owner *owner)
{
	rdma_restrack_add(device, res, type, owner->client,
			  owner->uobject ? owner->uobject->context->pid : 0);
	if (owner->uobject)
		memcpy(res->comm, owner->uobject->context->res.comm, sizeof(res->comm));
}

/* xrcd.c */
/** core_target_created() - @qp is an XRC target, and its uobject its first handle */
void core_target_created(struct ib_qp *qp);
/** core_close_target() - one of a target's handles goes, and with the last one the target. 0;
 *  -EBUSY */
int core_close_target(struct ib_uobject *uobject);

/**
 * core_has_room() - may @device have one more object of @type, by the limit that it reports?
 * @uobject: a program's; NULL: it is for the midlayer or a module
 *
 * Programs may have as many as is reported. What the midlayer and modules have does not
 * count for them, as an adapter keeps some for its driver, but has the same limit.
 * Return: 0; -ENOMEM
 */
int core_has_room(const struct ib_device *device, enum rdma_restrack_type type,
		  const struct ib_uobject *uobject);

/** core_heir() - what is made in a PD belongs to the PD's owner */
static inline struct core_owner core_heir(const struct ib_pd *pd, struct ib_uobject *uobject)
{
	return (struct core_owner){.client = uobject ? NULL : pd->res.comm, .uobject = uobject};
}

/* cache.c */
int core_cache_create(struct ib_device *device);
void core_cache_destroy(struct ib_device *device);
/** core_cache_update() - read again what @event may have changed */
void core_cache_update(struct ib_device *device, const struct ib_event *event);
/** core_port_cache_attr() - the port's attributes as last read; NULL */
const struct ib_port_attr *core_cached_port(struct ib_device *device, u32 port_num);

/* poll.c */
/** core_poll_create() - begin to poll @device, if it is one that is polled. 0; -EINVAL it cannot
 *  be; -ENOMEM */
int core_poll_create(struct ib_device *device);
void core_poll_destroy(struct ib_device *device);

/* event.c */
/** core_events_drop() - forget what is queued: the device goes */
void core_events_drop(struct ib_device *device);
/** core_events_poll() - of a device that is polled: deliver what is queued. Return: was there any? */
bool core_events_poll(struct ib_device *device);
/** core_events_forget() - forget those of @object (QP, CQ, SRQ), which goes */
void core_events_forget(struct ib_device *device, const void *object);

/* ah.c */
/** core_ah_attr_check() - port, GID index, LID kind; on Ethernet it sets attr->dlid
 *  Return: 0; -EINVAL; -EHOSTUNREACH no station of the Ethernet fabric has the DGID */
int core_ah_attr_check(struct ib_device *device, struct rdma_ah_attr *attr);

/* flow.c */
/** core_rss_drop() - @qp goes: its work queues are no longer used by it */
void core_rss_drop(struct ib_qp *qp);

/* verbs.c, qp.c, ah.c: makers for either kind of owner */
struct ib_pd *core_alloc_pd(struct ib_device *device, const struct core_owner *owner);
struct ib_ah *core_create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
			     struct ib_uobject *uobject);
struct ib_cq *core_create_cq(struct ib_device *device, const struct ib_cq_init_attr *attr,
			     const struct core_owner *owner);
struct ib_srq *core_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr,
			       struct ib_uobject *uobject);
struct ib_qp *core_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
			     const struct core_owner *owner);
/** core_access_ok() - are @access, of enum ib_access_flags, rights that go together? */
bool core_access_ok(int access);
/** core_has_pages() - has @device regions that are made of pages? */
bool core_has_pages(const struct ib_device *device);
/** core_mr_check() - a program's region: known rights that fit together, nothing wraps.
 *  0; -EINVAL; -EOPNOTSUPP on-demand paging where the device has none */
int core_mr_check(const struct ib_device *device, u64 start, u64 length, u64 iova, int access);
/** core_track_mr() - @mr, just made in @pd, or an error, which is returned */
struct ib_mr *core_track_mr(struct ib_pd *pd, struct ib_mr *mr, struct ib_uobject *uobject);
/** core_detach_all() - leave every group: the QP's owner died */
void core_detach_all(struct ib_qp *qp);

#endif
