/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RDMA CM's inside. Who does what:
 *
 *  rdma_cm.c		ids, states, options, devices that come and go
 *  rdma_cm_addr.c	IP addresses, ports, resolving
 *  rdma_cm_header.c	the IP header of private data
 *  rdma_cm_ib.c		addresses of family AF_IB: a GID and a service id
 *  rdma_cm_listen.c	listeners, and which of them a request is for
 *  rdma_cm_mcast.c	multicast groups by IP address
 *  rdma_cm_connect.c	requests, answers, and what the CM tells
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
	RCM_CONNECT, /* asked, was asked, or connected */
	RCM_DISCONNECT,
	RCM_LISTEN,
	RCM_GONE, /* the device went */
};

struct rcm_service;

/** struct rcm_tracked - @id in the resource tracking of a device: of the one that it is bound to, or
 *  of each on which a listener that is bound to none listens */
struct rcm_tracked {
	struct rdma_restrack_entry res;
	const struct rcm_id *id;
};

/** struct rcm_id - @cm: of a connection or a request; a listener has @listens instead */
struct rcm_id {
	struct rdma_cm_id id;
	struct list_head node; /* of all ids */
	struct list_head bound_node; /* of those that are bound, by service id; or alone */
	struct list_head gone_node;  /* of those that have to hear that the device goes; or alone */
	struct rt *rt;
	char node_name[IB_DEVICE_NAME_BYTES];
	enum rcm_state state;
	struct rcm_tracked tracked; /* while it is bound to a device */
	u32 qp_num; /* of its connection or datagram service; 0: not known yet */
	struct ib_cm_id *cm;
	struct list_head listens; /* struct rcm_listen */
	struct list_head mcasts;  /* struct rcm_mcast */
	struct rcm_id *listener;  /* of a request that waits for its answer */
	unsigned int waiting, backlog;
	struct rt_work resolved;
	struct ib_sa_query *query;
	int query_id; /* -1: none */
	struct sa_path_rec path;
	u32 seq_num, qkey;
	struct ib_cm_ece ece; /* that this end names */
	u16 pkey;
	bool reuse, afonly;
	bool has_ack_timeout;
	u8 ack_timeout_enc;
	u8 min_rnr_timer_enc; /* IBA v1 table 45; 0: what the CM names, too */
	u8 service_type;      /* 0: none */
	pid_t pid; /* of the process that it belongs to; 0: of none */
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

/** rcm_trace_call() - the owner of @id calls the function @call */
static inline void rcm_trace_call(const struct rcm_id *id, const char *call)
{
	trace_rdma_cm_call((struct rt_trace_at){.rt = id->rt, .node = id->node_name}, id->seq_num,
			   call);
}

/* --- rdma_cm.c --- */

/** rcm_ids() - of the fabric that @id is of, oldest first */
static inline struct list_head *rcm_ids(const struct rcm_id *id)
{
	return &core_fabric_of(id->rt)->rcm_ids;
}
struct rcm_id *rcm_alloc(struct rt *rt, const char *node, rdma_cm_event_handler handler,
			 void *context, enum rdma_ucm_port_space ps,
			 enum ib_qp_type qp_type);
/** rcm_deliver() - Return: false: the handler had the id destroyed */
bool rcm_deliver(struct rcm_id *id, struct rdma_cm_event *event);
const struct rdma_hosts *rcm_hosts(const struct rt *rt);
/** rcm_track() - list @id among the resources of @device, until rdma_restrack_del() */
void rcm_track(struct rcm_tracked *tracked, const struct rcm_id *id, struct ib_device *device);
/** rcm_attach() - bind @id to a port */
void rcm_attach(struct rcm_id *id, struct ib_device *device, u32 port_num);
/** rcm_own() - @cm belongs to the process that @id belongs to, if any */
void rcm_own(const struct rcm_id *id, struct ib_cm_id *cm);
/** rcm_leave_listener() - @id no longer waits for its answer: it was answered, or ends */
void rcm_leave_listener(struct rcm_id *id);
/** rcm_drop_cm() - no longer ask, listen or be connected */
void rcm_drop_cm(struct rcm_id *id);

/* --- rdma_cm_addr.c --- */

void rcm_resolved(struct rt_work *work);
/** rcm_take_addr() - an address of IPv4, IPv6 or AF_IB; one that maps an IPv4 address becomes
 *  it. 0; -EAFNOSUPPORT */
int rcm_take_addr(const struct sockaddr *addr, struct sockaddr_storage *out);
/** rcm_ip() - the IP address alone, of @bytes; its port follows from rcm_port() */
u8 *rcm_ip(const struct sockaddr_storage *addr, size_t *bytes);
bool rcm_addr_is_any(const struct sockaddr_storage *addr);
/** rcm_addr_is_anywhere() - any address, or the loopback address */
bool rcm_addr_is_anywhere(const struct sockaddr_storage *addr);
/** rcm_set_port() - in host byte order */
void rcm_set_port(struct sockaddr_storage *addr, u16 port);
/** rcm_service_id() - that an id of port space @ps means by @addr */
__be64 rcm_service_id(enum rdma_ucm_port_space ps, const struct sockaddr_storage *addr);
u16 rcm_port(const struct sockaddr_storage *addr);
/** rcm_is_taken() - does another id of the node have the port of @addr for an address that
 *  @addr means, too, and not agree to share it with @id? */
bool rcm_is_taken(const struct rcm_id *id, const struct sockaddr_storage *addr);
/** rcm_listens_for() - is @addr one of those that the listener @id is bound to? */
bool rcm_listens_for(const struct rcm_id *id, const struct sockaddr_storage *addr);

/* --- rdma_cm_header.c --- */

/** rcm_header_bytes() - of the IP header in front of the client's private data. In SDP's
 *  port space the client writes the header itself, as part of its Hello, and with addresses of
 *  AF_IB there is none: 0 */
size_t rcm_header_bytes(const struct rcm_id *id);
/** rcm_put_header() - the IP header of @id's private data */
void rcm_put_header(const struct rcm_id *id, u8 *private_data);
/** rcm_get_header() - the IP addresses of a request of port space @ps, seen from here.
 *  0; -EINVAL there are none */
int rcm_get_header(enum rdma_ucm_port_space ps, const u8 *private_data, u16 local_port,
		   struct rdma_addr *addr);

/* --- rdma_cm_ib.c --- */

/** rcm_ib_take_port_space() - fill in what the service id of @addr leaves open, by @id's port
 *  space. 0; -EADDRNOTAVAIL it names another port space */
int rcm_ib_take_port_space(const struct rcm_id *id, struct sockaddr_storage *addr);
/** rcm_find_gid() - the port of @id's node that has @gid. 0; -EADDRNOTAVAIL */
int rcm_find_gid(const struct rcm_id *id, const union ib_gid *gid, struct ib_device **device,
		 u32 *port_num);
/** rcm_ib_bind() - to the port of the node that has the GID and the P_Key. 0; -EADDRNOTAVAIL */
int rcm_ib_bind(struct rcm_id *id, const struct sockaddr_storage *addr);
/** rcm_ib_find_way() - choose the source of @id, and take the destination's GID.
 *  0; -ENETUNREACH no active port is of its subnet and partition */
int rcm_ib_find_way(struct rcm_id *id);
/** rcm_ib_addr_of_path() - the addresses of a request for @service_id, as its path says them */
void rcm_ib_addr_of_path(const struct sa_path_rec *path, __be64 service_id,
			 struct rdma_addr *addr);

/* --- rdma_cm_listen.c --- */

/** rcm_drop_listens() - no longer listen. @only: at this device; NULL: at any */
void rcm_drop_listens(struct rcm_id *id, const struct ib_device *only);
/** rcm_find_listener() - Return: whom a request for @addr is for; NULL: for nobody */
struct rcm_id *rcm_find_listener(const struct rcm_service *service,
				 const struct sockaddr_storage *addr);
/** rcm_find_ib_listener() - Return: one who listens by any address of AF_IB; NULL: nobody */
struct rcm_id *rcm_find_ib_listener(const struct rcm_service *service);
/** rcm_first_listener() - one of them: all have the same service id */
const struct rcm_id *rcm_first_listener(const struct rcm_service *service);
u16 rcm_service_port(const struct rcm_service *service);
enum rdma_ucm_port_space rcm_service_port_space(const struct rcm_service *service);
/** rcm_listen_at_new_device() - those who listen on all addresses of its node. 0; -errno */
int rcm_listen_at_new_device(struct ib_device *device);

/* --- rdma_cm_mcast.c --- */

bool rcm_addr_is_multicast(const struct sockaddr_storage *addr);
/** rcm_addr_mgid() - of the group that @addr means to @id; zero for any address, whose
 *  group the SA makes up. 0; -EINVAL it is not a multicast address */
int rcm_addr_mgid(const struct rcm_id *id, const struct sockaddr_storage *addr,
		  union ib_gid *mgid);
/** rcm_take_qkey() - of the id's queue pair and groups. In IPoIB's port space it is that of the
 *  partition's broadcast group, which the port's interface has joined. 0; -errno there is none */
int rcm_take_qkey(struct rcm_id *id);
/** rcm_drop_mcasts() - leave all groups */
void rcm_drop_mcasts(struct rcm_id *id);

/* --- rdma_cm_connect.c --- */

/** rcm_on_listener() - handler of a service's ib_cm_id: context is the rcm_service */
int rcm_on_listener(struct ib_cm_id *cm, const struct ib_cm_event *event);

/* --- rdma_cm_qp.c --- */

/** rcm_qp_num() - of the id's own pair, or that which the client names */
u32 rcm_qp_num(struct rcm_id *id, const struct rdma_conn_param *param);
bool rcm_qp_has_srq(const struct rcm_id *id, const struct rdma_conn_param *param);
/** rcm_qp_connect() - the id's own pair, if it has one, goes to RTS. @param: what the client
 *  accepts; NULL: what the CM agreed. 0; -errno */
int rcm_qp_connect(struct rcm_id *id, const struct rdma_conn_param *param);
/** rcm_qp_fail() - the id's own pair, if it has one, goes to ERR */
void rcm_qp_fail(struct rcm_id *id);
/** rcm_qp_follow() - the id's own pair does what @event means to it. With one, the peer's
 *  answer becomes ESTABLISHED, or CONNECT_ERROR */
void rcm_qp_follow(struct rcm_id *id, struct rdma_cm_event *event);

#endif
