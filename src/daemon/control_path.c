/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * "path": the path from an adapter's port to another node. The adapter queries its
 * subnet administrator for a path record, as a protocol of its node would. The links
 * are those that packets with the record's LIDs and SL take at present.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control_private.h"
#include "fabric/ethernet.h"
#include "rdma/ib_sa.h"
#include "wire/sa.h"

#define PATH_TIMEOUT_MS 5000

/** struct path - a query in progress */
struct path {
	struct control_later later;
	struct control *control;
	struct control_client *client;
	struct ib_sa_client sa;
	int node, port, to_node;
};

/* --- the answer --- */

static void put_gid(struct json_object *o, const char *key, const union ib_gid *gid)
{
	char text[40], *at = text;

	for (int i = 0; i < 16; i += 2)
		at += snprintf(at, 6, "%s%02x%02x", i ? ":" : "", gid->raw[i], gid->raw[i + 1]);
	control_put_text(o, key, text);
}

static void put_record(struct json_object *out, const struct sa_path_rec *rec)
{
	put_gid(out, "sgid", &rec->sgid);
	put_gid(out, "dgid", &rec->dgid);
	control_put_number(out, "slid", be16_to_cpu(rec->slid));
	control_put_number(out, "dlid", be16_to_cpu(rec->dlid));
	control_put_number(out, "sl", rec->sl);
	control_put_hex(out, "pkey", be16_to_cpu(rec->pkey), 4);
	control_put_number(out, "mtu_bytes", (uint64_t)MAX(ib_mtu_enum_to_int(rec->mtu), 0));
	control_put_number(out, "rate_mbps", wire_rate_mbps(rec->rate));
	control_put_number(out, "packet_life_time_ns", 4096ull << MIN(rec->packet_life_time, 50));
	control_put_number(out, "hop_limit", rec->hop_limit);
}

static void put_links(struct json_object *out, struct fabric *fab, const struct fab_trace *trace)
{
	struct json_object *links = json_object_new_array();

	for (unsigned int i = 0; i < trace->num_hops; i++) {
		const struct fab_hop *hop = &trace->hop[i];
		struct json_object *link = json_object_new_object();

		control_put_text(link, "node", control_node_name(fab, hop->from_node));
		control_put_number(link, "port", (uint64_t)hop->from_port);
		control_put_text(link, "peer", control_node_name(fab, hop->to_node));
		control_put_number(link, "peer_port", (uint64_t)hop->to_port);
		control_put_number(link, "vl", hop->vl);
		json_object_array_add(links, link);
	}
	json_object_object_add(out, "links", links);
	if (!trace->lost)
		return;
	control_put_text(out, "lost", trace->lost);
	control_put_text(out, "lost_at", control_node_name(fab, trace->node));
	control_put_number(out, "lost_port", (uint64_t)trace->port);
}

static void answer(struct path *path, struct json_object *out)
{
	control_client_answer(path->client, out);
	json_object_put(out);
	rt_free(path);
}

static void fail_path(struct path *path, int status)
{
	const struct topology *topo = fab_topology(control_fabric(path->control));
	struct json_object *out = json_object_new_object();
	const char *from = topo->node[path->node].name, *to = topo->node[path->to_node].name;
	char text[300];

	if (status == -ETIMEDOUT)
		snprintf(text, sizeof(text), "the subnet administrator of %s:%d does not answer",
			 from, path->port);
	else if (status == -EOPNOTSUPP)
		snprintf(text, sizeof(text),
			 "the subnet administrator of %s:%d has ended: start a subnet manager", from,
			 path->port);
	else if (status == -EINVAL)
		snprintf(text, sizeof(text),
			 "the subnet administrator knows no path from %s:%d to %s", from,
			 path->port, to);
	else
		snprintf(text, sizeof(text), "the path from %s:%d to %s: %s", from, path->port, to,
			 strerror(-status));
	control_put_text(out, "error", text);
	answer(path, out);
}

static void path_done(int status, struct sa_path_rec *resp, unsigned int num, void *context)
{
	struct path *path = context;
	struct fabric *fab = control_fabric(path->control);
	struct json_object *out;
	struct fab_trace trace;

	if (!path->client) { /* the client has disconnected */
		rt_free(path);
		return;
	}
	if (status) {
		fail_path(path, status);
		return;
	}
	out = json_object_new_object();
	control_put_text(out, "from", fab_topology(fab)->node[path->node].name);
	control_put_number(out, "port", (uint64_t)path->port);
	control_put_text(out, "to", fab_topology(fab)->node[path->to_node].name);
	put_record(out, resp);
	if (!fab_trace(fab, path->node, path->port, be16_to_cpu(resp->dlid), resp->sl,
		       be16_to_cpu(resp->pkey), &trace))
		put_links(out, fab, &trace);
	answer(path, out);
}

/* --- the question --- */

/* The connection has ended. The callback of the query frees the rest. */
static void drop(struct control_later *later)
{
	struct path *path = container_of(later, struct path, later);

	path->client = NULL;
	ib_sa_unregister_client(&path->sa);
}

static int take_first(struct ib_device *device, void *ctx)
{
	*(struct ib_device **)ctx = device;
	return 1;
}

/* Return: the adapter of a node; NULL: it has none at present */
static struct ib_device *device_of(const struct rt *rt, const struct topology *topo, int node)
{
	struct ib_device *device = NULL;

	ib_device_for_each_of_node(rt, topo->node[node].name, take_first, &device);
	return device;
}

/* Return: the GID of the port of @node to which the path leads, which is port 0 of a switch */
static union ib_gid gid_of(struct fabric *fab, int node, u64 prefix)
{
	bool is_switch = fab_topology(fab)->node[node].kind == TOPO_SWITCH;
	u64 guid = fab_node(fab, node)->port[is_switch ? 0 : 1].guid;
	struct fab_roce_gid roce[FAB_ROCE_GIDS];
	union ib_gid gid;

	if (!is_switch && fab_is_ethernet(fab, node, 1)) {
		fab_ethernet_gids(fab, node, 1, roce);
		memcpy(&gid, &roce[0].gid, sizeof(gid));
		return gid;
	}
	return (union ib_gid){.global = {cpu_to_be64(prefix), cpu_to_be64(guid)}};
}

static int ask(struct path *path, struct ib_device *device)
{
	struct sa_path_rec rec;
	struct ib_port_attr attr;
	int ret = ib_query_port(device, (u32)path->port, &attr);

	memset(&rec, 0, sizeof(rec));
	if (!ret)
		ret = ib_query_gid(device, (u32)path->port, 0, &rec.sgid);
	if (ret)
		return ret;
	rec.dgid = gid_of(control_fabric(path->control), path->to_node, attr.subnet_prefix);
	rec.numb_path = 1;
	rec.reversible = 1;
	ib_sa_register_client_(&path->sa, "softib path");
	return ib_sa_path_rec_get(&path->sa, device, (u32)path->port, &rec,
				  IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID |
					  IB_SA_PATH_REC_NUMB_PATH | IB_SA_PATH_REC_REVERSIBLE,
				  PATH_TIMEOUT_MS, GFP_KERNEL, path_done, path, NULL);
}

static void fail_to_ask(struct control_request *req, int node, int64_t port, int error)
{
	const char *name = control_topology(req)->node[node].name;

	if (error == -EAGAIN)
		control_fail(req, "%s:%d has no subnet manager yet: 'softib wait' waits for one",
			     name, (int)port);
	else
		control_fail(req, "%s:%d cannot ask for a path: %s", name, (int)port,
			     strerror(-error));
}

bool control_op_path(struct control_request *req)
{
	int node = control_node(req), to = node == -2 ? -2 : control_node_of(req, "to");
	int64_t port = to == -2 ? -2 : control_number(req, "port", TOPO_MAX_NODE_PORTS);
	struct ib_device *device;
	struct path *path;
	int ret;

	if (node == -2 || to == -2 || port == -2)
		return true;
	if (node < 0 || to < 0) {
		control_fail(req, "\"%s\" is missing", node < 0 ? "node" : "to");
		return true;
	}
	port = port < 0 ? 1 : port;
	if (port < 1 || port > control_topology(req)->node[node].num_ports) {
		control_fail(req, "%s has ports 1 to %d", control_topology(req)->node[node].name,
			     control_topology(req)->node[node].num_ports);
		return true;
	}
	device = device_of(control_rt(req->control), control_topology(req), node);
	path = device ? rt_zalloc(sizeof(*path)) : NULL;
	if (!path) {
		control_fail(req, device ? "out of memory" : "%s has no adapter: name a node with an adapter",
			     control_topology(req)->node[node].name);
		return true;
	}
	*path = (struct path){{drop}, req->control, req->client, {{0}}, node, (int)port, to};
	ret = ask(path, device);
	if (ret < 0) {
		rt_free(path);
		fail_to_ask(req, node, port, ret);
		return true;
	}
	control_client_later(req->client, &path->later);
	return false;
}
