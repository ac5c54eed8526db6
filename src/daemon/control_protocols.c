/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The members of the status that report which upper-level protocols are in use, and the operation
 * sdp_move. */
#include "daemon/control_private.h"
#include "ulp/eth/eth.h"
#include "ulp/ipoib/ipoib.h"
#include "ulp/sdp/socket.h"
#include "ulp/srp/srp.h"
#include "ulp/srpt/srpt.h"

/* struct count - of sessions; @only: those of this node; NULL: of all nodes */
struct count {
	const char *only;
	uint64_t sessions;
};

static int count_session(void *ctx, struct srp_session *session)
{
	struct count *count = ctx;
	struct srp_session_info info;

	srp_session_describe(session, &info);
	count->sessions += !count->only || !strcmp(count->only, info.device->node_name);
	return 0;
}

struct json_object *control_protocols(struct control_request *req)
{
	const struct topology *topo = control_topology(req);
	const int node = control_node(req);
	struct rt *rt = control_rt(req->control);
	struct json_object *o = json_object_new_object();
	struct count count = {.only = node >= 0 ? topo->node[node].name : NULL};
	uint64_t interfaces = 0, ethernet = 0, targets = 0;
	struct sdp_stats sdp;

	for (int i = 0; i < topo->num_nodes; i++) {
		struct ib_device *device = node < 0 || i == node ? control_device(req, i) : NULL;

		interfaces += device ? ipoib_count(device) : 0;
		ethernet += device ? eth_count(device) : 0;
		for (unsigned int slot = 1; device && slot <= SRP_CONTROLLERS; slot++)
			targets += srpt_find(device, slot) != NULL;
	}
	srp_each_session(rt, count_session, &count);
	sdp_stats_get(rt, &sdp);
	control_put_number(o, "ipoib_interfaces", interfaces);
	control_put_number(o, "ethernet_interfaces", ethernet);
	control_put_number(o, "sdp_connections", count.only ? sdp_count(rt, count.only) : sdp.open);
	control_put_number(o, "srp_targets", targets);
	control_put_number(o, "srp_sessions", count.sessions);
	control_put_number(req->out, "sdp_shared_bytes", sdp.shared_bytes);
	return o;
}

bool control_op_sdp_move(struct control_request *req)
{
	const int node = control_node(req);

	if (node == -1)
		control_fail(req, "\"node\" is missing");
	else if (node >= 0)
		control_put_number(req->out, "connections",
				   sdp_move_all(control_rt(req->control), control_topology(req)->node[node].name));
	return true;
}
