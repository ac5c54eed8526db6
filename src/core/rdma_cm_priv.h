/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal declarations of the RDMA CM. Its files:
 *
 *  rdma_cm.c		ids, states, options, new and removed devices
 *  rdma_cm_addr.c	IP addresses, ports, resolving
 *  rdma_cm_ats.c	IP addresses of other fabrics of the subnet, by service records
 *  rdma_cm_header.c	the IP header of private data
 *  rdma_cm_ib.c		addresses of family AF_IB: a GID and a service id
 *  rdma_cm_listen.c	listeners, and the choice of the listener for a request
 *  rdma_cm_mcast.c	multicast groups by IP address
 *  rdma_cm_connect.c	requests, answers, and the events of the CM
 *  rdma_cm_qp.c		queue pairs
 */
#ifndef SOFTIB_CORE_RDMA_CM_PRIV_H
#define SOFTIB_CORE_RDMA_CM_PRIV_H

#include "core/private.h"
#include "core/trace.h"
#include "rdma/rdma_cm.h"

enum rcm_state {
	RCM_IDLE,
	RCM_BOUND,
	RCM_ADDR_QUERY,
	RCM_ADDR_RESOLVED,
	RCM_ROUTE_QUERY,
	RCM_ROUTE_RESOLVED,
	RCM_CONNECT, /* has sent a request, has received one, or is connected */
	RCM_DISCONNECT,
	RCM_LISTEN,
	RCM_GONE, /* the device was removed */
};

struct rcm_service;

/** struct rcm_tracked - the entry of @id in the resource tracking of the device that it is bound to.
 *  A listener that is bound to no device has an entry for each device on which it listens */
struct rcm_tracked {
	struct rdma_restrack_entry res;
	const struct rcm_id *id;
};

/** struct rcm_id - an id. @cm: the CM's id of its connection or request; a listener has @listens
 *  instead */
struct rcm_id {
	struct rdma_cm_id id;
	struct list_head node; /* in core_fabric.rcm_ids */
	struct list_head bound_node; /* in core_fabric.rcm_bound, if the id is bound */
	struct list_head gone_node;  /* in the list of ids that get DEVICE_REMOVAL, while it is worked off */
	struct rt *rt;
	char node_name[IB_DEVICE_NAME_BYTES];
	enum rcm_state state;
	struct rcm_tracked tracked; /* used while the id is bound to a device */
	u32 qp_num; /* QPN of its connection or datagram service; 0: not known yet */
	struct ib_cm_id *cm;
	struct list_head listens; /* struct rcm_listen */
	struct list_head mcasts;  /* struct rcm_mcast */
	struct rcm_id *listener;  /* the listener that received this request, until it is answered */
	unsigned int waiting, backlog;
	struct rt_work resolved;
	struct rt_timer asked; /* a host outside of the fabric was asked for, and has not answered */
	mono_t give_up;
	u64 asked_ns; /* how long the timer waits */
	struct ib_sa_query *query;
	int query_id; /* -1: none */
	struct sa_path_rec path;
	u32 seq_num, qkey;
	struct ib_cm_ece ece; /* the options that this end announces */
	u16 pkey;
	bool reuse, afonly;
	bool has_ack_timeout;
	u8 ack_timeout_enc;
	u8 min_rnr_timer_enc; /* IBA v1 table 45; 0: the default, which is also the CM's */
	u8 service_type;      /* 0: none */
	pid_t pid; /* the process that owns the id; 0: a kernel client owns it */
	char comm[RDMA_RESTRACK_COMM_BYTES];
};

static inline struct rcm_id *rcm_of(struct rdma_cm_id *id)
{
	return container_of(id, struct rcm_id, id);
}

static inline bool is_datagram(const struct rcm_id *id)
{
	return id->id.qp_type == IB_QPT_UD;
}

/** rcm_trace_call() - trace that the owner of @id calls the function @call */
static inline void rcm_trace_call(const struct rcm_id *id, const char *call)
{
	trace_rdma_cm_call((struct rt_trace_at){.rt = id->rt, .node = id->node_name}, id->seq_num,
			   call);
}

/* --- rdma_cm.c --- */

/** rcm_ids() - Return: the list of all ids of the fabric of @id, oldest first */
static inline struct list_head *rcm_ids(const struct rcm_id *id)
{
	return &core_fabric_of(id->rt)->rcm_ids;
}
struct rcm_id *rcm_alloc(struct rt *rt, const char *node, rdma_cm_event_handler handler,
			 void *context, enum rdma_ucm_port_space ps,
			 enum ib_qp_type qp_type);
/** rcm_deliver() - call the handler of @id. Return: false: the handler asked to destroy the id, and
 *  it was destroyed */
bool rcm_deliver(struct rcm_id *id, struct rdma_cm_event *event);
const struct rdma_hosts *rcm_hosts(const struct rt *rt);
/** rcm_track() - list @id among the resources of @device, until rdma_restrack_del() */
void rcm_track(struct rcm_tracked *tracked, const struct rcm_id *id, struct ib_device *device);
/** rcm_attach() - bind @id to a port */
void rcm_attach(struct rcm_id *id, struct ib_device *device, u32 port_num);
/** rcm_own() - set the owner of @cm to the process that owns @id, if any */
void rcm_own(const struct rcm_id *id, struct ib_cm_id *cm);
/** rcm_leave_listener() - the request of @id was answered, or ends: remove it from its listener */
void rcm_leave_listener(struct rcm_id *id);
/** rcm_drop_cm() - end the request, the listening or the connection of @id */
void rcm_drop_cm(struct rcm_id *id);

/* --- rdma_cm_addr.c --- */

void rcm_resolved(struct rt_work *work);
/** rcm_asked() - look again, as rcm_resolved() has armed the timer */
void rcm_asked(struct rt_timer *timer);
/** rcm_take_addr() - copy an address of IPv4, IPv6 or AF_IB. An IPv4-mapped IPv6 address becomes the
 *  IPv4 address. Return: 0; -EAFNOSUPPORT */
int rcm_take_addr(const struct sockaddr *addr, struct sockaddr_storage *out);
/** rcm_ip() - Return: the IP address in @addr, without the port; *@bytes is set to its length */
u8 *rcm_ip(const struct sockaddr_storage *addr, size_t *bytes);
bool rcm_addr_is_any(const struct sockaddr_storage *addr);
/** rcm_addr_is_anywhere() - is @addr the wildcard address or the loopback address? */
bool rcm_addr_is_anywhere(const struct sockaddr_storage *addr);
/** rcm_set_port() - set the port. @port: in host byte order */
void rcm_set_port(struct sockaddr_storage *addr, u16 port);
/** rcm_service_id() - Return: the service id of @addr in port space @ps */
__be64 rcm_service_id(enum rdma_ucm_port_space ps, const struct sockaddr_storage *addr);
u16 rcm_port(const struct sockaddr_storage *addr);
/** rcm_is_taken() - does another id of the node have the port of @addr for an address that
 *  @addr means, too, and not agree to share it with @id? */
bool rcm_is_taken(const struct rcm_id *id, const struct sockaddr_storage *addr);
/** rcm_listens_for() - is @addr one of those that the listener @id is bound to? */
bool rcm_listens_for(const struct rcm_id *id, const struct sockaddr_storage *addr);

/* --- rdma_cm_ats.c --- */

/** rcm_ats_ask() - ask the subnet administrator who has the IP address that is @id's destination, until @id gives up
 *  @done: called once with @id as its context, after id->query_id became valid
 *  Return: 0; -ENETUNREACH addresses are not published (rdma_cm_publish()), or nobody can be asked */
int rcm_ats_ask(struct rcm_id *id, void (*done)(int status, struct ib_sa_service_rec *resp, void *context));

/* --- rdma_cm_header.c --- */

/** rcm_header_bytes() - Return: the length of the IP header in front of the client's private data.
 *  It is 0 in SDP's port space, where the client writes the header itself as part of its Hello, and
 *  with addresses of AF_IB, which have no header */
size_t rcm_header_bytes(const struct rcm_id *id);
/** rcm_put_header() - write the IP header of @id's private data */
void rcm_put_header(const struct rcm_id *id, u8 *private_data);
/** rcm_get_header() - read the IP addresses of a request of port space @ps; the receiver becomes the
 *  source
 *  Return: 0; -EINVAL: there are none */
int rcm_get_header(enum rdma_ucm_port_space ps, const u8 *private_data, u16 local_port,
		   struct rdma_addr *addr);

/* --- rdma_cm_ib.c --- */

/** rcm_ib_take_port_space() - complete the service id of @addr by @id's port space
 *  Return: 0; -EADDRNOTAVAIL: it names another port space */
int rcm_ib_take_port_space(const struct rcm_id *id, struct sockaddr_storage *addr);
/** rcm_find_gid() - find the port of @id's node that has @gid. Return: 0; -EADDRNOTAVAIL */
int rcm_find_gid(const struct rcm_id *id, const union ib_gid *gid, struct ib_device **device,
		 u32 *port_num);
/** rcm_ib_bind() - bind @id to the port of the node that has the GID and the P_Key of @addr
 *  Return: 0; -EADDRNOTAVAIL */
int rcm_ib_bind(struct rcm_id *id, const struct sockaddr_storage *addr);
/** rcm_ib_find_way() - choose the source port of @id, and set the destination's GID
 *  Return: 0; -ENETUNREACH: no active port is in its subnet and partition */
int rcm_ib_find_way(struct rcm_id *id);
/** rcm_ib_addr_of_path() - set the addresses of a request for @service_id from its path record */
void rcm_ib_addr_of_path(const struct sa_path_rec *path, __be64 service_id,
			 struct rdma_addr *addr);

/* --- rdma_cm_listen.c --- */

/** rcm_drop_listens() - stop listening. @only: at this device; NULL: at all devices */
void rcm_drop_listens(struct rcm_id *id, const struct ib_device *only);
/** rcm_find_listener() - Return: the listener for requests to @addr; NULL: none */
struct rcm_id *rcm_find_listener(const struct rcm_service *service,
				 const struct sockaddr_storage *addr);
/** rcm_find_ib_listener() - Return: a listener with an address of AF_IB; NULL: none */
struct rcm_id *rcm_find_ib_listener(const struct rcm_service *service);
/** rcm_first_listener() - Return: any listener of @service; all have the same service id */
const struct rcm_id *rcm_first_listener(const struct rcm_service *service);
u16 rcm_service_port(const struct rcm_service *service);
enum rdma_ucm_port_space rcm_service_port_space(const struct rcm_service *service);
/** rcm_listen_at_new_device() - let those ids listen at @device that listen on all addresses of its
 *  node
 *  Return: 0; -errno */
int rcm_listen_at_new_device(struct ib_device *device);

/* --- rdma_cm_mcast.c --- */

bool rcm_addr_is_multicast(const struct sockaddr_storage *addr);
/** rcm_addr_mgid() - set @mgid to the group of @addr in @id's port space; 0 for the wildcard
 *  address, for which the SA chooses an MGID. Return: 0; -EINVAL: it is not a multicast address */
int rcm_addr_mgid(const struct rcm_id *id, const struct sockaddr_storage *addr,
		  union ib_gid *mgid);
/** rcm_take_qkey() - in IPoIB's port space, set the Q_Key of the id's queue pair and groups to that
 *  of the partition's broadcast group, which the port's interface has joined. Return: 0; -errno:
 *  there is none */
int rcm_take_qkey(struct rcm_id *id);
/** rcm_drop_mcasts() - leave all groups */
void rcm_drop_mcasts(struct rcm_id *id);

/* --- rdma_cm_connect.c --- */

/** rcm_on_listener() - the handler of a service's ib_cm_id, whose context is the rcm_service */
int rcm_on_listener(struct ib_cm_id *cm, const struct ib_cm_event *event);

/* --- rdma_cm_qp.c --- */

/** rcm_qp_num() - Return: the number of the id's own queue pair, or else the one in @param */
u32 rcm_qp_num(struct rcm_id *id, const struct rdma_conn_param *param);
bool rcm_qp_has_srq(const struct rcm_id *id, const struct rdma_conn_param *param);
/** rcm_qp_connect() - move the id's own queue pair, if it has one, to RTS
 *  @param: the client's parameters; NULL: use those that the CM negotiated. Return: 0; -errno */
int rcm_qp_connect(struct rcm_id *id, const struct rdma_conn_param *param);
/** rcm_qp_fail() - move the id's own queue pair, if it has one, to ERR */
void rcm_qp_fail(struct rcm_id *id);
/** rcm_qp_follow() - change the state of the id's own queue pair, if it has one, as @event requires.
 *  Then the event of the peer's answer becomes ESTABLISHED, or CONNECT_ERROR if that fails */
void rcm_qp_follow(struct rcm_id *id, struct rdma_cm_event *event);

#endif
