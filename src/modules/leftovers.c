/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frees what a module did not free: objects of the midlayer that are tracked under its
 * name, and objects with a handler in its code. An object is freed before the objects that
 * it uses, and none of the module's handlers is called.
 */
#include "modules/private.h"

static bool is_code_of(const struct module_state *state, const void *handler)
{
	return (uintptr_t)handler >= state->from && (uintptr_t)handler < state->to;
}

static void append(char text[MODULE_TEXT_BYTES], const char *what, unsigned int n)
{
	size_t len = strlen(text);

	if (n)
		snprintf(text + len, MODULE_TEXT_BYTES - len, " %u %s", n, what);
}

/** struct search - finds one object at a time, since freeing it changes the list */
struct search {
	const struct module_state *state;
	void *found;
};

/* --- MAD agents --- */

static void no_send(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	ib_free_send_mad(wc->send_buf);
}

static int is_agent(struct ib_mad_agent *agent, void *ctx)
{
	struct search *search = ctx;

	if (!is_code_of(search->state, agent->send_handler) &&
	    !is_code_of(search->state, agent->recv_handler) &&
	    !is_code_of(search->state, agent->snoop_handler))
		return 0;
	search->found = agent;
	return 1;
}

static unsigned int free_agents(const struct module_state *state, struct ib_device *device)
{
	struct search search = {state, NULL};
	unsigned int n = 0;

	for (;; n++) {
		struct ib_mad_agent *agent;

		search.found = NULL;
		ib_mad_agent_for_each(device, is_agent, &search);
		agent = search.found;
		if (!agent)
			return n;
		agent->send_handler = no_send;
		ib_unregister_mad_agent(agent);
	}
}

/* --- event handlers --- */

static unsigned int free_handlers(const struct module_state *state, struct ib_device *device)
{
	struct ib_event_handler *handler, *next;
	unsigned int n = 0;

	list_for_each_entry_safe(handler, next, &device->event_handler_list, list)
		if (is_code_of(state, handler->handler)) {
			ib_unregister_event_handler(handler);
			n++;
		}
	return n;
}

/* --- ids of the RDMA CM --- */

static int is_id(struct rdma_cm_id *id, void *ctx)
{
	struct search *search = ctx;

	if (!is_code_of(search->state, id->event_handler))
		return 0;
	search->found = id;
	return 1;
}

static unsigned int free_ids(const struct module_state *state)
{
	struct search search = {state, NULL};
	unsigned int n = 0;

	for (;; n++) {
		search.found = NULL;
		rdma_id_for_each(state->loader->rt, is_id, &search);
		if (!search.found)
			return n;
		rdma_destroy_id(search.found);
	}
}

struct rdma_cm_id *softib_create_id(struct module *module, rdma_cm_event_handler handler,
				    void *context, enum rdma_ucm_port_space ps,
				    enum ib_qp_type qp_type)
{
	return rdma_create_id(module->state->loader->rt, module->state->node_name, handler, context,
			      ps, qp_type);
}

/* --- all --- */

struct sums {
	struct module_state *state;
	u32 of_type[RDMA_RESTRACK_MAX], agents, handlers;
};

static int free_of_device(struct ib_device *device, void *ctx)
{
	struct sums *sums = ctx;

	sums->agents += free_agents(sums->state, device);
	sums->handlers += free_handlers(sums->state, device);
	rdma_restrack_forget(device, sums->state->name, sums->of_type);
	return 0;
}

void module_free_leftovers(struct module_state *state, char text[MODULE_TEXT_BYTES])
{
	struct sums sums = {.state = state};
	u32 ids = free_ids(state);

	ib_device_for_each_of_node(state->loader->rt, state->node_name, free_of_device, &sums);
	append(text, "rdma_cm_id", ids);
	append(text, "mad_agent", sums.agents);
	append(text, "event_handler", sums.handlers);
	for (int i = 0; i < RDMA_RESTRACK_MAX; i++)
		append(text, rdma_restrack_name(i), sums.of_type[i]);
}
