/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib-sm on a node: the manager's own code, its port made of three agents
 * of the MAD layer, as umad makes it for the program.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/ib_mad.h"
#include "rdma/ib_verbs.h"
#include "sim.h"
#include "sm/sm.h"
#include "wire/mad.h"

#define GSI_QKEY 0x80010000

struct manager {
	struct sim *sim;
	struct sm_io io;
	struct sm *sm;
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mad_agent *agent[SM_N_AGENTS];
	bool dying;
};

static enum sm_agent which(const struct manager *m, const struct ib_mad_agent *agent)
{
	int a = 0;

	while (a < SM_N_AGENTS - 1 && m->agent[a] != agent)
		a++;
	return (enum sm_agent)a;
}

/* --- to the manager --- */

static void on_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send,
			struct ib_mad_recv_wc *wc)
{
	struct manager *m = agent->context;
	size_t len = MAX((size_t)wc->mad_len, (size_t)WIRE_MAD_BYTES);
	uint8_t *mad = calloc(1, len);
	struct sm_addr from = {
		.lid = (uint16_t)wc->wc->slid,
		.sl = wc->wc->sl,
		.path_bits = wc->wc->dlid_path_bits,
		.qpn = wc->wc->src_qp,
		.qkey = GSI_QKEY,
		.pkey_index = wc->wc->pkey_index,
	};

	if (wc->wc->wc_flags & IB_WC_GRH && wc->recv_buf.grh) {
		from.has_grh = true;
		memcpy(from.gid.raw, wc->recv_buf.grh->sgid.raw, sizeof(from.gid.raw));
	}
	ib_coalesce_recv_mad(wc, mad);
	ib_free_recv_mad(wc);
	sm_receive(m->sm, which(m, agent), 0, &from, mad, len);
	free(mad);
}

static void on_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct manager *m = agent->context;
	uint8_t mad[WIRE_MAD_BYTES] = {0};
	struct sm_addr nobody = {0};
	bool unanswered =
		wc->status == IB_WC_RESP_TIMEOUT_ERR && wc->send_buf->timeout_ms;

	memcpy(mad, wc->send_buf->mad, IB_MGMT_MAD_HDR);
	ib_destroy_ah(wc->send_buf->ah);
	ib_free_send_mad(wc->send_buf);
	if (unanswered && !m->dying)
		sm_receive(m->sm, which(m, agent), -ETIMEDOUT, &nobody, mad, sizeof(mad));
}

/* --- from the manager --- */

static struct ib_ah *make_ah(struct manager *m, const struct sm_addr *to)
{
	struct rdma_ah_attr attr = {.dlid = to->lid,
				    .sl = to->sl,
				    .src_path_bits = to->path_bits,
				    .port_num = 1};

	if (to->has_grh) {
		attr.ah_flags = IB_AH_GRH;
		attr.grh.hop_limit = 64;
		attr.grh.sgid_index = to->sgid_index;
		memcpy(attr.grh.dgid.raw, to->gid.raw, sizeof(attr.grh.dgid.raw));
	}
	return ib_create_ah(m->pd, &attr);
}

/* the manager's MADs lie where they lie: not aligned */
static bool is_rmpp(const struct ib_mad_agent *agent, const void *bytes)
{
	struct ib_rmpp_mad mad;

	memcpy(&mad, bytes, IB_MGMT_RMPP_HDR);
	return agent->rmpp_version && ib_is_mad_class_rmpp(mad.mad_hdr.mgmt_class) &&
	       ib_get_rmpp_flags(&mad.rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE;
}

static struct ib_mad_send_buf *make_message(struct ib_mad_agent *agent,
					    const struct sm_addr *to, const void *bytes,
					    size_t len)
{
	int head = ib_get_mad_data_offset(((const uint8_t *)bytes)[1]);
	bool rmpp = is_rmpp(agent, bytes);
	struct ib_mad_send_buf *msg =
		ib_create_send_mad(agent, to->qpn, to->pkey_index, rmpp, head,
				   (int)len - head, GFP_KERNEL, IB_MGMT_BASE_VERSION);

	if (IS_ERR(msg))
		return msg;
	ib_set_mad_contents(msg, bytes);
	return msg;
}

static int send_mad(struct sm_io *io, enum sm_agent which, const struct sm_addr *to,
		    const void *mad, size_t len, unsigned int timeout_ms)
{
	struct manager *m = container_of(io, struct manager, io);
	struct ib_mad_send_buf *msg = make_message(m->agent[which], to, mad, len);
	int ret;

	if (IS_ERR(msg))
		return (int)PTR_ERR(msg);
	if (to->qkey)
		ib_set_mad_qkey(msg, to->qkey);
	msg->timeout_ms = (int)timeout_ms;
	msg->ah = make_ah(m, to);
	ret = IS_ERR(msg->ah) ? (int)PTR_ERR(msg->ah) : ib_post_send_mad(msg, NULL);
	if (!ret)
		return 0;
	if (!IS_ERR(msg->ah))
		ib_destroy_ah(msg->ah);
	ib_free_send_mad(msg);
	return ret;
}

static void on_event(void *ctx, enum sm_event event)
{
	struct manager *m = ctx;

	sim_note(m->sim, 0x53, event);
	if (event == SM_EVENT_SUBNET_UP)
		oracle_tables(m->sim);
}

static void on_log(void *ctx, enum sm_log_level level, const char *line)
{
	struct manager *m = ctx;

	sim_log(m->sim, "sm on %s: %s", m->device->node_name, line);
}

/* --- life --- */

static bool register_agents(struct manager *m)
{
	static const struct {
		uint8_t mgmt_class, version, rmpp;
		enum ib_qp_type qp;
		uint8_t methods[6];
	} rows[SM_N_AGENTS] = {
		[SM_AGENT_DIRECT] = {WIRE_CLASS_SM_DIRECT,
				     1,
				     0,
				     IB_QPT_SMI,
				     {WIRE_METHOD_GET, WIRE_METHOD_SET,
				      WIRE_METHOD_TRAP}},
		[SM_AGENT_LID] = {WIRE_CLASS_SM_LID,
				  1,
				  0,
				  IB_QPT_SMI,
				  {WIRE_METHOD_GET, WIRE_METHOD_SET, WIRE_METHOD_TRAP,
				   WIRE_METHOD_TRAP_REPRESS}},
		[SM_AGENT_SA] = {WIRE_CLASS_SA,
				 WIRE_SA_CLASS_VERSION,
				 1,
				 IB_QPT_GSI,
				 {WIRE_METHOD_GET, WIRE_METHOD_SET, WIRE_METHOD_GET_TABLE,
				  WIRE_METHOD_GET_MULTI, WIRE_METHOD_DELETE}},
	};

	for (int a = 0; a < SM_N_AGENTS; a++) {
		struct ib_mad_reg_req req = {.mgmt_class = rows[a].mgmt_class,
					     .mgmt_class_version = rows[a].version};

		for (size_t i = 0; i < sizeof(rows[a].methods) && rows[a].methods[i]; i++)
			req.method_mask[rows[a].methods[i] / 64] |=
				1ul << rows[a].methods[i] % 64;
		m->agent[a] =
			ib_register_mad_agent(m->device, 1, rows[a].qp, &req,
					      rows[a].rmpp, on_sent, on_received, m, 0);
		if (IS_ERR(m->agent[a])) {
			m->agent[a] = NULL;
			return false;
		}
	}
	return true;
}

static void announce(struct manager *m, bool on)
{
	struct ib_port_modify modify = {.set_port_cap_mask = on ? IB_PORT_SM : 0,
					.clr_port_cap_mask = on ? 0 : IB_PORT_SM};

	ib_modify_port(m->device, 1, 0, &modify);
}

struct manager *manager_start(struct sim *sim, int node, uint8_t priority)
{
	struct manager *m = calloc(1, sizeof(*m));
	struct sm_options options;

	m->sim = sim;
	m->io.send = send_mad;
	m->device = ib_device_get_by_name(sim->rt, sim->topo->node[node].name, "softib0");
	m->pd = ib_alloc_pd(m->device, 0);
	if (IS_ERR(m->pd))
		m->pd = NULL;
	sm_options_default(&options);
	options.port_guid = fab_node(sim->fab, node)->port[1].guid;
	options.priority = priority;
	options.check = true;
	options.lmc = sim->plan->lmc;
	options.ipoib = true;
	options.log = on_log;
	options.log_level = SM_LOG_INFO;
	options.event = on_event;
	options.ctx = m;
	if (!m->pd || !register_agents(m) ||
	    sm_create(sim->rt, &m->io, &options, &m->sm)) {
		manager_kill(m);
		return NULL;
	}
	announce(m, true);
	sm_start(m->sm);
	return m;
}

void manager_kill(struct manager *m)
{
	if (!m)
		return;
	m->dying = true;
	if (m->sm)
		announce(m, false);
	for (int a = 0; a < SM_N_AGENTS; a++)
		if (m->agent[a])
			ib_unregister_mad_agent(m->agent[a]);
	sm_destroy(m->sm);
	if (m->pd)
		ib_dealloc_pd(m->pd);
	free(m);
}

bool manager_is_master(const struct manager *m)
{
	struct sm_summary summary;

	if (!m)
		return false;
	sm_summarise(m->sm, &summary);
	return summary.state == WIRE_SM_MASTER;
}
