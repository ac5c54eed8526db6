/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Redirection of the CM class (13.5.2, 12.6.7.2). One half is the port that redirects: its
 * ClassPortInfo names another port or QP, and requests that arrive at QP1 are answered with
 * it. The other half is the end that is redirected: the path to the named port is asked of
 * the subnet administrator, and src/cm sends the request again.
 */
#include "core/cm_priv.h"

#define LOOKUP_MS 2000


/** struct cm_lookup - a query for the path of a redirection; it belongs to the query */
struct cm_lookup {
	struct cm_id *id; /* NULL: it was destroyed */
	struct cm_redirection to;
	struct ib_sa_query *query;
	int query_id;
};

/* --- the end that is redirected --- */

static void ask_there(struct cm_id *id, const struct cm_redirection *to,
		      const struct sa_path_rec *path)
{
	struct wire_cm_path primary;
	struct cm_route route;
	int ret = cm_path_route(id->id.device, path, &route);

	if (!ret) {
		route.qpn = to->qpn;
		route.qkey = to->qkey;
		cm_path_to_wire(id->dev, path, &primary);
		ret = cm_redirect(&id->conn, &route, &primary, path->packet_life_time,
				  cm_now(id));
	}
	if (ret)
		cm_redirect_fail(&id->conn, to, cm_now(id));
	else
		cm_id_sync(id);
}

static void got_path(int status, struct sa_path_rec *resp, unsigned int num, void *context)
{
	struct cm_lookup *lookup = context;
	struct cm_id *id = lookup->id;

	if (id) {
		id->lookup = NULL;
		if (status)
			cm_redirect_fail(&id->conn, &lookup->to, cm_now(id));
		else
			ask_there(id, &lookup->to, resp);
	}
	rt_free(lookup);
}

void cm_lookup_cancel(struct cm_id *id)
{
	struct cm_lookup *lookup = id->lookup;

	if (!lookup)
		return;
	id->lookup = NULL;
	lookup->id = NULL;
	ib_sa_cancel_query(lookup->query_id, lookup->query);
}

static int query_path(struct cm_id *id, struct cm_lookup *lookup)
{
	const struct cm_redirection *to = &lookup->to;
	const struct cm_route *route = &id->conn.route;
	ib_sa_comp_mask mask = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID |
			       IB_SA_PATH_REC_PKEY | IB_SA_PATH_REC_NUMB_PATH |
			       IB_SA_PATH_REC_REVERSIBLE;
	struct sa_path_rec rec;

	memset(&rec, 0, sizeof(rec));
	memcpy(&rec.sgid, &route->sgid, sizeof(rec.sgid));
	memcpy(&rec.dgid, &to->gid, sizeof(rec.dgid));
	rec.pkey = cpu_to_be16(to->pkey ? to->pkey : route->pkey);
	rec.numb_path = 1;
	rec.reversible = 1;
	if (to->lid) {
		sa_path_set_dlid(&rec, to->lid);
		mask |= IB_SA_PATH_REC_DLID;
	}
	return ib_sa_path_rec_get(&core_fabric_of(id->id.device->rt)->cm_sa_client, id->id.device, route->port, &rec, mask,
				  LOOKUP_MS, GFP_ATOMIC, got_path, lookup, &lookup->query);
}

int cm_id_redirect(struct cm_conn *conn, const struct cm_redirection *to)
{
	struct cm_lookup *lookup = rt_zalloc(sizeof(*lookup));
	struct cm_id *id = cm_id_of_conn(conn);
	int ret;

	if (!lookup)
		return -ENOMEM;
	lookup->id = id;
	lookup->to = *to;
	ret = query_path(id, lookup);
	if (ret < 0) {
		rt_free(lookup);
		return ret;
	}
	lookup->query_id = ret;
	cm_lookup_cancel(id);
	id->lookup = lookup;
	return 0;
}

int ib_cm_init_ah_attr(struct ib_cm_id *cm_id, struct rdma_ah_attr *attr)
{
	struct cm_id *id = cm_id_of(cm_id);

	return id->dev ? cm_route_ah(cm_id->device, &id->conn.route, attr) : -ENODEV;
}

/* --- the port that redirects --- */

void cm_class_port_info(const struct cm_agent *agent, struct wire_class_port_info *info)
{
	memset(info, 0, sizeof(*info));
	if (agent->redirected)
		wire_class_port_info_decode(agent->redirect, sizeof(agent->redirect), info);
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = IB_CM_CLASS_VERSION;
	info->resp_time_enc = 18;
}

int ib_cm_redirect(struct ib_device *device, u32 port_num, const struct ib_class_port_info *to)
{
	struct cm_device *dev = cm_device_get(device);
	struct wire_class_port_info info;
	struct cm_agent *agent;

	static_assert(sizeof(*to) == CM_ARI_MAX, "what a REJ carries");
	if (IS_ERR(dev))
		return (int)PTR_ERR(dev);
	agent = cm_agent_of(dev, port_num);
	if (!agent)
		return -EINVAL;
	agent->redirected = to != NULL;
	if (!to)
		return 0;
	memcpy(agent->redirect, to, sizeof(agent->redirect));
	cm_class_port_info(agent, &info);
	wire_class_port_info_encode(&info, agent->redirect);
	return 0;
}

struct ib_mad_agent *ib_cm_serve_qp(struct ib_qp *qp)
{
	struct cm_device *dev = cm_device_get(qp->device);

	if (IS_ERR(dev))
		return (void *)dev;
	return ib_redirect_mad_qp(qp, 0, cm_mad_sent, cm_mad_received, dev);
}
