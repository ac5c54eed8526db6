/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The communication manager's surroundings: src/cm decides, these files give it MADs,
 * timers and memory, and clients the interface of rdma/ib_cm.h. Who does what:
 *
 *  cm.c	 devices, their MAD agents, communication ids
 *  cm_send.c	 what clients send
 *  cm_event.c	 news for their handlers
 *  cm_trace.c	 events of the trace
 *  cm_redirect.c redirection of the class to another QP or port, and what follows it
 *  cm_path.c	 path records as routes and as the paths of messages
 *  cm_qp.c	 attributes for queue pairs, reasons in words
 *
 * A device costs nothing until its first communication id: its tables and MAD agents are
 * made then. A node that never had one is silent to REQs, as a host without a CM is.
 */
#ifndef SOFTIB_CORE_CM_PRIV_H
#define SOFTIB_CORE_CM_PRIV_H

#include <assert.h>

#include "cm/cm.h"
#include "core/private.h"
#include "rdma/ib_cm.h"

/** struct cm_agent - the MAD agent of a port. @redirect: valid if @redirected: an encoded
 *  ClassPortInfo that names where the class is */
struct cm_agent {
	struct ib_mad_agent *agent;
	bool redirected;
	u8 redirect[CM_ARI_MAX];
};

/** struct cm_device - the CM of a device, from its first id on */
struct cm_device {
	struct ib_device *device;
	struct cm cm;
	u8 ack_delay_enc; /* of the device */
	u32 num_ports;
	struct cm_agent agents[]; /* by port, the first one first */
};

/** struct cm_id - an id of a client, or an orphan that goes on by itself */
struct cm_id {
	struct ib_cm_id id;
	struct cm_conn conn;
	struct rt_timer timer;
	struct rt_work established; /* ib_cm_notify(): tell it from the loop */
	struct cm_device *dev;	    /* NULL: the device went */
	struct cm_lookup *lookup;   /* of the path of a redirection; NULL: none is going on */
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

/** cm_id_sync() - what the client may read of @id */
void cm_id_sync(struct cm_id *id);
mono_t cm_now(const struct cm_id *id);
/** cm_device_get() - the CM of @device, which exists then; ERR_PTR(-ENODEV, -ENOMEM, -EBUSY) */
struct cm_device *cm_device_get(struct ib_device *device);
/** cm_agent_of() - of port @port_num; NULL: there is no such port */
struct cm_agent *cm_agent_of(struct cm_device *dev, u32 port_num);
/** cm_mad_sent(), cm_mad_received() - handlers of MAD agents, whose context is the cm_device */
void cm_mad_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void cm_mad_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		     struct ib_mad_recv_wc *recv_wc);

/* --- cm_redirect.c --- */

/** cm_id_redirect() - struct cm_ops */
int cm_id_redirect(struct cm_conn *conn, const struct cm_redirection *to);
/** cm_lookup_cancel() - @id goes */
void cm_lookup_cancel(struct cm_id *id);
/** cm_class_port_info() - what a port answers to Get(ClassPortInfo) */
void cm_class_port_info(const struct cm_agent *agent, struct wire_class_port_info *info);

/* --- cm_event.c --- */

void cm_id_event(struct cm_conn *conn, const struct cm_event *event);

/* --- cm_trace.c --- */

void cm_id_trace(struct cm *cm, const struct cm_trace *trace);

/* --- cm_path.c --- */

/** cm_path_route() - 0; -EINVAL the SGID or P_Key is no port's of the device */
int cm_path_route(struct ib_device *device, const struct sa_path_rec *path,
		  struct cm_route *route);
void cm_path_to_wire(const struct cm_device *dev, const struct sa_path_rec *path,
		     struct wire_cm_path *wire);
/** cm_path_from_wire() - as the receiver sees it; @pkey, @mtu and @service_id of the
 * message */
void cm_path_from_wire(const struct wire_cm_path *wire, u16 pkey, u8 mtu,
		       struct sa_path_rec *path);
/** cm_route_ah() - 0; -ENOENT the port or GID is gone */
int cm_route_ah(struct ib_device *device, const struct cm_route *route,
		struct rdma_ah_attr *attr);
/** cm_route_of_wc() - the way back to where a MAD came from */
void cm_route_of_wc(struct ib_device *device, const struct ib_wc *wc,
		    const struct ib_grh *grh, struct cm_route *route);
/** cm_find_port() - struct cm_ops */
bool cm_find_port(struct cm *cm, uint8_t number, const union wire_gid *gid,
		  struct cm_port *found);

#endif
