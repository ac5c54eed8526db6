/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables of communication ids, peers, remote queue pairs and listeners. */
#include <errno.h>
#include <string.h>

#include "cm/private.h"

/* Most numbers are assigned one after the other, and so are their buckets: the connections of a program
 * touch few pages of a large table.
 * @ca_guid: whose number it is; 0: this CM's */
static struct list_head *bucket(struct list_head *table, uint64_t ca_guid, uint64_t number)
{
	uint64_t start = ca_guid * 0x9e3779b97f4a7c15ull >> 32;

	return list_bucket(&table[(start + number) % CM_BUCKETS]);
}

/* --- by communication id --- */

struct cm_conn *cm_find_local(struct cm *cm, uint32_t local_id)
{
	struct cm_conn *conn;

	list_for_each_entry(conn, bucket(cm->ids, 0, local_id), id_node)
		if (conn->local_id == local_id)
			return conn;
	return NULL;
}

/* 12.9.8.3: an id is reused only after all other 32-bit ids. In messages 0 means "none". */
void cm_renumber(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;
	uint32_t id;

	do {
		id = cm->next_id++;
	} while (!id || cm_find_local(cm, id));
	list_del(&conn->id_node);
	conn->local_id = id;
	list_add(&conn->id_node, bucket(cm->ids, 0, id));
}

/* --- by peer --- */

struct cm_conn *cm_find_peer(struct cm *cm, uint64_t ca_guid, uint32_t remote_id)
{
	struct cm_conn *conn;

	list_for_each_entry(conn, bucket(cm->peers, ca_guid, remote_id), peer_node)
		if (conn->remote_id == remote_id && conn->remote_ca_guid == ca_guid)
			return conn;
	return NULL;
}

struct cm_conn *cm_find_qp(struct cm *cm, uint64_t ca_guid, uint32_t qpn,
			   const struct cm_conn * not )
{
	struct cm_conn *conn;

	list_for_each_entry(conn, bucket(cm->qps, ca_guid, qpn), qp_node)
		if (conn != not &&conn->terms.remote_qpn == qpn &&
		    conn->terms.remote_ca_guid == ca_guid)
			return conn;
	return NULL;
}

void cm_meet(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;
	uint64_t guid = conn->terms.remote_ca_guid;
	uint32_t qpn = conn->terms.remote_qpn;

	list_del(&conn->peer_node);
	list_add(&conn->peer_node, bucket(cm->peers, conn->remote_ca_guid, conn->remote_id));
	list_del(&conn->qp_node);
	if (qpn)
		list_add(&conn->qp_node, bucket(cm->qps, guid, qpn));
}

void cm_forget(struct cm_conn *conn)
{
	list_del(&conn->peer_node);
	list_del(&conn->qp_node);
	list_del(&conn->service_node);
}

/* --- by service --- */

static struct list_head *services_of(struct cm *cm, uint64_t service_id)
{
	return bucket(cm->services, 0, service_id);
}

struct cm_conn *cm_find_listener(struct cm *cm, uint64_t service_id)
{
	struct cm_conn *conn;

	list_for_each_entry(conn, services_of(cm, service_id), service_node)
		if (conn->state == CM_LISTEN && conn->service_id == service_id)
			return conn; /* the list also contains callers (peer to peer) */
	list_for_each_entry(conn, &cm->masked, service_node)
		if (conn->service_id == (service_id & conn->service_mask))
			return conn;
	return NULL;
}

/* 12.10.4: peers name each other's ports and the same service id */
struct cm_conn *cm_find_caller(struct cm *cm, const struct wire_cm_req *req)
{
	struct cm_conn *conn;

	list_for_each_entry(conn, services_of(cm, req->service_id), service_node) {
		const struct cm_route *to = &conn->terms.primary;
		bool own = req->local_ca_guid == cm->ca_guid &&
			   req->local_comm_id == conn->local_id;

		if (conn->service_id == req->service_id && !own &&
		    (conn->state == CM_REQ_SENT || conn->state == CM_MRA_REQ_RCVD) &&
		    !memcmp(&to->dgid, &req->primary.local_gid, sizeof(to->dgid)))
			return conn;
	}
	return NULL;
}

static bool overlaps(const struct cm_conn *conn, uint64_t service_id, uint64_t mask)
{
	uint64_t both = conn->service_mask & mask;

	return conn->state == CM_LISTEN && !((conn->service_id ^ service_id) & both);
}

static bool is_taken(struct cm *cm, uint64_t service_id, uint64_t mask)
{
	struct cm_conn *conn;

	list_for_each_entry(conn, &cm->masked, service_node)
		if (overlaps(conn, service_id, mask))
			return true;
	if (mask == CM_SERVICE_MASK_EXACT)
		return cm_find_listener(cm, service_id) != NULL;
	for (size_t i = 0; i < CM_BUCKETS; i++)
		list_for_each_entry(conn, services_of(cm, i), service_node)
			if (overlaps(conn, service_id, mask))
				return true;
	return false;
}

int cm_listen(struct cm_conn *conn, uint64_t service_id, uint64_t mask)
{
	struct cm *cm = conn->cm;
	const struct cm_input in = {.kind = CM_CALL_LISTEN};
	int ret;

	if (conn->state != CM_IDLE)
		return -EINVAL;
	if (is_taken(cm, service_id & mask, mask))
		return -EBUSY;
	conn->service_id = service_id & mask;
	conn->service_mask = mask;
	ret = cm_step(conn, &in);
	if (ret)
		return ret;
	list_add_tail(&conn->service_node, mask == CM_SERVICE_MASK_EXACT
						   ? services_of(cm, service_id)
						   : &cm->masked);
	return 0;
}

/* A3.2.3.3: a first byte of 02 and a zero byte mean "assigned locally" */
uint64_t cm_assign_service_id(struct cm *cm)
{
	uint64_t id;

	do {
		id = 0x0200000000000000ull | (++cm->next_service_id & 0xffffffffffffull);
	} while (cm_find_listener(cm, id));
	return id;
}

void cm_call_service(struct cm_conn *conn, uint64_t service_id)
{
	conn->service_id = service_id;
	conn->service_mask = CM_SERVICE_MASK_EXACT;
	list_del(&conn->service_node);
	if (conn->peer_to_peer)
		list_add_tail(&conn->service_node, services_of(conn->cm, service_id));
}

/* --- life --- */

void cm_init(struct cm *cm, const struct cm_ops *ops, uint64_t ca_guid, uint64_t random)
{
	cm->ops = ops;
	cm->ca_guid = ca_guid;
	cm->next_id = (uint32_t)random;
	cm->next_tid = (uint32_t)(random >> 32);
	INIT_LIST_HEAD(&cm->masked);
}

void cm_conn_open(struct cm *cm, struct cm_conn *conn)
{
	conn->cm = cm;
	INIT_LIST_HEAD(&conn->id_node);
	INIT_LIST_HEAD(&conn->peer_node);
	INIT_LIST_HEAD(&conn->qp_node);
	INIT_LIST_HEAD(&conn->service_node);
	cm_renumber(conn);
	cm->num_conns++;
}

void cm_conn_leave(struct cm_conn *conn)
{
	cm_forget(conn);
	list_del(&conn->id_node);
	conn->cm->num_conns--;
}

void cm_shut(struct cm *cm)
{
	struct cm_conn *conn, *next;

	for (size_t i = 0; i < CM_BUCKETS; i++)
		list_for_each_entry_safe(conn, next, bucket(cm->ids, 0, i), id_node) {
			cm->ops->arm(conn, MONO_NEVER);
			cm_conn_leave(conn);
			cm->ops->gone(conn);
		}
}
