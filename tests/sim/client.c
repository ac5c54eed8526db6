/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Clients of the administrator. Each request must end exactly once, answered
 * or not; what is answered must be true of the fabric; and when all is well
 * again, everyone is told of every node.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#include "rdma/ib_mad.h"

#define TIMEOUT_MS 300
#define RETRIES	   4
#define AGAIN_NS   (100 * NSEC_PER_MSEC)

struct request {
	struct list_head node;
	struct client *client;
	sa_answer_fn fn;
	void *ctx;
	uint8_t *answer;
	size_t len;
};

struct client {
	struct sim *sim;
	int program;
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mad_agent *agent;
	struct list_head requests;
	struct rt_timer timer;
	uint32_t next_query; /* of the plan */
	uint32_t next_tid;
	bool asked, told; /* in calm: of all nodes */
};

static struct client *clients[PLAN_PROGRAMS];

/* --- requests --- */

static void finish(struct request *r, int status)
{
	struct wire_mad h;

	if (!status && (!r->answer || wire_mad_decode(r->answer, r->len, &h) < 0))
		status = -EPROTO;
	if (!status)
		status = h.status;
	sim_note(r->client->sim, 0x5a, (uint64_t)(uint32_t)status);
	list_del(&r->node);
	r->fn(r->ctx, status, status ? NULL : r->answer, r->len);
	free(r->answer);
	free(r);
}

static void on_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send,
			struct ib_mad_recv_wc *wc)
{
	struct client *c = agent->context;
	struct request *r = send ? send->context[0] : NULL;

	if (!r || r->answer)
		sim_fail(c->sim, ORACLE_ORDER,
			 "client %d took an answer that it did not ask for", c->program);
	r->len = MAX((size_t)wc->mad_len, (size_t)WIRE_MAD_BYTES);
	r->answer = calloc(1, r->len);
	ib_coalesce_recv_mad(wc, r->answer);
	ib_free_recv_mad(wc);
}

static void on_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct request *r = wc->send_buf->context[0];
	enum ib_wc_status status = wc->status;

	ib_destroy_ah(wc->send_buf->ah);
	ib_free_send_mad(wc->send_buf);
	finish(r, status == IB_WC_SUCCESS ? 0 : -ETIMEDOUT);
}

static struct ib_mad_send_buf *make_mad(struct client *c, uint16_t sm_lid)
{
	struct rdma_ah_attr attr = {.dlid = sm_lid, .port_num = 1};
	struct ib_mad_send_buf *msg =
		ib_create_send_mad(c->agent, 1, 0, 0, IB_MGMT_SA_HDR, IB_MGMT_SA_DATA,
				   GFP_KERNEL, IB_MGMT_BASE_VERSION);

	if (IS_ERR(msg))
		return NULL;
	msg->ah = ib_create_ah(c->pd, &attr);
	msg->timeout_ms = TIMEOUT_MS;
	msg->retries = RETRIES;
	if (!IS_ERR(msg->ah))
		return msg;
	ib_free_send_mad(msg);
	return NULL;
}

static int ask(struct client *c, const struct wire_sa *head,
	       const struct wire_codec *codec, const void *record, sa_answer_fn fn,
	       void *ctx)
{
	struct ib_port_attr port;
	struct ib_mad_send_buf *msg;
	struct request *r;

	if (ib_query_port(c->device, 1, &port) || !port.sm_lid)
		return -ENETUNREACH;
	msg = make_mad(c, (uint16_t)port.sm_lid);
	if (!msg)
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	*r = (struct request){.client = c, .fn = fn, .ctx = ctx};
	msg->context[0] = r;
	wire_sa_encode(head, msg->mad);
	wire_fields_encode(codec, record, (uint8_t *)msg->mad + WIRE_SA_DATA_OFFSET);
	if (ib_post_send_mad(msg, NULL)) {
		ib_destroy_ah(msg->ah);
		ib_free_send_mad(msg);
		free(r);
		return -ENOMEM;
	}
	list_add_tail(&r->node, &c->requests);
	return 0;
}

int client_ask(struct sim *sim, int program, uint8_t method, uint16_t attr, uint64_t mask,
	       const struct wire_codec *codec, const void *record, sa_answer_fn fn,
	       void *ctx)
{
	struct client *c = clients[program];
	struct wire_sa head = {
		.mad = {.base_version = WIRE_MAD_BASE_VERSION,
			.mgmt_class = WIRE_CLASS_SA,
			.class_version = WIRE_SA_CLASS_VERSION,
			.method = method,
			.attr_id = attr},
		.comp_mask = mask,
	};

	if (!c->agent)
		return -ENODEV;
	head.mad.tid = (uint64_t)c->agent->hi_tid << 32 | ++c->next_tid;
	return ask(c, &head, codec, record, fn, ctx);
}

/* --- what is asked, and what the answer must say --- */

static bool is_node(const struct sim *sim, uint64_t guid)
{
	for (int i = 0; i < sim->topo->num_nodes; i++)
		if (fab_node(sim->fab, i)->guid == guid)
			return true;
	return false;
}

/* Return: how many records there are; each must be of a node of the fabric */
static int check_nodes(struct client *c, const uint8_t *mad, size_t len)
{
	struct wire_node_record record;
	struct wire_sa head;
	size_t step;
	int n = 0;

	wire_sa_decode(mad, len, &head);
	step = head.attr_offset * 8u;
	for (size_t at = WIRE_SA_DATA_OFFSET; step && at + step <= len; at += step, n++)
		if (wire_node_record_decode(mad + at, len - at, &record) < 0 ||
		    !is_node(c->sim, record.info.node_guid))
			sim_fail(c->sim, ORACLE_DATA,
				 "client %d: record %d of %zu bytes is of no node",
				 c->program, n, len);
	return n;
}

static void on_nodes(void *ctx, int status, const uint8_t *mad, size_t len)
{
	struct client *c = ctx;
	int n = status ? 0 : check_nodes(c, mad, len);

	c->told |= c->asked && n == c->sim->topo->num_nodes;
	if (plan_is_faultless(c->sim->plan->kind) && n != c->sim->topo->num_nodes)
		sim_fail(c->sim, ORACLE_RELIABLE,
			 "client %d: status %d and %d nodes of %d", c->program, status, n,
			 c->sim->topo->num_nodes);
	if (c->asked && !c->told)
		rt_timer_arm(&c->timer, mono_add(rt_now(c->sim->rt), AGAIN_NS));
}

static void on_path(void *ctx, int status, const uint8_t *mad, size_t len)
{
	struct client *c = ctx;
	struct wire_path_record path;

	if (status && plan_is_faultless(c->sim->plan->kind))
		sim_fail(c->sim, ORACLE_RELIABLE, "client %d: no path, status %d",
			 c->program, status);
	if (status)
		return;
	if (wire_path_record_decode(mad + WIRE_SA_DATA_OFFSET, len - WIRE_SA_DATA_OFFSET,
				    &path) < 0 ||
	    !path.dlid || !path.slid)
		sim_fail(c->sim, ORACLE_DATA, "client %d: a path without LIDs",
			 c->program);
}

static int ask_nodes(struct client *c)
{
	static const struct wire_node_record any;

	return client_ask(c->sim, c->program, WIRE_METHOD_GET_TABLE, WIRE_SA_NODE_RECORD,
			  0, &wire_node_record_codec, &any, on_nodes, c);
}

static int ask_path(struct client *c, uint32_t to)
{
	struct wire_path_record key = {.numb_path = 1};
	const struct program *other =
		c->sim->program[to % (uint32_t)c->sim->plan->num_programs];
	union ib_gid gid;

	ib_query_gid(c->device, 1, 0, &gid);
	memcpy(key.sgid.raw, gid.raw, sizeof(key.sgid.raw));
	ib_query_gid(clients[other->index]->device, 1, 0, &gid);
	memcpy(key.dgid.raw, gid.raw, sizeof(key.dgid.raw));
	return client_ask(c->sim, c->program, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD,
			  WIRE_PR_SGID | WIRE_PR_DGID | WIRE_PR_NUMB_PATH,
			  &wire_path_record_codec, &key, on_path, c);
}

/* --- life --- */

static void turn(struct rt_timer *timer)
{
	struct client *c = container_of(timer, struct client, timer);
	const struct plan *plan = c->sim->plan;
	const struct plan_query *q = &plan->query[c->program][c->next_query];
	mono_t now = rt_now(c->sim->rt);

	if (c->asked) {
		if (ask_nodes(c))
			rt_timer_arm(timer, mono_add(now, AGAIN_NS));
		return;
	}
	if (c->next_query >= plan->num_queries[c->program])
		return;
	if (mono_add(c->sim->traffic_began, q->at_ns).ns <= now.ns) {
		c->next_query++;
		if (q->path)
			ask_path(c, q->to);
		else
			ask_nodes(c);
		q++;
	}
	if (c->next_query < plan->num_queries[c->program])
		rt_timer_arm(timer, mono_add(c->sim->traffic_began, q->at_ns));
}

static bool open_agent(struct client *c)
{
	c->pd = ib_alloc_pd(c->device, 0);
	if (IS_ERR(c->pd)) {
		c->pd = NULL;
		return false;
	}
	c->agent =
		ib_register_mad_agent(c->device, 1, IB_QPT_GSI, NULL,
				      IB_MGMT_RMPP_VERSION, on_sent, on_received, c, 0);
	if (!IS_ERR(c->agent))
		return true;
	c->agent = NULL;
	return false;
}

void clients_start(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++) {
		struct client *c = calloc(1, sizeof(*c));
		const char *node = sim->topo->node[sim->program[i]->node].name;

		clients[i] = c;
		c->sim = sim;
		c->program = i;
		c->device = ib_device_get_by_name(sim->rt, node, "softib0");
		INIT_LIST_HEAD(&c->requests);
		rt_timer_init(sim->rt, &c->timer, turn);
		if (!open_agent(c))
			sim_fail(sim, ORACLE_RELIABLE, "client %d has no agent", i);
		if (sim->plan->num_queries[i])
			rt_timer_arm(&c->timer, mono_add(sim->traffic_began,
							 sim->plan->query[i][0].at_ns));
	}
}

void clients_begin_calm(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++) {
		clients[i]->asked = true;
		rt_timer_arm(&clients[i]->timer, mono_add(rt_now(sim->rt), 1000));
	}
}

bool clients_done(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++)
		if (!clients[i]->told || !list_empty(&clients[i]->requests))
			return false;
	return true;
}

void clients_stop(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++) {
		struct client *c = clients[i];

		rt_timer_disarm(&c->timer);
		ib_unregister_mad_agent(c->agent);
		ib_dealloc_pd(c->pd);
		if (!list_empty(&c->requests))
			sim_fail(sim, ORACLE_RELIABLE, "client %d: a request never ended",
				 i);
		free(c);
	}
}
