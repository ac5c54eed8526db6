/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RDMA CM: connections by IP address and port, as sockets have them (IBA annex A11).
 * An id belongs to a node. Addresses lead to ports of adapters by the fabric's host table
 * (struct rdma_hosts); the subnet administrator gives the path; the CM (ib_cm.h) makes
 * the connection, whose private data begins with both IP addresses. An address of family AF_IB
 * (rdma/ib.h) is a GID and a service id instead: no host table has to know it, and all of the
 * private data is the client's.
 *
 * News come to the id's handler, from the loop. A handler may call anything here; one
 * that returns other than 0 destroys its id, which it must not do itself.
 *
 * Names and rules are those of the Linux InfiniBand core, but that an id names its node.
 * No file includes both this header and librdmacm's.
 */
#ifndef RDMA_RDMA_CM_H
#define RDMA_RDMA_CM_H

#include <sys/socket.h>

#include <rdma/rdma_user_cm.h>

#include "rdma/ib_cm.h"

#pragma GCC visibility push(default)

enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED,
	RDMA_CM_EVENT_ADDR_ERROR,
	RDMA_CM_EVENT_ROUTE_RESOLVED,
	RDMA_CM_EVENT_ROUTE_ERROR,
	RDMA_CM_EVENT_CONNECT_REQUEST,
	RDMA_CM_EVENT_CONNECT_RESPONSE,
	RDMA_CM_EVENT_CONNECT_ERROR,
	RDMA_CM_EVENT_UNREACHABLE,
	RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED,
	RDMA_CM_EVENT_DISCONNECTED,
	RDMA_CM_EVENT_DEVICE_REMOVAL,
	RDMA_CM_EVENT_MULTICAST_JOIN,
	RDMA_CM_EVENT_MULTICAST_ERROR,
	RDMA_CM_EVENT_ADDR_CHANGE,
	RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

/** bytes of the client's private data beside the IP addresses */
#define RDMA_CM_IP_HEADER_BYTES 36
#define RDMA_CM_REQ_PRIVATE_DATA_SIZE                                                    \
	(IB_CM_REQ_PRIVATE_DATA_SIZE - RDMA_CM_IP_HEADER_BYTES)
#define RDMA_CM_SIDR_PRIVATE_DATA_SIZE                                                   \
	(IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE - RDMA_CM_IP_HEADER_BYTES)
#define RDMA_UDP_QKEY 0x01234567

/** SDP's port space (IBA v1 annex A4), of reliable connections. The client's private data is
 *  all of a request's, beginning with a Hello, whose addresses the core reads */
#define RDMA_PS_SDP ((enum rdma_ucm_port_space)0x0001)

struct rdma_cm_id;

/** struct rdma_conn_param - of a connected id. In an event: what the peer said, with
 *  responder_resources and initiator_depth seen from here */
struct rdma_conn_param {
	const void *private_data;
	u8 private_data_len;
	u8 responder_resources, initiator_depth;
	u8 flow_control;
	u8 retry_count, rnr_retry_count;
	u8 srq;
	u32 qp_num, qkey;
};

/** struct rdma_ud_param - of a datagram id: where the service's QP is. Of MULTICAST_JOIN
 *  and MULTICAST_ERROR: the group, and private_data is the context of the join */
struct rdma_ud_param {
	const void *private_data;
	u8 private_data_len;
	struct rdma_ah_attr ah_attr;
	u32 qp_num, qkey;
};

/** struct rdma_cm_event - @status: 0; -errno; of REJECTED enum ib_cm_rej_reason, or of a
 *  datagram id enum ib_cm_sidr_status */
struct rdma_cm_event {
	enum rdma_cm_event_type event;
	int status;
	struct ib_cm_ece ece; /* the peer's, in a request and in a response */
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
};

/** rdma_cm_event_handler - of a CONNECT_REQUEST @id is new and has the listener's
 * context. Return: 0; other: destroy @id */
typedef int (*rdma_cm_event_handler)(struct rdma_cm_id *id, struct rdma_cm_event *event);

struct rdma_addr {
	struct sockaddr_storage src_addr, dst_addr; /* AF_UNSPEC: not known */
};

struct rdma_route {
	struct rdma_addr addr;
	struct sa_path_rec *path_rec; /* NULL: not resolved */
	int num_paths;
	union ib_gid sgid, dgid;
};

/** struct rdma_cm_id - the client reads it; @context is the client's to change */
struct rdma_cm_id {
	struct ib_device *device; /* NULL: not bound to one */
	void *context;
	rdma_cm_event_handler event_handler;
	struct rdma_route route;
	enum rdma_ucm_port_space ps;
	enum ib_qp_type qp_type;
	u32 port_num;
	struct ib_qp *qp; /* by rdma_create_qp(); NULL: the client has its own */
};

/** struct rdma_hosts - the fabric's host table: IP addresses of ports */
struct rdma_hosts {
	void *ctx;
	/** find() - whose address is @addr? 0; -ENOENT */
	int (*find)(void *ctx, const struct sockaddr *addr, struct ib_device **device,
		    u32 *port_num);
	/** address() - of a port, of @family AF_INET or AF_INET6. 0; -ENOENT */
	int (*address)(void *ctx, struct ib_device *device, u32 port_num,
		       sa_family_t family, struct sockaddr_storage *addr);
	/** toward() - the port of @node that is in the network of @dst, another's address, as a
	 *  routing table says, and its address @src there. NULL: each node has one port.
	 *  0; -ENOENT no such address or port */
	int (*toward)(void *ctx, const char *node, const struct sockaddr *dst,
		      struct ib_device **device, u32 *port_num, struct sockaddr_storage *src);
	/** outside() - is @addr, which find() does not know, that of a host outside of the fabric, which the port
	 *  reaches? Its GID is then the address itself or contains it. NULL: there are no such hosts. 0; -EAGAIN it was asked
	 *  for, so call again; -ENOENT */
	int (*outside)(void *ctx, struct ib_device *device, u32 port_num, const struct sockaddr *addr);
};

/** rdma_create_id() - of node @node in the fabric whose loop is @rt
 *  @ps: RDMA_PS_TCP (RC), RDMA_PS_SDP (RC), RDMA_PS_UDP (UD), RDMA_PS_IPOIB (UD, with
 *  the Q_Key and the groups of IPoIB) or RDMA_PS_IB (any). Return: the id; ERR_PTR(-EPROTONOSUPPORT
 *  another port space, -ENODEV no host table, -ENOMEM) */
struct rdma_cm_id *rdma_create_id(struct rt *rt, const char *node,
				  rdma_cm_event_handler event_handler, void *context,
				  enum rdma_ucm_port_space ps, enum ib_qp_type qp_type);
/** rdma_destroy_id() - its handler does not run any more; the peer is told */
void rdma_destroy_id(struct rdma_cm_id *id);
/** rdma_id_for_each() - call @fn for every id of the fabric whose loop is @rt
 *  @fn: returns 0 to go on; it must not create or destroy any. Return: 0, or what @fn did */
int rdma_id_for_each(const struct rt *rt, int (*fn)(struct rdma_cm_id *id, void *ctx),
		     void *ctx);

/** rdma_bind_addr() - have an address of the node, or any of them, and a port; port 0:
 * one that is free. An IPv6 address that maps an IPv4 one is that one; a listener on any
 * IPv6 address takes requests for IPv4 addresses, too (rdma_set_afonly()).
 * With an address of AF_IB the id has a GID, a P_Key and a service id. 0; -EINVAL bound
 * already; -EAFNOSUPPORT another family; -EADDRNOTAVAIL not the node's, or of a service id that
 * is not of the id's port space; -EADDRINUSE */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
/** rdma_resolve_addr() - which ports lead from @src_addr (NULL: any) to @dst_addr?
 * ADDR_RESOLVED or ADDR_ERROR follows. 0; -EINVAL the state, or the id is bound to an
 * address of the other family; as rdma_bind_addr() */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
		      const struct sockaddr *dst_addr, unsigned long timeout_ms);
/** rdma_resolve_route() - the path: ROUTE_RESOLVED or ROUTE_ERROR follows. 0; -EINVAL;
 * -errno */
int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms);
/** rdma_listen() - take requests. @backlog: how many may wait for rdma_accept(); 0: no
 * bound */
int rdma_listen(struct rdma_cm_id *id, int backlog);
/** rdma_set_ib_path() - in the place of rdma_resolve_route(): the client knows the path. No event
 *  follows. @path_rec: copied. Context: any. Return: 0; -EINVAL the state: no address is resolved,
 *  or a route is */
int rdma_set_ib_path(struct rdma_cm_id *id, const struct sa_path_rec *path_rec);
/** rdma_connect() - ask. CONNECT_RESPONSE (then rdma_accept() with NULL), ESTABLISHED
 * (UD), REJECTED or UNREACHABLE follows. 0; -EINVAL the state, too much private data;
 * -errno */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
/** rdma_connect_locked() - as rdma_connect(), from the id's handler or between rdma_lock_handler()
 *  and rdma_unlock_handler() */
#define rdma_connect_locked rdma_connect
/**
 * rdma_lock_handler() - the id's handler does not run until rdma_unlock_handler()
 *
 * Handlers run from the loop, which goes on only when a thread of a module sleeps, so whoever does
 * not sleep in between has what this asks for, and this does nothing. Linux lets the caller sleep.
 */
static inline void rdma_lock_handler(struct rdma_cm_id *id)
{
}

/** rdma_unlock_handler() - end what rdma_lock_handler() began */
static inline void rdma_unlock_handler(struct rdma_cm_id *id)
{
}
/** rdma_connect_ece() - and name our options for enhanced connection establishment (ECE)
 *  @ece: copied */
int rdma_connect_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		     const struct ib_cm_ece *ece);
/** rdma_accept() - @conn_param NULL: the QP that asked is ready */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
/** rdma_accept_ece() - and name those of the peer's options that we accept. Of a datagram
 *  service @ece is ignored */
int rdma_accept_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		    const struct ib_cm_ece *ece);
int rdma_reject(struct rdma_cm_id *id, const void *private_data, u8 private_data_len,
		u8 reason);
/** rdma_notify() - @event: IB_EVENT_COMM_EST. 0; -EINVAL */
int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event);
int rdma_disconnect(struct rdma_cm_id *id);
/**
 * rdma_join_multicast() - be a member of the multicast group that an address means
 *
 * @id: of datagrams, and bound to a port: by rdma_bind_addr(), or by rdma_resolve_addr()
 *	to this address
 * @addr: an IPv4 or IPv6 multicast address; an IPv6 one that begins with ff1X:a01b, and one of
 *	AF_IB, is the MGID; any address: a group that the SA makes up
 * @join_state: bits, 1 << enum ib_sa_mc_join_states
 * @context: what the events say in param.ud.private_data
 *
 * MULTICAST_JOIN or MULTICAST_ERROR follows. MULTICAST_ERROR with status -ENETRESET may
 * follow later: the membership is lost, and the client leaves and joins again. The
 * members of a port are counted: its last leaves the group. Not to be called with an
 * address that @id has joined and not left: -EADDRINUSE.
 * Return: 0; -EINVAL the id or the address; -EAFNOSUPPORT; -ENOMEM
 */
int rdma_join_multicast(struct rdma_cm_id *id, const struct sockaddr *addr, u8 join_state,
			void *context);
/** rdma_leave_multicast() - end what rdma_join_multicast() began. No event of it follows.
 *  Not from within an event of this membership */
void rdma_leave_multicast(struct rdma_cm_id *id, const struct sockaddr *addr);
/** rdma_set_owner() - @id belongs to the process @pid, whose name is @comm, and so do the ids of
 *  requests to it. Without this call they belong to a client in softibd. Call it before @id
 *  listens or connects. @comm is copied */
void rdma_set_owner(struct rdma_cm_id *id, pid_t pid, const char *comm);
/**
 * rdma_create_qp() - create the queue pair of an id, which the RDMA CM then moves along
 *
 * @id: bound to an adapter, and without a pair
 * @pd: of that adapter; NULL with IB_QPT_XRC_TGT, whose domain @qp_init_attr has
 * @qp_init_attr: its qp_type is the id's; the core writes the capacities granted
 *
 * The pair is in INIT afterwards, one of datagrams in RTS. rdma_accept() and the peer's answer
 * move it to RTS, and the asking end hears ESTABLISHED in place of CONNECT_RESPONSE and must not
 * call rdma_accept(). rdma_disconnect() and a rejection move it to ERR. The numbers of the
 * pair in struct rdma_conn_param are ignored. The client destroys it, before the id.
 *
 * Context: may sleep. Return: 0; -EINVAL the id has no adapter, another one or a pair already;
 * -errno of ib_create_qp() and ib_modify_qp()
 */
#define rdma_create_qp(id, pd, qp_init_attr)                                             \
	rdma_create_qp_(id, pd, qp_init_attr, SOFTIB_CLIENT_NAME)
int rdma_create_qp_(struct rdma_cm_id *id, struct ib_pd *pd,
		    struct ib_qp_init_attr *qp_init_attr, const char *client);
/** rdma_destroy_qp() - destroy the pair that rdma_create_qp() made. Context: may sleep */
void rdma_destroy_qp(struct rdma_cm_id *id);
/** rdma_init_qp_attr() - as ib_cm_init_qp_attr() */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr,
		      int *qp_attr_mask);
/** rdma_set_reuseaddr() - share a port that is bound, but not one that is listened on */
int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse);
/** rdma_set_afonly() - whether a listener on any IPv6 address refuses requests for IPv4
 *  addresses. Return: 0; -EINVAL the id is bound already */
int rdma_set_afonly(struct rdma_cm_id *id, int afonly);
/** rdma_set_ack_timeout() - the ACK timeout of the id's queue pair, 4.096 us << @timeout_enc
 *  or none with 0, in place of the one that follows from the path. Effective when the pair
 *  goes to RTS. Return: 0; -EINVAL the id is of no reliable connection */
int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout_enc);

/**
 * rdma_set_min_rnr_timer() - how long the peer waits after an RNR NAK of the id's queue pair
 * @min_rnr_timer: the encoded time of IBA v1 table 45, 0 to 31; 0, the longest, is what follows
 *	without this call
 *
 * Effective when the pair goes to RTR. Context: any. Return: 0; -EINVAL more than 31, or the id
 * is of no responder of a reliable connection
 */
int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer);
/** rdma_set_service_type() - the QoS class that the query of rdma_resolve_route() names, if the
 *  destination is an IPv4 address, as in Linux. Which path it leads to is for the subnet
 *  administrator to say. Context: any */
void rdma_set_service_type(struct rdma_cm_id *id, int tos);
/** rdma_read_gids() - the GIDs of both ends. @sgid, @dgid: out; NULL: not wanted; 0: not known
 *  yet. Context: any */
void rdma_read_gids(const struct rdma_cm_id *id, union ib_gid *sgid, union ib_gid *dgid);
/** rdma_get_service_id() - the service id that @addr means in the port space of @id. Context: any.
 *  Return: 0: @addr is not of AF_INET, AF_INET6 or AF_IB. Spec: IBA annex A11.3 */
__be64 rdma_get_service_id(const struct rdma_cm_id *id, const struct sockaddr *addr);

/** rdma_event_msg() - "route resolved" and so on, for people; never NULL. Context: any */
const char *rdma_event_msg(enum rdma_cm_event_type event);
/** rdma_reject_msg() - the status of REJECTED in words; never NULL. Context: any */
const char *rdma_reject_msg(const struct rdma_cm_id *id, int reason);
/** rdma_is_consumer_reject() - whether the status of REJECTED says that the peer's client refused,
 *  not the peer's CM. Context: any */
bool rdma_is_consumer_reject(const struct rdma_cm_id *id, int reason);
/** rdma_consumer_reject_data() - the private data of the peer's client that refused
 *  @data_len: out: bytes, all that the message has room for; 0 without data
 *  Context: any. Return: data, valid as long as @event; NULL: no client refused */
const void *rdma_consumer_reject_data(const struct rdma_cm_id *id,
				      const struct rdma_cm_event *event, u8 *data_len);

/** rdma_addr_size() - the bytes of an address of AF_INET, AF_INET6 or AF_IB. Context: any.
 *  Return: 0: another family */
int rdma_addr_size(const struct sockaddr *addr);

/** rdma_port_addr() - the IP address of a port, of @family AF_INET or AF_INET6. In Linux it is
 *  that of the port's network interface. Context: any. Return: 0; -ENOENT it has none */
int rdma_port_addr(struct ib_device *device, u32 port_num, sa_family_t family,
		   struct sockaddr_storage *addr);

/* --- the core's own --- */

/** rdma_cm_init() - start the RDMA CM: behind ib_cm_init(). 0; -errno */
int rdma_cm_init(struct rt *rt);
void rdma_cm_cleanup(struct rt *rt);
/** rdma_cm_set_hosts() - the host table of the fabric whose loop is @rt; NULL: it goes.
 * The table is the caller's. Context: behind rdma_cm_init(). 0; -ENODEV no core there */
int rdma_cm_set_hosts(struct rt *rt, const struct rdma_hosts *hosts);

/**
 * rdma_cm_publish() - let the subnet know the IP addresses of this fabric's ports of InfiniBand, and ask the subnet for those that
 * the host table does not know: the address translation service of the DAT collaborative, by service records of the
 * subnet administrator. Of use where the subnet has ports of other fabrics. @on: false: no longer
 * Return: 0; -ENODEV no device is registered; -ENOMEM
 */
int rdma_cm_publish(struct rt *rt, bool on);

#pragma GCC visibility pop

#endif
