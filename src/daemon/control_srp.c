/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations srp_discover, srp_login, srp_logout and srp_sessions: the SRP initiators of
 * adapters (ulp/srp). */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_private.h"
#include "ulp/srp/srp.h"

#define COMMAND_TIMEOUT_S 30

/** struct srp_call - a client that waits for a discovery, or for a login after one */
struct srp_call {
	struct control_later later;
	struct control_client *client;
	const struct topology *topo;
	struct rt *rt;
	struct json_object *out;
	struct srp_discovery *discovery; /* NULL: it is over */
	u32 next_port;			 /* the next port of the adapter from which to discover */
	int status;			 /* 0: a port has discovered; -errno: the error of the last port */
	struct srp_found *found;	 /* the targets that all ports have found */
	unsigned int nr_found;
	bool login;
	char target[SRP_TARGET_NAME]; /* for a login: a node, or the GUID of an I/O controller */
	unsigned int channels;	      /* for a login; 0: one channel for each path */
	struct srp_session_config config;
};

/* Return: the adapter of "node"; NULL after answering with an error */
static struct ib_device *find_device(struct control_request *req)
{
	int node = control_node(req);
	struct ib_device *device = node >= 0 ? control_device(req, node) : NULL;

	if (node == -1)
		control_fail(req, "\"node\" is missing");
	else if (node >= 0 && !device)
		control_fail(req, "%s has no adapter: only adapters have SRP initiators",
			     control_topology(req)->node[node].name);
	return device;
}

/* --- names --- */

/* Return: the node that has the port with this GID; NULL: no node of the topology has it */
static const char *node_of_gid(const struct topology *topo, const union ib_gid *gid)
{
	u64 guid = be64_to_cpu(gid->global.interface_id);

	for (int i = 0; i < topo->num_nodes; i++)
		for (int p = 0; p <= topo->node[i].num_ports; p++)
			if (topo_port_guid(&topo->node[i], p) == guid)
				return topo->node[i].name;
	return NULL;
}

static void put_gid(struct json_object *o, const char *key, const union ib_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	control_put_text(o, key, inet_ntop(AF_INET6, gid->raw, text, sizeof(text)));
}

static void put_target(struct json_object *o, const struct srpi_target *target)
{
	control_put_number(o, "controller", target->slot);
	control_put_hex(o, "ioc_guid", target->ioc_guid, 16);
	control_put_hex(o, "id_ext", target->id_ext, 16);
	control_put_hex(o, "service_id", target->service_id, 16);
	control_put_text(o, "description", target->id_string);
}

/* --- clients that wait --- */

static void free_call(struct srp_call *call)
{
	free(call->found);
	json_object_put(call->out);
	free(call);
}

/* Answer the client, and free the call. @error: NULL: it succeeded; else a message */
static void answer(struct srp_call *call, const char *error)
{
	if (error)
		control_put_text(call->out, "error", error);
	control_client_answer(call->client, call->out);
	free_call(call);
}

static void drop(struct control_later *later)
{
	struct srp_call *call = container_of(later, struct srp_call, later);

	if (call->discovery)
		srp_discover_cancel(call->discovery);
	srp_login_forget(call->rt, call);
	free_call(call);
}

/* --- the end of a login --- */

static void put_unit(struct json_object *list, const struct srp_unit_info *info)
{
	const struct srpi_disk *disk = info->disk;
	struct json_object *o = json_object_new_object();

	control_put_text(o, "export", info->export);
	control_put_number(o, "bytes", disk->blocks * disk->block_bytes);
	control_put_number(o, "block_bytes", disk->block_bytes);
	control_put_bool(o, "read_only", disk->read_only);
	control_put_bool(o, "write_back", disk->write_back);
	control_put_text(o, "vendor", disk->vendor);
	control_put_text(o, "product", disk->product);
	control_put_number(o, "clients", info->clients);
	json_object_array_add(list, o);
}

static void put_channel(struct json_object *list, const struct srp_channel_info *info)
{
	struct json_object *o = json_object_new_object();

	control_put_number(o, "port", info->path.port_num);
	put_gid(o, "dgid", &info->path.dgid);
	control_put_bool(o, "up", info->up);
	control_put_number(o, "commands", info->commands);
	if (!info->up)
		control_put_text(o, "why", info->error);
	json_object_array_add(list, o);
}

static void put_session(struct json_object *o, const struct srp_session *session)
{
	static const char *const states[] = {[SRPI_RUNNING] = "running",
					     [SRPI_BLOCKED] = "blocked",
					     [SRPI_FAIL_FAST] = "failing",
					     [SRPI_LOST] = "lost"};
	struct json_object *units = control_put_list(o, "units"), *channels = control_put_list(o, "channels");
	struct srp_session_info info;
	struct srp_channel_info channel;
	struct srp_unit_info unit;

	srp_session_describe(session, &info);
	control_put_text(o, "node", info.device->node_name);
	control_put_text(o, "target", info.name);
	control_put_text(o, "socket", info.socket);
	control_put_text(o, "state", states[info.state]);
	control_put_number(o, "commands", info.commands);
	control_put_number(o, "repeated", info.repeated);
	control_put_number(o, "aborted", info.aborted);
	control_put_number(o, "tables", info.tables);
	control_put_number(o, "fetched_tables", info.fetched_tables);
	put_target(o, &info.target);
	for (unsigned int i = 0; i < info.nr_units; i++) {
		srp_unit_describe(session, i, &unit);
		put_unit(units, &unit);
	}
	for (unsigned int i = 0; i < info.nr_channels; i++) {
		srp_channel_describe(session, i, &channel);
		put_channel(channels, &channel);
	}
}

static void logged_in(void *ctx, struct srp_session *session, const char *error)
{
	struct srp_call *call = ctx;

	if (session)
		put_session(call->out, session);
	answer(call, error);
}

/* --- the end of a discovery --- */

/* Is found[i] the first entry of its target port? Several ports of the adapter may have found the
 * same one. */
static bool is_first(const struct srp_call *call, unsigned int i)
{
	const struct srp_found *found = call->found;

	for (unsigned int k = 0; k < i; k++)
		if (found[k].target.ioc_guid == found[i].target.ioc_guid &&
		    found[k].target.id_ext == found[i].target.id_ext &&
		    !memcmp(&found[k].path.dgid, &found[i].path.dgid, sizeof(union ib_gid)))
			return false;
	return true;
}

static void put_found(struct srp_call *call)
{
	struct json_object *list = control_put_list(call->out, "targets");

	for (unsigned int i = 0; i < call->nr_found; i++) {
		const struct srp_found *found = &call->found[i];
		const char *node = node_of_gid(call->topo, &found->path.dgid);
		struct json_object *o;

		if (!is_first(call, i))
			continue;
		o = json_object_new_object();
		put_target(o, &found->target);
		put_gid(o, "dgid", &found->path.dgid);
		control_put_number(o, "port", found->path.port_num);
		if (node)
			control_put_text(o, "node", node);
		json_object_array_add(list, o);
	}
}

/* Does @name name this I/O controller? It is a node, or a node and the number of an I/O controller:
 * "n1.2" */
static bool is_named(const char *name, const char *node, unsigned int slot)
{
	const size_t bytes = strlen(node);
	char *end;

	if (strncmp(name, node, bytes) != 0)
		return false;
	if (!name[bytes])
		return true;
	return name[bytes] == '.' && name[bytes + 1] >= '1' && name[bytes + 1] <= '9' &&
	       strtoul(name + bytes + 1, &end, 10) == slot && !*end;
}

static bool is_called(const struct srp_call *call, const struct srp_found *found)
{
	const char *node = node_of_gid(call->topo, &found->path.dgid);
	char *end;

	return (node && is_named(call->target, node, found->target.slot)) ||
	       (strtoull(call->target, &end, 16) == found->target.ioc_guid && !*end);
}

static bool is_target(const struct srpi_target *a, const struct srpi_target *b)
{
	return a->ioc_guid == b->ioc_guid && a->id_ext == b->id_ext;
}

/* Choose the paths of a login: each port of the target from each port of the adapter that reaches
 * it, or as many of them as the client wants channels. Return: NULL; a message if there is an error */
static const char *choose_paths(struct srp_call *call)
{
	struct srp_session_config *c = &call->config;
	unsigned int distinct;

	for (unsigned int i = 0; i < call->nr_found; i++) {
		if (!is_called(call, &call->found[i]))
			continue;
		if (!c->nr_paths)
			c->target = call->found[i].target;
		else if (!is_target(&c->target, &call->found[i].target))
			return "there are several targets of this name: name the number of its I/O "
			       "controller behind the node, as in 'n1.2', or its GUID; 'softib srp "
			       "discover' lists both";
		if (c->nr_paths < SRP_CHANNELS_MOST)
			c->path[c->nr_paths++] = call->found[i].path;
	}
	distinct = c->nr_paths;
	if (!distinct)
		return "there is no such target: 'softib srp discover' lists those that are "
		       "reached, and 'softib srp target add' makes one";
	while (c->nr_paths < call->channels) {
		c->path[c->nr_paths] = c->path[c->nr_paths % distinct];
		c->nr_paths++;
	}
	if (call->channels)
		c->nr_paths = MIN(c->nr_paths, call->channels);
	return NULL;
}

static const char *why_no_login(int error)
{
	switch (error) {
	case -EEXIST:
		return "the node is logged in there already: 'softib srp list' shows its units";
	case -ENAMETOOLONG:
		return "the fabric's directory has too long a name for a socket: set "
		       "XDG_RUNTIME_DIR to a shorter one";
	default:
		return strerror(-error);
	}
}

static void log_in(struct srp_call *call)
{
	const char *fault = choose_paths(call);
	int ret;

	if (fault) {
		answer(call, fault);
		return;
	}
	snprintf(call->config.name, sizeof(call->config.name), "%s", call->target);
	ret = srp_login(&call->config);
	if (ret)
		answer(call, why_no_login(ret));
}

/* Discovery from all ports of the adapter has ended. */
static void finish_discovery(struct srp_call *call)
{
	if (call->status == -ENODEV)
		answer(call, "the adapter is gone");
	else if (call->status)
		answer(call, "the subnet administrator does not answer: 'softib status' says whether "
			     "there is one");
	else if (call->login)
		log_in(call);
	else {
		put_found(call);
		answer(call, NULL);
	}
}

static void discovered(void *ctx, int status, const struct srp_found *found, unsigned int nr);

/* Begin the discovery from the next port of the adapter that can. Return: false: there is none */
static bool ask_next_port(struct srp_call *call)
{
	struct ib_device *device = call->config.device;

	while (call->next_port <= device->phys_port_cnt) {
		call->discovery = srp_discover(device, call->next_port++, NULL, 0, discovered, call);
		if (!IS_ERR(call->discovery))
			return true;
		if (call->status)
			call->status = (int)PTR_ERR(call->discovery);
		call->discovery = NULL;
	}
	return false;
}

static bool keep_found(struct srp_call *call, const struct srp_found *found, unsigned int nr)
{
	struct srp_found *all = reallocarray(call->found, call->nr_found + nr, sizeof(*all));

	if (!all)
		return false;
	memcpy(all + call->nr_found, found, nr * sizeof(*all));
	call->found = all;
	call->nr_found += nr;
	return true;
}

static void discovered(void *ctx, int status, const struct srp_found *found, unsigned int nr)
{
	struct srp_call *call = ctx;

	call->discovery = NULL;
	if (!status || status == -ENODEV || call->status)
		call->status = status;
	if (nr && !keep_found(call, found, nr))
		answer(call, "out of memory");
	else if (status == -ENODEV || !ask_next_port(call))
		finish_discovery(call);
}

/* Return: false: the answer comes later */
static bool begin(struct control_request *req, struct srp_call *call)
{
	call->later.drop = drop;
	call->client = req->client;
	call->topo = control_topology(req);
	call->rt = control_rt(req->control);
	call->out = json_object_new_object();
	call->config.done = logged_in;
	call->config.ctx = call;
	call->next_port = 1;
	call->status = -EAGAIN;
	if (ask_next_port(call)) {
		control_client_later(req->client, &call->later);
		return false;
	}
	control_fail(req, call->status == -EAGAIN
				  ? "no port of the adapter has a subnet manager: 'softib status' "
				    "shows it"
				  : "discovery needs the management of an InfiniBand fabric");
	free_call(call);
	return true;
}

/* --- operations --- */

bool control_op_srp_discover(struct control_request *req)
{
	struct ib_device *device = find_device(req);
	struct srp_call *call = device ? calloc(1, sizeof(*call)) : NULL;

	if (device && !call)
		control_fail(req, "out of memory");
	if (!call)
		return true;
	call->config.device = device;
	return begin(req, call);
}

/* Get a time-out from the request: -1 for "off"; @otherwise if it is absent.
 * Return: false, after answering with an error */
static bool read_timeout(struct control_request *req, const char *key, int otherwise, int *to)
{
	const char *text = control_text(req, key);
	char *end;
	long n = text && strcmp(text, "off") ? strtol(text, &end, 10) : SRPI_OFF;

	*to = !text ? otherwise : (int)n;
	if (!text || !strcmp(text, "off") || (*text && !*end && n >= 0 && n <= 86400))
		return true;
	control_fail(req, "\"%s\" is a number of seconds up to 86400, or \"off\"", key);
	return false;
}

static bool read_timeouts(struct control_request *req, struct srpi_timeouts *t)
{
	const struct srpi_timeouts usual = SRPI_TIMEOUTS;
	const char *fault;

	if (!read_timeout(req, "reconnect_delay", usual.reconnect_delay, &t->reconnect_delay) ||
	    !read_timeout(req, "fast_io_fail_tmo", usual.fast_io_fail_tmo, &t->fast_io_fail_tmo) ||
	    !read_timeout(req, "dev_loss_tmo", usual.dev_loss_tmo, &t->dev_loss_tmo))
		return false;
	fault = srpi_timeouts_fault(t);
	if (fault)
		control_fail(req, "%s", fault);
	return !fault;
}

bool control_op_srp_login(struct control_request *req)
{
	const char *target = control_text(req, "target");
	int64_t channels = control_number(req, "channels", SRP_CHANNELS_MOST);
	struct srpi_timeouts timeouts;
	struct ib_device *device;
	struct srp_call *call;

	if (channels == -2 || !read_timeouts(req, &timeouts))
		return true;
	device = find_device(req);
	if (!device)
		return true;
	if (!target || strlen(target) >= SRP_TARGET_NAME || strchr(target, '/')) {
		control_fail(req, "\"target\" is a node such as n1, or the GUID of an I/O controller");
		return true;
	}
	call = calloc(1, sizeof(*call));
	if (!call) {
		control_fail(req, "out of memory");
		return true;
	}
	call->login = true;
	call->channels = channels > 0 ? (unsigned int)channels : 0;
	call->config = (struct srp_session_config){
		.device = device, .timeouts = timeouts, .command_timeout_s = COMMAND_TIMEOUT_S};
	memcpy(call->target, target, strlen(target) + 1);
	return begin(req, call);
}

bool control_op_srp_logout(struct control_request *req)
{
	const char *target = control_text(req, "target");
	struct ib_device *device = find_device(req);
	struct srp_session *session = device && target ? srp_find(device, target) : NULL;

	if (session)
		srp_logout(session);
	else if (device)
		control_fail(req, "%s is not logged in to %s: 'softib srp list' shows where it is",
			     device->node_name, target ? target : "a target without a name");
	return true;
}

struct listing {
	struct json_object *list;
	const char *only; /* a node; NULL: all */
};

static int put_each(void *ctx, struct srp_session *session)
{
	struct listing *listing = ctx;
	struct srp_session_info info;
	struct json_object *o;

	srp_session_describe(session, &info);
	if (listing->only && strcmp(listing->only, info.device->node_name))
		return 0;
	o = json_object_new_object();
	put_session(o, session);
	return json_object_array_add(listing->list, o);
}

bool control_op_srp_sessions(struct control_request *req)
{
	int node = control_node(req);
	struct listing listing = {.only = node >= 0 ? control_topology(req)->node[node].name : NULL};

	if (node == -2)
		return true;
	listing.list = control_put_list(req->out, "sessions");
	srp_each_session(control_rt(req->control), put_each, &listing);
	return true;
}
