/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of the core share. */
#ifndef SOFTIB_CORE_PRIVATE_H
#define SOFTIB_CORE_PRIVATE_H

#include <string.h>

#include "core/uobject.h"
#include "rdma/ib_sa.h"
#include "rdma/ib_verbs.h"
#include "runtime/rt.h"

#define CORE_NAME_BUCKETS 4096
#define RCM_PORT_BUCKETS  65536 /* one for each port number, since the search for a free one tries many */

/**
 * struct core_fabric - what the core knows of one fabric. It is found through the fabric's loop,
 * and exists while a device or a client is registered there, or an id of the RDMA CM is left.
 */
struct core_fabric {
	struct rt *rt;
	struct list_head devices;			   /* oldest first */
	struct list_head clients;			   /* in the order of registration */
	struct list_head by_node_name[CORE_NAME_BUCKETS];  /* struct ib_device.name_node */
	struct ib_sa_client sa_client;			   /* for multicast and notices */
	struct ib_sa_client cm_sa_client;		   /* for the CM */
	/* --- the RDMA CM --- */
	struct ib_sa_client rcm_sa_client;
	const struct rdma_hosts *hosts;
	struct rcm_ats *rcm_ats;       /* NULL: rdma_cm_publish() */
	struct list_head rcm_ids;      /* oldest first */
	struct list_head rcm_services; /* struct rcm_service */
	struct list_head rcm_bound[RCM_PORT_BUCKETS]; /* ids by the port that they are bound to; a bucket that
						       * was never used is zero */
};

static inline struct core_fabric *core_fabric_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_CORE);
}
/** core_fabric_put() - free it if it is no longer in use */
void core_fabric_put(struct core_fabric *fabric);

/** struct core_owner - the owner of a new object: a kernel client (its name), or
 *  a program (its uobject, and client is NULL) */
struct core_owner {
	const char *client;
	struct ib_uobject *uobject;
};

static inline struct ib_udata *core_udata(const struct core_owner *owner, struct ib_udata *udata)
{
	if (!owner->uobject)
		return NULL;
	*udata = (struct ib_udata){owner->uobject->context, owner->uobject->qpn};
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
/** core_target_created() - register the new XRC target @qp, whose first handle is its uobject */
void core_target_created(struct ib_qp *qp);
/** core_close_target() - remove a handle of a target, and destroy the target with its last handle
 *  Return: 0; -EBUSY */
int core_close_target(struct ib_uobject *uobject);

/**
 * core_has_room() - check the limit that @device reports for objects of @type
 * @uobject: the new object of a program; NULL: it is one of the midlayer or of a module
 *
 * Programs together may have as many objects as the limit says. Objects of the midlayer and of
 * modules are counted separately, as an adapter reserves some for its driver, with the same limit.
 * Return: 0: there is room for one more; -ENOMEM
 */
int core_has_room(const struct ib_device *device, enum rdma_restrack_type type,
		  const struct ib_uobject *uobject);

/** core_heir() - Return: the owner of a new object in @pd: the program of @uobject, or the client
 *  that owns
 *  @pd */
static inline struct core_owner core_heir(const struct ib_pd *pd, struct ib_uobject *uobject)
{
	return (struct core_owner){.client = uobject ? NULL : pd->res.comm, .uobject = uobject};
}

/* cache.c */
int core_cache_create(struct ib_device *device);
void core_cache_destroy(struct ib_device *device);
/** core_cache_update() - read again what @event may have changed */
void core_cache_update(struct ib_device *device, const struct ib_event *event);
/** core_cached_port() - Return: the port's attributes as they were read last; NULL: there is no such
 *  port */
const struct ib_port_attr *core_cached_port(struct ib_device *device, u32 port_num);

/* poll.c */
/** core_poll_create() - begin to poll @device if it raises no interrupts
 *  Return: 0; -EINVAL: it cannot be polled; -ENOMEM */
int core_poll_create(struct ib_device *device);
void core_poll_destroy(struct ib_device *device);

/* event.c */
/** core_events_drop() - discard the queued events of @device, which is being removed */
void core_events_drop(struct ib_device *device);
/** core_events_poll() - deliver the queued events of a polled device. Return: true if there were any */
bool core_events_poll(struct ib_device *device);
/** core_events_forget() - discard the queued events of @object (QP, CQ, SRQ), which is being
 *  destroyed */
void core_events_forget(struct ib_device *device, const void *object);

/* ah.c */
/** core_ah_attr_check() - check the port, the GID index and the kind of LID; on Ethernet, set
 *  attr->dlid
 *  Return: 0; -EINVAL; -EHOSTUNREACH no station of the Ethernet fabric has the DGID */
int core_ah_attr_check(struct ib_device *device, struct rdma_ah_attr *attr);

/* flow.c */
/** core_rss_drop() - release the work queues of @qp, which is being destroyed */
void core_rss_drop(struct ib_qp *qp);

/* verbs.c, qp.c, ah.c: functions that create objects for either kind of owner */
struct ib_pd *core_alloc_pd(struct ib_device *device, const struct core_owner *owner);
struct ib_ah *core_create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
			     struct ib_uobject *uobject);
struct ib_cq *core_create_cq(struct ib_device *device, const struct ib_cq_init_attr *attr,
			     const struct core_owner *owner);
struct ib_srq *core_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr,
			       struct ib_uobject *uobject);
struct ib_qp *core_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
			     const struct core_owner *owner);
/** core_access_ok() - are the rights @access (enum ib_access_flags) a valid combination? */
bool core_access_ok(int access);
/** core_has_pages() - does @device support regions that consist of a list of pages? */
bool core_has_pages(const struct ib_device *device);
/** core_mr_check() - check the parameters of a program's region: the rights are known and valid
 *  together, and no address range wraps around
 *  Return: 0; -EINVAL; -EOPNOTSUPP: the device does not support on-demand paging */
int core_mr_check(const struct ib_device *device, u64 start, u64 length, u64 iova, int access);
/** core_track_mr() - enter the new region @mr of @pd in the tables. @mr may be an ERR_PTR(). Return:
 *  @mr */
struct ib_mr *core_track_mr(struct ib_pd *pd, struct ib_mr *mr, struct ib_uobject *uobject);
/** core_detach_all() - detach @qp from all multicast groups, because its owner has died */
void core_detach_all(struct ib_qp *qp);

#endif
