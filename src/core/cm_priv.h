/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The surroundings of the communication manager. src/cm has its state machines. These files
 * provide MADs, timers and memory to it, and the interface of rdma/ib_cm.h to clients:
 *
 *  cm.c	 devices, their MAD agents, communication ids
 *  cm_send.c	 messages that clients send
 *  cm_event.c	 events for the handlers of clients
 *  cm_trace.c	 events of the trace
 *  cm_redirect.c redirection of the class to another QP or port, and what follows it
 *  cm_path.c	 path records as routes and as the paths of messages
 *  cm_qp.c	 attributes for queue pairs, reasons in words
 *
 * The tables and MAD agents of a device are made with its first communication id, so that a
 * device without one costs nothing. A node that never had an id does not answer REQs, like a
 * host without a CM.
 */
#ifndef SOFTIB_CORE_CM_PRIV_H
#define SOFTIB_CORE_CM_PRIV_H

#include <assert.h>

#include "cm/cm.h"
#include "core/private.h"
#include "rdma/ib_cm.h"

/** struct cm_agent - the MAD agent of a port. @redirect: valid if @redirected: an encoded
 *  ClassPortInfo, which names the port and QP to which the class is redirected */
struct cm_agent {
	struct ib_mad_agent *agent;
	bool redirected;
	u8 redirect[CM_ARI_MAX];
};

/** struct cm_device - the CM of a device. It exists from the first id on */
struct cm_device {
	struct ib_device *device;
	struct cm cm;
	u8 ack_delay_enc; /* the device's Local CA ACK Delay */
	u32 num_ports;
	struct cm_agent agents[]; /* by port, the first one first */
};

/** struct cm_id - an id of a client, or an orphan: a destroyed id that still has to send or receive a
 *  message (cm/cm.h) */
struct cm_id {
	struct ib_cm_id id;
	struct cm_conn conn;
	struct rt_timer timer;
	struct rt_work established; /* reports the event of ib_cm_notify() from the loop */
	struct cm_device *dev;	    /* NULL: the device was removed */
	struct cm_lookup *lookup;   /* the query for the path of a redirection; NULL: there is none */
	struct rdma_restrack_entry res;
};

static inline struct cm_id *cm_id_of(struct ib_cm_id *id)
{
	return container_of(id, struct cm_id, id);
}

static inline struct cm_id *cm_id_of_conn(struct cm_conn *conn)
{
	return container_of(conn, struct cm_id, conn);
}

/* --- cm.c --- */

/** cm_id_sync() - update the members of @id that the client may read */
void cm_id_sync(struct cm_id *id);
mono_t cm_now(const struct cm_id *id);
/** cm_device_get() - Return: the CM of @device, which is made if need be; ERR_PTR(-ENODEV, -ENOMEM,
 *  -EBUSY) */
struct cm_device *cm_device_get(struct ib_device *device);
/** cm_agent_of() - Return: the agent of port @port_num; NULL: there is no such port */
struct cm_agent *cm_agent_of(struct cm_device *dev, u32 port_num);
/** cm_mad_sent(), cm_mad_received() - the handlers of the MAD agents; their context is the cm_device */
void cm_mad_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void cm_mad_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		     struct ib_mad_recv_wc *recv_wc);

/* --- cm_redirect.c --- */

/** cm_id_redirect() - struct cm_ops */
int cm_id_redirect(struct cm_conn *conn, const struct cm_redirection *to);
/** cm_lookup_cancel() - cancel the query of @id, which is being destroyed */
void cm_lookup_cancel(struct cm_id *id);
/** cm_class_port_info() - set @info to the answer of a port to Get(ClassPortInfo) */
void cm_class_port_info(const struct cm_agent *agent, struct wire_class_port_info *info);

/* --- cm_event.c --- */

void cm_id_event(struct cm_conn *conn, const struct cm_event *event);

/* --- cm_trace.c --- */

void cm_id_trace(struct cm *cm, const struct cm_trace *trace);

/* --- cm_path.c --- */

/** cm_path_route() - convert a path record to a route. Return: 0; -EINVAL: no port of the device has
 *  the SGID or the P_Key */
int cm_path_route(struct ib_device *device, const struct sa_path_rec *path,
		  struct cm_route *route);
void cm_path_to_wire(const struct cm_device *dev, const struct sa_path_rec *path,
		     struct wire_cm_path *wire);
/** cm_path_from_wire() - convert the path in a message to a record as the receiver sees it: its
 *  source is the receiver. @pkey, @mtu, @service_id: the values in the message */
void cm_path_from_wire(const struct wire_cm_path *wire, u16 pkey, u8 mtu,
		       struct sa_path_rec *path);
/** cm_route_ah() - convert a route to an address vector. Return: 0; -ENOENT: the port or GID does
 *  not exist any more */
int cm_route_ah(struct ib_device *device, const struct cm_route *route,
		struct rdma_ah_attr *attr);
/** cm_route_of_wc() - set the route from this port back to the sender of a MAD */
void cm_route_of_wc(struct ib_device *device, const struct ib_wc *wc,
		    const struct ib_grh *grh, struct cm_route *route);
/** cm_find_port() - struct cm_ops */
bool cm_find_port(struct cm *cm, uint8_t number, const union wire_gid *gid,
		  struct cm_port *found);

#endif
